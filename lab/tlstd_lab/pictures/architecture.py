"""Draw which part imports which, count what one transition passes through, and write it into ``docs/architecture.md``.

uv run python -m tlstd_lab.pictures.architecture --out docs/figures
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from types import FrameType
from typing import Any

from tlstd.core.figures import new_figure, save
from tlstd_lab.drawing import output_folder
from tlstd_lab.tables import DOCS, table, write_tables

ROOT = DOCS.parent
SOURCES = {"tlstd": ROOT / "src" / "tlstd", "tlstd_lab": ROOT / "lab" / "tlstd_lab"}
PAGE = DOCS / "architecture.md"
Graph = Mapping[str, set[str]]
"""For each part the parts that it imports. A part is a file or a folder right below the package."""


# --- imports ----------------------------------------------------------------------------------------------------------


def imports(packages: Mapping[str, Path]) -> dict[str, set[str]]:
    """The import graph of the packages' parts, read from the source.

    Imports inside functions count, those for type checkers do not. ``tlstd`` alone stands for its public names.

    Example
    -------
    >>> imports({"tlstd": SOURCES["tlstd"]})["tlstd.core.extras"]
    {'tlstd.errors'}
    """
    graph: dict[str, set[str]] = {}
    for package, folder in packages.items():
        for path in sorted(folder.rglob("*.py")):
            inside = path.relative_to(folder).with_suffix("").parts
            if inside == ("__init__",):  # the public names, imported on first use
                continue
            part = f"{package}.{inside[0]}"
            found = {_part(name, packages) for name in _imported(ast.parse(path.read_text(encoding="utf-8")))}
            graph.setdefault(part, set()).update(found - {None, part})  # type: ignore[arg-type]
    return graph


def _imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of what is imported anywhere below a node of the source."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.expr):  # has no statements
            continue
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from _imported(node)


def _part(name: str, packages: Mapping[str, Path]) -> str | None:
    """The part that a dotted name belongs to; None if it is of another package."""
    package, _, rest = name.partition(".")
    if package not in packages:
        return None
    first = rest.partition(".")[0]
    folder = packages[package]
    return (
        f"{package}.{first}" if first and ((folder / first).is_dir() or (folder / f"{first}.py").is_file()) else package
    )


def reduced(graph: Graph) -> dict[str, set[str]]:
    """The graph without the imports that follow from others.

    Example
    -------
    >>> reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'a': {'b'}, 'b': {'c'}, 'c': set()}
    """
    below = {part: _reached(graph, part) for part in graph}
    return {
        part: {one for one in found if not any(one in below.get(other, ()) for other in found - {one})}
        for part, found in graph.items()
    }


def _reached(graph: Graph, part: str) -> set[str]:
    reached, waiting = set[str](), list(graph.get(part, ()))
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += graph.get(one, ())
    return reached


def circles(graph: Graph) -> set[tuple[str, str]]:
    """The imports without which there would be no circle: in each, those of the part that imports most of the others.

    Example
    -------
    >>> circles({"a": {"b", "c"}, "b": {"c"}, "c": {"a"}})
    {('c', 'a')}
    """
    left, late = {part: set(found) for part, found in graph.items()}, set()
    while loop := {part for part in left if part in _reached(left, part)}:
        top = max(sorted(loop), key=lambda part: (len(left[part] & loop), len(left[part])))
        for part in loop & _reached(left, top):
            if top in left[part]:
                left[part].discard(top)
                late.add((part, top))
    return late


def heights(graph: Graph) -> dict[str, int]:
    """How many imports lie below each part at most.

    Example
    -------
    >>> heights({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'a': 2, 'b': 1, 'c': 0}
    """
    known: dict[str, int] = {}

    def height(part: str) -> int:
        if part not in known:
            known[part] = 1 + max((height(one) for one in graph[part]), default=-1)
        return known[part]

    return {part: height(part) for part in graph}


# --- the picture ------------------------------------------------------------------------------------------------------


def draw(graph: Graph, path: Path) -> None:
    """Write the figure: the library and the laboratory side by side, each part above what it imports."""
    figure: Any = new_figure(13, 8.5)
    for axis, (package, title) in zip(
        figure.subplots(1, 2, width_ratios=(1, 1)),
        (("tlstd", "the library, tlstd"), ("tlstd_lab", "the laboratory, tlstd_lab")),
        strict=True,
    ):
        own = {part for part in graph if part.startswith(f"{package}.")}
        inside = {part: graph[part] & own for part in sorted(own)}
        _draw_package(axis, inside)
        axis.set_title(title, fontsize=12)
    save(figure, path)


def _draw_package(axis: Any, graph: Graph) -> None:
    late = circles(graph)
    graph = reduced({part: {one for one in found if (part, one) not in late} for part, found in graph.items()})
    level = lifted(graph)
    lines = {
        (part, one): [part, *(f"{part} > {one} {y}" for y in range(level[part] - 1, level[one], -1)), one]
        for part, found in graph.items()
        for one in sorted(found)
    }
    place = _places(level | {knot: level[line[0]] - i for line in lines.values() for i, knot in enumerate(line)}, lines)
    for line in lines.values():
        xs, ys = zip(*(place[knot] for knot in line), strict=True)
        axis.plot(xs, ys, color="#8899aa", linewidth=0.9, zorder=1)
    arrow = {"arrowstyle": "-|>", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 9}
    for line in lines.values():
        axis.annotate("", place[line[-1]], place[line[-2]], arrowprops=arrow | {"color": "#8899aa"})
    late_arrow = {"color": "#D55E00", "linestyle": "--", "connectionstyle": "arc3,rad=0.15", "shrinkA": 9}
    for part, one in late:
        axis.annotate("", place[one], place[part], arrowprops=arrow | late_arrow)
    box = {"boxstyle": "round,pad=0.3", "facecolor": "#eef3f8", "edgecolor": "#33506b", "linewidth": 0.8}
    for part in graph:
        axis.text(*place[part], part.partition(".")[2], ha="center", va="center", fontsize=9, bbox=box, zorder=3)
    xs, ys = zip(*place.values(), strict=True)
    axis.set(xlim=(min(xs) - 0.6, max(xs) + 0.6), ylim=(-0.6, max(ys) + 0.6))
    axis.set_axis_off()


def lifted(graph: Graph) -> dict[str, int]:
    """A level for each part, below all that import it and as near to them as can be.

    Example
    -------
    >>> lifted({"a": {"b", "d"}, "b": {"c"}, "c": set(), "d": set()})
    {'a': 2, 'b': 1, 'c': 0, 'd': 1}
    """
    level = heights(graph)
    for part in sorted(graph, key=lambda part: -level[part]):
        above = [level[one] for one in graph if part in graph[one]]
        level[part] = min(above) - 1 if above else level[part]
    return level


def _places(level: Mapping[str, int], lines: Mapping[tuple[str, str], list[str]]) -> dict[str, tuple[float, float]]:
    """Where parts and the knots of lines stand: near the middle of what they are joined to, and not on each other."""
    joined: dict[str, set[str]] = {knot: set() for knot in level}
    for line in lines.values():
        for one, other in pairwise(line):
            joined[one].add(other)
            joined[other].add(one)
    rows = [sorted(knot for knot in level if level[knot] == y) for y in range(max(level.values()) + 1)]
    x = {knot: i - len(row) / 2 for row in rows for i, knot in enumerate(row)}
    for sweep in range(60):
        for row in rows if sweep % 2 else reversed(rows):
            wanted = {knot: fmean(x[one] for one in joined[knot]) if joined[knot] else x[knot] for knot in row}
            row.sort(key=lambda knot: (wanted[knot], knot))
            widths = [0.5 if " > " in knot else 1.0 for knot in row]
            at = [wanted[row[0]]]
            for knot, left, right in zip(row[1:], widths, widths[1:], strict=False):
                at.append(max(wanted[knot], at[-1] + (left + right) / 2))
            shift = fmean(wanted.values()) - fmean(at)
            x.update({knot: found + shift for knot, found in zip(row, at, strict=True)})
    return {knot: (x[knot], float(level[knot])) for knot in level}


# --- the walk ---------------------------------------------------------------------------------------------------------


def walk() -> dict[str, list[tuple[str, str]]]:
    """The library's functions, as (file, name), that one step with sparse features passes through, call by call."""
    import gymnasium

    from tlstd import TLSTD, TileCoder
    from tlstd.streams import from_gymnasium

    env = gymnasium.make("CartPole-v1")
    features = TileCoder([-2.4, -3.0, -0.2, -3.0], [2.4, 3.0, 0.2, 3.0], tiles=4, tilings=8)
    model = TLSTD(features.n_features, rank=40, lambda_=0.9)
    state = [0.0, 0.0, 0.0, 0.0]
    calls: dict[str, list[tuple[str, str]]] = {}
    for _ in range(2):  # the first time compiles
        steps = _traced(
            calls, "from_gymnasium", lambda: from_gymnasium(env, int_policy, features, n_steps=1, gamma=0.99, seed=0)
        )
        _traced(calls, "update_many", lambda: model.update_many(steps))  # noqa: B023 - called at once
        x = _traced(calls, "encode", lambda: features.encode(state))
        _traced(calls, "predict", lambda: model.predict(x))  # noqa: B023
    return calls


def int_policy(observation: Any) -> int:
    """Push the way the pole leans."""
    return int(observation[2] > 0.0)


def _traced(calls: dict[str, list[tuple[str, str]]], name: str, action: Callable[[], Any]) -> Any:
    found: list[tuple[str, str]] = []
    folder = f"{SOURCES['tlstd']}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        file, function = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and file.startswith(folder) and not function.endswith(">"):  # no comprehensions
            found.append((file.removeprefix(folder), function))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return action()
    finally:
        sys.setprofile(before)
        calls[name] = found


# --- the page ---------------------------------------------------------------------------------------------------------


def imports_table(graph: Graph) -> str:
    """The graph as a table in Markdown."""
    return table(["part", "imports"], [[f"`{part}`", _named(graph[part])] for part in sorted(graph)])


def _named(parts: Iterable[str]) -> str:
    return ", ".join(f"`{part}`" for part in sorted(parts)) or "nothing of either"


def walk_table(calls: Mapping[str, list[tuple[str, str]]]) -> str:
    """How many calls, functions and files of the library each stage passes through."""
    whole = [one for found in calls.values() for one in found]
    rows = [
        [name, str(len(found)), str(len(set(found))), str(len({file for file, _ in found}))]
        for name, found in [*((f"`{name}`", found) for name, found in calls.items()), ("all together", whole)]
    ]
    return table(["stage", "calls", "different functions", "files"], rows)


def main(report: Callable[[str], None] = print) -> None:
    """Draw ``imports.png`` into a folder and write the tables of the page."""
    path = output_folder(__doc__) / "imports.png"
    graph = imports(SOURCES)
    draw(graph, path)
    tables = {"imports": imports_table(graph), "walk": walk_table(walk())}
    write_tables(PAGE, tables)
    report(f"{path} and {PAGE.name}: {len(graph)} parts, {sum(map(len, graph.values()))} imports between them")


if __name__ == "__main__":
    main()
