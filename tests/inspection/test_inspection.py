"""What ``tlstd inspect`` says about saved models, and how it fails."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.helpers import random_transitions
from tlstd import (
    ATD,
    LSTD,
    TD,
    TLSTD,
    Decay,
    Handover,
    Horde,
    Question,
    StateError,
    Steps,
    TileCoder,
    Transitions,
    load,
)
from tlstd.cli.app import app
from tlstd.core import file_format
from tlstd.diagnostics import effective_rank
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import ESTIMATORS
from tlstd.evaluation import choose
from tlstd.inspection import advise, examine, examine_file, plot, render

D = 12
ROOT = Path(__file__).parents[2]


def saved(model: LinearEstimator, path: Path, n_steps: int = 67) -> Path:
    rng = np.random.default_rng(0)
    model.update_many(random_transitions(rng, n_features=D, n_steps=n_steps, density=0.2, sparse=True))
    model.save(path)
    return path


def inspect(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


# --- what is said ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_steps", [0, 67])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_model_can_be_inspected(name: str, n_steps: int, tmp_path: Path) -> None:
    model = ESTIMATORS[name](D)
    path = saved(model, tmp_path / "model", n_steps)
    code, text, errors = inspect(path)
    assert (code, errors) == (0, "")
    assert text.startswith(type(model).__name__)
    code, text, errors = inspect(path, "--json")
    assert (code, errors) == (0, "")
    found = json.loads(text)
    part: Any = model.active if isinstance(model, Handover) else model
    assert found["class"] == type(model).__name__
    assert found["parameters"] == json.loads(json.dumps(model.parameters))
    assert (found["n_updates"], found["n_features"], found["n_targets"]) == (n_steps, D, 1)
    assert found["n_seen"] == part.n_seen
    assert found["file_bytes"] == path.stat().st_size
    assert found["memory_bytes"] == load(path).nbytes
    assert (found["factors"] is not None) == isinstance(part, (TLSTD, ATD))
    assert found["active"] == (type(part).__name__ if isinstance(model, Handover) else None)
    assert found["handed_over"] == getattr(model, "handed_over", None)


@pytest.mark.parametrize("options", [{}, {"subspace_lambda": 1.0}, {"trace": "replacing"}])
def test_says_what_the_live_model_says(options: dict[str, Any], tmp_path: Path) -> None:
    model = TLSTD(D, 6, lambda_=0.7, buffer_size=9, **options)
    found = examine_file(saved(model, tmp_path / "model"))
    assert found.factors is not None
    assert np.array_equal(found.factors.singular_values, model.singular_values)
    assert found.factors.orthogonality_error == model.orthogonality_error()
    assert found.factors.effective_rank == effective_rank(model.singular_values)
    assert found.factors.n_buffered == 67 % 9
    assert found.factors.rank == 6
    assert found.plain() == {
        **examine(model).plain(),  # the live model has room for more in its buffers
        **{key: found.plain()[key] for key in ("path", "file_bytes", "memory_bytes")},
    }


def test_reads_the_factors_of_atd_and_of_the_part_that_learns(tmp_path: Path) -> None:
    twin = TLSTD(D, 4, lambda_=0.7, buffer_size=8)
    saved(twin, tmp_path / "twin")
    atd = ATD(D, 4, step_size=Decay(1.0, 0), lambda_=0.7, eta=0.01, buffer_size=8)
    found = examine_file(saved(atd, tmp_path / "atd"))
    assert found.factors is not None
    np.testing.assert_allclose(found.factors.singular_values, twin.singular_values, rtol=1e-10)
    assert found.factors.n_buffered == 67 % 8
    without = ATD(D, 4, step_size=Decay(1.0, 0), lambda_=0.7, eta=0.0, buffer_size=8)  # no TD part
    alone = examine_file(saved(without, tmp_path / "without"))
    assert alone.factors is not None
    assert alone.factors.advice == examine_file(tmp_path / "twin").factors.advice != found.factors.advice  # type: ignore[union-attr]

    before = Handover(TLSTD(D, 4, lambda_=0.7, buffer_size=8), TD(D, step_size=0.1, lambda_=0.7), after=100)
    found = examine_file(saved(before, tmp_path / "before"))
    assert (found.active, found.handed_over) == ("TLSTD", None)
    assert found.factors is not None
    assert np.array_equal(found.factors.singular_values, twin.singular_values)
    after = Handover(TLSTD(D, 4, lambda_=0.7), TD(D, step_size=0.1, lambda_=0.7), after=60)
    found = examine_file(saved(after, tmp_path / "after"))
    assert (found.active, found.handed_over, found.factors) == ("TD", 60, None)


def test_rank_zero_has_no_spectrum(tmp_path: Path) -> None:
    path = saved(ATD(D, 0, step_size=0.1, lambda_=0.7, eta=0.01), tmp_path / "model")
    found = examine_file(path)
    assert found.factors is not None
    assert (found.factors.singular_values.size, found.factors.advice.verdict) == (0, "undecided")
    assert inspect(path)[0] == 0


def test_inspecting_leaves_file_and_model_alone(tmp_path: Path) -> None:
    model, twin = TLSTD(D, 4, lambda_=0.7), TLSTD(D, 4, lambda_=0.7)
    path = saved(model, tmp_path / "model")
    before = path.read_bytes()
    assert inspect(path)[0] == 0
    assert path.read_bytes() == before
    saved(twin, tmp_path / "twin")
    examine(model)
    assert np.array_equal(model.weights, twin.weights)


def test_json_has_the_documented_keys(tmp_path: Path) -> None:
    _, text, _ = inspect(saved(TLSTD(D, 4, lambda_=0.7), tmp_path / "model"), "--json")
    found = json.loads(text)
    page = (ROOT / "docs" / "state.md").read_text()
    section = page[page.index("## Looking into a file") :]
    documented = set(re.findall(r"^\| `([a-z_.]+)` \|", section, flags=re.MULTILINE))
    keys = {
        *found,
        *(f"factors.{k}" for k in found["factors"]),
        *(f"factors.advice.{k}" for k in found["factors"]["advice"]),
    }
    assert documented == keys - {"factors.advice"}


# --- advice ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sigma", "rank", "more", "verdict", "wanted"),
    [
        (0.5 ** np.arange(5.0), 5, {}, "undecided", None),
        (0.5 ** np.arange(5.0), 5, {"n_seen": 7}, "undecided", None),
        (0.5 ** np.arange(5.0), 5, {"n_seen": 5}, "keep", 5),
        (0.5 ** np.arange(10.0), 10, {}, "keep", 10),  # σ₁₀/σ₁ is 1.95 times the cut-off
        (0.5 ** np.arange(12.0), 12, {}, "keep", 12),  # 10 of 12 are used
        (0.5 ** np.arange(40.0), 40, {}, "lower", 11),
        (0.5 ** np.arange(3.0), 40, {}, "lower", 4),  # A has rank 3
        (0.5 ** np.arange(3.0), 40, {"n_updates": 399}, "undecided", None),
        (0.5 ** np.arange(5.0), 5, {"n_updates": 6}, "undecided", None),
        (0.5 ** np.arange(5.0), 5, {"subspace": True}, "undecided", None),
        (0.5 ** np.arange(3.0), 40, {"subspace": True}, "lower", 4),
        (np.zeros(0), 5, {"n_updates": 0}, "undecided", None),
        (np.zeros(3), 5, {}, "undecided", None),
        (np.zeros(0), 0, {}, "undecided", None),
        (np.ones(5), 5, {"rcond": 0.0}, "undecided", None),
    ],
)
def test_advice(sigma: Any, rank: int, more: dict[str, Any], verdict: str, wanted: int | None) -> None:
    advice = advise(sigma, **{"rank": rank, "rcond": 1e-3, "n_seen": 1000, "n_updates": 9000, **more})
    assert (advice.verdict, advice.rank) == (verdict, wanted)
    assert advice.reason.isascii()


def test_a_rank_that_is_lowered_as_advised_gives_the_same_values() -> None:
    """And one that is far too small does not; features whose lengths fall by 0.6 from one to the next, then rotated."""
    rng = np.random.default_rng(1)
    d, n = 40, 800
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = rng.standard_normal((n + 1, d)) * 0.6 ** np.arange(d) @ rotation
    never = np.zeros(n, dtype=bool)
    steps = Transitions.from_arrays(
        X[:-1], X[:-1] @ rotation[:6].T @ 2.0 ** np.arange(6), X[1:], terminated=never, truncated=never, gamma=0.9
    )
    models = {rank: TLSTD(d, rank, lambda_=0.5, rcond=1e-3) for rank in (3, 30)}
    full = LSTD(d, lambda_=0.5, rcond=1e-3)
    for model in (full, *models.values()):
        model.update_many(steps)
    too_small, too_large = (examine(models[rank]).factors for rank in (3, 30))
    assert too_small is not None
    assert too_large is not None
    assert too_small.advice.verdict == "undecided"
    assert "choose" in too_small.advice.reason
    assert too_large.advice.verdict == "lower"
    assert too_large.advice.rank is not None
    lowered = TLSTD(d, too_large.advice.rank, lambda_=0.5, rcond=1e-3)
    lowered.update_many(steps)
    truth = full.predict(steps.X)

    def error(model: TLSTD) -> float:
        return float(np.linalg.norm(model.predict(steps.X) - truth) / np.linalg.norm(truth))

    choice = choose(lambda rank: TLSTD(d, rank, lambda_=0.5, rcond=1e-3), [1, 3, 6, too_large.advice.rank], steps)
    assert choice.value == too_large.advice.rank  # rewards without noise: data say what the spectrum could not
    assert error(lowered) < 0.01
    assert error(models[3]) > 0.1


# --- the plot -------------------------------------------------------------------------------------------------------


def test_plot_is_a_picture_of_the_values() -> None:
    lines = plot(0.1 ** np.arange(9.0), rcond=1e-4, height=8)
    bars = [f"{line[9:18]:9}" for line in lines[:8]]
    heights = [sum("▁▂▃▄▅▆▇█".find(row[i]) + 1 for row in bars) for i in range(9)]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] == 64
    assert heights[-1] == 1  # what is kept can be seen
    assert sum("cut-off" in line for line in lines) == 1


@pytest.mark.parametrize("n", [1, 2, 60, 61, 500])
@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize(
    "sigma", [lambda n: np.ones(n), lambda n: np.logspace(-300, 300, n)[::-1], lambda n: np.eye(n)[0]]
)
def test_plot_fits_whatever_the_values(sigma: Callable[[int], Any], unicode: bool, n: int) -> None:
    for rcond in (0.0, 1e-4, 0.5):
        lines = plot(sigma(n), rcond=rcond, width=60, unicode=unicode)
        assert len(lines) == 10
        assert max(map(len, lines)) <= 60 + 9 + len(" cut-off")
        assert unicode or "".join(lines).isascii()
    assert plot(np.zeros(n)) == []


# --- where it goes --------------------------------------------------------------------------------------------------


def test_piped_output_is_plain(tmp_path: Path) -> None:
    path = saved(TLSTD(D, 4, lambda_=0.7), tmp_path / ("long" * 40))
    _, text, _ = inspect(path)
    assert text.isascii()
    assert "\x1b" not in text
    assert str(path) in text.splitlines()[0]
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_terminal_gets_colours_and_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(TLSTD(D, 4, lambda_=0.7), tmp_path / "model")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    text = CliRunner().invoke(app, ["inspect", str(path)]).stdout
    assert "\x1b[" in text
    assert "█" in text
    text = CliRunner(charset="ascii").invoke(app, ["inspect", str(path)]).stdout
    assert "\x1b[" in text
    assert text.isascii()


# --- mistakes -------------------------------------------------------------------------------------------------------


def _cut(data: bytes) -> bytes:
    return data[:-7]


def _flip(data: bytes) -> bytes:
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


@pytest.mark.parametrize("json_", [[], ["--json"]])
@pytest.mark.parametrize("damage", [_cut, _flip, lambda data: b"", lambda data: b"PK\x03\x04" + data])
def test_damaged_files(damage: Callable[[bytes], bytes], json_: list[str], tmp_path: Path) -> None:
    path = saved(TLSTD(D, 4, lambda_=0.7), tmp_path / "model")
    path.write_bytes(damage(path.read_bytes()))
    code, text, errors = inspect(path, *json_)
    assert (code, text) == (1, "")
    assert re.fullmatch(r"[^\n]+ cannot be loaded \([^\n]+\): restore it from a copy or save the model again\n", errors)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        code, text, errors = inspect(path)
        assert (code, text) == (1, "")
        assert re.fullmatch(r"[^\n]+ cannot be (read|loaded) \([^\n]+\): [^\n]+\n", errors)
    with pytest.raises(StateError, match="No such file"):
        examine_file(tmp_path / "missing")


# --- what a terminal would act on -------------------------------------------------------------------------------------

ESCAPE = "\x1b[31m\x07\x9b2J\u202e\r"
"""Red, a bell, a cleared screen, text from right to left, and a line written over."""


def printable(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize(
    ("class_name", "parameters"),
    [
        (ESCAPE, {}),
        ("TD", {ESCAPE: 1}),
        ("TD", {"n_features": 2, "step_size": 0.1, "lambda_": 0.5, ESCAPE: 1}),
        ("TD", {"n_features": 2, "step_size": ESCAPE, "lambda_": 0.5, "trace": "accumulating", "n_targets": 1}),
        ("TD", {"n_features": 2, "step_size": 0.1, "lambda_": 0.5, "trace": ESCAPE, "n_targets": 1}),
    ],
    ids=["class", "name", "one more name", "step_size", "trace"],
)
@pytest.mark.parametrize("json_", [[], ["--json"]])
def test_crafted_names_do_nothing_to_a_terminal(
    class_name: str, parameters: dict[str, Any], json_: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "model"
    file_format.write(path, class_name, parameters, {"n_updates": 0, ESCAPE: 1, "w" + ESCAPE: np.zeros(2)})
    code, text, errors = inspect(path, *json_)
    assert (code, text) == (1, "")
    assert printable(errors)
    assert errors.count("\n") == 1
    with pytest.raises(StateError) as caught:
        load(path)
    assert printable(str(caught.value))


def test_names_of_files_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    path = saved(TD(D, step_size=0.1, lambda_=0.0), tmp_path / f"model{ESCAPE}")
    code, text, _ = inspect(path)
    assert code == 0
    assert printable(text)
    assert r"model\x1b[31m" in text
    code, text, _ = inspect(path, "--json")
    assert printable(text)
    assert json.loads(text)["path"] == str(path)
    for missing in (path.with_name("none" + ESCAPE), tmp_path / ESCAPE / "model"):
        code, _, errors = inspect(missing)
        assert code == 1
        assert printable(errors)


def test_parameters_of_text_do_nothing_to_a_terminal() -> None:
    """Of an estimator of one's own, which may have any."""
    found = examine(TD(D, step_size=0.1, lambda_=0.0))
    crafted = replace(
        found,
        class_name="Own" + ESCAPE,
        parameters={"note": ESCAPE, "part": ["Part" + ESCAPE, {ESCAPE: [ESCAPE]}]},
        active=ESCAPE,
        path=ESCAPE,
    )
    console = Console(force_terminal=False, width=200, record=True, file=io.StringIO())
    console.print(render(crafted, width=200), crop=False)
    assert printable(console.export_text())
    assert printable(json.dumps(crafted.plain()))


def dusk(steps: Steps) -> Any:
    return 0.9 * (steps.next_observations[:, 0] > 0.2)


@pytest.mark.parametrize("own_map", [False, True])
def test_a_horde_shows_its_questions_without_their_functions(own_map: bool, tmp_path: Path) -> None:
    features: Any = TileCoder([0.0], [1.0], tiles=9, tilings=1)
    if own_map:
        features = SimpleNamespace(n_features=9, encode=features.encode, encode_many=features.encode_many)
    questions = [
        Question("light", 0.9, name="by \x1b[31mday"),
        Question(dusk, dusk, lambda_=0.25),
        Question("two", 0.9, size=2),
    ]
    horde = Horde(features, questions, TLSTD(9, rank=2, lambda_=0.5))
    path = np.random.default_rng(0).random((31, 1))
    horde.update_many(Steps.along(path, columns={"light": path[1:, 0], "two": np.repeat(path[1:], 2, axis=1)}))
    horde.save(tmp_path / "horde")
    code, out, _ = inspect(tmp_path / "horde", "--json")
    found = json.loads(out)
    assert (code, found["class"], found["n_updates"], found["n_targets"]) == (0, "Horde", 30, 4)
    assert found["parameters"] == {"features": None if own_map else "TileCoder"}
    assert found["questions"][1] == {
        "name": "",
        "cumulant": {"function": "dusk"},
        "discount": {"function": "dusk"},
        "ratio": 1.0,
        "lambda": 0.25,
        "size": 1,
    }
    assert [model["n_targets"] for model in found["models"]] == [3, 1]
    assert found["models"][1]["parameters"]["lambda_"] == 0.25
    assert found["models"][0]["factors"]["singular_values"] == horde.groups[0].model.singular_values.tolist()  # type: ignore[attr-defined]
    assert found["memory_bytes"] == sum(model["memory_bytes"] for model in found["models"])
    live = examine(horde).plain()
    other = {"path", "file_bytes", "memory_bytes", "models"} | ({"parameters"} if own_map else set())
    assert {name for name in found if found[name] != live[name]} <= other
    code, out, _ = inspect(tmp_path / "horde")
    lines = [line.split() for line in out.splitlines()]
    assert ["name", "cumulant", "discount", "ratio", "lambda", "size"] in lines
    assert ["dusk()", "dusk()", "1", "0.25", "1"] in lines
    assert printable(out)


def test_many_questions_are_cut_and_damaged_hordes_refused(tmp_path: Path) -> None:
    features = TileCoder([0.0], [1.0], tiles=3, tilings=1)
    questions = [Question(float(number), 0.5) for number in range(50)]
    Horde(features, questions, TD(3, step_size=0.1, lambda_=0.5)).save(tmp_path / "horde")
    _, out, _ = inspect(tmp_path / "horde")
    assert "and 10 more: --json has them" in out
    found = file_format.read(tmp_path / "horde").parameters
    for changed in ([[1.0, {"function": 3}, 1.0, None, 1, ""]], [[1.0, 0.5, 1.0, None, 1, ""]], [[1.0]], []):
        file_format.write(tmp_path / "other", "Horde", {**found, "questions": changed}, {"last": np.zeros(1)})
        code, out, err = inspect(tmp_path / "other")
        assert (code, out) == (1, "")
        assert re.fullmatch(r".*other cannot be loaded \(.*\)\n", err)
