"""What the README and the pages of docs/ show runs as printed."""

import doctest
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out) == pytest.approx(-71.2, abs=2.0)  # by rollout: 124 steps
    assert len(code.strip().splitlines()) <= 12


def test_ratios_are_those_of_the_committed_benchmark() -> None:
    """A row of the table has the median of a line of a row of the benchmark, or a range with those of all lines."""
    rows = json.loads((ROOT / "docs" / "figures" / "bench.json").read_text())["rows"]
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").partition("## How it is measured")[0]
    table = re.findall(r"^\| (.+) \| `([\w-]+)` \| ([\d.]+)(?: to ([\d.]+))? \|$", page, flags=re.MULTILINE)
    assert len(table) >= 6
    for what, row, ratio, highest in table:
        medians = [line["median"] for line in rows[row]["lines"]]
        digits = len(ratio.partition(".")[2])
        if highest:
            assert all(float(ratio) <= round(median, digits) <= float(highest) for median in medians), (
                f"{what}: {medians}"
            )
            continue
        assert ratio in {f"{median:.{digits}f}" for median in medians}, f"{what}: {medians}"


@pytest.mark.parametrize("page", sorted(p.name for p in (ROOT / "docs").glob("*.md") if "\n>>> " in p.read_text()))
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
