"""The documentation: its pages run as printed, its tutorials are up to date, its figures name their commands."""

import ast
import contextlib
import doctest
import io
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if not {"_build", "tutorials"} & set(page.relative_to(DOCS).parts))
FENCE = re.compile(
    r"^(?P<comment><!--[^\n]*-->\n\n?)?```(?P<language>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """The fenced blocks of a page: the comment before it, its language and its content."""
    return [(m["comment"] or "", m["language"], m["body"]) for m in FENCE.finditer(page.read_text(encoding="utf-8"))]


def is_run(comment: str, language: str, body: str) -> bool:
    """Python, unless a comment says why not, or it is a session, which ``test_readme`` runs."""
    return language == "python" and not body.startswith(">>> ") and not re.match(r"<!-- not run: \w.* -->", comment)


@pytest.mark.parametrize("page", [p for p in PAGES if any(is_run(*block) for block in blocks(p))], ids=lambda p: p.stem)
def test_code_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks as one module; a block of text after one is what it printed; examples in its docstrings hold."""
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # what is pickled is looked for there
    checker, flags = doctest.OutputChecker(), doctest.NORMALIZE_WHITESPACE
    printed = ""
    with contextlib.chdir(tmp_path):
        for comment, language, body in blocks(page):
            if is_run(comment, language, body):
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile(body, page.name, "exec"), module.__dict__)
                printed = output.getvalue()
            elif language == "text" and printed:
                assert checker.check_output(body, printed, flags), f"{page.name} shows\n{body}where it is\n{printed}"
                printed = ""
    assert doctest.testmod(module, optionflags=flags).failed == 0


@pytest.mark.parametrize(
    "name",
    [
        "ten_minutes",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("from_a_log", "hundred_predictions", "ten_million_steps")
        ),
    ],
)
def test_tutorial_is_up_to_date(
    name: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It runs, and prints what is on its page: the quick one in this process, the others by their command."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    monkeypatch.setenv("TLSTD_CACHE", str(folder / "tlstd-cache"))  # of this run, as in tests/lab
    builder = DOCS / "tutorials" / "build.py"
    if name != "ten_minutes":
        run([str(builder), name, "--check"])
        return
    monkeypatch.setattr(sys, "argv", ["build.py", name, "--check"])
    monkeypatch.setattr(plt, "show", plt.show)  # which is replaced there
    main = runpy.run_path(str(builder), run_name="build")["main"]
    assert main() == 0, capsys.readouterr().out


IMAGE = re.compile(r"!\[[^]]*\]\(([^)\s]+)\)")
DRAWN_BY = {
    r"mountain_car": "uv run tlstd demo",
    r"bench\w*": "uv run tlstd bench",
    r"(?:paper_)?figure_(.+)": r"uv run tlstd reproduce \1 ",
    r"tutorial_(\w+)_\d+": r"uv run python docs/tutorials/build.py \1",
}
"""Commands whose figures are named by a rule; others are drawn by the module that has their name in it."""


def drawing_commands(image: str) -> list[str]:
    """The commands that can have drawn a figure."""
    for rule, command in DRAWN_BY.items():
        if found := re.fullmatch(rule, Path(image).stem):
            one = found.expand(command)
            return [one, f"{one.partition('-')[0]} "]  # a panel, or all of its question
    modules = [path for path in (ROOT / "lab").rglob("*.py") if f'{Path(image).name}"' in path.read_text("utf-8")]
    places = [path.parent if (path.parent / "__main__.py").exists() else path.with_suffix("") for path in modules]
    return [f"uv run python -m {'.'.join(place.relative_to(ROOT / 'lab').parts)}" for place in places]


def test_every_figure_stands_with_its_command() -> None:
    """On each page that shows it; and every figure that is committed is shown."""
    shown = set()
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        if "_build" in page.parts:
            continue
        text = page.read_text(encoding="utf-8")
        for image in IMAGE.findall(text):
            shown.add((page.parent / image).resolve())
            commands = drawing_commands(image)
            assert any(command in text for command in commands), f"{page.name} shows {image} without any of {commands}"
    assert shown == {path for path in (DOCS / "figures").rglob("*") if path.suffix in (".png", ".svg")}


def test_no_measured_numbers_in_docstrings() -> None:
    """They stand in the page that their command writes: not times, not what is marked as measured, no tables."""
    measured = re.compile(r"\[M\b|\d ?[µm]s\b|^ *=====", re.MULTILINE)
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if measured.search(text) is None:  # then no docstring has it either
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found = measured.search(ast.get_docstring(node) or "")
                name = getattr(node, "name", "the module")
                assert found is None, f"{path.relative_to(ROOT)}, {name}: {found and found[0]!r}"


def test_dependencies_are_on_their_page() -> None:
    """Each package of the library, its extras and the laboratory has its row, and no other has one there."""
    page = (DOCS / "dependencies.md").read_text(encoding="utf-8").partition("## Development")[0]
    library, lab = (tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in ("", "lab"))
    rows = re.findall(r"^\| (`?)([\w, ]+)`? \| (.*) \|$", page, flags=re.MULTILINE)
    packages = [name for quoted, name, _ in rows if not quoted and name not in ("package", "extra")]
    wanted = [re.split("[>=]", line)[0] for line in library["dependencies"] + lab["dependencies"]]
    assert packages == [name for name in wanted if not name.startswith("tlstd")]
    extras = {name: what.partition(" | ")[0] for quoted, name, what in rows if quoted}
    assert set(extras) == set(library["optional-dependencies"])
    for extra, lines in library["optional-dependencies"].items():
        assert all(re.split("[>=]", line)[0] in extras[extra] for line in lines)


def run(arguments: list[str]) -> None:
    result = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
