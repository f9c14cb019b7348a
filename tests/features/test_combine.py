from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import TransitionBuilder, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features import FEATURE_MAPS, RBF, Concatenate, Fourier, StateAction, TileCoder

LOW, HIGH = np.array([0.0, -1.0]), np.array([1.0, 2.0])
TILES = TileCoder(LOW, HIGH, tiles=(2, 3), tilings=2, bias=True)
BUMPS = RBF(LOW, HIGH, grid=(3, 2), width=0.4)
WAVES = Fourier(LOW, HIGH, order=2)
STATES = np.random.default_rng(0).uniform(LOW - 0.1, HIGH + 0.1, size=(25, 2))


def dense(X: Any) -> FloatArray:
    array: FloatArray = X.toarray() if sp.issparse(X) else X
    return array


class TestConcatenate:
    def test_dense_maps_by_hand(self) -> None:
        """RBF centres 0, 1 with width 1 at 1: exp(−1), 1. Fourier at 1: 1, −1."""
        both = Concatenate([RBF([0.0], [1.0], grid=2, width=1.0), Fourier([0.0], [1.0], order=1)])
        assert both.n_features == 4
        x = both.encode([1.0])
        assert isinstance(x, np.ndarray)
        assert_allclose(x, [np.exp(-1.0), 1.0, 1.0, -1.0], rtol=1e-15)

    def test_dense_maps_are_stacked(self) -> None:
        X = Concatenate([BUMPS, WAVES]).encode_many(STATES)
        assert isinstance(X, np.ndarray)
        assert X.flags.c_contiguous
        assert_array_equal(X, np.hstack([BUMPS.encode_many(STATES), WAVES.encode_many(STATES)]))

    def test_one_sparse_map_makes_it_sparse(self) -> None:
        features = Concatenate([BUMPS, TILES, WAVES])
        X = features.encode_many(STATES)
        assert isinstance(X, sp.csr_array)
        assert X.has_canonical_format
        tiles = TILES.encode_many(STATES).toarray()
        expected = np.hstack([BUMPS.encode_many(STATES), tiles, WAVES.encode_many(STATES)])
        assert_array_equal(X.toarray(), expected)
        x = features.encode(STATES[3])
        assert isinstance(x, SparseVector)
        assert_allclose(x.toarray(), expected[3], rtol=1e-14, atol=1e-15)

    def test_columns(self) -> None:
        """Each map sees its own columns, in the order that is stated; the whole state if none is."""
        position, velocity = Fourier([0.0], [1.0], order=2), RBF([-1.0], [2.0], grid=3, width=0.3)
        swapped = TileCoder(LOW[::-1], HIGH[::-1], tiles=(3, 2), tilings=2)
        features = Concatenate([(position, [0]), (velocity, np.array([1])), (swapped, (1, 0)), (TILES, range(2))])  # type: ignore[list-item]
        parts: list[Any] = [
            position.encode_many(STATES[:, :1]),
            velocity.encode_many(STATES[:, 1:]),
            swapped.encode_many(STATES[:, ::-1]).toarray(),
            TILES.encode_many(STATES).toarray(),
        ]
        assert_array_equal(dense(features.encode_many(STATES)), np.hstack(parts))
        wider = np.column_stack([STATES, np.full(25, np.nan)])  # a column that nobody sees
        assert_array_equal(dense(features.encode_many(wider)), np.hstack(parts))

    def test_nested(self) -> None:
        flat, nested = Concatenate([TILES, BUMPS, WAVES]), Concatenate([TILES, Concatenate([BUMPS, WAVES])])
        assert_array_equal(dense(nested.encode_many(STATES)), dense(flat.encode_many(STATES)))

    def test_more_features_than_memory(self) -> None:
        features = Concatenate([TileCoder(LOW, HIGH, tiles=2**30, tilings=2), TILES])
        assert features.n_features == 2**61 + 13
        x = features.encode(HIGH)
        assert isinstance(x, SparseVector)
        assert_array_equal(x.indices, [2**60 - 1, 2**61 - 1, *(TILES.encode(HIGH).indices + 2**61)])
        X: Any = features.encode_many(HIGH[None])
        assert_array_equal(X.indices, x.indices)

    @pytest.mark.parametrize(
        ("maps", "message"),
        [
            ([], "maps is empty: pass at least one"),
            ([TILES, "tiles"], "'tiles' has no n_features: pass a feature map"),
            ([(TILES, [0, 1], 3)], "a tuple of 3: pass a map, or a pair"),
            ([(TILES, [])], r"columns are \[\]: pass a sequence of integers >= 0"),
            ([(TILES, [0, -1])], r"columns are \[0, -1\]"),
            ([(TILES, [0.0, 1.0])], r"columns are \[0\.0, 1\.0\]"),
            ([(TILES, [True, False])], r"columns are \[True, False\]"),
            ([(TILES, 1)], "columns are 1"),
            ([TileCoder(LOW, HIGH, tiles=2**31, tilings=1)] * 2, "together make 9223372036854775808 features, more"),
        ],
    )
    def test_bad_parameters(self, maps: Any, message: str) -> None:
        with pytest.raises(InvalidParameterError, match=message):
            Concatenate(maps)

    def test_bad_states(self) -> None:
        features = Concatenate([(Fourier([0.0], [1.0], order=1), [2])])
        with pytest.raises(InvalidInputError, match=r"states have shape \(25, 2\), but a map sees column 2"):
            features.encode_many(STATES)
        with pytest.raises(InvalidInputError, match=r"the state has shape \(25, 2\): pass \(D,\), or use encode_many"):
            features.encode(STATES)


class TestStateAction:
    def test_by_hand(self) -> None:
        """Two tilings of three tiles make blocks of 6; at 0.4 tiles 0 and 4 are active, at 0.9 tiles 1 and 5."""
        q = StateAction(TileCoder([0.0], [1.0], tiles=3, tilings=2), n_actions=3)
        assert q.n_features == 18
        assert_array_equal(q.encode([0.4], 0).indices, [0, 4])
        assert_array_equal(q.encode([0.4], 2).indices, [12, 16])
        X = q.encode_many([[0.4], [0.9], [0.4]], [2, 1, 0])
        assert_array_equal(X.indices, [12, 16, 7, 11, 0, 4])
        assert_array_equal(X.indptr, [0, 2, 4, 6])

    @pytest.mark.parametrize("name", FEATURE_MAPS)
    def test_blocks_of_any_map(self, name: str) -> None:
        features = FEATURE_MAPS[name](LOW, HIGH)
        actions = np.random.default_rng(1).integers(0, 4, size=25)
        q = StateAction(features, 4)
        X = q.encode_many(STATES, actions)
        assert isinstance(X, sp.csr_array)
        assert X.has_canonical_format
        states = features.encode_many(STATES)
        expected = np.zeros((25, 4, features.n_features))
        expected[np.arange(25), actions] = states.toarray() if sp.issparse(states) else states
        assert_array_equal(X.toarray(), expected.reshape(25, -1))
        for row, state, action in zip(X.toarray(), STATES, actions, strict=True):
            x = q.encode(state, action)
            assert_allclose(x.toarray(), row, rtol=1e-14, atol=1e-15)
        assert q.encode_many(STATES[:0], []).shape == (0, 4 * features.n_features)

    def test_more_features_than_memory(self) -> None:
        q = StateAction(TileCoder(LOW, HIGH, tiles=2**29, tilings=1), 31)
        assert_array_equal(q.encode_many(HIGH[None], [30]).indices, [31 * 2**58 - 1])
        assert_array_equal(q.encode(HIGH, 30).indices, [31 * 2**58 - 1])

    @pytest.mark.parametrize(
        ("features", "n_actions", "message"),
        [
            (TILES, 0, "n_actions is 0: it must be an integer >= 1"),
            (TILES, 2.0, r"n_actions is 2\.0"),
            (TILES, True, "n_actions is True"),
            (TILES, 2**62, "n_actions=4611686018427387904 make .* features, more than 64-bit"),
            (None, 2, "None has no n_features: pass a feature map"),
        ],
    )
    def test_bad_parameters(self, features: Any, n_actions: Any, message: str) -> None:
        with pytest.raises(InvalidParameterError, match=message):
            StateAction(features, n_actions)

    def test_bad_actions(self) -> None:
        q = StateAction(TILES, 3)
        for action in (-1, 3, 2**64 - 1):
            with pytest.raises(InvalidInputError, match=f"actions contain {action}: they lie in 0, …, 2"):
                q.encode(STATES[0], action)
        with pytest.raises(InvalidInputError, match="actions are of type float64: pass integers from 0 to 2"):
            q.encode_many(STATES, np.ones(25))
        with pytest.raises(InvalidInputError, match="actions are of type bool"):
            q.encode(STATES[0], True)
        with pytest.raises(InvalidInputError, match=r"actions have shape \(24,\): pass one for each of 25 states"):
            q.encode_many(STATES, np.ones(24, dtype=int))
        with pytest.raises(InvalidInputError, match="state 0 is"):
            q.encode([np.nan, 0.0], 1)


class TestActionValues:
    """Three states on a line; action 1 steps right, 0 left; leaving on the right pays 1 and ends. γ = ½.

    Of the policy "right with probability p", q = r + γ P v and v(s) = p q(s, 1) + (1 − p) q(s, 0).
    """

    GAMMA = 0.5
    PAIRS = tuple((s, a) for s in range(3) for a in range(2))

    def step(self, state: int, action: int) -> tuple[float, int, bool]:
        if action == 1 and state == 2:
            return 1.0, 2, True
        return 0.0, max(state - 1, 0) if action == 0 else state + 1, False

    def closed_form(self, p: float) -> FloatArray:
        """q (3, 2) from the 6 linear equations."""
        system, rewards = np.eye(6), np.zeros(6)
        for i, (s, a) in enumerate(self.PAIRS):
            rewards[i], after, terminated = self.step(s, a)
            if not terminated:
                system[i, [2 * after, 2 * after + 1]] -= self.GAMMA * np.array([1.0 - p, p])
        q: FloatArray = np.linalg.solve(system, rewards).reshape(3, 2).astype(np.float64)
        return q

    def test_always_right_by_hand(self) -> None:
        assert_allclose(self.closed_form(1.0), [[0.125, 0.25], [0.125, 0.5], [0.25, 1.0]], rtol=1e-15)

    def test_off_policy_from_a_random_walk(self) -> None:
        """Random actions are taken; the value of always going right is learnt, one step at a time."""
        q = StateAction(TileCoder([0.0], [2.0], tiles=3, tilings=1), n_actions=2)  # one tile per state
        model = LSTD(q.n_features, lambda_=0.0, rcond=1e-12)
        rng, build, state = np.random.default_rng(0), TransitionBuilder(self.GAMMA), 0
        for _ in range(200):
            action = int(rng.integers(2))
            reward, after, terminated = self.step(state, action)
            build.reset(q.encode([state], action))
            model.update(build.step(reward, q.encode([after], 1), terminated=terminated))
            state = 0 if terminated else after
        states, actions = np.repeat(np.arange(3), 2)[:, None], np.tile([0, 1], 3)
        values = model.predict(q.encode_many(states, actions))
        assert_allclose(values.reshape(3, 2), [[0.125, 0.25], [0.125, 0.5], [0.25, 1.0]], rtol=1e-10)
        assert_allclose(model.predict(q.encode([1], 1)), 0.5, rtol=1e-10)

    @pytest.mark.parametrize(
        "features", [Fourier([0.0], [2.0], order=2), TileCoder([0.0], [2.0], tiles=3, tilings=1, hash_size=1000)]
    )
    def test_a_random_policy_in_expectation(self, features: Any) -> None:
        """Every (s, a, s', a'), weighted by its probability: LSTD is then exact, with dense maps of full rank too."""
        p = 0.7
        q = StateAction(features, n_actions=2)
        rows = [(s, a, *self.step(s, a), b) for s, a in self.PAIRS for b in range(2)]
        s, a, reward, after, terminated, b = (np.array(column) for column in zip(*rows, strict=True))
        steps = Transitions(
            q.encode_many(s[:, None], a),
            reward,
            q.encode_many(after[:, None], b),
            discounts=np.where(terminated, 0.0, self.GAMMA),
            trace_discounts=np.zeros(len(rows)),
            rhos=np.where(b == 1, p, 1.0 - p),
        )
        model = LSTD(q.n_features, lambda_=0.0, rcond=1e-12)
        model.update_many(steps)
        pairs = np.array(self.PAIRS)
        values = model.predict(q.encode_many(pairs[:, :1], pairs[:, 1])).reshape(3, 2)
        assert_allclose(values, self.closed_form(p), rtol=1e-10)
