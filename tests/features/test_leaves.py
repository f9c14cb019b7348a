"""Leaves of boosted trees: against the best of all questions, exact where the target is a tree, rows in any order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd import Leaves
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features.leaves import Grower


def data(n: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Columns with many, few and two values, one constant; targets that depend on two of them."""
    rng = np.random.default_rng(seed)
    few, bits = rng.integers(0, 5, n), (rng.random(n) < 0.1).astype(np.float64)
    seen = np.column_stack([rng.standard_normal(n), few, np.full(n, 3.0), bits, rng.exponential(size=n)])
    return seen, seen[:, 0] ** 2 * (1.0 + bits) + few + 0.5 * rng.standard_normal(n)


def obvious_trees(
    seen: FloatArray, targets: FloatArray, w: FloatArray, n_trees: int, depth: int, rate: float, ridge: float
) -> tuple[FloatArray, list[list[tuple[int, float]]]]:
    """Predictions and questions, where every threshold between two values is tried on every row."""
    w = w / w.mean()
    predicted, questions = np.full(len(seen), np.average(targets, weights=w)), []
    candidates = []
    for i, column in enumerate(seen.T):
        values = np.unique(column)
        candidates += [(i, 0.5 * a + 0.5 * b) for a, b in pairwise(values)]
    for _ in range(n_trees):
        groups, asked = np.zeros(len(seen), dtype=np.int64), []
        error = targets - predicted
        for _ in range(depth):
            scores = []
            for i, threshold in candidates:
                split = 2 * groups + (seen[:, i] > threshold)
                scores.append(
                    sum((w * error)[split == g].sum() ** 2 / (w[split == g].sum() + ridge) for g in np.unique(split))
                )
            i, threshold = candidates[int(np.argmax(np.round(scores, 9)))]
            asked.append((i, threshold))
            groups = 2 * groups + (seen[:, i] > threshold)
        for g in np.unique(groups):
            at = groups == g
            predicted[at] += rate * (w * error)[at].sum() / (w[at].sum() + ridge)
        questions.append(asked)
    return predicted, questions


@pytest.mark.parametrize("weighted", [False, True])
def test_every_question_is_the_best_of_all(weighted: bool) -> None:
    seen, targets = data(60)
    w = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 60) if weighted else None
    trees = Leaves.fit(seen, targets, weights=w, n_trees=6, depth=3, rate=0.3, ridge=2.0, n_bins=256)
    ones = np.ones(60) if w is None else w
    predicted, questions = obvious_trees(seen, targets, ones, 6, 3, 0.3, 2.0)
    found = [list(zip(*each, strict=True)) for each in zip(trees.columns, trees.thresholds, strict=True)]
    assert found == questions
    assert_allclose(trees.values(seen), predicted, rtol=1e-9)


def test_leaves_by_hand() -> None:
    """Two trees of depth 2, and the constant."""
    trees = Leaves(
        [[0, 1], [1, 1]], [[0.5, 2.0], [1.0, 3.0]], [[1, 2, 3, 4], [10, 20, 30, 40]], n_columns=2, base=100.0
    )
    assert (trees.n_features, trees.n_active) == (9, 3)
    states = [[0.5, 2.5], [9.0, 1.0], [np.inf, 3.5], [-np.inf, 2.0]]
    assert trees.indices(states).tolist() == [[1, 4 + 2, 8], [2, 4 + 0, 8], [3, 4 + 3, 8], [0, 4 + 2, 8]]
    assert trees.values(states).tolist() == [132.0, 113.0, 144.0, 131.0]


def test_one_state_is_a_row_of_many() -> None:
    """Compiled, and in NumPy, also on thresholds, at infinity and in other layouts."""
    seen, targets = data(400)
    trees = Leaves.fit(seen, targets)
    states = np.concatenate([seen[:50], np.full((1, 5), np.inf), np.full((1, 5), -np.inf), np.zeros((3, 5))])
    for column, threshold in zip(trees.columns[:3, 0], trees.thresholds[:3, 0], strict=True):
        states[-1 - column % 3, column] = threshold
    index = trees.indices(states)
    for row, state in zip(index, states, strict=True):
        x = trees.encode(state)
        assert_array_equal(x.indices, row, strict=True)
        assert x.values.tolist() == [1.0] * trees.n_active
    assert trees.encode(np.asfortranarray(states)[3]).indices.tolist() == index[3].tolist()
    assert trees.encode(states[3].tolist()).indices.tolist() == index[3].tolist()


def test_a_target_that_is_a_tree_is_found() -> None:
    seen = data(500)[0]
    targets = np.where(seen[:, 1] > 2.5, 10.0, -7.0) + np.where(seen[:, 3] > 0.5, 3.0, 0.0)
    trees = Leaves.fit(seen, targets, n_trees=200, depth=2, ridge=1e-9)
    assert_allclose(trees.values(seen), targets, atol=1e-9)
    assert set(trees.columns.ravel().tolist()) == {1, 3}
    assert len(Leaves.fit(seen, targets, n_trees=200, depth=2, ridge=1e-9, rate=1.0).columns) < 10  # and no more


def test_the_order_of_rows_does_not_matter() -> None:
    seen, targets = data(777)
    order = np.random.default_rng(2).permutation(777)
    w = np.random.default_rng(3).random(777)
    for weights, permuted in ((None, None), (w, w[order])):
        trees = Leaves.fit(seen, targets, weights=weights, n_trees=20)
        assert trees == Leaves.fit(seen[order], targets[order], weights=permuted, n_trees=20)


def test_weights_are_rows() -> None:
    """A weight of 2 is a row that is there twice, and one of 0 is none; a common factor is nothing."""
    seen, targets = data(200)
    times = np.random.default_rng(4).integers(0, 3, 200)
    ridge = 4.0  # in rows of average weight
    mean = times[times > 0].mean()
    options: dict[str, Any] = {"n_trees": 10, "n_bins": 256}
    weighted = Leaves.fit(seen, targets, weights=times, ridge=ridge / mean, **options)
    repeated = Leaves.fit(np.repeat(seen, times, axis=0), np.repeat(targets, times), ridge=ridge, **options)
    assert_array_equal(weighted.columns, repeated.columns)
    assert_array_equal(weighted.thresholds, repeated.thresholds)
    assert_allclose(weighted.leaf_values, repeated.leaf_values, rtol=1e-9)
    assert weighted == Leaves.fit(seen, targets, weights=4.0 * times, ridge=ridge / mean, **options)


def test_units_do_not_matter() -> None:
    seen, targets = data(300)
    trees = Leaves.fit(seen, targets)
    for unit in (2.0**-900, 2.0**300):
        other = Leaves.fit(seen, unit * targets)
        assert_array_equal(other.thresholds, trees.thresholds)
        assert_array_equal(other.leaf_values, unit * trees.leaf_values)


def cuts(column: FloatArray, n_bins: int) -> FloatArray:
    (found,) = Grower(column[:, None], None, depth=1, ridge=1.0, n_bins=n_bins)._cuts
    return found


def test_more_values_than_bins() -> None:
    even = np.random.default_rng(5).permutation(np.linspace(0.0, 1.0, 5_000))
    assert_allclose(cuts(even, 8), np.arange(1, 8) / 8, atol=1e-3)  # equal counts have equal widths
    column = np.concatenate([even, [9.0, 10.0]])  # half of the scale is for the range from 1 to 10
    assert np.diff(np.searchsorted(cuts(column, 8), [-1.0, 1.0, 10.0])).tolist() == [4, 1]
    column[:4_000] = 0.5  # of most rows
    thresholds = cuts(column, 8)
    assert (thresholds < 0.5).any()
    assert (thresholds > 0.5).any()
    assert np.abs(thresholds - 0.5).min() < 0.01  # the value has a bin of its own
    assert np.isfinite(cuts(1e308 * (2.0 * even - 1.0), 8)).all()


def test_thresholds_between_neighbouring_floats() -> None:
    low = 1.0
    high = np.nextafter(low, 2.0)
    trees = Leaves.fit([[low], [high]] * 20, [0.0, 1.0] * 20, n_trees=40, depth=1, ridge=0.1)
    assert_allclose(trees.values([[low], [high]]), [0.0, 1.0], atol=0.01)
    assert Leaves.fit([[-1e308], [1e308]], [0.0, 1.0], n_trees=1, depth=1).thresholds.tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("seen", "targets"),
    [([[1.0, 2.0]] * 9, np.arange(9.0)), (np.eye(9), np.full(9, 0.1)), ([[3.0]], [5.0]), (np.eye(3), [0.0] * 3)],
    ids=["columns are constant", "targets are constant", "one row", "targets are zero"],
)
def test_nothing_to_ask(seen: Any, targets: Any) -> None:
    trees = Leaves.fit(seen, targets)
    assert (trees.n_features, trees.n_active, trees.thresholds.shape) == (1, 1, (0, 3))
    assert trees.values(seen).tolist() == [np.mean(targets)] * len(targets)
    assert trees.encode(seen[0]).indices.tolist() == [0]


def test_a_tree_with_no_further_question_repeats_its_last() -> None:
    trees = Leaves.fit([[0.0], [1.0]] * 50, [0.0, 1.0] * 50, n_trees=1, depth=3)
    assert trees.thresholds.tolist() == [[0.5] * 3]
    assert trees.indices([[0.0], [1.0]]).tolist() == [[0, 8], [7, 8]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"targets": [1.0]}, "targets have shape"),
        ({"targets": [1.0, np.nan]}, "targets contains nan"),
        ({"weights": [1.0]}, "weights have shape"),
        ({"weights": [0.0, 0.0]}, "weights must be at least 0"),
        ({"weights": [-1.0, 2.0]}, "weights must be at least 0"),
        ({"observations": np.zeros((0, 2))}, "at least one"),
        ({"observations": [[1.0], [np.inf]]}, "observation 1 is"),
    ],
)
def test_data_that_cannot_be_used(changed: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Leaves.fit(**{"observations": [[0.0], [1.0]], "targets": [0.0, 1.0]} | changed)


@pytest.mark.parametrize(
    "options",
    [{"n_trees": -1}, {"depth": 0}, {"depth": 17}, {"rate": 0.0}, {"rate": 1.5}, {"ridge": 0.0}, {"n_bins": 1}],
    ids=str,
)
def test_options_that_cannot_be_used(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=f"{next(iter(options))} is"):
        Leaves.fit([[0.0], [1.0]], [0.0, 1.0], **options)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"columns": [[0.0]]}, "columns have type"),
        ({"columns": [0]}, "columns have type"),
        ({"columns": [[2]]}, "columns go from 2 to 2"),
        ({"columns": [[-1]]}, "columns go from -1"),
        ({"thresholds": [[np.nan]]}, "thresholds have shape"),
        ({"thresholds": [[0.0, 1.0]]}, "thresholds have shape"),
        ({"leaf_values": [[0.0]]}, "leaf_values have shape"),
        ({"n_columns": 0}, "n_columns is 0"),
        ({"base": np.inf}, "base"),
    ],
    ids=str,
)
def test_arrays_that_are_no_trees(changed: Any, message: str) -> None:
    made: Any = {"columns": [[1]], "thresholds": [[0.5]], "leaf_values": [[0.0, 1.0]], "n_columns": 2, "base": 0.0}
    assert Leaves(**made).n_features == 3
    with pytest.raises(InvalidParameterError, match=message):
        Leaves(**made | changed)
