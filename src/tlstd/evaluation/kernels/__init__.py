"""Compiled functions on raw arrays; kernels that call each other share a file (:mod:`tlstd.core.jit`)."""
