"""One BLAS thread for small problems.

Waking a second BLAS thread costs more than a small problem takes, and on a busy machine tens of times more. The limit
holds for the process, so it is counted: the first who wants it notes what was set, the last who leaves sets that again.
"""

from __future__ import annotations

import threading
import time
import weakref
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import ClassVar

from threadpoolctl import LibController, OpenBLASController, ThreadpoolController

SMALL = 1e11
"""Floating-point operations (some seconds) below which one thread is used."""

_PATIENCE = 5.0  # seconds that nobody needs for a step of the count


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - its BLAS must be loaded before the libraries are listed

    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """Somebody who wants one thread, for as long as a context lasts."""

    lock: ClassVar = threading.Lock()
    users: ClassVar[weakref.WeakSet[_OneThread]] = weakref.WeakSet()  # whoever is interrupted while leaving has left
    before: ClassVar[list[tuple[LibController, int]] | None] = None  # what to go back to

    def __enter__(self) -> None:
        """Limit BLAS."""
        try:
            with _sound_lock():
                self.users.add(self)
                if self.before is None:  # by the bare calls: threadpoolctl's own limit takes three times as long
                    libraries = _controller().lib_controllers
                    counts = [(library, library.num_threads) for library in libraries]
                    _OneThread.before = more = [(library, count) for library, count in counts if count != 1]
                    _set([(library, 1) for library, _ in more])
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        """Go back to what was set before, after the last user."""
        with _sound_lock():
            self.users.discard(self)
            if not self.users and self.before is not None:
                _set(self.before)
                _OneThread.before = None


def _set(counts: list[tuple[LibController, int]]) -> None:
    """From any thread, and for any: since 3.8 threadpoolctl obeys only the first that asks, for as long as it lives."""
    if not counts:
        return
    _release(force=True)
    for library, n_threads in counts:
        library.set_num_threads(n_threads)
    _release(force=True)


_release = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)


def _sound_lock() -> threading.Lock:
    """The lock of the count, held for microseconds; one that a fork or an interruption left held is replaced."""
    lock, begin = _OneThread.lock, time.monotonic()
    while lock.locked():
        if time.monotonic() - begin > _PATIENCE:
            _OneThread.lock = threading.Lock()
            return _OneThread.lock
        time.sleep(1e-4)
    return lock


def one_thread(operations: float = 0.0) -> AbstractContextManager[None]:
    """Context in which BLAS uses one thread, unless there are so many operations that more would pay."""
    if operations > SMALL:
        return nullcontext()
    return _OneThread()
