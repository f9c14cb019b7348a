"""Theorem 1 of the paper, term by term, and the bound that takes its place here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.diagnostics.picard_condition import RCOND, Picard, checked_system, coefficients_of, numerical_rank
from tlstd.errors import InvalidInputError

Alignment: TypeAlias = Literal["rotations", "signs", "none"]
EPS = float(np.finfo(np.float64).eps)
CLUSTER = 1e-13
"""Neighbouring singular values closer than this share of the largest count as equal."""
N_EXPONENTS, MOST = 64, 10.0
"""How many exponents are tried, up to which, where the caller leaves p open."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The theorem's bound for one reading of its undefined norm, at the exponent that makes it smallest.

    Attributes
    ----------
    p, constant : float
        Exponent and constant C of the Picard condition.
    cap, difference : float
        The two arguments of the minimum that is called ε(t), times C: rank(A) σ₁ᵖ⁻¹, and the distance between the
        weighted right singular vectors of A and A_t plus σ̂ᵣᵖ⁻¹ − σᵣᵖ⁻¹.
    drift, bias : float
        C (d − r) ε(t) and C (d − r) σᵣᵖ⁻¹.
    total : float
        The sum with ``Bound.noise``.
    """

    p: float
    constant: float
    cap: float
    difference: float
    drift: float
    bias: float
    total: float


@dataclass(frozen=True, slots=True)
class Corrected:
    """Our bound: the root of noise² + (tail + turn · head)², at the best split s.

    Attributes
    ----------
    split : int
        s: the leading s singular directions of A count as kept.
    tail, head : float
        Lengths of w* beyond and within them.
    turn : float
        Bound min(1, ‖A_t − A‖ / (σ_s − σ̂_{r+1})) of the sine of the angle by which they have left A_{t,r}'s.
    bias : float
        tail + turn · head; zero if nothing is left out.
    total : float
    p : float or None
        Exponent, if the coefficients are those of the Picard condition.
    """

    split: int
    tail: float
    head: float
    turn: float
    bias: float
    total: float
    p: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """The true error of the rank-r solution and what bounds it: made by :func:`bound`.

    Attributes
    ----------
    rank : int
        As asked for.
    effective_rank : int
        Number of singular values that are inverted: less than ``rank`` if A_t has not as many.
    error : float
        ‖w_{t,r} − w*‖.
    noise_part, bias_part : float
        Its two parts ‖A†_{t,r}(b_t − A_t w*)‖ and ‖Σ_{i>r} v̂ᵢv̂ᵢᵀw*‖. They are orthogonal: their squares add up.
    noise : float
        The theorem's first term ‖b_t − A_t w*‖ / σ̂ᵣ; infinite if ``effective_rank`` < ``rank``.
    norm, squared : Reading
        The theorem with the undefined norm read as a norm and as a squared norm.
    corrected, corrected_picard : Corrected
        Our bound, from the coefficients vⱼᵀw* themselves and from C σⱼᵖ⁻¹ instead of them, at its own best p.
    assumption_holds : bool
        Whether |uᵢᵀb| <= C σᵢᵖ, for i up to the rank of A, at the exponents of ``norm`` and ``squared``.
    tolerance : float
        What rounding can do to ``error``.
    """

    rank: int
    effective_rank: int
    error: float
    noise_part: float
    bias_part: float
    noise: float
    norm: Reading
    squared: Reading
    corrected: Corrected
    corrected_picard: Corrected
    assumption_holds: bool
    tolerance: float

    def holds(self, total: float) -> bool:
        """Whether the error is at most ``total``, up to rounding.

        >>> result = bound(np.eye(2), [1.0, 1.0], np.eye(2), [1.0, 1.0], 1)
        >>> result.holds(result.norm.total)
        True
        """
        return self.error <= total * (1.0 + 1e-9) + self.tolerance


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The aligned decompositions of A and A_t: made by :func:`compare`, for bounds at many ranks and exponents.

    Attributes
    ----------
    U, sigma, V : (d, d), (d,), (d, d)
        A = U diag(σ) Vᵀ.
    U_t, sigma_t, V_t
        The same of A_t.
    rank, rank_t : int
        Numerical ranks.
    coefficients : (rank,)
        vⱼᵀw* = uⱼᵀb / σⱼ.
    condition : Picard
        Of A and b, in this very basis; its ``outside`` does not enter the proof and is zero.
    weights : (d,)
        w* = A†b.
    residual : (d,)
        b_t − A_t w*.
    right : (d,)
        b_t.
    perturbation : float
        ‖A_t − A‖, the largest singular value.
    """

    U: FloatArray
    sigma: FloatArray
    V: FloatArray
    U_t: FloatArray
    sigma_t: FloatArray
    V_t: FloatArray
    rank: int
    rank_t: int
    coefficients: FloatArray
    condition: Picard
    weights: FloatArray
    residual: FloatArray
    right: FloatArray
    perturbation: float

    @property
    def n_features(self) -> int:
        """d."""
        return self.sigma.size

    def solution(self, rank: int) -> FloatArray:
        """w_{t,r}, with at most ``rank`` singular values of A_t inverted."""
        s = min(rank, self.rank_t)
        weights: FloatArray = self.V_t[:, :s] @ ((self.U_t[:, :s].T @ self.right) / self.sigma_t[:s])
        return weights

    def bound(self, rank: int, *, p: float | None = None, constant: float | None = 1.0) -> Bound:
        """See :func:`tlstd_lab.theorem.bound`."""
        d = self.n_features
        parameters.integer("rank", rank, high=d, why=" (the number of features)")
        if p is not None:
            parameters.real("p", p, low=1.0, open_high=True)
        if constant is not None:
            parameters.positive("constant", constant)
        kept = min(rank, self.rank_t)
        w, w_t = self.weights, self.solution(rank)
        noise_part = np.linalg.norm((self.U_t[:, :kept].T @ self.residual) / self.sigma_t[:kept])
        bias_part = float(np.linalg.norm(self.V_t[:, kept:].T @ w))
        noise = float(np.linalg.norm(self.residual))
        inverse = 1.0 / self.sigma_t[kept - 1] if kept else 0.0
        stated_noise = noise * inverse if kept == rank else np.inf

        exponents = self._exponents(constant) if p is None else np.array([float(p)])
        constants = self.condition.constants(exponents) if constant is None else np.full(exponents.size, constant)
        norm, squared = (
            self._smallest(rank, exponents, constants, stated_noise, square=square) for square in (False, True)
        )
        scale = float(np.linalg.norm(w) + np.linalg.norm(w_t))
        condition = self.sigma_t[0] * inverse + self.sigma[0] / self.sigma[self.rank - 1] if self.rank else 1.0
        return Bound(
            rank=rank,
            effective_rank=kept,
            error=float(np.linalg.norm(w_t - w)),
            noise_part=float(noise_part),
            bias_part=bias_part,
            noise=float(stated_noise),
            norm=norm,
            squared=squared,
            corrected=self._corrected(rank, self.coefficients[None, :]),
            corrected_picard=self._corrected(
                rank, constants[:, None] * self.sigma[: self.rank] ** (exponents[:, None] - 1.0), exponents
            ),
            assumption_holds=all(self._satisfied(r.p, r.constant) for r in (norm, squared)),
            tolerance=float(16.0 * d * EPS * condition * scale),
        )

    def _corrected(self, rank: int, coefficients: FloatArray, exponents: FloatArray | None = None) -> Corrected:
        """Our bound: the smallest over splits s <= r and rows of coefficients that are at least |vⱼᵀw*|.

        ‖w_{t,r} − w*‖² <= (‖b_t − A_t w*‖/σ̂ᵣ)² + (‖w*_{>s}‖ + min(1, ‖A_t − A‖/(σ_s − σ̂_{r+1})) ‖w*_{<=s}‖)², proved in
        ``docs/experiments.md``. If A_t has fewer than r singular values, r is their number.
        """
        kept = min(rank, self.rank_t)
        noise = float(np.linalg.norm(self.residual)) / self.sigma_t[kept - 1] if kept else 0.0
        following = self.sigma_t[kept] if kept < self.n_features else 0.0
        n = min(kept, self.rank) + 1
        squares = np.pad(coefficients**2, ((0, 0), (1, 1)))
        head = np.sqrt(np.cumsum(squares, axis=1)[:, :n])
        tail = np.sqrt(np.cumsum(squares[:, ::-1], axis=1)[:, ::-1][:, 1 : n + 1])
        gap = np.append(np.inf, self.sigma)[:n] - following
        turn = np.divide(self.perturbation, gap, out=np.ones(n), where=gap > self.perturbation)
        bias = tail + turn * head if kept < self.n_features else np.zeros_like(tail)
        i, s = map(int, np.unravel_index(bias.argmin(), bias.shape))
        return Corrected(
            s,
            float(tail[i, s]),
            float(head[i, s]),
            float(turn[s]),
            float(bias[i, s]),
            float(np.hypot(noise, bias[i, s])),
            None if exponents is None else float(exponents[i]),
        )

    def distances(self, p: FloatArray) -> FloatArray:
        """‖vⱼσⱼᵖ⁻¹ − v̂ⱼσ̂ⱼᵖ⁻¹‖ for each exponent and each j up to the rank of A."""
        k = self.rank
        s, s_t = self.sigma[:k] ** (p[:, None] - 1.0), self.sigma_t[:k] ** (p[:, None] - 1.0)
        apart = ((self.V[:, :k] - self.V_t[:, :k]) ** 2).sum(axis=0)
        lengths: FloatArray = np.sqrt((s - s_t) ** 2 + s * s_t * apart)  # no cancellation between unit vectors
        return lengths

    def _smallest(self, rank: int, p: FloatArray, constants: FloatArray, noise: float, *, square: bool) -> Reading:
        left_out = self.n_features - rank
        lengths = self.distances(p)
        last = self.sigma[rank - 1] if rank <= self.rank else 0.0
        bias = last ** (p - 1.0)
        cap = self.rank * self.sigma[0] ** (p - 1.0)
        difference = (lengths**2 if square else lengths).sum(axis=1) + self.sigma_t[rank - 1] ** (p - 1.0) - bias
        epsilon = np.minimum(cap, difference)
        with np.errstate(invalid="ignore", over="ignore"):
            both = np.nan_to_num(left_out * constants * (epsilon + bias), nan=np.inf)
        i = int(both.argmin())
        C = constants[i]
        drift, bias_term = left_out * C * epsilon[i], left_out * C * bias[i]
        parts = (p[i], C, C * cap[i], C * difference[i], drift, bias_term, noise + both[i])
        return Reading(*map(float, parts))

    def _exponents(self, constant: float | None) -> FloatArray:
        """Exponents to try: the whole interval that satisfies the condition, or what comes closest to it."""
        low, high = 1.0, MOST
        if constant is not None:
            interval = self.condition.exponents(constant)
            if interval.empty:
                trial = np.geomspace(1.0, MOST, N_EXPONENTS)
                return trial[[self.condition.constants(trial).argmin()]]
            low, high = interval.low, max(interval.low, min(interval.high, MOST))
        return np.geomspace(low, high, N_EXPONENTS)

    def _satisfied(self, p: float, constant: float) -> bool:
        return self.condition.constant(p) <= constant * (1.0 + 1e-9)


def compare(
    A: ArrayLike | Any,
    b: ArrayLike,
    A_t: ArrayLike | Any,
    b_t: ArrayLike,
    *,
    alignment: Alignment = "rotations",
    rcond: float = RCOND,
) -> Comparison:
    """Decompose A and A_t and choose their singular vectors alike. Parameters as for :func:`bound`."""
    matrix, right = checked_system(A, b)
    matrix_t, right_t = checked_system(A_t, b_t, ("A_t", "b_t"))
    if matrix.shape[0] != matrix.shape[1] or matrix.shape != matrix_t.shape:
        raise InvalidInputError(
            f"A has shape {matrix.shape} and A_t {matrix_t.shape}: pass two square matrices of one size"
        )
    parameters.real("rcond", rcond, low=0.0, high=1.0, open_high=True)
    parameters.choice("alignment", alignment, get_args(Alignment))
    U, sigma, Vt = np.linalg.svd(matrix)
    U_t, sigma_t, Vt_t = np.linalg.svd(matrix_t)
    V, V_t = Vt.T.copy(), Vt_t.T.copy()
    k, k_t = numerical_rank(sigma, rcond), numerical_rank(sigma_t, rcond)
    if alignment == "rotations":
        _align(U_t, V_t, V, _clusters(sigma_t[:k_t]))
    if alignment != "none":
        _align(U, V, V_t, _clusters(sigma[:k]) if alignment == "rotations" else [slice(j, j + 1) for j in range(k)])
    condition = coefficients_of(U, sigma, right, rcond)
    coefficients = (U[:, :k].T @ right) / sigma[:k]
    weights = V[:, :k] @ coefficients
    return Comparison(
        U, sigma, V, U_t, sigma_t, V_t, k, k_t,
        coefficients=coefficients,
        condition=Picard(condition.singular_values, condition.coefficients, 0.0),
        weights=weights,
        residual=right_t - matrix_t @ weights,
        right=right_t,
        perturbation=float(np.linalg.norm(matrix_t - matrix, 2)),
    )  # fmt: skip


def bound(
    A: ArrayLike | Any,
    b: ArrayLike,
    A_t: ArrayLike | Any,
    b_t: ArrayLike,
    rank: int,
    *,
    p: float | None = None,
    constant: float | None = 1.0,
    alignment: Alignment = "rotations",
    rcond: float = RCOND,
) -> Bound:
    """Each term of the bound of Theorem 1 on ‖w_{t,r} − w*‖, the error itself, and our bound.

    w* = A†b is the limit and w_{t,r} = A†_{t,r} b_t the solution with the r = ``rank`` leading singular values of A_t.
    The stated bound is ‖b_t − A_t w*‖/σ̂ᵣ + (d−r) ε + (d−r) σᵣᵖ⁻¹, where ε is the smaller of rank(A) σ₁ᵖ⁻¹ and
    Σⱼ ‖vⱼσⱼᵖ⁻¹ − v̂ⱼσ̂ⱼᵖ⁻¹‖ + σ̂ᵣᵖ⁻¹ − σᵣᵖ⁻¹; it needs |uᵢᵀb| <= σᵢᵖ. Whether ‖·‖ is a norm or its square here is
    not defined in the paper's source; the proof is right for the norm.

    Parameters
    ----------
    A, A_t : (d, d), dense or scipy.sparse
    b, b_t : (d,)
    rank : int in [1, d]
    p : float >= 1, optional
        If left out: for each reading the best of 64 exponents that satisfy the condition (at most 10; the limit p = 1
        included), or the one that comes closest if none does.
    constant : float > 0, optional
        C of the condition |uᵢᵀb| <= C σᵢᵖ. One is the paper's; None takes the smallest for each exponent, with which
        the condition always holds.
    alignment : "rotations", "signs" or "none"
        How the singular vectors of A and A_t are made alike: signs, and rotations among those of equal singular
        values; signs alone; or as they come.
    rcond : float in [0, 1)
        Singular values at or below ``rcond`` times the largest count as zero.

    Returns
    -------
    Bound
        O(d³). For many ranks use :func:`compare` and its ``bound``.

    Example
    -------
    A small singular direction of A_t is turned towards a large one of A, and the residual is zero: the squared reading
    is then too small.

    >>> A = np.diag([1.0, 0.01, 0.005])
    >>> turn = np.array([[np.cos(0.1), 0.0, np.sin(0.1)], [0.0, 1.0, 0.0], [-np.sin(0.1), 0.0, np.cos(0.1)]])
    >>> w = np.array([1.0, 0.01, 0.005])
    >>> result = bound(A, A @ w, A @ turn, A @ turn @ w, 2, p=2.0)
    >>> result.assumption_holds, round(result.error, 4), round(result.norm.total, 4), round(result.squared.total, 4)
    (True, 0.0949, 0.1105, 0.02)
    >>> result.holds(result.norm.total), result.holds(result.squared.total)
    (True, False)
    """
    comparison = compare(A, b, A_t, b_t, alignment=alignment, rcond=rcond)
    return comparison.bound(rank, p=p, constant=constant)


def _clusters(sigma: FloatArray) -> list[slice]:
    """Runs of equal singular values."""
    if not sigma.size:
        return []
    starts = [0, *(np.flatnonzero(-np.diff(sigma) > CLUSTER * sigma[0]) + 1), sigma.size]
    return [slice(int(i), int(j)) for i, j in pairwise(starts)]


def _align(U: FloatArray, V: FloatArray, target: FloatArray, clusters: Sequence[slice]) -> None:
    """Rotate the columns of V in each cluster, in place and those of U with them, to be closest to the target's."""
    for c in clusters:
        L, _, Rt = np.linalg.svd(V[:, c].T @ target[:, c])
        V[:, c] = V[:, c] @ (L @ Rt)
        U[:, c] = U[:, c] @ (L @ Rt)
