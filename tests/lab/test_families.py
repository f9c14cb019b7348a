"""The measurement of families of features: its true values are right, its logs are fixed, and it continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from tlstd_lab.measurements.families import cells
from tlstd_lab.measurements.families.__main__ import main
from tlstd_lab.measurements.families.library import LIBRARY
from tlstd_lab.measurements.families.problems import COMPARISON, OTHER, PROBLEMS, problem
from tlstd_lab.measurements.families.rivals import RIVALS, fitted, following, realised, sweeps
from tlstd_lab.measurements.families.tables import ratio, refusals, tables

import tlstd
from tlstd import Log
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError

NEW = [name for name in PROBLEMS if not name.startswith(("energy", "walk", "boyan", "car", "pendulum"))]
"""All but those whose true values other tests have."""
QUICK = [name for name in PROBLEMS if name != "energy-calm" and not name.startswith("pushed")]
"""All but two whose true values take seconds."""
TRIED = 12


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in NEW), "car-other"]
)
def test_true_values_are_means_of_rollouts(name: str) -> None:
    made, rng = problem(name), np.random.default_rng(7)
    assert made.rollouts is not None
    returns = np.array([made.rollouts(rng) for _ in range(TRIED)])
    variances = returns.var(axis=0, ddof=1) / TRIED
    apart = made.truth - made.truth.mean()
    for weights in (np.full(len(apart), 1.0 / len(apart)), apart / (apart @ apart)):  # the mean and the slope
        error = np.sqrt(weights**2 @ variances)
        assert abs(weights @ (returns.mean(axis=0) - made.truth)) < 4.0 * error + 1e-6


@pytest.mark.parametrize("name", QUICK)
def test_logs_are_fixed_by_their_seeds(name: str) -> None:
    made = problem(name)
    first, again, other = (made.log(seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.rewards, again.rewards)
    np.testing.assert_array_equal(first.observations, again.observations)
    assert not np.array_equal(first.observations, other.observations)
    assert made.name == name
    assert made.states.shape == (len(made.truth), first.states.shape[1])
    assert made.rollouts is not None or made.group == COMPARISON


@pytest.mark.parametrize("name", [name for name in QUICK if name.endswith("-other")])
def test_target_policies_are_probabilities(name: str) -> None:
    made = problem(name)
    log = made.log(0)
    assert made.policy is not None
    assert made.group == OTHER
    assert log.actions is not None
    assert set(np.unique(log.actions)) == set(range(made.n_actions))
    chances = made.policy(log.states)
    assert chances.shape == (len(log), made.n_actions)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (chances >= 0.0).all()


class Means:
    """A regression that knows the mean of each row of inputs."""

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        self.rows, place = np.unique(X, axis=0, return_inverse=True)
        self.means = np.bincount(place.ravel(), y) / np.bincount(place.ravel())

    begin = fit

    def sweeps(self, gamma: float, from_returns: bool) -> int:
        return sweeps(gamma, from_returns)

    def predict(self, X: FloatArray) -> FloatArray:
        known = {row.tobytes(): mean for row, mean in zip(self.rows, self.means, strict=True)}
        return np.array([known.get(row.tobytes(), 0.0) for row in X])


@pytest.mark.parametrize("name", ["boyan", "rooms", "rooms-other"])
def test_fitted_values_are_right_where_the_regression_is_exact(name: str) -> None:
    made = problem(name)
    values = fitted(lambda seed: Means(), made, made.log(0), 0)(made.states)
    assert made.rmse(values) < 0.2 * made.truth.std()


def test_sweeps_settle() -> None:
    assert sweeps(0.8, True) == sweeps(0.8, False) == 21  # 0.8²¹ < 0.01
    assert (sweeps(0.95, True), sweeps(0.95, False), sweeps(1.0, True)) == (40, 90, 40)


def test_returns_and_next_observations_of_a_small_log() -> None:
    log = Log.from_arrays(
        [[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 4.0, 8.0], terminated=[0, 1, 0, 0], truncated=[0, 0, 0, 1],
        next_observations=[[1.0], [9.0], [3.0], [7.0]],
    )  # fmt: skip
    returns, complete = realised(log, 0.5)
    assert returns[:2].tolist() == [2.0, 2.0]
    assert complete.tolist() == [True, True, False, False]
    after, known = following(log)
    assert after.ravel().tolist() == [1.0, 9.0, 3.0, 7.0]
    assert known.all()


def test_it_continues_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "families.jsonl"
    arguments = [str(kept), "--only", "boyan", "--methods", "constant,auto", "--seeds", "2"]
    main(arguments)
    first, shown = kept.read_text(), capsys.readouterr().out
    assert [(one["method"], one["seed"]) for one in map(json.loads, first.splitlines())] == [
        ("auto", 0), ("constant", 0), ("auto", 1), ("constant", 1),
    ]  # fmt: skip
    main(arguments)
    assert kept.read_text() == first
    assert capsys.readouterr().out == shown
    lines = first.splitlines()
    kept.write_text("\n".join([*lines[:3], lines[3][:40]]))  # killed while it wrote
    main(arguments)
    assert json.loads(kept.read_text().splitlines()[-1]) == {**json.loads(lines[3]), "seconds": ANY}
    assert capsys.readouterr().out.startswith("| problem |")
    with pytest.raises(SystemExit, match="has nothing of the code as it is now"):
        main([str(tmp_path / "empty"), "--table"])


def test_rivals_are_not_measured_anew_when_the_library_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def digests() -> list[bytes]:
        cells.of_methods.cache_clear()
        return [cells.of_methods(method) for method in ("auto", "constant")]

    library = tmp_path / "tlstd"
    library.mkdir()
    monkeypatch.setattr(tlstd, "__file__", str(library / "__init__.py"))
    (library / "fit.py").write_text("def f():\n    return 1\n")
    first = digests()
    (library / "fit.py").write_text('def f():\n    """What is said of it."""\n    return 1  # and more\n')
    assert digests() == first
    (library / "cli.py").write_text("x = 1\n")
    (library / "page").mkdir()
    (library / "page" / "page.py").write_text("x = 1\n")
    assert digests()[1] == first[1]
    (library / "fit.py").write_text("def f():\n    return 2\n")
    assert digests()[0] != first[0]
    assert digests()[1] == first[1]
    monkeypatch.undo()
    cells.of_methods.cache_clear()


def test_what_the_library_refuses_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise InvalidParameterError("not known")

    def fails(*_: object) -> None:
        raise ZeroDivisionError("made up")

    monkeypatch.setitem(LIBRARY, "tiles", refuses)
    assert cells.measured("boyan", "tiles", 0) == {"refused": "not known"}
    monkeypatch.setitem(RIVALS, "constant", fails)
    assert cells.measured("boyan", "constant", 0) == {"error": "ZeroDivisionError: made up"}


def _runs(*errors: float, seconds: float = 1.0) -> list[dict[str, Any]]:
    return [{"seed": seed, "rmse": error, "seconds": seconds} for seed, error in enumerate(errors)]


def test_ratios_of_made_up_errors() -> None:
    runs = {
        "auto": _runs(2.0, 4.0, seconds=0.5), "trees": _runs(3.0, 3.0, seconds=4.0), "network": _runs(1.0, 3.0),
        "squares": [{"seed": 0, "refused": "numbers of states"}], "constant": _runs(0.1, 0.1),
    }  # fmt: skip
    found = ratio(runs)
    assert found is not None
    assert (found.value, found.against) == (1.5, "network")
    assert found.error == pytest.approx(np.std([0.5, -0.5], ddof=1) / np.sqrt(2) / 2.0)
    shown = tables({"boyan": runs})["families"]
    assert "1.50 ± 0.25 (network)" in shown
    assert "| **1.50** (≤ 1.25) |" in shown
    assert "| 0.12 (≤ 0.25) |" in shown
    failed = {"auto": _runs(1.0), "trees": [{"seed": 0, "error": "ZeroDivisionError: made up"}]}
    assert ratio(failed) is None
    assert ratio({"auto": _runs(1.0)}) is None
    assert refusals({"boyan": runs}) == ["squares refused: numbers of states (1 runs of boyan)"]


def test_names_are_words_or_have_them() -> None:
    assert cells.named("auto,net", cells.METHODS) == ["auto", "network"]
    assert cells.named("other", PROBLEMS) == [name for name in PROBLEMS if name.endswith("-other")]
    assert cells.named("", cells.METHODS) == list(cells.METHODS)
