"""What a worker of this machine does when it starts.

Ctrl-C in a terminal reaches it too, but is not meant for it. And when it ends, the memory is gone anyway: the garbage
collector need not look through all modules before, which takes a quarter of a second.
"""

from __future__ import annotations

import atexit
import gc
import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave interrupts to the process that asked, which ends its workers; end quickly. Called by ``distributed``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(gc.freeze)
