"""Two policies on one log: how much more one is worth than the other, and which of them is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tlstd.errors import InvalidInputError
from tlstd.evaluation.influence import standard_error
from tlstd.evaluation.intervals import NOT_COVERED, Interval, difference_interval, interval_about
from tlstd.evaluation.silence import between

if TYPE_CHECKING:
    from tlstd.evaluation.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class Comparison:
    """How much more a policy is worth than another one, from the same log; ``print`` shows it."""

    name: str
    """Of the other policy."""
    other: Evaluation
    """Its answer."""
    difference: Interval
    """Of the value of the policy asked for less the other's."""
    first: str = "the policy asked for"
    """Of which this is said."""
    unsure: str = ""
    """Why it is not known whether more is better; empty if it is."""

    @property
    def light(self) -> str:
        """How far to trust the other answer."""
        return "unchecked" if self.other.trust is None else self.other.trust.light

    @property
    def decided(self) -> bool:
        """Whether the interval has zero outside."""
        return 0.0 not in self.difference

    @property
    def better(self) -> str | None:
        """Name of the better policy; None if the log does not decide, or if it is not known what better is."""
        if not self.decided or self.unsure:
            return None
        return self.first if (self.difference.value > 0.0) != self.other.cost else self.name

    @property
    def verdict(self) -> str:
        """In a sentence."""
        if not self.decided:
            return "The log does not decide which of them is better."
        if self.better is None:
            return f"Which of them is better is not said: {self.unsure}."
        return f"By these values {self.better} is better: {'smaller costs' if self.other.cost else 'larger rewards'}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        interval, trust = self.other.interval_or_none, self.other.trust
        return {
            "policy": self.name,
            "value": finite(self.other.value),
            "interval": None if interval is None else interval.to_dict(),
            "difference": self.difference.to_dict(),
            "better": self.better,
            "verdict": self.verdict,
            "light": self.light,
            "reasons": [] if trust is None else list(trust.reasons),
        }

    def __str__(self) -> str:
        found, verb = self.difference, "costs" if self.other.cost else "is worth"
        shown = f"{bounds(found)} ({100 * found.level:.4g}%)" if np.isfinite(found.half_width) else "no interval"
        value = self.other.value
        worth = f"which {verb} {value:.5g}" if np.isfinite(value) else "whose value is not known"
        head = f"{sentence(self.first)} compared with {self.name}, {worth}"
        return f"{head}: {found.value:+.5g}, {shown}.\n{self.verdict}"


def difference(a: Evaluation, b: Evaluation, *, states: ArrayLike | None = None, level: float = 0.95) -> Interval:
    """An interval for the value of one policy less that of another, from the same log.

    What an episode adds to one value it adds to the other one too, in part, so that the difference is known better than
    two intervals side by side would say.

    Parameters
    ----------
    a, b : Evaluation
        Of the same log, with the same gamma.
    states : (M, D), or (M,) numbers of states, optional
        Whose mean value is compared; of the start states, if left out.
    level : float in (0, 1)
    """
    if states is None and not (a.silence is None and b.silence is None):
        lower = difference(a.at_worth(highest=False), b.at_worth(highest=True), level=level)
        return between(lower, difference(a.at_worth(highest=True), b.at_worth(highest=False), level=level))
    if states is None and (a.by_returns is not None or b.by_returns is not None):
        return _by_episodes(a, b, level)
    return difference_interval(a.influence(states), b.influence(states), level)


def _by_episodes(a: Evaluation, b: Evaluation, level: float) -> Interval:
    """The difference of two values, one of which at least rests on returns, by what each episode adds to it."""
    logs = [None if one.fitted is None else one.fitted.log.ids for one in (a, b)]
    if a.gamma != b.gamma or logs[0] != logs[1]:
        raise InvalidInputError(
            "the values are not of the same episodes with the same gamma: a difference is taken of two policies on one "
            "log (of more than a million steps LSTDQ learns from a part, unless all=True, --all)"
        )
    first, second = a.by_episode(), b.by_episode()
    moved = first.contributions - second.contributions
    freedom = min(first.degrees, second.degrees)
    made = moved.size, False, f"the same ones for both; {NOT_COVERED}"
    return interval_about(
        first.value - second.value, standard_error(moved - moved.mean()), freedom, level, "episodes", *made
    )


def bounds(interval: Interval | None) -> str:
    """An interval as it is shown."""
    return "" if interval is None else f"[{interval.low:.4g}, {interval.high:.4g}]"


def finite(value: float | None) -> float | None:
    """A number for JSON."""
    return value if value is not None and np.isfinite(value) else None


def sentence(name: str) -> str:
    """A name at the beginning of a sentence; names of functions and columns stay as they are.

    >>> sentence("the policy that acted"), sentence("my_policies:careful")
    ('The policy that acted', 'my_policies:careful')
    """
    return f"T{name[1:]}" if name.startswith("the ") else name
