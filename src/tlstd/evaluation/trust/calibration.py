"""Whether returns are what was predicted, and whether the answer is what came."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.units import deviation
from tlstd.evaluation.influence import standard_error
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.trust.evidence import CERTAIN, LIKELY, MEDIUM, SMALL, TRIFLE, Evidence, Mean, clustered
from tlstd.evaluation.trust.predictions import TOO_LITTLE, unchecked
from tlstd.evaluation.trust.verdict import ORDER, Check, graded

PARTS = 10
"""Of the predictions, in the picture of calibration."""
ALL_BUT_FEW = 0.98
"""Share of start states with a usable return, below which those with one are not like the others."""


class Compared(NamedTuple):
    """What a comparison has found: a state, and what is to be said if it is not green."""

    state: str
    words: str
    off: Mean


def calibration(evidence: Evidence) -> Check:
    """Whether returns are what was predicted, on average and along the predictions; and the answer what came."""
    name, title = "calibration", "Predictions come true"
    if not evidence.can_hold_out:
        return unchecked(name, title, TOO_LITTLE)
    found, first = evidence.fit.values, evidence.first_steps
    slope, mean = _slope(evidence, found)
    at_starts = Mean(0.0, np.inf, 0)
    if first.size >= 4:
        errors = (evidence.returns - found)[first]
        at_starts = clustered(errors, np.ones(first.size), evidence.folds.group[first])
    beside = [_mean_of_returns(evidence), _intervals_apart(evidence)]
    states = [_along(evidence, slope, (mean, at_starts)), *(each.state for each in beside)]
    state = min(states, key=ORDER.index)
    sentence = f"Where 1 more was predicted for held-out states, {slope.value:.2f} ± {2 * slope.error:.2f} more came"
    if first.size >= 4:
        sentence += f"; start states brought {at_starts.value:+.3g} over their prediction"
    sentence = ". ".join([sentence, *(each.words for each in beside if each.state != "green")])
    if state != "green":
        sentence += ": predictions are not what comes. Check end flags and γ, and try other features"
    off = beside[0].off
    return Check(
        name,
        title,
        state,
        slope.value,
        "slope of held-out returns over predictions; 1 is right",
        "outside 0.8 to 1.25 and off by 0.2 standard deviations, or so much off on average, or the answer off the mean "
        "of returns by 0.1; by 3 standard errors; or the intervals of the answer and of that mean do not overlap",
        "off by 0.5 standard deviations on average (for given states also: outside 0.5 to 2), or the answer off the "
        "mean of returns by 0.2; by 4 standard errors",
        "Returns are the values and noise of mean zero: they lie around the predictions with slope 1 and intercept 0, "
        "whatever the noise. The errors are over episodes.",
        f"{sentence}.",
        {
            "slope_error": slope.error,
            "mean_error": mean.value,
            "mean_error_error": mean.error,
            "start_error": at_starts.value if first.size >= 4 else None,
            "start_error_error": at_starts.error if first.size >= 4 else None,
            "answer_error": off.value if off.n_groups else None,
            "answer_error_error": off.error if off.n_groups else None,
            "intervals_overlap": None if beside[1].off.n_groups == 0 else beside[1].state == "green",
            "parts": _parts(evidence, found),
        },
    )


def _along(evidence: Evidence, slope: Mean, errors: tuple[Mean, ...]) -> str:
    """The state of predictions: by their slope, and by their errors on average and at start states."""
    spread = evidence.spread
    if not spread > 0.0:
        return "green"
    moved = abs(slope.value - 1.0) * _deviation(evidence, evidence.fit.values) / spread
    amber = slope.chance(1.0) < LIKELY and not 0.8 < slope.value < 1.25 and moved > SMALL
    red = amber and slope.chance(1.0) < CERTAIN and not 0.5 < slope.value < 2.0 and evidence.starts.rows is None
    red |= any(m.chance(scale=evidence.unit) < CERTAIN and abs(m.value) / spread > MEDIUM for m in errors)
    amber |= any(m.chance(scale=evidence.unit) < LIKELY and abs(m.value) / spread > SMALL for m in errors)
    return graded(amber, red)


def _mean_of_returns(evidence: Evidence) -> Compared:
    """The answer beside the mean of start returns, by what each episode adds to their difference."""
    off = _beside_returns(evidence)
    effect = abs(off.value) / evidence.spread if evidence.spread > 0.0 else 0.0
    chance = off.chance(scale=evidence.unit)
    state = graded(chance < LIKELY and effect > SMALL / 2.0, chance < CERTAIN and effect > SMALL)
    return Compared(state, f"The answer is off the mean of returns by {off.value:.3g} ± {2 * off.error:.2g}", off)


def _intervals_apart(evidence: Evidence) -> Compared:
    """The intervals of the answer and of the mean of start returns, both of all steps: whether they overlap.

    Both are of the same episodes, so that an error of the difference as if they were independent is too large.
    """
    own, plain = evidence.answer.interval, evidence.answer.returns
    if own is None or plain is None:
        return Compared("green", "", Mean(0.0, np.inf, 0))
    n = min(own.n_groups, plain.n_groups)
    off = Mean(own.value - plain.value, float(np.hypot(own.standard_error, plain.standard_error)), n)
    apart = max(own.low, plain.low) > min(own.high, plain.high) and abs(off.value) > TRIFLE * evidence.size
    certain = off.chance(scale=evidence.unit) < CERTAIN and abs(off.value) > SMALL * evidence.spread
    of = "Of all steps, the" if evidence.n_steps > len(evidence.log) else "The"
    words = f"{of} answer's interval, {_bounds(own)}, and that of the mean of {plain.n_groups:,} returns, "
    words += f"{_bounds(plain)}, do not overlap"
    return Compared(graded(apart, apart and certain), words, off)


def _bounds(interval: Interval) -> str:
    return f"{interval.low:.4g} to {interval.high:.4g}"


def _beside_returns(evidence: Evidence) -> Mean:
    """The answer less the mean of start returns, which rests on no features; no groups where it cannot be compared.

    The error is that of the difference: what an episode adds to one it adds, in part, to the other.

    J. A. Hausman, "Specification tests in econometrics", Econometrica 46, 1978.
    """
    rows, first, nothing = evidence.starts.rows, evidence.first_steps, Mean(0.0, np.inf, 0)
    if not evidence.on_policy or rows is None or rows.size != evidence.log.start_rows.size or first.size < 4:
        return nothing
    found, n = evidence.influence, evidence.folds.n_groups
    if found.groups.n_groups != n or first.size < ALL_BUT_FEW * rows.size or found.groups.n_blocks:
        return nothing
    returns = evidence.returns[first]
    by_group = np.bincount(evidence.folds.group[first], (returns - returns.mean()) / first.size, n)
    moved = found.contributions - by_group
    return Mean(found.value - float(returns.mean()), standard_error(moved - moved.mean()), n)


def _deviation(evidence: Evidence, found: FloatArray) -> float:
    """Standard deviation of predictions."""
    return deviation(found[evidence.weights > 0.0])


def _slope(evidence: Evidence, found: FloatArray) -> tuple[Mean, Mean]:
    """Slope of returns over predictions with an error over groups, and the mean error."""
    mean = evidence.mean(evidence.returns - found)
    returns, found = evidence.returns / evidence.unit, found / evidence.unit
    centre = evidence.mean(found).value
    x = found - centre
    square = evidence.mean(x * x).value
    if not square > 1e-12 * max(1.0, centre * centre):  # the same prediction everywhere
        return Mean(1.0, np.inf, mean.n_groups), mean
    x /= square
    slope = evidence.mean(x * (returns - evidence.mean(returns).value)).value
    residual = (returns - mean.value / evidence.unit - centre - slope * (found - centre)) * x
    return Mean(slope, evidence.mean(residual).error, mean.n_groups), mean


def _parts(evidence: Evidence, found: FloatArray) -> list[dict[str, float]]:
    """Tenths of the predictions, with the mean of predictions and returns in each."""
    used = np.flatnonzero(evidence.weights > 0.0)
    order = used[np.argsort(found[used], kind="stable")]
    made = []
    for some in np.array_split(order, PARTS):
        if some.size:
            mean = clustered(evidence.returns[some], np.ones(some.size), evidence.folds.group[some])
            made.append(
                {
                    "predicted": float(found[some].mean()),
                    "realised": mean.value,
                    "standard_error": mean.error if np.isfinite(mean.error) else 0.0,
                    "steps": some.size,
                }
            )
    return made
