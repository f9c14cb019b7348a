"""Turning what users pass into checked arrays. Every error names the value and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple, SupportsFloat, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.errors import InvalidInputError, TlstdError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = "FloatArray | sp.csr_array"
Scalar = TypeVar("Scalar", np.float64, np.int64)

MAX_MAGNITUDE = 1e100
"""Largest absolute value accepted for features, rewards and importance ratios.

The algorithms form products of up to three inputs; up to this size none of them overflows.
"""

_FLOAT = np.dtype(np.float64)  # of this machine's byte order
_FEW = 1000  # numbers of which the sum of squares is found sooner than the largest and the smallest


class TrustedMatrix(NamedTuple):
    """What :func:`as_matrix` returns, of a map of this library that can make nothing else: it is not scanned again."""

    matrix: sp.csr_array


def as_matrix(X: Any, name: str = "X") -> Matrix:
    """Return ``X`` as a C-ordered float64 array or a canonical csr_array with int64 indices, checked."""
    if type(X) is TrustedMatrix:
        return X.matrix
    if not sp.issparse(X):
        return np.ascontiguousarray(as_floats(X, name, 2))
    if X.ndim != 2:
        raise InvalidInputError(
            f"{name} is a sparse array of shape {X.shape}: pass (N, d), one row of features for each state, or for one "
            "state SparseVector(indices, values, size)"
        )
    csr = _from_compressed(X, name) if X.format in ("csr", "csc", "bsr") else _from_entries(X, name)
    if not csr.has_canonical_format or (csr.data == 0.0).any():
        csr = csr.copy()  # indices, indptr and data may each be the caller's
        csr.sum_duplicates()
        csr.eliminate_zeros()
        check_magnitude(csr.data, name)
    is_wide = csr.indices.dtype == csr.indptr.dtype == np.int64
    return csr if is_wide else _csr(csr.data, csr.indices, csr.indptr, csr.shape)


def locked(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Make an array read-only, in place, and return it."""
    array.flags.writeable = False
    return array


def as_size(size: object) -> int:
    """Return ``size`` as a positive int."""
    if type(size) is int and 0 < size < 2**63:  # what it mostly is
        return size
    return parameters.integer("size", size, high=2**63 - 1)


def as_array(value: ArrayLike, name: str) -> NDArray[Any]:
    """Return ``value`` as an array of whatever type it has."""
    if type(value) is np.ndarray:  # what it mostly is
        return value
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInputError(f"{name} has masked entries: fill them or leave them out")
    try:
        return np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:  # whatever the conversion of a foreign object raises
        raise InvalidInputError(f"{name} cannot be read ({error}): pass a rectangular array of numbers") from error


def as_real(value: ArrayLike, name: str, error: type[TlstdError] = InvalidInputError) -> FloatArray:
    """Return ``value`` as float64 of any shape; not text, and not objects."""
    array: NDArray[Any]
    if type(value) is np.ndarray:  # what it mostly is
        array = value
    else:
        try:
            array = as_array(value, name)
        except InvalidInputError as unreadable:
            raise error(str(unreadable)) from unreadable
    if array.dtype is _FLOAT:  # what it mostly is
        return array
    if array.dtype == np.float64:
        return array.astype(np.float64, copy=False)  # in this machine's byte order
    if array.dtype.kind not in "fiub":
        raise error(f"{name} has values of type {array.dtype}: pass an array of real numbers")
    with np.errstate(over="ignore"):
        return array.astype(np.float64, copy=False)


def as_floats(value: ArrayLike, name: str, ndim: int | None) -> FloatArray:
    """Return ``value`` as float64 of ``ndim`` dimensions (any if None); finite and not too large."""
    array = as_real(value, name)
    if ndim is not None and array.ndim != ndim:
        wanted = {1: "a vector, (d,)", 2: "a matrix, (N, d)"}.get(ndim, f"an array of {ndim} dimensions")
        given = f"is {array}, a single number" if array.ndim == 0 else f"has shape {array.shape}"
        raise InvalidInputError(f"{name} {given}: pass {wanted}")
    check_magnitude(array, name)
    return array


def as_indices(value: ArrayLike, size: int, name: str = "indices") -> IntArray:
    """Return ``value`` as 1-D int64 indices within [0, size)."""
    array: NDArray[Any] = value if type(value) is np.ndarray else as_array(value, name)
    if array.size == 0 and array.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InvalidInputError(f"{name} have type {array.dtype} and shape {array.shape}: pass a 1-D array of integers")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        raise InvalidInputError(f"{name} contain {low if low < 0 else high}: they must lie in [0, {size})")
    return array.astype(np.int64, copy=False)


def as_flags(value: ArrayLike, name: str, n: int) -> NDArray[np.bool_]:
    """Return ``value`` as n booleans: True and False, or the integers 0 and 1."""
    array = as_array(value, name)
    if array.shape != (n,) or (n and array.dtype.kind not in "biu"):
        raise InvalidInputError(
            f"{name} has shape {array.shape} and type {array.dtype}: pass one boolean for each of the {n} steps"
        )
    if n and array.dtype.kind != "b" and (array.min() < 0 or array.max() > 1):
        bad = np.flatnonzero((array < 0) | (array > 1))[0]
        raise InvalidInputError(f"{name}[{bad}] is {array[bad]}: pass True or False, or 1 or 0, for each step")
    return array.astype(np.bool_)


def as_flag(value: object, name: str) -> bool:
    """Return ``value`` as a bool; text, NaN, 0.5 and lists are none."""
    if type(value) is bool:  # what it mostly is
        return value
    return parameters.flag(name, value, error=InvalidInputError)


def as_reward(reward: SupportsFloat | ArrayLike) -> float | FloatArray:
    """Return a reward as a float, or as a read-only vector of one per target."""
    if isinstance(reward, float) and -MAX_MAGNITUDE <= reward <= MAX_MAGNITUDE:  # what it mostly is
        return float(reward)
    given: Any = reward
    if isinstance(reward, SupportsFloat) and not hasattr(reward, "__array__"):  # e.g. a Fraction
        given = _as_float(reward)
    array = as_floats(given, "reward", None)
    if array.ndim == 0:
        return float(array)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError(f"reward has shape {array.shape}: pass a number, or a 1-D array of one per target")
    return float(array[0]) if array.size == 1 else locked(array.copy())


def _as_float(number: SupportsFloat) -> float:
    try:
        return float(number)
    except Exception as error:  # whatever the conversion of a foreign object raises
        raise InvalidInputError(f"reward is {number!r}, which is no float ({error}): pass a real number") from error


def as_unit(value: object, name: str) -> float:
    """Return ``value`` as a float in [0, 1]."""
    if type(value) is float and 0.0 <= value <= 1.0:  # what it mostly is
        return value
    number = as_number(value, name)
    if not 0.0 <= number <= 1.0:
        raise InvalidInputError(f"{name} is {value!r}: discounts lie in [0, 1]")
    return number


def as_ratio(value: object) -> float:
    """Return an importance ratio as a finite float >= 0."""
    if type(value) is float and 0.0 <= value <= MAX_MAGNITUDE:  # what it mostly is
        return value
    number = as_number(value, "rho")
    if not 0.0 <= number <= MAX_MAGNITUDE:
        raise InvalidInputError(f"rho is {value!r}: an importance ratio is a finite number >= 0")
    return number


def as_number(value: object, name: str) -> float:
    """Return a scalar of any numeric type as a float."""
    if isinstance(value, (float, int, np.integer, np.floating, np.bool_)) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiub"
    ):
        try:
            return float(value)
        except OverflowError:
            return np.inf if value > 0 else -np.inf
    raise InvalidInputError(f"{name} is {value!r}: pass a number")


def check_unit(array: FloatArray, name: str) -> None:
    """Raise if an entry lies outside [0, 1]."""
    if array.size and not (array.min() >= 0.0 and array.max() <= 1.0):
        bad = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))[0]
        raise InvalidInputError(f"{name}[{bad}] is {array[bad]}: discounts lie in [0, 1]")


def check_magnitude(array: FloatArray, name: str) -> None:
    """Raise if an entry is not finite or larger than ``MAX_MAGNITUDE``."""
    if array.size <= _FEW and np.vdot(array, array) < 0.1 * MAX_MAGNITUDE**2:  # what it mostly is; without a warning
        return
    if array.size and not (array.max() <= MAX_MAGNITUDE and array.min() >= -MAX_MAGNITUDE):
        bad = np.flatnonzero(~(np.abs(array) <= MAX_MAGNITUDE).ravel())[0]
        raise InvalidInputError(
            f"{name} contains {array.ravel()[bad]} (flat position {bad}): "
            f"values must be finite and at most {MAX_MAGNITUDE:g} in size; clean or rescale the data"
        )


def check_rows(store: Matrix, rows: IntArray, name: str) -> None:
    """Check the rows in use; where they lie close together, with what lies between them, which spares a copy."""
    if not rows.size:
        return
    low, high = int(rows.min()), int(rows.max()) + 1
    if low < 0 or high > store.shape[0]:
        raise InvalidInputError(f"{name} has rows from {low} to {high - 1}: they must lie in [0, {store.shape[0]})")
    together = high - low <= 4 * rows.size
    if isinstance(store, np.ndarray):
        check_magnitude(store[low:high] if together else store[rows], name)
        return
    if together:
        starts, stops = store.indptr[low:high], store.indptr[low + 1 : high + 1]
    else:
        starts, stops = store.indptr[rows], store.indptr[rows + 1]
    lengths = stops - starts
    if starts.min() < 0 or lengths.min() < 0 or stops.max() > min(store.indices.size, store.data.size):
        raise InvalidInputError(f"{name} has a broken indptr: it must rise from 0 to the number of its entries")
    ends = np.cumsum(lengths)
    picked: slice | IntArray = slice(starts[0], stops[-1])
    if not together:
        picked = np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths)
    check_magnitude(store.data[picked], name)
    indices = store.indices[picked]
    check_range(indices, store.shape[1], name, "column")
    rising = indices[1:] > indices[:-1]
    rising[ends[(ends > 0) & (ends < indices.size)] - 1] = True  # from one row to the next they need not rise
    if not rising.all():
        raise InvalidInputError(f"{name} has column indices that do not rise within a row: call sum_duplicates()")


def check_range(indices: NDArray[Any], size: int, name: str, axis: str) -> None:
    """Raise if an index lies outside [0, size)."""
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        raise InvalidInputError(
            f"{name} has {axis} indices from {indices.min()} to {indices.max()}: they must lie in [0, {size})"
        )


# Sparse arrays may have been put together by hand. SciPy believes them and would read past their ends, so each is taken
# apart and checked before SciPy sees it again.


def _from_compressed(X: Any, name: str) -> sp.csr_array:
    """The csr_array of a CSR, CSC or BSR array whose parts fit together; of a CSR array with the same memory."""
    major, minor, axis = (*X.shape, "column") if X.format != "csc" else (*X.shape[::-1], "row")
    data = as_floats(X.data, name, 3 if X.format == "bsr" else 1)
    if X.format == "bsr":
        height, width = data.shape[1:]
        if not height or not width or major % height or minor % width:
            raise InvalidInputError(f"{name} has blocks of shape {data.shape[1:]}, which do not fill {X.shape}")
        major, minor, axis = major // height, minor // width, "block column"
    indptr = as_array(X.indptr, name)
    whole = indptr.dtype.kind in "iu" and indptr.shape == (major + 1,)
    if not whole or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise InvalidInputError(f"{name} has a broken indptr: it must rise from 0 in {major + 1} integers")
    indices, n_entries = as_array(X.indices, name), int(indptr[-1])
    if indices.size < n_entries or len(data) < n_entries:
        raise InvalidInputError(
            f"{name} has {indices.size} indices and {len(data)} values where its indptr needs {n_entries}"
        )
    indices = as_indices(indices[:n_entries], minor, f"the {axis} indices of {name}")
    parts = data[:n_entries], indices, indptr.astype(np.int64, copy=False)
    if X.format == "csr":
        return _csr(*parts, X.shape)
    return sp.csr_array((sp.csc_array if X.format == "csc" else sp.bsr_array)(parts, shape=X.shape))


def _from_entries(X: Any, name: str) -> sp.csr_array:
    """The csr_array of a COO, LIL, DOK or DIA array whose entries all lie within its shape."""
    rows, columns, values = _ENTRIES[X.format](X, name)
    data = as_floats(values, name, 1)
    row, column = (
        as_indices(indices, size, f"the {axis} indices of {name}")
        for indices, size, axis in zip((rows, columns), X.shape, ("row", "column"), strict=True)
    )
    if not row.size == column.size == data.size:
        raise InvalidInputError(
            f"{name} has {row.size} row indices, {column.size} column indices and {data.size} values: one of each is "
            "needed for every entry"
        )
    csr = sp.csr_array((data, (row, column)), shape=X.shape)
    check_magnitude(csr.data, name)  # repeated entries were added up
    return csr


def _lil_entries(X: Any, name: str) -> tuple[Any, Any, Any]:
    lists = [getattr(X, part) for part in ("rows", "data")]
    for part in lists:
        if np.shape(part) != (X.shape[0],) or not all(isinstance(row, list) for row in part):
            raise InvalidInputError(f"{name} is a broken LIL array: each of {X.shape[0]} rows needs a list")
    lengths, n_values = ([len(row) for row in part] for part in lists)
    if lengths != n_values:
        raise InvalidInputError(f"{name} is a broken LIL array: its rows have {lengths} columns and {n_values} values")
    columns, values = (list(chain.from_iterable(part)) for part in lists)
    return np.repeat(np.arange(X.shape[0]), lengths), columns, values


def _dok_entries(X: Any, name: str) -> tuple[Any, Any, Any]:
    keys = list(X.keys())
    if not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        raise InvalidInputError(f"{name} is a broken DOK array: each of its keys has to be a pair (row, column)")
    return [row for row, _ in keys], [column for _, column in keys], list(X.values())


def _dia_entries(X: Any, name: str) -> tuple[Any, Any, Any]:
    offsets, data = as_array(X.offsets, name), as_array(X.data, name)
    if offsets.dtype.kind not in "iu" or offsets.shape != data.shape[:1] or data.ndim != 2:
        raise InvalidInputError(
            f"{name} is a broken DIA array: its offsets have type {offsets.dtype} and shape {offsets.shape}, and its "
            f"data shape {data.shape}; each row of the data needs an integer"
        )
    if np.unique(offsets).size < offsets.size:
        raise InvalidInputError(f"{name} is a broken DIA array: its offsets are {offsets.tolist()}, some of them twice")
    rows, columns, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [data.ravel()[:0]]
    for offset, diagonal in zip(offsets.tolist(), data, strict=True):  # the entry of column j is diagonal[j]
        column = np.arange(max(0, offset), min(X.shape[1], X.shape[0] + offset, diagonal.size))
        if column.size:  # if it is not, the offset may be any number
            rows.append(column - offset)
            columns.append(column)
            values.append(diagonal[column])
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)


_ENTRIES: dict[str, Callable[[Any, str], tuple[Any, Any, Any]]] = {
    "coo": lambda X, name: (X.row, X.col, X.data),
    "lil": _lil_entries,
    "dok": _dok_entries,
    "dia": _dia_entries,
}


def _csr(data: FloatArray, indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> sp.csr_array:
    """A csr_array of the very arrays given unless they are strided, with 64-bit indices. (SciPy would narrow them.)"""
    csr = sp.csr_array(shape, dtype=np.float64)
    csr.data = np.ascontiguousarray(data)
    csr.indices, csr.indptr = (np.ascontiguousarray(part, dtype=np.int64) for part in (indices, indptr))
    return csr
