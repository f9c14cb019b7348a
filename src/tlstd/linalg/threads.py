"""One BLAS thread for small problems.

Waking a second BLAS thread costs more than a small problem takes, and on a busy machine tens of times more. The limit
is lifted again on leaving: the user's own setting is not touched.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, cast

from threadpoolctl import ThreadpoolController

SMALL = 1e11
"""Floating-point operations (some seconds) below which one thread is used."""


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - its BLAS must be loaded before the libraries are listed

    return ThreadpoolController().select(user_api="blas")


def one_thread(operations: float = 0.0) -> AbstractContextManager[Any]:
    """Context in which BLAS uses one thread, unless there are so many operations that more would pay."""
    if operations > SMALL:
        return nullcontext()
    return cast(AbstractContextManager[Any], _controller().limit(limits=1))
