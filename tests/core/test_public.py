"""The public names: what runs has those that type checkers see."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tlstd
from tlstd.core.public import homes

PACKAGES = ("tlstd", "tlstd.estimators", "tlstd.evaluation", "tlstd.features")


def stub(package: str) -> set[str]:
    """The names that a stub exports, by Python's grammar."""
    path = Path(tlstd.__file__).parent.joinpath(*package.split(".")[1:], "__init__.pyi")
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                names |= stub(node.module) if alias.name == "*" else {str(alias.asname)}
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_those_of_the_stub(package: str) -> None:
    module = import_module(package)
    assert set(module.__all__) == set(homes(package)) == stub(package)
    assert set(module.__all__) <= set(dir(module))
    for name, home in homes(package).items():
        assert getattr(module, name) is getattr(import_module(home), name)
        assert getattr(getattr(module, name), "__module__", home) == home


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_does_not_hide_the_name_that_it_has(package: str) -> None:
    """Whatever was imported before: ``tlstd.evaluation.choose`` is the function, and not the module choose.py."""
    names = [name for name, home in homes(package).items() if home == f"{package}.{name}"]
    code = f"""
from importlib import import_module
for name in {names!r}:
    module = import_module("{package}." + name)
    assert getattr(import_module("{package}"), name) is getattr(module, name) is not module, name
"""
    assert names or package != "tlstd.evaluation"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_completion_shows_no_helpers() -> None:
    """Public names, and packages that list public names, whatever else was imported on the way."""
    code = """
import tlstd, tlstd.evaluation, tlstd.features, tlstd.core.svd
tlstd.evaluate, tlstd.load, tlstd.TLSTD, tlstd.merge, tlstd.warm_up
for package in (tlstd, tlstd.estimators, tlstd.features):
    print(*[name for name in dir(package) if not name.startswith("__") and name not in package.__all__])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    shown, *others = result.stdout.splitlines()
    helpers = {"lazy", "public", "core", "moved", "zoo", "state", "merging"}
    assert "evaluation" in shown.split(), result.stderr
    assert not helpers & set(shown.split())
    assert others == ["", ""]


@pytest.mark.parametrize("package", PACKAGES)
def test_others_are_not_there(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'LSDT'"):
        import_module(package).LSDT  # noqa: B018


def test_a_line_of_another_form_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlstd.core.public.__file__", str(tmp_path / "core" / "public.py"))
    (tmp_path / "__init__.pyi").write_text("from tlstd.data.transitions import Transition\n")
    with pytest.raises(ImportError, match="write 'from module import name as name'"):
        homes("tlstd")


def test_a_name_loads_only_what_it_needs() -> None:
    code = "import sys; from tlstd import TD; print('tlstd.truncated.tlstd' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "False", result.stderr


def test_imports_are_light() -> None:
    """``import tlstd`` loads four modules of its own, and the command line's help nothing that computes or draws.

    Modules are counted, not seconds: numpy, numba and the rest come with the first name that needs them.
    """
    begin = "import sys; before = set(sys.modules);"
    loads = "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    count = "print(*sorted(name for name in sys.modules if name.startswith('tlstd')))"
    code = f"{begin} import tlstd; {loads}; {count}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == ["tlstd", "tlstd tlstd.core tlstd.core.public tlstd.moved"], (
        result.stdout + result.stderr
    )
    code = f"{begin} from tlstd.cli.app import app; {loads}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    heavy = {"numpy", "scipy", "numba", "llvmlite", "matplotlib", "polars", "gymnasium", "distributed", "rich"}
    assert "typer" in result.stdout.split(), result.stderr
    assert not heavy & set(result.stdout.split()), result.stdout


@pytest.mark.parametrize(
    "code",
    [
        "import tlstd; tlstd.evaluate; from tlstd.evaluation import evaluate as found",
        "import tlstd.evaluation.choose; from tlstd.evaluation import choose as found",
        "import tlstd.evaluation; import tlstd.evaluation.returns; found = tlstd.evaluation.returns",
    ],
)
def test_a_name_is_not_the_module_that_has_the_same_name(code: str) -> None:
    """Whichever of the two was imported first."""
    words = [sys.executable, "-c", f"{code}; print(type(found).__name__)"]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "function", result.stderr
