"""Krylov LSTD against TD, t-LSTD and LSTD: errors, CPU times and growth, each comparison within one run.

A file a topic: how it is measured, its table, its figure.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
