"""The dimension of a Krylov space, chosen by held-out data.

The systems of all folds are multiplied in lock-step, one pass over the samples for each dimension, and x_tᵀq of the
held-out samples comes out of the same pass. So scores of all dimensions up to m cost m passes and O(N·m) sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.units import safe_unit
from tlstd.data import held_out
from tlstd.data.held_out import Folds, Reference, Targets
from tlstd.krylov.arnoldi import Arnoldi, KrylovPath, weakly
from tlstd.krylov.operator import HeldOut, SampleOperator
from tlstd.krylov.samples import DimensionScores
from tlstd.krylov.search import MAX_DIMENSION
from tlstd.krylov.search import fixed_dimension as fixed_dimension
from tlstd.krylov.search import patience as patience

FOLDS = 5
"""Folds of episodes, or of blocks where there are too few."""


class DimensionChoice(NamedTuple):
    """The dimension chosen for one target, and by which scores."""

    dimension: int
    decided: bool
    """False if the data cannot tell: the dimension is then :func:`fixed_dimension`."""
    scores: FloatArray
    """Mean squared error for held-out states of the dimensions 1, 2, …; empty if undecided."""
    standard_errors: FloatArray
    """Of the scores, over episodes or blocks."""
    note: str
    """What the scores are made of, or why there are none."""

    def plot(self, axes: Any) -> None:
        """Draw scores with standard errors against the dimension on matplotlib's ``axes``."""
        axes.errorbar(np.arange(1, self.scores.size + 1), self.scores, self.standard_errors, marker=".", capsize=2)
        axes.axvline(self.dimension, ls=":", c="grey")
        axes.set_xlabel("dimension")
        axes.set_ylabel("squared error, held out")


def choose_dimensions(operator: SampleOperator) -> tuple[DimensionChoice, ...]:
    """The dimension of least held-out error for each target.

    By the rule of :mod:`tlstd.data.held_out`, as ``tlstd.evaluation.choose``, with ``FOLDS`` folds; the reference,
    where returns have to be completed, is the solution of :func:`fixed_dimension` dimensions. The search stops once the
    score of every target has been above its least one for :func:`patience` dimensions.

    Where samples were folded, and enough of them were predicted before they came (:mod:`tlstd.krylov.folding`), the
    dimension of least error in these predictions, which needs no folds and no search.

    Parameters
    ----------
    operator : SampleOperator
        The system of all samples.
    """
    samples = operator.samples
    if samples.old is not None and samples.old.forecasts is not None and samples.old.forecasts.enough:
        return _by_forecasts(samples.old.forecasts)
    fixed = fixed_dimension(samples.n_samples)
    if not samples.n_kept:
        return _undecided(fixed, operator.n_targets, "there are no samples")
    rewards, discounts, trace_discounts, rhos = samples.columns()
    weights = None
    if operator.beta is not None:
        weights = (1.0 - operator.beta) ** np.arange(samples.n_kept - 1.0, -1.0, -1.0)
    folds = held_out.make_folds(discounts, trace_discounts, FOLDS, weights)
    if folds.n_folds < 2:
        return _undecided(fixed, operator.n_targets, f"{samples.n_kept} samples cannot be dealt into folds")
    search, reference = None, None
    if held_out.needs_reference(discounts, rhos, folds, weights):
        if held_out.are_too_few(folds):  # whatever a reference says, which takes most of the time
            reference = Reference(np.zeros(rewards.shape), np.zeros(rewards.shape))
        else:
            search = _Search(operator.held_out(HeldOut(folds.fold, folds.cut)), folds)
            reference = search.reference(fixed)
    targets = held_out.held_out_targets(rewards, discounts, rhos, folds, weights, reference=reference)
    if targets.why is not None:
        return _undecided(fixed, operator.n_targets, targets.why)
    search = search or _Search(operator.held_out(HeldOut(folds.fold, folds.cut)), folds)
    return search.choose(targets)


def _by_forecasts(forecasts: DimensionScores) -> tuple[DimensionChoice, ...]:
    _, _, _, n_groups, n_states = forecasts.sizes
    note = f"Returns of {n_states:,.0f} states, predicted before they came, in {n_groups:,.0f} episodes or blocks."
    choices = []
    for target in range(forecasts.squares.size):
        means, standard_errors, scale = forecasts.scores(target)
        choices.append(DimensionChoice(1 + held_out.least(means, scale), True, means, standard_errors, note))
    return tuple(choices)


def _undecided(dimension: int, n_targets: int, why: str) -> tuple[DimensionChoice, ...]:
    none = np.zeros(0)
    return (DimensionChoice(dimension, False, none, none, f"Nothing was chosen: {why}."),) * n_targets


class _Search:
    """Krylov paths of all targets in all folds, and predictions for what each fold holds out."""

    def __init__(self, operator: SampleOperator, folds: Folds) -> None:
        self.operator, self.folds = operator, folds
        self.numbers = np.unique(folds.fold)
        self.mine = [np.flatnonzero(folds.fold == number) for number in self.numbers]
        self.arnoldi = Arnoldi(weakly(self._product), operator.b(systems=self.numbers))  # paths of one target together
        self.units: list[float] = []
        self.on_basis = [np.empty((0, mine.size)) for _ in range(operator.n_targets) for mine in self.mine]

    def _product(self, V: FloatArray, columns: Sequence[int]) -> FloatArray:
        n_folds = self.numbers.size
        systems = self.numbers[np.asarray(columns) % n_folds]
        values = np.empty((self.operator.samples.n_kept, V.shape[1]))
        products = self.operator.matvec(V, systems=systems, values=values)
        for i, c in enumerate(columns):
            m = self.arnoldi.paths[c].dimension
            table = self.on_basis[c]
            if m == table.shape[0]:
                table = np.empty((2 * m + 8, table.shape[1]))
                table[:m] = self.on_basis[c]
                self.on_basis[c] = table
            table[m] = values[self.mine[c % n_folds], i]
        return products

    def _paths(self, target: int) -> list[tuple[KrylovPath, FloatArray]]:
        """Path and held-out xᵀq of each fold."""
        some = slice(target * self.numbers.size, (target + 1) * self.numbers.size)
        return list(zip(self.arnoldi.paths[some], self.on_basis[some], strict=True))

    def reference(self, dimension: int) -> Reference:
        """Values by the solutions of one dimension, each sample's by that of its fold."""
        self.arnoldi.extend(dimension)
        W = self.arnoldi.solutions(dimension)
        shape = self.operator.samples.n_kept, self.operator.n_targets
        values, next_values = np.zeros(shape), np.zeros(shape)
        on_x, on_next = self.operator.values(W)
        for c in range(W.shape[1]):
            target, fold = divmod(c, self.numbers.size)
            values[self.mine[fold], target] = on_x[self.mine[fold], c]
            next_values[self.mine[fold], target] = on_next[self.mine[fold], c]
        return Reference(values, next_values)

    def choose(self, targets: Targets) -> tuple[DimensionChoice, ...]:
        """Extend the paths until no score falls any more, and choose."""
        sizes: FloatArray = np.bincount(self.folds.group, targets.weights, self.folds.n_groups).astype(np.float64)
        n_targets = self.operator.n_targets
        self.units = [safe_unit(column) for column in targets.values.T]
        errors: list[list[FloatArray]] = [[] for _ in range(n_targets)]
        searching = set(range(n_targets))
        for m in range(1, MAX_DIMENSION + 1):
            self.arnoldi.extend(m)  # those of targets that have been settled go on: they share the pass
            for target in sorted(searching):
                errors[target].append(self._errors(target, m, targets))
                totals = np.array([error.sum() for error in errors[target]])
                paths = self._paths(target)  # a reference may have made them longer than m
                finished = all(path.finished and path.dimension <= m for path, _ in paths)
                best = 1 + int(np.argmin(totals))
                if finished or m - best >= patience(best):
                    searching.discard(target)
            if not searching:
                break
        return tuple(self._choice(target, np.array(errors[target]).T, sizes, targets) for target in range(n_targets))

    def _errors(self, target: int, m: int, targets: Targets) -> FloatArray:
        """Weighted sum of squared errors in each group, (groups,), of the solutions of dimension m, in units²."""
        errors = np.zeros(self.folds.n_groups)
        for (path, on_basis), mine in zip(self._paths(target), self.mine, strict=True):
            y = path.coordinates(m)
            wrong = (y @ on_basis[: y.size] - targets.values[mine, target])[:, None] / self.units[target]
            errors += held_out.group_errors(
                wrong, np.zeros(mine.size), targets.weights[mine], self.folds.group[mine], errors.size
            )[:, 0]
        return errors

    def _choice(self, target: int, errors: FloatArray, sizes: FloatArray, targets: Targets) -> DimensionChoice:
        means, standard_errors = held_out.scores(errors, sizes)
        unit = self.units[target]
        scale = float(np.average((targets.values[:, target] / unit) ** 2, weights=targets.weights))
        what = "Returns" if targets.kind == "returns" else "Returns, completed by a reference,"
        note = f"{what} of {np.count_nonzero(targets.weights):,} states, {self.folds}."
        best, square = 1 + held_out.least(means, scale), unit**2
        return DimensionChoice(best, True, means * square, standard_errors * square, note)
