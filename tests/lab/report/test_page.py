"""The page as a file: what is on it, that it is closed to the world, and the command that makes it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from tlstd_lab import statistics
from tlstd_lab.problems import problem
from tlstd_lab.questions import panel
from tlstd_lab.questions.explorer import settings as explorer
from tlstd_lab.questions.explorer.task import explore
from tlstd_lab.report import explorer as exploring
from tlstd_lab.report import settings
from tlstd_lab.report.page import render
from tlstd_lab.report.sources import Sources, gather
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import OWN, Store, _to_bytes
from typer.testing import CliRunner

from tests.lab.report.pages import BUNDLES, MISSING, NASTY, PANELS, ROOT, hostile, sources
from tlstd.cli.app import app
from tlstd.errors import StateError, TlstdError

LARGEST = 8_000_000


class Document(HTMLParser):
    """All elements with their attributes, and all text that is not of scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words = ""
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._tag = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._tag = tag
        if tag == "script":
            self.scripts.append("")
        if tag == "style":
            self.styles.append("")

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag == "script":
            self.scripts[-1] += data
        elif self._tag == "style":
            self.styles[-1] += data
        else:
            self.words += data


@pytest.fixture(scope="module")
def html(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def document(html: str) -> Document:
    return Document(html)


def test_it_is_small_and_whole(html: str, document: Document) -> None:
    assert len(html.encode()) < LARGEST
    for tag, attributes in document.elements:
        assert tag not in ("img", "iframe", "object", "embed", "base")
        assert "style" not in attributes, f"the policy forbids the style of {tag}"
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "action", "xlink:href"):
            assert attributes.get(name, "#").startswith(("#", "data:,"))
    assert "{{" not in re.sub(re.escape("{{data}}"), "", html), "a place of the template was left open"


def test_the_policy_allows_this_script_and_style_only(document: Document) -> None:
    (policy,) = (a["content"] for _, a in document.elements if a.get("http-equiv") == "Content-Security-Policy")
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == ["'none'"]
    (style,) = document.styles
    assert rules["style-src"] == [source(style)]
    executable = [
        content
        for content, (_, attributes) in zip(
            document.scripts, (e for e in document.elements if e[0] == "script"), strict=True
        )
        if attributes.get("type") != "application/json"
    ]
    assert rules["script-src"] == [source(content) for content in executable]
    assert len(executable) == 1
    assert "unsafe" not in policy


def source(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def test_every_text_from_data_is_escaped(html: str, document: Document) -> None:
    assert "<script>alert" not in html
    assert "<img" not in html
    for words in (
        "title ",
        "caption ",
        "line ",
        "x ",
        "y ",
        "text ",
        "statement ",
        "where ",
        "what ",
        "note ",
        "tlstd ",
    ):
        assert words + NASTY in document.words, f"{words!r} is not on the page as it is"
    assert not [a["id"] for _, a in document.elements if not re.fullmatch(r"[\w.-]+", a.get("id", "x"))]
    data = json.loads(document.scripts[0])
    assert data[f"z{NASTY}"]["series"][0]["name"] == f"line {NASTY}"


def test_claims_and_figures_are_linked_and_have_their_scale(document: Document) -> None:
    ids = [attributes["id"] for _, attributes in document.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for name in PANELS:
        assert f"figure-{name}" in ids
        for claim in panel(name).claims():
            assert f"claim-{claim.name}" in ids
            assert claim.statement in document.words
    for _, attributes in document.elements:
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids
    assert "paper scale · " in document.words
    assert "quick scale · " in document.words


def test_findings_are_those_of_the_page_of_claims(document: Document) -> None:
    written = dict(re.findall(r"^\| \*\*(.*?)\*\* (.*) \|$", (ROOT / "docs" / "claims.md").read_text("utf-8"), re.M))
    rows = {a["id"]: a for tag, a in document.elements if tag == "tr" and a.get("id", "").startswith("claim-")}
    for name in PANELS:
        for claim in panel(name).claims():
            _, _, verdict, number, _ = re.split(r"(?<!\\) \| ", written[claim.name])
            assert rows[f"claim-{claim.name}"]["data-verdict"] == verdict
            assert number.partition(":")[0] in document.words


def test_what_is_not_computed_is_listed_with_its_command(html: str) -> None:
    (listed,) = re.findall(r'<ul id="missing">(.*?)</ul>', html)
    assert f"uv run tlstd reproduce {MISSING} --scale quick" in listed
    assert listed.count("<li>") == 1


def test_settings_are_one_click_away(html: str) -> None:
    (figure,) = re.findall(r'<article class="figure" id="figure-A.2".*?</article>', html, flags=re.DOTALL)
    for words in ("uv run tlstd reproduce A.2 --scale paper", "seeds 0–2", "numpy", "episodes", "10000", "lambda_"):
        assert words in figure
    assert "<details" in figure


def test_the_best_complete_scale_is_taken(tmp_path: Path) -> None:
    made = gather(sources(), ["A.2", "planning-groups"])
    assert [shown and shown.results.scale for shown in made.values()] == ["paper", "quick"]
    shown = made["A.2"]
    assert shown is not None
    incomplete = tmp_path / "part.parquet"
    sources().pack([spec.key for spec in shown.runs[:-1]], incomplete)
    assert gather(Sources([incomplete]), ["A.2"]) == {"A.2": None}


def test_folders_and_bundles_are_read_together(tmp_path: Path) -> None:
    specs = [RunSpec("no:task", {}, seed) for seed in range(3)]
    for spec, folder in zip(specs, ("one", "two", "three"), strict=True):
        Store(tmp_path / folder).write(spec, {"x": [spec.seed]}, seconds=0.0)
    Store(tmp_path / "three").pack([specs[2].key], tmp_path / "packed.parquet")
    store = Sources([tmp_path / "one", tmp_path / "packed.parquet", tmp_path / "two"])
    assert store.keys() == {spec.key for spec in specs}
    for seed, run in enumerate(store.read_many(spec.key for spec in specs).values()):
        assert run.columns["x"] == [seed]


def test_a_folder_of_bundles_is_read(tmp_path: Path) -> None:
    spec, other = (RunSpec("no:task", {}, seed) for seed in range(2))
    store = Store(tmp_path / "runs")
    store.write(spec, {"x": [1]}, seconds=0.0)
    store.pack([spec.key], tmp_path / "results" / "packed.parquet")
    Store(tmp_path / "results").write(other, {"x": [2]}, seconds=0.0)
    found = Sources([tmp_path / "results"])
    assert found.keys() == {spec.key, other.key}
    assert found.read(spec.key).columns["x"] == [1]


def test_a_page_without_figures_or_explorer_says_so(tmp_path: Path) -> None:
    html = render({MISSING: None}, None, [])
    for words in ("No claim can be decided", "no panel is complete", "uv run tlstd report --explore"):
        assert words in html
    assert "Not computed" not in render({"z": hostile(tmp_path)}, exploring.data(sources()), [])


def test_settings_in_words() -> None:
    assert settings.spans([5]) == "5"
    assert settings.spans(range(1000, 1002)) == "1000–1001"
    assert settings.flat({"a": {"b": None, "c": [1.5]}, "d": "λ"}) == {"a.b": "null", "a.c": "[1.5]", "d": "λ"}


# --- explorer -------------------------------------------------------------------------------------------------------


def test_the_explorers_runs_are_committed() -> None:
    bundle = ROOT / "results" / "explorer.parquet"
    assert bundle.stat().st_size < 3_000_000
    stored = Store("nowhere", [bundle])
    assert stored.keys() == {spec.key for spec in explorer.specs("paper")}
    spec = explorer.learning_spec("paper", "car-tiles", 5, 1.0)
    again = explore(spec.plain_settings(), spec.seed)
    columns = stored.read(spec.key).columns
    assert list(again) == list(columns)
    for name in ("samples", "value", "rmse", "sigma"):
        assert_allclose(columns[name], again[name], rtol=1e-4, atol=1e-4)


def test_the_explorers_values_have_the_error_that_is_shown() -> None:
    store = sources()
    for name, rank in (("car-rbf", 30), ("pendulum-tiles", explorer.FULL)):
        columns = store.read(explorer.learning_spec("paper", name, rank, 0.9).key).columns
        truth = store.read(explorer.truth_spec(name).key).columns["truth"]
        assert_allclose(truth, problem(name).truth)
        rows = len(columns["samples"]) // 4
        for i in range(4):
            part = {key: column[i * rows : (i + 1) * rows] for key, column in columns.items()}
            error = np.sqrt(np.mean((part["value"][: truth.size] - truth) ** 2))
            assert_allclose(error, part["rmse"][0], rtol=1e-5)
            assert np.ptp(part["rmse"]) == 0.0
            sigma = part["sigma"][np.isfinite(part["sigma"])]
            assert (np.diff(sigma) <= 0.0).all()
            assert sigma.size == (30 if rank == 30 else problem(name).features.n_features) or rank == explorer.FULL


def test_only_what_is_stored_can_be_explored(tmp_path: Path) -> None:
    store = sources()
    wanted = [explorer.truth_spec("energy"), explorer.learning_spec("paper", "energy", 20, 1.0)]
    packed = tmp_path / "part.parquet"
    store.pack([spec.key for spec in wanted], packed)
    data = exploring.data(Sources([packed]))
    assert data is not None
    (made,) = data["problems"]
    assert (made["name"], list(made["runs"]), list(made["runs"]["1"])) == ("energy", ["1"], ["20"])
    assert data["cutoff"] == 1e-4
    wanted = [explorer.truth_spec("car-tiles"), explorer.learning_spec("paper", "car-tiles", 20, 1.0)]
    store.pack([spec.key for spec in wanted], packed)
    data = exploring.data(Sources([packed]))
    assert data is not None
    assert data["problems"][0]["samples"] == list(explorer.SAMPLES["paper"])
    assert exploring.data(Store(tmp_path)) is None


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_makes_the_page_of_what_it_is_given(tmp_path: Path) -> None:
    made = panel("A.2")
    shown = gather(sources(), ["A.2"])["A.2"]
    assert shown is not None
    sources().pack([spec.key for spec in shown.runs], tmp_path / "some.parquet")
    out = tmp_path / "new" / "page.html"
    out.parent.mkdir()
    out.touch()
    os.link(out, tmp_path / "before.html")
    result = CliRunner().invoke(app, ["report", str(tmp_path / "some.parquet"), "--out", str(out)])
    assert not (tmp_path / "before.html").read_bytes(), "the page takes a place, it is not written in place"
    assert result.exit_code == 0, result.output
    assert re.fullmatch(rf"written: {re.escape(str(out))} \(\d\.\d MB\)\n", result.stdout)
    html = out.read_text(encoding="utf-8")
    assert made.caption in html
    assert "uv run tlstd reproduce 3a --scale quick" in html


def test_the_command_explores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = explorer.specs("smoke")
    monkeypatch.setattr(explorer, "specs", lambda scale: small)
    monkeypatch.chdir(tmp_path)
    command = ["report", "--explore", "--workers", "0", "--pack", "packed.parquet"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    html = Path("tlstd-report.html").read_text(encoding="utf-8")
    assert '"samples":[50,100]' in html
    assert Store("nowhere", ["packed.parquet"]).keys() == {spec.key for spec in small}


@pytest.mark.parametrize("command", [[], ["--out", "folder/page.html"]])
def test_the_command_says_that_there_is_nothing(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["report", *command])
    assert result.exit_code == 1
    assert result.output == (
        "there are no results of a whole panel in the current folder: make some with tlstd reproduce, or name others\n"
    )
    assert not list(tmp_path.rglob("*.html"))


def test_the_commands_errors_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"nothing of the kind")
    blocker = tmp_path / "file"
    blocker.write_text("")
    for arguments, words in (
        ([tmp_path / "none.parquet"], "there is no "),
        ([tmp_path / "bad.parquet"], "is damaged, or not a bundle"),
        ([BUNDLES[2], "--out", blocker / "page.html"], "choose another file with --out"),
        (["--pack", tmp_path / "new.parquet"], "--pack is for what --explore computes: give both"),
    ):
        result = CliRunner().invoke(app, ["report", *map(str, arguments)])
        assert result.exit_code == 1
        assert words in result.output
        assert result.output.count("\n") == 1


def test_the_command_removes_nothing_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor anything like /dev/null, which is empty too."""
    monkeypatch.chdir(tmp_path)
    Path("empty.html").touch()
    Path("link.html").symlink_to("empty.html")
    assert CliRunner().invoke(app, ["report", "--out", "link.html"]).exit_code == 1
    assert Path("empty.html").exists()
    assert Path("link.html").is_symlink()


def test_what_cannot_be_written_at_the_end_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "specs", lambda scale: [])
    monkeypatch.setattr(Store, "pack", lambda self, keys, path: Path(path).write_bytes(b""))
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    result = CliRunner().invoke(app, ["report", "--explore", "--workers", "0", "--pack", "file/packed.parquet"])
    assert result.exit_code == 1
    assert result.output.endswith("file/packed.parquet: Not a directory\n")


def test_the_commands_help_fits() -> None:
    result = CliRunner().invoke(app, ["report", "--help"])
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.long
def test_all_that_is_committed_makes_a_page(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["report", *map(str, BUNDLES), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert out.stat().st_size < LARGEST
    assert 'id="missing"' not in out.read_text(encoding="utf-8")


# --- runs that are not as their task makes them -----------------------------------------------------------------------


def crafted(kind: str, path: Path, bundle: Path) -> Path:
    """A bundle with the runs of another, and other numbers in them."""
    frame = pl.read_parquet(bundle)
    columns = [name for name in frame.columns if not name.startswith(OWN)]
    if kind == "other names":
        frame = frame.rename({name: f"another {name}" for name in columns})
    elif kind == "nothing finite":
        numbers = [name for name in columns if frame.schema[name].inner in (pl.Float32, pl.Float64)]  # type: ignore[attr-defined]
        frame = frame.with_columns(pl.col(numbers).list.eval(pl.element() * np.nan))
    else:
        frame = frame.with_columns(pl.col(columns).list.head(1 if kind == "one number" else 0))
    path.write_bytes(_to_bytes(frame))
    return path


@pytest.mark.parametrize("kind", ["nothing finite", "other names", "one number", "no numbers"])
def test_crafted_runs_are_a_sentence(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 20)  # no interval is looked at
    store = Sources([crafted(kind, tmp_path / "quick.parquet", BUNDLES[0])])
    n_refused = 0
    for name in ("1a", "A.2", "bias", "theorem-bound"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's, about means of nothing
                render(gather(store, [name]), None, [])
        except StateError as error:
            n_refused += f"panel {name} cannot be shown from its stored runs" in str(error)
        except TlstdError:
            n_refused += 1
    assert n_refused  # some panels can draw even that


@pytest.mark.parametrize("kind", ["nothing finite", "other names"])
def test_a_crafted_explorer_is_a_sentence(kind: str, tmp_path: Path) -> None:
    path = crafted(kind, tmp_path / "explorer.parquet", BUNDLES[2])
    result = CliRunner().invoke(app, ["report", str(path), "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 1
    assert "the rank explorer cannot be shown from its stored runs" in result.output
    assert not (tmp_path / "page.html").exists()
