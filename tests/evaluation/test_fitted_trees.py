"""Values by trees that are fitted to r + γ v(s'): the solution where trees can hold it, and each tree as defined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd import Leaves
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation import fitted_trees
from tlstd.features.leaves import Grower


def steps(n: int, seed: int = 0) -> tuple[Any, ...]:
    """States, rewards, next states and discounts of a noisy walk on five places, with a column that does not matter."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 5, n)
    after = (place + rng.integers(0, 3, n)) % 6
    states, following = (np.column_stack([p, rng.standard_normal(n)]) for p in (place, after))
    return states, place + rng.standard_normal(n), following, np.where(after == 5, 0.0, 0.9)


def test_the_solution_of_a_table() -> None:
    """Of the transitions seen, counted: v = r + γPv."""
    states, rewards, following, discounts = steps(400)
    place, after = states[:, 0].astype(int), following[:, 0].astype(int)
    P = np.zeros((5, 6))
    np.add.at(P, (place, after), discounts)
    counts = np.bincount(place)
    v = np.linalg.solve(np.eye(5) - P[:, :5] / counts[:, None], np.bincount(place, rewards) / counts)
    options: dict[str, Any] = {"n_trees": 600, "ridge": 1e-6}
    for start in (None, 10.0 * rewards):
        trees = fitted_trees(states[:, :1], rewards, following[:, :1], discounts, start=start, **options)
        assert_allclose(trees.values(np.arange(5.0)[:, None]), v, rtol=1e-6)


def test_action_values_of_a_table() -> None:
    """q = r + γPπq of the transitions seen, with action and state side by side; A next states, one per action."""
    rng = np.random.default_rng(3)
    n, n_actions = 600, 3
    place, action = rng.integers(0, 4, n), rng.integers(0, n_actions, n)
    after, rewards = (place + action + rng.integers(0, 2, n)) % 4, place - action + rng.standard_normal(n)
    discounts, policy = np.where(rng.random(n) < 0.05, 0.0, 0.95), rng.dirichlet(np.ones(n_actions), 4)
    pair = n_actions * place + action
    behind = np.zeros((4 * n_actions, 4 * n_actions))
    for a in range(n_actions):
        np.add.at(behind, (pair, n_actions * after + a), discounts * policy[after, a])
    counts = np.bincount(pair)
    q = np.linalg.solve(np.eye(counts.size) - behind / counts[:, None], np.bincount(pair, rewards) / counts)

    def beside(places: Any, actions: Any) -> Any:
        return np.column_stack([places, np.eye(n_actions)[actions]])

    following = np.stack([beside(after, np.full(n, a)) for a in range(n_actions)])
    following[:, discounts == 0.0] = np.nan
    trees = fitted_trees(
        beside(place, action), rewards, following, discounts,
        next_weights=policy[after].T, n_trees=3_000, depth=4, ridge=1e-6,
    )  # fmt: skip
    every = np.divmod(np.arange(counts.size), n_actions)
    assert_allclose(trees.values(beside(*every)), q, rtol=1e-6)


def test_one_next_state_of_weight_one() -> None:
    states, rewards, following, discounts = steps(200)
    trees = fitted_trees(states, rewards, following[None], discounts, next_weights=np.ones((1, 200)), n_trees=20)
    assert trees == fitted_trees(states, rewards, following, discounts, n_trees=20)


def test_an_error_of_the_same_size_everywhere_is_corrected() -> None:
    """No question of a tree reduces it: a walk around a circle that pays 1 everywhere, and guesses of 0."""
    place = np.arange(8.0)[:, None]
    trees = fitted_trees(place, np.ones(8), (place + 1.0) % 8.0, np.full(8, 0.99), start=np.zeros(8))
    assert_allclose(trees.values(place), 100.0)


def test_every_tree_is_grown_on_what_is_left_of_the_targets() -> None:
    states, rewards, following, discounts = steps(200)
    returns = 3.0 * rewards
    trees = fitted_trees(states, rewards, following, discounts, start=returns, n_start=3, n_trees=4)
    grower = Grower(states, None, depth=3, ridge=10.0, n_bins=32)
    for k in range(8):
        some = trees.columns[:k], trees.thresholds[:k], trees.leaf_values[:k]
        without = Leaves(*some, n_columns=2, base=0.0)
        errors = rewards + discounts * without.values(following) - without.values(states)
        base = returns.mean() if k < 3 else errors.sum() / (1.0 - discounts).sum()
        if k == 7:
            assert_allclose(trees.base, base)
            break
        before = Leaves(*some, n_columns=2, base=base)
        targets = returns if k < 3 else rewards + discounts * before.values(following)
        tree = grower.tree(targets - before.values(states))
        assert tree is not None
        assert_array_equal(tree.columns, trees.columns[k])
        assert_array_equal(tree.thresholds, trees.thresholds[k])
        assert_allclose(0.2 * tree.means, trees.leaf_values[k], rtol=1e-9)


def test_without_later_trees_they_are_those_of_the_returns() -> None:
    states, rewards, following, discounts = steps(300)
    trees = fitted_trees(states, rewards, following, discounts, start=rewards, n_start=12, n_trees=0, depth=2)
    assert trees == Leaves.fit(states, rewards, n_trees=12, depth=2)


def test_the_order_of_steps_and_units_do_not_matter() -> None:
    every = states, rewards, following, discounts = steps(300)
    order = np.random.default_rng(1).permutation(300)
    trees = fitted_trees(*every, n_trees=30)
    assert trees == fitted_trees(*(column[order] for column in every), n_trees=30)
    for unit in (2.0**-800, 2.0**200):
        other = fitted_trees(states, unit * rewards, following, discounts, n_trees=30)
        assert_array_equal(other.leaf_values, unit * trees.leaf_values)
        assert_array_equal(other.thresholds, trees.thresholds)


def test_the_constant_before_any_tree() -> None:
    states, rewards, following, discounts = steps(50)
    base = fitted_trees(states, rewards, following, discounts, n_trees=0).base
    assert_allclose((rewards + discounts * base - base).mean(), 0.0, atol=1e-12)
    assert fitted_trees(states, rewards, following, discounts, start=rewards, n_start=0, n_trees=0).base == (
        pytest.approx(rewards.mean())
    )
    assert fitted_trees(states, rewards, following, np.ones(50), n_trees=0).base == 0.0  # no number solves it


def test_after_an_end_there_is_no_next_state() -> None:
    states, rewards, following, discounts = steps(100)
    trees = fitted_trees(states, rewards, following, discounts, n_trees=5)
    following[discounts == 0.0] = np.nan
    assert fitted_trees(states, rewards, following, discounts, n_trees=5) == trees
    ended = fitted_trees(states, rewards, np.full((100, 2), np.nan), np.zeros(100), n_trees=5)
    assert_allclose(ended.values(states), Leaves.fit(states, rewards, n_trees=5, depth=3).values(states), atol=0.2)
    following[np.flatnonzero(discounts)[0]] = np.nan
    with pytest.raises(InvalidInputError, match="not a number"):
        fitted_trees(states, rewards, following, discounts)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rewards": [1.0]}, "rewards has 1 numbers"),
        ({"discounts": [0.5, 1.5]}, r"discounts\[1\] is 1.5"),
        ({"discounts": [0.5] * 3}, "discounts has 3"),
        ({"start": [np.nan, 0.0]}, "start contains nan"),
        ({"next_states": [[0.0]]}, "next_states have shape"),
        ({"next_states": [[0.0, 1.0]] * 2}, "states have shape"),
        ({"next_weights": [[1.0, 1.0]]}, "next_weights have shape"),
        ({"next_weights": [[1.0]], "next_states": [[[1.0], [1.0]]]}, "next_weights have shape"),
        ({"next_weights": [[1.0, -1.0]], "next_states": [[[1.0], [1.0]]]}, "at least 0"),
    ],
)
def test_steps_that_cannot_be_used(changed: Any, message: str) -> None:
    good: Any = {
        "states": [[0.0], [1.0]], "rewards": [0.0, 1.0], "next_states": [[1.0], [1.0]], "discounts": [0.5, 0.0]
    }  # fmt: skip
    with pytest.raises(InvalidInputError, match=message):
        fitted_trees(**good | changed)


@pytest.mark.parametrize("options", [{"n_trees": -1}, {"n_start": 1.5}, {"rate": 0.0}, {"depth": 0}], ids=str)
def test_options_that_cannot_be_used(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=f"{next(iter(options))} is"):
        fitted_trees(*steps(10), start=np.zeros(10), **options)
