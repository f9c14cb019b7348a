"""Which actions the log has in a state: by visits in tables, by leverage where features overlap.

The rule is fixed beforehand: an action counts as logged in a state if its features there are worth at least one logged
visit. The leverage ℓ = φᵀ(Φ_aᵀΦ_a + ηI)⁻¹φ of a state's features φ, among those of the steps Φ_a that took the action,
is about one over the number of such visits. η is half of the mean ‖φ‖², so that ℓ ≤ 1 also says that at least half of
φ's square lies in the span of what was logged. With one feature per state it is the number of visits itself:
ℓ is 1/(N + ½), and 2 where there are none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd.evaluation.kernels import leverage

OUTSIDE = 0.5
"""Share of ‖φ‖² that may lie outside of what was logged with an action."""
MOST_FOR_LEVERAGE = 1_000
"""Features that one action has in the log up to which leverage is computed. Beyond, only the share of ‖φ‖² on features
that the action never had is: at most ``OUTSIDE``."""


@dataclass(frozen=True, eq=False)
class _Seen:
    """The features that an action has in the log."""

    places: IntArray
    """(d,): place in ``inverse`` of a feature, -1 where the action never had it."""
    inverse: FloatArray | None
    """(Φ_aᵀΦ_a + ηI)⁻¹ over the features seen; None where these are too many."""


class Support:
    """The actions that a log has in states, by their features.

    Parameters
    ----------
    pieces : transitions of features of states and discrete actions
        One block of columns for each action, as LSTDQ learns them.
    n_actions : int

    Example
    -------
    In state 0 both actions were logged, in state 1 only the first:

    >>> X = sp.csr_array(np.eye(4)[[0, 2, 1]])  # columns: action 0 in both states, action 1 in both states
    >>> support = Support([Transitions(X, np.zeros(3), X, discounts=np.ones(3), trace_discounts=np.zeros(3))], 2)
    >>> support.is_table
    True
    >>> support.kept(sp.csr_array(np.eye(2)), np.full((2, 2), 0.5))
    array([[0.5, 0.5],
           [0.5, 0. ]])
    """

    def __init__(self, pieces: Iterable[Transitions], n_actions: int) -> None:
        found = [_Gram() for _ in range(n_actions)]
        self.is_table, n, d, square = True, 0, 0, 0.0
        for piece in pieces:
            X = sp.csr_array(piece.X)
            n, d, square = n + X.shape[0], X.shape[1] // n_actions, square + float((X.data**2).sum())
            self.is_table &= bool((np.diff(X.indptr) == 1).all())
            by_column = sp.csc_array(X)
            for a, gram in enumerate(found):
                gram.add(by_column[:, a * d : (a + 1) * d])
        self.ridge = OUTSIDE * square / max(1, n)
        self._actions = [gram.finished(self.ridge, self.is_table) for gram in found]

    def kept(self, X: sp.csr_array, probabilities: FloatArray) -> FloatArray:
        """Probabilities (M, n_actions) in states with features X (M, d), 0 for actions that the log does not have."""
        kept = np.zeros_like(probabilities)
        for a, seen in enumerate(self._actions):
            rows = np.flatnonzero(probabilities[:, a])
            if rows.size:
                rows = rows[self._has(X, rows, seen)]
                kept[rows, a] = probabilities[rows, a]
        return kept

    def _has(self, X: sp.csr_array, rows: IntArray, seen: _Seen) -> NDArray[np.bool_]:
        if seen.inverse is None:
            squares = sp.csr_array(X[rows].power(2))
            outside = squares @ (seen.places < 0).astype(np.float64)
            whole = np.asarray(squares.sum(axis=1)).ravel()
            return np.asarray((outside <= OUTSIDE * whole) & (whole > 0.0))
        out = np.zeros(rows.size)
        places, columns, starts = seen.places, X.indices.astype(np.int64), X.indptr.astype(np.int64)
        leverage.add_leverages(starts, columns, X.data, rows, places, seen.inverse, self.ridge, out)
        return np.asarray(out <= 1.0)


class _Gram:
    """ΦᵀΦ of the steps that took one action, up to ``MOST_FOR_LEVERAGE`` features; which features they have."""

    def __init__(self) -> None:
        self.squares: FloatArray = np.zeros(0)
        self.matrix: sp.csr_array | None = None

    def add(self, block: sp.csc_array) -> None:
        """Take in some more rows."""
        first = not self.squares.size
        squares = np.asarray(block.power(2).sum(axis=0)).ravel()
        self.squares = squares if first else self.squares + squares
        if np.count_nonzero(self.squares) > MOST_FOR_LEVERAGE:
            self.matrix = None
        elif first or self.matrix is not None:
            own = sp.csr_array(block.T @ block)
            self.matrix = own if first else sp.csr_array(self.matrix + own)

    def finished(self, ridge: float, is_table: bool) -> _Seen:
        """The features seen, and the inverse where it is needed and not too large."""
        ids = np.flatnonzero(self.squares)
        places = np.full(self.squares.size, -1, dtype=np.int64)
        places[ids] = np.arange(ids.size)
        if is_table or self.matrix is None or not ids.size:
            return _Seen(places, None)
        own = self.matrix[ids][:, ids].toarray()
        own[np.diag_indices(ids.size)] += ridge
        factor = scipy.linalg.cho_factor(own, lower=True)
        return _Seen(places, np.ascontiguousarray(scipy.linalg.cho_solve(factor, np.eye(ids.size))))
