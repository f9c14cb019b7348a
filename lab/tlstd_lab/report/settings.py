"""What is behind a figure in words: the settings of its runs, seeds, and versions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tlstd.page.markup import Html, element, join
from tlstd_lab.report.sources import Shown
from tlstd_lab.spec import RunSpec


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings without nesting, values as text.

    Example
    -------
    >>> flat({"estimator": {"class": "TD", "step_size": [0.1, 100]}, "problem": "energy"})
    {'estimator.class': 'TD', 'estimator.step_size': '[0.1, 100]', 'problem': 'energy'}
    """
    made: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            made |= flat(value, f"{prefix}{key}.")
        else:
            made[prefix + key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return made


def spans(numbers: Iterable[int]) -> str:
    """Whole numbers as ranges.

    Example
    -------
    >>> spans([3, 0, 1, 2, 1000])
    '0–3, 1000'
    """
    ordered = sorted(set(numbers))
    breaks = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(ordered)) if b != a + 1), len(ordered)]
    parts = [(ordered[a], ordered[b - 1]) for a, b in pairwise(breaks)]
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in parts)


def describe(shown: Shown, command: str) -> Html:
    """Return what stands under a figure's settings."""
    runs, tuning = list(dict.fromkeys(shown.runs)), list(dict.fromkeys(shown.tuning))
    made = Counter(
        ", ".join(f"{name} {version}" for name, version in sorted(shown.results[spec].made_with.items()))
        for spec in [*runs, *tuning]
    )
    seconds = sum(shown.results[spec].seconds for spec in [*runs, *tuning])
    entries: list[tuple[str, object]] = [
        ("Scale", shown.results.scale),
        ("Runs shown", f"{len(runs):,} with seeds {spans(spec.seed for spec in runs)}"),
    ]
    if tuning:
        entries.append(("Runs of sweeps", f"{len(tuning):,} with seeds {spans(spec.seed for spec in tuning)}"))
    entries += [
        ("Computing", f"{_duration(seconds)} for all of these runs, one after the other"),
        ("Made with", join(*(element("div", f"{words} ({count:,} runs)") for words, count in made.items()))),
        ("Command", element("code", command)),
    ]
    parts = [_entries(entries), element("p", "The runs shown:"), _table(runs, shown.panel.name)]
    if tuning:
        parts += [
            element("p", "The sweeps by which parameters were chosen, with the values that occur:"),
            _values(tuning),
        ]
    return join(*parts)


def _duration(seconds: float) -> str:
    if seconds < 90.0:
        return f"{seconds:.3g} s"
    return f"{seconds / 60.0:.3g} min" if seconds < 5400.0 else f"{seconds / 3600.0:.3g} h"


def _entries(entries: Sequence[tuple[str, object]]) -> Html:
    return element("dl", *(join(element("dt", name), element("dd", value)) for name, value in entries))


def _by_settings(specs: Sequence[RunSpec]) -> dict[str, tuple[dict[str, str], list[int]]]:
    """Flat settings and seeds of the runs that differ in their seeds only."""
    groups: dict[str, tuple[dict[str, str], list[int]]] = {}
    for spec in specs:
        settings = {"task": spec.task} | flat(spec.plain_settings())
        groups.setdefault(json.dumps(settings, sort_keys=True), (settings, []))[1].append(spec.seed)
    return groups


def _table(specs: Sequence[RunSpec], name: str) -> Html:
    """What all runs share as a list, and what differs as a table."""
    groups = list(_by_settings(specs).values())
    names = list(dict.fromkeys(name for settings, _ in groups for name in settings))
    shared = [n for n in names if len({settings.get(n) for settings, _ in groups}) == 1]
    varied = [n for n in names if n not in shared]
    parts = [_entries([(name, groups[0][0][name]) for name in shared])]
    if varied:
        head = element("tr", *(element("th", name, scope="col") for name in [*varied, "seeds"]))
        rows = [
            element("tr", *(element("td", settings.get(name, "")) for name in varied), element("td", spans(seeds)))
            for settings, seeds in groups
        ]
        body = element("table", element("thead", head), element("tbody", *rows))
        label = f"Settings of figure {name}"
        parts.append(element("div", body, class_="scroll", tabindex="0", role="region", aria_label=label))
    return join(*parts)


def _values(specs: Sequence[RunSpec]) -> Html:
    """All values of every setting."""
    values: dict[str, dict[str, None]] = {}
    for settings, _ in _by_settings(specs).values():
        for name, value in settings.items():
            values.setdefault(name, {})[value] = None
    return _entries([(name, "; ".join(found)) for name, found in values.items()])
