"""Where the log is silent: what an answer may be if the log does not have all of the target policy's actions.

What an action is worth that the log does not have is unknown, between LOW and HIGH. The value of the target policy is
linear in that: V(c) = V₀ + c·M, with the value V₀ of what it does until then, and the discounted probability M that
it takes such an action at all. V(c) solves the system of the supported actions alone, with c·u(s′) added to what
follows each step: u is the policy's probability of unsupported actions. So L = V(LOW) and U = V(HIGH) limit the value,
and [L - t·se(L), U + t·se(U)] is the interval.

In tables, [L, U] is a bound: the value lies in it whatever the unsupported actions are worth. Where features overlap,
it is a sensitivity.

C. F. Manski, "Nonparametric bounds on treatment effects", American Economic Review 80, 1990.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidParameterError
from tlstd.evaluation.action_values import PIECE, chances, needed_finals
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.influence import Influence
from tlstd.evaluation.intervals import Interval, interval_of
from tlstd.evaluation.log_intervals import asked_states, influences_on
from tlstd.evaluation.policies import Target
from tlstd.evaluation.returns import returns
from tlstd.evaluation.supported import Support
from tlstd.evaluation.value_function import ValueFunction
from tlstd.features.constant import Constant
from tlstd.features.states import encoded
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.logs.log import Log

REFUSED = 0.5
"""Share of the range from LOW to HIGH: an interval that is wider has no value to stand on."""
PART_OF_IT = 0.1
"""Share of the interval (of the range, where that is less) that must come from missing actions for a refusal."""
NAMED = 5
"""Missing pairs of state and action that are named, those with the largest mass."""


class Limits(NamedTuple):
    """The range of discounted returns from any step on."""

    low: float
    high: float
    given: bool = True
    """Whether it was told; else it is what the log shows, an assumption."""

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g}"


class Missing(NamedTuple):
    """An action that the target policy takes and the log does not have."""

    state: str
    """The state, or one like those where it is missing."""
    action: str
    mass: float
    """Discounted probability of coming there and taking it."""

    def __str__(self) -> str:
        return f"action {self.action} in {self.state}"


@dataclass(frozen=True)
class SilentInterval(Interval):
    """An interval of which one part is chance and the other what the log does not show."""

    lower: Interval
    """Of the value if what is missing is worth LOW."""
    upper: Interval
    """If it is worth HIGH."""

    @property
    def silence(self) -> float:
        """The half-width that is there however long the log is: (U - L) / 2."""
        return abs(self.upper.value - self.lower.value) / 2.0

    @property
    def sampling(self) -> float:
        """The rest of the half-width: chance."""
        return self.half_width - self.silence

    def at(self, level: float) -> SilentInterval:
        """The same at another level."""
        return self if level == self.level else between(self.lower.at(level), self.upper.at(level))

    def to_dict(self) -> dict[str, Any]:
        """The fields for JSON: a number that is not finite is None."""
        parts = {"sampling": self.sampling, "silence": self.silence}
        finite = {name: number if np.isfinite(number) else None for name, number in parts.items()}
        return super().to_dict() | {"half_widths": finite}


def between(lower: Interval, upper: Interval) -> SilentInterval:
    """From the low end of one interval to the high end of the other; its value is the middle of both values."""
    low, high = min(lower.low, upper.low), max(lower.high, upper.high)
    wider = max(lower, upper, key=lambda one: one.standard_error)
    covers = f"whatever the actions that the log does not have are worth, and {lower.covers}"
    middle = (lower.value + upper.value) / 2.0
    about = lower.level, wider.standard_error, wider.degrees, lower.kind, lower.n_groups, covers
    return SilentInterval(middle, low, high, *about, lower, upper)


@dataclass(frozen=True, eq=False)
class Silence:
    """What the log does not show of a policy's actions, and what an answer may be because of that."""

    limits: Limits
    """What each missing action is worth, at least and at most."""
    mass: float
    """M, the discounted probability that the policy takes an action that the log does not have, up to the first one.

    Where features overlap, noise may make it less than 0: it is then 0."""
    lower: Influence
    """Of each episode on L, the value if all of these are worth LOW."""
    upper: Influence
    """On U, the value if they are worth HIGH."""
    interval: SilentInterval
    missing: tuple[Missing, ...]
    """The largest of what is missing."""
    is_bound: bool
    """Whether [L, U] is a bound: one feature per state; else it is a sensitivity."""

    @cached_property
    def middle(self) -> Influence:
        """The influence on the middle of L and U."""
        names = ("value", "errors", "fitted_errors", "starts", "fitted_starts")
        means = {name: (getattr(self.lower, name) + getattr(self.upper, name)) / 2.0 for name in names}
        return replace(self.lower, settled=self.lower.settled and self.upper.settled, **means)

    @property
    def refuses(self) -> bool:
        """Whether the interval is so wide, because of what is missing, that no value can stand on it."""
        whole = self.limits.high - self.limits.low
        width, silence = 2.0 * self.interval.half_width, 2.0 * self.interval.silence
        return not width <= REFUSED * whole and bool(silence > PART_OF_IT * np.fmin(width, whole))

    @property
    def sentence(self) -> str:
        """What is missing."""
        named = "; ".join(map(str, self.missing))
        return (
            f"The log does not have actions that the policy takes, with a discounted probability of {self.mass:.2g}. "
            f"Most of it: {named}"
        )

    @property
    def note(self) -> str:
        """What was assumed, and what it does to the interval."""
        kind = "a bound" if self.is_bound else "a sensitivity, because features overlap"
        source = (
            "as told" if self.limits.given else "the range of returns in the log, an assumption (returns=, --returns)"
        )
        return (
            f"{self.sentence}. Each counts as worth {self.limits}, {source}: the value is from "
            f"{self.interval.lower.value:.4g} to {self.interval.upper.value:.4g}, {kind}."
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "mass": self.mass,
            "returns": {"low": self.limits.low, "high": self.limits.high, "given": self.limits.given},
            "value": {"low": self.interval.lower.value, "high": self.interval.upper.value},
            "kind": "bound" if self.is_bound else "sensitivity",
            "refusal": self.refuses,
            "missing": [one._asdict() for one in self.missing],
        }


# the range of returns


def given_limits(
    returns: Sequence[float] | None, rewards: Sequence[float] | None, gamma: float, terminates: bool
) -> Limits | None:
    """The range of returns that was told, by itself or by rewards, whose sum is over the horizon 1/(1-γ).

    ``terminates``: episodes can end, so that one reward may be all.

    Example
    -------
    >>> given_limits(None, (-1.0, 2.0), 0.9, True)
    Limits(low=-10.000000000000002, high=20.000000000000004, given=True)
    """
    if returns is not None and rewards is not None:
        raise InvalidParameterError(
            f"returns is {tuple(returns)} and rewards is {tuple(rewards)}: both say what a step can bring; pass one"
        )
    if returns is not None:
        return Limits(*_pair("returns", returns))
    if rewards is None:
        return None
    if gamma == 1.0:
        raise InvalidParameterError(
            f"rewards is {tuple(rewards)} and gamma is 1, so that their sum has no limit: pass returns=(LOW, HIGH)"
        )
    low, high = _pair("rewards", rewards)
    rest = gamma / (1.0 - gamma)
    return Limits(
        low + (min(low, 0.0) if terminates else low) * rest, high + (max(high, 0.0) if terminates else high) * rest
    )


def _pair(name: str, pair: Sequence[float]) -> tuple[float, float]:
    numbers = np.asarray(pair)
    if numbers.shape != (2,) or numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
        raise InvalidParameterError(f"{name} is {pair!r}: pass two finite numbers (LOW, HIGH)")
    low, high = map(float, numbers)
    if low > high:
        raise InvalidParameterError(f"{name} is {pair!r}: pass the lower number first, ({high:g}, {low:g})")
    return low, high


def seen_limits(log: Log, gamma: float) -> Limits:
    """The range of discounted returns in the log, from any step on; of rewards over the horizon, where none is seen."""
    found = returns(log.transitions(Constant(), gamma))
    usable = found.values[found.usable]
    if usable.size:
        return Limits(float(usable.min()), float(usable.max()), given=False)
    horizon = 1.0 / (1.0 - gamma) if gamma < 1.0 else float(np.diff(log.episodes).max())
    return Limits(
        min(0.0, float(log.rewards.min())) * horizon, max(0.0, float(log.rewards.max())) * horizon, given=False
    )


# the bounds


def silence_of(fitted: Fitted, limits: Callable[[], Limits], level: float) -> Silence | None:
    """What the log does not have of the actions of a policy whose action values were fitted; None if it has all.

    Continuous actions are not looked at: None. Cost: twice that of an interval.
    """
    target, values = fitted.target, fitted.values
    if values.kind != "actions" or target is None:
        return None
    supported = replace(target, support=Support(fitted.pieces(), values.n_actions))
    gaps = _gaps(fitted, supported)
    if not gaps.steps.size:
        return None
    known = limits()
    lower, upper = (_influence(fitted, replace(supported, worth=worth)) for worth in (known.low, known.high))
    interval = between(interval_of(lower, level), interval_of(upper, level))
    missing, mass = _largest(gaps, lower.factors, fitted.log)
    if known.high > known.low and np.isfinite(upper.value - lower.value):
        mass = (upper.value - lower.value) / (known.high - known.low)
    assert supported.support is not None
    return Silence(known, max(0.0, mass), lower, upper, interval, missing, supported.support.is_table)


def _influence(fitted: Fitted, target: Target) -> Influence:
    """On the value of the start states, where unsupported actions have a given worth."""
    old = fitted.values
    model = KrylovLSTD(old.model.n_features, lambda_=0.0, dimension=fitted.dimension)
    values = ValueFunction(model, old.features, old.gamma, kind=old.kind, n_actions=old.n_actions, offsets=old.offsets)
    values.update(fitted.log, policy=target)
    own = replace(fitted, values=values, target=target)
    return influences_on(own, [asked_states(own)])[0]


class _Gaps(NamedTuple):
    """Unsupported actions of a policy: each is one action in one state, after a step or in a start state."""

    steps: IntArray
    """(K,): the step before, as learned; -1 in start states."""
    states: IntArray
    """(K,): rows of ``observations``."""
    actions: IntArray
    weights: FloatArray
    """(K,): probabilities, discounted by one step; in start states their share of the mean."""
    observations: NDArray[Any]


def _gaps(fitted: Fitted, target: Target) -> _Gaps:
    support, values = target.support, fitted.values
    assert support is not None
    steps, states, actions, weights, observations = [], [], [], [], []
    start = n_steps = n_states = 0
    for piece in fitted.log.pieces(PIECE):
        part, start = target.of_rows(start, start + len(piece)), start + len(piece)
        plain = piece.transitions(values.features, values.gamma)
        kept, probabilities = chances(piece, plain, part, values.n_actions)
        X, after, discounts = sp.csr_array(plain.store), plain.next_rows[kept], plain.discounts[kept]
        unsupported = (probabilities - support.kept(X, probabilities))[after] * discounts[:, None]
        rows, taken = np.nonzero(unsupported)
        final = needed_finals(piece)
        observations.append(np.concatenate([piece.observations, piece.final[final]]))
        steps.append(rows + n_steps)
        states.append(after[rows] + n_states)
        actions.append(taken)
        weights.append(unsupported[rows, taken])
        n_steps, n_states = n_steps + len(discounts), n_states + len(observations[-1])
    asked = next(iter(fitted.starts.values()))
    probabilities = np.zeros((len(asked.observations), values.n_actions))
    given = asked.probabilities
    if target.function is not None:
        given = target.probabilities(asked.observations, values.n_actions)
    if given is not None:
        probabilities[:, : given.shape[1]] = given
    X = sp.csr_array(encoded(values.features, asked.observations.reshape(len(probabilities), -1).astype(np.float64)))
    unsupported = (probabilities - support.kept(X, probabilities)) / len(probabilities)
    rows, taken = np.nonzero(unsupported)
    observations.append(asked.observations)
    steps.append(np.full(rows.size, -1))
    states.append(rows + n_states)
    actions.append(taken)
    weights.append(unsupported[rows, taken])
    found = (steps, states, actions, weights, observations)
    return _Gaps(*(np.concatenate(parts) for parts in found))


def _largest(gaps: _Gaps, factors: FloatArray, log: Log) -> tuple[tuple[Missing, ...], float]:
    """The largest of what is missing, by how often the policy comes there, and the mass of all.

    States are told apart by their number; where they are vectors, one of them stands for all with the same action.
    """
    mass = gaps.weights * np.where(gaps.steps < 0, 1.0, factors[gaps.steps] / factors.size)
    names, n_actions = log.action_names, int(gaps.actions.max()) + 1
    states = gaps.observations[gaps.states] if log.discrete else np.zeros_like(gaps.states)
    _, group = np.unique(states.astype(np.int64) * n_actions + gaps.actions, return_inverse=True)
    sums = np.bincount(group, mass)
    found = []
    for one in np.argsort(-sums, kind="stable")[:NAMED].tolist():
        inside = np.flatnonzero(group == one)
        chosen = inside[mass[inside].argmax()]
        action = int(gaps.actions[chosen])
        name = str(action) if names is None or action >= len(names) else repr(names[action])
        found.append(Missing(_state(gaps.observations[gaps.states[chosen]]), name, float(sums[one])))
    return tuple(found), float(sums.sum())


def _state(observation: Any) -> str:
    numbers = np.ravel(observation)
    if np.ndim(observation) == 0:
        return f"state {numbers[0]}"
    shown = ", ".join(f"{number:.3g}" for number in numbers[:4].tolist())
    return f"states like ({shown}{', ...' if numbers.size > 4 else ''})"
