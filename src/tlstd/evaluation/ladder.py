"""The ways of having a value that a log can carry, from the one that assumes least to those that assume more.

:func:`climb` makes a row of each for one question about one log; the answer is the first one that carries. Values that
rest on models are cross-fitted: those of an episode are by models of other episodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation.episode_values import EpisodeValue, effective_number, episode_value, visited_value
from tlstd.evaluation.families import Offer, for_actions
from tlstd.evaluation.fits import Fit, Kept, Starts, fit_actions, fit_pairs, fit_states
from tlstd.evaluation.intervals import NOT_A_CHANGE, NOT_COVERED, Interval, interval_of
from tlstd.evaluation.least_squares import LeastSquares, units
from tlstd.evaluation.policies import Target, fitted_probabilities, of_logged_actions
from tlstd.evaluation.question import Question, offered
from tlstd.evaluation.rungs import (
    ACTION_VALUES,
    DOUBLY_ROBUST,
    LEAST_SQUARES,
    MEAN_OF_RETURNS,
    OF_BLOCKS,
    RETURNS_WITH_TAILS,
    SAMPLING,
    WITH_RATIOS,
    Rung,
)
from tlstd.evaluation.silence import DRAWN, Gaps, Limits, Silence, between, largest, seen_limits
from tlstd.evaluation.steps import HIDDEN, Steps, backward
from tlstd.features.base import FeatureMap
from tlstd.logs.log import Log

ENOUGH = 10
"""Effective sample size of the final weights from which the answer can stand on them (``docs/trust.md``)."""
MATTERS = 0.1
"""Of the half-width: tails that move returns by less on average need no influence of the model's weights."""
TRIED = 20
"""Lengths of cut episodes at which complete ones are cut."""
FEWEST_MERGED = 10
"""Blocks of a stream that are left when neighbours are joined because they depend on each other."""

Report = Callable[[str, float], None]
"""Told what is being done, and how much of all is done."""


@dataclass(frozen=True, eq=False)
class Row:
    """A way of having the value, with what it found: a line of the table."""

    name: str
    rung: Rung
    values: dict[str, float]
    """Mean value of each set of start states, by name."""
    seconds: float
    note: str
    interval: Interval | None = None
    """Of the value of the first set, where there is one."""
    plain: float | None = None
    """What the value of the first set was debiased from, the mean of the model's values; None if it was not."""
    found: tuple[EpisodeValue, ...] = ()
    """What each episode moves the value by; of an answer with unsupported actions, for LOW and for HIGH."""

    @property
    def value(self) -> float:
        """The value of the first set."""
        return next(iter(self.values.values()), float("nan"))

    @property
    def middle(self) -> EpisodeValue | None:
        """What each episode moves the value by; of two ends their mean."""
        if len(self.found) < 2:
            return self.found[0] if self.found else None
        a, b = self.found
        return EpisodeValue((a.value + b.value) / 2, (a.contributions + b.contributions) / 2, a.effective)


@dataclass(frozen=True, eq=False)
class Tails:
    """What values behind the cuts of episodes add to the mean of returns."""

    added: float
    """To the value."""
    size: float
    """Mean absolute share of a return."""
    matter: bool
    """Whether that is more than ``MATTERS`` of the half-width."""
    bias: EpisodeValue | None
    """What the model's values would add in error, by cutting complete episodes at the same lengths; None: unknown."""


class Fits(Protocol):
    """What a case learns by: from a log in this process, or from parts of one elsewhere."""

    def cells(self, case: Case, joint: bool) -> FeatureMap:
        """Features by which it is told what a log has; ``joint``: of states and continuous actions side by side."""
        ...

    def ratios(self, case: Case, target: Target) -> FloatArray:
        """(len(log),): importance ratios, by logged probabilities."""
        ...

    def states(self, case: Case, rhos: FloatArray | None) -> Fit:
        """Values of states."""
        ...

    def actions(self, case: Case, target: Target) -> Fit:
        """Action values of discrete actions."""
        ...

    def pairs(self, case: Case, target: Target) -> Fit:
        """Action values of continuous actions."""
        ...


class LocalFits:
    """From the case's own log; families of features are fitted, and states encoded, once for all questions about it."""

    def __init__(self) -> None:
        self._offered: dict[bool, Offer] = {}
        self._kept: Kept = {}

    def offered(self, case: Case, joint: bool = False) -> Offer:
        """The families of features."""
        if joint not in self._offered:
            self._offered[joint] = offered(case.question, case.log, joint=joint)
        return self._offered[joint]

    def cells(self, case: Case, joint: bool) -> FeatureMap:
        """Those of the first family, which are tiles if there is a choice."""
        return self.offered(case, joint).cells

    def ratios(self, case: Case, target: Target) -> FloatArray:
        """(len(log),): importance ratios."""
        log = case.log
        assert log.probabilities is not None
        chances = of_logged_actions(target, log, 0 if case.continuous else target.n_actions(log))
        ratios: FloatArray = chances / log.probabilities
        return ratios

    def states(self, case: Case, rhos: FloatArray | None) -> Fit:
        """Values of states."""
        return fit_states(case.log, self.offered(case), case.gamma, rhos, self._kept)

    def actions(self, case: Case, target: Target) -> Fit:
        """Action values of discrete actions."""
        log = case.log
        offer = for_actions(self.offered(case), log.states, len(log), target.n_actions(log))
        return fit_actions(log, offer, case.gamma, target, case.cells, self._kept)

    def pairs(self, case: Case, target: Target) -> Fit:
        """Action values of continuous actions."""
        log, offer = case.log, self.offered(case, True)
        assert log.actions is not None
        offer = for_actions(offer, np.hstack([log.states, log.actions]), len(log), 1)
        return fit_pairs(log, offer, case.gamma, target, self.cells(case, True))


@dataclass(eq=False)
class Case:
    """One question about one log, with all that was found for it."""

    question: Question
    log: Log
    gamma: float
    target: Target | None
    sets: list[Starts]
    limits: Limits | None
    report: Report = lambda text, share: None
    policy_name: str = "the logged policy"
    fits: Fits = field(default_factory=lambda: LocalFits())
    """What it learns by."""
    sample: Log | None = None
    """Of a log whose observations are somewhere else: a part that is here."""
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ratios: FloatArray | None = None
    """(len(log),): importance ratios."""
    known: bool = True
    """Whether these are of logged probabilities."""
    states: Fit | None = None
    """Values of states, on-policy or with ratios."""
    actions: Fit | None = None
    """Action values of the target policy."""
    by_state: LeastSquares | None = None
    by_action: list[LeastSquares] = field(default_factory=list)
    silence: Silence | None = None
    tails: Tails | None = None
    effective: float = float("nan")
    """Effective sample size of the final weights of episodes."""
    blocks: IntArray | None = None
    """(groups of steps,): which block of the mean of returns each group is in, -1 if in none; None without blocks."""

    @property
    def continuous(self) -> bool:
        """Whether actions are numbers."""
        return self.log.actions is not None and self.log.actions.ndim == 2

    @property
    def seen(self) -> Log:
        """The log, or the part of it whose observations are here."""
        return self.log if self.sample is None else self.sample

    @property
    def model(self) -> Fit:
        """What single states are predicted by."""
        found = self.states if self.actions is None else self.actions
        assert found is not None
        return found

    def steps_of(self, found: EpisodeValue) -> Steps:
        """The steps whose groups a value was found over, as far as its size tells; else those of the model."""
        fits = [fit for fit in (self.states, self.actions) if fit is not None]
        size = found.contributions.size
        return next((fit.steps for fit in fits if fit.steps.n_groups == size), self.model.steps)

    @cached_property
    def cells(self) -> FeatureMap:
        """Features of states by which it is told what the log has."""
        return self.fits.cells(self, False)

    @property
    def has_starts(self) -> bool:
        """Whether the first states of episodes are asked for, and there is more than one stretch."""
        return self.sets[0].name == "start states" and (self.log.has_ends or self.log.n_episodes > 1)

    def told(self, fit: Fit) -> None:
        """Note what was chosen of a fit."""
        chosen = "" if fit.choice is None else fit.choice.note
        self.notes.append(f"{fit.name}: {fit.selection.note}{chosen and f' {chosen}'}")

    def add(self, row: Row, *, first: bool = False) -> None:
        """Add a row."""
        self.rows.insert(0 if first else len(self.rows), row)

    def interval(self, found: EpisodeValue, kind: str, limits: str = NOT_COVERED, with_starts: bool = True) -> Interval:
        """The interval of what was found; ``with_starts``: of the states that the question is about."""
        some, with_starts = clustered(found, self.log), with_starts and self.sets[0].rows is not None
        return interval_of(some, self.question.level, kind, with_starts=with_starts, limits=limits)


def climb(case: Case) -> None:
    """Add the rows of the table to a case, the answer first."""
    if case.target is None:
        _logged_policy(case)
    else:
        _another_policy(case, case.target)


# --- the logged policy ----------------------------------------------------------------------------------------------


def _logged_policy(case: Case) -> None:
    case.report("choosing λ and dimension", 0.2)
    began = perf_counter()
    fit = case.states = case.fits.states(case, None)
    case.told(fit)
    _add_least_squares(case, fit, perf_counter() - began)
    case.report("returns", 0.8)
    began = perf_counter()
    if case.question.wants("mean of returns"):
        if case.has_starts:
            _returns_of_starts(case, fit, began)
        elif case.sets[0].name == "all states":
            _returns_of_all(case, fit, began)


def _add_least_squares(case: Case, fit: Fit, seconds: float) -> None:
    """The row of state values."""
    case.report("least squares: interval", 0.7)
    began = perf_counter()
    found = case.by_state = fit.value(fit.query(case.sets[0]))[0]
    if not case.question.wants("KrylovLSTD"):
        return
    rung = LEAST_SQUARES if fit.system.rhos is None else WITH_RATIOS
    values = {own.name: float(fit.regularised(own).mean()) for own in case.sets}
    case.add(_row(case, fit, fit.name, rung, values, [found], seconds + perf_counter() - began))


def _row(
    case: Case, fit: Fit, name: str, rung: Rung, values: dict[str, float], found: list[LeastSquares], seconds: float
) -> Row:
    """A row of least squares, whose value is the middle of its interval, unless that is too wide to be known."""
    ends = [case.interval(each.found, "sandwich") for each in found]
    interval = ends[0] if len(ends) == 1 else between(*ends)
    plain, note = next(iter(values.values())), fit.note
    if len(found) > 1:
        plain = sum(each.plain for each in found) / len(found)
        values |= {next(iter(values)): plain}
    if np.isfinite(interval.half_width):
        values |= {next(iter(values)): interval.value}
        note = f"{note}; debiased from {plain:.5g}"
    return Row(name, rung, values, seconds, note, interval, plain, tuple(each.found for each in found))


def _returns_of_starts(case: Case, fit: Fit, began: float) -> None:
    """The mean of returns of the episodes' first states, with values of the states behind cuts."""
    steps = fit.steps
    if not steps.starts.size:
        return
    begins, ends = steps.starts, steps.episode_ends
    rows, behind_last = between_steps(begins, ends)
    first = behind_last - (ends - begins)
    discounts, n = steps.discounts[rows], begins.size
    reach = np.multiply.reduceat(discounts, first)
    cut = np.flatnonzero(reach > 0.0)
    next_values = np.zeros(rows.size)
    last = ends[cut] - 1
    if cut.size:
        next_values[behind_last[cut] - 1] = fit.held_out()[1][last]
    found = episode_value(behind_last, steps.rewards[rows], discounts, np.zeros(rows.size), next_values)
    each = reach[cut] * next_values[behind_last[cut] - 1]
    complete = not cut.size or float(reach.max()) <= HIDDEN
    rung = MEAN_OF_RETURNS if complete else RETURNS_WITH_TAILS
    found = _by_episode(found, steps, begins, case.log)
    half = case.interval(found, "episodes").half_width
    added, size = float(each.sum()) / n, float(np.abs(each).sum()) / n
    matter = bool(cut.size) and not size < MATTERS * half
    if matter:
        found = _with_tails(case, fit, found, last, reach[cut] / n, added)
    case.tails = Tails(added, size, matter, _bias_of_tails(case, fit) if matter else None)
    note = f"{n:,} returns, seen to the end"
    if cut.size:
        note = f"{n:,} returns, {cut.size:,} of them cut off; what lies behind adds {added:.3g}"
    carries = 2 <= n == case.log.start_rows.size
    interval = case.interval(found, "returns" if complete else rung.name, NOT_COVERED if matter else NOT_A_CHANGE)
    row = Row(rung.name, rung, {"start states": found.value}, perf_counter() - began, note, interval, None, (found,))
    case.add(row, first=carries)


def _with_tails(
    case: Case, fit: Fit, found: EpisodeValue, last: IntArray, weights: FloatArray, added: float
) -> EpisodeValue:
    """The same with what each episode moves the model's weights by, and through them the values behind the cuts."""
    steps = fit.steps
    query = fit.of_rows(steps.after[last], weights, steps.fold[last], None)
    behind = fit.value(query)[0].found
    moved = found.contributions + by_episode(behind, steps, case.log).contributions
    errors = np.array([found.standard_error, behind.standard_error])
    own, model = ((errors / max(float(errors.max()), 1e-300)) ** 2).tolist()
    freedom = found.degrees
    if own + model > 0.0:
        freedom = (own + model) ** 2 / (own**2 / found.degrees + model**2 / behind.degrees)
    return EpisodeValue(found.value - added + behind.value, moved - moved.mean(), freedom + 1.0)


def _bias_of_tails(case: Case, fit: Fit) -> EpisodeValue | None:
    """The error of values behind cuts, from complete episodes cut at the lengths at which others were.

    For each of these lengths T the mean of γᵀ (v(s_T) - G_T) over complete episodes that are longer, times the share of
    cut episodes. Long episodes are cut more often than short ones, and complete ones are the shorter for it. So each
    counts by one over its probability not to be cut before its end (Kaplan and Meier, 1958). None where fewer than ten
    complete episodes are longer than the shortest cut one.
    """
    steps, log = fit.steps, case.log
    begins, ends = steps.starts, steps.episode_ends
    ended, lengths = steps.discounts[ends - 1] == 0.0, ends - begins
    cuts = np.sort(lengths[~ended])
    usable = np.flatnonzero(ended & (lengths > cuts[0])) if cuts.size else np.zeros(0, dtype=np.int64)
    if usable.size < 10:
        return None
    error, weights = fit.held_out()[0] - returns_to_go(steps), 1.0 / _uncut(lengths, cuts)
    moved, means = np.zeros(log.n_episodes), []
    for T in np.quantile(cuts, np.linspace(0.0, 1.0, TRIED), method="nearest").tolist():
        longer = usable[lengths[usable] > T]
        if longer.size:
            errors = case.gamma**T * error[begins[longer] + T]
            shares = weights[longer] / weights[longer].sum()
            means.append(float(shares @ errors))
            moved[steps.episode[begins[longer]]] += shares * (errors - means[-1])
    share = cuts.size / begins.size
    return EpisodeValue(share * float(np.mean(means)), share / len(means) * moved, float(usable.size))


def _uncut(lengths: IntArray, cuts: IntArray) -> FloatArray:
    """The probability of each episode not to be cut before its end, by the lengths at which others were cut.

    An episode that ended with a step could not be cut after it.

    >>> _uncut(np.array([1, 2, 2, 3, 4]), np.array([2, 2]))
    array([1. , 1. , 1. , 0.5, 0.5])
    """
    at, counts = np.unique(cuts, return_counts=True)
    risk = np.array([np.count_nonzero(lengths > t) for t in at]) + counts
    left = np.append(1.0, np.cumprod(1.0 - counts / risk))
    found: FloatArray = left[np.searchsorted(at, lengths, side="left")]
    return np.maximum(found, 1.0 / lengths.size)


def returns_to_go(steps: Steps) -> FloatArray:
    """The discounted rewards of each step to the end of its episode."""
    last = np.append(np.diff(steps.episode) != 0, True)
    return backward(steps.rewards, np.where(last, 0.0, steps.discounts))


def _returns_of_all(case: Case, fit: Fit, began: float) -> None:
    """The mean value of all visited states: returns-to-go, completed by values where they were cut off."""
    steps, log = fit.steps, case.log
    last = np.append(np.diff(steps.episode) != 0, True)
    open_end = last & (steps.discounts > 0.0)
    v_next = fit.held_out()[1] if open_end.any() else np.zeros(len(steps))
    rewards = steps.rewards + np.where(open_end, steps.discounts * v_next, 0.0)
    factors = np.where(last, 0.0, steps.discounts)
    returns = backward(rewards, factors)
    hidden = backward(np.where(open_end, steps.discounts, 0.0), factors)
    stream = not log.has_ends
    kept = np.flatnonzero(hidden <= HIDDEN) if stream else np.arange(len(steps))
    unit, n_units = units(steps)
    unit = unit[kept]
    seen, place = np.unique(unit, return_inverse=True)
    if seen.size < 2:
        return
    if steps.n_blocks:
        unit, n_units = _independent(place, returns[kept])
        case.blocks = np.full(steps.n_groups, -1)
        case.blocks[seen[place]] = unit
    found = visited_value(unit, n_units, returns[kept])
    half = case.interval(found, "blocks").half_width
    reach = float(np.abs(backward(np.where(open_end, steps.discounts * v_next, 0.0), factors))[kept].mean())
    matter = reach >= MATTERS * half and not stream
    complete = stream or not matter
    case.tails = Tails(0.0, reach, matter, None)
    rung = (OF_BLOCKS if steps.n_blocks else MEAN_OF_RETURNS) if complete else RETURNS_WITH_TAILS
    what = f"{n_units:,} blocks" if steps.n_blocks else f"{n_units:,} episodes"
    note = f"{kept.size:,} returns-to-go in {what}"
    interval = case.interval(found, "blocks" if steps.n_blocks else "returns", NOT_COVERED if matter else NOT_A_CHANGE)
    values = {own.name: float(fit.regularised(own).mean()) for own in case.sets} | {"all states": found.value}
    case.add(Row(rung.name, rung, values, perf_counter() - began, note, interval, None, (found,)), first=True)


def _independent(unit: IntArray, returns: FloatArray) -> tuple[IntArray, int]:
    """Blocks of a stream, joined with their neighbours for as long as these depend on each other."""
    while True:
        n = int(unit[-1]) + 1
        found = visited_value(unit, n, returns).contributions
        square = float(found @ found)
        dependent = float(found[1:] @ found[:-1]) > square / np.sqrt(n) if square > 0.0 else False
        if n < 2 * FEWEST_MERGED or not dependent:
            return unit, n
        unit = np.minimum(unit // 2, n // 2 - 1)


# --- another policy -------------------------------------------------------------------------------------------------


def _another_policy(case: Case, target: Target) -> None:
    if case.question.estimators != ("LSTDQ",):
        case.ratios = _ratios(case, target)
    wants = case.question.wants
    knows_actions = target.logged is None
    if knows_actions and (wants("LSTDQ") or wants("doubly robust")):
        _add_action_values(case, target)
    if case.ratios is not None:
        case.report("values with ratios", 0.5)
        began = perf_counter()
        fit = case.states = case.fits.states(case, case.ratios)
        case.told(fit)
        _add_least_squares(case, fit, perf_counter() - began)
        if case.has_starts and wants("doubly robust"):
            _add_doubly_robust(case)
        if case.has_starts and wants("weighted IS"):
            _add_weighted(case)
    elif not knows_actions:
        raise InvalidInputError(
            "the policy is given by probabilities of the logged actions alone, and the log has none of the logged "
            'policy: pass a function or a table of all actions, or probabilities="estimate"'
        )


def _ratios(case: Case, target: Target) -> FloatArray | None:
    """(len(log),), or None where there are no probabilities of the logged actions, logged or estimated."""
    log = case.log
    if log.actions is None:
        return None
    if case.continuous and case.question.probabilities == "estimate" and log.probabilities is None:
        raise InvalidInputError(
            "probabilities of continuous actions are not estimated: log their densities, or leave probabilities out"
        )
    if case.continuous and target.logged is None:
        return None
    if log.probabilities is not None:
        return case.fits.ratios(case, target)
    if case.question.probabilities != "estimate":
        case.notes.append("The log has no probabilities of its actions: there are no rows with importance ratios.")
        return None
    X = log.transitions(case.cells, case.gamma).store
    taken, case.known = log.actions.astype(np.int64), False
    behaviour = fitted_probabilities(X[: len(log)], taken, int(taken.max()) + 1)
    case.notes.append(
        "Warning: the log has no probabilities of its actions. They were estimated by softmax regression on "
        "the features; if that is wrong, so are all rows with ratios."
    )
    ratios: FloatArray = of_logged_actions(target, log, target.n_actions(log)) / behaviour
    return ratios


def _add_action_values(case: Case, target: Target) -> None:
    """The row of action values, with bounds where the log is silent."""
    case.report("action values", 0.1)
    began = perf_counter()
    fit = case.fits.pairs(case, target) if case.continuous else case.fits.actions(case, target)
    case.actions = fit
    case.told(fit)
    case.report("action values: interval", 0.3)
    parts = fit.value(fit.query(case.sets[0]))
    case.by_action = parts
    if fit.silent:
        limits = case.limits or seen_limits(fit.steps, fit.steps.returns[fit.steps.tails <= HIDDEN])
        parts = case.by_action = [parts[0].mixed(parts[1], worth) for worth in limits[:2]]
        fit = case.actions = replace(fit, worth=(limits.low + limits.high) / 2.0)
    if not case.question.wants("LSTDQ"):
        return
    values = {own.name: float(fit.regularised(own).mean()) for own in case.sets}
    row = _row(case, fit, "LSTDQ", ACTION_VALUES, values, parts, perf_counter() - began)
    if fit.silent:
        case.silence = _silence(case, fit, limits, row, parts)
        case.notes.append(f"LSTDQ: {case.silence.note}")
    case.add(row)


def _silence(case: Case, fit: Fit, limits: Limits, row: Row, parts: list[LeastSquares]) -> Silence:
    """What the log does not have of the policy's actions."""
    steps, gaps = fit.steps, fit.gaps
    low, high = (part.found.value for part in parts)
    whole = limits.high - limits.low
    visits: FloatArray = np.bincount(
        steps.after, steps.discounts * parts[0].factors / max(1, len(steps)), len(fit.beyond)
    ).astype(np.float64)
    if case.sets[0].rows is not None:
        rows = steps.row_of[case.sets[0].rows]
        visits += np.bincount(rows, minlength=visits.size) / rows.size
    if gaps is None:  # continuous actions
        rows = np.flatnonzero(fit.beyond)
        gaps = Gaps(rows, np.full(rows.size, DRAWN), fit.beyond[rows])
    missing = largest(gaps, visits, steps.states, steps)
    mass = (high - low) / whole if whole > 0.0 else float(visits @ fit.beyond)
    interval: Any = row.interval
    return Silence(limits, max(0.0, mass), interval, missing, fit.is_table)


def _add_doubly_robust(case: Case) -> None:
    """The row "doubly robust": the answer, where probabilities are logged and enough counts."""
    case.report("doubly robust", 0.85)
    began = perf_counter()
    fit = case.states if case.actions is None else case.actions
    assert fit is not None and case.ratios is not None
    steps = fit.steps
    begins, ends = steps.starts, steps.episode_ends
    if not begins.size:
        return
    q, v, v_next = fit.doubly(fit.worth)
    rows, behind_last = between_steps(begins, ends)
    first = behind_last - (ends - begins)
    values = np.zeros(rows.size)
    values[first] = v[begins]
    rhos, discounts = case.ratios[steps.kept[rows]], steps.discounts[rows]
    found = episode_value(behind_last, steps.rewards[rows], discounts, values, v_next[rows], q[rows], rhos)
    case.effective = found.effective
    found = _by_episode(found, steps, begins, case.log)
    reach = np.multiply.reduceat(discounts, first) * np.multiply.reduceat(rhos, first)
    rests = False
    cut = np.flatnonzero((reach > 0.0) & (steps.discounts[ends - 1] > 0.0))
    if cut.size and found.effective > 1.0:
        total = float(np.multiply.reduceat(rhos, first).sum())
        weights, last = reach[cut] / total, ends[cut] - 1
        size = float(np.abs(weights * v_next[last]).sum())
        rests = not size < MATTERS * case.interval(found, "doubly robust").half_width
        if rests:
            parts = fit.value(fit.of_rows(steps.after[last], weights, steps.fold[last], None))
            behind = parts[0].mixed(parts[1], fit.worth) if len(parts) > 1 else parts[0]
            moved = found.contributions + by_episode(behind.found, steps, case.log).contributions
            found = found._replace(contributions=moved - moved.mean())
    carries = case.known and begins.size == case.log.start_rows.size >= 2 and found.effective >= ENOUGH
    note = f"{begins.size:,} episodes, by their final weights worth {case.effective:,.0f}"
    row = Row(
        "doubly robust", DOUBLY_ROBUST, {"start states": found.value}, perf_counter() - began, note,
        case.interval(found, "doubly robust", NOT_COVERED if rests else NOT_A_CHANGE), None, (found,),
    )  # fmt: skip
    case.add(row, first=carries)
    case.notes.append(
        f"Doubly robust {'is' if carries else 'is not'} the answer: that takes logged probabilities and an effective "
        f"sample size of {ENOUGH}; here it is {case.effective:,.0f}."
    )


def _add_weighted(case: Case) -> None:
    """The row "weighted IS": per decision, without values."""
    began, fit = perf_counter(), case.states
    assert fit is not None and case.ratios is not None
    steps = fit.steps
    begins = steps.starts
    rows, behind_last = between_steps(begins, steps.episode_ends)
    nothing = np.zeros(rows.size)
    v_next = np.zeros(rows.size)
    last = behind_last - 1
    v_next[last] = fit.held_out()[1][steps.episode_ends - 1]
    rhos = case.ratios[steps.kept[rows]]
    found = episode_value(behind_last, steps.rewards[rows], steps.discounts[rows], nothing, v_next, nothing, rhos)
    found = _by_episode(found, steps, begins, case.log)
    note = f"{begins.size:,} episodes, by their final weights worth {found.effective:,.0f}"
    interval, seconds = case.interval(found, "importance sampling"), perf_counter() - began
    case.add(Row("weighted IS", SAMPLING, {"start states": found.value}, seconds, note, interval, None, (found,)))


# --- parts ----------------------------------------------------------------------------------------------------------


def between_steps(begins: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """The steps of these episodes, one after the other, and the place behind the last one of each."""
    lengths = ends - begins
    behind = np.cumsum(lengths)
    return np.arange(lengths.sum()) + np.repeat(begins - (behind - lengths), lengths), behind


def _by_episode(found: EpisodeValue, steps: Steps, begins: IntArray, log: Log) -> EpisodeValue:
    """What was found over the episodes that begin with these steps, over all episodes of the log."""
    if begins.size == log.n_episodes:
        return found
    episode = steps.episode[begins]
    moved, shares = np.zeros(log.n_episodes), None
    moved[episode] = found.contributions
    if found.shares is not None:
        shares = np.zeros(log.n_episodes)
        shares[episode] = found.shares
    return EpisodeValue(found.value, moved, found.effective, shares)


def clustered(found: EpisodeValue, log: Log) -> EpisodeValue:
    """What was found over episodes, over those that belong together, where the log says which do."""
    clusters = log.clusters
    if clusters is None or found.contributions.size != log.n_episodes:
        return found
    n = int(clusters.max()) + 1
    moved = np.bincount(clusters, found.contributions, n).astype(np.float64)
    shares = None if found.shares is None else np.bincount(clusters, found.shares, n).astype(np.float64)
    sizes = np.bincount(clusters, minlength=n).astype(np.float64)
    effective = found.effective * effective_number(sizes) / log.n_episodes
    return EpisodeValue(found.value, moved, effective, shares)


def by_episode(found: EpisodeValue, steps: Steps, log: Log) -> EpisodeValue:
    """What was found over groups of steps, over the episodes of the log; over joined blocks it stays as it is."""
    size = found.contributions.size
    if size == log.n_episodes and (not steps.n_blocks or size != steps.n_groups):
        return found
    if steps.n_blocks and size != steps.n_groups:
        return found
    episode = steps.episode[steps.begins] if steps.n_blocks else np.arange(size)
    moved = np.bincount(episode, found.contributions, log.n_episodes).astype(np.float64)
    return EpisodeValue(found.value, moved, min(found.effective, float(moved.size)))


def by_block(found: EpisodeValue, blocks: IntArray) -> EpisodeValue:
    """What was found over groups of steps, over blocks of these (G,), -1 for groups that are in none.

    >>> by_block(EpisodeValue(1.0, np.array([1.0, 2.0, -3.0]), 3.0), np.array([0, 0, 1])).contributions
    array([ 3., -3.])
    """
    inside = np.flatnonzero(blocks >= 0)
    moved = np.bincount(blocks[inside], found.contributions[inside]).astype(np.float64)
    return EpisodeValue(found.value, moved - moved.mean(), min(found.effective, float(moved.size)))


def unit_names(case: Case, found: EpisodeValue) -> list[Any]:
    """What the contributions of a value are of: the log's names of episodes, or the steps of each block."""
    size, steps = found.contributions.size, case.steps_of(found)
    if size == case.log.n_episodes and not (steps.n_blocks and size == steps.n_groups):
        return list(case.log.ids)
    group = steps.group
    if case.blocks is not None and size != steps.n_groups:
        group = case.blocks[group]
    inside = np.flatnonzero(group >= 0)
    first = np.searchsorted(group[inside], np.arange(size))
    last = np.append(first[1:], inside.size) - 1
    rows = steps.kept[inside]
    return [f"steps {rows[a]:,} to {rows[b]:,}" for a, b in zip(first.tolist(), last.tolist(), strict=True)]
