"""The steps of a log: against its transitions and against loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.evaluation.plain import dense, dense_rows, random_log
from tlstd import AutoTiles, Log, OneHot, TileCoder
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import steps as module
from tlstd.evaluation.steps import FOLDS, HIDDEN, Rows, backward, forward, hashes, steps_of

GAMMA = 0.9


# --- steps against transitions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_steps_are_the_transitions_of_the_log(seed: int, discrete: bool, distinct: bool) -> None:
    log = random_log(seed, discrete=discrete)
    steps, expected = steps_of(log, GAMMA, distinct=distinct), log.transitions(None, GAMMA)
    lost = log.episodes[1:][~log.terminated[log.episodes[1:] - 1] & ~log.has_final] - 1
    assert lost.size > 0 or seed == 1  # of some cut episodes the next observation is not known
    assert_array_equal(steps.kept, np.setdiff1d(np.arange(len(log)), lost))
    assert_array_equal(steps.rewards, expected.rewards)
    assert_array_equal(steps.discounts, expected.discounts)
    assert_array_equal(steps.states[steps.row_of], log.observations)

    def features(rows: Any) -> FloatArray:
        found: FloatArray = steps.states[rows]
        return np.eye(7)[found] if discrete else found

    goes_on = steps.discounts > 0.0
    assert 0 < goes_on.sum() < len(steps)
    assert_array_equal(features(steps.here), dense(expected.X))
    assert_array_equal(features(steps.after)[goes_on], dense(expected.X_next)[goes_on])
    assert_array_equal(steps.begins, expected.trace_discounts == 0.0)
    assert (len(steps.states) == 7) == (discrete and distinct)


def test_steps_that_cannot_be_used_are_left_out() -> None:
    log = random_log(0)
    known = np.random.default_rng(0).random(len(log)) < 0.7
    steps, every = steps_of(log, GAMMA, known=known), steps_of(log, GAMMA)
    assert_array_equal(steps.kept, every.kept[known[every.kept]])
    assert_array_equal(steps.rewards, log.rewards[steps.kept])


@pytest.mark.parametrize("seed", range(3))
def test_episodes_begin_and_end_where_the_log_says(seed: int) -> None:
    log = replace(random_log(seed, 20), begins=np.random.default_rng(seed).random(20) < 0.7)
    steps = steps_of(log, GAMMA)
    found = list(zip(steps.starts.tolist(), steps.episode_ends.tolist(), strict=True))
    expected = []
    for e in range(log.n_episodes):
        own = [t for t in range(len(steps)) if log.episodes[e] <= steps.kept[t] < log.episodes[e + 1]]
        assert all(steps.episode[t] == e for t in own)
        if log.begins[e] and own and steps.kept[own[0]] == log.episodes[e]:
            expected.append((own[0], own[-1] + 1))
    assert found == expected
    assert 5 < len(found) < 20


# --- recursions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_returns_and_tails_by_loops(seed: int) -> None:
    steps = steps_of(random_log(seed, 20), GAMMA)
    returns, tails = np.zeros(len(steps)), np.zeros(len(steps))
    for t in range(len(steps)):
        weight, at = 1.0, t
        while True:
            returns[t] += weight * steps.rewards[at]
            weight *= steps.discounts[at]
            at += 1
            if at == len(steps) or steps.group[at] != steps.group[at - 1]:
                break
        tails[t] = weight
    assert_allclose(steps.returns, returns, atol=1e-12)
    assert_allclose(steps.tails, tails, atol=1e-12)
    assert (tails > 0.0).any()
    assert (tails == 0.0).any()
    assert_allclose(steps.sums(steps.rewards), [steps.rewards[steps.group == g].sum() for g in range(steps.n_groups)])


numbers = st.floats(-4.0, 4.0)


@given(st.lists(st.tuples(numbers, numbers, st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.7, -0.9])), max_size=40))
def test_recursions_are_loops(rows: list[tuple[float, float, float]]) -> None:
    """Also where a factor of 0 starts anew, and with several columns at once."""
    table = np.array(rows).reshape(-1, 3)
    values, factors = table[:, :2], table[:, 2]
    along, against = np.zeros(values.shape), np.zeros(values.shape)
    carried = np.zeros(2)
    for t in range(len(table)):
        carried = values[t] + factors[t] * (carried if t else 0.0)
        along[t] = carried
    for t in reversed(range(len(table))):
        carried = values[t] + (factors[t] * carried if t < len(table) - 1 else 0.0)
        against[t] = carried
    before = values.copy()
    scale = 1.0 + max(np.abs(along).max(initial=0.0), np.abs(against).max(initial=0.0))
    assert_allclose(forward(values, factors), along, rtol=1e-12, atol=1e-13 * scale)
    assert_allclose(backward(values, factors), against, rtol=1e-12, atol=1e-13 * scale)
    assert_allclose(forward(values[:, 0], factors), along[:, 0], rtol=1e-12, atol=1e-13 * scale)
    assert_allclose(backward(values[:, 1], factors), against[:, 1], rtol=1e-12, atol=1e-13 * scale)
    assert_array_equal(values, before)


# --- folds ------------------------------------------------------------------------------------------------------------


def fold_of(log: Log, gamma: float = GAMMA) -> dict[Any, int]:
    """The one fold of each episode."""
    steps, found = steps_of(log, gamma), {}
    for e in np.unique(steps.episode).tolist():
        (found[log.ids[e]],) = np.unique(steps.fold[steps.episode == e]).tolist()
    return found


@pytest.mark.parametrize("words", [True, False])
def test_an_episode_has_the_same_fold_in_every_log(words: bool) -> None:
    """Whole, whatever the order of the episodes, and with others or without them."""
    names = [f"episode {3 * i}" for i in range(60)] if words else (7 * np.arange(60) - 90).tolist()
    log = random_log(0, 60, names=names)
    folds = fold_of(log)
    assert set(folds.values()) == set(range(FOLDS))
    assert max(np.bincount(list(folds.values()))) < 30
    order = np.random.default_rng(0).permutation(60)
    assert fold_of(log.select(order)) == folds
    some = fold_of(log.select(order[:25]))
    assert some == {name: folds[name] for name in some}
    other = random_log(1, 60, names=names)
    both = folds.keys() & fold_of(other).keys()
    assert len(both) > 40
    assert {name: folds[name] for name in both} == {name: fold_of(other)[name] for name in both}


def test_groups_are_episodes() -> None:
    steps = steps_of(random_log(2, 40), GAMMA)
    assert steps.n_blocks == 0
    assert steps.n_groups == np.unique(steps.episode).size
    for g in range(steps.n_groups):
        assert np.unique(steps.episode[steps.group == g]).size == 1
        assert steps.of_group[g] == steps.fold[steps.group == g][0]


def test_clusters_are_held_out_together() -> None:
    log, rng = random_log(0, 60), np.random.default_rng(0)
    users = np.array([f"user {u}" for u in rng.integers(0, 15, 60)])
    with_users = Log.from_arrays(
        log.observations,
        log.rewards,
        terminated=log.terminated,
        truncated=log.truncated,
        episodes=np.repeat(np.arange(60), np.diff(log.episodes)),
        clusters=np.repeat(users, np.diff(log.episodes)),
    )
    folds, alone = fold_of(with_users), fold_of(log)
    of_user: dict[str, set[int]] = {}
    for episode, fold in folds.items():
        of_user.setdefault(users[episode], set()).add(fold)
    assert all(len(own) == 1 for own in of_user.values())
    assert len(set(folds.values())) > 2
    assert folds != {name: alone[name] for name in folds}
    moved = with_users.select(rng.permutation(60)[:30])  # the numbers of the clusters are others there
    assert fold_of(moved) == {name: folds[name] for name in fold_of(moved)}


def stream(n: int, gamma: float = 0.5, flags: Any = None) -> Log:
    rng = np.random.default_rng(0)
    ends = np.zeros(n, bool) if flags is None else flags
    return Log.from_arrays(rng.integers(0, 5, n), rng.standard_normal(n), terminated=ends, episodes=np.zeros(n, int))


@pytest.mark.parametrize(("n", "gamma"), [(1_000, 0.5), (5_000, 0.9), (400, 0.99)])
def test_a_stream_is_cut_into_blocks(n: int, gamma: float) -> None:
    steps = steps_of(stream(n), gamma)
    sizes = np.bincount(steps.group)
    assert steps.n_blocks == steps.n_groups == sizes.size
    assert 10 <= sizes.size <= 50
    assert sizes.max() - sizes.min() <= 1
    horizon = np.log(HIDDEN) / np.log(gamma)
    assert sizes.max() >= 0.9 * min(5.0 * horizon, (n - 1) / 10)  # whole blocks
    assert_array_equal(np.sort(steps.group), steps.group)
    assert_array_equal(np.diff(steps.of_group) % FOLDS, 1)  # dealt in turn


def test_long_episodes_among_short_ones_are_cut_too() -> None:
    rng = np.random.default_rng(0)
    lengths = np.array([3, 600, 2, 5])
    n = int(lengths.sum())
    ended = np.zeros(n, bool)
    ended[np.cumsum(lengths) - 1] = True
    log = Log.from_arrays(
        rng.integers(0, 5, n), rng.standard_normal(n), terminated=ended, episodes=np.repeat(np.arange(4), lengths)
    )
    steps = steps_of(log, 0.5)
    blocks = np.unique(steps.group[steps.episode == 1])
    assert steps.n_blocks == blocks.size >= 10
    assert steps.n_groups == blocks.size + 3
    for g in range(steps.n_groups):
        assert np.unique(steps.episode[steps.group == g]).size == 1


def test_hashes_do_not_depend_on_the_machine_or_the_company() -> None:
    assert hashes([0, 1, -1]).tolist() == [16294208416658607535, 10451216379200822465, 16490336266968443936]
    assert hashes(["a"]).tolist() == [3900189586820467844]
    assert hashes(["a", "b"])[1] == hashes(["b"])[0]
    assert hashes([5, 1])[1] == hashes([1])[0] == hashes([np.int64(1)])[0]
    assert hashes([1], "salt")[0] != hashes([1])[0]


# --- rows of features -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1_000, 7])
@pytest.mark.parametrize("kind", ["table", "tiles", "columns"])
def test_rows_are_the_encoded_states(kind: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one block or in several, products and parts are those of the whole matrix."""
    monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.default_rng(0)
    states = rng.random((40, 2)) if kind != "table" else rng.integers(0, 9, (40, 1)).astype(float)
    features: Any = {
        "table": OneHot([0], [19]),
        "tiles": TileCoder([0.0, 0.0], [1.0, 1.0], tiles=4, tilings=3),
        "columns": Polynomial(),
    }[kind]
    rows, X = Rows.of(features, states), dense(features.encode_many(states))
    assert len(rows.blocks) == (1 if block > 40 else 6)
    seen = np.flatnonzero(X.any(axis=0)) if kind != "columns" else np.arange(X.shape[1])
    assert_array_equal(rows.ids, seen)
    assert (rows.size, rows.n_features) == (40, X.shape[1])
    assert_array_equal(dense_rows(rows), X[:, seen])
    V, U = rng.standard_normal((seen.size, 3)), rng.standard_normal((40, 3))
    assert_allclose(rows.times(V), X[:, seen] @ V, atol=1e-12)
    assert_allclose(rows.back(U), X[:, seen].T @ U, atol=1e-12)
    some = rng.integers(0, 40, 25)
    assert_array_equal(dense(rows.take(some)), X[some][:, seen])
    assert rows.square == pytest.approx((X**2).sum() / 40)
    other = np.unique(rng.integers(0, X.shape[1], 12))
    expected = X.copy()
    expected[:, np.setdiff1d(np.arange(X.shape[1]), seen)] = 0.0
    assert_array_equal(dense_rows(rows.over(other)), expected[:, other])
    assert rows.over(rows.ids) is rows


class Polynomial:
    """1, x, y and xy: a dense map."""

    n_features = 4

    def encode(self, state: Any) -> FloatArray:
        return np.array([1.0, state[0], state[1], state[0] * state[1]])

    def encode_many(self, states: Any) -> FloatArray:
        return np.array([self.encode(state) for state in np.asarray(states)])


def test_more_features_than_flags_are_kept_for() -> None:
    """Beyond 2²⁴ features those that occur are found by sorting."""
    places = np.array([[3.0], [30_000_000.0], [5.0], [3.0]])
    rows = Rows.of(OneHot([0], [1 << 25]), places)
    assert_array_equal(rows.ids, [3, 5, 30_000_000])
    assert_array_equal(dense_rows(rows), np.eye(3)[[0, 2, 1, 0]])


def test_numbers_that_are_not_one_are_kept() -> None:
    rows = Rows.of(AutoTiles.fit(np.linspace(0, 1, 50)[:, None]), np.linspace(0, 1, 50)[:, None])
    assert isinstance(rows.blocks[0], sp.csr_array)
    scaled = Rows([2.0 * rows.blocks[0]], rows.ids, rows.n_features)
    assert scaled.square == pytest.approx(4.0 * rows.square)
