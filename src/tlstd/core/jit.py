"""The decorators that compile kernels."""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use and cache the machine code beside its source file.

    No ``fastmath``: NaN and the order of additions keep their meaning. Numba's cache does not notice edits in
    *other* files, so kernels that call each other live in one file. Nothing calls them from C.

    Where no folder for the cache can be written, the machine code is kept in memory.
    """
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function))
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        _tell_that_nothing_is_kept()
        return cast(Function, numba.njit(nogil=True, no_cfunc_wrapper=True)(function))


@cache
def _tell_that_nothing_is_kept() -> None:
    """Once per process, by logging: a warning would be an error on import where warnings are errors."""
    logging.getLogger("tlstd").warning(
        "tlstd cannot write compiled code beside its files or in a home folder, so that every process compiles it "
        "again: set NUMBA_CACHE_DIR to a folder that can be written"
    )


def part(function: Function) -> Function:
    """Compile ``function`` for the kernels of its file, which alone call it: without an entry from Python."""
    return cast(Function, numba.njit(nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)(function))


def inlined(function: Function) -> Function:
    """Compile ``function`` as part of each kernel of its file that calls it, with what is constant there."""
    return cast(Function, numba.njit(inline="always")(function))
