"""A log in files that stays in parts: against systems of the whole log, and the same bits wherever the parts are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cluster.logs import LOG, ask, chain, in_files, numbers
from tests.cluster.parts import always_right, mostly_right, pushing
from tests.cluster.test_evaluate import continuous, stream
from tlstd import Log
from tlstd.cluster.evaluate import answers_of_files
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation import fits
from tlstd.evaluation.comparison import difference
from tlstd.evaluation.evaluate import evaluate
from tlstd.evaluation.fits import Fit
from tlstd.evaluation.policies import Target, as_target
from tlstd.evaluation.question import Question, start_sets
from tlstd.evaluation.report import Report
from tlstd.evaluation.silence import Support, supported, supports_of
from tlstd.evaluation.steps import Rows, columns, steps_of
from tlstd.evaluation.systems import ActionSystem, StateSystem
from tlstd.evaluation.value_function import ValueFunction
from tlstd.page import write_page


@pytest.fixture(autouse=True)
def few_steps_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 500 steps are a large log, of which 400 are a sample."""
    monkeypatch.setattr("tlstd.cluster.evaluate.GATHERED", 500)
    monkeypatch.setattr("tlstd.cluster.evaluate.SAMPLE", 400)


def with_columns(log: pl.DataFrame = LOG) -> pl.DataFrame:
    """The policy in columns: probabilities of all actions."""
    right = 0.5 + 0.4 * pl.col("obs_0").tanh()
    return log.with_columns(policy_0=1.0 - right, policy_1=right)


COLUMNS = {"columns": {"policy": ["policy_0", "policy_1"]}}
LOGS: dict[str, tuple[Callable[[], pl.DataFrame], dict[str, Any]]] = {
    "logged policy": (lambda: LOG, {}),
    "all states": (lambda: LOG, {"start": "all"}),
    "given states": (lambda: LOG, {"start": [[0.1, 0.2], [0.5, 0.0]]}),
    "ratios": (lambda: LOG, {"policy": mostly_right}),
    "numbers of actions": (lambda: LOG, {"policy": always_right}),
    "no probabilities": (lambda: LOG.drop("probability"), {"policy": mostly_right}),
    "ranges": (lambda: LOG, {"policy": always_right, "returns": (-20.0, 20.0)}),
    "ranges of rewards": (lambda: LOG, {"policy": always_right, "reward_range": (-2.0, 2.0)}),
    "discrete": (lambda: chain(200), {"policy": mostly_right}),
    "discrete, logged policy": (lambda: chain(200), {}),
    "continuous actions": (lambda: continuous(LOG), {"policy": pushing}),
    "columns": (with_columns, {}),
    "one step": (lambda: LOG, {"gamma": 0.0}),
}


def answer(how: str, folder: Path, n_files: int = 4, *, whole: bool = True) -> tuple[Log, Report]:
    """The log, and what its files say."""
    make, asked = LOGS[how]
    columns: dict[str, Any] = COLUMNS if how == "columns" else {}
    log = make()
    found = ask(in_files(log, folder, n_files, whole=whole), **asked, **columns)
    assert any("Value and interval are of all steps" in note for note in found.notes)
    return Log.from_frame(log, **columns), found


def of_whole(log: Log, found: Report) -> Fit:
    """The fit of the whole log with the settings of the parts."""
    fit, target, gamma = found.fit, found.case.target, found.gamma
    chosen = replace(fit.selection, paths={})
    if fit.kind == "joint":
        assert target is not None
        pairs, own_rows = fits.pair_rows(log, fit.features, gamma)
        support = Support.of(own_rows, np.ones(own_rows.size), False)
        system = fits.pair_system(pairs, own_rows, fit.features, target, support)
        offsets = fits.solved_constants(*fits.pair_constants(pairs, system.beyond))
        fits.set_pair_rewards(system, offsets)
        return fits.of_pairs(system, fit.features, chosen, target, offsets, system.beyond, support)
    if fit.kind == "states":
        steps = steps_of(log, gamma)
        rows = Rows.of(fit.features, columns(steps.states))
        rhos = None
        if target is not None:
            own = target if target.function is not None else as_target(log.policy, log)
            assert log.probabilities is not None
            rhos = (fits_probabilities(own, log) / log.probabilities)[steps.kept]
        return fits.of_states(StateSystem(steps, rows, rhos), fit.features, chosen)
    assert target is not None
    return of_actions(log, fit, target, gamma)


def fits_probabilities(target: Target, log: Log) -> np.ndarray:
    """π of the logged actions."""
    from tlstd.evaluation.policies import of_logged_actions

    return of_logged_actions(target, log, target.n_actions(log))


def of_actions(log: Log, fit: Fit, target: Target, gamma: float) -> Fit:
    """Action values of the whole log."""
    steps = fits.action_steps(log, gamma, target)
    rows = Rows.of(fit.features, columns(steps.states))
    n_actions = target.n_actions(log)
    chances = fits.chances_of(target, steps, rows.size, n_actions)
    assert log.actions is not None
    actions = log.actions[steps.kept].astype(np.int64)
    supports = supports_of(rows, steps, actions, n_actions)
    kept, gaps = supported(supports, rows, steps, chances)
    system = ActionSystem(steps, rows, actions, kept)
    offsets = fits.solved_constants(*fits.constants(steps, actions, kept))
    fits.set_rewards(system, offsets, chances)
    full = ActionSystem(steps, rows, actions, chances)
    chosen = replace(fit.selection, paths={})
    return fits.of_actions(system, fit.features, chosen, target, offsets, kept, chances, gaps, supports, full)


def close(a: Any, b: Any) -> None:
    """To rounding."""
    scale = max(1.0, float(np.abs(b).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(a) / scale, np.asarray(b) / scale, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("how", LOGS)
def test_as_with_the_whole_log_in_one_system(how: str, tmp_path: Path) -> None:
    """Weights, values, contributions, bounds for the settings that were chosen, where episodes end with their files."""
    log, found = answer(how, tmp_path)
    pooled = [fit for fit in (found.case.states, found.case.actions) if fit is not None]
    for fit in pooled:
        only = replace(found, case=replace_fit(found, fit))
        whole = of_whole(log, only)
        assert (fit.system.ids == whole.system.ids).all()
        assert len(fit.weights) == len(whole.weights)
        for own, other in zip(fit.weights, whole.weights, strict=True):
            close(own, other)
        close(fit.offsets, whole.offsets)
        for own, other in zip(fit.held_out(0.3), whole.held_out(0.3), strict=True):
            close(own, other)
        starts = start_sets(log, found.case.question.starts[0], found.case.target)[0]
        for mine, theirs in zip(
            fit.value(fit.query(found.case.sets[0])), whole.value(whole.query(starts)), strict=True
        ):
            assert mine.dimension == theirs.dimension
            close(mine.found.value, theirs.found.value)
            close(mine.found.contributions, theirs.found.contributions)
            close(mine.plain, theirs.plain)
        if how != "columns":  # a table has its rows in the order of the log
            close(fit.regularised(starts), whole.regularised(starts))
        if fit.gaps is not None and whole.gaps is not None:
            assert fit.gaps.rows.size == whole.gaps.rows.size


def replace_fit(found: Report, fit: Fit) -> Any:
    """The case with this fit as its only one."""
    case = found.case
    copy = object.__new__(type(case))
    copy.__dict__.update(case.__dict__)
    copy.states, copy.actions = (fit, None) if fit.kind == "states" else (None, fit)
    return copy


@pytest.mark.parametrize("how", ["logged policy", "ratios", "discrete", "continuous actions"])
def test_episodes_that_go_on_in_the_next_file(how: str, tmp_path: Path) -> None:
    """Their returns are whole, and so are their steps; only the traces of least squares restart at the border."""
    log, found = answer(how, tmp_path, 5, whole=False)
    assert found.log.ids == log.ids
    assert found.n_steps == len(log)
    whole = of_whole(log, found)
    np.testing.assert_array_equal(found.fit.steps.returns, whole.steps.returns)
    np.testing.assert_array_equal(found.fit.steps.rewards, whole.steps.rewards)
    np.testing.assert_array_equal(found.fit.steps.discounts, whole.steps.discounts)
    np.testing.assert_array_equal(found.fit.steps.group, whole.steps.group)
    np.testing.assert_array_equal(found.fit.steps.fold, whole.steps.fold)
    if found.fit.kind != "states":  # λ is 0: there is no trace
        close(found.fit.weights[0], whole.weights[0])
    else:
        value, other = (
            found.fit.value(found.fit.query(found.case.sets[0]))[0],
            whole.value(whole.query(start_sets(log, None, found.case.target)[0]))[0],
        )
        assert abs(value.found.value - other.found.value) < other.found.standard_error


def test_mean_of_returns_is_that_of_one_machine(tmp_path: Path) -> None:
    """Where all episodes end it rests on no weights: the same bits, however files are cut."""
    log = LOG.with_columns(terminated=pl.col("step") == pl.col("step").max().over("episode"))
    one = evaluate(log, gamma=0.9)
    found = ask(in_files(log, tmp_path, 5))
    assert found.rung == "mean of returns"
    assert found.value == one.value
    assert found.interval() == one.interval()
    assert (found.influence().contributions == one.influence().contributions).all()


@pytest.mark.parametrize("how", ["logged policy", "ratios", "ranges", "discrete", "continuous actions", "columns"])
def test_spill(how: str, tmp_path: Path) -> None:
    """The same bits from a disk, and nothing is left there."""
    make, asked = LOGS[how]
    pattern = in_files(make(), tmp_path, 4, whole=True)
    columns: dict[str, Any] = COLUMNS if how == "columns" else {}
    found = ask(pattern, **asked, **columns)
    spilled = ask(pattern, spill=tmp_path / "spilled", **asked, **columns)
    assert numbers(found) == numbers(spilled)
    assert not list((tmp_path / "spilled").iterdir())


@pytest.mark.parametrize("how", LOGS)
def test_everything_that_a_report_does(how: str, tmp_path: Path) -> None:
    """Print, JSON, page, further questions, a saved model."""
    log, found = answer(how, tmp_path)
    write_page(found, tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")
    read = json.loads(found.to_json())
    assert read["value"] == (found.value if np.isfinite(found.value) else None)
    assert str(found)
    states = log.observations[:5]
    if how == "columns":
        return
    found.save(tmp_path / "values")
    policy = found.policy if found.fit.kind != "states" else None
    saved = ValueFunction.load(tmp_path / "values").predict(states, policy=policy)
    if not found.fit.silent:
        close(saved, found.predict(states))
    assert np.isfinite(found.interval(states).value)
    assert found.influence().contributions.size == log.n_episodes
    with pytest.raises(InvalidInputError, match="evaluate the old files and the new ones together"):
        found.model.update(log, policy=policy)


def test_a_stream_over_several_files(tmp_path: Path) -> None:
    """One episode is cut into the blocks of one machine; parameters are of its first steps."""
    log = stream(3_000)
    one = evaluate(log, gamma=0.9)
    found = ask(in_files(log, tmp_path, 6))
    assert found.fit.steps.n_groups == one.fit.steps.n_groups > 5
    assert found.rows[0].values.keys() == one.rows[0].values.keys()
    assert abs(found.value - one.value) < 0.5 * one.interval().standard_error
    assert any("the first 400 of them" in note for note in found.notes)


def test_a_fold_that_the_sample_does_not_have(tmp_path: Path) -> None:
    """It gets the settings of all episodes."""
    users = pl.col("episode").str.slice(1).cast(pl.Int64)
    log = LOG.with_columns(user=pl.when(users < 30).then(pl.lit("a")).otherwise(pl.concat_str(pl.lit("b"), users // 9)))
    pattern = in_files(log, tmp_path, 4)
    columns = {"columns": {"cluster": "user"}}
    for policy in (None, mostly_right):
        found = ask([tmp_path / f"part-{i}.parquet" for i in range(4)], policy=policy, **columns)
        assert np.isfinite(found.value)
    assert pattern


def test_a_file_that_does_not_have_every_action(tmp_path: Path) -> None:
    """A policy may return numbers of actions that a file never has."""
    begins = LOG["episode"].str.slice(1).cast(pl.Int64)
    log = LOG.with_columns(action=pl.when(begins < 40).then(0).otherwise(pl.col("action")))
    found = ask(in_files(log, tmp_path, 4), policy=always_right, returns=(-20.0, 20.0))
    assert {row.name for row in found.rows} >= {"LSTDQ", "KrylovLSTD with ratios"}


def test_several_questions_in_one_reading(tmp_path: Path) -> None:
    """Each has the bits that it has alone, and their difference is that of one log."""
    pattern = in_files(LOG, tmp_path, 4)
    asked = Question(gammas=(0.9, 0.5), policies=(None, mostly_right))
    found = answers_of_files(pattern, question=asked, checkpoint=tmp_path / "rounds")
    every = [(policy, gamma) for policy in (None, mostly_right) for gamma in (0.9, 0.5)]
    for each, (policy, gamma) in zip(found, every, strict=True):
        assert numbers(each) == numbers(ask(pattern, policy=policy, gamma=gamma))
    assert np.isfinite(difference(found[2], found[0]).half_width)
    again = answers_of_files(pattern, question=asked, checkpoint=tmp_path / "rounds")
    assert all("rounds of before" in each.notes[-1] for each in again)
    assert [numbers(each) for each in again] == [numbers(each) for each in found]


def test_policies_of_other_kinds_in_one_reading(tmp_path: Path) -> None:
    """Features of continuous actions are not those of states."""
    pattern = in_files(continuous(LOG), tmp_path, 4)
    found = answers_of_files(pattern, question=Question(gammas=(0.9,), policies=(pushing, None)))
    assert numbers(found[0]) == numbers(ask(pattern, policy=pushing))
    assert numbers(found[1]) == numbers(ask(pattern))


def test_what_is_left_out(tmp_path: Path) -> None:
    """Rows that need all steps in one process are named in a note; gamma 0 beside others is refused."""
    pattern = in_files(LOG, tmp_path, 4)
    found = ask(pattern, compare=True)
    assert not {"LSTD", "TD"} & {row.name for row in found.rows}
    assert any("LSTD, t-LSTD and TD" in note for note in found.notes)
    bare = in_files(LOG.drop("episode", "step", "terminated"), tmp_path, 4)
    assert np.isfinite(ask(bare, gamma=0.0).value)
    with pytest.raises(InvalidParameterError, match="ask for gamma=0 alone"):
        answers_of_files(bare, question=Question(gammas=(0.0, 0.9)))


def test_columns_of_a_policy_over_the_border_of_files(tmp_path: Path) -> None:
    """What it does after the last step of a file is in the next one: refused, with the remedy."""
    with pytest.raises(InvalidInputError, match="Cut the files where episodes end, or pass a function"):
        ask(in_files(with_columns(), tmp_path, 5), **COLUMNS)


def test_leaves_need_one_process(tmp_path: Path) -> None:
    """Which half of the log a state's episode is in, no part knows."""
    pattern = in_files(LOG, tmp_path, 3)
    for policy in (None, mostly_right):
        with pytest.raises(InvalidInputError, match="leaves of trees need one process"):
            ask(pattern, features="leaves", policy=policy)
