"""What the README and the pages of docs/ show runs as printed. (The README's table is checked in ``test_cli``.)"""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    value, seen = capsys.readouterr().out.split()
    assert np.isfinite(float(value))
    assert int(seen) > 400
    assert len(code.strip().splitlines()) <= 12


@pytest.mark.parametrize("page", sorted(p.name for p in (ROOT / "docs").glob("*.md") if ">>> " in p.read_text()))
def test_examples_of_the_pages(page: str) -> None:
    flags = doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(ROOT / "docs" / page), module_relative=False, optionflags=flags)
    assert tried > 3
    assert failed == 0


def test_test_command_is_what_ci_runs() -> None:
    assert "pip install uv && uv run pytest\n" in README
    assert "pip install --quiet uv && uv run pytest" in (ROOT / ".ci" / "run").read_text()


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
