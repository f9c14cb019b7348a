"""The small matrix K of Algorithms 2 and 3, in the coordinates of [U, Q_Z] and [V, Q_D], and what its SVD says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlstd.linalg.basis import Basis
from tlstd.linalg.batch import gathered
from tlstd.linalg.buffer import Buffer
from tlstd.linalg.buffered_vectors import SparseVectors
from tlstd.linalg.subspace_lambda import ProjectedEquations, Projection
from tlstd.linalg.svd import EPS, inverse_factors, leading_svd
from tlstd.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """The system as of now: A = left · L diag(sigma) Rt · rightᵀ, and b and z on the left unit vectors."""

    left: Basis
    right: Basis
    L: FloatArray
    sigma: FloatArray
    Rt: FloatArray
    rank: int
    weights: FloatArray  # (k,), of the buffered samples
    decay: float  # weight of what was before them
    b_coefficients: FloatArray  # (k, m), of b - decay·b₀
    z_coefficients: FloatArray  # (k, 1), of the last trace
    projection: Projection | None  # the equations of another λ on the leading singular vectors

    def truncated(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """L, σ and R cut to the rank."""
        kept = n_kept(self.sigma, self.rank)
        return self.L[:, :kept], self.sigma[:kept], self.Rt[:kept].T

    def apply_inverse(self, b: FloatArray, rcond: float) -> FloatArray:
        """R Σ⁺ Lᵀ b for b (size, m) in coordinates, with at most ``rank`` singular values inverted: Algorithm 4."""
        inverse = inverse_factors(self.sigma, rcond=rcond, rank=self.rank)  # lines 4 to 12
        y: FloatArray = self.Rt.T @ (inverse[:, None] * (self.L.T @ b))  # lines 3 and 13, U and V left out
        return y


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """w = V on_V + (right vectors) on_D + E on_E, without w having been formed."""

    right: Basis
    coordinates: FloatArray
    on_V: FloatArray
    on_D: FloatArray
    on_E: FloatArray

    def value(self, rows: IntArray, values: FloatArray, scratch: FloatArray) -> FloatArray:
        """wᵀx (m,) of a sparse x in rows, -1 for features never seen; O(nnz (r + k)). ``scratch`` is and stays zero."""
        right = self.right
        out: FloatArray = gathered(rows, values, right.U) @ self.on_V
        if isinstance(right.block, SparseVectors) and right.picked.size:
            out += right.block.overlaps(right.picked, rows, values, scratch) @ self.on_D
        if right.E.shape[1]:
            out += gathered(rows, values, right.E) @ self.on_E
        return out


def core_svd(
    left: Basis,
    right: Basis,
    buffer: Buffer,
    sigma: FloatArray,
    weights: FloatArray,
    decay: float,
    rank: int,
    equations: ProjectedEquations | None,
) -> Core:
    """K = decay · diag(σ) ⊕ 0 + Σ ω_i z_i d_iᵀ and the leading ``rank`` triplets of its SVD. O((r + k)³)."""
    k, r = buffer.count, sigma.size
    Z = buffer.traces(left)  # [UᵀZ; R_Z]ᵀ
    Z *= (weights * buffer.right.norms[:k])[:, None]
    K = Z.T @ right.coordinates.T  # Algorithm 2, line 3; right.coordinates are [VᵀD; R_D] of unit vectors
    K[range(r), range(r)] += decay * sigma
    L, sigma, Rt = leading_svd(K, rank)  # line 4
    on_traces = np.zeros((k, buffer.rewards.shape[1] + 1))
    on_traces[:, :-1] = weights[:, None] * buffer.rewards[:k]  # Algorithm 1: b ← (1-β) b + β z r
    on_traces[k - 1 :, -1] = 1.0
    on_vectors = buffer.on_vectors(on_traces)
    projection = None
    if equations is not None:
        q = n_kept(sigma, rank)
        projection = equations.project(left, right, buffer, weights, decay, L[:, :q], Rt[:q])
    return Core(left, right, L, sigma, Rt, rank, weights, decay, on_vectors[:, :-1], on_vectors[:, -1:], projection)


def sample_weights(n_before: int, k: int, beta: float | None) -> tuple[FloatArray, float]:
    """Weight of each of k samples, and of all ``n_before`` before them: A ← (1-β) A + β z dᵀ, k times (section 4).

    β = 1/(t+1), the running average, if it is None (``docs/deviations.md``, 1).

    >>> sample_weights(6, 2, None), sample_weights(6, 2, 0.5)
    ((array([0.125, 0.125]), 0.75), (array([0.25, 0.5 ]), 0.25))
    """
    if beta is None:
        total = n_before + k
        return np.full(k, 1.0 / max(total, 1)), n_before / max(total, 1)
    keep = 1.0 - beta
    weights: FloatArray = beta * keep ** np.arange(k - 1, -1, -1.0)
    return weights, keep**k


def n_kept(sigma: FloatArray, rank: int) -> int:
    """How many singular values survive: at most ``rank``, and none that is rounding. (NaN do: they are news.)"""
    if np.isnan(sigma).any():
        return min(rank, sigma.size)
    if not (sigma.size and sigma[0] > 0.0):
        return 0
    return min(rank, int(np.count_nonzero(sigma > EPS * sigma[0])))
