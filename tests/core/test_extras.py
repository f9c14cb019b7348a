"""The library alone, without what its extras bring, and built, installed and used elsewhere."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BLOCKED = """
import sys

EXTRAS = {"gymnasium", "matplotlib", "minari", "polars", "rich", "typer", "distributed", "tlstd_lab"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""

LEARN = """
import numpy as np
from tlstd import LSTD, TD, TLSTD, KrylovLSTD, random_walk
steps = random_walk(9).sample(300, np.random.default_rng(0))
for model in (LSTD(9, lambda_=0.5), TD(9, step_size=0.1, lambda_=0.5), TLSTD(9, 4, lambda_=0.5),
              KrylovLSTD(9, lambda_=0.5)):
    model.update_many(steps)
    assert model.n_updates == 300 and np.isfinite(model.predict(np.eye(9))).all()
"""


LOG = """
from tlstd import Log
log = Log.from_frame({"obs": np.arange(9.0), "reward": np.ones(9), "terminated": [0, 0, 1] * 3})
assert len(log.transitions(None, 0.9)) == 9
"""

MISSING = {
    "import tlstd.envs": "gymnasium is not installed: pip install 'tlstd[gymnasium]'",
    "from tlstd.streams import from_gymnasium as f; f(0, 0, 0, n_steps=1, gamma=1)": "tlstd[gymnasium]",
    "from tlstd import Log; Log.from_minari('a/b-v0')": "minari is not installed: pip install 'tlstd[minari]'",
    "import tempfile as t; f = t.NamedTemporaryFile(suffix='.csv'); from tlstd import Log; Log.from_frame(f.name)": (
        "polars is not installed: pip install 'tlstd[logs]'"
    ),
    "from tlstd.domains.mountain_car import MountainCar as M; M().draw([-0.5, 0.0])": "tlstd[cli]",
    "from tlstd.diagnostics import picard, plot_picard; plot_picard(picard([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]))": (
        "matplotlib is not installed: pip install 'tlstd[cli]'"
    ),
}
"""What needs an extra, and what it says without."""

ATTEMPT = """
for code in sys.argv[1:]:
    try:
        exec(code)
    except ImportError as error:
        print(error)
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", BLOCKED + code, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_estimators_need_no_extra_and_what_is_missing_is_named() -> None:
    result = run(LEARN + LOG + ATTEMPT, *MISSING)
    assert result.returncode == 0, result.stderr
    for line, message in zip(result.stdout.splitlines(), MISSING.values(), strict=True):
        assert message in line


def test_the_command_says_what_is_missing() -> None:
    result = run("from tlstd.cli import main; main()")
    assert result.returncode == 1
    assert "typer is not installed: pip install 'tlstd[cli]'" in result.stderr.splitlines()[-1]


SCRIPT = '''"""What a user writes, against the installed package."""

import numpy as np

from tlstd import Horde, KrylovLSTD, Log, Question, Steps, TileCoder, TransitionBuilder, TLSTD, evaluate
from tlstd.evaluation import Report

features = TileCoder([0.0], [1.0], tiles=10, tilings=8)
model = TLSTD(features.n_features, rank=20, lambda_=0.9)
build = TransitionBuilder(gamma=0.9)
build.reset(features.encode([0.5]))
model.update(build.step(1.0, features.encode([0.6]), terminated=False))
value: float = model.predict(features.encode([0.5]))
horde = Horde(features, [Question("light", 0.9)], KrylovLSTD(features.n_features, lambda_=0.9))
horde.update_many(Steps.along(np.zeros((3, 1)), columns={"light": [1.0, 2.0]}))
log = Log.from_frame({"obs": np.arange(9.0), "reward": np.ones(9), "terminated": [0, 0, 1] * 3})
found: Report = evaluate(log, gamma=0.9)
print(found.value, value, horde.predict([0.5]).sum())
'''


def check_contents(built: Path) -> None:
    """The library, its licence and its description; no tests, no laboratory, no figures, no caches."""
    assert built.stat().st_size < 1_000_000
    if built.suffix == ".whl":
        with zipfile.ZipFile(built) as archive:
            names = archive.namelist()
        assert {name.partition("/")[0].partition("-")[0] for name in names} == {"tlstd"}
        assert {"tlstd/py.typed", "tlstd/__init__.pyi"} <= set(names)
    else:
        with tarfile.open(built) as archive:
            names = [name.partition("/")[2] for name in archive.getnames() if "/" in name]
        whole = {".gitignore", "CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
        assert {name for name in names if not name.startswith("src")} == whole
    kinds = {Path(name).suffix for name in names if "/" in name and "dist-info" not in name}
    assert kinds <= {".py", ".pyi", ".typed", ".css", ".html"}, kinds


@pytest.mark.long
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_built_and_installed_elsewhere(kind: str, tmp_path: Path) -> None:
    """A wheel and an sdist in an empty environment: without extras, then with the command line's."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def call(*command: object, code: int = 0) -> str:
        words = list(map(str, command))
        result = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == code, result.stdout + result.stderr
        return result.stdout + result.stderr

    call("uv", "build", "--quiet", ROOT, "--out-dir", tmp_path / "dist")
    (built,) = (tmp_path / "dist").glob(kind)
    check_contents(built)
    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    call(binaries / "pip", "install", "--quiet", built)
    installed = {line.split()[0] for line in call(binaries / "pip", "list").splitlines()[2:]}
    assert {"tlstd", "numpy", "scipy", "numba", "threadpoolctl"} <= installed
    assert not {"gymnasium", "matplotlib", "minari", "polars", "rich", "typer", "tlstd-lab"} & installed
    call(binaries / "python", "-c", LEARN)
    (tmp_path / "script.py").write_text(SCRIPT)
    typed = (sys.executable, "-m", "mypy", "--strict", "--python-executable", binaries / "python", "script.py")
    assert "Success" in call(*typed)
    (tmp_path / "script.py").write_text(SCRIPT + 'model.update("a transition")\n')
    assert 'incompatible type "str"; expected "Transition"' in call(*typed, code=1)
    assert "pip install 'tlstd[cli]'" in call(binaries / "tlstd", "demo", code=1)
    call(binaries / "pip", "install", "--quiet", f"{built}[cli]")
    assert "t-LSTD" in call(binaries / "tlstd", "demo")
    assert (tmp_path / "tlstd-demo" / "mountain_car.png").stat().st_size > 20_000
