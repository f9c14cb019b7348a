"""The Fourier basis: cosines of the state, scaled to the box."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, locked
from tlstd.errors import CapacityError
from tlstd.features.base import EqualByArguments, Factory
from tlstd.features.states import as_box, as_counts, as_state, as_states

MAX_FEATURES = 10**7
"""Largest number of features that is built: one dense vector then takes 80 MB."""


class Fourier(EqualByArguments):
    """Cosines of whole multiples of the scaled state, up to an order.

    φ_c(s) = cos(π Σ_i c_i u_i) with u_i = (s_i − low_i) / (high_i − low_i), clipped to [0, 1]: states outside the box
    count as on its edge. The coefficient vectors c hold whole numbers from 0 to the order of each dimension. All of
    them are used, or those with at most ``max_coupling`` entries that are not zero: 1 treats every dimension by
    itself, 2 adds what pairs of dimensions do together, and so on.

    Features are ordered as their coefficient vectors are, read like words: (0, 0), (0, 1), (1, 0), (1, 1), …: the last
    dimension runs fastest, and the first feature is c = 0, the constant 1.

    Parameters
    ----------
    low, high : (D,)
        Corners of the box.
    order : int or D ints, each >= 1
        Largest coefficient per dimension, the same in all dimensions if one number.
    max_coupling : int from 1 to D, optional
        Largest number of coefficients of one feature that are not zero. No limit if left out.
    bias : bool
        Whether the constant feature, c = 0, is among them.

    Attributes
    ----------
    n_features : int
        (order + 1)^D without ``max_coupling`` (− 1 without ``bias``).
    coefficients : (n_features, D)
        c of every feature.

    Notes
    -----
    O(D · n_features) multiplications and n_features cosines per state; dense, 8 · n_features bytes per state. The full
    basis grows exponentially with D: from about five dimensions on, limit the coupling.

    With gradient methods the authors divide the step size of feature c by ‖c‖ (that of c = 0 stays): high
    frequencies learn more slowly. Least squares does not need it.

    References
    ----------
    G. Konidaris, S. Osentoski, P. Thomas, "Value function approximation in reinforcement learning using the Fourier
    basis", AAAI 2011.

    Example
    -------
    >>> basis = Fourier([0.0, 0.0], [1.0, 2.0], order=1)
    >>> basis.coefficients.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> basis.encode([0.0, 0.5]).round(4)       # 1, cos(π/4), 1, cos(π/4)
    array([1. , 0.7071, 1. , 0.7071])
    >>> Fourier([0.0] * 8, [1.0] * 8, order=3, max_coupling=2).n_features     # 1 + 8·3 + 28·9
    277
    """

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike,
        *,
        order: int | Sequence[int],
        max_coupling: int | None = None,
        bias: bool = True,
    ) -> None:
        self.low, self.high = as_box(low, high)
        self.order = as_counts("order", order, self.low.size)
        coupling = self.low.size
        if max_coupling is not None:
            coupling = parameters.integer("max_coupling", max_coupling, high=coupling, why=", the number of dimensions")
        self.max_coupling = None if max_coupling is None else coupling
        self.bias = parameters.flag("bias", bias)
        count = _count(self.order, coupling)
        if count > MAX_FEATURES:
            raise CapacityError(
                f"order={order!r} in {self.low.size} dimensions with max_coupling={max_coupling!r} makes {count} "
                f"features, more than {MAX_FEATURES}: use a lower order or max_coupling"
            )
        self.coefficients = locked(_coefficients(self.order, coupling)[0 if self.bias else 1 :])
        self.n_features = len(self.coefficients)

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state (D,), shape (n_features,)."""
        features: FloatArray = self.encode_many(as_state(state, self.low.size))[0]
        return features

    def encode_many(self, states: ArrayLike) -> FloatArray:
        """Features of states (N, D), shape (N, n_features)."""
        u = (as_states(states, self.low.size).clip(self.low, self.high) - self.low) / (self.high - self.low)
        multiple = np.zeros((len(u), self.n_features))
        for i in range(self.low.size):  # not u @ coefficientsᵀ, whose rounding depends on the number of states
            multiple += u[:, i, None] * self.coefficients[:, i]
        multiple *= np.pi
        return np.cos(multiple, out=multiple)

    def __repr__(self) -> str:
        coupling = "" if self.max_coupling is None else f", max_coupling={self.max_coupling}"
        return f"Fourier(order={list(self.order)}{coupling}, bias={self.bias}: {self.n_features} features)"


def _count(order: tuple[int, ...], coupling: int) -> int:
    """Number of coefficient vectors with at most ``coupling`` entries that are not zero."""
    by_entries = [1] + [0] * coupling  # how many have 0, 1, … such entries: the elementary symmetric sums of the orders
    for n in order:
        for entries in range(coupling, 0, -1):
            by_entries[entries] += n * by_entries[entries - 1]
    return sum(by_entries)


def _coefficients(order: tuple[int, ...], coupling: int) -> IntArray:
    """All coefficient vectors with at most ``coupling`` entries that are not zero, sorted like words."""
    if coupling == len(order):
        return np.indices([n + 1 for n in order]).reshape(len(order), -1).T.copy()
    rows = []
    for entries in range(coupling + 1):
        for dimensions in combinations(range(len(order)), entries):
            for values in product(*(range(1, order[i] + 1) for i in dimensions)):
                row = [0] * len(order)
                for i, value in zip(dimensions, values, strict=True):
                    row[i] = value
                rows.append(row)
    return np.array(sorted(rows), dtype=np.int64)


EXAMPLES: dict[str, Factory] = {
    "Fourier": lambda low, high: Fourier(low, high, order=2),
    "Fourier (uncoupled)": lambda low, high: Fourier(low, high, order=3, max_coupling=1),
}
