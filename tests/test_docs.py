"""The documentation: the site builds without a warning, its pages run as printed, its tutorials are up to date."""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import zlib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import tlstd

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


@pytest.mark.parametrize("name", ["ten_minutes", pytest.param("forty_thousand_features", marks=pytest.mark.long)])
def test_tutorial_is_up_to_date(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs, and prints what is on its page."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    monkeypatch.setenv("TLSTD_CACHE", str(folder / "tlstd-cache"))  # of this run, as in tests/lab
    run([str(DOCS / "tutorials" / "build.py"), name, "--check"])


def test_site(tmp_path: Path) -> None:
    """Sphinx has no warnings, and every public name is in the reference."""
    build = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "doctrees")]
    run([*build, str(DOCS), str(tmp_path / "site")])
    inventory = (tmp_path / "site" / "objects.inv").read_bytes().split(b"\n", 4)[4]
    documented = {line.split()[0] for line in zlib.decompress(inventory).decode().splitlines()}
    assert {f"tlstd.{name}" for name in tlstd.__all__} <= documented
    for module in ("diagnostics", "domains", "evaluation", "features", "streams"):
        package = import_module(f"tlstd.{module}")
        for name in package.__all__:
            home = getattr(getattr(package, name), "__module__", package.__name__)
            known = {f"{package.__name__}.{name}", f"{home}.{name}", f"tlstd.{name}"} & documented
            assert known, f"{package.__name__}.{name} is not in docs/api"


def run(arguments: list[str]) -> None:
    result = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
