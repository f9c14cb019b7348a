"""How often the answers of ``tlstd.evaluate`` are right, on logs of problems whose true values are known."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
