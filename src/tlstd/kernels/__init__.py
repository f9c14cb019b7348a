"""Compiled functions on raw arrays; no classes. Kernels that call each other share a file (see ``jit``)."""
