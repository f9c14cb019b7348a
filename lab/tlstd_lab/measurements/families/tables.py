"""The table of ``docs/features.md``: errors of each method on each problem, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tlstd_lab.measurements.families.cells import METHODS, Kept, version
from tlstd_lab.measurements.families.library import FAMILIES
from tlstd_lab.measurements.families.problems import GROUPS, problem
from tlstd_lab.tables import table, verdict

RIVAL = ("auto of 0.2", "trees", "network")
"""What "auto" is compared with, beside the best single family."""
GEOMETRIC, WORST, CPU = 1.05, 1.25, 0.25
"""Targets: geometric mean and largest of the ratios of RMSE, and the share of the trees' CPU time."""

Runs = Mapping[str, list[dict[str, Any]]]
"""By method, the seeds that were measured."""


def by_problem(kept: Kept, names: list[str], n_seeds: int) -> dict[str, Runs]:
    """What was measured of each problem by the code as it is now."""
    found: dict[str, Runs] = {}
    for name in names:
        keys = {method: version(name, method) for method in METHODS}
        every = {m: [kept.get((v, name, m, seed)) for seed in range(n_seeds)] for m, v in keys.items()}  # type: ignore[call-overload]
        some = {method: [one for one in runs if one is not None] for method, runs in every.items()}
        if any(some.values()):
            found[name] = {method: runs for method, runs in some.items() if runs}
    return found


def seen(runs: Runs, method: str) -> dict[int, float]:
    """RMSE by seed; infinite where the method failed."""
    return {
        one["seed"]: float(one.get("rmse", np.inf)) for one in runs.get(method, ()) if "refused" not in one
    }  # fmt: skip


class Ratio(NamedTuple):
    """Mean RMSE of "auto" over that of the best other method, with its standard error over seeds."""

    value: float
    error: float
    against: str


def ratio(runs: Runs) -> Ratio | None:
    """None if there is nothing to compare; a method that failed on a seed is not the best one."""
    own = seen(runs, "auto")
    others = {name: seen(runs, name) for name in (*RIVAL, *FAMILIES)}
    means = {name: np.mean(list(found.values())) for name, found in others.items() if found}
    means = {name: mean for name, mean in means.items() if np.isfinite(mean)}
    if not own or not means:
        return None
    best = min(means, key=lambda name: means[name])
    seeds = sorted(own.keys() & others[best].keys())
    if not seeds:
        return None
    a, b = (np.array([found[seed] for seed in seeds]) for found in (own, others[best]))
    value = float(a.mean() / b.mean())
    error = float(np.std(a - value * b, ddof=1) / np.sqrt(len(seeds)) / b.mean()) if len(seeds) > 1 else np.nan
    return Ratio(value, error, best)


def seconds(runs: Runs, method: str) -> float:
    """Mean CPU seconds."""
    found = [one["seconds"] for one in runs.get(method, ()) if "seconds" in one]
    return float(np.mean(found)) if found else np.nan


def tables(measured: dict[str, Runs]) -> dict[str, str]:
    """The table of problems and below it that of the targets, as one."""
    shown = [m for m in METHODS if any(seen(runs, m) for runs in measured.values())]
    head = ["problem", *(f"RMSE: {shown[0]}" if m == shown[0] else m for m in shown)]
    head += ["ratio of auto to the best other", "CPU seconds: auto", "trees"]
    rows: list[list[str]] = []
    for group in GROUPS:
        some = [name for name in measured if problem(name).group == group]
        if some:
            rows += [[f"**{group}**", *[""] * (len(head) - 1)], *(_row(name, measured[name], shown) for name in some)]
    judged = targets(measured)
    below = ["", table(["target", "measured"], judged)] if judged else []
    return {"families": "\n".join([table(head, rows), *below])}


def _row(name: str, runs: Runs, shown: list[str]) -> list[str]:
    means = {method: np.mean(list(seen(runs, method).values() or [np.nan])) for method in shown}
    least = np.nanmin(list(means.values()))
    cells = ["" if np.isnan(mean) else f"**{mean:.3g}**" if mean == least else f"{mean:.3g}" for mean in means.values()]
    found = ratio(runs)
    compared = "" if found is None else f"{found.value:.2f} ± {found.error:.2f} ({found.against})"
    took = [seconds(runs, method) for method in ("auto", "trees")]
    return [f"{problem(name).words} (`{name}`)", *cells, compared, *("" if np.isnan(s) else f"{s:.2g}" for s in took)]


def targets(measured: dict[str, Runs]) -> list[list[str]]:
    """Geometric mean, worst ratio and CPU time; and the errors on the README's energy contest."""
    found = {name: one for name, runs in measured.items() if (one := ratio(runs)) is not None}
    rows: list[list[str]] = []
    if found:
        values = np.array([one.value for one in found.values()])
        worst = max(found, key=lambda name: found[name].value)
        mean = float(np.exp(np.log(values).mean()))
        rows += [
            [f"RMSE of auto over the best other: geometric mean of {len(values)} problems", verdict(mean, GEOMETRIC)],
            [f"the same, worst problem (`{worst}`, against {found[worst].against})", verdict(values.max(), WORST)],
        ]
    shares = {name: (seconds(runs, "auto"), seconds(runs, "trees")) for name, runs in measured.items()}
    shares = {name: both for name, both in shares.items() if np.isfinite(both).all()}
    if shares:
        own, trees = np.sum(list(shares.values()), axis=0)
        slowest = max(shares, key=lambda name: shares[name][0] / shares[name][1])
        rows += [
            ["CPU time of auto over that of the trees, all problems", verdict(float(own / trees), CPU)],
            [f"the same, slowest problem (`{slowest}`)", verdict(shares[slowest][0] / shares[slowest][1], CPU)],
        ]
    for name in ("energy-1000", "energy-10000"):
        if own_errors := seen(measured.get(name, {}), "auto"):
            others = [f"{m} {np.mean(list(e.values())):.0f}" for m in RIVAL if (e := seen(measured[name], m))]
            mean_error = np.mean(list(own_errors.values()))
            rows.append([f"RMSE of auto, {problem(name).words}", ", ".join([f"{mean_error:.0f}", *others])])
    return rows


def refusals(measured: dict[str, Runs]) -> list[str]:
    """What was refused or failed, and how often."""
    found: dict[str, list[str]] = {}
    for name, runs in measured.items():
        for method, some in runs.items():
            for one in some:
                for kind in ("refused", "error"):
                    if kind in one:
                        found.setdefault(f"{method} {kind}: {one[kind]}", []).append(name)
    return [f"{text} ({len(names)} runs of {', '.join(sorted(set(names)))})" for text, names in found.items()]
