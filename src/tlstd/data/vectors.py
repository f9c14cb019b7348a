"""Sparse vectors: checked when they are made, and not changed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tlstd.core.arrays import (
    FloatArray,
    IntArray,
    as_array,
    as_floats,
    as_indices,
    as_real,
    as_size,
    check_magnitude,
    locked,
)
from tlstd.errors import CapacityError, InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """A vector of ``size`` entries, of which only the non-zero ones are stored.

    Indices may come unsorted and repeated (repeated entries add up) and in any integer type; they are stored
    sorted, unique and without zeros. Nothing that is passed in is kept or changed.

    Parameters
    ----------
    indices : (nnz,) integers in ``[0, size)``
    values : (nnz,) real numbers, finite and at most ``MAX_MAGNITUDE`` in size
    size : int
        Number of features; may be far larger than memory, e.g. ``2**31`` hashed features, up to ``2**63 - 1``.

    Example
    -------
    >>> x = SparseVector([7, 2, 7], [1.0, 3.0, 0.5], size=10)
    >>> x.indices, x.values
    (array([2, 7]), array([3. , 1.5]))
    >>> x.nnz
    2
    """

    indices: IntArray
    values: FloatArray
    size: int

    def __init__(self, indices: ArrayLike, values: ArrayLike, size: int) -> None:
        size = as_size(size)
        index, value = as_array(indices, "indices"), as_real(values, "values")
        if index.dtype.kind in "iu" and index.ndim == 1 and index.shape == value.shape:
            ids, numbers = index.astype(np.int64, order="C"), value.copy()
            if compiled_checks().is_sound_vector(ids, numbers, size):
                _set_vector(self, ids, numbers, size)
                return
        index, value = as_indices(indices, size), as_floats(values, "values", 1)
        if index.shape != value.shape:
            raise InvalidInputError(
                f"a sparse vector has {index.size} indices but {value.size} values: pass one value per index"
            )
        if index.size > 1 and not (index[1:] > index[:-1]).all():
            index, inverse = np.unique(index, return_inverse=True)
            summed = np.zeros(index.size)
            np.add.at(summed, inverse, value)
            value = summed
            check_magnitude(value, "values")
        kept = value != 0.0
        _set_vector(self, index[kept], value[kept], size)  # copies

    @classmethod
    def from_dense(cls, x: ArrayLike) -> SparseVector:
        """The non-zero entries of a dense vector."""
        dense = as_floats(x, "x", 1)
        index = np.flatnonzero(dense)
        return cls._trusted(index, dense[index], as_size(dense.size))

    @classmethod
    def _trusted(cls, indices: IntArray, values: FloatArray, size: int) -> SparseVector:
        """Wrap arrays that are already sorted, unique, finite, non-zero and owned by the caller."""
        self = object.__new__(cls)
        _set_vector(self, indices, values, size)
        return self

    @property
    def nnz(self) -> int:
        """Number of stored (non-zero) entries."""
        return self.indices.size

    def toarray(self) -> FloatArray:
        """Return the vector as a dense array of ``size`` entries."""
        try:
            dense = np.zeros(self.size)
        except (MemoryError, ValueError) as error:
            raise CapacityError(
                f"a dense vector of {self.size} entries does not fit into memory: use indices and values"
            ) from error
        dense[self.indices] = self.values
        return dense

    def __len__(self) -> int:
        return self.size

    def __copy__(self) -> SparseVector:
        return self

    def __deepcopy__(self, memo: object) -> SparseVector:
        return self

    def __getstate__(self) -> tuple[Any, ...]:
        check_magnitude(self.values, "values")  # weights that have diverged are not, and could not be read again
        return self.indices, self.values, self.size

    def __setstate__(self, state: object) -> None:
        indices, values, size = state_parts(state, 3)
        SparseVector.__init__(self, indices, values, size)

    def __repr__(self) -> str:
        return f"SparseVector(nnz={self.nnz}, size={self.size})"


def field_setters(frozen: type) -> tuple[Callable[[object, object], None], ...]:
    """What sets the fields of a frozen class while an instance is being made, in their order."""
    return tuple(frozen.__dict__[name].__set__ for name in frozen.__dataclass_fields__)  # type: ignore[attr-defined]


_vector_setters = field_setters(SparseVector)


def _set_vector(vector: SparseVector, indices: IntArray, values: FloatArray, size: int) -> None:
    """Give a vector its fields; the arrays become read-only."""
    indices.flags.writeable = values.flags.writeable = False
    set_indices, set_values, set_size = _vector_setters
    set_indices(vector, indices)
    set_values(vector, values)
    set_size(vector, size)


@cache
def compiled_checks() -> Any:
    """The compiled checks; imported on first use, so that importing this module does not load numba."""
    from tlstd.data.kernels import transitions

    return transitions


Vector: TypeAlias = FloatArray | SparseVector
VectorLike: TypeAlias = ArrayLike | SparseVector


def as_vector(x: VectorLike, name: str = "x") -> Vector:
    """Return ``x`` as a SparseVector or as a read-only copy of a dense float64 vector, checked."""
    if isinstance(x, SparseVector):
        return x
    if type(x) is not np.ndarray and sp.issparse(x):
        raise InvalidInputError(f"{name} is a scipy sparse matrix: pass SparseVector(indices, values, size)")
    dense = as_floats(x, name, 1)
    return locked(dense if isinstance(x, (list, tuple)) else dense.copy())  # anything else may share its memory


def state_parts(state: object, n: int) -> Sequence[Any]:
    """What a pickle or a copy brings, if it has ``n`` parts."""
    if not isinstance(state, (tuple, list)) or len(state) != n:
        raise InvalidInputError(f"a state is {str(state)[:80]!r} instead of {n} parts: pickle the object again")
    return state
