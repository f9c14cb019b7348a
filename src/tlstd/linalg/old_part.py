"""What is kept of samples that have left a store."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlstd.container import Saved, State
from tlstd.linalg.held_out import FEWEST_EFFECTIVE, FEWEST_GROUPS
from tlstd.types import MAX_MAGNITUDE, FloatArray

_LARGEST = float(np.finfo(np.float64).max)


class Forecasts(NamedTuple):
    """Solutions at the last folding, and the errors of those of earlier foldings for what came after them.

    e_g is the squared error summed over a group of samples (an episode or a block), s_g the sum of their weights: the
    number of samples that were known when they were predicted, so that later errors, of better solutions, count more.
    """

    solutions: FloatArray
    """(k, n_targets, M): in the basis of the old part, the solutions of dimension 1, …, M."""
    errors: FloatArray
    """(3, n_targets, M): Σ e_g, Σ e_g² and Σ e_g s_g."""
    sizes: FloatArray
    """(5,): Σ s_g, Σ s_g², states (as many equal ones as tell as much), groups, and states."""
    squares: FloatArray
    """(n_targets,): the squared returns, weighted as the errors."""

    @classmethod
    def empty(cls, n_vectors: int, n_targets: int, n_dimensions: int) -> Forecasts:
        """Nothing predicted so far."""
        nothing = np.zeros((3, n_targets, n_dimensions)), np.zeros(5), np.zeros(n_targets)
        return cls(np.zeros((n_vectors, n_targets, n_dimensions)), *nothing)

    @property
    def enough(self) -> bool:
        """Whether there are enough to choose by."""
        return bool(self.sizes[0] > 0.0 and self.sizes[2] >= FEWEST_EFFECTIVE and self.sizes[3] >= FEWEST_GROUPS)

    def scores(self, target: int) -> tuple[FloatArray, FloatArray, float]:
        """Mean squared error of each dimension, its standard error over groups, and the mean square of the returns."""
        total, squares, n = self.sizes[0], self.sizes[1], self.sizes[3]
        means = self.errors[0, target] / total
        spread = self.errors[1, target] - 2.0 * means * self.errors[2, target] + means**2 * squares
        return means, np.sqrt(np.maximum(spread, 0.0) * n / (n - 1.0)) / total, float(self.squares[target] / total)

    def state(self) -> State:
        """What :meth:`restored` takes; files have no arrays of three axes."""
        rows, errors = self.solutions.shape[0], self.errors
        return self._asdict() | {
            "solutions": self.solutions.reshape(rows, errors[0].size),
            "errors": errors.reshape(3, errors[0].size),
        }

    @classmethod
    def restored(cls, saved: Saved, n_vectors: int, n_targets: int, n_dimensions: int) -> Forecasts:
        """What was saved, if it can be of these sizes."""
        return cls(
            saved.floats("solutions", n_vectors, n_targets * n_dimensions).reshape(-1, n_targets, n_dimensions),
            saved.floats("errors", 3, n_targets * n_dimensions, low=0.0, high=_LARGEST).reshape(3, n_targets, -1),
            saved.floats("sizes", 5, low=0.0, high=_LARGEST),
            saved.floats("squares", n_targets, low=0.0, high=_LARGEST),
        )


class OldPart(NamedTuple):
    """What is kept of the system of samples that have left, over the n₀ features that were seen when the last did.

    A_old ≈ C Qᵀ + τ (I - Q Qᵀ) with C = ``left``, Q = ``right`` and τ = ``beyond``. Everything is weighted as the
    samples were when the last of them was the newest.
    """

    left: FloatArray
    """C = A_old Q, (n₀, k)."""
    right: FloatArray
    """An orthonormal basis Q of the space in which A_old is known, (n₀, k)."""
    beyond: float
    """What A_old is taken for outside of it, as a multiple of the identity."""
    b: FloatArray
    """(n₀, n_targets), exact."""
    square: float
    """Mean of ‖x‖², exact."""
    constant: FloatArray
    """The value that a feature had in every x, or 0 if they differed, (n₀,)."""
    forecasts: Forecasts | None = None
    """Errors for samples that came later, by dimension; None where nothing is to be chosen."""

    def product(self, V: FloatArray, *, adjoint: bool = False) -> FloatArray:
        """A_old V, or A_oldᵀ V, for V (n₀, m)."""
        C, Q = (self.right, self.left) if adjoint else (self.left, self.right)
        on_Q = Q.T @ V
        product: FloatArray = C @ on_Q
        if self.beyond > 0.0:
            product += self.beyond * V
            product -= self.right @ (self.beyond * (self.right.T @ V if adjoint else on_Q))
        return product

    def state(self) -> State:
        """What :meth:`restored` takes."""
        state = {name: value for name, value in self._asdict().items() if name != "forecasts"}
        return state if self.forecasts is None else {**state, "forecasts": self.forecasts.state()}

    @classmethod
    def restored(cls, saved: Saved, n: int, n_targets: int, n_forecasts: int) -> OldPart:
        """What was saved, if it can be of a store with n features; ``n_forecasts`` dimensions are to be chosen from."""
        shape = saved.shape("right")
        rows, k = shape if len(shape) == 2 else (0, 0)
        if rows > n:
            raise saved.error("right", f"has {rows} rows for {n} features")
        forecasts = None
        if n_forecasts and saved.part("forecasts").shape("solutions"):  # files of version 0.1 have none
            forecasts = Forecasts.restored(saved.part("forecasts"), k, n_targets, n_forecasts)
        return cls(
            left=saved.floats("left", rows, k),
            right=saved.floats("right", rows, k, low=-2.0, high=2.0),
            beyond=saved.real("beyond", low=0.0, high=_LARGEST),
            b=saved.floats("b", rows, n_targets),
            square=saved.real("square", low=0.0, high=_LARGEST),
            constant=saved.floats("constant", rows, low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE),
            forecasts=forecasts,
        )
