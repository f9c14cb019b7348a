"""Run the tutorials and write their pages and figures.

uv run python docs/tutorials/build.py                      # all of them
uv run python docs/tutorials/build.py ten_minutes          # one
uv run python docs/tutorials/build.py ten_minutes --check  # only compare what it prints with the page

A tutorial is a script in the percent format: ``# %% [markdown]`` begins text, ``# %%`` begins code. A page has the
text, the code, what each piece of code printed, and the figures it drew; the name of a figure (``num=``) is its
description.
Printed times ("0.12 s") may differ from the page, everything else may not.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # the problems are small, and last digits do not depend on the machine's cores

FOLDER = Path(__file__).resolve().parent
FIGURES = FOLDER.parent / "figures"
TUTORIALS = ("ten_minutes", "from_a_log", "hundred_predictions", "ten_million_steps")


class Cell(NamedTuple):
    """A piece of a script: text without its comment marks, or code."""

    is_text: bool
    body: str


def cells(source: str) -> list[Cell]:
    """The pieces of a script in the percent format."""
    found = []
    for part in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        is_text = "[markdown]" in head
        if is_text:
            body = "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.splitlines())
        found.append(Cell(is_text, body.strip()))
    return found


def run(name: str, figures: Path | None) -> str:
    """Run a tutorial and return its page; what it draws goes to the folder ``figures``, if there is one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.show = lambda *_, **__: None
    source = FOLDER / f"{name}.py"
    page = [
        f"<!-- Written by `uv run python docs/tutorials/build.py {name}` from {source.name}: change that. -->\n",
    ]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    n_figures = 0
    for cell in cells(source.read_text(encoding="utf-8")):
        if cell.is_text:
            page.append(cell.body + "\n")
            continue
        page.append(f"```python\n{cell.body}\n```\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(cell.body, source.name, "exec"), namespace)
        if printed.getvalue():
            page.append(f"```text\n{printed.getvalue().rstrip()}\n```\n")
        for number in plt.get_fignums():
            n_figures += 1
            figure = plt.figure(number)
            file = f"tutorial_{name}_{n_figures}.png"
            if figures is not None:
                figure.savefig(figures / file, dpi=130)
            page.append(f"![{figure.get_label()}](../figures/{file})\n")
            plt.close(figure)
    return "\n".join(page)


def without_times(page: str) -> str:
    """The page with all times replaced by a mark."""
    return re.sub(r" *\d[\d.,]* (ms|s)\b", " # s", page)


def main() -> int:
    """Write or check the pages named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(TUTORIALS)}; all if none is given")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page has to be written anew")
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.names or TUTORIALS:
        path = FOLDER / f"{name}.md"
        with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):  # what a tutorial saves goes there
            page = run(name, None if arguments.check else FIGURES)
        if not arguments.check:
            path.write_text(page, encoding="utf-8")
            continue
        old, new = without_times(path.read_text(encoding="utf-8")), without_times(page)
        if old != new:
            difference = difflib.unified_diff(old.splitlines(), new.splitlines(), "the page", "this run", lineterm="")
            sys.stdout.writelines(f"{line}\n" for line in difference)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
