"""Workers: processes of this machine, or those of a Dask cluster by the address of its scheduler."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
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
        cluster = distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # any port: several clusters may run here at once
            silence_logs=50,
            memory_limit=0,
        )
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client


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
