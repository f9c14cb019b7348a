"""What an estimator survives: exceptions and interrupts at any point, and other threads.

Each part is a task of numbered tries, each made by its number and a seed: few of them are done in a check, many in
``tlstd campaign``.
"""

from __future__ import annotations

import copy
import dis
import inspect
import os
import pickle
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import CodeType, FrameType
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

import tlstd
from tests.faults import children
from tests.faults.children import explained
from tlstd.checks.data import N_FEATURES, Check, Factory, as_sparse, assert_close, loaded, reason, stream
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import StateError

TOLERANCE = 1e-8
"""Largest difference, relative to the largest weight, between a model and what it should be."""

TRIES = 8
"""Exceptions raised in a check, and twice the number of interrupts."""

SECONDS = 20.0
"""After which a try counts as hanging."""

N_SPARSE = 40
"""Features where sparse storage is to be used."""

N_READERS = 4
READS = 20
"""Reads of each reader in one try."""

Read: TypeAlias = tuple[str, Any, FloatArray]
"""How a model was read, of which rows of X, and their values."""

_START = 15
_END = 60
_COPIES: dict[str, Callable[[Any], Any]] = {
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


class Run:
    """A small run, call by call, with the models that it may be when it is cut off.

    Parameters
    ----------
    factory : callable
    n_features : int
        Of which three are active at a time.

    Attributes
    ----------
    calls : list of (int, callable)
        Each is given the model; the number is that of the samples learned from after it.
    at : int
        The call that was last begun.
    """

    def __init__(self, factory: Factory, n_features: int = N_FEATURES) -> None:
        self.factory = factory
        self.steps = stream(_END, seed=6, n_features=n_features)
        self.X: FloatArray = np.asarray(self.steps.X)
        self.at = 0
        steps, sparse, x = self.steps, as_sparse(self.steps), self.X[0]
        reads_at_every_step = hasattr(factory(n_features), "update_and_predict")
        learn = "update_and_predict" if reads_at_every_step else "update_many"
        self.calls: list[tuple[int, Callable[[Any], object]]] = [
            (38, lambda model: model.update_many(steps[_START:38])),
            (45, lambda model: getattr(model, learn)(steps[38:45])),
            (45, lambda model: model.predict(x)),
            *((n, lambda model, n=n: model.update(sparse[n - 1])) for n in (46, 47, 48)),
            (48, lambda model: model.weights),
            (_END, lambda model: model.update_many(sparse[48:])),
            (_END, lambda model: model.predict(steps.X)),
        ]
        self._weights: dict[int, FloatArray] = {}
        self.saved = self._file_of(self.fresh(_START))

    def fresh(self, n: int) -> Any:
        """A model that has learned from the first n samples, undisturbed; no call has been made."""
        self.at = 0
        model = self.factory(self.steps.n_features)
        model.update_many(self.steps[:n])
        return model

    def weights(self, n: int) -> FloatArray:
        """The weights of the first n samples."""
        if n not in self._weights:
            self._weights[n] = self.fresh(n).weights.copy()
        return self._weights[n]

    def go(self, model: Any) -> None:
        """Make all calls."""
        for self.at, (_, call) in enumerate(self.calls):  # noqa: B020 - where it was cut off is read afterwards
            call(model)

    def verify(self, model: Any, first_use: int) -> None:
        """Raise unless a model that was cut off in call ``at`` is whole: read, copied, saved, and going on."""
        lowest = self.calls[self.at - 1][0] if self.at else _START
        highest = self.calls[self.at][0]
        model = self._use(model, first_use % 6)
        n = model.n_updates
        assert lowest <= n <= highest, f"n_updates is {n}, where {lowest} to {highest} samples were learned from"
        self.verify_at(model, n, "it")
        twin = model
        if self.saved is not None:
            twin = self.save_and_load(model)
            self.verify_at(twin, n, "saved and loaded it")
        for m, what in ((model, "going on, it"), (twin, "saved, loaded and going on, it")):
            if m.n_updates < _END:
                m.update_many(self.steps[n:])
            self.verify_at(m, _END, what)

    def save_and_load(self, model: Any) -> Any:
        """The model through a file that takes the place of a sound one."""
        assert self.saved is not None
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            with open(path, "wb") as file:
                file.write(self.saved)
            try:
                model.save(path)
            except StateError as error:
                raise AssertionError(f"it cannot be saved: {error}") from error
            try:
                return loaded(path, type(model))
            except StateError as error:
                raise AssertionError(f"saved over a sound file, it cannot be loaded: {error}") from error

    def _use(self, model: Any, how: int) -> Any:
        """Use a model for the first time after it was cut off; returns it, or what was made of it."""
        if how == 0:
            model.predict(self.X[0])
        elif how == 1 and self.saved is not None:
            return self.save_and_load(model)
        elif how == 2:
            repr(model)
        elif how > 2:
            return list(_COPIES.values())[how - 3](model)
        return model

    def verify_at(self, model: Any, n: int, what: str) -> None:
        """Raise unless a model is that of the first n samples."""
        assert model.n_updates == n, f"{what} has n_updates {model.n_updates} instead of {n}"
        expected = self.weights(n)
        assert_close(model.weights, expected, TOLERANCE, f"{what} is not the model of the first {n} samples")
        assert_close(model.predict(self.X), self.X @ expected, TOLERANCE, f"{what} predicts otherwise than its weights")

    def _file_of(self, model: Any) -> bytes | None:
        """Content of a saved model; None if it cannot be saved."""
        if not hasattr(model, "save"):
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            with suppress(StateError):
                model.save(path)
                with open(path, "rb") as file:
                    return file.read()
        return None


# --- exceptions -----------------------------------------------------------------------------------------------------


class Injector:
    """A trace function that raises at the n-th line of the library, or of the estimator's own file."""

    def __init__(self, cls: type, at: int | None = None, error: BaseException | None = None) -> None:
        methods = (value for c in cls.__mro__ for value in vars(c).values())
        self.files = frozenset(method.__code__.co_filename for method in methods if inspect.isfunction(method))
        self.at, self.error = at, error
        self.n_lines = 0
        self.where = ""
        self._known: dict[int, tuple[Callable[..., Any] | None, CodeType]] = {}

    def __call__(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        """Called where a function begins; what it returns is called at each of its lines."""
        code = frame.f_code
        known = self._known.get(id(code))  # hashing the code itself takes longer than most functions
        if known is None:
            traced = self._lines_of(_exits(code)) if _is_traced(code, self.files) else None
            known = self._known[id(code)] = (traced, code)
        return known[0]

    def _lines_of(self, exits: frozenset[int]) -> Callable[..., Any]:
        def at_line(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
            if event == "line" and frame.f_lasti not in exits:
                self.n_lines += 1
                if self.n_lines == self.at and self.error is not None:
                    self.where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
                    raise self.error
            return at_line

        return at_line

    def run(self, function: Callable[[], None]) -> bool:
        """Call with tracing; returns whether the exception came out."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            function()
        except BaseException:
            if not self.where:
                raise
            return True
        finally:
            sys.settrace(before)
        return False


def _comes_from_interrupt(error: BaseException | None) -> bool:
    """Whether a KeyboardInterrupt is among the causes."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


@cache
def _is_traced(code: CodeType, files: frozenset[str]) -> bool:
    return code.co_filename.startswith(os.path.dirname(tlstd.__file__) + os.sep) or code.co_filename in files


@cache
def _exits(code: CodeType) -> frozenset[int]:
    """Where a ``with`` block is about to call ``__exit__``, or a ``try`` begins, which ``with`` does not cover.

    No signal can come there, nor can memory run out.
    """
    every = list(dis.get_instructions(code))
    instructions = [i for i in every if i.opname not in ("CACHE", "NOP")]
    nones = [i.opname == "LOAD_CONST" and i.argval is None for i in instructions]
    exits = {i.offset for i in every if i.opname == "NOP"}
    for k in range(len(instructions) - 2):
        if all(nones[k : k + 3]):
            exits.update(i.offset for i in instructions[max(0, k - 2) : k + 1])
    return frozenset(exits)


def exception_task(factory: Factory, *, seed: int = 0, run: Run | None = None) -> children.Task:
    """Raise KeyboardInterrupt or MemoryError at lines spread over a small run, and use what is left."""
    run = run or Run(factory)
    run.go(run.fresh(_START))  # compiled
    model = run.fresh(_START)
    counter = Injector(type(model))
    counter.run(lambda: run.go(model))
    shift = random.Random(seed).random()

    def task(i: int) -> str:
        at = 1 + int(spread(i, shift) * counter.n_lines)
        error = KeyboardInterrupt("injected") if i % 2 else MemoryError("injected")
        model = run.fresh(_START)
        injector = Injector(type(model), at, error)
        raised = injector.run(lambda: run.go(model))
        with explained(f"{type(error).__name__} at {injector.where} (line {at:,} of {counter.n_lines:,})"):
            run.verify(model, i // 2)
        return "raised" if raised else "not raised"

    return task


def spread(i: int, shift: float) -> float:
    """Numbers in [0, 1) that are spread evenly over it, however many one takes: a multiple of the golden section."""
    return (i * 0.6180339887498949 + shift) % 1.0


def check_exceptions_leave_a_prefix(factory: Factory) -> None:
    """After an exception at any line of an update or a read the model is that of a prefix, and goes on.

    ``n_updates`` says of which prefix. It predicts, is copied, saved and loaded, and continued with the rest it is the
    model of the whole stream.
    """
    check_together(factory, [check_exceptions_leave_a_prefix])


# --- interrupts -----------------------------------------------------------------------------------------------------


def interrupt_task(factory: Factory, *, seed: int = 0, run: Run | None = None) -> children.Task:
    """Let a timer's signal raise KeyboardInterrupt at a random moment of a small run, and use what is left."""
    run = run or Run(factory)
    durations = []
    for _ in range(3):
        model, start = run.fresh(_START), time.perf_counter()
        run.go(model)
        durations.append(time.perf_counter() - start)

    def task(i: int) -> str:
        model = run.fresh(_START)
        delay = random.Random(f"{seed} {i}").uniform(1e-5, 0.95 * min(durations))
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        interrupted = False
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            run.go(model)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        except (KeyboardInterrupt, SystemError) as error:
            # what comes while Numba hands arrays to a kernel leaves CPython as the cause of a SystemError
            if isinstance(error, SystemError) and not _comes_from_interrupt(error):
                raise
            interrupted = True
        with explained(f"interrupted {1e6 * delay:.0f} µs after the start"):
            run.verify(model, i)
        return "interrupted" if interrupted else "too late"

    return task


def check_interrupts_leave_a_prefix(factory: Factory) -> None:
    """The same after Ctrl-C at a random moment. (Passed over where there are no such signals or no ``os.fork``.)"""
    check_together(factory, [check_interrupts_leave_a_prefix])


# --- threads --------------------------------------------------------------------------------------------------------


def read_task(
    factory: Factory,
    *,
    writer: bool,
    seed: int = 0,
    readers: int = N_READERS,
    reads: int = READS,
    often: int = 1,
    run: Run | None = None,
) -> children.Task:
    """Let some threads read one model ``reads`` times each, while another one learns if there is a writer.

    Ten reads of 18 are predictions for a vector, or ``often`` times as many to each of the others.
    """
    run = run or Run(factory, n_features=N_SPARSE)
    calls: list[tuple[int, Callable[[Any], object]]] = [(_END, lambda model: None)]
    if writer:
        ends = [23, 24, 32, 39, 40, 41, 50, _END]
        parts = [run.steps[a:b] for a, b in zip([_START, *ends], ends, strict=False)]
        calls = [(n, _learner(part)) for n, part in zip(ends, parts, strict=True)]
    begin = _START if writer else _END
    states = np.array([run.X @ run.weights(n) for n in ([begin] + [n for n, _ in calls])])
    model = run.fresh(_START)
    for how in {*_PREDICTIONS, *_OTHERS}:  # compiled
        _read(run, model, how, 0)

    def task(i: int) -> str:
        model = run.fresh(begin)
        seen = _read_together(run, model, [call for _, call in calls], f"{seed} {i}", readers, reads, often)
        for values in seen:
            explain_reads(values, states)
        run.verify_at(model, calls[-1][0], "read by several threads, it")
        return f"{sum(map(len, seen))} reads"

    return task


def check_concurrent_reads(factory: Factory) -> None:
    """Reads of one model from several threads are right."""
    check_together(factory, [check_concurrent_reads])


def check_reads_beside_a_writer(factory: Factory) -> None:
    """A thread that reads while another learns sees the model before or after a call, never in between.

    So do those that copy, pickle and save it. What one of them has seen does not go away again.
    """
    check_together(factory, [check_reads_beside_a_writer])


def check_blas_threads_are_as_before(factory: Factory) -> None:
    """Several models that learn in several threads leave BLAS with as many threads as it had."""
    check_together(factory, [check_blas_threads_are_as_before])


def _blas_task(run: Run) -> children.Task:
    run.go(run.fresh(_START))
    blas = ThreadpoolController().select(user_api="blas")

    def learn(first: int) -> None:
        model = run.fresh(_START)
        for a in range(_START + first, 42, 9):
            model.update_many(run.steps[a : a + 9])
            model.predict(run.X[a])

    def task(i: int) -> str:
        # Each in a thread of its own: to a thread that has set it OpenBLAS answers with what it has set.
        _join([threading.Thread(target=blas.limit, kwargs={"limits": 2})])
        before = _blas_threads(blas)
        with _frequent_switches():
            _join([threading.Thread(target=learn, args=(k,)) for k in range(N_READERS)])
        after = _blas_threads(blas)
        assert after == before, f"BLAS had {before} threads and has {after} after models learned in several threads"
        return ""

    return task


def _learner(part: Transitions) -> Callable[[Any], object]:
    if len(part) == 1:
        return lambda model: model.update(part[0])
    return lambda model: model.update_many(part)


def _read_together(
    run: Run, model: Any, calls: list[Callable[[Any], object]], seed: str, readers: int, reads: int, often: int
) -> list[list[Read]]:
    """What every reader has seen, in order.

    Calls are spread over the reads and reads over the calls: on a busy machine one side would be done before the other.
    A call begins when half of the reads before the next one are done, so that readers are at work.
    """
    seen: list[list[Read]] = [[] for _ in range(readers)]
    ways = _PREDICTIONS * often + _OTHERS
    errors: list[BaseException] = []
    begun = [threading.Event() for _ in calls]
    start = threading.Barrier(readers + 1)

    def read(number: int) -> None:
        choices = random.Random(f"{seed} {number}")
        start.wait()
        try:
            for k in range(reads):
                if k * len(calls) >= reads:
                    begun[k * len(calls) // reads - 1].wait()
                saves = run.saved is not None and choices.random() < 0.02 / often
                how = "save" if saves else choices.choice(ways)
                seen[number].append(_read(run, model, how, choices.randrange(_END)))
        except BaseException as error:
            errors.append(error)

    def write() -> None:
        start.wait()
        try:
            for k, call in enumerate(calls):
                while sum(map(len, seen)) * len(calls) < (k + 0.5) * readers * reads and not errors:
                    time.sleep(1e-5)
                begun[k].set()
                call(model)
        except BaseException as error:
            errors.append(error)
        finally:
            for event in begun:
                event.set()

    with _frequent_switches():
        _join([threading.Thread(target=write), *(threading.Thread(target=read, args=(k,)) for k in range(readers))])
    if errors:
        raise AssertionError(f"used by several threads, it raised {type(errors[0]).__name__} ({errors[0]})")
    return seen


def _read(run: Run, model: Any, how: str, row: int) -> Read:
    everything = slice(None)
    if how == "vector":
        return how, [row], np.array([model.predict(run.X[row])])
    if how == "sparse vector":
        return how, [row], np.array([model.predict(SparseVector.from_dense(run.X[row]))])
    if how == "repr":
        repr(model)
        return how, [], np.zeros(0)
    if how == "matrix":
        return how, everything, model.predict(run.X)
    if how == "csr":
        return how, everything, model.predict(sp.csr_array(run.X))
    if how == "weights":
        return how, everything, run.X @ model.weights
    if how == "sparse_weights":
        return how, everything, run.X @ model.sparse_weights.toarray()
    twin = run.save_and_load(model) if how == "save" else _COPIES[how](model)
    return how, everything, run.X @ twin.weights


_PREDICTIONS = ["vector"] * 6 + ["sparse vector"] * 4
_OTHERS = ["matrix", "csr", "weights", "sparse_weights", "repr", *_COPIES]


def explain_reads(reads: list[Read], states: FloatArray) -> None:
    """Raise unless every read is of one of the states, and of none that comes before what was read earlier."""
    allowed = TOLERANCE * np.abs(states).max(axis=1)
    errors = np.zeros((len(states), len(reads)))
    one = [k for k, (_, rows, _) in enumerate(reads) if isinstance(rows, list) and rows]
    errors[:, one] = np.abs(states[:, [reads[k][1][0] for k in one]] - [float(reads[k][2][0]) for k in one])
    for k in set(range(len(reads))) - set(one):
        _, rows, values = reads[k]
        errors[:, k] = np.abs(states[:, rows] - values).max(axis=1, initial=0.0)
    fits = errors <= allowed[:, None]
    at = k = 0
    while (misfits := np.flatnonzero(~fits[at, k:])).size:
        k += int(misfits[0])
        what = f"a read ({reads[k][0]}) beside other threads is that of"
        assert fits[:, k].any(), f"{what} no whole update: off by {errors[:, k].min():.1e}"
        assert fits[at:, k].any(), f"{what} an older model than one before it"
        at += int(np.argmax(fits[at:, k]))


def _blas_threads(blas: ThreadpoolController) -> list[int]:
    """Numbers of threads of the BLAS libraries, as a new thread finds them."""
    found: list[int] = []

    def look() -> None:
        found.extend(library["num_threads"] for library in blas.info())

    _join([threading.Thread(target=look)])
    return found


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.daemon = True
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


# --- all of them ----------------------------------------------------------------------------------------------------

_TASKS: dict[Check, tuple[int, int, Callable[[Run], children.Task]]] = {
    check_exceptions_leave_a_prefix: (TRIES, N_FEATURES, lambda run: exception_task(run.factory, run=run)),
    check_interrupts_leave_a_prefix: (TRIES // 2, N_FEATURES, lambda run: interrupt_task(run.factory, run=run)),
    check_concurrent_reads: (2, N_SPARSE, lambda run: read_task(run.factory, writer=False, run=run)),
    check_reads_beside_a_writer: (2, N_SPARSE, lambda run: read_task(run.factory, writer=True, run=run)),
    check_blas_threads_are_as_before: (2, N_FEATURES, _blas_task),
}
"""Numbers of tries and of features, and what makes the task of a run."""

CHECKS: tuple[Check, ...] = tuple(_TASKS)


def failures(factory: Factory, checks: Iterable[Check] = CHECKS) -> dict[Check, str]:
    """Why checks fail, with one child for all tries: in a large process it takes long to make."""
    runs: dict[int, Run] = {}
    tries: list[tuple[Check, children.Task, int]] = []
    found: dict[Check, str] = {}
    for check in checks:
        if why_passed_over(check) is not None:
            continue
        count, n_features, make = _TASKS[check]
        try:
            if n_features not in runs:
                runs[n_features] = Run(factory, n_features)
            task = make(runs[n_features])
        except Exception as error:
            found[check] = reason(error)
            continue
        tries += [(check, task, i) for i in range(count)]
    outcomes = children.run(lambda number: tries[number][1](tries[number][2]), range(len(tries)), seconds=SECONDS)
    for check in {tries[outcome.number][0]: None for outcome in outcomes}:
        failed = [outcome.words for outcome in outcomes if outcome.failed and tries[outcome.number][0] is check]
        if failed:
            found[check] = f"{len(failed)} of {_TASKS[check][0]} tries fail: {failed[0]}"
    return found


def why_passed_over(check: Check) -> str | None:
    """Why this system cannot run a check; None if it can."""
    if check is check_interrupts_leave_a_prefix and not (hasattr(signal, "setitimer") and hasattr(os, "fork")):
        return "this system has no timers or no fork"
    return None


def check_together(factory: Factory, checks: Iterable[Check] = CHECKS) -> None:
    """Raise AssertionError with the reasons of all :func:`failures`."""
    found = [f"{check.__name__}: {why}" for check, why in failures(factory, checks).items()]
    assert not found, "\n".join(found)
