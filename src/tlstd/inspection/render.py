"""An inspection as text for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import printable
from tlstd.inspection.examine import Factors, Inspection

if TYPE_CHECKING:
    from rich.console import RenderableType

_MANY = 40
"""Lines of a list before it is cut."""
_BLOCKS = " ▁▂▃▄▅▆▇█"


def plot(
    singular_values: FloatArray, *, rcond: float = 0.0, width: int = 60, height: int = 8, unicode: bool = True
) -> list[str]:
    """The singular values on a logarithmic scale as lines of text, a line across at the cut-off.

    More values than fit are drawn as the largest of each group of neighbours.

    Example
    -------
    >>> print("\\n".join(plot(0.1 ** np.arange(7.0), height=4, unicode=False)))
      1e+00 |#
            |###
            |####
      1e-06 |#######
            +-------
             1     7
    """
    sigma = singular_values[singular_values > 0.0]
    if not sigma.size:
        return []
    groups = np.array_split(sigma, min(width, sigma.size))
    heights = np.log10([group[0] for group in groups])
    top = float(heights[0])
    lowest = math.log10(rcond) - 2.0 if rcond > 0.0 else -16.0  # far below the cut-off nothing matters any more
    floor = max(float(np.log10(sigma[-1])), top + lowest)
    floor = min(floor, top - 1.0)  # equal values are full bars, not empty ones
    step = (top - floor) / height
    cells = np.maximum((heights - floor) / step, 1 / 8)  # of all rows, from the bottom
    line = round((top + math.log10(rcond) - floor) / step) if rcond > 0.0 else 0
    lines = []
    for row in range(height - 1, -1, -1):
        parts = np.clip(cells - row, 0.0, 1.0)
        if unicode:
            bars = "".join(_BLOCKS[round(8 * part)] for part in parts)
        else:
            bars = "".join("#" if part >= 0.5 or (row == 0 and part > 0.0) else " " for part in parts)
        label = f"{10.0**top:.0e}" if row == height - 1 else f"{10.0**floor:.0e}" if row == 0 else ""
        mark = ""
        if 0 < line < height and row == line:
            bars = "".join((("╌" if unicode else "-") if bar == " " else bar) for bar in bars)
            mark = " cut-off"
        lines.append(f"{label:>7} {'│' if unicode else '|'}{bars if mark else bars.rstrip()}{mark}")
    lines.append(f"{'':7} {'└' if unicode else '+'}{('─' if unicode else '-') * len(groups)}")
    last = str(sigma.size)
    gap = len(groups) - 1 - len(last)
    lines.append(f"{'':9}1{' ' * gap}{last}" if gap > 0 else f"{'':9}1 to {last}")
    return lines


def render(found: Inspection, *, width: int = 80, unicode: bool = True) -> RenderableType:
    """An inspection for a rich console; without ``unicode`` it is plain ASCII, but for names from the file."""
    from rich.console import Group
    from rich.text import Text

    def rows(pairs: list[tuple[str, str]]) -> list[RenderableType]:
        pairs = [(printable(name), printable(value)) for name, value in pairs]  # they may come from a file
        start = max(len(name) for name, _ in pairs) + 2
        return [
            Text.assemble((f"{name:{start}}", "dim"), value, no_wrap=True, overflow="ignore") for name, value in pairs
        ]

    where = f" in {printable(found.path)}" if found.path else ""
    heading = Text.assemble((printable(found.class_name), "bold"), where, no_wrap=True, overflow="ignore")
    parts: list[RenderableType] = [heading, "", *rows(_facts(found))]
    parameters = _parameters(found.parameters)
    parts += ["", *rows(parameters)] if parameters else []
    for title, lines in _lists(found):
        parts += ["", Text(title, "dim"), *(Text(line, no_wrap=True, overflow="ignore") for line in lines)]
    if found.factors is not None:
        f = found.factors
        lines = plot(f.singular_values, rcond=f.rcond, width=max(8, min(60, width - 20)), unicode=unicode)
        if lines:
            parts += ["", Text("singular values (log scale)", "dim"), *(Text(line, no_wrap=True) for line in lines)]
        colour = {"lower": "yellow", "keep": "green"}.get(f.advice.verdict, "dim")
        verdict = f.advice.verdict + (f" to {f.advice.rank}." if f.advice.verdict == "lower" else ".")
        advice = Text(textwrap.fill(f"rank: {verdict} {f.advice.reason}", width - 1))
        advice.stylize(f"bold {colour}", 6, 6 + len(verdict))
        parts += ["", *rows(_numbers(f)), "", advice]
    return Group(*parts)


def _facts(found: Inspection) -> list[tuple[str, str]]:
    size = _bytes(found.memory_bytes)
    if found.file_bytes is not None:
        size += f" (file: {_bytes(found.file_bytes)})"
    rows = [
        ("updates", f"{found.n_updates:,}"),
        ("features seen", f"{found.n_seen:,} of {found.n_features:,}"),
        ("predictions" if found.models is not None else "targets", f"{found.n_targets:,}"),
        ("memory", size),
    ]
    if found.active is not None:
        since = "has not handed over yet" if found.handed_over is None else f"since update {found.handed_over:,}"
        rows.append(("learning now", f"{found.active}, {since}"))
    return rows


def _lists(found: Inspection) -> Iterator[tuple[str, list[str]]]:
    """The questions and the models of a horde, a line each."""
    if found.questions is not None:
        names = ("name", "cumulant", "discount", "ratio", "lambda", "size")
        yield "questions", _aligned(names, [[_part(row[name]) for name in names] for row in found.questions])
    if found.models is not None:
        rows = [
            [model.class_name, str(model.n_targets), f"{model.n_seen:,}", _bytes(model.memory_bytes), _rank(model)]
            for model in found.models
        ]
        yield "models", _aligned(("class", "targets", "features seen", "memory", "rank"), rows)


def _aligned(heads: Sequence[str], rows: list[list[str]]) -> list[str]:
    """Columns under their heads; those in which there is nothing are left out, and so are rows beyond _MANY."""
    table = [list(heads), *([printable(cell) for cell in row] for row in rows[:_MANY])]
    used = [i for i in range(len(heads)) if any(row[i] for row in table[1:])]
    widths = {i: max(len(row[i]) for row in table) for i in used}
    lines = ["  ".join(f"{row[i]:{widths[i]}}" for i in used).rstrip() for row in table]
    return [*lines, f"and {len(rows) - _MANY} more: --json has them"] if len(rows) > _MANY else lines


def _part(value: Any) -> str:
    """Part of a question: a number, a column's name, or the name of a function with brackets."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return f"{value['function']}()"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rank(model: Inspection) -> str:
    if model.factors is None:
        return ""
    f = model.factors
    verdict = f.advice.verdict + (f" to {f.advice.rank}" if f.advice.verdict == "lower" else "")
    return f"{f.singular_values.size} of {f.rank} kept, {f.n_inverted} used: {verdict}"


def _parameters(parameters: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Those that were given a value, with the parameters of parts under dotted names."""
    rows = []
    for name, value in parameters.items():
        if isinstance(value, list) and len(value) == 2 and isinstance(value[1], dict):  # an estimator
            rows += [(prefix + name, str(value[0])), *_parameters(value[1], f"{prefix}{name}.")]
        elif value is not None and name not in ("n_features", "n_targets"):
            rows.append((prefix + name, str(value)))
    return rows


def _numbers(f: Factors) -> list[tuple[str, str]]:
    rows = []
    if f.singular_values.size:
        rows.append(("largest, smallest", f"{f.singular_values[0]:.3g}, {f.singular_values[-1]:.3g}"))
    return [
        *rows,
        ("kept", f"{f.singular_values.size} of rank {f.rank}"),
        ("used", f"{f.n_inverted} (above rcond = {f.rcond:g} times the largest)"),
        ("effective rank", f"{f.effective_rank} (95% of the sum)"),
        ("orthogonality error", f"{f.orthogonality_error:.1e}"),
        ("samples waiting", str(f.n_buffered)),
    ]


def _bytes(count: int) -> str:
    """Three digits with a unit.

    >>> _bytes(512), _bytes(1_234_567)
    ('512 B', '1.23 MB')
    """
    size, units = float(count), ["B", "kB", "MB", "GB"]
    while size >= 1000.0 and len(units) > 1:
        size /= 1000.0
        units.pop(0)
    return f"{size:.3g} {units[0]}"
