"""The inverse of A = ε I + Σ ω z dᵀ, followed from sample to sample."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba.extending import get_cython_function_address

from tlstd.classic.kernels import lstd as kernels
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.core.svd import EPS, solve_truncated
from tlstd.data.batch import CSRArrays

SMALLEST_DENOMINATOR = 1e-6
"""Relative size of 1 + ω dᵀPz below which A is taken to pass through a singular matrix."""

LARGEST_ENTRY = 1e100
"""Diagonal entry of P at which forgetting has gone too far."""

LARGEST_CONDITION = 1e10
"""Condition of the scaled A up to which the recursion is resumed from its inverse."""

MAX_RESIDUAL = 1e-10
"""Relative residual of a mended solution from which P is given up."""

MAX_REFINEMENTS = 5

LIMITS = SMALLEST_DENOMINATOR, LARGEST_ENTRY
"""Of :func:`tlstd.classic.kernels.lstd.recursive_step`."""

ACCURACY = 64.0 * EPS, MAX_RESIDUAL, MAX_REFINEMENTS
"""Of :func:`tlstd.classic.kernels.lstd.refine`."""


@cache
def dgemv() -> int:
    """Address of the BLAS function that SciPy offers to compiled code."""
    return int(get_cython_function_address("scipy.linalg.cython_blas", "dgemv"))


class RecursiveInverse:
    """P = A⁻¹ by the Sherman–Morrison formula, with A kept beside it.

    One step costs O(n²). The formula has no answer where A passes through a singular matrix (1 + ω dᵀPz = 0); near
    such a point, and when forgetting lets P grow without bound, the recursion is suspended: only A goes on, a
    solution is then computed from A directly, and the recursion resumes from A⁻¹ as soon as that is well conditioned.

    Parameters
    ----------
    initial_diagonal : float > 0
        ε: each feature's diagonal entry at its first appearance.
    """

    def __init__(self, initial_diagonal: float) -> None:
        self.initial_diagonal = initial_diagonal
        self.n = 0
        self.progress: IntArray = np.array([0, 1])  # samples, and whether P is followed
        self._A: FloatArray = np.zeros((0, 0))
        self._P: FloatArray = np.zeros((0, 0))

    @property
    def healthy(self) -> bool:
        """Whether the recursion goes on."""
        return bool(self.progress[1])

    @property
    def A(self) -> FloatArray:
        """The matrix, (n, n); a view."""
        return self._A[: self.n, : self.n]

    @property
    def P(self) -> FloatArray:
        """Its inverse while the recursion is healthy; a view."""
        return self._P[: self.n, : self.n]

    def grow(self, n: int, scale: float) -> None:
        """Extend to n features; the new ones start with ``initial_diagonal`` in units of ``scale``."""
        if n <= self.n:
            return
        A, P = self._A, self._P
        if n > A.shape[0]:
            size = n if self.n == 0 else max(n, self.n * 3 // 2)
            A, P = enlarged(self.A, size, size), enlarged(self.P, size, size)
        new = range(self.n, n)
        A[new, new] = self.initial_diagonal / scale
        P[new, new] = scale / self.initial_diagonal
        self.__dict__.update(_A=A, _P=P, n=n)

    def follow(
        self,
        x: CSRArrays,
        x_next: CSRArrays,
        columns: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        b: FloatArray,
        z: FloatArray,
        scale: FloatArray,
        *,
        beta: float | None,
        replacing: bool,
        values: FloatArray,
    ) -> tuple[int, bool]:
        """Learn from transitions in row coordinates, in place: see :func:`tlstd.classic.kernels.lstd.recursive_run`."""
        done, solved = kernels.recursive_run(
            *(dgemv(), x, x_next, columns, (self._A, self._P, b, z, self.progress, scale)),
            *(beta or 0.0, replacing, LIMITS, ACCURACY, values),
        )
        return int(done), bool(solved)

    def solve(self, b: FloatArray, rcond: float) -> FloatArray:
        """A⁻¹ b, (n, m). A suspended recursion is resumed if A allows, else A is solved with the cut-off ``rcond``."""
        for _ in range(2):  # with the P that was followed; should that be worn out, with one computed from A
            if not self.healthy:
                self._resume()
            if self.healthy:
                w = self._refined(b)
                if w is not None:
                    return w
                self.progress[1] = 0
        return solve_truncated(self.A, b, rcond=rcond)

    def _refined(self, b: FloatArray) -> FloatArray | None:
        """P b with the rounding errors of P mended, or None if P is no inverse of A any more. O(n² m).

        On its way from I/ε to A⁻¹ the recursion loses about log₁₀(1/ε) digits. A has lost none, so w ← w + P (b - A w)
        brings them back, until the residual is down to rounding.
        """
        best, error, rest = None, np.inf, np.empty_like(b)
        with np.errstate(over="ignore", invalid="ignore"):
            w: FloatArray = self.P @ b
            for _ in range(MAX_REFINEMENTS):
                last, error = error, kernels.residual(self._A, w, b, self.n, rest)
                if not error < 0.5 * last:
                    error = last
                    break
                best = w
                if error < 4.0 * EPS:
                    break
                w = w + self.P @ rest
        return best if error < MAX_RESIDUAL else None

    def _resume(self) -> None:
        """Compute P from A, both rows and columns scaled to one, if that is well conditioned."""
        row_scale = np.abs(self.A).max(axis=1, initial=0.0)
        if not row_scale.min(initial=1.0) > 1.0 / LARGEST_ENTRY:
            return
        scaled = self.A / row_scale[:, None]
        column_scale = np.abs(scaled).max(axis=0, initial=0.0)
        if not column_scale.min(initial=1.0) > 1.0 / LARGEST_ENTRY:
            return
        scaled /= column_scale
        try:
            P = np.linalg.inv(scaled)
        except np.linalg.LinAlgError:
            return
        condition = np.linalg.norm(scaled, 1) * np.linalg.norm(P, 1) if self.n else 1.0
        if condition < LARGEST_CONDITION:
            P /= column_scale[:, None]
            P /= row_scale
            self._P[: self.n, : self.n] = P
            self.progress[1] = 1

    def state(self) -> State:
        """What :meth:`restore` takes; a suspended P is not worth keeping."""
        return {
            "healthy": self.healthy,
            "A": self.A,
            "P": self.P if self.healthy else np.zeros((0, 0)),
            # the distance of rows in memory: BLAS may add up in an order that depends on it
            "capacity": self._A.shape[0],
        }

    def restore(self, saved: Saved, n: int) -> None:
        """Take over a saved state, if it can be one of n features; only of fresh objects."""
        self.n = n
        self.progress[1] = saved.flag("healthy")
        size = n if self.healthy else 0
        A, P = saved.floats("A", n, n), saved.floats("P", size, size)
        capacity = saved.integer("capacity", low=n, high=max(n, n * 3 // 2))
        self._A, self._P = enlarged(A, capacity, capacity), enlarged(P, capacity, capacity)
