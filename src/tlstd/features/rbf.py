"""Gaussian radial basis functions on a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_real, locked
from tlstd.errors import InvalidParameterError
from tlstd.features.base import EqualByArguments, Factory
from tlstd.features.states import as_box, as_counts, as_state, as_states

Convention: TypeAlias = Literal["paper", "gaussian"]


class RBF(EqualByArguments):
    """Gaussian bumps centred on a regular grid over a box.

    φ_c(s) = exp(−Σ_i ((s_i − c_i) / w_i)²) with w_i = ``width`` · (high_i − low_i): no factor ½ and no
    normalisation. That is the paper's ``convention``; the other one, "gaussian", is that of the normal density,
    φ_c(s) = exp(−½ Σ_i ((s_i − c_i) / w_i)²), where w_i is the standard deviation: √2 wider at the same ``width``.

    The centres are on a grid that includes the edges of the box; features are ordered with the last dimension of the
    grid running fastest, and the bias, if any, comes last. States outside the box count as on its edge.

    Parameters
    ----------
    low, high : (D,)
        Corners of the box.
    grid : int or D ints, each >= 2
        Centres per dimension, the same in all dimensions if one number.
    width : float or D floats, each > 0
        Width as a fraction of the range.
    bias : bool
        Whether there is one more feature that is always 1.
    convention : "paper" or "gaussian"
        What ``width`` means: where a bump has fallen to exp(−1), or its standard deviation, where it is at exp(−½).

    Attributes
    ----------
    n_features : int
        Product of ``grid`` (+ 1).

    Notes
    -----
    A Gaussian is a product over dimensions, so only Σ grid exponentials are taken per state, and n_features
    multiplications. Dense: 8 · n_features bytes per state.

    References
    ----------
    C. Gehring, Y. Pan, M. White, "Incremental Truncated LSTD", IJCAI 2016, experiments (32×32 centres, width 0.12)
    [P]; the form of the exponent is that of the first author's older code [G].

    Example
    -------
    >>> rbf = RBF([0.0], [2.0], grid=3, width=0.5, bias=True)
    >>> rbf.centres.ravel()
    array([0., 1., 2.])
    >>> rbf.encode([1.0]).round(4)      # exp(−1), 1, exp(−1), bias
    array([0.3679, 1. , 0.3679, 1. ])
    >>> rbf.encode_many([[1.0], [3.0]]).shape
    (2, 4)
    >>> RBF([0.0], [2.0], grid=3, width=0.5, convention="gaussian").encode([1.0]).round(4)    # exp(−½), 1, exp(−½)
    array([0.6065, 1. , 0.6065])
    """

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike,
        *,
        grid: int | Sequence[int],
        width: float | Sequence[float],
        bias: bool = False,
        convention: Convention = "paper",
    ) -> None:
        self.low, self.high = as_box(low, high)
        self.grid = as_counts("grid", grid, self.low.size, low=2, why=" (both edges have centres)")
        self.width = _width(width, self.low.size)
        self.bias = parameters.flag("bias", bias)
        self.convention: Convention = parameters.choice(
            "convention", convention, get_args(Convention), why=" (without or with ½ in the exponent)"
        )
        self.n_features = math.prod(self.grid) + self.bias
        self._axes = [np.linspace(a, b, n) for a, b, n in zip(self.low, self.high, self.grid, strict=True)]

    @property
    def centres(self) -> FloatArray:
        """Centres in the order of the features, (product of ``grid``, D)."""
        return np.stack(np.meshgrid(*self._axes, indexing="ij"), axis=-1).reshape(-1, self.low.size)

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state (D,), shape (n_features,)."""
        features: FloatArray = self.encode_many(as_state(state, self.low.size))[0]
        return features

    def encode_many(self, states: ArrayLike) -> FloatArray:
        """Features of states (N, D), shape (N, n_features)."""
        array = as_states(states, self.low.size).clip(self.low, self.high)
        encoded = np.empty((len(array), self.n_features))
        product = np.ones((len(array), 1))
        scale = self.width * (self.high - self.low)
        factor = -1.0 if self.convention == "paper" else -0.5
        for i, axis in enumerate(self._axes):
            bump = np.exp(factor * ((array[:, i, None] - axis) / scale[i]) ** 2)
            product = (product[:, :, None] * bump[:, None, :]).reshape(len(array), product.shape[1] * axis.size)
        encoded[:, : product.shape[1]] = product
        encoded[:, product.shape[1] :] = 1.0
        return encoded

    def __repr__(self) -> str:
        grid = "×".join(str(n) for n in self.grid)
        width = f"width={self.width.tolist()} ({self.convention})"
        return f"RBF({grid} centres, {width}, bias={self.bias}: {self.n_features} features)"


def _width(value: float | Sequence[float], n_dimensions: int) -> FloatArray:
    width = as_real(value, "width", InvalidParameterError).copy()
    if width.ndim == 0:
        width = np.full(n_dimensions, width)
    if width.shape != (n_dimensions,) or not (np.isfinite(width) & (width > 0.0)).all():
        raise InvalidParameterError(
            f"width is {value!r}: pass a positive fraction of the range, or {n_dimensions} of them"
        )
    return locked(width)


EXAMPLES: dict[str, Factory] = {
    "RBF": lambda low, high: RBF(low, high, grid=3, width=0.5, bias=True),
    "RBF (gaussian)": lambda low, high: RBF(low, high, grid=3, width=0.5, convention="gaussian"),
}
