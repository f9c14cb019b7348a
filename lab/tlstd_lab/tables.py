"""Tables of the documentation: cells, tables in Markdown, and the places where they stand in a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tlstd.errors import StateError

DOCS = Path(__file__).parents[2] / "docs"
END = "<!-- end -->"


def row(cells: Iterable[str]) -> str:
    """A line of a table.

    >>> row(["rank", "50"])
    '| rank | 50 |'
    """
    return f"| {' | '.join(cells)} |"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(table(["", "RMSE"], [["TD", "9.3"]]))
    |  | RMSE |
    | --- | --- |
    | TD | 9.3 |
    """
    return "\n".join(map(row, [head, ["---"] * len(head), *rows]))


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """The page with each table between its marks.

    >>> with_tables("<!-- table: a -->\\n\\nold\\n\\n<!-- end -->", {"a": "new"})
    '<!-- table: a -->\\n\\nnew\\n\\n<!-- end -->'
    """
    for name, made in tables.items():
        start = f"<!-- table: {name} -->\n\n"
        head, mark, rest = page.partition(start)
        if not mark or END not in rest:
            raise StateError(f"there is no place for the table {name}: put {start!r} and {END!r} into the page")
        page = f"{head}{start}{made}\n\n{END}{rest.partition(END)[2]}"
    return page


def write_tables(page: Path, tables: Mapping[str, str]) -> None:
    """Write tables into a page, each between its marks."""
    page.write_text(with_tables(page.read_text(encoding="utf-8"), tables), encoding="utf-8")


# --- cells ----------------------------------------------------------------------------------------------------------


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Mean and standard deviation over streams.

    >>> spread([1.0, 2.0, 3.0], 1)
    '2.0 ± 1.0'
    """
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def some(values: Sequence[float]) -> str:
    """Median, lowest and highest of repeats.

    >>> some([1.0, 4.0, 2.0])
    '2 (1 to 4)'
    """
    return f"{np.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def span(values: Sequence[int]) -> str:
    """Lowest and highest.

    >>> span([3, 5, 4]), span([3, 3])
    ('3 to 5', '3')
    """
    return f"{min(values)} to {max(values)}" if min(values) < max(values) else str(values[0])


def verdict(value: float, target: float, digits: int = 2) -> str:
    """A ratio beside its target, in bold where it is missed.

    >>> verdict(0.5, 1.0), verdict(1.5, 1.0), verdict(0.05, 1.0)
    ('0.50 (≤ 1)', '**1.50** (≤ 1)', '0.050 (≤ 1)')
    """
    text = f"{value:.{digits}f}" if value >= 0.1 else f"{value:.3f}"
    return f"{text} (≤ {target:g})" if value <= target else f"**{text}** (≤ {target:g})"
