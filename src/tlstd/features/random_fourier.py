"""Random Fourier features: cosines in random directions, for smooth values of many columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, locked
from tlstd.features.base import Factory
from tlstd.features.standardised import Standardised, finite, observed, scaling
from tlstd.features.states import as_box, as_row, compiled, not_a_number

PAIRS = 2_000
"""Pairs of observations of which the median distance is taken."""
CHUNK = 256
"""States that are encoded at once: what is worked on stays in the processor's cache."""


class RandomFourier(Standardised):
    """Cosines of random combinations of all columns, and a constant.

    φ_i(s) = √(2/n) cos(w_iᵀ u + b_i) with u_j = (s_j − centre_j) / scale_j, where s is clipped to the box, and a
    constant 1 at the end. Weighted sums of these features are smooth functions of all columns together. With
    frequencies w_i from a normal distribution and phases b_i from a uniform one, inner products approximate a Gaussian
    kernel.

    :meth:`fit` makes the map from observations: mean and standard deviation of each column, and frequencies of the
    standard deviation 1/(``width`` · median distance of two observations). The same observations give the same map,
    in any order but for rounding.

    Parameters
    ----------
    low, high : (D,)
        Corners of the box; a state outside counts as on its edge.
    centre, scale : (D,)
        Shift and unit of each column; ``scale`` > 0.
    frequencies : (n, D)
    phases : (n,)

    Attributes
    ----------
    n_features : int
        n + 1.

    Notes
    -----
    O(n·D) multiplications and n cosines per state; dense, 8(n + 1) bytes per state. Encoding one state is one compiled
    call.

    References
    ----------
    A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Example
    -------
    >>> seen = np.random.default_rng(0).standard_normal((1_000, 3))
    >>> waves = RandomFourier.fit(seen, n_features=200)
    >>> waves
    RandomFourier(3 columns: 200 features)
    >>> waves.encode([0.1, 0.5, 1.0]).shape
    (200,)
    """

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike,
        *,
        centre: ArrayLike,
        scale: ArrayLike,
        frequencies: ArrayLike,
        phases: ArrayLike,
    ) -> None:
        super().__init__(low, high, centre, scale)
        self.phases = finite("phases", phases, (np.size(phases),))
        self.frequencies = finite("frequencies", frequencies, (self.phases.size, self.low.size))
        self.n_features = self.phases.size + 1
        self._directions = locked(np.ascontiguousarray(self.frequencies.T))
        self._size = float(np.sqrt(2.0 / max(1, self.phases.size)))

    @classmethod
    def fit(cls, observations: ArrayLike, *, n_features: int = 300, width: float = 1.0, seed: int = 0) -> RandomFourier:
        """The map for observations (N, D), N >= 1.

        Parameters
        ----------
        observations : (N, D)
        n_features : int >= 2
            With the constant.
        width : float > 0
            Over how many median distances of two observations values may change.
        seed : int >= 0
            Of the frequencies and phases.
        """
        array = observed(observations)
        n = parameters.integer("n_features", n_features, low=2) - 1
        width = parameters.positive("width", width)
        rng = np.random.default_rng(parameters.integer("seed", seed, low=0))
        low, high, centre, scale = scaling(array)
        ordered = np.lexsort(array.T)  # pairs do not depend on the order in which observations are given
        first, second = array[ordered[rng.integers(len(array), size=(2, PAIRS))]]
        apart = np.sqrt((((first - second) / scale) ** 2).sum(axis=1))
        apart = apart[apart > 0.0]
        distance = float(np.median(apart)) if apart.size else 1.0
        frequencies = rng.standard_normal((n, array.shape[1])) / (width * distance)
        phases = rng.uniform(0.0, 2.0 * np.pi, n)
        return cls(low, high, centre=centre, scale=scale, frequencies=frequencies, phases=phases)

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state (D,), shape (n_features,)."""
        row, x = as_row(state, self.low.size), np.empty(self.n_features)
        box = self.low, self.high, self.centre, self.scale
        if not compiled("online").waves(row, *box, self._directions, self.phases, self._size, x):
            raise not_a_number(row[None], 0)
        return x

    def encode_many(self, states: ArrayLike) -> FloatArray:
        """Features of states (N, D), shape (N, n_features)."""
        u = self._units(states)
        out = np.empty((len(u), self.n_features))
        out[:, -1] = 1.0
        for a in range(0, len(u), CHUNK):
            some, waves = u[a : a + CHUNK], out[a : a + CHUNK, :-1]
            waves[:] = self.phases
            for direction, column in zip(self._directions, some.T, strict=True):
                waves += column[:, None] * direction  # a product of matrices rounds by the number of states
            np.cos(waves, out=waves)
            waves *= self._size
        return out

    def __repr__(self) -> str:
        return f"RandomFourier({self.low.size} columns: {self.n_features} features)"


EXAMPLES: dict[str, Factory] = {
    "RandomFourier": lambda low, high: RandomFourier.fit(np.linspace(*as_box(low, high), 50), n_features=20),
}
