"""One evaluation under way: what is asked, and what has been found so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, as_floats
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation.choose import Each, one_by_one
from tlstd.evaluation.evaluation import Row
from tlstd.evaluation.fitted import Fitted, LeftOut, Starts
from tlstd.evaluation.influence import Influence
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.names import doubt_about_cost, policy_name
from tlstd.evaluation.policies import as_target
from tlstd.evaluation.silence import Silence, given_limits
from tlstd.evaluation.whole_episodes import WholeEpisodes
from tlstd.features.auto_tiles import AutoTiles
from tlstd.features.base import FeatureMap, check_map
from tlstd.features.columns import Columns
from tlstd.features.one_hot import OneHot
from tlstd.logs.log import Log

SAMPLED = 1_000_000
"""Steps beyond which parameters are chosen on a sample of episodes, and t-LSTD is left out."""
SAMPLE = 100_000
"""Steps of that sample."""
ESTIMATORS = (
    "mean of returns",
    "returns with tails",
    "KrylovLSTD",
    "LSTD",
    "t-LSTD",
    "TD",
    "LSTDQ",
    "per-decision IS",
    "weighted IS",
    "doubly robust",
)
"""Rows of the table by name, for ``estimators=``. "mean of returns" and "returns with tails" ask for the same row: the
ends of the episodes decide which of the two it is."""
COMPARED = frozenset({"LSTD", "t-LSTD", "TD"})
"""Rows that stand beside the answer and take longer than it: only on request."""
OLD_NAMES = {"Monte Carlo": "mean of returns"}
"""Names that rows had before."""

FeaturesName: TypeAlias = Literal["auto", "columns"]
Features: TypeAlias = FeatureMap | FeaturesName
StartName: TypeAlias = Literal["first", "all"]
Start: TypeAlias = ArrayLike | StartName
Probabilities: TypeAlias = Literal["logged", "estimate"]

Report = Callable[[str, float], None]
"""Told what is being done, and how much of all is done."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A part of a log."""

    log: Log
    rows: IntArray | None
    """Its rows in the whole log; None: it is the whole."""
    name: str
    """In words: so many episodes of so many steps."""

    def starts(self, sets: dict[str, Starts]) -> dict[str, Starts]:
        """Of the start states of the whole log those in this part; states that were given stay."""
        if self.rows is None:
            return sets
        found = {}
        for name, whole in sets.items():
            if whole.rows is None:
                found[name] = whole
                continue
            inside = np.isin(whole.rows, self.rows)
            table = None if whole.probabilities is None else whole.probabilities[inside]
            rows = np.searchsorted(self.rows, whole.rows[inside])
            found[name] = Starts(whole.observations[inside], rows, table)
        return found


class EvaluationTask:
    """What is asked, checked, and the rows and notes of the answer as they come.

    Parameters are those of :func:`evaluate`; ``each`` is who computes what can be computed side by side.
    """

    def __init__(
        self,
        log: Log,
        gamma: float,
        features: Features,
        policy: Any,
        start: Start | None,
        estimators: Iterable[str] | None,
        probabilities: Probabilities,
        everything: bool,
        level: float,
        report: Report | None,
        each: Each = one_by_one,
        cost: bool = False,
        compare: bool = False,
        returns: Sequence[float] | None = None,
        rewards: Sequence[float] | None = None,
    ) -> None:
        self.gamma = parameters.real("gamma", gamma, low=0.0, high=1.0)
        if self.gamma == 0.0 and not log.has_episodes:
            log = log.as_decisions()
        self.log, self.each = log, each
        if not len(log):
            raise InvalidInputError("the log has no steps: there is nothing to evaluate")
        if self.gamma == 1.0 and not log.terminated.any():
            raise InvalidParameterError("gamma is 1, but no episode of the log terminates: use gamma < 1")
        self.notes: list[str] = list(log.notes)
        self.limits = given_limits(returns, rewards, self.gamma, bool(log.terminated.any()))
        self.cost = self._cost(cost)
        self.policy = self._policy(policy)
        self.policy_name = policy_name(self.policy, log)
        self.target = None if self.policy is None else as_target(self.policy, log)
        if self.target is not None and self.target.function is not None:
            self.policy = self.target.function
        compared = parameters.flag("compare", compare) or parameters.flag("all", everything)
        self.asked = _names(estimators, compared)
        self.probabilities: Probabilities = parameters.choice("probabilities", probabilities, get_args(Probabilities))
        self.everything = everything
        self.level = parameters.positive("level", level, high=1.0)
        self._report, self._done = report, 0.0
        self.rows: list[Row] = []
        self.returned: WholeEpisodes | None = None
        self.influences: list[tuple[Fitted, Influence]] = []
        self.silence: Silence | None = None
        self.continuous = log.actions is not None and log.actions.ndim == 2
        self.given_features = features
        self.starts = self._start_sets(start)

    def _cost(self, cost: bool) -> bool:
        """Whether rewards are costs; what is to be said about it."""
        cost, doubt = parameters.flag("cost", cost), doubt_about_cost(self.log)
        if cost:
            self.notes.append("The rewards are costs, as told: smaller is better.")
        elif doubt:
            self.notes.append(f"Is less better? T{doubt[1:]}.")
        return cost

    @property
    def left_out(self) -> LeftOut:
        """Episodes of the log that were left out."""
        n = self.log.n_dropped
        return LeftOut(0, 0, n, n + self.log.n_episodes)

    def _policy(self, policy: Any) -> Any:
        """The policy given; else the one in the log's columns; else None, the one that acted."""
        if isinstance(policy, str) and policy == "logged":
            return None
        if policy is None and self.log.policy is not None:
            self.notes.append("The policy asked for is the one in the log's columns (the one that acted: 'logged').")
            return self.log.policy
        return policy

    def _start_sets(self, start: Start | None) -> dict[str, Starts]:
        """Each set of start states, by name."""
        log = self.log
        if start is not None and not isinstance(start, str):
            return {"given states": Starts(_given_states(start, log), None)}
        if start is None:
            sets = log.starts
            if len(sets) > 1:
                self.notes.append(
                    "The log has no ends: the value is the mean over all its states, and that of the first."
                )
        else:
            parameters.choice("start", start, get_args(StartName), why=", or states")
            sets = {"start states": log.start_rows} if start == "first" else {"all states": np.arange(len(log))}
        if any(not rows.size for rows in sets.values()):
            raise InvalidInputError('the log has no first row of an episode: pass start="all", or states')
        table = None if self.target is None else self.target.table
        return {
            name: Starts(log.observations[rows], rows, None if table is None else table[rows])
            for name, rows in sets.items()
        }

    def influence_of(self, fitted: Fitted) -> Influence | None:
        """The influence on the start states of what was fitted, where it was computed."""
        return next((found for of, found in self.influences if of is fitted), None)

    def feature_map(self, joint: bool = False) -> FeatureMap:
        """The map asked for; ``joint``: of states and continuous actions side by side."""
        return feature_map(self.given_features, self.log, joint)

    @property
    def large(self) -> bool:
        """Whether parameters are chosen on a sample."""
        return len(self.log) > SAMPLED

    def report(self, text: str, share: float) -> None:
        """Say what is being done, and how much of all is done."""
        self._done = max(self._done, share)
        if self._report is not None:
            self._report(text, self._done)

    def wants(self, name: str) -> bool:
        """Whether a row is asked for."""
        return name in self.asked

    def add(
        self, name: str, began: float, values: dict[str, float], note: str = "", interval: Interval | None = None
    ) -> None:
        """Add a row of the table."""
        self.rows.append(Row(name, values, perf_counter() - began, note, interval))

    @cached_property
    def sample(self) -> Sample:
        """What parameters are chosen on: the log, or about ``SAMPLE`` steps of it where it is large."""
        sample = self.sampled(SAMPLE if self.large else len(self.log))
        if sample.rows is not None:
            self.notes.append(f"{len(self.log):,} steps: λ, dimension and step size were chosen on {sample.name}.")
        return sample

    def sampled(self, n: int) -> Sample:
        """About n steps of the log in evenly spaced episodes; the first n steps, where episodes are few and long."""
        log = self.log
        if n >= len(log):
            return Sample(log, None, f"all {len(log):,} steps")
        wanted = max(1, int(log.n_episodes * n / len(log)))
        chosen = np.unique(np.linspace(0, log.n_episodes - 1, wanted).astype(np.int64))
        if np.diff(log.episodes)[chosen].sum() > 2 * n:  # few, long ones
            return Sample(log[:n], np.arange(n), f"the first {n:,} steps")
        part = log.select(chosen)
        return Sample(part, log.rows_of(chosen), f"{part.n_episodes:,} episodes of {len(part):,} steps")


def _given_states(start: ArrayLike, log: Log) -> FloatArray | IntArray:
    states = as_floats(start, "start", None)
    shape = log.observations.shape[1:]
    if states.shape == shape:
        states = states[None]
    if states.shape[1:] != shape or not len(states):
        raise InvalidInputError(f"start has shape {states.shape}: pass states (M, {', '.join(map(str, shape))})")
    return states.astype(log.observations.dtype)


def _names(estimators: Iterable[str] | None, compare: bool) -> set[str]:
    """The rows that are asked for; those that take long only by their names, or to be compared."""
    if estimators is None:
        return set(ESTIMATORS) - (frozenset() if compare else COMPARED)
    given = [estimators] if isinstance(estimators, str) else estimators
    names = {OLD_NAMES.get(name, name) for name in given}
    for name in sorted(names):
        parameters.choice("estimators", name, ESTIMATORS)
    if not names:
        raise InvalidParameterError(f"estimators is empty: name at least one of {', '.join(ESTIMATORS)}")
    return names


def feature_map(given: Features, log: Log, joint: bool = False) -> FeatureMap:
    """The map that a name stands for with a log; ``joint``: of states and continuous actions side by side."""
    if not isinstance(given, str):
        check_map(given)
        return given
    states = np.hstack([log.states, log.actions]) if joint and log.actions is not None else log.states
    parameters.choice("features", given, get_args(FeaturesName), why=", or a feature map")
    if log.discrete and not joint:
        assert log.n_observations is not None
        return OneHot([0], [max(1, log.n_observations - 1)])
    return AutoTiles.fit(states) if given == "auto" else Columns(states.shape[1])
