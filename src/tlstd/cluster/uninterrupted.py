"""What a worker of this machine does when it starts: Ctrl-C in a terminal reaches it too, but is not meant for it."""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave interrupts to the process that asked, which ends its workers; called by ``distributed``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
