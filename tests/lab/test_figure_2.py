from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tlstd_lab import statistics
from tlstd_lab.claims import Finding
from tlstd_lab.panel import SCALES, TUNING_SEED, Results, Scale
from tlstd_lab.problems import problem
from tlstd_lab.questions.figure_2.curves import PRINTED, TD, apart, curve_ratio, step_size
from tlstd_lab.questions.figure_2.panel_a import CarRBFSamples
from tlstd_lab.questions.figure_2.panel_b import CarRBFTime, Line, errors_in_time
from tlstd_lab.questions.figure_2.task import anew
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Run, Store


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


SHAPE = Callable[[dict[str, Any]], float]
"""How far up the curve of an estimator's settings lies."""


class Made(Results):
    """Results that are made up: curves from 1.2 times a level down to it, with a little noise by seed."""

    def __init__(self, scale: Scale, level: SHAPE, cost: SHAPE = lambda _: 1e-4, first: float = 1.2) -> None:
        super().__init__(Store(Path("nowhere")), scale)
        self.level, self.cost, self.first = level, cost, first

    def load(self, specs: Any) -> None:
        pass

    def __getitem__(self, spec: RunSpec) -> Run:
        estimator = spec.plain_settings()["estimator"]
        samples = np.array(spec.settings["samples"])
        fall = np.geomspace(self.first, 1.0, len(samples))
        rmse = self.level(estimator) * fall * (1.0 + 0.002 * np.cos(spec.seed + np.arange(len(samples))))
        columns = {"samples": samples, "rmse": rmse, "seconds": samples * self.cost(estimator)}
        return Run(spec, columns, 0.0, {})


def is_printed(estimator: dict[str, Any]) -> bool:
    return bool(estimator["lambda_"] == PRINTED["lambda_"] and estimator["rcond"] == PRINTED["rcond"])


def levels(
    td: float = 20.0, lstd: float = 10.0, large: float = 10.0, small: float = 10.0, printed: float = 1.0
) -> SHAPE:
    """Levels by method; t-LSTD with the printed settings is worse by a factor, LSTD too."""

    def level(estimator: dict[str, Any]) -> float:
        if estimator["class"] == "TD":
            return td
        base = lstd if estimator["class"] == "LSTD" else {30: small, 100: large}[estimator["rank"]]
        return base * (printed if is_printed(estimator) else 1.0)

    return level


def judged(panel: Any, name: str, results: Results) -> Finding:
    (claim,) = [claim for claim in panel.claims() if claim.name == name]
    finding: Finding = claim.judge(results)
    assert finding.number.low <= finding.number.value <= finding.number.high
    assert finding.what
    return finding


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("panel", [CarRBFSamples(), CarRBFTime()])
def test_parameters_are_chosen_on_seeds_that_are_not_reported(panel: CarRBFSamples | CarRBFTime, scale: Scale) -> None:
    tuning, runs = panel.tuning(scale), panel.runs(Made(scale, levels()))
    assert min(spec.seed for spec in tuning) == TUNING_SEED
    assert {spec.seed for spec in runs} == set(range({"smoke": 1, "quick": 4, "paper": 30}[scale]))
    assert [spec.seed for spec in runs] == sorted(spec.seed for spec in runs)  # a stream is recorded once
    assert len({spec.key for spec in tuning}) == len(tuning)


def test_step_sizes_are_the_published_grid() -> None:
    sizes = [step_size("car-tiles", i) for i in range(13)]
    np.testing.assert_allclose(sizes, [0.1 * 2.0 ** (i - 7) / 10.0 for i in range(13)])
    assert step_size("car-rbf", 7) == pytest.approx(0.1 / problem("car-rbf").square_length, rel=1e-3)


def test_all_timed_runs_of_2b_and_no_others_are_timed() -> None:
    panel = CarRBFTime()
    assert all(spec.timed for spec in panel.runs(Made("quick", levels())))
    assert not any(spec.timed for spec in panel.tuning("quick"))
    samples = {line: runs[0].settings["samples"][-1] for line, runs in panel.lines(Made("quick", levels())).items()}
    assert samples[Line(TD)] == 8000
    assert {count for line, count in samples.items() if line.method != TD} == {4000}


def test_what_2b_shares_with_2a_is_not_run_twice() -> None:
    shared = {spec.key for spec in CarRBFSamples().tuning("paper")}
    assert {spec.key for spec in CarRBFTime().tuning("paper") if spec.settings["estimator"]["class"] != "TD"} <= shared


@pytest.mark.parametrize(
    ("large", "printed", "verdict"), [(10.0, 1.0, "reproduced"), (10.0, 1.5, "partly"), (15.0, 1.0, "not")]
)
def test_identical(large: float, printed: float, verdict: str) -> None:
    results = Made("quick", levels(large=large, printed=printed))
    assert judged(CarRBFSamples(), "2a-identical", results).verdict == verdict


@pytest.mark.parametrize(
    ("small", "first", "verdict"), [(15.0, 1.2, "reproduced"), (15.0, 9.0, "partly"), (10.0, 1.2, "not")]
)
def test_inferior(small: float, first: float, verdict: str) -> None:
    results = Made("quick", levels(small=small), first=first)
    assert judged(CarRBFSamples(), "2a-inferior", results).verdict == verdict


@pytest.mark.parametrize(("td", "verdict"), [(12.0, "reproduced"), (10.3, "partly"), (9.0, "not")])
def test_td_needs_more_samples(td: float, verdict: str) -> None:
    assert judged(CarRBFSamples(), "2a-td", Made("quick", levels(td=td))).verdict == verdict


def costs(td: float = 1e-4, lstd: float = 1e-4, t_lstd: float = 1e-4) -> SHAPE:
    return lambda estimator: {"TD": td, "LSTD": lstd, "TLSTD": t_lstd}[estimator["class"]]


@pytest.mark.parametrize(
    ("td", "lstd_cost", "verdict"), [(9.0, 1e-4, "reproduced"), (11.5, 1e-2, "partly"), (20.0, 1e-4, "not")]
)
def test_td_against_lstd_in_time(td: float, lstd_cost: float, verdict: str) -> None:
    results = Made("quick", levels(td=td), costs(lstd=lstd_cost))
    assert judged(CarRBFTime(), "2b-td-lstd", results).verdict == verdict


@pytest.mark.parametrize(
    ("large", "cost", "verdict"), [(5.0, 1e-4, "reproduced"), (11.5, 1e-6, "partly"), (20.0, 1e-3, "not")]
)
def test_t_lstd_against_lstd_in_time(large: float, cost: float, verdict: str) -> None:
    results = Made("quick", levels(large=large), costs(t_lstd=cost))
    assert judged(CarRBFTime(), "2b-tlstd-lstd", results).verdict == verdict


@pytest.mark.parametrize(("large", "verdict"), [(10.0, "reproduced"), (13.0, "partly"), (30.0, "not")])
def test_t_lstd_matches_td(large: float, verdict: str) -> None:
    results = Made("quick", levels(td=10.0, large=large))
    assert judged(CarRBFTime(), "2b-matches-td", results).verdict == verdict


@pytest.mark.parametrize(("cost", "verdict"), [(1e-4, "reproduced"), (4e-4, "partly"), (1e-2, "not")])
def test_run_time(cost: float, verdict: str) -> None:
    results = Made("quick", levels(td=10.0), costs(t_lstd=cost))
    assert judged(CarRBFTime(), "2b-run-time", results).verdict == verdict


def test_ratios_by_hand() -> None:
    a, b = np.array([[2.0, 3.0], [2.0, 3.0]]), np.array([[4.0, 2.0], [4.0, 2.0]])
    assert apart(a, b).value == pytest.approx(2.0)
    assert curve_ratio(a, b).value == pytest.approx(2.5 / 3.0)


def test_errors_in_time_by_hand() -> None:
    """b answers at 1 s only, with 4; a answers at 0.1 s with 8 and at 1 s with 2."""
    a, b = (np.array([[0.1, 1.0]]), np.array([[8.0, 2.0]])), (np.array([[1.0, 1.0]]), np.array([[4.0, 4.0]]))
    assert errors_in_time(*a, *b) == pytest.approx(0.5)
    assert errors_in_time(*b, *a) == pytest.approx(2.0)


@pytest.mark.parametrize("estimator", [{"class": "TD", "step_size": 0.01}, {"class": "TLSTD", "rank": 5}])
def test_budget_gives_the_errors_of_learning_anew(estimator: dict[str, Any]) -> None:
    settings = {"problem": "car-tiles", "estimator": estimator | {"lambda_": 0.9}, "samples": [50, 500]}
    found = anew(settings, seed=3)
    alone = anew(settings | {"samples": [50], "length": 500}, seed=3)
    assert found["rmse"][0] == alone["rmse"][0]
    assert (found["seconds"] > 0).all()
    assert len(found["rmse"]) == 2
