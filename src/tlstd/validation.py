"""Turning what users pass into checked arrays. Every error names the value and the remedy."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd import parameters
from tlstd.errors import InvalidInputError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = "FloatArray | sp.csr_array"
Scalar = TypeVar("Scalar", np.float64, np.int64)

MAX_MAGNITUDE = 1e100
"""Largest absolute value accepted for features, rewards and importance ratios.

The algorithms form products of up to three inputs; up to this size none of them overflows.
"""


def as_matrix(X: Any, name: str = "X") -> Matrix:
    """Return ``X`` as a C-ordered float64 array or a canonical csr_array with int64 indices, checked."""
    if not sp.issparse(X):
        return np.ascontiguousarray(as_floats(X, name, 2))
    if X.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} has values of type {X.dtype}: pass real numbers")
    if X.ndim != 2:
        raise InvalidInputError(f"{name} has shape {X.shape}: it must have 2 dimension(s)")
    check_sparse_structure(X, name)
    with np.errstate(over="ignore"):
        csr = sp.csr_array(X, dtype=np.float64)
    if not csr.has_canonical_format or (csr.data == 0.0).any():
        csr = csr.copy()  # indices, indptr and data may each be the caller's
        csr.sum_duplicates()
        csr.eliminate_zeros()
    check_magnitude(csr.data, name)
    if csr.indices.dtype != np.int64 or csr.indptr.dtype != np.int64:
        wide = sp.csr_array(csr.shape, dtype=np.float64)
        wide.data, wide.indices, wide.indptr = (
            csr.data,
            csr.indices.astype(np.int64),
            csr.indptr.astype(np.int64),
        )
        csr = wide
    return csr


def locked(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Make an array read-only, in place, and return it."""
    array.flags.writeable = False
    return array


def as_size(size: object) -> int:
    """Return ``size`` as a positive int."""
    return parameters.integer("size", size, high=2**63 - 1)


def as_array(value: ArrayLike, name: str) -> NDArray[Any]:
    """Return ``value`` as an array of whatever type it has."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInputError(f"{name} has masked entries: fill them or leave them out")
    try:
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInputError(f"{name} cannot be read ({error}): pass a rectangular array of numbers") from error


def as_floats(value: ArrayLike, name: str, ndim: int | None) -> FloatArray:
    """Return ``value`` as float64 of ``ndim`` dimensions (any if None); finite and not too large."""
    array = as_array(value, name)
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} has values of type {array.dtype}: pass an array of real numbers")
    if ndim is not None and array.ndim != ndim:
        raise InvalidInputError(f"{name} has shape {array.shape}: it must have {ndim} dimension(s)")
    with np.errstate(over="ignore"):
        floats = array.astype(np.float64, copy=False)
    check_magnitude(floats, name)
    return floats


def as_indices(value: ArrayLike, size: int, name: str = "indices") -> IntArray:
    """Return ``value`` as 1-D int64 indices within [0, size)."""
    array = as_array(value, name)
    if array.size == 0 and array.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InvalidInputError(f"{name} have type {array.dtype} and shape {array.shape}: pass a 1-D array of integers")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        raise InvalidInputError(f"{name} contain {low if low < 0 else high}: they must lie in [0, {size})")
    return array.astype(np.int64, copy=False)


def as_flags(value: ArrayLike, name: str, n: int) -> NDArray[np.bool_]:
    """Return ``value`` as n booleans."""
    array = as_array(value, name)
    if array.shape != (n,) or (n and array.dtype.kind not in "biu"):
        raise InvalidInputError(
            f"{name} has shape {array.shape} and type {array.dtype}: pass one boolean for each of the {n} steps"
        )
    return array.astype(np.bool_)


def as_reward(reward: float | ArrayLike) -> float | FloatArray:
    """Return a reward as a float, or as a read-only vector of one per target."""
    array = as_floats(reward, "reward", None)
    if array.ndim == 0:
        return float(array)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError(f"reward has shape {array.shape}: pass a number, or a 1-D array of one per target")
    return float(array[0]) if array.size == 1 else locked(array.copy())


def as_unit(value: object, name: str) -> float:
    """Return ``value`` as a float in [0, 1]."""
    number = as_number(value, name)
    if not 0.0 <= number <= 1.0:
        raise InvalidInputError(f"{name} is {value!r}: discounts lie in [0, 1]")
    return number


def as_ratio(value: object) -> float:
    """Return an importance ratio as a finite float >= 0."""
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


def check_sparse_structure(X: Any, name: str) -> None:
    """Refuse sparse arrays put together by hand that do not hang together: SciPy would read past their ends."""
    if X.format == "coo":
        for indices, size, axis in ((X.row, X.shape[0], "row"), (X.col, X.shape[1], "column")):
            if indices.size != X.data.size:
                raise InvalidInputError(f"{name} has {indices.size} {axis} indices and {X.data.size} values")
            check_range(indices, size, name, axis)
    if X.format not in ("csr", "csc", "bsr"):
        return
    major, minor, axis = (*X.shape, "column") if X.format != "csc" else (*X.shape[::-1], "row")
    if X.format == "bsr":
        major, minor, axis = major // X.blocksize[0], minor // X.blocksize[1], "block column"
    indptr, indices, n_values = X.indptr, X.indices, len(X.data)
    if indptr.size != major + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise InvalidInputError(f"{name} has a broken indptr: it must rise from 0 in {major + 1} entries")
    if indices.size < indptr[-1] or n_values < indptr[-1]:
        raise InvalidInputError(
            f"{name} has {indices.size} indices and {n_values} values where its indptr needs {indptr[-1]}"
        )
    check_range(indices[: indptr[-1]], minor, name, axis)
