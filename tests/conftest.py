"""Settings of the whole test run."""

import os

# One BLAS thread per worker: the problems are small, and two workers share two cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
