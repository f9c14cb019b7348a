"""Task: how many of a batch of data sets have intervals that cover the true value."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm, t

from tlstd import KrylovLSTD
from tlstd.core.arrays import FloatArray
from tlstd.core.threads import one_thread
from tlstd.data.transitions import Transitions
from tlstd.evaluation import Asked, EpisodeValue, Interval, bootstrap_interval, influences, mean_interval, returns
from tlstd_lab.questions.coverage.problems import ROLLOUTS, Problem, problem

KINDS = ("sandwich", "plug-in", "debiased", "returns", "bootstrap")
"""Kinds of intervals, by their numbers in the results."""
TARGETS = ("start states", "one state")
ROUNDING = 1e-9
"""Of the value: no half-width is smaller."""


def coverage(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Intervals of every kind, for the start states and for one state, of many data sets of one problem.

    Settings: ``problem``, ``n_episodes``, ``n_sets``, ``n_bootstrapped`` (of the sets), ``level``, and ``rollouts``, if
    not as usual, behind the true value of the single state. One row for each target and kind. Columns: ``target`` and
    ``kind``, numbers in ``TARGETS`` and ``KINDS``; ``sets``; ``covered``, how many of their intervals have the true
    value inside; ``bias`` and ``spread``, mean and standard deviation of value
    less truth; ``width``, the median half-width; ``degrees``, the median degrees of freedom.
    """
    made = problem(settings["problem"], seed, settings.get("rollouts", ROLLOUTS))
    level = settings["level"]
    found: dict[tuple[int, int], list[tuple[float, ...]]] = {}
    with one_thread():
        for number in range(settings["n_sets"]):
            rng = np.random.default_rng([seed, 0, number])
            bootstrapped = number < settings["n_bootstrapped"]
            for key, interval in _intervals(made, settings["n_episodes"], rng, level, bootstrapped).items():
                truth = made.value if key[0] else made.start
                row = (float(truth in interval), interval.value - truth, interval.half_width, interval.degrees)
                found.setdefault(key, []).append(row)
    rows = [_summary(*key, np.array(found[key])) for key in sorted(found)]
    names = ("target", "kind", "sets", "covered", "bias", "spread", "width", "degrees")
    return dict(zip(names, np.array(rows).T, strict=True))


def _summary(target: int, kind: int, rows: FloatArray) -> tuple[float, ...]:
    inside, errors, widths, degrees = rows.T
    middle = (float(np.median(widths)), float(np.median(degrees)))
    return (target, kind, len(rows), inside.sum(), errors.mean(), errors.std(), *middle)


def _intervals(
    made: Problem, n_episodes: int, rng: np.random.Generator, level: float, bootstrapped: bool
) -> dict[tuple[int, int], Interval]:
    """The intervals of one data set, by the numbers of target and kind."""
    steps, starts = made.draw(n_episodes, rng)
    asked = (starts, Asked(made.state))
    model = KrylovLSTD(steps.n_features, lambda_=made.lambda_, dimension=1)
    model.update_many(steps)
    found = {}
    for kind in ("sandwich", "debiased"):
        for target, influence in enumerate(influences(model, asked, kind=kind)):
            found[target, KINDS.index(kind)] = symmetric(influence.found, level)
            if kind == "sandwich":
                found[target, KINDS.index("plug-in")] = symmetric(influence.plug_in().found, level, normal=True)
    if made.on_policy and starts.drawn is not None and starts.drawn.size == n_episodes:
        seen = _start_returns(steps, starts)
        found[0, KINDS.index("returns")] = symmetric(mean_interval(seen, level), level)
    if bootstrapped:
        for target, each in enumerate(asked):
            found[target, KINDS.index("bootstrap")] = bootstrap_interval(model, each, level=level, rng=rng)
    return found


def symmetric(found: EpisodeValue | Interval, level: float, *, normal: bool = False) -> Interval:
    """The interval with two sides of the same length: Student's quantile, or a normal one, of standard errors.

    :func:`tlstd.evaluation.interval_of` makes the side of a long tail longer, so that it covers at least as often.
    """
    value, error, share = found.value, found.standard_error, (1.0 + level) / 2.0
    degrees = np.inf if normal else found.degrees
    half = float((norm.ppf(share) if normal else t.ppf(share, degrees)) * error) if error > 0.0 else 0.0
    half = max(half, ROUNDING * abs(value))
    return Interval(value, value - half, value + half, level, error, degrees, "symmetric", 0, "chance", (0.0, 0.0))


def _start_returns(steps: Transitions, starts: Asked) -> FloatArray:
    seen = returns(steps)
    assert starts.drawn is not None
    kept = starts.drawn[seen.usable[starts.drawn]]
    values: FloatArray = seen.values[kept]
    return values
