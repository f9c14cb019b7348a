"""One file and one line add an estimator, a feature map, a domain, a question, a row of the benchmark or a promise.

Each is added to a copy of the tree, those of the library as ``docs/extending.md`` prints them: a new file (for
a question a folder), and one line in a file that was there.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

QUESTION = {
    "__init__.py": '''"""Does a smaller figure say the same?"""

from tlstd_lab.question import Question

QUESTION = Question(panels={"smaller": "panel:Smaller"})
''',
    "panel.py": '''"""Another figure in a smaller size."""

from tlstd_lab.questions.buffer.panel import Buffer


class Smaller(Buffer):
    """The figure."""

    name = "smaller"
    title = "The buffer, smaller"
    size = (2.0, 2.0)
''',
}

ROW = '''"""Nothing, as a row."""

from collections.abc import Sequence

from tlstd_lab.bench.row import Bench, Line


def nothing(bench: Bench) -> Sequence[Line]:
    """How long nothing takes.

    The least that there is.
    """
    return []
'''


PROMISE = '''"""Nothing, as a promise."""

from pathlib import Path

from tlstd_lab.campaign.faults import Task
from tlstd_lab.campaign.row import Row


def _task(subject: str, seed: int, folder: Path) -> Task:
    return lambda number: "kept"


ROW = Row(promise="nothing happens", unit="tries", target=10, task=_task)
'''


def from_page(section: str) -> tuple[str, str]:
    """The file that a section of the page has one write, and the line that it has one add."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    text = re.split(r"^## ", page.partition(f"## {section}\n")[2], flags=re.MULTILINE)[0]
    file = text.partition("### 1. The file\n")[2].partition("```python\n")[2].partition("```\n")[0]
    (line,) = re.findall(
        r"^    (.*)$", re.split(r"^### ", text.partition(". The line\n")[2], flags=re.MULTILINE)[0], re.M
    )
    return file, line


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of library and laboratory with one more of each."""
    copy = tmp_path_factory.mktemp("tree")

    def ignored(folder: str, names: list[str]) -> list[str]:
        """In caches all but bytecode, which goes by the time and the size of its file."""
        return [name for name in names if Path(folder).name == "__pycache__" and not name.endswith(".pyc")]

    for package in ("src/tlstd", "lab/tlstd_lab"):
        shutil.copytree(ROOT / package, copy / package, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    shutil.copytree(ROOT / "tests/faults", copy / "tests/faults", ignore=ignored)
    shutil.copy(ROOT / "tests/__init__.py", copy / "tests")

    def add(files: dict[str, str], registry: str, beside: str, line: str) -> None:
        """Write new files, and add one line after the one that stands for a sibling."""
        for name, text in files.items():
            path = copy / name
            assert not path.exists()
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        lines = (copy / registry).read_text(encoding="utf-8").splitlines(keepends=True)
        (at,) = (i for i, other in enumerate(lines) if beside in other)
        indent = re.match(r" *", lines[at])
        assert indent is not None
        assert "\n" not in line
        lines.insert(at + 1, f"{indent[0]}{line}\n")
        (copy / registry).write_text("".join(lines), encoding="utf-8")

    file, line = from_page("Add an estimator")
    add({"src/tlstd/zoo/gtd.py": file}, "src/tlstd/estimators/__init__.pyi", "import ATD as ATD", line)
    package, (file, line) = "src/tlstd/features", from_page("Add a feature map")
    add({f"{package}/powers.py": file}, f"{package}/__init__.pyi", "import RBF as RBF", line)
    package, (file, line) = "src/tlstd/domains", from_page("Add a domain")
    add({f"{package}/two_rooms.py": file}, f"{package}/__init__.py", '"Pendulum": ', line)
    package = "lab/tlstd_lab/questions"
    files = {f"{package}/smaller/{name}": text for name, text in QUESTION.items()}
    add(files, f"{package}/__init__.py", '"buffer",', '"smaller",')
    package = "lab/tlstd_lab/bench"
    add({f"{package}/nothing.py": ROW}, f"{package}/registry.py", '"td": ', '"nothing": "nothing:nothing",')
    package = "lab/tlstd_lab/campaign"
    add({f"{package}/rows/nothing.py": PROMISE}, f"{package}/registry.py", '"kills": ', '"nothing": "nothing:ROW",')
    return copy


def run(tree: Path, *command: str | Path, jit: bool = False, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of this tree."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'lab'}"}
    if not jit:
        environment["NUMBA_DISABLE_JIT"] = "1"
    words = [sys.executable, *map(str, command)]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


SEEN = """
import os, sys, tempfile

import gymnasium
import numpy as np
import tlstd.envs, tlstd.estimators, tlstd.features, tlstd_lab
from typer.testing import CliRunner

assert tlstd.__file__.startswith(sys.argv[1]) and tlstd_lab.__file__.startswith(sys.argv[1])

# Public names and registries.
from tlstd.estimators.registry import CLASSES, ESTIMATORS

assert {"GTD", "Powers"} <= set(tlstd.__all__) & set(dir(tlstd))
assert CLASSES["GTD"] is tlstd.GTD is tlstd.estimators.GTD
features = tlstd.FEATURE_MAPS["Powers"](np.zeros(2), np.ones(2))
assert type(features) is tlstd.Powers is tlstd.features.Powers
rooms = tlstd.domains.DOMAINS["TwoRooms"](stride=0.2)
assert "tlstd/TwoRooms-v0" in tlstd.envs.ENVIRONMENTS
assert type(gymnasium.make("tlstd/TwoRooms-v0").unwrapped.domain) is type(rooms)

# The model learns from the domain and the features, and its file can be loaded.
from tlstd.streams import record

model = ESTIMATORS["GTD"](features.n_features)
model.update_many(record(rooms, None, features, n_steps=40, seed=0))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model")
    model.save(path)
    same = tlstd.load(path)
assert type(same) is tlstd.GTD and (same.weights == model.weights).all() and model.weights.any()

# The reference.
sys.path.insert(0, "docs/_ext")
from reference import REGISTERED

assert "GTD" in REGISTERED["estimators"] and "Powers" in REGISTERED["feature_maps"]
assert "two_rooms.TwoRooms" in REGISTERED["domains"]

# The promise is tried.
from tlstd_lab.campaign import registry, worker

order = {"subject": "TD", "seed": 0, "folder": tempfile.mkdtemp(), "first": 0, "limit": 4, "seconds": 60.0}
batches = list(worker.batches(registry.row("nothing"), order))
assert "nothing" in registry.PLACES and sum(batch["tries"] for batch in batches) == 4

# The commands.
from tlstd.cli.app import app

for command in ("reproduce", "bench"):
    print(CliRunner().invoke(app, [command, "--list"], catch_exceptions=False).output)
"""


def test_they_are_wherever_the_others_are(tree: Path) -> None:
    result = run(tree, "-c", SEEN, tree)
    assert result.returncode == 0, result.stdout + result.stderr
    listed = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    assert ["smaller", "The buffer, smaller"] in listed
    assert ["nothing", "How long nothing takes"] in listed


@pytest.mark.long
def test_they_are_tested_with_the_others(tree: Path) -> None:
    """The suites of contracts have them, and they pass."""
    suites = ("estimators/test_contract.py", "features/test_contract.py", "domains/test_environment.py")
    only = ("-n", "0", "-v", "-p", "no:cacheprovider", "-k", "GTD or Powers or TwoRooms")
    result = run(tree, "-m", "pytest", *only, *(f"tests/{suite}" for suite in suites), jit=True)
    assert result.returncode == 0, result.stdout + result.stderr
    for test in ("test_contract[GTD-check_save_and_load]", "[Powers, D=5]", "[TwoRooms]"):
        assert f"{test} PASSED" in result.stdout


def test_they_may_not_import_their_siblings(tree: Path) -> None:
    """The contracts of imports have the new files too, without a line for them."""
    lint = ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache")
    result = run(tree, *lint, folder=tree)
    assert result.returncode == 0, result.stdout + result.stderr
    changed = {
        "Estimators": ("zoo/gtd.py", "from tlstd.zoo.replay import Replay"),
        "Feature maps": ("features/powers.py", "from tlstd.features.rbf import RBF"),
        "Domains": ("domains/two_rooms.py", "from tlstd.domains.pendulum import Pendulum"),
    }
    before = {name: (tree / "src/tlstd" / name).read_text(encoding="utf-8") for name, _ in changed.values()}
    try:
        for name, line in changed.values():
            (tree / "src/tlstd" / name).write_text(f"{before[name]}\n{line}\n", encoding="utf-8")
        broken = run(tree, *lint, folder=tree)
    finally:
        for name, text in before.items():
            (tree / "src/tlstd" / name).write_text(text, encoding="utf-8")
    assert broken.returncode == 1
    for kind in changed:
        assert re.search(rf"^{kind} do not import each other BROKEN", broken.stdout, re.MULTILINE), broken.stdout
