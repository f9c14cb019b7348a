"""Where runs are computed: in this process, in local processes, or on a Dask cluster.

Whatever the executor, a run computes with one BLAS thread, so the same spec gives the same numbers everywhere on one
kind of machine. An executor yields an outcome only after the run is in the store (or has failed), so whatever is
killed, and whenever, a result that was reported is there.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import secrets
import signal
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tlstd.core.parameters import integer
from tlstd.errors import InvalidParameterError
from tlstd_lab import tasks
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store, versions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MAX_TRIES = 3
"""How often a run is tried whose worker dies."""

MAX_STARTS = 20
"""Workers that may die one after the other before they have begun a run; then none are started any more."""

PR_SET_PDEATHSIG = 1
"""Of Linux: the signal to be sent to a process when its parent dies."""

ONE_THREAD = dict.fromkeys(
    (
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
        "POLARS_MAX_THREADS",
    ),
    "1",
)
"""The environment of a worker."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run: it is stored, or ``error`` says why not.

    ``seconds`` is the time that the task took, 0 if another command had stored the run in the meantime.
    """

    key: str
    seconds: float = 0.0
    error: str = ""


Outcomes = Generator[Outcome, None, None]


class Executor(Protocol):
    """Runs specs and stores their results."""

    def run(self, specs: Sequence[RunSpec], store: Store) -> Outcomes:
        """Yield an outcome per spec, in any order, each once its result is stored. Closing the generator stops all."""
        ...


class InProcess:
    """One run after the other in this process: for tests, debuggers and tiny campaigns.

    Ctrl-C is noticed when a compiled function returns.

    Example
    -------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for outcome in InProcess().run([RunSpec("no.such:task")], Store(folder)):
    ...         print(outcome.error.splitlines()[-1])
    tlstd.errors.InvalidParameterError: the task 'no.such:task' cannot be imported (No module named 'no'): ...
    """

    def run(self, specs: Sequence[RunSpec], store: Store) -> Outcomes:
        """Yield the outcomes in the order of the specs."""
        for spec in specs:
            yield _run_and_store(spec, store)


class LocalProcesses:
    """Runs in ``n_workers`` processes of this machine, each with one BLAS thread, which store the results themselves.

    A worker that dies (killed, out of memory) is replaced and its run tried again, up to three times; the other
    workers do not notice. A worker that dies before it has begun a run is replaced too and costs the run nothing; only
    if twenty in a row die while they start, what the remaining workers cannot do counts as failed. That is why the
    processes are our own, each with a pipe: ``ProcessPoolExecutor`` ends all workers when one dies, cannot say which
    run was to blame, and so would repeat hours of others' work.

    Workers die with this process. They are started afresh (``spawn``), since a fork would copy the threads and locks
    of numba and BLAS in whatever state they are: a script that uses this needs ``if __name__ == "__main__":``.

    Example
    -------
    >>> LocalProcesses(2)
    LocalProcesses(n_workers=2)
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = integer("n_workers", n_workers)

    def __repr__(self) -> str:
        return f"LocalProcesses(n_workers={self.n_workers})"

    def run(self, specs: Sequence[RunSpec], store: Store) -> Outcomes:
        """Yield the outcomes as they come."""
        waiting = deque(specs)
        losses: Counter[str] = Counter()
        lost_starts, last_end = 0, ""
        busy: list[_Worker] = []
        idle: list[_Worker] = []
        try:
            while waiting or busy:
                while waiting and len(busy) < self.n_workers and (idle or lost_starts < MAX_STARTS):
                    busy.append(idle.pop() if idle else _Worker(store.root))
                    busy[-1].give(waiting.popleft())
                if not busy:
                    yield from (Outcome(spec.key, error=_cannot_start(last_end)) for spec in waiting)
                    return
                heard = wait([worker.connection for worker in busy])
                for worker in [worker for worker in busy if worker.connection in heard]:
                    said = worker.hear()
                    if said is Said.BEGUN:
                        lost_starts = 0
                        continue
                    busy.remove(worker)
                    if isinstance(said, Outcome):
                        idle.append(worker)
                        yield said
                        continue
                    spec = worker.spec
                    if worker.has_begun:
                        losses[spec.key] += 1
                    else:
                        lost_starts, last_end = lost_starts + 1, worker.end()
                    if losses[spec.key] < MAX_TRIES:
                        waiting.appendleft(spec)
                    else:
                        yield Outcome(spec.key, error=f"its worker died {MAX_TRIES} times, at last {worker.end()}")
        finally:
            for worker in [*busy, *idle]:
                worker.kill()


class DaskCluster:
    """Runs on the workers of a Dask cluster; the results come back and are stored here, so no disk need be shared.

    The workers need this version of ``tlstd``; start them with one thread each (``dask worker --nthreads 1``). What a
    killed worker was computing, or had not handed over yet, goes to another one; a run that has lost more workers than
    the scheduler allows (``allowed-failures``, 3) counts as failed. When this command stops, what is waiting is
    withdrawn; what workers have begun they end for nothing.

    Parameters
    ----------
    address : str
        Of the scheduler, as ``"tcp://host:8786"``.

    Example
    -------
    >>> DaskCluster("tcp://host:8786")
    DaskCluster('tcp://host:8786')
    """

    def __init__(self, address: str) -> None:
        if find_spec("distributed") is None:
            raise InvalidParameterError("a Dask cluster needs another package: pip install 'tlstd[cluster]'")
        self.address = address

    def __repr__(self) -> str:
        return f"DaskCluster({self.address!r})"

    def run(self, specs: Sequence[RunSpec], store: Store) -> Outcomes:
        """Yield the outcomes as they come."""
        distributed: Any = import_module("distributed")  # an extra, and hardly typed
        try:
            client = distributed.Client(self.address, timeout=20, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InvalidParameterError(
                f"no Dask scheduler answers at {self.address!r} ({error}): start one, or correct the address"
            ) from error
        with client:
            command = secrets.token_hex(4)  # a run of an earlier command is not this one's
            futures = {
                client.submit(_compute_text, spec.to_json(), key=f"{spec.key}-{command}", pure=False, retries=2): spec
                for spec in specs
            }
            try:
                for future in distributed.as_completed(futures, loop=client.loop):
                    yield _stored_here(future, futures.pop(future), store)
            finally:
                client.cancel(list(futures), force=True)


class Said(Enum):
    """What a worker tells its parent besides outcomes."""

    BEGUN = "it has begun the run"
    DEAD = "nothing any more"


class _Result(NamedTuple):
    """What a task returned."""

    columns: Mapping[str, ArrayLike]
    seconds: float
    made_with: Mapping[str, str]


class _Worker:
    """A process that runs one spec after the other, seen from its parent."""

    spec: RunSpec
    has_begun: bool

    def __init__(self, root: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(theirs, root), daemon=True)
        with _environment(ONE_THREAD), _interrupts_held():
            self._process.start()
        theirs.close()  # so that the pipe ends with the worker

    def give(self, spec: RunSpec) -> None:
        """Send a run; if the worker is dead, :meth:`hear` will tell."""
        self.spec, self.has_begun = spec, False
        with suppress(OSError):
            self.connection.send(spec)

    def hear(self) -> Outcome | Said:
        """Return what the worker says: that it has begun the run, what became of it, or that it has died."""
        try:
            said: Outcome | Said = self.connection.recv()
        except (EOFError, OSError):
            self.kill()
            return Said.DEAD
        self.has_begun = True
        return said

    def kill(self) -> None:
        """End the process, whatever it does; a result is stored whole or not at all."""
        self._process.kill()
        self._process.join()
        self.connection.close()

    def end(self) -> str:
        """Say how the process ended."""
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"with exit code {code}"
        return f"by signal {-code} ({signal.strsignal(-code)}; the system does that when memory is short)"


def _cannot_start(end: str) -> str:
    return (
        f"{MAX_STARTS} workers in a row died before they had begun a run, at last {end}: see what they printed; a "
        'script that runs this needs `if __name__ == "__main__":`, and --workers 0 computes in this process'
    )


def _serve(connection: Connection, root: Path) -> None:
    """Run what the parent sends, in a process of its own, until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # a compiled function may keep the thread below waiting for long
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    Thread(target=_die_with_parent, daemon=True).start()
    store = Store(root)
    with suppress(EOFError, OSError):
        while True:
            spec = connection.recv()
            connection.send(Said.BEGUN)
            connection.send(_run_and_store(spec, store))


def _die_with_parent() -> None:
    """Wait for the parent's end, and end at once: another command may be about to run the same spec."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _run_and_store(spec: RunSpec, store: Store) -> Outcome:
    """Compute a run and store it; an exception becomes text."""
    if store.has(spec.key):  # by another command, or by a worker that died before it could say so
        return Outcome(spec.key)
    try:
        result = _compute(spec)
        store.write(spec, result.columns, seconds=result.seconds, made_with=result.made_with)
    except (Exception, SystemExit):
        return Outcome(spec.key, error=traceback.format_exc())
    return Outcome(spec.key, result.seconds)


def _compute(spec: RunSpec) -> _Result:
    """Compute a run with one BLAS thread."""
    from tlstd.core.threads import one_thread

    task = tasks.load(spec.task, spec.version)
    with one_thread():
        start = time.perf_counter()
        columns = task(spec.plain_settings(), spec.seed)
        seconds = time.perf_counter() - start
    return _Result(columns, seconds, versions())


def _compute_text(spec: str) -> _Result | str:
    """The same for a Dask worker: JSON in, the result or the text of an exception out."""
    try:
        return _compute(RunSpec.from_json(spec))
    except (Exception, SystemExit):
        return traceback.format_exc()


def _stored_here(future: Any, spec: RunSpec, store: Store) -> Outcome:
    """Fetch a result from the cluster and store it."""
    try:
        result = future.result()
        if isinstance(result, str):
            return Outcome(spec.key, error=result)
        store.write(spec, result.columns, seconds=result.seconds, made_with=result.made_with)
    except Exception:
        return Outcome(spec.key, error=traceback.format_exc())
    return Outcome(spec.key, result.seconds)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment of the processes started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; processes started inside never get it: it is for their parent to end them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    ensure_running()  # started inside, multiprocessing's helper would let interrupts through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
