"""Mutants: small changes of the library, each of which a test should notice."""
