"""Samples in chunks: what is stored, in how many bytes, and that it is all there or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.krylov.literal_system import dense_rows, random_steps
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch
from tlstd.data.transitions import Transitions
from tlstd.errors import StateError
from tlstd.krylov.kernels import products as kernels
from tlstd.krylov.operator import SampleOperator
from tlstd.krylov.samples import CHUNK_SIZE, SampleStore


def rows_of(store: SampleStore) -> tuple[Any, Any]:
    """X and X_next as dense arrays, from the chunks; rows of X_next that are not stored are 0."""
    X, X_next = [], []
    for c, chunk in enumerate(store.samples.chunks):
        count = store.samples.count(c)
        n_rows = chunk.n_rows(count)
        rows = np.zeros((n_rows + 1, store.n_features))  # the last one is for next_row -1
        if chunk.X is not None:
            rows[:n_rows] = chunk.X[:n_rows]
        else:
            for r in range(n_rows):
                e = slice(chunk.ptr[r], chunk.ptr[r + 1])
                rows[r, store.ids[chunk.pos[e]]] = 1.0 if chunk.val is None else chunk.val[e]
        X.append(rows[chunk.row[:count]])
        X_next.append(rows[chunk.next_row[:count]])
    return np.concatenate(X), np.concatenate(X_next)


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("chunk_size", [1, 5, None])
def test_rows_come_back(kind: str, separate: bool, chunk_size: int | None) -> None:
    rng = np.random.default_rng(0)
    steps = random_steps(rng, 50, kind=kind, separate=separate, ratios=True)
    store = SampleStore(30, lambda_=0.5, chunk_size=chunk_size)
    for start in range(0, 50, 9):
        store.append(Batch.from_transitions(steps[start : start + 9]))
    for t in steps:  # and once more, one by one
        store.append(Batch.from_transition(t))
    X, X_next = rows_of(store)
    expected = np.where(steps.discounts[:, None] == 0.0, 0.0, dense_rows(steps.X_next))
    np.testing.assert_array_equal(X, np.tile(dense_rows(steps.X), (2, 1)))
    np.testing.assert_array_equal(X_next, np.tile(expected, (2, 1)))


def test_a_row_is_stored_once_whatever_arrays_it_came_in() -> None:
    rng = np.random.default_rng(1)
    X = sp.csr_array((rng.random((21, 30)) < 0.1).astype(float))
    columns: dict[str, Any] = {"discounts": np.full(20, 0.9), "trace_discounts": np.full(20, 0.9)}
    rows = np.arange(20)
    together = Transitions.from_rows(X, rows, np.zeros(20), rows + 1, **columns)
    apart = Transitions(X[:-1], np.zeros(20), X[1:].copy(), **columns)
    for steps in (together, apart):
        store = SampleStore(30, lambda_=0.5, chunk_size=8)
        store.append(Batch.from_transitions(steps[:3]))
        for t in steps[3:]:
            store.append(Batch.from_transition(t))
        assert [chunk.n_rows(store.samples.count(c)) for c, chunk in enumerate(store.samples.chunks)] == [9, 9, 5]


def test_a_row_that_differs_in_one_value_or_follows_an_end_is_stored() -> None:
    X, X_next = sp.csr_array(np.eye(4)), sp.csr_array(np.diag([1.0, 2.0, 1.0, 1.0])[[1, 2, 3, 0]])
    steps = Transitions(X, np.zeros(4), X_next, discounts=[0.9, 0.9, 0.0, 0.9], trace_discounts=np.zeros(4))
    store = SampleStore(4, lambda_=0.5, chunk_size=8)
    store.append(Batch.from_transitions(steps))
    chunk = store.samples.chunks[0]
    assert chunk.row[:4].tolist() == [0, 2, 3, 4]
    assert chunk.next_row[:4].tolist() == [1, 3, -1, 5]


def test_features_of_a_terminal_state_are_not_seen() -> None:
    steps = Transitions(
        sp.csr_array(np.eye(3)[:1]), [1.0], sp.csr_array(np.eye(3)[1:2]), discounts=[0.0], trace_discounts=[0.0]
    )
    store = SampleStore(3, lambda_=0.5)
    store.append(Batch.from_transitions(steps))
    assert store.ids.tolist() == [0]


@pytest.mark.parametrize("n_samples", [2 * CHUNK_SIZE, 25_000])
def test_bytes_of_a_trajectory_of_binary_tiles(n_samples: int) -> None:
    nnz = 10
    rng = np.random.default_rng(2)
    indices = (np.arange(0, 1000, 100) + rng.integers(0, 100, (n_samples + 1, nnz))).ravel()
    X = sp.csr_array((np.ones(indices.size), indices, np.arange(0, indices.size + 1, nnz)), shape=(n_samples + 1, 1000))
    rows, discounts = np.arange(n_samples), np.full(n_samples, 0.9)
    steps = Transitions.from_rows(
        X, rows, rng.random(n_samples), rows + 1, discounts=discounts, trace_discounts=discounts
    )
    store, separate = SampleStore(1000, lambda_=0.5), SampleStore(1000, lambda_=0.5)
    store.append(Batch.from_transitions(steps))
    assert store.nbytes <= (4 * nnz + 40) * n_samples
    separate.append(
        Batch.from_transitions(
            Transitions(X[:-1], steps.rewards, X[:-1][::-1], discounts=discounts, trace_discounts=discounts)
        )
    )
    assert separate.nbytes <= (2 * (4 * nnz + 4) + 36) * n_samples
    small = SampleStore(1000, lambda_=0.5)
    for t in steps[:100]:
        small.append(Batch.from_transition(t))
    assert small.nbytes <= 1.3 * (4 * nnz + 40) * 100
    for t in steps[100:3000]:
        small.append(Batch.from_transition(t))
    assert small.nbytes <= 1.13 * (4 * nnz + 40) * 3000


def test_chunks_are_small_where_rows_are_dense_or_forgotten() -> None:
    rng = np.random.default_rng(3)
    wide = SampleStore(8192, lambda_=0.5)
    X = rng.random((3, 8192))
    wide.append(
        Batch.from_transitions(Transitions(X, np.zeros(3), X, discounts=np.ones(3), trace_discounts=np.ones(3)))
    )
    assert wide.samples.chunk_size == 32
    forgetful = SampleStore(10, lambda_=0.5, beta=0.5)
    assert forgetful.retention.window == 60
    assert forgetful.samples.chunk_size == 16


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize(
    "function", ["place_rows", "plan_sparse", "copy_sparse", "plan_dense", "copy_dense", "trace_factors", "_replace"]
)
def test_an_exception_anywhere_leaves_the_samples_as_they_were(
    kind: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    steps, other = random_steps(rng, 60, kind=kind, ratios=True), random_steps(rng, 60, n_features=30, kind=kind)
    plain, interrupted = (SampleStore(30, lambda_=0.5, beta=0.9, chunk_size=7) for _ in range(2))
    for calls in range(4):
        for store in (plain, interrupted):
            store.append(Batch.from_transitions(steps[10 * calls : 10 * calls + 10]))
        before = interrupted.samples
        with monkeypatch.context() as patched:
            _interrupt(patched, function, calls)
            try:
                interrupted.append(Batch.from_transitions(other[:50]))
            except KeyboardInterrupt:
                assert interrupted.samples is before
                _assert_same(interrupted, plain)
            else:
                return  # this function is not called for these samples
    for store in (plain, interrupted):
        store.append(Batch.from_transitions(steps[40:]))
    _assert_same(interrupted, plain)


def _interrupt(patched: pytest.MonkeyPatch, function: str, after: int) -> None:
    """Let the call number ``after`` of a function raise, after it has done its work."""
    owner: Any = type(SampleStore(3, lambda_=0.0).samples) if function == "_replace" else kernels
    original, count = getattr(owner, function), iter(range(10**6))

    def stopped(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        if next(count) == after:
            raise KeyboardInterrupt
        return result

    patched.setattr(owner, function, stopped)


def _assert_same(one: SampleStore, other: SampleStore) -> None:
    np.testing.assert_array_equal(one.ids, other.ids)
    first, second = (SampleOperator(s.samples, lambda_=0.5, beta=0.9) for s in (one, other))
    V = np.random.default_rng(0).standard_normal((first.n, 2))
    np.testing.assert_array_equal(first.matvec(V), second.matvec(V))
    np.testing.assert_array_equal(first.b(), second.b())


def _flat(state: State, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value.copy() if isinstance(value, np.ndarray) else value
    return flat


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("n_steps", [0, 1, 45])
@pytest.mark.parametrize("beta", [None, 0.9])
def test_restored_and_continued_it_is_the_same(kind: str, n_steps: int, beta: float | None) -> None:
    rng = np.random.default_rng(5)
    steps = random_steps(rng, 70, kind=kind, ratios=kind == "valued", n_targets=2)
    options: dict[str, Any] = {"lambda_": 0.5, "beta": beta, "n_targets": 2, "chunk_size": 8}
    store, twin = SampleStore(30, **options), SampleStore(30, **options)
    store.append(Batch.from_transitions(steps[:n_steps]))
    saved = Saved(_flat(store.state()))
    twin.restore(saved)
    saved.finish()
    for s in (store, twin):
        s.append(Batch.from_transitions(steps[n_steps:]))
    one, other = _flat(store.state()), _flat(twin.state())
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value, err_msg=name)


DAMAGES: dict[str, Any] = {
    "n_samples": [-1, 44, 46],
    "n_left": [-8, 8, 3, 45],
    "storage": ["none", "dense", "other"],
    "seen.ids": [np.arange(5), np.zeros(30, dtype=np.int64)],
    "border": [np.ones(31), np.ones((2, 2))],
    "shared": [np.ones(45, dtype=np.int64), np.full(45, 2), np.zeros(44, dtype=np.int64)],
    "lengths": [np.full(3, 5)],
    "positions": [np.zeros(4, dtype=np.int64)],
    "values": [np.zeros(4)],
    "X": [np.zeros((45, 30))],
    "rewards": [np.zeros((45, 1)), np.full((45, 2), np.nan)],
    "discounts": [np.full(45, 1.5), np.zeros(45)],
    "trace_discounts": [np.full(45, -0.5)],
    "rhos": [np.full(45, -1.0), np.ones(44)],
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_cannot_be_samples_is_refused(name: str) -> None:
    steps = random_steps(np.random.default_rng(6), 45, kind="valued", ratios=True, n_targets=2)
    store = SampleStore(30, lambda_=0.5, n_targets=2, chunk_size=8)
    store.append(Batch.from_transitions(steps))
    for damage in DAMAGES[name]:
        state = {**_flat(store.state()), name: damage}
        with pytest.raises(StateError):
            SampleStore(30, lambda_=0.5, n_targets=2, chunk_size=8).restore(Saved(state))
    state = _flat(store.state())
    for high in (len(store.ids), -1):
        state["positions"][3] = high
        with pytest.raises(StateError):
            SampleStore(30, lambda_=0.5, n_targets=2, chunk_size=8).restore(Saved(dict(state)))
