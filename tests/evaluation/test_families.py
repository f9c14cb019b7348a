"""The choice among families of features: against plain recomputations, and on values whose shape is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tlstd import AutoTiles, Log, evaluate
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation import families
from tlstd.evaluation.families import Choice, Family, Offer, Tried, of_states
from tlstd.evaluation.fits import Actions, fit_actions
from tlstd.evaluation.policies import Target
from tlstd.evaluation.selection import (
    Errors,
    by_returns,
    common_targets,
    errors_of_residuals,
    held_out_values,
    thinned_steps,
)
from tlstd.evaluation.steps import Rows, columns, steps_of
from tlstd.evaluation.systems import StateSystem
from tlstd.evaluation.value_function import ValueFunction
from tlstd.features import Columns, Concatenate, Polynomial


def drifting(seed: int, reward: Any, n: int = 120, D: int = 3, noise: float = 0.3) -> Log:
    """Columns that shrink towards 0 and are kicked; episodes end with probability 0.1."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(n):
        x, ended = rng.standard_normal(D), False
        while not ended:
            ended = bool(rng.random() < 0.1)
            rows.append((episode, x, float(reward(x)) + noise * rng.standard_normal(), ended))
            x = 0.8 * x + 0.5 * rng.standard_normal(D)
    episodes, states, rewards, ends = zip(*rows, strict=True)
    return Log.from_arrays(np.array(states), np.array(rewards), terminated=np.array(ends), episodes=np.array(episodes))


def bowl(x: FloatArray) -> float:
    return -float(x @ x)


def corner(x: FloatArray) -> float:
    return 5.0 * float(x[0] > 0.3) * float(x[1] > 0.0)


@pytest.mark.parametrize(
    ("reward", "wanted"), [(bowl, {"quadratic", "smooth", "mixed"}), (corner, {"tiles", "mixed", "smooth"})]
)
def test_the_family_that_fits_the_values_is_chosen(reward: Any, wanted: set[str]) -> None:
    for seed in range(4):
        log = drifting(seed, reward)
        found = evaluate(log, gamma=0.9)
        choice = found.fit.choice
        assert choice is not None
        assert choice.family.name in wanted
        assert [each.error for each in choice.tried] == sorted(each.error for each in choice.tried)
        assert choice.tried[0].behind == 0.0
        assert any(choice.note in note for note in found.notes)


def test_values_of_a_quadratic_cost() -> None:
    """V(x) = -(p‖x‖² + c) in closed form: "auto" is at least twice as near to it as tiles."""
    kept, D, noise = 0.9 * 0.9, 3, 0.5
    p = 1.0 / (1.0 - kept * 0.64)
    c = kept * p * D * noise**2 / (1.0 - kept)
    rng = np.random.default_rng(9)
    states = rng.standard_normal((300, D))
    truth = -(p * (states**2).sum(axis=1) + c)
    errors = []
    for features in ("auto", "tiles"):
        own = [evaluate(drifting(s, bowl, 300), gamma=0.9, features=features).predict(states) - truth for s in range(5)]
        errors.append(float(np.sqrt(np.mean(np.square(own)))))
    assert errors[0] < 0.5 * errors[1]


def test_one_family_may_be_asked_for() -> None:
    log = drifting(0, bowl, n=60)
    kinds = {
        "tiles": "AutoTiles",
        "columns": "Columns",
        "linear": "Polynomial",
        "mixed": "Concatenate",
        "quadratic": "Polynomial",
        "smooth": "Concatenate",
    }
    for name, kind in kinds.items():
        found = evaluate(log, gamma=0.9, features=name)  # type: ignore[arg-type]
        assert type(found.features).__name__ == kind
        choice = found.fit.choice
        assert choice is not None
        assert {each.family.name for each in choice.tried} <= {name}
    assert evaluate(log, gamma=0.9, features=Columns(3)).features == Columns(3)


def test_errors_are_those_of_models_without_the_fold() -> None:
    """Fold by fold against solutions of dense systems: the dimension is so large that all of them are exact."""
    log = drifting(1, bowl, n=80, D=2)
    steps = steps_of(log, 0.9)
    system = StateSystem(steps, Rows.of(Columns(2), columns(steps.states)))
    targets = common_targets([system, system], 0.0)
    assert targets is not None
    errors = [by_returns(system, 0.0, targets).errors for _ in range(2)]
    X = Columns(2).encode_many(columns(steps.states))
    now, after = X[steps.here], X[steps.after]
    expected = np.zeros(steps.n_groups)
    for fold in steps.folds:
        held = steps.fold == fold
        d = now - steps.discounts[:, None] * after
        w = np.linalg.lstsq(now[~held].T @ d[~held], now[~held].T @ steps.rewards[~held], rcond=None)[0]
        expected += steps.sums(np.where(held, (steps.returns - now @ w) ** 2, 0.0))
    assert errors[0].mean == pytest.approx(expected.sum() / len(steps), rel=0.05)  # the chosen dimension may be less
    assert errors[0].over(errors[1]) == (0.0, 0.0)


def test_standard_error_of_a_difference() -> None:
    """Against a jackknife over groups."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 20, 50).astype(float)
    a, b = (Errors(rng.exponential(size=50) * sizes, sizes, 1.0) for _ in range(2))
    more, unsure = a.over(b)
    assert more == pytest.approx(a.mean - b.mean)
    left = []
    for g in range(50):
        keep = np.arange(50) != g
        left.append((a.sums[keep].sum() - b.sums[keep].sum()) / sizes[keep].sum())
    jackknife = np.sqrt(49 / 50 * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert unsure == pytest.approx(jackknife, rel=0.05)


def two_actions(seed: int, n: int = 150) -> Log:
    """One of two actions pushes the first column up or down; the reward is a bowl."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(n):
        x, ended = rng.standard_normal(2), False
        while not ended:
            ended, action = bool(rng.random() < 0.1), int(rng.random() < 0.5)
            rows.append((episode, x, action, -float(x @ x) + 0.3 * rng.standard_normal(), ended))
            x = 0.7 * x + np.array([0.6 * (2 * action - 1), 0.0]) + 0.3 * rng.standard_normal(2)
    episodes, states, actions, rewards, ends = zip(*rows, strict=True)
    return Log.from_arrays(
        np.array(states), np.array(rewards), actions=np.array(actions), terminated=np.array(ends),
        episodes=np.array(episodes),
    )  # fmt: skip


def back(states: FloatArray) -> FloatArray:
    up = 1.0 / (1.0 + np.exp(4.0 * states[:, 0]))
    return np.column_stack([1.0 - up, up])


def test_action_values_choose_by_the_families_own_values() -> None:
    """A family that cannot have the values is behind one that can; against gᵀC⁻¹g by hand."""
    log = two_actions(0)
    target = Target(function=back)
    cells = families.families("tiles", log.states, len(log)).cells
    steps = steps_of(log, 0.9)
    asked = Actions.of(steps, Rows.of(cells, columns(steps.states)), target)
    maps = [Polynomial.fit(log.states), Polynomial.fit(log.states, degree=1)]
    systems = [asked.system(Rows.of(each, columns(steps.states))) for each in maps]
    errors = errors_of_residuals(steps, [held_out_values(each) for each in systems])
    more, unsure = errors[1].over(errors[0])
    assert more > 2.0 * unsure > 0.0
    fit = fit_actions(log, Offer((Family("linear", "", maps[1]), Family("quadratic", "", maps[0]))), 0.9, target, cells)
    assert fit.choice is not None
    assert fit.choice.family.name == "quadratic"
    assert fit.features == maps[0]


def test_samples_of_long_episodes() -> None:
    """Few long groups: parts of all of them; many short ones: whole ones, evenly spaced over the folds."""
    rng = np.random.default_rng(0)
    log = Log.from_arrays(rng.standard_normal((50_000, 1)), rng.standard_normal(50_000))
    steps = steps_of(log, 0.9)
    sample, kept, used = thinned_steps(steps, 3_000)
    assert 2_500 < len(sample) < 6_000
    assert sample.n_groups == steps.n_groups
    assert_allclose(sample.rewards, steps.rewards[kept])
    assert_allclose(columns(sample.states)[sample.here], columns(steps.states)[steps.here[kept]])
    assert_allclose(columns(sample.states), columns(steps.states)[used])
    short = drifting(0, bowl, n=3_000)
    steps = steps_of(short, 0.9)
    sample, kept, _ = thinned_steps(steps, 3_000)
    assert 2_000 < len(sample) < 5_000
    assert set(np.unique(sample.episode)) == set(np.unique(steps.episode[kept]))
    assert np.bincount(steps.episode[kept]).max() == max(
        np.bincount(steps.episode)[each] for each in np.unique(steps.episode[kept])
    )
    assert thinned_steps(steps, 10**6)[0] is steps


def test_too_little_to_hold_out() -> None:
    """Nothing is compared: the first family is taken."""
    log = drifting(0, bowl, n=3)
    steps = steps_of(log, 0.9)
    offered = families.families("auto", log.states, len(log))
    choice = of_states(offered, steps, None)
    assert choice.family is offered.families[0]
    assert not choice.tried
    assert not choice.note


def test_families_of_many_columns_and_rows() -> None:
    """Dense features take part only where they fit into memory; many columns have no products."""
    few, many = (np.random.default_rng(0).standard_normal((100, D)) for D in (2, 70))

    def names(states: FloatArray, n: int) -> set[str]:
        return {each.name for each in families.families("auto", states, n).families}

    assert names(few, 200) == {"tiles", "mixed", "quadratic", "smooth"}
    assert names(few, 10**6) == {"tiles", "mixed", "quadratic"}
    assert names(few, 10**7) == {"tiles", "mixed"}
    assert names(many, 100) == {"tiles", "mixed", "linear", "smooth"}


def test_leaves_are_grown_on_one_half_for_the_other() -> None:
    """Rewards of an episode have no part in its features; a new state has the mean of both halves' values."""
    log = drifting(0, corner, 200)
    steps = steps_of(log, 0.9)
    half = families.halves(steps)
    rewards = steps.returns
    family = families.leaves(steps, rewards)
    assert family is not None
    assert isinstance(family.features, Concatenate)
    rows = family.rows(steps)
    dense = np.zeros((len(steps.states), family.features.n_features))
    dense[:, rows.ids] = rows.blocks[0].toarray()
    first, second = (each for each, _ in family.features.maps)
    states, n = columns(steps.states), first.n_features
    for k, own, others in ((0, dense[:, n:], second), (1, dense[:, :n], first)):
        inside = half == k
        assert_allclose(own[inside], 2.0 * others.encode_many(states[inside]).toarray())
        assert not dense[inside][:, (slice(None, n), slice(n, None))[k]].any()
    shuffled = rewards.copy()
    of_zero = np.flatnonzero(half[steps.here] == 0)
    shuffled[of_zero] = np.random.default_rng(0).permutation(rewards[of_zero])
    again = families.leaves(steps, shuffled)
    assert again is not None
    assert isinstance(again.features, Concatenate)
    assert again.features.maps[1][0] == second
    assert again.features.maps[0][0] != first
    assert np.unique(half[steps.here] * 10**6 + steps.episode).size == log.n_episodes
    w = np.random.default_rng(1).standard_normal(family.features.n_features)
    new = np.random.default_rng(2).standard_normal((5, 3))
    sides = [2.0 * first.encode_many(new) @ w[:n], 2.0 * second.encode_many(new) @ w[n:]]
    assert_allclose(family.features.encode_many(new) @ w, np.mean(sides, axis=0))


def test_leaves_on_request() -> None:
    log = drifting(0, corner, 200)
    found = evaluate(log, gamma=0.9, features="leaves")
    assert found.fit.choice is not None
    assert found.fit.choice.family.by_half
    assert np.isfinite(found.interval([[0.5, 0.5, 0.0]]).half_width)
    off = evaluate(two_actions(0), gamma=0.9, features="leaves", policy=back)
    assert np.isfinite(off.value)
    assert off.fit.choice is not None
    assert off.fit.choice.family.name == "leaves"
    with pytest.raises(InvalidInputError, match="too few episodes for leaves"):
        evaluate(drifting(0, corner, 5), gamma=0.9, features="leaves")


def test_what_is_saved_of_leaves_predicts_the_same(tmp_path: Path) -> None:
    """The map gives new states both halves' features, so that the model cannot be made from the log once more."""
    found = evaluate(drifting(0, corner, 200), gamma=0.9, features="leaves")
    found.save(tmp_path / "values")
    states = np.random.default_rng(3).standard_normal((20, 3))
    assert_allclose(ValueFunction.load(tmp_path / "values").predict(states), found.predict(states))


@pytest.mark.parametrize("n_streams", [1, 3])
def test_blocks_keep_their_half_in_a_sample(n_streams: int) -> None:
    """So that leaves which were grown on a sample have seen no rewards of the states that they encode."""
    rng, n = np.random.default_rng(0), 60_000
    names = None if n_streams == 1 else np.repeat(np.arange(n_streams), n // n_streams)
    log = Log.from_arrays(rng.standard_normal((n, 2)), rng.standard_normal(n), episodes=names)
    steps = steps_of(log, 0.9)
    half = families.halves(steps)
    for most in families.ROUNDS:
        sample, kept, _ = thinned_steps(steps, most)
        assert (families.halves(sample)[sample.here] == half[steps.here[kept]]).all()
    assert all(np.unique(half[steps.here[steps.group == g]]).size == 1 for g in range(steps.n_groups))
    assert min(np.bincount(half)) > 0.3 * n


@pytest.mark.parametrize("unit", [1e-6, 1e5])
def test_the_unit_of_rewards_does_not_matter(unit: float) -> None:
    """Of action values, whose errors are compared along the families' own values."""
    log = two_actions(0)
    first, again = (
        evaluate(replace(log, rewards=log.rewards * own), gamma=0.9, policy=back).fit.choice for own in (1.0, unit)
    )
    assert first is not None
    assert again is not None
    assert [each.family.label for each in again.tried] == [each.family.label for each in first.tried]
    errors = [each.error / unit**2 for each in again.tried]
    assert_allclose(errors, [each.error for each in first.tried], rtol=1e-4)


def test_families_of_action_values() -> None:
    """Tiles beside quadratic features, linear where there are too many weights; a family that is asked for stays."""
    states = np.random.default_rng(0).standard_normal((300, 20))

    def labels(name: Any, n_actions: int) -> list[str]:
        offer = families.for_actions(families.families(name, states, 300), states, 300, n_actions)
        return [each.label for each in offer.families]

    assert labels("auto", 2) == ["tiles beside quadratic features"]
    assert labels("auto", 10) == ["tiles beside linear features"]
    assert labels("leaves", 2) == ["tiles beside quadratic features"]
    assert len(labels("smooth", 5)) == 3
    assert labels("linear", 5) == ["linear features"]
    both = families.mixed(AutoTiles.fit(states), states, 300)
    rows = both.features.encode_many(states)
    tiles = AutoTiles.fit(states)
    assert (rows[:, : tiles.n_features].sum(axis=1) == tiles.n_active).all()
    assert np.square(rows[:, tiles.n_features :].toarray()).sum(axis=1).mean() == pytest.approx(tiles.n_active, rel=0.1)


def test_what_is_said_of_errors_next_to_nothing() -> None:
    """Not how many percent more another family has."""
    map_ = Columns(1)
    best, other = Family("a", "first features", map_), Family("b", "second features", map_)
    tried = (Tried(best, 1e-31, 0.0, 0.0, 1.0, 9), Tried(other, 1e-8, 1e-8, 1e-9, 1.0, 9))
    assert Choice(best, tried).note.endswith("; second features have more than ten times as much.")
    tried = (Tried(best, 3.0, 0.0, 0.0, 1.0, 9), Tried(other, 6.0, 2.0, 0.5, 2.0**-400, 9))  # of an earlier round
    assert Choice(best, tried).note.endswith("; second features have 50% ± 25% more.")
    assert "0% ± 0% more" in Choice(best, (tried[0]._replace(error=0.0), Tried(other, 0.0, 0.0, 0.0, 1.0, 9))).note
