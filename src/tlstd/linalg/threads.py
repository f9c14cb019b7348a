"""One BLAS thread for small problems.

Waking a second BLAS thread costs more than a small problem takes, and on a busy machine tens of times more. The limit
holds for the process, so it is counted: the first who wants it notes what was set, the last who leaves sets that again.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 1e11
"""Floating-point operations (some seconds) below which one thread is used."""

_PATIENCE = 5.0  # seconds that nobody needs for a step of the count


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - its BLAS must be loaded before the libraries are listed

    return ThreadpoolController().select(user_api="blas")


class _User:
    """Somebody who wants one thread."""


class _Limit:
    """Who wants one thread, and what to go back to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: weakref.WeakSet[_User] = weakref.WeakSet()  # whoever is interrupted while leaving has left
        self.limiter: Any = None

    def change(self, step: Callable[[], None]) -> None:
        """Do a step of microseconds while nobody else does; a lock that an interruption left behind is replaced."""
        lock = self.lock
        if not lock.acquire(timeout=_PATIENCE):
            self.lock = lock = threading.Lock()
            lock.acquire()
        try:
            step()
        finally:
            lock.release()

    def enter(self, user: _User) -> None:
        """Limit BLAS for a user."""
        self.users.add(user)
        if self.limiter is None:
            self.limiter = _controller().limit(limits=1)

    def leave(self, user: _User) -> None:
        """Go back to what was set before, after the last user."""
        self.users.discard(user)
        if not self.users and self.limiter is not None:
            self.limiter.restore_original_limits()
            self.limiter = None


_LIMIT = _Limit()


@contextmanager
def _limited() -> Iterator[None]:
    user = _User()
    try:
        _LIMIT.change(lambda: _LIMIT.enter(user))
        yield
    finally:
        _LIMIT.change(lambda: _LIMIT.leave(user))


def one_thread(operations: float = 0.0) -> AbstractContextManager[None]:
    """Context in which BLAS uses one thread, unless there are so many operations that more would pay."""
    if operations > SMALL:
        return nullcontext()
    return _limited()
