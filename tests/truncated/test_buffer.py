"""Buffers against traces and differences written out, however the vectors are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import random_transitions
from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved
from tlstd.data.batch import Batch
from tlstd.data.feature_index import FeatureIndex
from tlstd.data.transitions import Transitions
from tlstd.errors import CapacityError
from tlstd.truncated.buffer import Buffer, empty_buffer
from tlstd.truncated.traces import AccumulatingTrace, ReplacingTrace
from tlstd.truncated.truncated_system import core_svd, sample_weights

D, LAMBDA = 12, 0.8
STORAGES = pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])


def steps(n: int, seed: int = 0) -> Transitions:
    """Off-policy steps, the trace going on into the first of them, with episodes that end among them."""
    longer = random_transitions(
        np.random.default_rng(seed), n_features=D, n_steps=n + 10, density=0.4, sparse=True, off_policy=True
    )
    first = int(np.flatnonzero(longer.trace_discounts * longer.rhos > 0.0)[0])
    return longer[first : first + n]


def fill(buffer: Buffer, seen: FeatureIndex, given: Transitions, z: FloatArray, trace: Any = None) -> None:
    batch = Batch.from_transitions(given)
    first = buffer.count
    buffer.append(batch, batch.trace_discounts * LAMBDA, seen, trace or AccumulatingTrace(), None)
    if first == 0:
        buffer.begin(z, len(seen))
    buffer.count = first + len(batch)


def literal(given: Transitions, z: FloatArray, *, replacing: bool = False) -> tuple[FloatArray, FloatArray]:
    """Z and D, (k, d): z ← ρ (γλ z + x) and d = x - γ x′, one step after the other."""
    Z, differences = [], []
    for t in given:
        x, x_next = (np.asarray(v.toarray() if hasattr(v, "toarray") else v).ravel() for v in (t.x, t.x_next))
        faded = t.trace_discount * LAMBDA * z
        z = t.rho * (np.where(x != 0.0, x, faded) if replacing else faded + x)
        Z.append(z)
        differences.append(x - t.discount * x_next)
    return np.array(Z), np.array(differences)


def by_feature(vectors: FloatArray, seen: FeatureIndex) -> FloatArray:
    """(n, k) in rows to (k, d) in features."""
    out = np.zeros((vectors.shape[1], D))
    out[:, seen.ids] = vectors.T
    return out


def made(dense: bool, capacity: int, n_targets: int = 1) -> tuple[Buffer, FeatureIndex]:
    seen = FeatureIndex(D)
    if dense:
        seen.insert(np.arange(D))
    return empty_buffer(capacity, n_targets, D, dense=dense), seen


@STORAGES
@pytest.mark.parametrize("with_trace", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_bases_and_traces(dense: bool, with_trace: bool, last: bool) -> None:
    buffer, seen = made(dense, 20)
    given, z = steps(15), np.zeros(0)
    if with_trace:
        seen.insert(np.arange(D))
        z = np.random.default_rng(1).standard_normal(D)[seen.ids]
    for start, stop in ((0, 1), (1, 6), (6, 15)):
        fill(buffer, seen, given[start:stop], z)
    before = np.zeros(D)
    before[seen.ids[: z.size]] = z
    Z, differences = literal(given, before)
    n = len(seen)
    none = np.zeros((n, 0))
    left, right = buffer.bases(none, none, n, last=last)
    assert buffer.count == 15
    assert_allclose(by_feature(left.expand(buffer.traces(left).T), seen), Z, atol=1e-12)
    d = right.expand(right.coordinates * buffer.right.norms[:15])
    assert_allclose(by_feature(d, seen), differences, atol=1e-12)
    # a combination of traces, by its coefficients on the vectors
    c = np.random.default_rng(2).standard_normal((15, 2))
    total = np.zeros((n, 2))
    buffer.left.add_to(total, np.arange(15), buffer.on_vectors(c.copy()))
    assert_allclose(by_feature(total, seen), c.T @ Z, atol=1e-12)


def test_replacing_trace() -> None:
    buffer, seen = made(False, 20)
    trace = ReplacingTrace()
    fill(buffer, seen, steps(9), np.zeros(0), trace)
    Z, _ = literal(steps(9), np.zeros(D), replacing=True)
    none = np.zeros((len(seen), 0))
    left, _ = buffer.bases(none, none, len(seen), last=True)
    assert_allclose(by_feature(left.expand(buffer.traces(left).T), seen), Z, atol=1e-12)
    assert_allclose(by_feature(trace.after(buffer.left, np.zeros((9, 1)), len(seen)), seen), Z[-1:], atol=1e-13)


@STORAGES
def test_what_is_not_counted_is_gone(dense: bool) -> None:
    buffer, seen = made(dense, 20)
    fill(buffer, seen, steps(5), np.zeros(0))
    batch = Batch.from_transitions(steps(7, seed=1))
    buffer.append(batch, batch.trace_discounts * LAMBDA, seen, AccumulatingTrace(), None)
    assert buffer.count == 5
    buffer.mend()
    assert buffer.left.count == buffer.right.count == 5
    fill(buffer, seen, steps(3, seed=2), np.zeros(0))
    other, other_seen = made(dense, 20)
    fill(other, other_seen, steps(5), np.zeros(0))
    fill(other, other_seen, steps(3, seed=2), np.zeros(0))
    for mended, expected, at in ((buffer.left, other.left, seen), (buffer.right, other.right, seen)):
        every = np.arange(8)
        a, b = mended.columns(every, len(at)), expected.columns(every, len(other_seen))
        assert_array_equal(by_feature(a, seen), by_feature(b, other_seen))


@STORAGES
def test_emptied_and_restored(dense: bool) -> None:
    buffer, seen = made(dense, 10, n_targets=1)
    fill(buffer, seen, steps(6), np.zeros(0))
    saved = {f"{name}.{key}": value for name in ("left", "right") for key, value in buffer.state()[name].items()}
    columns = {name: value for name, value in buffer.state().items() if name not in ("left", "right", "storage")}
    restored = empty_buffer(0, 1, D, dense=dense)
    restored.restore(Saved({**columns, **saved}), 6, 10, len(seen), has_trace=False)
    assert restored.count == 6
    emptied = buffer.emptied()
    assert emptied.count == emptied.left.count == 0
    assert emptied.left.norms is buffer.left.norms
    for other in (restored, emptied):  # there is room for the rest
        fill(other, seen, steps(10 - other.count, seed=4), np.zeros(0))
        assert other.count == other.capacity == 10


def test_too_large() -> None:
    with pytest.raises(CapacityError, match="smaller buffer_size or rank"):
        empty_buffer(1 << 10, 1, 1 << 40, dense=True)


class TestCore:
    @pytest.mark.parametrize("beta", [None, 0.3])
    @pytest.mark.parametrize(("n_before", "k"), [(0, 1), (0, 4), (7, 3)])
    def test_weights_are_those_of_one_step_after_the_other(self, n_before: int, k: int, beta: float | None) -> None:
        expected, before = np.zeros(k), 1.0
        for i in range(k):
            step = 1.0 / (n_before + i + 1) if beta is None else beta
            expected *= 1.0 - step
            before *= 1.0 - step
            expected[i] = step
        weights, decay = sample_weights(n_before, k, beta)
        assert_allclose(weights, expected, rtol=1e-14)
        assert_allclose(decay, before, rtol=1e-14)

    @STORAGES
    def test_the_core_is_the_system(self, dense: bool) -> None:
        """A = U diag(σ) Vᵀ faded, and the samples; its inverse on b is the solution."""
        rng = np.random.default_rng(0)
        buffer, seen = made(dense, 30)
        seen.insert(np.arange(D))
        z = rng.standard_normal(D)
        fill(buffer, seen, steps(25), z[seen.ids])
        U, V = (np.linalg.qr(rng.standard_normal((D, 3)))[0] for _ in range(2))
        sigma, (weights, decay) = np.array([3.0, 2.0, 1.0]), sample_weights(5, 25, None)
        Z, differences = literal(steps(25), z)
        A = decay * (U * sigma) @ V.T
        A = A + (Z.T @ (weights[:, None] * differences))[np.ix_(seen.ids, seen.ids)]
        left, right = buffer.bases(U, V, D, last=True)
        core = core_svd(left, right, buffer, sigma, weights, decay, D, None)
        assert_allclose(left.expand(core.L * core.sigma) @ right.expand(core.Rt.T).T, A, atol=1e-11)
        b = rng.standard_normal((D, 2))
        w = right.expand(core.apply_inverse(left.project(b), 1e-13))
        assert_allclose(A @ w, b, atol=1e-7)
