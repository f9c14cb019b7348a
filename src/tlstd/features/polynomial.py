"""Columns, alone or with their squares and products: exact for linear dynamics and quadratic costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.features.base import Factory
from tlstd.features.standardised import Standardised, observed, scaling
from tlstd.features.states import as_box, as_state


class Polynomial(Standardised):
    """Columns, of degree 2 also their squares and the products of every two of them, and a constant.

    With u_j = (s_j − centre_j) / scale_j, where s is clipped to the box, the features are u_1, …, u_D, then u_j u_k for
    j < k and (u_j² − 1)/√2 in its place for j = k, all divided by the root of their number, and then 1. If the next
    state is linear in the state, with noise, and rewards are quadratic, values are quadratic too: these features can
    represent them exactly.

    :meth:`fit` takes box, mean and standard deviation of each column from observations.

    Parameters
    ----------
    low, high : (D,)
        Corners of the box; a state outside counts as on its edge.
    centre, scale : (D,)
        Shift and unit of each column; ``scale`` > 0.
    degree : 1 or 2
        1: only u_1, …, u_D, and the constant.
    bias : bool
        Whether there is one more feature that is always 1, the last.
    size : float > 0
        By which all features but the constant are multiplied: the root of their mean sum of squares, about.

    Attributes
    ----------
    n_features : int
        D + D(D + 1)/2 of degree 2, D of degree 1 (+ 1).

    Example
    -------
    >>> quadratic = Polynomial([0.0, 0.0], [4.0, 4.0], centre=[0.0, 0.0], scale=[1.0, 1.0])
    >>> (quadratic.encode([2.0, 3.0]) * 5**0.5).round(3)     # 2, 3, (4 − 1)/√2, 2·3, (9 − 1)/√2, and √5 for 1
    array([2.   , 3.   , 2.121, 6.   , 5.657, 2.236])
    """

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike,
        *,
        centre: ArrayLike,
        scale: ArrayLike,
        degree: int = 2,
        bias: bool = True,
        size: float = 1.0,
    ) -> None:
        super().__init__(low, high, centre, scale)
        self.bias = parameters.flag("bias", bias)
        self.degree = parameters.integer("degree", degree, high=2)
        self.size = parameters.positive("size", size)
        self._pairs = np.triu_indices(self.low.size if self.degree == 2 else 0)
        self.n_features = self.low.size + self._pairs[0].size + self.bias

    @classmethod
    def fit(cls, observations: ArrayLike, *, degree: int = 2, bias: bool = True, size: float = 1.0) -> Polynomial:
        """The map for observations (N, D), N >= 1."""
        low, high, centre, scale = scaling(observed(observations))
        return cls(low, high, centre=centre, scale=scale, degree=degree, bias=bias, size=size)

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state (D,), shape (n_features,)."""
        x: FloatArray = self.encode_many(as_state(state, self.low.size))[0]
        return x

    def encode_many(self, states: ArrayLike) -> FloatArray:
        """Features of states (N, D), shape (N, n_features)."""
        u = self._units(states)
        (first, second), D = self._pairs, self.low.size
        out = np.empty((len(u), self.n_features))
        out[:, :D], products = u, out[:, D : D + first.size]
        np.multiply(u[:, first], u[:, second], out=products)
        squares = first == second
        products[:, squares] = (products[:, squares] - 1.0) / np.sqrt(2.0)
        out *= self.size / np.sqrt(D + first.size)
        if self.bias:
            out[:, -1] = 1.0
        return out

    def __repr__(self) -> str:
        return f"Polynomial({self.low.size} columns, degree={self.degree}: {self.n_features} features)"


EXAMPLES: dict[str, Factory] = {
    "Polynomial": lambda low, high: Polynomial.fit(np.linspace(*as_box(low, high), 50)),
}
