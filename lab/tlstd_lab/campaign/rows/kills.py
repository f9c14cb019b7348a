"""kill -9 anywhere, inside ``save`` too: the file loads, and what goes on from it ends with the same bits.

Every other try is killed at a line of the library, half of those at a line of a save; the others at a random moment.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import tlstd
from tlstd.checks.data import Factory, loaded
from tlstd.errors import StateError
from tlstd.estimators.registry import ESTIMATORS
from tlstd_lab.campaign.faults import Task, explained, reliability
from tlstd_lab.campaign.row import Row

LONG = 10
"""Every tenth try goes on to the end, whatever the file."""
_PACKAGE = os.path.dirname(tlstd.__file__) + os.sep
_SAVING = ("container.py", "state.py")


class _Lines:
    """A trace function that counts lines of the library, or only those of saving, and kills the process at one."""

    def __init__(self, saving: bool, at: int | None = None) -> None:
        self.saving, self.at, self.count = saving, at, 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> _Lines | None:
        if event == "line":
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
        elif event == "call" and not _counts(frame.f_code.co_filename, self.saving):
            return None
        return self

    def run(self, function: Callable[[], None]) -> None:
        """Call a function with tracing."""
        sys.settrace(self)
        try:
            function()
        finally:
            sys.settrace(None)


@cache
def _counts(name: str, saving: bool) -> bool:
    return name.startswith(_PACKAGE) and (not saving or name.endswith(_SAVING))


class Saver:
    """A small run that saves after every call."""

    def __init__(self, factory: Factory) -> None:
        self.run = reliability.Run(factory)
        self.cls = type(factory(reliability.N_SPARSE))
        self.ends = {number for number, _ in self.run.calls}
        assert self.run.saved is not None, "it cannot be saved"
        self.before = self.run.saved
        self.known: set[bytes] = set()
        with tempfile.TemporaryDirectory() as folder:
            self.first = self.begin(os.path.join(folder, "model")).n_updates

    def go(self, model: Any, path: str, saving: _Lines | None = None) -> None:
        """Make the calls that are still to be made, and save after each, with tracing of that if it is asked for."""
        done = model.n_updates
        for number, call in self.run.calls:
            if number > done:
                call(model)
                if saving is None:
                    model.save(path)
                else:
                    saving.run(lambda: model.save(path))

    def traced(self, model: Any, path: str, lines: _Lines) -> None:
        """The same with lines counted."""
        if lines.saving:
            self.go(model, path, lines)
        else:
            lines.run(lambda: self.go(model, path))

    def learn(self, final: bytes) -> None:
        """Go on from every file that an undisturbed run saves, once; raise unless it ends the same."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            found, model = [self.before], self.begin(path)
            for number, call in self.run.calls:
                if number > self.first:
                    call(model)
                    model.save(path)
                    found.append(Path(path).read_bytes())
            for data in found:
                Path(path).write_bytes(data)
                self.verify(path, final)
        self.known.update(found)

    def begin(self, path: str) -> Any:
        """A model, and its file."""
        Path(path).write_bytes(self.before)
        return loaded(path, self.cls)

    def verify(self, path: str, final: bytes, *, short: bool = False) -> int:
        """Raise unless the file loads and goes on to the same end; the samples that it had.

        If ``short``, a file whose every byte is that of one which has done so before is loaded and saved again, beside
        whatever the kill has left in the folder, and goes no further: bytes that are equal end equally.
        """
        data = Path(path).read_bytes()
        try:
            model = loaded(path, self.cls)
        except StateError as error:
            raise AssertionError(f"the file cannot be loaded: {error}") from error
        n = model.n_updates
        assert n in {self.first, *self.ends}, f"the file is of {n} samples, which were never saved"
        if short and data in self.known:
            model.save(path)
            assert Path(path).read_bytes() == data, f"loaded and saved again with {n} samples it has other bits"
            return int(n)
        self.go(model, path)
        assert Path(path).read_bytes() == final, f"going on from {n} samples it ends with other bits"
        return int(n)


def _task(subject: str, seed: int, folder: Path) -> Task:
    saver = Saver(ESTIMATORS[subject])
    counts: dict[bool, int] = {}
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "model")
        durations = []
        for _ in range(3):
            model, start = saver.begin(path), time.perf_counter()
            saver.go(model, path)
            durations.append(time.perf_counter() - start)
        final = Path(path).read_bytes()
        for saving in (False, True):
            model, lines = saver.begin(path), _Lines(saving)
            saver.traced(model, path, lines)
            counts[saving] = lines.count
    saver.learn(final)

    def task(number: int) -> str:
        choice = random.Random(f"{seed} {number}").random()
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "model")
            model = saver.begin(path)
            if number % 2:
                delay = choice * 1.1 * min(durations)
                where = f"killed {1e6 * delay:.0f} µs after the start"
                killed = _killed(lambda: saver.go(model, path), delay)
            else:
                saving = number % 4 == 0
                at = 1 + int(reliability.spread(number // 4, 0.5) * counts[saving])
                where = f"killed at line {at:,} of {counts[saving]:,}{' of saving' if saving else ''}"
                killed = _killed(lambda: saver.traced(model, path, _Lines(saving, at)), None)
            with explained(where):
                saver.verify(path, final, short=number % LONG > 0)
        return "killed" if killed else "too late"

    return task


def _killed(function: Callable[[], None], delay: float | None) -> bool:
    """Call a function in a child that is killed after some time, or kills itself; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            function()
        finally:
            os._exit(0)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


ROW = Row(
    promise="kill -9 anywhere: the file loads, and goes on to the same bits",
    unit="kills",
    target=1_000,
    task=_task,
    seconds=reliability.SECONDS,
    checked=False,
)
