"""What is promised of answers, and whether the measured logs keep it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

from tlstd_lab.measurements.answers.cells import Cell
from tlstd_lab.measurements.answers.problems import BOUNDS, COMPLETE, GROUPS, KNOWN, problems

Logs = Sequence[Mapping[str, Any]]
"""What was kept of some logs."""
Measured = Mapping[Cell, Logs]
"""By cell."""

LEAST_COVERAGE = 0.93
POOLED = (0.935, 0.97)
GREEN_MISSES = 0.06
GREEN = 0.8
ENOUGH = 50
RED = 0.05
REFUSALS = 0.2
ERROR = 1.02
"""Root mean squared error of the answer over that of the mean of returns."""
DOUBLY_ROBUST = "doubly robust"


class Verdict(NamedTuple):
    """A promise, what was measured, and whether it holds; None: there is nothing to judge it by."""

    promise: str
    about: str
    measured: str
    holds: bool | None


def covered(one: Mapping[str, Any], truth: float) -> bool:
    """Whether the interval has the true value; a refusal counts by its interval, an error as a miss."""
    return one["low"] is not None and bool(one["low"] <= truth <= one["high"])


def is_covered(cell: Cell, logs: Logs) -> list[bool]:
    """Log by log."""
    return [covered(one, problems()[cell.problem].truth) for one in logs]


def holm(p: Sequence[float], level: float = 0.05) -> list[bool]:
    """Which hypotheses are rejected, so that one of the true ones is with at most this probability (Holm, 1979).

    >>> holm([0.01, 0.04, 0.03])
    [True, False, False]
    """
    rejected = [False] * len(p)
    for rank, i in enumerate(np.argsort(p, kind="stable").tolist()):
        if p[i] > level / (len(p) - rank):
            break
        rejected[i] = True
    return rejected


def at_most(successes: int, n: int, share: float) -> float:
    """The probability of so few successes or fewer, where each has this probability."""
    return float(bdtr(successes, n, share)) if n else 1.0


def at_least(successes: int, n: int, share: float) -> float:
    """The probability of so many successes or more."""
    return float(bdtrc(successes - 1, n, share)) if successes else 1.0


def rmse(logs: Logs, name: str, truth: float) -> float:
    """Of the answers that are numbers; NaN, if none is."""
    values = [one[name][0] if name == "returns" else one[name] for one in logs]
    errors = np.array([value - truth for value in values if value is not None and np.isfinite(value)])
    return float(np.sqrt(np.mean(errors**2))) if errors.size else float("nan")


def of_group(measured: Measured, group: str) -> dict[Cell, Logs]:
    """The cells of a group."""
    return {cell: logs for cell, logs in measured.items() if problems()[cell.problem].group == group}


def verdicts(measured: Measured) -> list[Verdict]:
    """All of them."""
    found = [_cells(measured)]
    for judge in (_pooled, _green_misses):
        found += [judge(group, of_group(measured, group)) for group in GROUPS if of_group(measured, group)]
    found += [_green_complete(measured), _green_doubly_robust(measured)]
    found += [
        _share("5. At most 5% red, refusals apart", group, of_group(measured, group), "light", "red", RED)
        for group in GROUPS
        if of_group(measured, group)
    ]
    found.append(_share("6. At most 20% refusals", KNOWN, of_group(measured, KNOWN), "rung", "refusal", REFUSALS))
    return [*found, *_errors(measured)]


def misses_by_light(measured: Measured, group: str) -> dict[str, tuple[int, int]]:
    """Misses and logs of each light."""
    logs, missed = Counter[str](), Counter[str]()
    for cell, some in of_group(measured, group).items():
        for one, inside in zip(some, is_covered(cell, some), strict=True):
            logs[one["light"]] += 1
            missed[one["light"]] += not inside
    return {light: (missed[light], logs[light]) for light in logs}


def _cells(measured: Measured) -> Verdict:
    counts = {cell: (sum(is_covered(cell, logs)), len(logs)) for cell, logs in measured.items()}
    p = [at_most(k, n, LEAST_COVERAGE) for k, n in counts.values()]
    low = [
        f"{cell.problem} {cell.size:,} ({k / n:.3f})"
        for (cell, (k, n)), rejected in zip(counts.items(), holm(p), strict=True)
        if rejected
    ]
    said = f"significantly below: {', '.join(low) or 'none'}; least p {min(p, default=1.0):.2g}"
    return Verdict("1. No cell covers less than 0.93", f"{len(counts)} cells", said, not low if counts else None)


def _pooled(group: str, cells: Measured) -> Verdict:
    inside = [one for cell, logs in cells.items() for one in is_covered(cell, logs)]
    share, n = float(np.mean(inside)), len(inside)
    error = np.sqrt(share * (1.0 - share) / n)
    upper = "" if group in BOUNDS else f" to {POOLED[1]:g}"
    holds = share >= POOLED[0] and (group in BOUNDS or share <= POOLED[1])
    name = f"2. Coverage from {POOLED[0]:g}{upper}"
    return Verdict(name, group, f"{share:.3f} ± {error:.3f} of {n:,} logs", holds)


def _green_misses(group: str, cells: Measured) -> Verdict:
    missed, n = misses_by_light(cells, group).get("green", (0, 0))
    p = at_least(missed, n, GREEN_MISSES)
    said = f"{missed} of {n:,}" + (f" ({missed / n:.1%}), p {p:.2g}" if n else "")
    return Verdict("3. Misses of green answers at most 6%", group, said, p > 0.05 if n else None)


def _green_complete(measured: Measured) -> Verdict:
    lights = [one["light"] for logs in of_group(measured, COMPLETE).values() for one in logs]
    return _enough_green(COMPLETE, lights)


def _green_doubly_robust(measured: Measured) -> Verdict:
    """Of the doubly robust answers whose weights have an effective sample size of ``ENOUGH``."""
    some = [one for logs in measured.values() for one in logs if one["rung"] == DOUBLY_ROBUST]
    lights = [one["light"] for one in some if one.get("effective", 0.0) >= ENOUGH]
    return _enough_green(f"doubly robust, effective sample size of {ENOUGH}", lights)


def _enough_green(about: str, lights: list[str]) -> Verdict:
    n, green = len(lights), lights.count("green")
    said = f"{green} of {n:,}" + (f" ({green / n:.1%})" if n else "")
    return Verdict("4. At least 80% green", about, said, green >= GREEN * n if n else None)


def _share(promise: str, about: str, cells: Measured, key: str, value: str, most: float) -> Verdict:
    every = [one for logs in cells.values() for one in logs]
    found = [one[key] == value for one in every if key == "rung" or one["rung"] != "refusal"]
    said = f"{sum(found)} of {len(found):,}" + (f" ({np.mean(found):.1%})" if found else "")
    return Verdict(promise, about, said, sum(found) <= most * len(found) if found else None)


def _errors(measured: Measured) -> list[Verdict]:
    """The error of answers with complete returns: over all cells, squares of ratios averaged; and the worst cell."""
    promise = "7. RMSE at most 1.02 of that of the mean of returns"
    ratios = {}
    for cell, logs in of_group(measured, COMPLETE).items():
        truth = problems()[cell.problem].truth
        ratios[cell] = rmse(logs, "answer", truth) / rmse(logs, "returns", truth)
    if not ratios:
        return [Verdict(promise, COMPLETE, "", None)]
    pooled = float(np.sqrt(np.mean(np.square(list(ratios.values())))))
    worst: Callable[[Cell], float] = ratios.__getitem__
    cell = max(ratios, key=worst)
    return [
        Verdict(promise, f"{COMPLETE}, all cells", f"{pooled:.3f}", pooled <= ERROR),
        Verdict(promise, "worst cell", f"{ratios[cell]:.3f} ({cell.problem} {cell.size:,})", ratios[cell] <= ERROR),
    ]
