"""Two policies on one log: how much more one is worth than the other, and which of them is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tlstd.errors import InvalidInputError
from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.intervals import Interval, difference_of
from tlstd.evaluation.ladder import by_block, by_episode, clustered
from tlstd.evaluation.silence import between

if TYPE_CHECKING:
    from tlstd.evaluation.report import Report


@dataclass(frozen=True, eq=False)
class Comparison:
    """How much more a policy is worth than another one, from the same log; ``print`` shows it."""

    name: str
    """Of the other policy."""
    other: Report
    """Its answer."""
    difference: Interval
    """Of the value of the target policy less the other's."""
    first: str = "the target policy"
    """Of which this is said."""
    unsure: str = ""
    """Why it is not known whether more is better; empty if it is."""

    @property
    def light(self) -> str:
        """How far to trust the other answer."""
        return self.other.trust.light

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
            "reasons": list(trust.reasons),
        }

    def __str__(self) -> str:
        found, verb = self.difference, "costs" if self.other.cost else "is worth"
        shown = f"{bounds(found)} ({100 * found.level:.4g}%)" if np.isfinite(found.half_width) else "no interval"
        value = self.other.value
        worth = f"which {verb} {value:.5g}" if np.isfinite(value) else "whose value is not known"
        head = f"{sentence(self.first)} compared with {self.name}, {worth}"
        return f"{head}: {found.value:+.5g}, {shown}.\n{self.verdict}"


def difference(a: Report, b: Report, *, states: ArrayLike | None = None, level: float = 0.95) -> Interval:
    """An interval for the value of one policy less that of another, from the same log.

    What an episode adds to one value it adds to the other one too, in part, so that the difference is known better than
    two intervals side by side would say. Where the log lacks actions of a policy it has room for whatever these are
    worth.

    Parameters
    ----------
    a, b : Report
        Of the same log, with the same gamma.
    states : (M, D), or (M,) numbers of states, optional
        Whose mean value is compared; of the start states, if left out.
    level : float in (0, 1)
    """
    if a.gamma != b.gamma or a.log.ids != b.log.ids:
        raise InvalidInputError(
            "the values are not of the same episodes with the same gamma: a difference is taken of two policies on one "
            "log"
        )
    low, high = a.ends(states)
    other_low, other_high = b.ends(states)
    pairs = [_alike(a, low, b, other_high), _alike(a, high, b, other_low)]
    ends = [difference_of(clustered(one, a.log), clustered(two, a.log), level) for one, two in pairs]
    silent = low is not high or other_low is not other_high
    return between(*ends) if silent and ends[0].value != ends[1].value else ends[0]


def _alike(a: Report, one: EpisodeValue, b: Report, two: EpisodeValue) -> tuple[EpisodeValue, EpisodeValue]:
    """Two values with what the same episodes, or the same blocks of these, move each of them by."""
    sizes = one.contributions.size, two.contributions.size
    if sizes[0] == sizes[1]:
        return one, two
    for blocks in (a.case.blocks, b.case.blocks):
        if blocks is None:
            continue
        coarse = [by_block(each, blocks) if each.contributions.size == blocks.size else each for each in (one, two)]
        if coarse[0].contributions.size == coarse[1].contributions.size:
            return coarse[0], coarse[1]
    one, two = by_episode(one, a.case.steps_of(one), a.log), by_episode(two, b.case.steps_of(two), b.log)
    if one.contributions.size != two.contributions.size:
        raise InvalidInputError(
            f"one value is known by {one.contributions.size} blocks of the log and the other by "
            f"{two.contributions.size}: evaluate both with estimators='LSTDQ' or 'KrylovLSTD'"
        )
    return one, two


def bounds(interval: Interval | None) -> str:
    """An interval as it is shown."""
    return "" if interval is None else f"[{interval.low:.4g}, {interval.high:.4g}]"


def finite(value: float | None) -> float | None:
    """A number for JSON."""
    return value if value is not None and np.isfinite(value) else None


def sentence(name: str) -> str:
    """A name at the beginning of a sentence; names of functions and columns stay as they are.

    >>> sentence("the logged policy"), sentence("my_policies:careful")
    ('The logged policy', 'my_policies:careful')
    """
    return f"T{name[1:]}" if name.startswith("the ") else name
