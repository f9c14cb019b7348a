"""One call at a time, whole or mended: what models do about threads, interrupts and copies."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from tlstd.errors import BusyError, TlstdError

P = ParamSpec("P")
R = TypeVar("R")
Model = TypeVar("Model", bound="Synchronized")

ignore_overflow = np.errstate(over="ignore", invalid="ignore")
"""Numbers that become too large are infinite or NaN, without a warning: what diverges is data."""


def synchronized(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make a public method of a model one step for other threads, safe to be interrupted, and ``ignore_overflow``."""
    return exclusive(ignore_overflow(method))


def exclusive(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make a public method of a model one step for other threads, and safe to be interrupted anywhere.

    The model's lock is held, and until the method has returned the model counts as unfinished: whatever is called next
    after an interruption first mends it (``_mend``). A refusal (:class:`~tlstd.TlstdError`) has changed nothing.

    A call in the middle of another one of the same thread (by a signal handler, a callable step size, a finaliser)
    finds the model neither before nor after it, and is refused.
    """

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        own = self.__dict__
        if own["_unfinished"]:
            self._refuse_if_busy(method.__name__.lstrip("_"))
        with own["_lock"]:
            if own["_unfinished"]:
                ignore_overflow(self._mend)()
            own["_unfinished"] = True
            try:
                result = method(self, *args, **kwargs)
            except BusyError:  # somebody else was refused, and this call was cut off by it
                raise
            except TlstdError:
                own["_unfinished"] = own["_before"] is not None  # refused while learning: what was begun is undone
                raise
            own["_unfinished"] = False
            return result

    return call


class Synchronized:
    """Base of what has ``synchronized`` methods, and copies that are independent and in order."""

    _before: Any = None
    """What :meth:`_mend` needs while something is being learned."""

    def __init__(self) -> None:
        self._unfinished = False
        self._lock = threading.RLock()

    def _mend(self) -> None:
        """Put the model in order after an interruption; if that is interrupted, from the beginning again."""
        raise NotImplementedError

    def _is_busy(self) -> bool:
        """Whether this thread is in the middle of a call."""
        lock: Any = self._lock
        return self._unfinished and bool(lock._is_owned())

    def _refuse_if_busy(self, what: str) -> None:
        if self._is_busy():
            raise BusyError(
                f"{what} was asked for in the middle of another call on this {type(self).__name__}: let a signal "
                "handler set a flag or raise an exception, and use the model after the call"
            )

    def __copy__(self: Model) -> Model:
        return copy.deepcopy(self)

    def __deepcopy__(self: Model, memo: dict[int, Any]) -> Model:
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        other.__setstate__(self._attributes(memo))
        return other

    def __getstate__(self) -> dict[str, Any]:
        # a copy: what is pickled later must not be changed by another thread
        return self._attributes({id(self): self})

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes, _lock=threading.RLock())

    def _attributes(self, memo: dict[int, Any]) -> dict[str, Any]:
        """Copies of all attributes but the lock, of a model that is in order, made while no other thread changes it."""
        self._refuse_if_busy("a copy")
        with self._lock:
            if self._unfinished:
                self._mend()
                self._unfinished = False
            return copy.deepcopy({name: value for name, value in self.__dict__.items() if name != "_lock"}, memo)
