"""The comparison: nobody is left out, who cannot be run is told by a table, and ratios are what they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab import statistics
from tlstd_lab.learning import make
from tlstd_lab.problems import PROBLEMS, PROCESSES, measured, stream, visited
from tlstd_lab.questions import panel
from tlstd_lab.questions.comparison.methods import CANNOT, ENTRIES, ROSTER, UNTUNED, reason
from tlstd_lab.questions.comparison.panel import GROUPS, field
from tlstd_lab.questions.contest.methods import SLOWEST, filled, scaled
from tlstd_lab.report.comparison_table import Found, among_best, budgets, errors, left_out, mean_ratio
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Synthetic
from tlstd import InvalidInputError
from tlstd.estimators.registry import CLASSES


def test_every_estimator_and_every_problem_takes_part() -> None:
    assert {entry.template["class"] for entry in ENTRIES.values()} == set(CLASSES)
    compared = [problem for group in GROUPS.values() for problem in group]
    tiled = {name for name in PROBLEMS if not name.startswith("energy-fourier")}  # the same problem, other features
    assert tiled <= set(compared) <= set(PROBLEMS) | set(PROCESSES)
    assert len(set(compared)) == len(compared)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_usual_values_are_on_the_axes_and_sweeps_begin_there(name: str) -> None:
    entry, method = ENTRIES[name], ROSTER[name]
    assert list(entry.usual) == list(entry.axes)
    for axis, values in entry.axes.items():
        assert entry.usual[axis] in values
        assert entry.usual[axis] == method.start[axis][0]
    ends = [{axis: values[end] for axis, values in entry.axes.items()} for end in (0, -1)]
    for point in (entry.usual, *ends):  # all of them are parameters, within their limits
        made = make(scaled(filled(entry.template, point), 10.0, 7), 7)
        assert made.n_features == 7
    assert ROSTER[name + UNTUNED].estimator == filled(entry.template, entry.usual)


def test_defaults_are_the_constructors_where_it_has_them() -> None:
    for name in ("SwiftTD", "LSTD", "KrylovLSTD", "TLSTD", "LSTDSA", "ILSTD", "ForgetfulLSTD", "LinearDyna"):
        estimator = ROSTER[name + UNTUNED].estimator
        asked = {k: v for k, v in estimator.items() if k in ("lambda_", "step_size", "rank", "beta", "class")}
        assert make(estimator, 50).get_params() == make(asked, 50).get_params()


@pytest.mark.parametrize("name", ["TrueOnlineTD", "SwiftTD"])
def test_who_is_said_to_take_no_ratios_takes_none(name: str) -> None:
    for problem in GROUPS["off-policy"]:
        assert reason(name, problem) == "takes no importance ratios"
        model = make(ROSTER[name + UNTUNED].estimator, measured(problem).n_features)
        with pytest.raises(InvalidInputError, match="rho"):
            model.update_many(stream(problem, 20, 0))


def test_a_process_is_measured_at_its_states() -> None:
    made = measured("boyan")
    assert (made.n_features, made.X.shape) == (4, (13, 4))
    assert made.rmse(made.truth + 3.0) == pytest.approx(3.0)
    assert made.rmse(np.full(13, np.nan)) == np.inf
    assert made.square_length == pytest.approx(np.mean((made.X**2).sum(axis=1)))
    assert visited("boyan") is made
    assert len(stream("boyan", 50, 3)) == 50


# --- made-up results ------------------------------------------------------------------------------------------------


def made_up(spec: RunSpec) -> dict[str, Any]:
    """Usual Krylov LSTD is best; TD errs 4 times as much, 2 times if tuned; the rest 8 times; TD is quick."""
    n = np.array(spec.settings["samples"], dtype=np.float64)
    if spec.task == "tune":
        axes = spec.settings["axes"]
        return {name: np.full(n.size, values[-1]) for name, values in axes.items()}
    estimator = spec.settings["estimator"]
    factor = {"KrylovLSTD": 1.0, "TD": 2.0 if estimator.get("lambda_") == 1.0 else 4.0}.get(estimator["class"], 8.0)
    if estimator["class"] == "KrylovLSTD" and (estimator["lambda_"] == 1.0 or "reads" in estimator):
        factor = 8.0
    error = factor * (10.0 + 0.01 * spec.seed) / np.sqrt(n / 250.0)
    seconds = n * (1e-6 if estimator["class"] == "TD" else 1e-4)
    return {"seconds": seconds, "rmse": error, "visited": error, "zero": np.full(n.size, 200.0)}


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Synthetic:
    monkeypatch.setattr(statistics, "RESAMPLES", 30)
    return Synthetic("quick", made_up)


def test_claims_follow_from_the_errors(results: Synthetic) -> None:
    judged = {c.name: c.judge(results) for name in ("comparison", "comparison-untuned") for c in panel(name).claims()}
    values = {name: finding.number.value for name, finding in judged.items()}
    assert values["comparison-steps"] == pytest.approx(0.5)
    assert values["comparison-replay"] == pytest.approx(0.125)
    assert values["comparison-swift"] == values["comparison-sa"] == pytest.approx(1.0)
    assert values["comparison-untuned-krylov"] == pytest.approx(0.25)  # TD comes closest
    assert values["comparison-untuned-swift"] == pytest.approx(2.0)
    verdicts = {name: finding.verdict for name, finding in judged.items()}
    assert verdicts["comparison-steps"] == verdicts["comparison-untuned-krylov"] == "reproduced"
    assert verdicts["comparison-swift"] == verdicts["comparison-untuned-swift"] == "not"
    assert verdicts["comparison-sa"] == "reproduced"


def test_tables(results: Synthetic) -> None:
    car, walk, baird = (Found(results, problem) for problem in ("car-rbf", "walk", "baird"))
    assert car.cell("TD", 1_000) == "2 · 4"
    assert car.cell("KrylovLSTD", 4_000) == "8 · **1**"
    assert (car.cell("ATD", 1_000), car.cell("ATD", 4_000), walk.cell("ATD", 4_000)) == ("8 · 8", "slow", "8 · 8")
    assert (baird.cell("SwiftTD", 1_000), walk.cell("SwiftTD", 1_000)) == ("–", "8 · 8")
    assert mean_ratio([car, walk], "TD", 4_000) == "2.00 (2)"
    assert mean_ratio([car, baird], "SwiftTD", 1_000) == "8.00 (1)"
    assert among_best([car, walk, baird], "KrylovLSTD" + UNTUNED, 1_000) == 3
    assert among_best([car, walk, baird], "TD", 1_000) == 0
    assert walk.within(0.004, "") == "TD (5.01)"  # from 4,000 samples
    assert walk.within(0.1, UNTUNED) == "KrylovLSTD (5.01)"  # from 1,000, where TD has 10 from 4,000
    assert walk.within(0.0001, "") == "–"
    assert errors([walk], ["walk"], 1_000).splitlines()[-2] == "| RMSE of the best | 5.01 |"
    assert budgets([walk]).splitlines()[-1].startswith("| walk | TD (10) · TD (20) | TD (5.01) · TD (10) |")
    for names, (_, why) in CANNOT.items():
        assert f"`{names[0]}`" in left_out()
        assert why in left_out()


def test_every_kind_of_problem_weighs_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """TD errs 8 times as much as the best on six problems of energy and is level elsewhere: √√8, of four kinds."""
    monkeypatch.setattr(statistics, "RESAMPLES", 30)

    def columns(spec: RunSpec) -> dict[str, Any]:
        if spec.task == "tune":
            return made_up(spec)
        n, problem = len(spec.settings["samples"]), str(spec.settings["problem"])
        is_td = spec.settings["estimator"]["class"] == "TD"
        return {
            "rmse": np.full(n, 8.0 if is_td and "energy" in problem else 1.0),
            "zero": np.full(n, 50.0),
            "seconds": np.full(n, 1.0),
        }

    results = Synthetic("quick", columns)
    steps = panel("comparison").claims()[0].judge(results)
    assert steps.number.value == pytest.approx(8.0**-0.25)
    on_policy = [Found(results, problem) for group in GROUPS.values() for problem in group]
    assert mean_ratio(on_policy, "TD", 1_000) == "1.68 (15)"


def test_errors_below_a_hundredth_of_that_of_zero_count_as_such() -> None:
    def columns(spec: RunSpec) -> dict[str, Any]:
        found = made_up(spec)
        return found if spec.task == "tune" else found | {"rmse": 1e-14 * found["rmse"]}

    results = Synthetic("quick", columns)
    assert_allclose(field("walk").errors(results, "LSTD", 1_000), 2.0)
    assert_allclose(field("walk").errors(results, "ATD", 1_000), field("walk").best(results, 1_000))
    assert ROSTER["ATD"].effort == SLOWEST
