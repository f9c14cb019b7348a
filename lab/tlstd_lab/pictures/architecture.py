"""Draw the rooms of the library, count what is in them and what two walks pass through: ``docs/architecture.md``.

uv run python -m tlstd_lab.pictures.architecture --out docs/figures
"""

from __future__ import annotations

import ast
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from tlstd.core.figures import new_figure, save
from tlstd_lab.drawing import output_folder
from tlstd_lab.tables import DOCS, table, write_tables

LIBRARY = DOCS.parent / "src" / "tlstd"
PAGE = DOCS / "architecture.md"
Walk = Mapping[str, Sequence[tuple[str, str]]]
"""For each stage the calls of the library's functions, as (file, name)."""


# --- the rooms --------------------------------------------------------------------------------------------------------


def rooms(library: Path = LIBRARY) -> list[list[str]]:
    """Name, purpose, number of files and lines of code of each folder of the library, and of the files beside them."""
    folders = sorted(path.parent for path in library.glob("*/__init__.py"))
    found = [
        [f"`{folder.name}/`", _purpose(folder / "__init__.py"), *_sizes(folder.rglob("*.py"))] for folder in folders
    ]
    beside = sorted(library.glob("*.py"))
    names = ", ".join(f"`{path.name}`" for path in beside if path.name != "__init__.py")
    return [*found, [names, "Beside the rooms.", *_sizes(beside)], ["all", "", *_sizes(library.rglob("*.py"))]]


def _purpose(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].replace("``", "`")


def _sizes(paths: Any) -> list[str]:
    lines = [code_lines(path.read_text(encoding="utf-8")) for path in paths]
    return [str(len(lines)), f"{sum(lines):,}"]


def code_lines(source: str) -> int:
    """Lines of code: without blank lines, comments and docstrings.

    >>> code_lines('''# A comment.
    ... def f():
    ...     "A docstring."
    ...
    ...     return 1
    ... ''')
    2
    """
    strings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            strings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(source.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in strings for i, line in lines)


# --- the picture ------------------------------------------------------------------------------------------------------


def layers(project: Path = DOCS.parent / "pyproject.toml") -> list[list[str]]:
    """The rooms from top to bottom, as the contract of imports has them; those of one layer are side by side."""
    contracts = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (found,) = (each["layers"] for each in contracts if each["name"] == "Data flows one way")
    split = [layer.replace("|", ":").split(":") for layer in found]
    return [[name.strip().removeprefix("tlstd.") for name in names] for names in split if "__main__" not in names[0]]


def draw(rows: Sequence[Sequence[str]], path: Path) -> None:
    """Write the figure: each row of rooms imports only from rows below it."""
    figure: Any = new_figure(6.5, 0.34 * len(rows) + 0.2)
    axis = figure.subplots()
    box = {"boxstyle": "round,pad=0.3", "facecolor": "#ffffff", "edgecolor": "#33506b", "linewidth": 0.8}
    for y, names in enumerate(reversed(rows)):
        axis.barh(y, 4.0, 0.86, -2.0, color="#e8eff6")
        for x, name in zip(1.3 * (np.arange(len(names)) - (len(names) - 1) / 2), names, strict=True):
            axis.text(x, y, name, ha="center", va="center", fontsize=9, family="monospace", bbox=box)
    down = {"arrowstyle": "-|>", "color": "#33506b", "linewidth": 1.2}
    axis.annotate("", (-2.15, -0.3), (-2.15, len(rows) - 0.7), arrowprops=down)
    axis.text(-2.22, (len(rows) - 1) / 2, "may import", rotation=90, ha="right", va="center", fontsize=9)
    axis.set(xlim=(-2.5, 2.05), ylim=(-0.6, len(rows) - 0.4))
    axis.set_axis_off()
    save(figure, path)


# --- the walks --------------------------------------------------------------------------------------------------------


def walk_of_a_transition() -> Walk:
    """One step of CartPole with tile coding, learned by t-LSTD, and the first prediction after it."""
    import gymnasium

    from tlstd import TLSTD, TileCoder
    from tlstd.streams import from_gymnasium

    env = gymnasium.make("CartPole-v1")
    features = TileCoder([-2.4, -3.0, -0.2, -3.0], [2.4, 3.0, 0.2, 3.0], tiles=4, tilings=8)
    model = TLSTD(features.n_features, rank=40, lambda_=0.9)
    calls: dict[str, Sequence[tuple[str, str]]] = {}

    def left_or_right(observation: Any) -> int:
        return int(observation[2] > 0.0)

    for _ in range(2):  # the first time compiles
        steps, calls["from_gymnasium"] = traced(
            lambda: from_gymnasium(env, left_or_right, features, n_steps=1, gamma=0.99, seed=0)
        )
        _, calls["update_many"] = traced(lambda: model.update_many(steps))  # noqa: B023 - called at once
        x, calls["encode"] = traced(lambda: features.encode([0.0, 0.0, 0.0, 0.0]))
        _, calls["predict"] = traced(lambda: model.predict(x))  # noqa: B023
    return calls


def walk_of_a_log() -> Walk:
    """A table of a hundred episodes in a CSV file, evaluated, and the answer written as a page."""
    from tlstd import Log, boyan_chain
    from tlstd.evaluation import evaluate
    from tlstd.page import render

    rng = np.random.default_rng(0)
    steps = boyan_chain().sample(2_000, rng)
    ends = np.append(steps.trace_discounts[1:] == 0.0, True)
    episode = np.concatenate([[0], np.cumsum(ends)[:-1]])
    columns = {"episode": episode, "obs": np.asarray(steps.X @ np.arange(4)), "reward": steps.rewards, "done": ends}
    calls: dict[str, Sequence[tuple[str, str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.csv"
        lines = [",".join(columns), *(",".join(str(float(value)) for value in row) for row in zip(*columns.values()))]  # noqa: B905
        path.write_text("\n".join(lines), encoding="utf-8")
        for _ in range(2):
            log, calls["Log.from_frame"] = traced(lambda: Log.from_frame(path))
            answer, calls["evaluate"] = traced(lambda: evaluate(log, gamma=0.95))  # noqa: B023
            _, calls["render"] = traced(lambda: render(answer))  # noqa: B023
    return calls


def traced(action: Callable[[], Any]) -> tuple[Any, list[tuple[str, str]]]:
    """What a function returns, and the library's functions that it called; a kernel counts as one call."""
    found: list[tuple[str, str]] = []
    folder = f"{LIBRARY}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        file, function = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and file.startswith(folder) and not function.endswith(">"):  # no comprehensions
            found.append((file.removeprefix(folder), function))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return action(), found
    finally:
        sys.setprofile(before)


# --- the page ---------------------------------------------------------------------------------------------------------


def walk_table(calls: Walk) -> str:
    """How many functions and files of the library each stage passes through."""
    whole = [one for found in calls.values() for one in found]
    rows = [
        [name, str(len(set(found))), str(len({file for file, _ in found}))]
        for name, found in [*((f"`{name}`", found) for name, found in calls.items()), ("all together", whole)]
    ]
    return table(["stage", "functions", "files"], rows)


def main(report: Callable[[str], None] = print) -> None:
    """Draw ``rooms.png`` into a folder and write the tables of the page."""
    path = output_folder(__doc__) / "rooms.png"
    draw(layers(), path)
    tables = {
        "rooms": table(["room", "what is in it", "files", "lines of code"], rooms()),
        "walk": walk_table(walk_of_a_transition()),
        "log-walk": walk_table(walk_of_a_log()),
    }
    write_tables(PAGE, tables)
    report(f"{path} and {PAGE.name}")


if __name__ == "__main__":
    main()
