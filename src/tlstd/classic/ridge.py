"""What a ridge needs to know about the samples: the mean ‖x‖², and which features never change."""

from __future__ import annotations

from math import expm1, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch, packed
from tlstd.data.kernels.sparse import row_squares


class Moments(NamedTuple):
    """Of the samples so far; a value that is never changed, only followed by another one.

    Example
    -------
    >>> from tlstd import Transitions
    >>> X = np.array([[1.0, 0.0, 2.0], [1.0, 3.0, 0.0]])
    >>> ones = np.ones(2)
    >>> steps = Transitions(X, ones, X, discounts=ones, trace_discounts=ones)
    >>> moments = Moments().after(Batch.from_transitions(steps), 0, None)
    >>> moments.mean_square(2, None), moments.constant_ids
    (7.5, array([0]))
    """

    squares: float = 0.0
    """Σ ω_t ‖x_t‖², ω_t = 1 or β(1-β)^{T-1-t}."""
    constant_ids: IntArray = np.zeros(0, dtype=np.int64)
    """Features that have one and the same value, not 0, in every x so far, in rising order."""
    constant_values: FloatArray = np.zeros(0)
    """These values."""

    def after(self, batch: Batch, n_samples: int, beta: float | None) -> Moments:
        """The moments with a batch of one or more after ``n_samples``. O(entries), or O(d) a dense sample."""
        x, rows, _, _ = batch.sparse()
        squares = np.empty(rows.size)
        row_squares(x[0], x[2], rows, squares)
        if beta is None:
            total = self.squares + float(squares.sum())
        else:
            keep = 1.0 - beta
            weights = beta * keep ** np.arange(rows.size - 1.0, -1.0, -1.0)
            total = keep**rows.size * self.squares + float(weights @ squares)
        ids, values = self.constant_ids, self.constant_values
        if n_samples == 0:
            first = slice(x[0][rows[0]], x[0][rows[0] + 1])
            order = np.argsort(x[1][first])
            ids, values = x[1][first][order].astype(np.int64), x[2][first][order]
            ids, values = ids[values != 0.0], values[values != 0.0]
        if ids.size:
            _, found, of = packed(x, rows)
            at = np.minimum(np.searchsorted(ids, found), ids.size - 1)
            equal = (ids[at] == found) & (values[at] == of)
            kept = np.bincount(at[equal], minlength=ids.size) == rows.size
            ids, values = ids[kept], values[kept]
        return Moments(total, ids, values)

    def mean_square(self, n_samples: int, beta: float | None) -> float:
        """The (weighted) mean of ‖x‖²."""
        weight = float(n_samples) if beta is None else -expm1(n_samples * log1p(-beta))
        return self.squares / weight if n_samples else 0.0

    def state(self) -> State:
        """What :meth:`restored` takes."""
        return self._asdict()

    @classmethod
    def restored(cls, saved: Saved, n_features: int) -> Moments:
        """The moments that were saved."""
        ids = saved.integers("constant_ids", None, low=0, high=n_features - 1)
        if (ids[1:] <= ids[:-1]).any():
            raise saved.error("constant_ids", "do not rise")
        values = saved.floats("constant_values", ids.size)
        return cls(saved.real("squares", low=0.0, high=float(np.finfo(np.float64).max)), ids, values)


def ridge_diagonal(ridge: float, mean_square: float, constant: NDArray[np.bool_]) -> FloatArray:
    """ηD as a diagonal: η = ``ridge`` times the mean ‖x‖², and D the identity but 0 for features that are constant.

    >>> ridge_diagonal(0.1, 20.0, np.array([False, True]))
    array([2., 0.])
    """
    return np.where(constant, 0.0, ridge * mean_square)


def even_scales(mean_squares: FloatArray, shift: FloatArray) -> FloatArray:
    """s (n,) with s_i² (mean x_i² + shift_i) = 1, or 1 where that is not possible.

    With S = diag(s) the system S A S y = S b, w = S y, is as easy for features that are seen rarely as for others: its
    Krylov spaces come near to the solution of A w = b much earlier (``docs/trust.md``).

    >>> even_scales(np.array([4.0, 0.25, 0.0]), np.zeros(3))
    array([0.5, 2. , 1. ])
    """
    square = mean_squares + shift
    possible = square > np.finfo(np.float64).tiny
    return np.where(possible, 1.0 / np.sqrt(np.where(possible, square, 1.0)), 1.0)
