"""Krylov solutions at every sample: equal to batch solutions at refreshes, and to literal projections in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.krylov.literal_system import dense_rows, literal_system, random_steps
from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved
from tlstd.data.batch import Batch
from tlstd.errors import StateError
from tlstd.krylov.operator import SampleOperator
from tlstd.krylov.projected_stream import ProjectedStream, SmallSystem, projected_trace
from tlstd.krylov.samples import Samples, SampleStore
from tlstd.krylov.stream import KrylovStream

LAMBDA = 0.8


def stream_of(n_features: int = 30, dimension: int = 5, beta: float | None = None, n_targets: int = 1) -> KrylovStream:
    store = SampleStore(n_features, lambda_=LAMBDA, beta=beta, n_targets=n_targets, chunk_size=9)

    def operator(samples: Samples) -> SampleOperator:
        return SampleOperator(samples, lambda_=LAMBDA, beta=beta, n_targets=n_targets)

    return KrylovStream(store, dimension, operator)


def batch_weights(stream: KrylovStream) -> FloatArray:
    operator = stream.operator(stream.store.samples)
    arnoldi = operator.arnoldi()
    assert stream.dimension is not None
    arnoldi.extend(stream.dimension)
    return arnoldi.solutions(stream.dimension)


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("beta", [None, 0.1])
def test_between_refreshes_it_is_the_literal_projection(kind: str, beta: float | None) -> None:
    """WᵀA_tQ y = Wᵀb_t with W = orth(AQ) and Q of the last refresh, all of it from sums that are written out."""
    rng = np.random.default_rng(0)
    steps = random_steps(rng, 80, kind=kind, ratios=True, n_targets=2, ends=0.05)
    stream = stream_of(beta=beta, n_targets=2)
    Q: list[FloatArray] = []
    W: list[FloatArray] = []
    compared = 0
    for t in range(80):
        stream.append(Batch.from_transitions(steps[t : t + 1]))
        A, b = literal_system(steps[: t + 1], LAMBDA, beta=beta)
        weights = np.zeros((30, 2))
        weights[stream.store.ids] = stream.weights()
        if stream.refreshed == t + 1:
            expected = np.zeros((30, 2))
            expected[stream.store.ids] = batch_weights(stream)
            np.testing.assert_allclose(weights, expected, atol=1e-8 * max(1.0, np.abs(expected).max()))
            Q, W = [], []
            for projected in stream._made[1]:
                wide = np.zeros((30, projected.shape[1]))
                wide[stream.store.ids] = projected.right
                Q.append(wide)
                W.append(np.linalg.qr(A @ wide)[0])
            continue
        for target in range(2):
            M = W[target].T @ A @ Q[target]
            if np.linalg.cond(M) < 1e4:
                w = Q[target] @ np.linalg.solve(M, W[target].T @ b[:, target])
                np.testing.assert_allclose(weights[:, target], w, atol=1e-8 * np.abs(w).max())
                compared += 1
    assert compared > 80


def test_refreshes_are_a_function_of_the_number_of_samples() -> None:
    steps = random_steps(np.random.default_rng(1), 200, kind="valued")
    one, many, read = stream_of(), stream_of(), stream_of()
    many.append(Batch.from_transitions(steps))
    for t in range(200):
        one.append(Batch.from_transitions(steps[t : t + 1]))
        read.append(Batch.from_transitions(steps[t : t + 1]), np.zeros((1, 1)))
        read.weights()
    assert one.refreshed == many.refreshed == read.refreshed < 200 < one.next_refresh
    np.testing.assert_array_equal(one.weights(), many.weights())
    np.testing.assert_array_equal(one.weights(), read.weights())
    forgetting = stream_of(beta=0.1)
    forgetting.append(Batch.from_transitions(steps))
    assert forgetting.next_refresh - forgetting.refreshed == 3


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
def test_values_at_every_step_are_predictions_after_it(kind: str) -> None:
    steps = random_steps(np.random.default_rng(2), 90, kind=kind, n_targets=2)
    at_once, stepwise = stream_of(n_targets=2), stream_of(n_targets=2)
    values = np.zeros((90, 2))
    at_once.append(Batch.from_transitions(steps[:40]), values[:40])
    at_once.append(Batch.from_transitions(steps[40:]), values[40:])
    X_next = dense_rows(steps.X_next)
    for t in range(90):
        stepwise.append(Batch.from_transitions(steps[t : t + 1]))
        ids = np.flatnonzero(X_next[t])
        expected = stepwise.predict(ids, X_next[t, ids])
        np.testing.assert_allclose(values[t], expected, atol=1e-10 * max(1.0, np.abs(expected).max()))
        weights = np.zeros((30, 2))
        weights[stepwise.store.ids] = stepwise.weights()
        np.testing.assert_allclose(X_next[t] @ weights, expected, atol=1e-10 * max(1.0, np.abs(expected).max()))


def test_what_was_stored_but_not_followed_is_caught_up() -> None:
    """An interrupt may come between the two."""
    steps = random_steps(np.random.default_rng(3), 60, kind="valued")
    plain, interrupted = stream_of(), stream_of()
    for start, stop in ((0, 30), (30, 31), (31, 60)):
        plain.append(Batch.from_transitions(steps[start:stop]))
    interrupted.append(Batch.from_transitions(steps[:30]))
    interrupted.store.append(Batch.from_transitions(steps[30:31]))
    assert interrupted.weights().shape == (30, 1)
    interrupted.append(Batch.from_transitions(steps[31:60]))
    np.testing.assert_array_equal(interrupted.weights(), plain.weights())


@pytest.mark.parametrize("beta", [None, 0.1])
@pytest.mark.parametrize("n_steps", [0, 1, 77])
def test_restored_and_continued_it_is_the_same(beta: float | None, n_steps: int) -> None:
    steps = random_steps(np.random.default_rng(4), 120, kind="valued", n_targets=2)
    stream, twin = stream_of(beta=beta, n_targets=2), stream_of(beta=beta, n_targets=2)
    stream.append(Batch.from_transitions(steps[:n_steps]))
    _restore(twin, stream)
    for s in (stream, twin):
        for t in range(n_steps, 120):
            s.append(Batch.from_transitions(steps[t : t + 1]))
    np.testing.assert_array_equal(twin.weights(), stream.weights())


def _restore(twin: KrylovStream, stream: KrylovStream, **damages: Any) -> None:
    for part, target in ((stream.store.state(), twin.store), (stream.state(), twin)):
        flat: dict[str, Any] = {}
        for name, value in part.items():
            inner = value.items() if isinstance(value, dict) else ()
            flat |= {f"{name}.{key}": _copied(v) for key, v in inner} if inner else {name: _copied(value)}
        if target is twin:
            flat |= damages
        saved = Saved(flat)
        target.restore(saved)
        saved.finish()


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("refreshed", 0),
        ("refreshed", 10),
        ("refreshed", 51),
        ("target_0.table", np.zeros((31, 6))),
        ("target_0.table", np.zeros((20, 5))),
        ("target_0.left", np.zeros((5, 6))),
        ("target_0.first", 2),
        ("target_0.M", np.zeros((4, 5))),
        ("target_0.y", np.zeros(4)),
        ("target_0.trace", np.full(6, np.nan)),
        ("target_0.numbers", np.array([1.0, 0.0, 1.0, 49.0])),
        ("target_0.numbers", np.array([-1.0, 0.0, 1.0, 50.0])),
    ],
)
def test_what_cannot_be_a_stream_is_refused(name: str, damage: Any) -> None:
    stream = stream_of()
    stream.append(Batch.from_transitions(random_steps(np.random.default_rng(5), 50, kind="valued")))
    with pytest.raises(StateError):
        _restore(stream_of(), stream, **{name: damage})


def test_with_dense_features_every_one_has_a_row() -> None:
    stream = stream_of()
    stream.append(Batch.from_transitions(random_steps(np.random.default_rng(5), 50, kind="dense")))
    _restore(stream_of(), stream)
    with pytest.raises(StateError, match="29 rows"):
        _restore(stream_of(), stream, **{"target_0.table": np.zeros((29, 6))})


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
def test_a_trace_in_coordinates(kind: str) -> None:
    rng = np.random.default_rng(6)
    steps = random_steps(rng, 50, kind=kind, ratios=True, ends=0.02)
    store = SampleStore(30, lambda_=LAMBDA, chunk_size=7)
    store.append(Batch.from_transitions(steps))
    z = np.zeros(30)
    for t, x in enumerate(dense_rows(steps.X)):
        z = steps.rhos[t] * (steps.trace_discounts[t] * LAMBDA * z + x)
    table = rng.standard_normal((store.samples.n, 3))
    np.testing.assert_allclose(projected_trace(store.samples, LAMBDA, table), z[store.ids] @ table, atol=1e-12)
    store._samples = store.samples.without(6, LAMBDA)
    np.testing.assert_allclose(projected_trace(store.samples, LAMBDA, table), z[store.ids] @ table, atol=1e-12)


def test_a_truncated_svd_can_be_followed() -> None:
    """L = U and R = V of A at some moment: UᵀA_tV y = Uᵀb_t afterwards."""
    rng = np.random.default_rng(7)
    steps = random_steps(rng, 200, kind="valued")
    store = SampleStore(30, lambda_=LAMBDA, chunk_size=50)
    store.append(Batch.from_transitions(steps[:150]))
    operator = SampleOperator(store.samples, lambda_=LAMBDA)
    U, _, Vt = np.linalg.svd(operator.toarray())
    U, V, m = U[:, :6], Vt[:6].T, 6
    table, left = np.hstack([U, V]), np.vstack([np.eye(m), np.zeros((m, m))])
    M, c = 150.0 * (U.T @ operator.toarray() @ V), 150.0 * (U.T @ operator.b()[:, 0])
    system = SmallSystem.begun(M, c, projected_trace(store.samples, LAMBDA, table), 150)
    projected = ProjectedStream(table, left, system, first=m)
    ids = store.ids.copy()
    store.append(Batch.from_transitions(steps[150:]))
    projected.follow(store.samples, LAMBDA, 0)
    A, b = literal_system(steps, LAMBDA)
    y = np.linalg.solve(U.T @ A[np.ix_(ids, ids)] @ V, U.T @ b[ids, 0])
    np.testing.assert_allclose(projected.weights(), V @ y, rtol=1e-9)
