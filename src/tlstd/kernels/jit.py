"""The decorators that compile kernels."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use and cache the machine code beside its source file.

    No ``fastmath``: NaN and the order of additions keep their meaning. Numba's cache does not notice edits in
    *other* files, so kernels that call each other live in one file. Nothing calls them from C.
    """
    return cast(Function, numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function))


def part(function: Function) -> Function:
    """Compile ``function`` for the kernels of its file, which alone call it: without an entry from Python."""
    return cast(Function, numba.njit(nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)(function))


def inlined(function: Function) -> Function:
    """Compile ``function`` as part of each kernel of its file that calls it, with what is constant there."""
    return cast(Function, numba.njit(inline="always")(function))
