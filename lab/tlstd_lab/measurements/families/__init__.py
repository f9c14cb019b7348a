"""RMSE of state values by family of features, beside fitted value iteration with scikit-learn."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the trees of scikit-learn: CPU seconds without idle threads
