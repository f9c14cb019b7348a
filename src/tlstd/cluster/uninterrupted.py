"""What a worker of this machine does when it starts.

Ctrl-C in a terminal reaches it too, but is not meant for it: the process that asked ends its workers.
"""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Ignore interrupts. Called by ``distributed``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
