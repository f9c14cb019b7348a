"""Mutants: operators change what they say, drawing follows the seed, and tests catch what has an effect."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest
from tlstd_lab.mutants import __main__ as command
from tlstd_lab.mutants import operators
from tlstd_lab.mutants.drawing import WRITTEN, drawn, shares
from tlstd_lab.mutants.operators import changes
from tlstd_lab.mutants.selection import imports


def texts(source: str, operator: str) -> list[str]:
    """The mutated sources that one operator makes."""
    found = [change for change in changes(source.encode()) if change.operator == operator]
    return [change.apply(source.encode()).decode() for change in found]


@pytest.mark.parametrize(
    ("operator", "source", "expected"),
    [
        ("comparison", "a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("comparison", "(a) is  not (b)", []),
        ("comparison", "(a) not in (b)", ["(a) in (b)"]),
        ("sign", "λ = -a * (b) - c", ["λ = a * (b) - c", "λ = -a * (b) + c", "λ = -a / (b) - c"]),
        ("sign", "a += 'text' + b", ["a -= 'text' + b"]),
        ("off by one", "x[n:m, 1:]", ["x[(n) + 1:m, 1:]", "x[n:(m) - 1, 1:]"]),
        ("off by one", "range(a, b, c)", ["range(a, (b) - 1, c)"]),
        (
            "constant",
            "f(1, .5, 0., True)",
            ["f(2, .5, 0., True)", "f(1, 1.0, 0., True)", "f(1, .5, 1.0, True)", "f(1, .5, 0., False)"],
        ),
        ("and/or", "a and (b or c) and d", ["a or (b or c) or d", "a and (b and c) and d"]),
        ("negated condition", "if not a or b: c", ["if not (not a or b): c", "if (a) or b: c"]),
        ("dropped statement", "f(\n  a)\nb = 1", ["pass\n\nb = 1"]),
        ("dropped statement", "if a: raise E(1 + 1)", ["if a: pass"]),
        ("dropped statement", "self.a = b[0] = 1", ["pass"]),
    ],
)
def test_operator(operator: str, source: str, expected: list[str]) -> None:
    assert sorted(texts(source, operator)) == sorted(expected)


def test_what_is_never_changed() -> None:
    source = '''
"""Docstring 1 < 2."""
from a import b
__all__ = [c + 1]
if TYPE_CHECKING:
    x = 1
@decorated(1)
def f(a: Literal[1] | None) -> Literal[2]:
    """Docstring."""
    b: Literal[3]
    assert a < 1
    return f"{1 + 1}"
'''
    assert changes(source.encode()) == []
    assert [change.operator for change in changes(b"raise E(1 < 2)")] == ["dropped statement"]


def test_no_line_moves_and_nothing_else_changes() -> None:
    source = Path(operators.__file__).read_bytes()
    found = [change for change in changes(source) if change.fits(source)]
    assert len({change.operator for change in found}) >= 6
    for change in found[::5]:
        mutated = change.apply(source)
        assert mutated.count(b"\n") == source.count(b"\n")
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))


def test_shares_by_lines_of_code() -> None:
    assert shares({"a": 90, "b": 10}, 28) == {"a": 22, "b": 6}
    assert shares({"a": 99, "b": 1}, 3) == {"a": 2, "b": 1}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A tree with one function, of whose two lines one has no effect, and a test."""
    files = {
        "src/toy/__init__.py": "",
        "src/toy/sums/__init__.py": "",
        "src/toy/sums/add.py": "def add(a, b):\n    c = a + b\n    while c < a < c:\n        c -= 1\n    return c\n",
        "tests/sums/test_add.py": "from toy.sums.add import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
        "tests/sums/test_broken.py": "from toy.sums.add import add, other\n",
        "tests/sums/test_failing.py": "class TestIt:\n    def test_it(self):\n        assert 0\n",
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = []\n",
        f"{WRITTEN}/toy.toml": "\n".join(
            f'[[mutant]]\nname = "{name}"\nfile = "src/toy/sums/add.py"\nold = "{old}"\nnew = "{new}"\nwhy = "a test"'
            for name, old, new in [
                ("with effect", "a + b", "a - b"),
                ("without effect", "c -= 1", "c -= 2"),
                ("without end", "while c < a < c", "while c"),
                ("stale", "a * b", "a / b"),
            ]
        ),
    }
    for name, text in files.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    return tmp_path / "tree"


def test_drawing_follows_the_seed(toy: Path) -> None:
    assert drawn(toy, 5, 1) == drawn(toy, 5, 1)
    assert drawn(toy, 5, 1) != drawn(toy, 5, 2)
    assert {one.package for one in drawn(toy, 5, 1)} == {"sums"}  # the other package has no code


def test_tests_of_the_package_and_importers_come_first(toy: Path) -> None:
    """A public name leads to its module, also by way of a stub."""
    (toy / "src/toy/__init__.pyi").write_text("from toy.sums.add import add as add\n")
    (toy / "src/toy/double.py").write_text("from toy import add\n\ndef double(a):\n    return add(a, a)\n")
    (toy / "tests/test_far.py").write_text("import toy.double\n")
    (toy / "tests/test_public.py").write_text("import toy\n\ndef test():\n    toy.add(1, 2)\n")
    (toy / "tests/sums/test_near.py").write_text("")
    nearest = imports(toy).nearest_tests("src/toy/sums/add.py")
    expected = ["add", "broken", "failing", "near"]
    assert nearest == [
        *(f"tests/sums/test_{name}.py" for name in expected),
        "tests/test_public.py",
        "tests/test_far.py",
    ]


def test_a_run(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in toy.rglob("*") if path.is_file()}
    out, page = toy.parent / "out", toy.parent / "page.md"
    options = ["--root", str(toy), "--out", str(out), "--n", "0", "--write", str(page), "--budget", "4"]
    assert command.main(options) == 1  # one is stale
    printed = capsys.readouterr().out
    assert "| sums |  | 2 / 3 |" in printed
    assert "stale: stale: src/toy/sums/add.py" in printed
    text = page.read_text()
    survivors = text.partition("no test caught")[2].partition("##")[0]
    assert "`c -= 1` → `c -= 2`" in survivors
    assert "`a + b`" not in survivors
    left_out = ["tests/sums/test_broken.py", "tests/sums/test_failing.py::TestIt::test_it"]
    assert [line[3:-1] for line in text.partition("Tests left out")[2].splitlines() if line[:1] == "-"] == left_out
    assert {path: path.read_bytes() for path in toy.rglob("*") if path.is_file()} == before
    assert not list(out.glob("copy*"))
    with (out / "results.jsonl").open("a") as log:
        log.write('{"key"')  # a line that was broken off
    shutil.rmtree(next(out.glob("tree-*")) / "tests")  # a second run has nothing to try
    assert command.main(options) == 1
    assert page.read_text() == text
