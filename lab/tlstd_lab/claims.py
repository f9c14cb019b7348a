"""What the paper says that can be measured, and what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tlstd_lab.statistics import OverRuns

if TYPE_CHECKING:
    from tlstd_lab.panel import Results

BEYOND = "beyond the paper"
"""Where a statement stands that is ours."""

Verdict = Literal["reproduced", "partly", "not", "unjudged"]

MIN_RUNS = 3
"""The smallest number of independent runs by which a claim is judged.

One run says nothing about the spread between runs. Two have a 95% interval, but Student's quantile makes it 9 times as
wide as that spread: of differences three times the spread it excludes zero in a third of all cases. With three runs
it does in three quarters (normal differences, simulated with ``tlstd_lab.statistics.bootstrap``).
"""


@dataclass(frozen=True)
class Finding:
    """The measured number that decides a claim, its 95% interval, the verdict, and what has to be said about it."""

    verdict: Verdict
    number: OverRuns
    what: str
    """What the number is."""
    note: str = ""

    @property
    def words(self) -> str:
        """The verdict; of a claim that was not judged, why."""
        if self.verdict != "unjudged":
            return self.verdict
        return f"not judged: {runs_in_words(self.number.runs)}, at least {MIN_RUNS} needed"

    @property
    def measured(self) -> str:
        """The number with the runs behind it, and what it is."""
        return f"{self.number}, {runs_in_words(self.number.runs)}: {self.what}"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper in our words, where it stands, and the rule that decides it from results.

    The number of the rule's finding says how many independent runs are behind it; 0 if chance has no part in it.
    """

    name: str
    where: str
    statement: str
    rule: Callable[[Results], Finding]

    def judge(self, results: Results) -> Finding:
        """What the rule finds; without a verdict if it is from fewer than ``MIN_RUNS`` random runs."""
        found = self.rule(results)
        return replace(found, verdict="unjudged") if 0 < found.number.runs < MIN_RUNS else found


def runs_in_words(runs: int) -> str:
    """How many runs are behind a number.

    >>> runs_in_words(1), runs_in_words(30), runs_in_words(0)
    ('1 run', '30 runs', 'no random runs')
    """
    return f"{runs or 'no random'} run{'s' * (runs != 1)}"


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
