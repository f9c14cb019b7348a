"""What the paper says that can be measured, and what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tlstd_lab.statistics import OverRuns

if TYPE_CHECKING:
    from tlstd_lab.panel import Results

BEYOND = "beyond the paper"
"""Where a statement stands that is ours."""

Verdict = Literal["reproduced", "partly", "not"]


@dataclass(frozen=True)
class Finding:
    """The measured number that decides a claim, its 95% interval, the verdict, and what has to be said about it."""

    verdict: Verdict
    number: OverRuns
    what: str
    """What the number is."""
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper in our words, where it stands, and the rule that decides it from results."""

    name: str
    where: str
    statement: str
    judge: Callable[[Results], Finding]


def below(number: OverRuns, bound: float, *, partly: float | None = None) -> Verdict:
    """Reproduced if the whole interval is below ``bound``; partly if the number is below it, or below ``partly``.

    >>> below(OverRuns(0.9, 0.8, 0.95), 1.0), below(OverRuns(0.9, 0.8, 1.1), 1.0), below(OverRuns(1.2, 1.1, 1.3), 1.0)
    ('reproduced', 'partly', 'not')
    """
    if number.high < bound:
        return "reproduced"
    return "partly" if number.value < (bound if partly is None else partly) else "not"


def above(number: OverRuns, bound: float, *, partly: float | None = None) -> Verdict:
    """Reproduced if the whole interval is above ``bound``; partly if the number is above it, or above ``partly``.

    >>> above(OverRuns(2.0, 1.5, 2.5), 1.0)
    'reproduced'
    """
    if number.low > bound:
        return "reproduced"
    return "partly" if number.value > (bound if partly is None else partly) else "not"
