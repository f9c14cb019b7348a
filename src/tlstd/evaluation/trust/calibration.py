"""Whether returns are what was predicted."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.units import deviation
from tlstd.evaluation.trust.evidence import CERTAIN, LIKELY, MEDIUM, SMALL, Evidence, Mean, clustered
from tlstd.evaluation.trust.predictions import TOO_LITTLE, unchecked
from tlstd.evaluation.trust.verdict import Check, graded

PARTS = 10
"""Of the predictions, in the picture of calibration."""


def calibration(evidence: Evidence) -> Check:
    """Whether returns are what was predicted, on average and along the predictions."""
    name, title = "calibration", "Predictions come true"
    if not evidence.can_hold_out:
        return unchecked(name, title, TOO_LITTLE)
    found, first = evidence.fit.values, evidence.first_steps
    slope, mean = _slope(evidence, found)
    at_starts = Mean(0.0, np.inf, 0)
    if first.size >= 4:
        errors = (evidence.returns - found)[first]
        at_starts = clustered(errors, np.ones(first.size), evidence.folds.group[first])
    state = _along(evidence, slope, (mean, at_starts))
    sentence = f"Where 1 more was predicted for held-out states, {slope.value:.2f} ± {2 * slope.error:.2f} more came"
    if first.size >= 4:
        sentence += f"; start states brought {at_starts.value:+.3g} over their prediction"
    if state != "green":
        sentence += ": predictions are not what comes. Check end flags and γ, and try other features"
    return Check(
        name,
        title,
        state,
        slope.value,
        "slope of held-out returns over predictions; 1 is right",
        "outside 0.8 to 1.25 and off by 0.2 standard deviations, or so much off on average; by 3 standard errors",
        "off by 0.5 standard deviations on average (for given states also: outside 0.5 to 2); by 4 standard errors",
        "Returns are the values and noise of mean zero: they lie around the predictions with slope 1 and intercept 0, "
        "whatever the noise. The errors are over episodes.",
        f"{sentence}.",
        {
            "slope_error": slope.error,
            "mean_error": mean.value,
            "mean_error_error": mean.error,
            "start_error": at_starts.value if first.size >= 4 else None,
            "start_error_error": at_starts.error if first.size >= 4 else None,
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
