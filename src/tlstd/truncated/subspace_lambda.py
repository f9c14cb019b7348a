"""The LSTD system of a second λ, seen through the factors of the first.

The leading subspaces of A tell which features matter. For λ near 1 they are those of the features themselves, for small
λ they are not: A then carries I - γP, which is nearly zero on smooth functions. So the subspaces can be taken from one
λ and the equations from another. Of the second system A₂ w = b₂ only G = UᵀA₂V (r × r) and b₂ are kept. It costs a
second trace and another small product per compression.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.core.svd import solve_truncated
from tlstd.data.batch import Batch
from tlstd.data.kernels import sparse as kernels
from tlstd.truncated.basis import Basis
from tlstd.truncated.buffer import Buffer


class Projection(NamedTuple):
    """The second system in the coordinates of the leading singular vectors, as of the last sample."""

    G: FloatArray
    """(q, q)"""
    h: FloatArray
    """(q, m)"""

    def solve(self, rcond: float) -> FloatArray:
        """Coordinates (q, m) of the solution, singular values at or below ``rcond`` times the largest left out."""
        return solve_truncated(self.G, self.h, rcond=rcond)

    def rotated(self, rotations: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
        """G after the pairs of matrices that :meth:`tlstd.truncated.factors.Factors.orthonormalise` returns."""
        G = self.G
        for on_left, on_right in rotations:
            G = on_left @ G @ on_right.T
        return G


class ProjectedEquations:
    """b₂, the second trace, and what the buffer adds to G.

    Parameters
    ----------
    lambda_ : float in [0, 1]
        The second λ.
    n_targets : int
    """

    def __init__(self, lambda_: float, n_targets: int) -> None:
        self.lambda_ = lambda_
        self.G: FloatArray = np.zeros((0, 0))
        self.b: FloatArray = np.zeros((0, n_targets))
        self.z: FloatArray = np.zeros(0)
        self._decays: FloatArray = np.zeros(0)
        self._b_and_first_trace: FloatArray = np.zeros((0, n_targets + 1))  # b₂ and the buffer's first trace
        self._on_U: FloatArray | None = None

    def append(self, batch: Batch, buffer: Buffer, n: int) -> None:
        """Take in samples that the buffer has, but does not count yet; n rows."""
        decays, first = batch.trace_discounts * self.lambda_, buffer.count
        if first == 0:
            rho = batch.rhos[0]
            trace = rho * buffer.left.first_vector(n)
            trace[: self.z.size] += rho * decays[0] * self.z  # Algorithm 1: z ← γλ z + x
            b_and_first_trace = np.hstack([enlarged(self.b, n), trace[:, None]])
            self.__dict__.update(_decays=decays, _b_and_first_trace=b_and_first_trace, _on_U=None)
        if first + decays.size > self._decays.size:
            self._decays = enlarged(self._decays, max(first + decays.size, buffer.capacity))
        self._decays[first : first + decays.size] = decays

    def project(
        self,
        left: Basis,
        right: Basis,
        buffer: Buffer,
        weights: FloatArray,
        decay: float,
        L: FloatArray,
        Rt: FloatArray,
    ) -> Projection:
        """G and h in the coordinates L, R of the bases of both sides."""
        k, r = buffer.count, self.G.shape[0]
        if self._on_U is None:
            self._on_U = left.U.T @ self._b_and_first_trace[: left.U.shape[0]]
        b_and_first_trace = left.assemble(
            self._on_U, left.block.products("beside", self._b_and_first_trace), self._b_and_first_trace
        )
        Z = left.block.norms[:k, None] * left.coordinates.T
        Z[:1] = b_and_first_trace[:, -1]
        kernels.traces_from_features(self._decays[:k], buffer.rhos[:k], True, Z)
        Z *= weights[:, None]
        along_L = Z @ L
        along_R = right.block.norms[:k, None] * (Rt @ right.coordinates).T
        G = along_L.T @ along_R + decay * (L[:r].T @ self.G @ Rt[:, :r].T)
        h = decay * (L.T @ b_and_first_trace[:, :-1]) + along_L.T @ buffer.rewards[:k]
        return Projection(G, h)

    def compressed(
        self, buffer: Buffer, weights: FloatArray, decay: float, n: int, G: FloatArray
    ) -> ProjectedEquations:
        """A new object with this G and with the buffer's share of b₂ and of the trace taken in, over n rows."""
        k, m = buffer.count, self.b.shape[1]
        shares = np.zeros((k, m + 1))  # of the first trace and of the further vectors
        shares[:, :m] = weights[:, None] * buffer.rewards[:k]
        shares[k - 1, m] = 1.0
        kernels.traces_from_features_adjoint(self._decays[:k], buffer.rhos[:k], True, shares)
        shares[1:] *= buffer.left.norms[1:k, None]
        new = np.zeros((n, m + 1))
        rows = self._b_and_first_trace.shape[0]
        new[:rows] = self._b_and_first_trace[:, -1:] * shares[:1]
        new[:rows, :m] += decay * self._b_and_first_trace[:, :m]
        buffer.left.add_to(new, np.arange(1, k), shares[1:])
        new[np.abs(new) < 1e-40 * np.abs(new).max(axis=0, initial=0.0)] = 0.0  # spares later steps subnormal numbers
        other = ProjectedEquations(self.lambda_, m)
        other.G, other.b, other.z = G, np.ascontiguousarray(new[:, :m]), new[:, m].copy()
        other._rest()
        return other

    def mend(self, n_buffered: int) -> None:
        """Put everything in order after an interruption, with so many samples in the buffer."""
        self._on_U = None
        if n_buffered == 0:
            self._rest()

    def _rest(self) -> None:
        """No buffer, no trace into it."""
        self._b_and_first_trace = np.hstack([self.b, np.zeros((self.b.shape[0], 1))])
        self._on_U = None

    def state(self, n_buffered: int) -> State:
        """What :meth:`restore` takes."""
        return {
            "G": self.G,
            "b": self.b,
            "z": self.z,
            "decays": self._decays[:n_buffered],
            "beside": self._b_and_first_trace if n_buffered else self._b_and_first_trace[:0],  # else it follows from b
        }

    def restore(self, saved: Saved, n_buffered: int, rank: int, n_rows: int, n: int) -> None:
        """Take over a saved state with factors of this rank and ``n_rows`` rows; only of fresh objects."""
        m = self.b.shape[1]
        self.G = saved.floats("G", rank, rank)
        self.b, self.z = saved.floats("b", n_rows, m), saved.floats("z", n_rows)
        self._decays = saved.floats("decays", n_buffered, low=0.0, high=1.0)
        self._b_and_first_trace = saved.floats("beside", None, m + 1)
        if not (
            n_rows <= self._b_and_first_trace.shape[0] <= n if n_buffered else self._b_and_first_trace.shape[0] == 0
        ):
            raise saved.error("beside", f"has {self._b_and_first_trace.shape[0]} rows where {n} features were seen")
        if n_buffered == 0:
            self._rest()
