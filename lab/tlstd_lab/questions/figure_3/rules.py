"""The rules that decide the paper's claims on the energy domain, from errors; also for other features than tiles.

Errors of a method have a row per run and a column per point of its curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.claims import Verdict, above, below
from tlstd_lab.statistics import OverRuns, interval, ratio_of_means

SMALL_LOSS = 0.02
"""Share of the samples whose loss does not make a learner too slow."""


class Ruling(NamedTuple):
    """A verdict and the number that decides it."""

    verdict: Verdict
    number: OverRuns


def falls_with_rank(finals: Mapping[int, FloatArray]) -> Ruling:
    """Whether the final error falls from each rank to the next; ``finals`` by rank, rising."""
    ranks = list(finals)
    number = ratio_of_means(finals[ranks[-1]], finals[ranks[0]])
    verdict = below(number, 1.0)
    if verdict == "reproduced" and any(ratio_of_means(finals[b], finals[a]).value >= 1.0 for a, b in pairwise(ranks)):
        verdict = "partly"
    return Ruling(verdict, number)


def settles(finals: FloatArray, earlier: FloatArray, constant: float) -> tuple[Ruling, OverRuns]:
    """Whether errors have settled below that of the best constant; also the change since the ``earlier`` ones."""
    number = interval(lambda e: float(e.mean() / constant), finals)
    change = ratio_of_means(finals, earlier)
    levelled = change.low > 0.97 and change.high < 1.03
    return Ruling(below(number, 0.95, partly=1.0) if levelled else "not", number), change


def larger_below_five(ratios: Mapping[int, OverRuns]) -> Ruling:
    """Whether the errors of ranks 1 to 3 are larger than that of rank 5; ``ratios`` by rank."""
    number = ratios[3]
    verdict = above(number, 1.1)
    if verdict != "reproduced":
        verdict = "partly" if ratios[1].low > 1.1 else "not"
    return Ruling(verdict, number)


def comes_level(ours: FloatArray, theirs: FloatArray, samples: Sequence[int]) -> tuple[Ruling, str]:
    """Whether our final error is nearly theirs, and 1.1 times theirs is reached in half the samples; says when."""
    number = ratio_of_means(ours[:, -1], theirs[:, -1])
    level = 1.1 * float(theirs[:, -1].mean())
    steps = [first_at(errors.mean(axis=0), level, samples) for errors in (ours, theirs)]
    verdict = below(number, 1.1, partly=1.25)
    if verdict == "reproduced" and steps[0] > 0.5 * steps[1]:
        verdict = "partly"
    words = [f"after {count:,.0f} samples" if np.isfinite(count) else "never" for count in steps]
    said = f"1.1 times TD's final error is reached {words[0]} by t-LSTD and {words[1]} by TD"
    return Ruling(verdict, number), said


def outperforms(ratios: Mapping[str, OverRuns]) -> tuple[Ruling, str]:
    """Whether our error is below that of both competitors, and the better of these; ``ratios``: ours over theirs."""
    worse = max(ratios, key=lambda name: ratios[name].value)
    better = sum(ratio.high < 1.0 for ratio in ratios.values())
    verdict: Verdict = "reproduced" if better == len(ratios) else "partly" if better else "not"
    return Ruling(verdict, ratios[worse]), worse


def faster_early(number: OverRuns, others: Mapping[str, OverRuns]) -> Verdict:
    """Whether our early error is below TD's; partly if below that of another competitor only."""
    verdict = below(number, 1.0)
    return "partly" if verdict == "not" and any(other.high < 1.0 for other in others.values()) else verdict


def alike(number: OverRuns) -> Verdict:
    """Whether two errors are within 5%; partly within 10%."""
    if number.low > 0.95 and number.high < 1.05:
        return "reproduced"
    return "partly" if 0.9 < number.value < 1.1 else "not"


def indifferent(by_m: FloatArray) -> Ruling:
    """Whether errors (runs, m) hardly depend on m."""
    spread = interval(lambda e: float(e.mean(axis=0).max() / e.mean(axis=0).min()), by_m)
    return Ruling(below(spread, 1.1, partly=1.25), spread)


def differs(number: OverRuns) -> Verdict:
    """Whether another m's step size costs more than 2%."""
    return above(number, 1.02, partly=1.0)


def large_enough(number: OverRuns) -> Verdict:
    """Whether a larger m gains less than 2%."""
    return below(number, 1.02, partly=1.05)


def share_near_best(errors: FloatArray) -> OverRuns:
    """Share of the candidates (runs, candidates) within 20% of the best."""

    def share(errors: FloatArray) -> float:
        means = errors.mean(axis=0)
        return float((means <= 1.2 * means.min()).mean())

    return interval(share, errors)


def sensitive(number: OverRuns, td: OverRuns) -> Verdict:
    """Whether fewer than half of the step sizes are near the best; partly if fewer than of TD's."""
    verdict = below(number, 0.5)
    return "partly" if verdict == "not" and number.high < td.low else verdict


def needs_decay(shares: Mapping[int | None, OverRuns], chosen: float, constant: float, decayed: float) -> Ruling:
    """Whether constant steps diverge (``shares`` by N₀; None: constant) and the best decayed one is better.

    ``chosen`` is the share of reported runs that diverged, ``constant`` and ``decayed`` the least errors of sweeps.
    """
    number = shares[None]
    verdict: Verdict = "not"
    if number.low > 0.0:  # some constant steps diverge; whether that matters is whether decay is needed
        helps = chosen == 0.0 and constant > 1.1 * decayed
        least = min(share.value for n0, share in shares.items() if n0 is not None)
        verdict = "reproduced" if helps and least < number.value else "partly"
    return Ruling(verdict, number)


def rougher(ratios: Mapping[str, OverRuns]) -> tuple[Ruling, str]:
    """Whether our curve is rougher than both others; also the roughest of them. ``ratios`` ours over theirs."""
    least = min(ratios, key=lambda name: ratios[name].value)
    more = sum(ratio.low > 1.0 for ratio in ratios.values())
    verdict: Verdict = "reproduced" if more == len(ratios) else "partly" if more else "not"
    return Ruling(verdict, ratios[least]), least


def too_slow(shares: FloatArray, work_of_td: float, seconds: float) -> Ruling:
    """Whether the slower learner loses samples (``shares`` by run); partly if at least TD waits half the time."""
    number = interval(lambda s: float(s.mean()), shares)
    if number.low > SMALL_LOSS:
        return Ruling("reproduced", number)
    return Ruling("partly" if work_of_td < 0.5 * seconds else "not", number)


def scales(number: OverRuns, learned: Mapping[int, OverRuns]) -> Verdict:
    """Whether we learn more samples than iLSTD, at the binding rate and (or partly) at all of them."""
    verdict = above(number, 1.0)
    return "partly" if verdict == "reproduced" and any(ratio.high < 1.0 for ratio in learned.values()) else verdict


def better_somewhere(number: OverRuns, others: Mapping[int, OverRuns]) -> Verdict:
    """Whether our error is lower at the paper's rate; partly if only at another."""
    verdict = below(number, 1.0)
    return "partly" if verdict == "not" and any(ratio.high < 1.0 for ratio in others.values()) else verdict


def costs_little(number: OverRuns) -> Verdict:
    """Whether our CPU time per sample is at most twice TD's; partly five times."""
    return below(number, 2.0, partly=5.0)


def first_at(errors: FloatArray, level: float, samples: Sequence[int]) -> float:
    """The first number of samples at which the error is at or below a level; infinite if none is.

    Example
    -------
    >>> first_at(np.array([3.0, 2.0, 1.0]), 2.0, [10, 20, 30])
    20.0
    """
    reached = np.flatnonzero(errors <= level)
    return float(samples[reached[0]]) if reached.size else np.inf


def roughness(errors: FloatArray) -> FloatArray:
    """Mean absolute change from point to point around the mean change of the run (runs, points).

    Example
    -------
    >>> roughness(np.array([[3.0, 2.0, 1.0], [0.0, 2.0, 0.0]]))
    array([0., 2.])
    """
    changes = np.diff(errors, axis=1)
    rough: FloatArray = np.abs(changes - changes.mean(axis=1, keepdims=True)).mean(axis=1)
    return rough
