"""Figure 3 with smooth features: the claims on results that are made up, the features, and the task."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from tlstd_lab import statistics
from tlstd_lab.panel import TUNING_SEED, Panel
from tlstd_lab.problems import EVALUATION_SEED, FEATURE_SEED, problem
from tlstd_lab.questions import panel
from tlstd_lab.questions.figure_3 import task as figure_3
from tlstd_lab.questions.figure_3.settings import RATES
from tlstd_lab.questions.smooth import panel_a, settings, task
from tlstd_lab.questions.smooth.constant import Unit
from tlstd_lab.questions.smooth.panel_b import Methods
from tlstd_lab.questions.smooth.settings import METHODS, OURS, PAPERS, name_of
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Synthetic

NAMES = ("smooth-3a", "smooth-3b", "smooth-time", "smooth-3c", "smooth-constant")
Model = Callable[[dict[str, Any], NDArray[np.float64]], Any]


@pytest.fixture(autouse=True)
def _no_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and floor without the dynamic programme, and fewer resamples."""
    monkeypatch.setattr(statistics, "RESAMPLES", 100)
    truth = np.array([-1.0, 1.0]) * 450.0 + 800.0
    monkeypatch.setattr(panel_a, "problem", lambda name: SimpleNamespace(truth=truth))
    for module in (settings, panel_a):
        monkeypatch.setattr(module, "floor", lambda: 100.0)


def as_published(estimator: dict[str, Any], samples: NDArray[np.float64]) -> Any:
    """The world that the paper describes; a cut-off hardly matters."""
    name = estimator["class"]
    if name == "TLSTD":
        bias = {1: 400.0, 2: 350.0, 3: 300.0, 5: 200.0}.get(estimator["rank"], 110.0 - 0.2 * estimator["rank"])
        return bias + 500.0 * np.exp(-samples / 150.0) + 0.5 * np.cos(np.pi * samples)
    if name in ("TD", "TrueOnlineTD"):
        return 100.0 + 800.0 * np.exp(-samples / 2000.0)
    if name != "ILSTD":
        return 100.0 + 500.0 * np.exp(-samples / 100.0)
    step, m = estimator["step_size"], estimator["coordinates_per_step"]
    if not isinstance(step, list):
        return np.full(samples.shape, np.inf)
    off = 10.0 * abs(np.log2(step[0]) + 3) if m == 10 else 100.0 * abs(np.log2(step[0]) + 5)
    return 130.0 + 700.0 * np.exp(-samples / 1000.0) + off + 1e-3 * step[1]


def otherwise(estimator: dict[str, Any], samples: NDArray[np.float64]) -> Any:
    """One in which nothing of it holds."""
    name = estimator["class"]
    if name == "TLSTD":
        return 600.0 + estimator["rank"] - 10.0 * np.tanh(samples / 1e4)
    fall = 10.0 * np.tanh(samples / 1e4) - 0.5 * np.cos(np.pi * samples)
    if name == "ILSTD":
        return 300.0 - 2.0 * estimator["coordinates_per_step"] - fall
    return 300.0 + 100.0 * (name == "TrueOnlineTD") - fall


def made_up(rmse: Model, cost: dict[str, float] | None = None) -> Callable[[RunSpec], dict[str, Any]]:
    """Columns of every task; a class takes ``cost`` seconds per sample."""
    costs = {"TD": 1e-5, "TrueOnlineTD": 1e-5, "TLSTD": 1e-4, "ILSTD": 1e-3} | (cost or {})

    def columns(spec: RunSpec) -> dict[str, Any]:
        found, factor = spec.plain_settings(), 1.0 + 1e-4 * (spec.seed % 7)
        each = costs.get(found["estimator"]["class"], 1e-4)
        if spec.task == "tune":  # the best of iLSTD's steps in the published world, for all numbers of samples
            axes, rows = found["axes"], len(found["samples"]) + 1
            best = {"alpha": 2.0**-5, "lambda_": 0.9, "n0": 10}
            return {name: np.full(rows, best[name]) for name in axes} | {
                "inside": np.ones(rows),
                "tried": np.full(rows, 9.0),
            }
        if spec.task == "smooth-rates":
            seconds = np.array(found["seconds"])
            arrived = found["rate"] * seconds
            learned = arrived * min(1.0, 1.0 / (each * found["rate"]))
            times = {"seconds": seconds, "learned": learned, "lost": arrived - learned, "busy": learned * each}
            return times | {"rmse": factor * rmse(found["estimator"], learned)}
        samples = np.array(found["samples"], dtype=np.float64)
        times = {"seconds": each * samples, "zero": np.full(samples.size, 1000.0)}
        return times | {"rmse": factor * rmse(found["estimator"], samples)}

    return columns


def verdicts(made: Panel, results: Synthetic) -> dict[str, str]:
    """The verdict of every claim."""
    return {claim.name: claim.judge(results).verdict for claim in made.claims()}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_chosen_on_other_seeds(name: str) -> None:
    made = panel(name)
    results = Synthetic("paper", made_up(as_published))
    assert all(spec.seed >= TUNING_SEED for spec in made.tuning("paper"))
    shown = made.runs(results)
    assert all(spec.seed < TUNING_SEED for spec in shown)
    assert any(spec.timed for spec in shown) == (name in ("smooth-time", "smooth-3c"))
    assert made.chart(results).keys


def test_as_many_runs_as_published() -> None:
    results = Synthetic("paper", made_up(as_published))
    for method in ("TD", "true-online TD", "LSTD", "Krylov LSTD", name_of(5), name_of(60, OURS)):
        assert Methods().column(results, method, "rmse").shape == (30, 9)
    assert Methods().column(results, "iLSTD", "rmse").shape == (30, 6)


@pytest.mark.parametrize("name", ["smooth-3a", "smooth-3b"])
@pytest.mark.parametrize(("world", "verdict"), [(as_published, "reproduced"), (otherwise, "not")])
def test_claims_follow_the_world(name: str, world: Model, verdict: str) -> None:
    found = verdicts(panel(name), Synthetic("paper", made_up(world)))
    assert set(found.values()) == {verdict}, found


def test_each_cutoff_has_its_verdict() -> None:
    def only_ours(estimator: dict[str, Any], samples: NDArray[np.float64]) -> Any:
        return (otherwise if estimator.get("rcond") == float(PAPERS) else as_published)(estimator, samples)

    found = verdicts(panel("smooth-3b"), Synthetic("paper", made_up(only_ours)))
    assert (found["smooth-3b-level"], found["smooth-3b-level-cutoff"]) == ("not", "reproduced")


def test_claims_about_time() -> None:
    slow = {"TD": 0.003, "TLSTD": 0.005, "ILSTD": 0.1}
    found = verdicts(panel("smooth-3c"), Synthetic("paper", made_up(as_published, slow)))
    assert set(found.values()) == {"reproduced"}, found
    fast = {"TD": 1e-5, "TLSTD": 0.1, "ILSTD": 1e-5}
    found = verdicts(panel("smooth-3c"), Synthetic("paper", made_up(otherwise, fast)))
    assert found.pop("smooth-3c-slow") == "reproduced"
    assert set(found.values()) == {"not"}, found


def test_who_wins_in_time_is_said() -> None:
    even = {"TLSTD": 1e-5, "KrylovLSTD": 1e-2}
    results = Synthetic("paper", made_up(as_published, even))
    found = {claim.name: claim.judge(results) for claim in panel("smooth-time").claims()}
    assert found["smooth-time-tlstd"].what == "RMSE of t-LSTD over TD's, worst CPU time"
    assert found["smooth-time-krylov"].verdict == "not"


def test_the_larger_constant_costs_more() -> None:
    def columns(spec: RunSpec) -> dict[str, Any]:
        found, estimator = made_up(as_published)(spec), spec.settings["estimator"]
        worse = spec.settings["problem"] == Unit.problem and estimator.get("rcond") == float(PAPERS)
        return found | {"rmse": found["rmse"] * 1.5} if worse else found

    found = {claim.name: claim.judge(Synthetic("paper", columns)) for claim in panel("smooth-constant").claims()}
    assert found["smooth-constant-cutoff"].verdict == "reproduced"
    assert found["smooth-constant-cutoff"].number.value == pytest.approx(1.0 / 1.5)
    assert found["smooth-constant-td"].verdict == "reproduced"


def test_features_are_fitted_to_a_stream_of_their_own() -> None:
    assert len({FEATURE_SEED, EVALUATION_SEED, TUNING_SEED}) == 3
    made, unit, tiles = (problem(name) for name in (settings.PROBLEM, Unit.problem, "energy"))
    assert made.n_features == unit.n_features == 500
    assert_array_equal(made.truth, tiles.truth)
    assert_allclose(np.abs(made.X[:, :-1]).max(), 1.0, atol=1e-3)
    assert_array_equal(made.X[:, -1], 1.0)
    assert_allclose(made.X[:, :-1] * np.sqrt(2.0 / 499.0), unit.X[:, :-1])
    state = unit.domain.observe(np.array([[10.0, 3.0, 50.0, 2.0, 0.0]]))
    encoded = np.asarray(made.features.encode(state[0]))
    assert_allclose(encoded, made.features.encode_many(state)[0])


def test_rates_have_steps_in_units_of_the_features(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def rates(settings: dict[str, Any], seed: int) -> dict[str, Any]:
        asked.append(settings)
        return {}

    monkeypatch.setattr(figure_3, "rates", rates)
    estimator = {"class": "TD", "lambda_": 0.9, "step_size": [1.0, 100]}
    task.rates({"problem": "car-tiles", "estimator": estimator, "rate": RATES[0]}, 0)
    assert asked[0]["estimator"]["step_size"] == [0.1, 100]
    assert asked[0]["rate"] == RATES[0]


def test_ranks_differ_in_nothing_else() -> None:
    made = {name: dict(method.estimator) for name, method in METHODS.items() if name.startswith("t-LSTD")}
    assert made[name_of(40)] == {"class": "TLSTD", "rank": 40, "lambda_": 1.0, "rcond": 0.01}
    assert made[name_of(40, OURS)] == made[name_of(40)] | {"rcond": 1e-4}
    assert made[name_of(5)] == made[name_of(40)] | {"rank": 5}
