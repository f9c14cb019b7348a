"""The spectrum of a system, and how many singular values hold most of its weight."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_floats, as_matrix
from tlstd.errors import CapacityError, InvalidInputError

LARGEST = 20_000
"""Largest number of non-empty rows or columns of a matrix that is decomposed: 3.2 GB as a dense square."""


@runtime_checkable
class HasSingularValues(Protocol):
    """A model that keeps a factored A, such as :class:`~tlstd.TLSTD`."""

    @property
    def singular_values(self) -> FloatArray: ...  # noqa: D102


def spectrum(A: ArrayLike | Any) -> FloatArray:
    """Singular values in falling order, of a matrix or of the A that a model keeps.

    Parameters
    ----------
    A : (m, n) array, dense or scipy.sparse, or a model
        Of a model with ``singular_values`` (:class:`~tlstd.TLSTD`) those are returned: at most its rank.

    Returns
    -------
    (min(m, n),)
        O(m n min(m, n)) time. Empty rows and columns of a sparse matrix cost nothing: they only add zeros.

    Raises
    ------
    CapacityError
        If more than 20,000 rows or columns are not empty.

    Example
    -------
    >>> spectrum([[0.0, 3.0], [-4.0, 0.0]])
    array([4., 3.])
    >>> spectrum(sp.csr_array(([2.0], ([7], [1])), shape=(9, 3)))
    array([2., 0., 0.])
    """
    if isinstance(A, HasSingularValues):
        return np.array(A.singular_values, dtype=np.float64)
    matrix = as_matrix(A, "A")
    sigma = np.zeros(min(matrix.shape))
    values = np.linalg.svd(_dense_part(matrix), compute_uv=False)
    sigma[: values.size] = values
    return sigma


def effective_rank(singular_values: ArrayLike, weight: float = 0.95) -> int:
    """Number of the largest singular values whose sum is at least ``weight`` times the sum of all.

    This is what the appendix of the paper draws for tilings and RBF widths; its "weight of the singular values" is read
    as their sum. For the share of the squared Frobenius norm pass their squares.

    Parameters
    ----------
    singular_values : (n,)
        Non-negative, in any order.
    weight : float in (0, 1]

    Example
    -------
    >>> effective_rank([6.0, 3.0, 1.0], weight=0.9)
    2
    >>> effective_rank(np.square([6.0, 3.0, 1.0]), weight=0.9)
    2
    >>> effective_rank([1.0, 1.0, 1.0, 0.0], weight=1.0)
    3
    """
    share = parameters.real("weight", weight, low=0.0, high=1.0, open_low=True)
    sigma = np.sort(as_floats(singular_values, "singular_values", 1))[::-1]
    if sigma.size and sigma[-1] < 0.0:
        raise InvalidInputError(f"singular_values contain {sigma[-1]}: they are >= 0; pass spectrum(A)")
    sums = np.cumsum(sigma)
    if not sums.size or sums[-1] == 0.0:
        return 0
    return int(np.searchsorted(sums, share * sums[-1] * (1.0 - 1e-12))) + 1  # a sum that misses by rounding counts


def _dense_part(matrix: FloatArray | sp.csr_array) -> FloatArray:
    """The rows and columns that are not empty."""
    if isinstance(matrix, np.ndarray):
        _check_size(matrix.shape)
        return matrix
    rows, columns = np.unique(matrix.tocoo().row), np.unique(matrix.indices)
    _check_size((rows.size, columns.size))
    dense: FloatArray = matrix[rows][:, columns].toarray()
    return dense


def _check_size(shape: tuple[int, ...]) -> None:
    if max(shape) > LARGEST:
        raise CapacityError(
            f"A has {shape[0]} rows and {shape[1]} columns that are not empty: dense decompositions stop at {LARGEST}; "
            "use the singular_values of a TLSTD model, or scipy.sparse.linalg.svds"
        )
