"""Values by least squares, debiased, with what each step and each episode moves them by.

For a mean value x̄ᵀw of some states, h solves Aᵀh = x̄. For any weights w

    x̄ᵀw + (1/T) Σ (hᵀz_t) δ_t,    δ_t = r_{t+1} + γ_{t+1} x'_tᵀw - x_tᵀw,

differs from the exact x̄ᵀA⁻¹b by (x̄ - Aᵀh)ᵀ(w - A⁻¹b) only, a product of two errors. So w may be regularised, as is good
for prediction, and the value is not. (hᵀz_t) δ_t is what step t moves the value by; δ_t is taken by weights that have
not seen the episode, which makes the sum over episodes a jackknife. The factors hᵀz_t are density ratios: how often the
target policy is where step t was, in units of how often the log is there.

C. Shi, S. Zhang, W. Lu, R. Song, "Statistical inference of the value function for reinforcement learning in
infinite-horizon settings", JRSS B 84, 2022. N. Kallus, M. Uehara, "Double reinforcement learning", JMLR 21, 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import safe_unit
from tlstd.evaluation.episode_values import EpisodeValue, degrees, standard_error
from tlstd.evaluation.steps import Steps
from tlstd.evaluation.systems import WHOLE, System
from tlstd.krylov.arnoldi import Arnoldi

RIDGE = 0.1
"""Of the adjoint system, in steps: its matrix gets the mean ‖x‖² times so much over T, none on constant features.

It is as if every feature had been seen a tenth of a time more. What a log of few episodes says about features that it
hardly has is then not divided by nearly nothing; the value moves by a part of 1/T.
"""
DIMENSIONS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Krylov dimensions that are tried one after the other."""
SETTLED = 0.05
"""Standard errors by which the value may still move from one dimension to the next, twice in a row."""
STEADY = 0.05
"""Share of itself by which the standard error may still move."""


class Query(NamedTuple):
    """States whose weighted sum of values is asked for."""

    x: FloatArray
    """(n,): Σ weights_i φ(s_i)."""
    on: Callable[[FloatArray], FloatArray]
    """(M, k): values of the states, without offsets, by weights (n, k)."""
    weights: FloatArray
    """(M,)."""
    fold: IntArray
    """(M,): of the episode that each of them came with; ``WHOLE`` if they are given."""
    unit: IntArray | None
    """(M,): what they count for in the standard error; None if they are given."""
    offsets: tuple[FloatArray, ...]
    """(M,) for each right-hand side: what comes on top."""


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A value by least squares."""

    found: EpisodeValue
    """Debiased, with what each episode (or block) moves it by."""
    plain: float
    """The mean of the regularised values that it was debiased from."""
    factors: FloatArray
    """(N,): hᵀz_t."""
    errors: FloatArray
    """(N,): δ_t by weights that have not seen the episode."""
    dimension: int
    """Of the Krylov space of h."""
    settled: bool
    """Whether the value had stopped moving at that dimension."""

    @property
    def density_ratios(self) -> FloatArray:
        """(N,): how often the policy is where step t was, over how often the log is; their mean is 1."""
        mean = float(self.factors.mean()) if self.factors.size else 0.0
        return self.factors / mean if mean != 0.0 else np.zeros_like(self.factors)

    def mixed(self, other: LeastSquares, share: float) -> LeastSquares:
        """This value plus ``share`` times another one, of another right-hand side of the same system."""
        a, b = self.found, other.found
        found = EpisodeValue(a.value + share * b.value, a.contributions + share * b.contributions, a.effective)
        errors = self.errors + share * other.errors
        return replace(self, found=found, plain=self.plain + share * other.plain, errors=errors)


def units(steps: Steps) -> tuple[IntArray, int]:
    """What the standard error is taken over, for each step, and how many there are: episodes, or blocks."""
    if steps.n_blocks:
        return steps.group, steps.n_groups
    return steps.episode, steps.log.n_episodes


def least_squares(
    system: System, query: Query, folds: IntArray, weights: list[FloatArray], lambda_: float
) -> list[LeastSquares]:
    """The value of a query for each right-hand side of a system.

    Parameters
    ----------
    system : System
    query : Query
    folds : (F + 1,)
        That each column of the weights has not seen, ``WHOLE`` last.
    weights : list of (n, F + 1)
        For each right-hand side.
    lambda_ : float

    Returns
    -------
    list of LeastSquares
        Cost: two passes over the steps for each dimension of the adjoint's Krylov space.
    """
    steps = system.steps
    sides = [_side(system, query, own, folds, side) for side, own in enumerate(weights)]
    system.shift = RIDGE / max(1, len(steps)) * system.square * (1.0 - system.constant)
    try:
        adjoint = Arnoldi(
            lambda V, columns: system.rmatvec(V, [WHOLE] * len(columns), [lambda_] * len(columns)), query.x[:, None]
        )
        before: list[LeastSquares] = []
        calm, found = 0, []
        with np.errstate(over="ignore", invalid="ignore"):  # divergence shows as an infinite width
            for dimension in DIMENSIONS:
                adjoint.extend(dimension)
                u = system.traces(adjoint.solutions(dimension), [lambda_])[:, 0]
                found = [_value(side, u, steps, dimension) for side in sides]
                calm = calm + 1 if before and all(map(_calm, before, found)) else 0
                if adjoint.paths[0].finished or calm >= 2:
                    break
                before = found
    finally:
        system.shift = None
    settled = adjoint.paths[0].finished or calm >= 2
    return [replace(each, settled=settled) for each in found]


class _Side(NamedTuple):
    """What does not depend on h, for one right-hand side."""

    plain: float
    whole: FloatArray
    """(N,): δ_t by the weights of all episodes."""
    own: FloatArray
    """(N,): by those that have not seen the episode."""
    starts: FloatArray
    """(units,): what the states that are asked for add."""
    spread: FloatArray
    """(units,): variance of that, if all of them are equally noisy; in units of ``unit``²."""
    unit: float


def _side(system: System, query: Query, weights: FloatArray, folds: IntArray, side: int) -> _Side:
    steps, rewards = system.steps, system.rewards[side]
    now, after, now_all, after_all = system.by_others(weights, folds).T
    own = rewards - now + steps.discounts * after
    whole = rewards - now_all + steps.discounts * after_all
    values = query.on(weights) + query.offsets[side][:, None]
    plain = float(query.weights @ values[:, -1])
    _, n = units(steps)
    starts: FloatArray = np.zeros(n)
    spread: FloatArray = np.zeros(n)
    unit = safe_unit(own, values[:, -1])
    if query.unit is not None:
        column = np.searchsorted(folds[:-1], query.fold) if folds.size > 2 else np.full(query.fold.size, -1)
        mine = values[np.arange(values.shape[0]), column]
        centred = mine - query.weights @ mine / query.weights.sum()
        starts = np.bincount(query.unit, query.weights * centred, n).astype(np.float64)
        variance = float(np.var(mine / unit))
        spread = np.bincount(query.unit, query.weights**2, n).astype(np.float64) * variance
    return _Side(plain, whole, own, starts, spread, unit)


def _value(side: _Side, u: FloatArray, steps: Steps, dimension: int) -> LeastSquares:
    unit, n = units(steps)
    T = max(1, u.size)
    moved = np.bincount(unit, u * side.own / T, n) + side.starts
    noise = float(np.mean((side.own / side.unit) ** 2)) if u.size else 0.0
    spread = np.bincount(unit, u * u, n) * (noise / T**2) + side.spread
    found = EpisodeValue(side.plain + float(u @ side.whole) / T, moved - moved.mean(), degrees(spread) + 1.0)
    return LeastSquares(found, side.plain, u, side.own, dimension, False)


def _calm(before: LeastSquares, after: LeastSquares) -> bool:
    error, was = standard_error(after.found.contributions), standard_error(before.found.contributions)
    moved = abs(after.found.value - before.found.value)
    still = moved <= SETTLED * error or moved <= 1e-9 * abs(after.found.value)
    return still and (error == was or abs(error - was) <= STEADY * error)
