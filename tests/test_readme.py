"""What the README shows runs as printed. (Its table is checked against the demo in ``test_cli``.)"""

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


def test_test_command_is_what_ci_runs() -> None:
    assert "pip install uv && uv run pytest\n" in README
    assert "pip install --quiet uv && uv run pytest" in (ROOT / ".ci" / "run").read_text()


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
