"""Krylov LSTD against LSTD, against closed forms, and with parts of it broken on purpose."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from tests.helpers import batch_lstd, random_transitions
from tests.krylov.literal_system import dense_rows, literal_system, random_steps
from tlstd import LSTD, KrylovLSTD, Transitions, boyan_chain, load
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError
from tlstd.estimators.base import LinearEstimator
from tlstd.krylov import krylov_lstd
from tlstd.krylov.krylov_lstd import STREAM_SAMPLES, Auto, Reads
from tlstd.krylov.operator import SampleOperator
from tlstd.krylov.projected_stream import ProjectedStream
from tlstd.krylov.samples import SampleStore


def predictions_of_both(steps: Transitions, **options: Any) -> tuple[FloatArray, FloatArray, float]:
    """Predictions by LSTD(rcond=0) and by Krylov LSTD of full dimension, and the condition of A."""
    lstd = LSTD(steps.n_features, rcond=0.0, n_targets=steps.n_targets, **options)
    krylov = KrylovLSTD(steps.n_features, dimension=steps.n_features, n_targets=steps.n_targets, **options)
    lstd.update_many(steps)
    krylov.update_many(steps)
    return lstd.predict(steps.X), krylov.predict(steps.X), float(np.linalg.cond(lstd.system()[1]))


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("ratios", [False, True])
@pytest.mark.parametrize("beta", [None, 0.02])
def test_full_dimension_is_lstd(kind: str, ratios: bool, beta: float | None) -> None:
    steps = random_steps(np.random.default_rng(0), 400, kind=kind, ratios=ratios, n_targets=2)
    lstd, krylov, condition = predictions_of_both(steps, lambda_=0.7, beta=beta)
    assert condition < 1e5
    assert np.abs(krylov - lstd).max() <= 1e-9 * np.abs(lstd).max()


def test_features_that_occur_twice_do_no_harm() -> None:
    """A is singular then; the predictions are those without the second copy, at any dimension that is large enough."""
    steps = random_steps(np.random.default_rng(1), 300, kind="valued", n_features=20)
    X, X_next = (dense_rows(M) for M in (steps.X, steps.X_next))
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
    twice = Transitions(
        sp.csr_array(np.hstack([X, X])), steps.rewards, sp.csr_array(np.hstack([X_next, X_next])), **columns
    )
    once = LSTD(20, lambda_=0.5, rcond=0.0)
    once.update_many(steps)
    for dimension in (20, 25, 40):
        model = KrylovLSTD(40, lambda_=0.5, dimension=dimension)
        model.update_many(twice)
        np.testing.assert_allclose(model.predict(twice.X), once.predict(steps.X), atol=1e-10)


def test_small_dimensions_have_the_least_residual_in_their_space() -> None:
    steps = random_steps(np.random.default_rng(2), 200, kind="valued")
    A, b = literal_system(steps, 0.6)
    for dimension in (1, 3, 6):
        powers = np.stack([np.linalg.matrix_power(A, i) @ b[:, 0] for i in range(dimension)], axis=1)
        y = np.linalg.lstsq(A @ powers, b[:, 0])[0]
        model = KrylovLSTD(30, lambda_=0.6, dimension=dimension)
        model.update_many(steps)
        np.testing.assert_allclose(model.weights, powers @ y, atol=1e-9)


@pytest.mark.parametrize("change", ["trace_discounts", "discounts", "rhos"])
def test_traces_terminations_and_ratios_matter(change: str) -> None:
    steps = random_steps(np.random.default_rng(3), 300, kind="valued", ratios=True)
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts, "rhos": steps.rhos}
    broken = {"trace_discounts": np.full(300, 0.9), "discounts": np.full(300, 0.9), "rhos": np.ones(300)}
    models = []
    for used in (columns, columns | {change: broken[change]}):
        models.append(KrylovLSTD(30, lambda_=0.8, dimension=30))
        models[-1].update_many(Transitions(steps.X, steps.rewards, steps.X_next, **used))
    assert np.abs(models[0].weights - models[1].weights).max() > 1e-3 * np.abs(models[0].weights).max()


def test_weights_of_boyans_chain() -> None:
    chain = boyan_chain()
    model = KrylovLSTD(4, lambda_=0.5, dimension=4)
    model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    np.testing.assert_allclose(model.weights, [-24, -16, -8, 0], atol=0.5)


@pytest.mark.parametrize("beta", [None, 0.05])
def test_ridge_penalises_everything_but_constants(beta: float | None) -> None:
    steps = random_steps(np.random.default_rng(4), 300, kind="valued")
    X, X_next = (dense_rows(M) for M in (steps.X, steps.X_next))
    X[:, 7] = X_next[:, 7] = 1.0
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
    steps = Transitions(sp.csr_array(X), steps.rewards + 5.0, sp.csr_array(X_next), **columns)
    A, b = literal_system(steps, 0.6, beta=beta)
    weights = np.ones(300) if beta is None else (1 - beta) ** np.arange(299.0, -1.0, -1.0)
    eta = 0.3 * (weights @ (X**2).sum(axis=1)) / weights.sum()
    D = np.eye(30)
    D[7, 7] = 0.0
    model = KrylovLSTD(30, lambda_=0.6, dimension=30, ridge=0.3, beta=beta)
    model.update_many(steps)
    np.testing.assert_allclose(model.weights, np.linalg.solve(A + eta * D, b[:, 0]), atol=1e-10)


def test_no_reward_gives_no_weights() -> None:
    steps = random_steps(np.random.default_rng(5), 50)
    model = KrylovLSTD(30, lambda_=0.6, dimension=5)
    model.update_many(
        Transitions(
            steps.X, np.zeros(50), steps.X_next, discounts=steps.discounts, trace_discounts=steps.trace_discounts
        )
    )
    assert (model.weights == 0.0).all()


def test_a_dimension_beyond_the_features_is_no_error() -> None:
    steps = random_steps(np.random.default_rng(6), 200, kind="valued", n_features=10)
    large, enough = (KrylovLSTD(10, lambda_=0.6, dimension=dimension) for dimension in (10**9, 10))
    for model in (large, enough):
        model.update_many(steps)
    np.testing.assert_allclose(large.weights, enough.weights, rtol=1e-9)


def test_hashed_features() -> None:
    rng = np.random.default_rng(7)
    ids = np.sort(rng.choice(2**31, 50, replace=False))
    steps = random_steps(rng, 100, n_features=50)
    wide = Transitions(
        _spread(steps.X, ids),
        steps.rewards,
        _spread(steps.X_next, ids),
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
    )
    narrow, hashed = KrylovLSTD(50, lambda_=0.6, dimension=6), KrylovLSTD(2**31, lambda_=0.6, dimension=6)
    narrow.update_many(steps)
    hashed.update_many(wide)
    np.testing.assert_array_equal(hashed.sparse_weights.indices, ids[narrow.sparse_weights.indices])
    np.testing.assert_array_equal(hashed.sparse_weights.values, narrow.sparse_weights.values)
    assert hashed.nbytes < 100_000


def _spread(X: Any, ids: Any) -> Any:
    X = sp.csr_array(X)
    return sp.csr_array((X.data, ids[X.indices], X.indptr), shape=(X.shape[0], 2**31))


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
def test_saved_with_everything_in_it(kind: str, tmp_path: Path) -> None:
    steps = random_steps(np.random.default_rng(8), 900, kind=kind, ratios=True, n_targets=2)
    model = KrylovLSTD(30, lambda_=0.6, dimension=7, ridge=1e-3, beta=0.1, n_targets=2)
    model.update_many(steps[:850])
    model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    for m in (model, twin):
        m.update_many(steps[850:])
    np.testing.assert_array_equal(twin.weights, model.weights)


def test_bytes_per_sample_is_what_samples_take() -> None:
    steps = random_steps(np.random.default_rng(9), 5000)
    model = KrylovLSTD(30, lambda_=0.6, dimension=7)
    model.update_many(steps[:4000])
    before = model.nbytes
    model.update_many(steps[4000:])
    assert model.nbytes - before <= 1000 * model.bytes_per_sample + 1000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dimension", 0),
        ("dimension", 2.5),
        ("max_samples", 1),
        ("max_samples", 10.5),
        ("ridge", -1.0),
        ("ridge", np.nan),
        ("beta", 0.0),
        ("beta", 1.0),
        ("lambda_", 1.1),
    ],
)
def test_bad_parameters_are_refused(name: str, value: Any) -> None:
    options: dict[str, Any] = {"lambda_": 0.5, "dimension": 3, name: value}
    with pytest.raises(InvalidParameterError, match=name):
        KrylovLSTD(5, **options)


# Predictions at every step.


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_a_stream_is_the_batch_solution_at_refreshes(kind: str, ridge: float) -> None:
    steps = random_steps(np.random.default_rng(10), 150, kind=kind)
    stream = KrylovLSTD(30, lambda_=0.7, dimension=6, reads="stream", ridge=ridge)
    batch = KrylovLSTD(30, lambda_=0.7, dimension=6, ridge=ridge)
    equal = 0
    for t in steps:
        for model in (stream, batch):
            model.update(t)
        assert stream._stream is not None
        if stream._stream.refreshed == stream.n_updates:
            scale = max(1.0, np.abs(batch.weights).max())
            np.testing.assert_allclose(stream.weights, batch.weights, atol=1e-8 * scale)
            equal += 1
    assert equal > 10


def test_a_stream_of_full_dimension_is_lstd_at_every_step() -> None:
    """All features are seen before the last refresh, so that the basis is all of the space."""
    steps = random_steps(np.random.default_rng(11), 700, kind="valued", n_features=12)
    stream = KrylovLSTD(12, lambda_=0.7, dimension=12, reads="stream")
    lstd = LSTD(12, lambda_=0.7, rcond=0.0)
    for model in (stream, lstd):
        model.update_many(steps[:600])
    for t in steps[600:]:
        for model in (stream, lstd):
            model.update(t)
        np.testing.assert_allclose(stream.weights, lstd.weights, atol=1e-9 * np.abs(lstd.weights).max())


@pytest.mark.parametrize("kind", ["binary", "dense"])
@pytest.mark.parametrize("beta", [None, 0.05])
def test_update_and_predict_is_update_and_predict(kind: str, beta: float | None) -> None:
    steps = random_steps(np.random.default_rng(12), 120, kind=kind, n_targets=2)
    options: dict[str, Any] = {"lambda_": 0.7, "dimension": 5, "reads": "stream", "beta": beta, "n_targets": 2}
    compiled, stepwise = KrylovLSTD(30, **options), KrylovLSTD(30, **options)
    values = compiled.update_and_predict(steps)
    expected = np.zeros((120, 2))
    for i, t in enumerate(steps):
        stepwise.update(t)
        expected[i] = stepwise.predict(t.x_next)
    np.testing.assert_allclose(values, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(compiled.weights, stepwise.weights, atol=1e-9 * np.abs(stepwise.weights).max())
    batch = KrylovLSTD(30, **{**options, "reads": "batch"})
    values = batch.update_and_predict(steps[:20])
    np.testing.assert_allclose(values[-1], batch.predict(steps[19].x_next), rtol=1e-12)


def test_a_stream_saved_between_refreshes_goes_on(tmp_path: Path) -> None:
    steps = random_steps(np.random.default_rng(13), 300, kind="valued", n_targets=2, ratios=True)
    model = KrylovLSTD(30, lambda_=0.6, dimension=7, reads="stream", ridge=1e-3, beta=0.1, n_targets=2)
    model.update_many(steps[:251])
    model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    np.testing.assert_array_equal(twin.weights, model.weights)
    for m in (model, twin):
        for t in steps[251:]:
            m.update(t)
    np.testing.assert_array_equal(twin.weights, model.weights)


@pytest.mark.parametrize("reads", ["batch", "stream"])
def test_an_interrupted_update_leaves_a_prefix(reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever an update is cut off, ``n_updates`` says how much of it was learned, and the rest can follow."""
    steps = random_steps(np.random.default_rng(14), 60, kind="valued")
    expected = KrylovLSTD(30, lambda_=0.7, dimension=5, reads=reads)
    expected.update_many(steps)
    owners = (SampleStore, "append"), (SampleOperator, "matvec"), (SampleOperator, "b"), (ProjectedStream, "follow")
    for owner, name in owners:
        for before in (True, False):
            for calls in (0, 3, 20):
                model = KrylovLSTD(30, lambda_=0.7, dimension=5, reads=reads)
                model.update_many(steps[:20])
                model.predict(steps.X)
                with monkeypatch.context() as patched:
                    _interrupt(patched, owner, name, calls, before)
                    with suppress(KeyboardInterrupt):
                        model.update_many(steps[20:])
                n = model.n_updates
                assert 20 <= n <= 60
                model.predict(steps.X)
                model.update_many(steps[n:])
                np.testing.assert_allclose(model.weights, expected.weights, rtol=1e-9)


def _interrupt(patched: pytest.MonkeyPatch, owner: Any, name: str, calls: int, before: bool) -> None:
    """Let a call of a method be interrupted before it begins or after it has returned."""
    original, count = getattr(owner, name), iter(range(10**6))

    def stopped(*args: Any, **options: Any) -> Any:
        now = next(count) == calls
        if now and before:
            raise KeyboardInterrupt
        result = original(*args, **options)
        if now:
            raise KeyboardInterrupt
        return result

    patched.setattr(owner, name, stopped)


@pytest.mark.parametrize("reads", ["batch", "stream"])
@pytest.mark.parametrize("sparse", [False, True])
def test_huge_ratios_at_empty_vectors(sparse: bool, reads: Reads) -> None:
    """A product of ratios that would overflow, at vectors that leave the trace empty."""
    steps = random_transitions(np.random.default_rng(0), n_features=4, n_steps=60, terminate=0.0, truncate=0.0)
    X, X_next = np.array(steps.X), np.array(steps.X_next)
    X[20:26] = X_next[19:25] = 0.0
    traces, rhos = np.array(steps.trace_discounts), np.ones(60)
    traces[20], rhos[20:24] = 0.0, 1e90
    make: Any = sp.csr_array if sparse else np.array
    hard = Transitions(
        make(X), steps.rewards, make(X_next), discounts=steps.discounts, trace_discounts=traces, rhos=rhos
    )
    model = KrylovLSTD(4, lambda_=0.9, dimension=4, reads=reads)
    model.update_many(hard)
    A, b = batch_lstd(hard, 0.9)
    assert np.abs(model.operator().b() - b.reshape(-1, 1)).max() < 1e-12 * np.abs(b).max()
    if reads == "batch":
        assert np.abs(model.weights - np.linalg.solve(A, b).ravel()).max() < 1e-9 * np.abs(model.weights).max()
    assert np.isfinite(model.weights).all()


def test_forgetting_that_never_forgets() -> None:
    """The smallest numbers are weights as well: no sample ever leaves."""
    model = KrylovLSTD(4, lambda_=0.5, dimension=4, beta=5e-324)
    assert model.n_updates == 0


# Bounded memory.


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("reads", ["batch", "stream"])
@pytest.mark.parametrize("beta", [None, 0.01])
def test_with_few_features_folding_changes_nothing(kind: str, reads: Reads, beta: float | None) -> None:
    """There are fewer features than vectors of the basis: the older samples are known exactly."""
    steps = random_steps(np.random.default_rng(20), 500, kind=kind, ratios=True, n_targets=2)
    options: dict[str, Any] = {"lambda_": 0.7, "ridge": 1e-3, "beta": beta, "reads": reads, "n_targets": 2}
    kept = KrylovLSTD(30, dimension=9, max_samples=10**9, **options)
    folded = KrylovLSTD(30, dimension=9, max_samples=50, **options)
    for model in (kept, folded):
        model.update_many(steps)
    assert folded._store.samples.n_kept < 50
    expected = kept.predict(steps.X)
    np.testing.assert_allclose(folded.predict(steps.X), expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("dimension", [5, "auto"])
def test_folded_samples_count(dimension: int | Auto) -> None:
    """More features than the basis has vectors: nearer to all samples than the last ones alone."""
    steps = random_steps(np.random.default_rng(21), 2000, n_features=200)
    values = {}
    for name, max_samples, part in (("all", None, steps), ("folded", 200, steps), ("last", None, steps[1850:])):
        model = KrylovLSTD(200, lambda_=0.7, dimension=dimension, max_samples=max_samples)
        model.update_many(part)
        values[name] = model.predict(steps.X)
    folded, last = (np.linalg.norm(values[name] - values["all"]) for name in ("folded", "last"))
    assert folded < 0.5 * last


@pytest.mark.parametrize("dimension", [5, "auto"])
def test_a_folding_stream_saved_anywhere_goes_on(dimension: int | Auto, tmp_path: Path) -> None:
    steps = random_steps(np.random.default_rng(22), 300, n_features=100, n_targets=2, ratios=True)
    options: dict[str, Any] = {"reads": "stream", "max_samples": 40, "n_targets": 2}
    model: LinearEstimator = KrylovLSTD(100, lambda_=0.6, dimension=dimension, **options)
    at_once = KrylovLSTD(100, lambda_=0.6, dimension=dimension, **options)
    values = at_once.update_and_predict(steps)
    for start in range(0, 300, 75):
        for i in range(start, start + 75):
            model.update(steps[i])
            expected = model.predict(steps[i].x_next)
            np.testing.assert_allclose(values[i], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
        model.save(tmp_path / "model")
        twin = load(tmp_path / "model")
        np.testing.assert_array_equal(twin.weights, model.weights)
        model = twin
    np.testing.assert_allclose(model.weights, at_once.weights, atol=1e-10 * np.abs(model.weights).max())


def test_streams_are_bounded_and_batches_are_not() -> None:
    n = STREAM_SAMPLES + 1_000
    steps = random_steps(np.random.default_rng(23), n, n_features=40)
    stream, batch = (KrylovLSTD(40, lambda_=0.7, dimension=3, reads=reads) for reads in ("stream", "batch"))
    for model in (stream, batch):
        model.update_many(steps)
    assert stream._store.samples.n_kept == n - STREAM_SAMPLES // 2
    assert batch._store.samples.n_kept == n


def test_features_first_seen_since_a_refresh_have_no_weight_until_the_next() -> None:
    """Bases are made at 1, 2, 3, 4, 5, 6, 8, 10, 13 samples; a feature that comes with the 11th waits until then."""
    X = np.eye(3)[[0, 1] * 5 + [2] * 3]
    zeros = np.zeros(13)
    steps = Transitions(X, np.ones(13), X, discounts=zeros, trace_discounts=zeros)
    stream, batch = (KrylovLSTD(3, lambda_=0.5, dimension=3, reads=reads) for reads in ("stream", "batch"))
    for n in range(13):
        for model in (stream, batch):
            model.update(steps[n])
        np.testing.assert_allclose(batch.weights, n_seen_weights(n + 1), atol=1e-12)
        np.testing.assert_allclose(stream.weights, n_seen_weights(min(n + 1, 10) if n < 12 else 13), atol=1e-12)


def n_seen_weights(n: int) -> list[float]:
    return [1.0, float(n > 1), float(n > 10)]


def test_replacing_traces_are_refused() -> None:
    with pytest.raises(TypeError, match="trace"):
        KrylovLSTD(3, lambda_=0.5, trace="replacing")  # type: ignore[call-arg]


@pytest.mark.long
@pytest.mark.parametrize("reads", ["batch", "stream"])
def test_a_million_steps_in_constant_memory(reads: Reads) -> None:
    steps = random_steps(np.random.default_rng(24), 20_000, n_features=500)
    model = KrylovLSTD(500, lambda_=0.7, dimension=5, reads=reads, max_samples=2000)
    model.update_many(steps)
    sizes = []
    for _ in range(49):
        model.update_many(steps)
        sizes.append(model.nbytes)
    assert model.n_updates == 10**6
    assert max(sizes) <= 1.01 * sizes[0]


def test_a_stream_saved_when_fewer_samples_were_kept_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default has changed between versions; what had left by then has left."""
    steps = boyan_chain().sample(400, np.random.default_rng(0))
    monkeypatch.setattr(krylov_lstd, "STREAM_SAMPLES", 64)
    old = KrylovLSTD(4, lambda_=0.5, dimension=2, reads="stream")
    old.update_many(steps[:100])
    old.save(tmp_path / "stream.tlstd")
    values = old.predict(np.eye(4))
    monkeypatch.setattr(krylov_lstd, "STREAM_SAMPLES", 142)
    model = load(tmp_path / "stream.tlstd")
    assert isinstance(model, KrylovLSTD)
    assert_allclose(model.predict(np.eye(4)), values, rtol=1e-12)
    model.update_many(steps[100:])
    model.save(tmp_path / "again.tlstd")
    fresh = KrylovLSTD(4, lambda_=0.5, dimension=2, reads="stream")
    fresh.update_many(steps)
    assert_allclose(load(tmp_path / "again.tlstd").predict(np.eye(4)), fresh.predict(np.eye(4)), rtol=0.05)
