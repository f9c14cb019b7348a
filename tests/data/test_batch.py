from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import dense, random_transitions
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.batch import Batch, CSRArrays, entries, vector_arrays
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector


def rows_of(csr: CSRArrays, picked: IntArray, d: int) -> FloatArray:
    out = np.zeros((picked.size, d))
    for t, row in enumerate(picked):
        at = slice(csr[0][row], csr[0][row + 1])
        out[t, csr[1][at]] = csr[2][at]
    return out


FORMS = pytest.mark.parametrize("form", ["dense", "sparse", "mixed", "mixed the other way"])


def stream(form: str, n_targets: int = 1) -> Transitions:
    steps = random_transitions(
        np.random.default_rng(0), n_features=6, n_steps=30, density=0.4, n_targets=n_targets, off_policy=True
    )
    X: Any = steps.X
    X_next: Any = steps.X_next
    return Transitions(
        sp.csr_array(X) if form in ("sparse", "mixed") else X,
        steps.rewards,
        sp.csr_array(X_next) if form in ("sparse", "mixed the other way") else X_next,
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
        rhos=steps.rhos,
    )


@FORMS
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("key", [slice(None), slice(4, 20), slice(None, None, -3), slice(5, 5)], ids=str)
def test_columns(form: str, n_targets: int, key: slice) -> None:
    steps = stream(form, n_targets)[key]
    listed = list(steps)
    batch = Batch.from_transitions(steps)
    X = np.array([dense(t.x) for t in listed]).reshape(-1, 6)
    X_next = np.array([dense(t.x_next) for t in listed]).reshape(-1, 6)
    assert len(batch) == len(listed)
    assert batch.rewards.shape == (len(listed), n_targets)
    x, rows, x_next, next_rows = batch.sparse()
    assert_array_equal(rows_of(x, rows, 6), X)
    assert_array_equal(rows_of(x_next, next_rows, 6), X_next)
    for ids in (np.arange(6), np.array([3, 1, 0, 5, 4, 2])):
        both = batch.dense(ids)
        assert_array_equal(both[0], X[:, ids])
        assert_array_equal(both[1], X_next[:, ids])
    assert sorted(batch.ids().tolist()) == sorted(
        [*np.nonzero(X)[1].tolist(), *np.nonzero(X_next[steps.discounts != 0.0])[1].tolist()]
    )
    assert batch.most_active() == np.count_nonzero(X, axis=1).max(initial=0)
    part = batch.part(2, 9)
    assert_array_equal(rows_of(part.sparse()[0], part.sparse()[1], 6), X[2:9])
    assert_array_equal(part.rhos, [t.rho for t in listed[2:9]])


@pytest.mark.parametrize("kinds", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("reward", [2.0, [1.0, 2.0]])
def test_one_transition(kinds: tuple[int, int], reward: Any) -> None:
    x, x_next = np.array([0.0, 1.0, 2.0]), np.array([3.0, 0.0, 0.0])
    given = [SparseVector.from_dense(v) if sparse else v for v, sparse in zip((x, x_next), kinds, strict=True)]
    batch = Batch.from_transition(Transition(given[0], reward, given[1], discount=0.9, trace_discount=0.5, rho=1.5))
    csr, rows, next_csr, next_rows = batch.sparse()
    assert_array_equal(rows_of(csr, rows, 3), [x])
    assert_array_equal(rows_of(next_csr, next_rows, 3), [x_next])
    assert_array_equal(batch.rewards, np.reshape(reward, (1, -1)))
    assert (batch.discounts[0], batch.trace_discounts[0], batch.rhos[0]) == (0.9, 0.5, 1.5)
    assert batch.rows.dtype == batch.sparse()[0][0].dtype == np.int64


@FORMS
@pytest.mark.parametrize("lambda_", [0.0, 0.7])
def test_follow_trace(form: str, lambda_: float) -> None:
    steps = stream(form)
    batch = Batch.from_transitions(steps)
    bound, bounds = 2.0, []
    for t in steps:
        bound = t.rho * (t.trace_discount * lambda_ * bound + float(np.linalg.norm(dense(t.x))))
        bounds.append(bound)
    step, last, highest = batch.follow_trace(lambda_, 2.0, 1e9)
    assert step == -1
    assert_allclose(last, bounds[-1], rtol=1e-12)
    assert_allclose(highest, max(2.0, *bounds), rtol=1e-12)
    limit = 0.99 * max(bounds)
    assert batch.follow_trace(lambda_, 2.0, limit)[0] == next(i for i, b in enumerate(bounds) if b > limit)


def test_entries_and_vectors() -> None:
    csr = np.array([0, 2, 2, 3]), np.array([5, 7, 2**62]), np.ones(3)
    assert_array_equal(entries(csr, np.array([2, 1, 0, 2])), [2**62, 5, 7, 2**62])
    assert entries(csr, np.zeros(0, dtype=np.int64)).size == 0
    for x in (np.array([0.0, 2.0]), SparseVector([1], [2.0], 2)):
        indices, values = vector_arrays(x)
        assert_array_equal(indices, [1])
        assert_array_equal(values, [2.0])
