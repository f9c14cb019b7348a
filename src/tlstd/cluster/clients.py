"""Workers: processes of this machine, or those of a Dask cluster by the address of its scheduler."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from typing import Any

from tlstd.core import parameters
from tlstd.core.extras import needs
from tlstd.core.file_format import without_credentials
from tlstd.errors import InvalidParameterError

ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)
"""The environment of a worker of this machine."""
FAILURES = 1_000
"""Workers that may die with a task before it counts as the one that kills them."""

PATIENCE = "600s"
"""How long a worker of this machine may take to answer."""
TRIED = "60s"
"""How long it is tried to reach a worker that may have been killed meanwhile: so long one waits for nothing."""
NEVER = "3650 days"
"""When a worker of this machine that died is given up: so long after its death Dask looks whether it is there, and
closes for good one that has died again and is just coming back."""


def _distributed() -> Any:
    with needs("distributed"):
        return import_module("distributed")


@contextmanager
def local_workers(n_workers: int) -> Iterator[Any]:
    """A client of so many processes of this machine, each with one thread; they end with the block.

    A script that uses this needs ``if __name__ == "__main__":``, since the processes are started afresh.
    """
    n_workers = parameters.integer("workers", n_workers)
    distributed = _distributed()
    dask = import_module("dask")
    settings: dict[str, Any] = {
        "distributed.scheduler.allowed-failures": FAILURES,
        "distributed.nanny.environ": ONE_THREAD,
        "distributed.worker.preload": ["tlstd.cluster.uninterrupted"],
        "distributed.comm.timeouts.connect": TRIED,
        "distributed.comm.timeouts.tcp": PATIENCE,  # a busy machine takes long to start a process
        "distributed.scheduler.worker-ttl": PATIENCE,
        "distributed.deploy.lost-worker-timeout": NEVER,
    }
    with dask.config.set(settings):
        with _without_interruption() as interrupted:
            cluster = distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",  # any port: several clusters may run here at once
                silence_logs=50,
                memory_limit=0,
            )
        with cluster:
            if interrupted:
                raise KeyboardInterrupt
            with distributed.Client(cluster, set_as_default=False) as client:
                yield client


@contextmanager
def _without_interruption() -> Iterator[list[int]]:
    """Start processes that Ctrl-C does not reach; what is yielded tells whether it came in the block.

    Processes and threads inherit blocked signals. A terminal sends Ctrl-C to the workers too, and they would print what
    they were importing; a cluster that is interrupted while it starts cannot be closed.
    """
    interrupted: list[int] = []
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    resource_tracker.ensure_running()  # which unblocks the signal in the thread that starts it
    handler = signal.signal(signal.SIGINT, lambda number, _frame: interrupted.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield interrupted
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, e.g. ``tcp://host:8786`` or ``tls://host:8786``.

    Keys and certificates of TLS are those of Dask's configuration (``distributed.comm.tls``).
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=20, set_as_default=False)
    except Exception as error:  # Dask raises many kinds, AssertionError among them
        bare = address.partition("://")[2] or address
        hidden = without_credentials(f"tcp://{bare}").removeprefix("tcp://")
        reason = f" ({error})" if hidden == bare else ""  # Dask's words may hold any piece of the address
        raise InvalidParameterError(
            f"no Dask scheduler answers at {address.replace(bare, hidden)!r}{reason}: start one, or correct the address"
        ) from None
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # a scheduler that is gone is an error, which says so
    try:
        with client:
            yield client
    finally:
        logger.setLevel(level)
