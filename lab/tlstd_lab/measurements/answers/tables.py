"""The tables of ``docs/trust.md``: cells, verdicts, and misses by light."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from tlstd_lab.measurements.answers.cells import Cell, Key
from tlstd_lab.measurements.answers.problems import COMPLETE, CUT, GROUPS, KNOWN, STREAMS, problems
from tlstd_lab.measurements.answers.verdicts import Logs, Measured, is_covered, misses_by_light, rmse, verdicts
from tlstd_lab.tables import table

LIGHTS = ("green", "amber", "red", "unchecked")
OFF_POLICY = ("doubly robust", "LSTDQ", "KrylovLSTD with ratios")
"""Rows that are compared where the log has probabilities."""
ON_POLICY = frozenset({COMPLETE, CUT, STREAMS})
CELLS = (
    "problem",
    "size",
    "logs",
    "coverage",
    "width",
    "RMSE: answer, best estimate, mean of returns",
    "rungs",
    "green, amber, red, unchecked",
    "CPU seconds",
)


def by_cell(kept: Mapping[Key, dict[str, Any]], version: str, n_logs: int, word: str = "") -> dict[Cell, Logs]:
    """The first logs of each cell, of one version of the code, in the order of the problems."""
    found: dict[Cell, Logs] = {}
    for name, problem in problems().items():
        for size in problem.sizes if word in name else ():
            keys = [(version, name, size, number) for number in range(n_logs)]
            logs = [kept[key] for key in keys if key in kept]
            if logs:
                found[Cell(name, size)] = logs
    return found


def tables(measured: Measured) -> dict[str, str]:
    """All tables, by name."""
    rows: list[list[str]] = []
    for group in GROUPS:
        some = [_row(cell, logs) for cell, logs in measured.items() if problems()[cell.problem].group == group]
        if some:
            rows += [[f"**{group}**", *[""] * (len(CELLS) - 1)], *some]
    judged = [
        [one.promise, one.about, one.measured, "" if one.holds is None else "pass" if one.holds else "**fail**"]
        for one in verdicts(measured)
    ]
    missed = [[group, *_misses(measured, group)] for group in GROUPS if _misses(measured, group)]
    return {
        "answers": table(CELLS, rows),
        "answers-verdicts": table(["promise", "of", "measured", "verdict"], judged),
        "answers-misses": table(["misses of logs", *LIGHTS, "share of all misses: " + ", ".join(LIGHTS)], missed),
        "answers-rows": table(["problem", "size", *OFF_POLICY], by_row(measured)),
    }


def by_row(measured: Measured) -> list[list[str]]:
    """Of another policy with probabilities: coverage and RMSE of each way of having the value."""
    rows = []
    for cell, logs in measured.items():
        problem = problems()[cell.problem]
        if problem.group == KNOWN:
            found = [_of_row(logs, name, problem.truth) for name in OFF_POLICY]
            rows.append([f"`{cell.problem}`", f"{cell.size:,}", *found])
    return rows


def _of_row(logs: Logs, name: str, truth: float) -> str:
    some = np.array([one["rows"][name] for one in logs if len(one.get("rows", {}).get(name, ())) == 3])
    if not some.size:
        return ""
    inside = np.mean((some[:, 1] <= truth) & (truth <= some[:, 2]))
    return f"{inside:.3f}, {np.sqrt(np.mean((some[:, 0] - truth) ** 2)):.3g}"


def _row(cell: Cell, logs: Logs) -> list[str]:
    problem = problems()[cell.problem]
    low, high = (np.array([one[end] for one in logs if one[end] is not None], dtype=float) for end in ("low", "high"))
    plain = np.array([one["returns"] for one in logs])
    width = np.median(high - low) / np.median(plain[:, 2] - plain[:, 1]) if low.size else np.nan
    names = ["answer", "best_estimate", *(["returns"] if problem.group in ON_POLICY else [])]
    errors = [f"{rmse(logs, name, problem.truth):.3g}" for name in names]
    rungs = Counter(one["rung"] for one in logs).most_common()
    lights = Counter(one["light"] for one in logs)
    seconds = [sum(one["seconds"]) for one in logs if one["seconds"] is not None]
    return [
        f"{problem.words} (`{cell.problem}`)",
        f"{cell.size:,}",
        str(len(logs)),
        f"{np.mean(is_covered(cell, logs)):.3f}",
        f"{width:.2f}",
        ", ".join(errors),
        ", ".join(f"{rung} {count}" if len(rungs) > 1 else rung for rung, count in rungs),
        ", ".join(str(lights[light]) for light in LIGHTS),
        f"{np.median(seconds):.2f}" if seconds else "",
    ]


def _misses(measured: Measured, group: str) -> list[str]:
    """Per light the misses and logs; and the share of each light among the misses."""
    found = misses_by_light(measured, group)
    if not found:
        return []
    counts = [found.get(light, (0, 0)) for light in LIGHTS]
    all_missed = sum(missed for missed, _ in counts)
    shares = [f"{missed / all_missed:.0%}" if all_missed else "0%" for missed, _ in counts]
    return [*(f"{missed} of {n:,}" for missed, n in counts), ", ".join(shares)]
