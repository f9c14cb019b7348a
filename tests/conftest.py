"""Settings of the whole test run."""

import os

from hypothesis import HealthCheck, settings

# One BLAS thread per process: the problems are small, and two test workers share the cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Every run draws the same examples; compiling kernels and temporary folders make some of them slow.
slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
settings.register_profile("few", max_examples=20, derandomize=True, deadline=None, suppress_health_check=slow)
settings.register_profile("many", settings.get_profile("few"), max_examples=500)
settings.load_profile("few")
