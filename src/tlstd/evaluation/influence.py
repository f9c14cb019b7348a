"""What each step and each episode of a log has moved an estimated value by.

With h from Aᵀh = x the value xᵀw is a sum over steps, and (hᵀz_t) δ_t is what step t moves it by (see
:mod:`tlstd.krylov.adjoint`). Summed by episodes, that is the spread of the value over other logs of the same kind; the
factors hᵀz_t are how often the policy asked for is where step t was, in units of how often the log is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, Matrix, as_matrix
from tlstd.core.units import safe_unit
from tlstd.data.held_out import Folds, make_folds
from tlstd.errors import InvalidInputError
from tlstd.evaluation.episode_values import EpisodeValue, degrees, effective_number, standard_error
from tlstd.krylov.adjoint import WHOLE, AdjointSystem
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.krylov.operator import SampleOperator

RIDGE = 1e-9
"""Of the systems behind an interval, in units of the mean ‖x‖²: against singular matrices, not for prediction."""
FOLDS = 5
"""Folds of episodes by which the errors δ_t are those of weights that have not seen the episode."""
DIMENSIONS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Krylov dimensions that are tried one after the other."""
SETTLED = 0.05
"""Standard errors by which the value may still move from one dimension to the next, twice in a row."""
STEADY = 0.05
"""Share of itself by which the standard error may still move."""
InfluenceKind: TypeAlias = Literal["sandwich", "debiased"]


class Asked(NamedTuple):
    """States whose mean value is asked for."""

    X: Matrix
    """(M, d) features."""
    drawn: IntArray | None = None
    """(M,): the step of the log that each of them came with, counted from 0; None if the states are given."""
    offsets: FloatArray | None = None
    """(M,): what comes on top of features times weights; 0 if left out."""


@dataclass(frozen=True, eq=False, repr=False)
class Influence:
    """What each step and each group of steps has moved a value by; made by :func:`influences`.

    A group is an episode, or a block of one that is too long to stand for itself.

    Example
    -------
    >>> from tlstd import random_walk
    >>> steps = random_walk(5, gamma=0.9).sample(2_000, np.random.default_rng(0))
    >>> model = KrylovLSTD(5, lambda_=0.5, dimension=5)
    >>> model.update_many(steps)
    >>> (found,) = influences(model, [Asked(np.eye(5)[[2]])])
    >>> print(found)
    <Influence on 0.00896, standard error 0.035: 2,000 steps in 207 groups, worth 117 equal ones>
    """

    value: float
    """xᵀw + (1/T) Σ (hᵀz_t) δ_t."""
    factors: FloatArray
    """(N,): hᵀz_t."""
    errors: FloatArray
    """(N,): δ_t, of weights that have not seen the step's fold."""
    fitted_errors: FloatArray
    """(N,): δ_t of the weights that were fitted to all steps."""
    starts: FloatArray
    """(G,): what the start states of each group add, by the first weights; 0 where states are given."""
    fitted_starts: FloatArray
    """(G,): the same by the second ones."""
    spread: FloatArray
    """(G,): the variance that each group has if all steps are equally noisy, for :attr:`degrees`; in units of unit²."""
    groups: Folds
    kind: str
    dimension: int
    """Of the Krylov spaces."""
    settled: bool
    """Whether the value had stopped moving at that dimension."""
    adjoint: FloatArray
    """(n,): h, over the model's ``seen_ids``; of the first fold's system, where it is "debiased"."""
    unit: float = 1.0
    """A power of two; 1 unless errors are so small or large that their squares are not floats."""
    names: tuple[Any, ...] | None = None
    """(G,): the log's names of the episodes that the groups are, and the steps of those that are blocks."""

    @cached_property
    def steps(self) -> FloatArray:
        """(N,): what each step moves the value by, (hᵀz_t) δ_t / T."""
        moved: FloatArray = self.factors * self.errors / max(1, self.factors.size)
        return moved

    @cached_property
    def contributions(self) -> FloatArray:
        """(G,): what each group moves the value by, about their mean."""
        by_group = np.bincount(self.groups.group, self.steps, self.groups.n_groups) + self.starts
        centred: FloatArray = by_group - by_group.mean() if by_group.size else by_group
        return centred

    @property
    def standard_error(self) -> float:
        """Of the value: √(G/(G-1) Σ c_g²); infinite for a single group."""
        return standard_error(self.contributions)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error, by Satterthwaite: (Σ v_g)²/Σ v_g² - 1 with ``spread`` v."""
        return degrees(self.spread)

    @property
    def found(self) -> EpisodeValue:
        """The value with what each group moves it by, for :func:`tlstd.evaluation.interval_of`."""
        return EpisodeValue(self.value, self.contributions, self.degrees + 1.0)

    @property
    def density_ratios(self) -> FloatArray:
        """(N,): how often the policy visits where step t was, over how often the log does; their mean is 1."""
        mean = float(self.factors.mean()) if self.factors.size else 0.0
        ratios: FloatArray = self.factors / mean if mean != 0.0 else np.zeros_like(self.factors)
        return ratios

    @property
    def effective_steps(self) -> float:
        """Number of equally important steps that would say as much, (Σ u_t)²/Σ u_t² with the factors u."""
        return effective_number(self.factors)

    @property
    def effective_groups(self) -> float:
        """The same for groups, by what each is expected to add to the variance: ``degrees`` + 1."""
        return self.degrees + 1.0

    def most_influential(self, count: int = 5) -> list[tuple[Any, float]]:
        """Names (numbers, where there are none) of the groups that move the value most, and by how much."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")[: parameters.integer("count", count)]
        names = range(self.groups.n_groups) if self.names is None else self.names
        return [(names[g], float(self.contributions[g])) for g in order.tolist()]

    def plug_in(self) -> Influence:
        """The same with errors of the fitted weights, as in textbooks: too small where features are many."""
        return replace(self, errors=self.fitted_errors, starts=self.fitted_starts, kind="plug-in")

    def named(self, names: Sequence[Any]) -> Influence:
        """The same with names of the groups."""
        return replace(self, names=tuple(names))

    def __repr__(self) -> str:
        found = f"{self.value:.3g}, standard error {self.standard_error:.2g}"
        size = f"{self.factors.size:,} steps in {self.groups.n_groups:,} groups"
        return f"<Influence on {found}: {size}, worth {self.effective_groups:.0f} equal ones>"


def influences(model: KrylovLSTD, asked: Sequence[Asked], *, kind: InfluenceKind = "sandwich") -> list[Influence]:
    """The influence of steps and episodes on mean values of states, one for each set of them.

    The systems behind it have a ridge of 10⁻⁹ mean ‖x‖², none on constant features, whatever regularises the model's
    own predictions. They are solved in Krylov spaces of growing dimension, until no value moves by more than 0.05 of
    its standard error, and no standard error by more than 5%, from one of ``DIMENSIONS`` to the next, twice in a row,
    or they are solved exactly.

    Parameters
    ----------
    model : KrylovLSTD
        That has all its samples (no ``beta``, no ``max_samples``). Its λ counts, its dimension and ridge do not.
    asked : sets of states
    kind : "sandwich" or "debiased"
        "sandwich": h and the value from all episodes, errors δ_t from weights that have not seen the episode's fold,
        which makes the sum over episodes a jackknife. "debiased": weights and h both from the other one of two halves.

    Returns
    -------
    list of Influence
        Cost: m passes over the samples with six vectors and one more for each set, where m is the dimension reached.
    """
    parameters.choice("kind", kind, get_args(InfluenceKind))
    operator = operator_of(model)
    folds = make_folds(*operator.samples.discounts(), 2 if kind == "debiased" else FOLDS)
    sets = [asked_set(given, model, folds) for given in asked]
    crossed = range(folds.n_folds) if kind == "debiased" and folds.n_folds > 1 else [WHOLE]
    X = np.column_stack([each.mean_without(fold) for fold in crossed for each in sets])
    systems = [fold for fold in crossed for _ in sets]
    system = AdjointSystem(operator.with_ridge(RIDGE), folds, X, systems)
    before: list[Influence] = []
    calm = 0
    with np.errstate(over="ignore", invalid="ignore"):  # what diverges is said by its width
        for dimension in DIMENSIONS:
            system.extend(dimension)
            found = _measured(system, sets, kind)
            calm = calm + 1 if before and all(map(_calm, before, found)) else 0
            if system.finished or calm >= 2:
                break
            before = found
    settled = system.finished or calm >= 2
    return [replace(each, settled=settled) for each in found]


def operator_of(model: KrylovLSTD) -> SampleOperator:
    """The model's operator, if it has all its samples."""
    if not isinstance(model, KrylovLSTD):
        raise InvalidInputError(f"influence was asked of {type(model).__name__}: it is known of KrylovLSTD")
    operator = model.operator()
    samples = operator.samples
    if not samples.n_samples or samples.n_left or model.beta is not None or model.n_targets != 1:
        raise InvalidInputError(
            "influence is known of a model that has samples, all of them with equal weight, and one target: use "
            "KrylovLSTD without beta, max_samples and n_targets"
        )
    return operator


class AskedSet(NamedTuple):
    """States over the features seen, with the folds and groups that they came with."""

    X: Matrix
    fold: IntArray
    """(M,); -1 for given states."""
    group: IntArray | None
    """(M,)."""
    offsets: FloatArray
    """(M, 1)."""

    def mean_without(self, fold: int) -> FloatArray:
        """The mean row of those that did not come with a fold."""
        kept = self.X if fold == WHOLE or self.group is None or (self.fold == fold).all() else self.X[self.fold != fold]
        return np.asarray(kept.mean(axis=0), dtype=np.float64).ravel()


def asked_set(asked: Asked, model: KrylovLSTD, folds: Folds) -> AskedSet:
    """What is asked, checked."""
    X = as_matrix(asked.X, "X")
    if X.shape[1] != model.n_features or not X.shape[0]:
        raise InvalidInputError(f"X has shape {X.shape}: pass rows of {model.n_features} features")
    seen = X[:, model.seen_ids]
    offsets = np.zeros((X.shape[0], 1)) if asked.offsets is None else asked.offsets[:, None]
    if asked.drawn is None:
        return AskedSet(seen, np.full(X.shape[0], WHOLE), None, offsets)
    drawn = np.asarray(asked.drawn)
    if drawn.shape != (X.shape[0],) or drawn.min() < 0 or drawn.max() >= folds.group.size:
        raise InvalidInputError(f"drawn has shape {drawn.shape}: pass the number of a step for each of the states")
    return AskedSet(seen, folds.fold[drawn], folds.group[drawn], offsets)


def is_calm(before: float, value: float, error: float) -> bool:
    """Whether a value with this standard error has hardly moved."""
    moved = abs(value - before)
    return moved <= SETTLED * error or moved <= 1e-9 * abs(value)


def is_steady(before: float, error: float) -> bool:
    """Whether a standard error has hardly moved."""
    return error == before or abs(error - before) <= STEADY * error


def _calm(before: Influence, after: Influence) -> bool:
    error = after.standard_error
    return is_calm(before.value, after.value, error) and is_steady(before.standard_error, error)


def _measured(system: AdjointSystem, sets: list[AskedSet], kind: InfluenceKind) -> list[Influence]:
    """The influence on each set at the present dimension."""
    W, H, k = system.weights(), system.adjoints(), len(sets)
    U, E = system.trace_values(H), system.errors(W)
    T, folds, crossed = E.shape[0], system.folds, U.shape[1] > k
    own, whole = system.own(E), E[:, -1]
    found = []
    for i, asked in enumerate(sets):
        u = system.own(U[:, i::k]) if crossed else U[:, i]
        V = np.asarray(asked.X @ W) + asked.offsets
        value, starts = _starts(V, asked, folds, crossed)
        value += float((u * (own if crossed else whole)).sum()) / T
        fitted = _starts(V[:, -1:], asked, folds, False)[1]
        spread, unit = _spread(u, own, V[:, -1], asked, folds)
        by_step, by_group = (u, own, whole), (starts, fitted, spread)
        found.append(Influence(value, *by_step, *by_group, folds, kind, system.dimension, False, H[:, i], unit))
    return found


def _spread(
    u: FloatArray, errors: FloatArray, values: FloatArray, asked: AskedSet, folds: Folds
) -> tuple[FloatArray, float]:
    """(G,): variances of the groups' contributions if all errors, and all values of start states, are equally noisy.

    And the unit, of whose square they are multiples.
    """
    unit = safe_unit(errors, values)
    errors, values = errors / unit, values / unit
    spread = np.bincount(folds.group, u * u, folds.n_groups) * float(np.mean(errors * errors)) / u.size**2
    if asked.group is not None:
        spread = spread + np.bincount(asked.group, None, folds.n_groups) * float(values.var()) / values.size**2
    return spread, unit


def _starts(V: FloatArray, asked: AskedSet, folds: Folds, crossed: bool) -> tuple[float, FloatArray]:
    """The mean value of the states by V (M, folds + 1), and what those of each group add to it."""
    M, means = V.shape[0], V.mean(axis=0)
    if asked.group is None:
        if not crossed:
            return float(means[-1]), np.zeros(folds.n_groups)
        shares = np.bincount(folds.group, None, folds.n_groups) / folds.group.size
        of_group = means[folds.fold[np.flatnonzero(folds.cut)]]
        mean = float(shares @ of_group)
        return mean, shares * (of_group - mean)
    column = asked.fold if V.shape[1] > 1 else np.zeros(M, dtype=np.int64)
    own = V[np.arange(M), column]
    centre = own.mean() if crossed else means[column]
    by_group: FloatArray = np.bincount(asked.group, (own - centre) / M, folds.n_groups).astype(np.float64, copy=False)
    return float(own.mean() if crossed else means[-1]), by_group
