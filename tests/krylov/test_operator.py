"""The operator and its adjoint against sums that are written out."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.krylov.literal_system import dense_rows, literal_system, random_steps, seen_features
from tlstd.data.batch import Batch
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError
from tlstd.krylov.operator import HeldOut, SampleOperator, constant_features, mean_square
from tlstd.krylov.samples import FoldedSamples, SampleStore

LAMBDA = 0.8


def stored(steps: Transitions, *, beta: float | None = None, chunk_size: int | None = 7) -> SampleStore:
    store = SampleStore(steps.n_features, lambda_=LAMBDA, beta=beta, n_targets=steps.n_targets, chunk_size=chunk_size)
    for start in (0, 1, 12):  # one sample, some, the rest
        store.append(Batch.from_transitions(steps[start : {0: 1, 1: 12}.get(start, len(steps))]))
    return store


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("ratios", [False, True])
@pytest.mark.parametrize("beta", [None, 0.05])
@pytest.mark.parametrize("separate", [False, True])
def test_products_are_those_of_the_matrix(kind: str, ratios: bool, beta: float | None, separate: bool) -> None:
    rng = np.random.default_rng(1)
    steps = random_steps(rng, 60, kind=kind, ratios=ratios, n_targets=2, separate=separate)
    store = stored(steps, beta=beta)
    operator = SampleOperator(store.samples, lambda_=LAMBDA, beta=beta, n_targets=2)
    A, b = literal_system(steps, LAMBDA, beta=beta)
    ids = store.ids
    assert sorted(ids) == list(seen_features(steps))
    A, b = A[np.ix_(ids, ids)], b[ids]
    scale = np.abs(A).max()
    assert np.abs(operator.toarray() - A).max() < 1e-14 * scale
    assert np.abs(operator.b() - b).max() < 1e-14 * np.abs(b).max()
    for k in (1, 2, 3, 8, 11):
        V = rng.standard_normal((operator.n, k))
        limit = 1e-13 * scale * np.abs(V).sum(axis=0).max()
        assert np.abs(operator.matvec(V) - A @ V).max() < limit
        assert np.abs(operator.rmatvec(V) - A.T @ V).max() < limit
    v = rng.standard_normal(operator.n)
    values = np.empty((len(steps), 1))
    product = operator.matvec(v, values=values)
    X = dense_rows(steps.X)
    np.testing.assert_array_equal(product, operator.matvec(v))
    np.testing.assert_allclose(values[:, 0], X[:, ids] @ v, atol=1e-13)
    assert product.shape == operator.rmatvec(v).shape == (operator.n,)


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("beta", [None, 0.05])
def test_systems_of_folds_are_those_without_their_samples(kind: str, beta: float | None) -> None:
    rng = np.random.default_rng(2)
    steps = random_steps(rng, 50, kind=kind, ratios=True, n_targets=2)
    store = stored(steps, beta=beta)
    fold, cut = rng.integers(0, 3, 50).astype(np.int16), rng.random(50) < 0.2
    operator = SampleOperator(store.samples, lambda_=LAMBDA, beta=beta, n_targets=2, folds=HeldOut(fold, cut))
    systems, ids = np.array([2, 0, -1, 1], dtype=np.int16), store.ids
    V = rng.standard_normal((operator.n, 4))
    products, adjoints, b = (
        operator.matvec(V, systems=systems),
        operator.rmatvec(V, systems=systems),
        operator.b(systems=systems),
    )
    for c, number in enumerate(systems):
        A, right = literal_system(steps, LAMBDA, beta=beta, fold=fold, number=int(number), cut=cut)
        A = A[np.ix_(ids, ids)]
        np.testing.assert_allclose(products[:, c], A @ V[:, c], atol=1e-12)
        np.testing.assert_allclose(adjoints[:, c], A.T @ V[:, c], atol=1e-12)
        for target in range(2):
            np.testing.assert_allclose(b[:, 4 * target + c], right[ids, target], atol=1e-12)


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
def test_the_trace_of_samples_that_left_stays(kind: str) -> None:
    rng = np.random.default_rng(3)
    steps = random_steps(rng, 40, kind=kind, ratios=True, ends=0.02)
    store = stored(steps)
    for _ in range(2):  # at once and one after the other: the trace goes through both
        store._samples = store.samples.without(1, LAMBDA)
    assert store.samples.n_left == 14
    operator = SampleOperator(store.samples, lambda_=LAMBDA)
    A, b = literal_system(steps, LAMBDA, first=14)
    ids, v = store.ids, rng.standard_normal(store.samples.n)
    A = A[np.ix_(ids, ids)]
    np.testing.assert_allclose(operator.matvec(v), A @ v, atol=1e-13)
    np.testing.assert_allclose(operator.rmatvec(v), A.T @ v, atol=1e-13)
    np.testing.assert_allclose(operator.b(), b[ids], atol=1e-13)
    assert np.abs(store.samples.border).max() > 0.1


def test_forgotten_samples_leave_without_a_difference() -> None:
    rng = np.random.default_rng(4)
    steps = random_steps(rng, 900, kind="valued", ratios=True)
    store = SampleStore(30, lambda_=LAMBDA, beta=0.1)
    for start in range(0, 900, 130):
        store.append(Batch.from_transitions(steps[start : start + 130]))
    assert store.retention.window is not None
    assert store.retention.window <= store.samples.n_kept < 1.5 * store.retention.window < 900
    operator = SampleOperator(store.samples, lambda_=LAMBDA, beta=0.1)
    A, b = literal_system(steps, LAMBDA, beta=0.1)
    np.testing.assert_allclose(operator.toarray(), A[np.ix_(store.ids, store.ids)], atol=1e-14)
    np.testing.assert_allclose(operator.b(), b[store.ids], atol=1e-14)
    at_once = SampleStore(30, lambda_=LAMBDA, beta=0.1)
    at_once.append(Batch.from_transitions(steps))
    np.testing.assert_array_equal(at_once.samples.border, store.samples.border)


def test_products_are_the_same_to_the_bit_however_samples_came() -> None:
    rng = np.random.default_rng(5)
    for kind in ("binary", "valued", "dense"):
        steps = random_steps(rng, 60, kind=kind)
        one, many = stored(steps), SampleStore(30, lambda_=LAMBDA, chunk_size=7)
        many.append(Batch.from_transitions(steps))
        V = rng.standard_normal((one.samples.n, 3))
        first, second = (SampleOperator(s.samples, lambda_=LAMBDA) for s in (one, many))
        np.testing.assert_array_equal(one.ids, many.ids)
        np.testing.assert_array_equal(first.matvec(V), second.matvec(V))


def test_an_operator_is_a_snapshot() -> None:
    steps = random_steps(np.random.default_rng(6), 60)
    store = stored(steps[:30])
    operator = SampleOperator(store.samples, lambda_=LAMBDA)
    v = np.ones(operator.n)
    before = operator.matvec(v)
    store.append(Batch.from_transitions(steps[30:]))
    np.testing.assert_array_equal(operator.matvec(v), before)


@pytest.mark.parametrize("beta", [None, 0.05])
@pytest.mark.parametrize("beyond", [0.0, 0.7])
def test_shift_and_old_part_are_added(beta: float | None, beyond: float) -> None:
    """The old part with the weight that its samples have now, in the systems of folds too."""
    rng = np.random.default_rng(7)
    store = stored(random_steps(rng, 30), beta=beta)
    store._samples = store.samples.without(2, LAMBDA)
    samples = store.samples
    plain = SampleOperator(samples, lambda_=LAMBDA, beta=beta)
    n, rows = plain.n, plain.n - 3
    left, right = rng.standard_normal((rows, 2)), np.linalg.qr(rng.standard_normal((rows, 2)))[0]
    old = FoldedSamples(left, right, beyond, rng.standard_normal((rows, 1)), 1.0, np.zeros(rows))
    shift = rng.random(n)
    share = 14 / 30 if beta is None else (1.0 - beta) ** 16
    A_old, b_old = np.zeros((n, n)), np.zeros((n, 1))
    A_old[:rows, :rows] = share * (left @ right.T + beyond * (np.eye(rows) - right @ right.T))
    b_old[:rows] = share * old.b
    operator = SampleOperator(samples._replace(old=old), lambda_=LAMBDA, beta=beta, shift=shift)
    A = plain.toarray() + A_old + np.diag(shift)
    V = rng.standard_normal((n, 2))
    np.testing.assert_allclose(operator.matvec(V), A @ V, atol=1e-13)
    np.testing.assert_allclose(operator.rmatvec(V), A.T @ V, atol=1e-13)
    np.testing.assert_allclose(operator.b(), plain.b() + b_old, atol=1e-13)

    fold, systems = np.arange(16) % 2, np.array([1, -1], dtype=np.int16)
    folds = HeldOut(fold, np.zeros(16, dtype=np.bool_))
    without = SampleOperator(samples, lambda_=LAMBDA, beta=beta, folds=folds)
    operator = SampleOperator(samples._replace(old=old), lambda_=LAMBDA, beta=beta, folds=folds)
    weights = np.full(30, 1 / 30) if beta is None else beta * (1.0 - beta) ** np.arange(29.0, -1.0, -1.0)
    lost = weights[14:][fold == 1].sum()
    # without an old part the kept samples are scaled to the weight of all kept ones, here to that of all 30
    scales = weights.sum() / (weights.sum() - np.array([lost, 0.0]))
    before = weights[14:].sum() / (weights[14:].sum() - np.array([lost, 0.0]))
    for product, literal in (
        (operator.matvec(V, systems=systems), without.matvec(V, systems=systems) / before + A_old @ V),
        (operator.rmatvec(V, systems=systems), without.rmatvec(V, systems=systems) / before + A_old.T @ V),
        (operator.b(systems=systems), without.b(systems=systems) / before + b_old),
    ):
        np.testing.assert_allclose(product, scales * literal, atol=1e-13)


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("beta", [None, 0.05])
def test_mean_square_and_constant_features(kind: str, beta: float | None) -> None:
    steps = random_steps(np.random.default_rng(8), 40, kind=kind)
    X = dense_rows(steps.X)
    X[:, 3], X[:, 5], X[:, 6] = 2.5, 1.0, 1.0
    X[17, 6] = 0.5
    X[:, 8] = 0.0
    form = np.asarray if kind == "dense" else sp.csr_array
    steps = Transitions(
        form(X), steps.rewards, steps.X_next, discounts=steps.discounts, trace_discounts=steps.trace_discounts
    )
    store = stored(steps, beta=beta)
    operator = SampleOperator(store.samples, lambda_=LAMBDA, beta=beta)
    weights = np.full(40, 1.0) if beta is None else (1.0 - beta) ** np.arange(39.0, -1.0, -1.0)
    assert mean_square(operator.samples, operator.weights) == pytest.approx(
        weights @ (X**2).sum(axis=1) / weights.sum(), rel=1e-14
    )
    constant = constant_features(operator.samples)
    assert dict(zip(store.ids[constant != 0.0], constant[constant != 0.0], strict=True)) == {3: 2.5, 5: 1.0}


def test_no_samples() -> None:
    operator = SampleOperator(SampleStore(5, lambda_=0.5).samples, lambda_=0.5)
    assert operator.shape == (0, 0)
    assert operator.matvec(np.zeros((0, 2))).shape == (0, 2)
    assert operator.b().shape == (0, 1)
    assert mean_square(operator.samples, operator.weights) == 0.0
    assert constant_features(operator.samples).shape == (0,)


def test_misuse_is_refused() -> None:
    store = stored(random_steps(np.random.default_rng(9), 20))
    operator = SampleOperator(store.samples, lambda_=LAMBDA)
    with pytest.raises(InvalidInputError, match="they need"):
        operator.matvec(np.ones(operator.n + 1))
    with pytest.raises(InvalidInputError, match="systems"):
        operator.matvec(np.ones(operator.n), systems=np.zeros(1, dtype=np.int16))
    fold, cut = np.zeros(20, dtype=np.int16), np.zeros(20, dtype=np.bool_)
    with pytest.raises(InvalidInputError, match="systems"):
        SampleOperator(store.samples, lambda_=LAMBDA, folds=HeldOut(fold, cut)).matvec(np.ones(operator.n))
    for bad in (HeldOut(fold[1:], cut), HeldOut(fold, cut[1:]), HeldOut(fold - 1, cut)):
        with pytest.raises(InvalidInputError, match="folds"):
            SampleOperator(store.samples, lambda_=LAMBDA, folds=bad)
