"""Settings of the whole test run."""

import os

# One BLAS thread per process: the problems are small, and two test workers share the cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
