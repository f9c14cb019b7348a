"""Where the log is silent: which of the target policy's actions it does not have, and what they may be worth.

What such an action is worth is unknown, between LOW and HIGH. The value is linear in that: V(c) = V₀ + c·M, with the
value V₀ of what the policy does until then, and the discounted probability M that it takes such an action at all. V(c)
solves the system of the supported actions alone, with c·u(s′) added to what follows each step: u is the policy's
probability of unsupported actions. So L = V(LOW) and U = V(HIGH) limit the value, and [L - t·se(L), U + t·se(U)] is the
interval. In tables [L, U] is a bound: the value lies in it whatever the unsupported actions are worth. Where features
overlap it is a sensitivity.

An action counts as logged in a state if its features there are worth at least one logged visit: in tables by visits;
where features overlap by the leverage φᵀ(Φ_aᵀΦ_a + ηI)⁻¹φ ≤ 1, with half of the mean ‖φ‖² as η.

C. F. Manski, "Nonparametric bounds on treatment effects", American Economic Review 80, 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidParameterError
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.steps import BoolArray, Rows, Steps

REFUSED = 0.5
"""Share of the range from LOW to HIGH: an interval that is wider has no value to stand on."""
PART_OF_IT = 0.1
"""Share of the interval (of the range, where that is less) that must come from missing actions for a refusal."""
NAMED = 5
"""Missing pairs of state and action that are named, those with the largest mass."""
OUTSIDE = 0.5
"""Share of ‖φ‖² that may lie outside of what was logged with an action."""
MOST_FOR_LEVERAGE, MOST_WORK = 1_000, 4e9
"""Features of an action, and products in all, up to which leverage is computed. Beyond, only the share of ‖φ‖² on
features that the action never had is: at most ``OUTSIDE``."""


DRAWN = -1
"""In place of the number of an action, where actions are continuous and drawn by the policy."""


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
    return SilentInterval(middle, low, high, *about, lower.skewness, lower, upper)


@dataclass(frozen=True, eq=False)
class Silence:
    """What the log does not show of a policy's actions, and what an answer may be because of that."""

    limits: Limits
    """What each missing action is worth, at least and at most."""
    mass: float
    """M, the discounted probability that the policy takes an action that the log does not have, up to the first one.

    Where features overlap, noise may make it less than 0: it is then 0."""
    interval: SilentInterval
    missing: tuple[Missing, ...]
    """The largest of what is missing."""
    is_bound: bool
    """Whether [L, U] is a bound: one feature per state; else it is a sensitivity."""

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


# --- the range of returns -------------------------------------------------------------------------------------------


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


def seen_limits(steps: Steps, returns: FloatArray) -> Limits:
    """The range of these returns (N,), and of rewards over the horizon where a return is not seen to its end."""
    if returns.size:
        return Limits(float(returns.min()), float(returns.max()), given=False)
    rewards = steps.rewards if len(steps) else np.zeros(1)
    horizon = 1.0 / (1.0 - steps.gamma) if steps.gamma < 1.0 else float(np.diff(steps.log.episodes).max())
    return Limits(min(0.0, float(rewards.min())) * horizon, max(0.0, float(rewards.max())) * horizon, given=False)


# --- support --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Support:
    """Which rows of features are like those that were logged with an action.

    Example
    -------
    >>> rows = Rows([sp.csr_array(np.eye(2))], np.arange(2), 2)
    >>> Support.of(rows, np.array([3.0, 0.0]), True).has(rows, np.array([0, 1]))
    array([ True, False])
    """

    is_table: bool
    """Whether each row has one feature."""
    squares: FloatArray
    """(d,): Σ x_i² over the logged steps."""
    gram: FloatArray | None
    """(d, d): Σ x xᵀ over them; None in tables, and where features are too many."""
    square: float
    """Σ ‖x‖² over all rows."""
    n_rows: int
    ids: IntArray
    """(d,): the features."""

    @classmethod
    def of(cls, rows: Rows, logged: FloatArray, is_table: bool) -> Support:
        """What was logged: how often each of the rows (M,)."""
        d, start = rows.ids.size, 0
        squares, gram = np.zeros(d), None if is_table or d > MOST_FOR_LEVERAGE else np.zeros((d, d))
        for block in rows.blocks:
            weight = logged[start : start + block.shape[0]]
            some, start = np.flatnonzero(weight), start + block.shape[0]
            X = sp.csr_array(block[some])
            squares += np.asarray(X.power(2).T @ weight[some]).ravel()
            if gram is not None:
                gram += (X.T @ (sp.diags_array(weight[some]) @ X)).toarray()
        return cls(is_table, squares, gram, rows.square * rows.size, rows.size, rows.ids)

    @cached_property
    def root(self) -> FloatArray | None:
        """R with RᵀR the inverse of the ridged Gram matrix."""
        if self.gram is None or not self.squares.any():
            return None
        ridged = self.gram + OUTSIDE * self.square / max(1, self.n_rows) * np.eye(self.squares.size)
        factor = scipy.linalg.cholesky(ridged, lower=True, overwrite_a=True)
        found: FloatArray = scipy.linalg.solve_triangular(factor, np.eye(self.squares.size), lower=True)
        return found

    def has(self, rows: Rows, asked: IntArray) -> BoolArray:
        """Whether each of some rows is like what was logged."""
        out = np.zeros(asked.size, dtype=np.bool_)
        by_leverage = self.root is not None and asked.size * self.squares.size * 32.0 <= MOST_WORK
        for a in range(0, asked.size, 5_000):
            X = sp.csr_array(rows.take(asked[a : a + 5_000]))
            if by_leverage and self.root is not None:
                Z = np.asarray(X @ self.root.T)
                out[a : a + 5_000] = np.einsum("ij,ij->i", Z, Z) <= 1.0
            else:
                squares = X.power(2)
                outside = squares @ (self.squares == 0.0).astype(np.float64)
                whole = np.asarray(squares.sum(axis=1)).ravel()
                out[a : a + 5_000] = (outside <= OUTSIDE * whole) & (whole > 0.0)
        return out


def merged(supports: Sequence[Support], is_table: bool) -> Support:
    """What several parts of a log have of one action."""
    grams = [each.gram for each in supports]
    whole = None if is_table or any(gram is None for gram in grams) else sum(gram for gram in grams if gram is not None)
    squares = np.sum([each.squares for each in supports], axis=0)
    gram = whole if isinstance(whole, np.ndarray) else None
    size, n = sum(s.square for s in supports), sum(s.n_rows for s in supports)
    return Support(is_table, squares, gram, size, n, supports[0].ids)


def is_table(rows: Rows) -> bool:
    """Whether each row has one feature."""
    return all(sp.issparse(block) and bool((np.diff(block.indptr) == 1).all()) for block in rows.blocks)


class Gaps(NamedTuple):
    """Unsupported actions of a policy: each is one action in one row of features."""

    rows: IntArray
    actions: IntArray
    weights: FloatArray
    """Probabilities."""


def supports_of(rows: Rows, steps: Steps, actions: IntArray, n_actions: int) -> list[Support]:
    """What the log has of each action."""
    table = is_table(rows)
    visits = [np.bincount(steps.here[actions == a], minlength=rows.size).astype(np.float64) for a in range(n_actions)]
    return [Support.of(rows, own, table) for own in visits]


def supported(supports: Sequence[Support], rows: Rows, steps: Steps, chances: FloatArray) -> tuple[FloatArray, Gaps]:
    """Probabilities (M, n_actions) with 0 for actions that the log does not have in that state, and what that is.

    Rows in which the policy is not asked for an action, such as those after a termination, keep theirs.
    """
    kept = chances.copy()
    gaps: list[tuple[IntArray, IntArray, FloatArray]] = []
    asked_of = np.zeros(rows.size, dtype=np.bool_)
    asked_of[steps.after[steps.discounts > 0.0]] = True
    asked_of[steps.row_of[steps.log.start_rows]] = True
    if not steps.log.has_ends:
        asked_of[:] = True
    for a in range(chances.shape[1]):
        asked = np.flatnonzero((chances[:, a] > 0.0) & asked_of)
        if not asked.size:
            continue
        missing = asked[~supports[a].has(rows, asked)]
        if missing.size:
            gaps.append((missing, np.full(missing.size, a), chances[missing, a]))
            kept[missing, a] = 0.0
    none = np.zeros(0, dtype=np.int64)
    found = [np.concatenate(part) for part in zip(*gaps, strict=True)] if gaps else [none, none, np.zeros(0)]
    return kept, Gaps(*found)


def largest(gaps: Gaps, visits: FloatArray, states: NDArray[Any], steps: Steps) -> tuple[Missing, ...]:
    """The largest of what is missing, by how often the policy comes there: ``visits`` (M,) of each row of features.

    States are told apart by their number; where they are vectors, one of them stands for all with the same action.
    """
    mass, log = gaps.weights * visits[gaps.rows], steps.log
    names, n_actions = log.action_names, int(gaps.actions.max()) + 2
    key = states[gaps.rows].astype(np.int64) if log.discrete else np.zeros_like(gaps.rows)
    _, group = np.unique(key * n_actions + gaps.actions, return_inverse=True)
    sums = np.bincount(group, mass)
    found = []
    for one in np.argsort(-sums, kind="stable")[:NAMED].tolist():
        inside = np.flatnonzero(group == one)
        chosen = inside[mass[inside].argmax()]
        action = int(gaps.actions[chosen])
        name = str(action) if names is None or action >= len(names) else repr(names[action])
        name = "drawn by the policy" if action == DRAWN else name
        found.append(Missing(_state(states[gaps.rows[chosen]]), name, float(sums[one])))
    return tuple(found)


def _state(observation: Any) -> str:
    numbers = np.ravel(observation)
    if np.ndim(observation) == 0:
        return f"state {numbers[0]}"
    shown = ", ".join(f"{number:.3g}" for number in numbers[:4].tolist())
    return f"states like ({shown}{', ...' if numbers.size > 4 else ''})"
