"""The path of ℓ1-regularised LSTD, from the largest penalty down: least-angle regression for A w = b."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.growing import enlarged
from tlstd.core.lu import solve_lu

ACCURACY = 1e-12
"""Largest error in A_II Δ = sign with which an inverse that was followed is believed."""
PARALLEL = 1e-9
"""A feature whose residual falls as fast as those of the active ones, to this part of it, does not become active."""


@dataclass(frozen=True, slots=True, eq=False)
class LarsPath:
    """Solutions w(μ) with b - A w = μ sign(w) where w is not 0, and |b - A w| <= μ elsewhere; linear between knots.

    ``ended`` says why the path ends: "penalty" (the smallest that was asked for), "features" (as many are active as
    were allowed), "singular" (A over the active features), "not a P-matrix" (a weight would have to leave zero against
    its sign: there is no further solution nearby), "steps" (it turned too often) or "not finite".
    """

    penalties: FloatArray
    """μ at the knots, falling, (k,)."""
    n_active: IntArray
    """Number of active features below each knot, (k,)."""
    active: IntArray
    """Positions of those active at the end."""
    weights: FloatArray
    """Their weights at the end."""
    ended: str


class _Lars:
    """The active set with its columns of A, and the inverse of A over it; ``column(j)`` is A e_j."""

    def __init__(self, column: Callable[[int], FloatArray], b: FloatArray) -> None:
        self.column = column
        self.residual = b.copy()
        self.penalty = float(np.abs(b).max(initial=0.0))
        self.active: IntArray = np.zeros(0, dtype=np.int64)
        self.signs: FloatArray = np.zeros(0)
        self.weights: FloatArray = np.zeros(0)
        self.columns: FloatArray = np.zeros((0, b.size))  # one a row, with room below
        self.inverse: FloatArray | None = np.zeros((0, 0))

    def join(self, j: int) -> None:
        """Make a feature active."""
        k, new = self.active.size, self.column(j)
        above, left = new[self.active], self.columns[:k, j]  # A_Ij and A_jI
        if self.inverse is not None:
            u, v = self.inverse @ above, left @ self.inverse
            rest = new[j] - left @ u  # the pivot: 0 if A_II becomes singular
            inverse = np.empty((k + 1, k + 1))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                inverse[:k, :k] = self.inverse + np.outer(u, v / rest)
                inverse[:k, k], inverse[k, :k], inverse[k, k] = -u / rest, -v / rest, 1 / rest
            self.inverse = inverse
        if k == self.columns.shape[0]:
            self.columns = enlarged(self.columns, k + max(8, k // 2))
        self.columns[k] = new
        self.active = np.append(self.active, j)
        self.signs = np.append(self.signs, np.sign(self.residual[j]))
        self.weights = np.append(self.weights, 0.0)

    def leave(self, at: int) -> None:
        """Take out what is at a place of the active set, with a weight that is 0."""
        k, M = self.active.size, self.inverse
        rest = np.delete(np.arange(k), at)
        if M is not None:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                self.inverse = M[np.ix_(rest, rest)] - np.outer(M[rest, at], M[at, rest] / M[at, at])
        self.columns[: k - 1] = self.columns[rest]
        self.active, self.signs, self.weights = self.active[rest], self.signs[rest], self.weights[rest]

    def direction(self) -> tuple[FloatArray, FloatArray] | None:
        """How weights rise and residuals fall as μ falls: Δ = A_II⁻¹ sign, and A Δ; None if A_II is singular.

        The inverse is followed from set to set, O(k²); its answer is refined once and checked, and if it is not
        accurate A_II is decomposed again.
        """
        k = self.active.size
        over_active = self.columns[:k, self.active].T
        delta = self._by_inverse(over_active)
        if delta is None:
            inverse = solve_lu(over_active, np.eye(k))
            if inverse is None:
                return None
            self.inverse, delta = inverse, inverse @ self.signs
        return delta, delta @ self.columns[:k]

    def _by_inverse(self, over_active: FloatArray) -> FloatArray | None:
        """Δ, or None if the inverse is not accurate enough."""
        if self.inverse is None or not np.isfinite(self.inverse).all():
            return None
        delta = self.inverse @ self.signs
        delta = delta + self.inverse @ (self.signs - over_active @ delta)
        wrong = np.abs(self.signs - over_active @ delta).max()
        return delta if wrong < ACCURACY else None

    def next_event(self, delta: FloatArray, fall: FloatArray) -> tuple[float, str, int]:
        """How far μ falls until a weight becomes 0 or a residual reaches it: how far, "leave" or "join", and which."""
        with np.errstate(divide="ignore", invalid="ignore"):
            to_zero = np.where(self.weights * delta < 0.0, -self.weights / delta, np.inf)
            sides = []
            for sign in (1.0, -1.0):
                slower = 1.0 - sign * fall
                gap = np.maximum(self.penalty - sign * self.residual, 0.0)
                sides.append(np.where(slower > PARALLEL, gap / slower, np.inf))
        to_join = np.minimum(*sides)
        to_join[self.active] = np.inf
        out, new = int(to_zero.argmin()), int(to_join.argmin())
        return (
            (float(to_zero[out]), "leave", out) if to_zero[out] < to_join[new] else (float(to_join[new]), "join", new)
        )

    def move(self, penalty: float, delta: FloatArray, fall: FloatArray) -> None:
        """Let μ fall to the given penalty."""
        distance = self.penalty - penalty
        self.weights = self.weights + distance * delta
        self.residual = self.residual - distance * fall
        self.penalty = penalty
        self.residual[self.active] = self.penalty * self.signs  # which they are, but for rounding


def lars(column: Callable[[int], FloatArray], b: FloatArray, penalty: float, max_active: int) -> LarsPath:
    """Follow the path from w = 0 to the penalty μ.

    Parameters
    ----------
    column : callable j -> A e_j, (n,)
        Called once for each time that a feature becomes active.
    b : (n,)
    penalty : float >= 0
    max_active : int
        The path ends before more features are active.

    Returns
    -------
    LarsPath
        A knot takes O(n·k + k²) for k active features, and the columns take 8·n·k bytes.

    Example
    -------
    >>> A, b = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([3.0, -1.0])
    >>> path = lars(lambda j: A[:, j], b, 0.5, 2)
    >>> path.active, path.weights, path.penalties
    (array([0, 1]), array([ 1.25, -0.5 ]), array([3. , 1. , 0.5]))
    """
    state = _Lars(column, b)
    penalties, counts, ended = [state.penalty], [0], "penalty"
    arrived = (state.penalty, "join", int(np.abs(b).argmax())) if b.size else (0.0, "none", -1)
    while state.penalty > penalty:
        _, kind, which = arrived
        if kind == "join":
            if state.active.size == max_active:
                ended = "features"
                break
            state.join(which)
        else:
            gone, sign = int(state.active[which]), state.signs[which]
            state.leave(which)
        counts[-1] = state.active.size
        moving = state.direction() if state.active.size else None
        if moving is None:
            ended = "singular" if np.isfinite(state.residual).all() else "not finite"
            break
        delta, fall = moving
        rising = delta[-1] * state.signs[-1] > 0.0 if kind == "join" else sign * fall[gone] >= 1.0 - PARALLEL
        if not rising:
            ended = "not a P-matrix"
            break
        arrived = state.next_event(delta, fall)
        state.move(max(penalty, state.penalty - arrived[0]), delta, fall)
        penalties.append(state.penalty)
        counts.append(state.active.size)
        if len(penalties) > 8 * max_active + 100:
            ended = "steps"
            break
    return LarsPath(np.array(penalties), np.array(counts), state.active, state.weights, ended)
