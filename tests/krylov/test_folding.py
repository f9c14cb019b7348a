"""Folded samples against sums that are written out: what is exact, and what is kept where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.krylov.literal_system import dense_rows, literal_system, random_steps
from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved
from tlstd.data.batch import Batch
from tlstd.data.transitions import Transitions
from tlstd.errors import StateError
from tlstd.krylov.arnoldi import KrylovPath
from tlstd.krylov.folding import BEYOND, LAST, Folding
from tlstd.krylov.kernels import products as kernels
from tlstd.krylov.operator import SampleOperator, constant_features, mean_square
from tlstd.krylov.samples import FoldedSamples, Samples, SampleStore

LAMBDA = 0.8
N = 24  # samples kept, at most


def store_of(
    *, dimension: int = 6, beta: float | None = None, n_targets: int = 1, chunk_size: int | None = 5
) -> SampleStore:
    def operator(samples: Samples) -> SampleOperator:
        return SampleOperator(samples, lambda_=LAMBDA, beta=beta, n_targets=n_targets)

    return SampleStore(
        30,
        lambda_=LAMBDA,
        beta=beta,
        n_targets=n_targets,
        chunk_size=chunk_size,
        max_samples=N,
        fold=Folding(operator, dimension),
    )


def operator_of(store: SampleStore) -> SampleOperator:
    return SampleOperator(store.samples, lambda_=LAMBDA, beta=store.beta, n_targets=store.n_targets)


def append(store: SampleStore, steps: Transitions) -> None:
    store.append(Batch.from_transitions(steps))


def old_of(store: SampleStore) -> FoldedSamples:
    assert store.samples.old is not None
    return store.samples.old


def old_matrix(store: SampleStore) -> FloatArray:
    """The kept matrix over all 30 features, from its definition."""
    old, ids = old_of(store), store.ids[: len(old_of(store).right)]
    A = np.zeros((30, 30))
    kept = old.left @ old.right.T + old.beyond * (np.eye(ids.size) - old.right @ old.right.T)
    A[np.ix_(ids, ids)] = kept
    return A


def wide(rows: FloatArray, ids: Any) -> FloatArray:
    """Rows of features seen as rows of all 30."""
    out = np.zeros((30, *rows.shape[1:]))
    out[ids[: rows.shape[0]]] = rows
    return out


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("beta", [None, 0.1])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_two_foldings_are_the_recursion_written_out(kind: str, beta: float | None, n_targets: int) -> None:
    """A' = (A_old + A_leaving) Q'Q'ᵀ + τ'(I - Q'Q'ᵀ), with ratios, ends, several chunks; b and the trace exact."""
    steps = random_steps(np.random.default_rng(0), 60, kind=kind, ratios=True, n_targets=n_targets, ends=0.05)
    store = store_of(beta=beta, n_targets=n_targets)
    size = store.fold_size
    assert size is not None
    A_old, now = np.zeros((30, 30)), 0
    for fold in range(3):
        append(store, steps[now : 2 * size + fold * size])
        now, left = 2 * size + fold * size, (fold + 1) * size
        samples, old, ids = store.samples, old_of(store), store.ids
        assert (samples.n_samples, samples.n_left, len(samples.chunks)) == (now, left, size // samples.chunk_size)
        # sums of the first ``left`` samples with their weights when sample ``left`` - 1 was the newest
        A_all, b_all = literal_system(steps[:left], LAMBDA, beta=beta)
        share = fold / (fold + 1) if beta is None else (1.0 - beta) ** size
        A_before = literal_system(steps[: left - size], LAMBDA, beta=beta)[0] if fold else np.zeros((30, 30))
        A = share * A_old + (A_all - share * A_before)
        Q = wide(old.right, ids)
        np.testing.assert_allclose(Q.T @ Q, np.eye(6 * n_targets), atol=1e-13)
        np.testing.assert_allclose(wide(old.left, ids), A @ Q, atol=1e-12)
        np.testing.assert_allclose(wide(old.b, ids), b_all, atol=1e-13)
        space = np.arange(6 * n_targets) % 6
        tau = BEYOND * np.mean([Q[:, j] @ A @ Q[:, j] for j in np.flatnonzero(space >= (1.0 - LAST) * 6)])
        assert old.beyond == pytest.approx(max(0.0, tau), abs=1e-13)
        z = np.zeros(30)
        for t, x in enumerate(dense_rows(steps.X)[:left]):
            z = steps.rhos[t] * (steps.trace_discounts[t] * LAMBDA * z + x)
        np.testing.assert_allclose(wide(samples.border, ids), z, atol=1e-13)
        X = dense_rows(steps.X)[:left]
        weights = np.ones(left) if beta is None else (1.0 - beta) ** np.arange(left - 1.0, -1.0, -1.0)
        assert old.square == pytest.approx(weights @ (X**2).sum(axis=1) / weights.sum(), rel=1e-12)
        if fold == 0:
            # exact on the basis: the system of all samples times Q
            A_T, b_T = literal_system(steps[:now], LAMBDA, beta=beta)
            V = Q[ids]
            np.testing.assert_allclose(operator_of(store).matvec(V), (A_T @ Q)[ids], atol=1e-13)
            np.testing.assert_allclose(operator_of(store).b(), b_T[ids], atol=1e-13)
        A_old = old_matrix(store)
    assert old_of(store).beyond > 0.0


def test_the_basis_is_that_of_the_whole_system_before_folding() -> None:
    steps = random_steps(np.random.default_rng(1), 40, kind="valued")
    store = store_of()
    size = store.fold_size
    assert size is not None
    append(store, steps[: 2 * size])
    A, b = literal_system(steps[: 2 * size], LAMBDA)
    path = KrylovPath(b[:, 0].copy())
    for _ in range(5):
        path.extend(A @ path.direction)
    np.testing.assert_allclose(np.abs(path.Q @ wide(old_of(store).right, store.ids)), np.eye(6), atol=1e-9)


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("beta", [None, 0.02])
def test_a_basis_as_large_as_the_features_loses_nothing(kind: str, beta: float | None) -> None:
    steps = random_steps(np.random.default_rng(2), 200, kind=kind, ratios=True, n_targets=2)
    store = store_of(dimension=15, beta=beta, n_targets=2)  # two targets: 30 vectors
    append(store, steps)
    assert store.samples.n_kept < N
    A, b = literal_system(steps, LAMBDA, beta=beta)
    ids, operator = store.ids, operator_of(store)
    np.testing.assert_allclose(operator.toarray(), A[np.ix_(ids, ids)], atol=1e-13)
    np.testing.assert_allclose(operator.b(), b[ids], atol=1e-13)


def test_while_there_is_no_reward_samples_are_known_on_the_space_of_another() -> None:
    steps = random_steps(np.random.default_rng(3), 30, kind="valued")
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
    store = store_of()
    append(store, Transitions(steps.X, np.zeros(30), steps.X_next, **columns))
    size = store.fold_size
    assert size is not None
    append(ones := store_of(), Transitions(steps.X, np.ones(30), steps.X_next, **columns))
    Q, same = old_of(store).right, old_of(ones).right
    np.testing.assert_allclose(np.abs(Q.T @ same), np.eye(6), atol=1e-9)
    assert (old_of(store).b == 0.0).all()


def test_constant_features_are_constant_over_all_samples() -> None:
    steps = random_steps(np.random.default_rng(4), 60, kind="valued")
    X = dense_rows(steps.X)
    X[:, 3], X[:, 5], X[:, 7] = 2.0, 1.0, 1.0
    X[0, 5], X[50, 7] = 3.0, 0.0
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
    store = store_of()
    append(store, Transitions(X, steps.rewards, X, **columns))
    assert store.samples.n_left > 0
    operator = operator_of(store)
    assert store.ids[constant_features(operator.samples) != 0.0].tolist() == [3]
    assert mean_square(operator.samples, operator.weights) == pytest.approx((X**2).sum(axis=1).mean(), rel=1e-13)


@pytest.mark.parametrize("cuts", [[1] * 100, [37, 63], [100]])
def test_when_samples_leave_depends_on_their_number_alone(cuts: list[int]) -> None:
    steps = random_steps(np.random.default_rng(5), 100, kind="binary")
    plain, cut = store_of(), store_of()
    append(plain, steps)
    start = 0
    for length in cuts:
        append(cut, steps[start : start + length])
        operator_of(cut).b()
        start += length
    for a, b in zip(old_of(plain), old_of(cut), strict=True):
        np.testing.assert_array_equal(a, b)
    assert plain.samples.n_left == cut.samples.n_left


def test_sizes() -> None:
    for max_samples, chunk_size, chunk, half in (
        (2, None, 1, 1),
        (9, None, 4, 4),
        (24, 5, 4, 12),
        (10**5, None, 3846, 49998),
    ):
        store = SampleStore(5, lambda_=0.5, max_samples=max_samples, chunk_size=chunk_size)
        assert (store.samples.chunk_size, store.fold_size) == (chunk, half)
    assert SampleStore(5, lambda_=0.5).fold_size is None
    assert SampleStore(5, lambda_=0.5, beta=0.5, max_samples=60).fold_size == 30
    forgotten_before = SampleStore(5, lambda_=0.5, beta=0.5, max_samples=61)
    assert forgotten_before.fold_size is None


@pytest.mark.parametrize("function", ["follow_back", "trace_factors", "differences", "_replace"])
def test_an_interrupted_folding_leaves_the_samples_as_they_were(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = random_steps(np.random.default_rng(6), 100)
    plain, interrupted = store_of(), store_of()
    for store in (plain, interrupted):
        append(store, steps[:30])
    before = interrupted.samples
    owner: Any = Samples if function == "_replace" else kernels
    original = getattr(owner, function)
    for after in range(40):
        count = iter(range(10**6))

        def stopped(*args: Any, count: Any = count, after: int = after, **options: Any) -> Any:
            result = original(*args, **options)
            if next(count) == after:
                raise KeyboardInterrupt
            return result

        with monkeypatch.context() as patched:
            patched.setattr(owner, function, stopped)
            try:
                append(interrupted, steps[30:90])
            except KeyboardInterrupt:
                assert interrupted.samples is before
            else:
                break
    else:
        append(interrupted, steps[30:90])
    append(plain, steps[30:90])
    for store in (plain, interrupted):
        append(store, steps[90:])
    for a, b in zip(old_of(plain), old_of(interrupted), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(operator_of(plain).toarray(), operator_of(interrupted).toarray())


def saved_values(store: SampleStore) -> dict[str, Any]:
    saved = Saved.of(store.state())
    return {name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in saved._values.items()}


@pytest.mark.parametrize("n_steps", [23, 24, 60])
@pytest.mark.parametrize("beta", [None, 0.1])
def test_restored_and_continued_it_is_the_same(n_steps: int, beta: float | None) -> None:
    steps = random_steps(np.random.default_rng(7), 100, kind="valued", ratios=True, n_targets=2)
    store, twin = store_of(beta=beta, n_targets=2), store_of(beta=beta, n_targets=2)
    append(store, steps[:n_steps])
    saved = Saved(saved_values(store))
    twin.restore(saved)
    saved.finish()
    for s in (store, twin):
        append(s, steps[n_steps:])
    one, other = saved_values(store), saved_values(twin)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value, err_msg=name)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("n_left", 4),
        ("n_left", 60),
        ("n_left", 0),
        ("old.left", np.zeros((30, 5))),
        ("old.left", np.full((30, 6), np.nan)),
        ("old.right", np.zeros((31, 6))),
        ("old.right", np.full((30, 6), 3.0)),
        ("old.beyond", -1.0),
        ("old.beyond", None),
        ("old.b", np.zeros((30, 2))),
        ("old.square", -1.0),
        ("old.constant", np.zeros(29)),
    ],
)
def test_what_cannot_have_been_folded_is_refused(name: str, damage: Any) -> None:
    store = store_of()
    append(store, random_steps(np.random.default_rng(8), 70, kind="valued"))
    with pytest.raises(StateError):
        store_of().restore(Saved(saved_values(store) | {name: damage}))
