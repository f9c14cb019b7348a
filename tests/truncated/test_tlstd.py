"""t-LSTD without truncation is batch LSTD; with truncation it is the corrected dense algorithm of the paper."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from tlstd_lab.reference import ReferenceTLSTD

from tests.helpers import (
    batch_lstd,
    dense,
    interrupted_everywhere,
    lstd_by_products,
    lstd_systems,
    pairwise,
    random_transitions,
)
from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import CapacityError, InvalidInputError
from tlstd.estimators.loading import load
from tlstd.truncated import buffer
from tlstd.truncated.tlstd import TLSTD
from tlstd.zoo.atd import ATD

EPS = float(np.finfo(float).eps)


# --- full rank = batch LSTD -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One random stream and one way to learn from it."""

    seed: int
    n_features: int
    n_steps: int
    buffer_size: int | None
    lambda_: float
    beta: float | None
    n_targets: int
    off_policy: bool
    sparse: bool
    density: float

    def transitions(self) -> Transitions:
        return random_transitions(
            np.random.default_rng(self.seed),
            n_features=self.n_features,
            n_steps=self.n_steps,
            density=self.density,
            n_targets=self.n_targets,
            off_policy=self.off_policy,
            sparse=self.sparse,
        )

    def model(self, **changes: Any) -> TLSTD:
        options: dict[str, Any] = {
            "lambda_": self.lambda_,
            "beta": self.beta,
            "n_targets": self.n_targets,
            "buffer_size": self.buffer_size,
            "rcond": 1e-14,
        }
        return TLSTD(self.n_features, self.n_features, **{**options, **changes})


def small_cases() -> list[Case]:
    """64 streams, everything about them drawn independently but the buffer's size."""
    rng = np.random.default_rng(2016)
    cases = []
    for seed in range(64):
        d = int(rng.integers(2, 42))
        cases.append(
            Case(
                seed=seed,
                n_features=d,
                n_steps=int(d * rng.integers(5, 9)),
                buffer_size=(1, 3, d, None)[seed % 4],
                lambda_=float(rng.choice([0.0, 0.5, 1.0])),
                beta=2.0 / (5 * d) if rng.random() < 0.5 else None,
                n_targets=int(rng.choice([1, 3])),
                off_policy=bool(rng.random() < 0.5),
                sparse=bool(rng.random() < 0.5),
                density=1.0 if rng.random() < 0.35 else float(rng.uniform(2.0, 5.0)) / max(d, 6),
            )
        )
    return cases


def as_dense(X: Any) -> FloatArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def assert_equals_batch(model: TLSTD, steps: Transitions, A: FloatArray, b: FloatArray) -> None:
    """Predictions as those of a dense solution, to 1e-9 relative (100·cond·ε if A is ill-conditioned)."""
    X = as_dense(steps.X)
    used = np.flatnonzero(A.any(axis=0) | A.any(axis=1))  # a feature never seen has no equation
    sigma = np.linalg.svd(A[np.ix_(used, used)], compute_uv=False)
    condition = sigma[0] / sigma[-1]
    tolerance = 1e-9 if condition <= 1e5 else 100.0 * condition * EPS
    if tolerance > 0.1:
        return  # numerically singular: there is no solution to compare with
    w = np.zeros_like(b)
    w[used] = scipy.linalg.solve(A[np.ix_(used, used)], b[used])
    expected = X @ w
    actual = model.predict(X).reshape(expected.shape)
    assert np.abs(actual - expected).max() <= tolerance * np.abs(expected).max(), f"condition {condition:.1e}"


@pytest.mark.parametrize("case", small_cases(), ids=lambda case: f"{case.seed}-d{case.n_features}-k{case.buffer_size}")
def test_full_rank_is_batch_lstd(case: Case) -> None:
    steps = case.transitions()
    model = case.model()
    cuts = [0, case.n_steps // 2 + 1, case.n_steps - 2, case.n_steps]  # the first two mostly lie in mid-buffer
    systems = lstd_systems(steps, case.lambda_, beta=case.beta)
    for start, stop in itertools.pairwise(cuts):
        model.update_many(steps[start:stop])
        A, b = next(itertools.islice(systems, stop - start - 1, None))  # after ``stop`` of the steps
        assert_equals_batch(model, steps[:stop], A, b)


def test_enough_of_the_streams_are_comparable() -> None:
    """The comparison above is not passed over: nearly all final systems are well conditioned."""
    comparable = 0
    for case in small_cases():
        steps = case.transitions()
        A, _ = lstd_by_products(steps, case.lambda_, beta=case.beta)
        comparable += bool(np.linalg.cond(A) < 1e5)
    assert comparable >= 55


@pytest.mark.parametrize(
    ("n_features", "density", "lambda_", "buffer_size"),
    [
        (300, 0.03, 0.5, None),
        (300, 1.0, 1.0, 300),
        pytest.param(2000, 0.005, 0.5, None, marks=pytest.mark.long),
        pytest.param(2000, 1.0, 0.0, None, marks=pytest.mark.long),
    ],
)
def test_full_rank_is_batch_lstd_when_large(
    n_features: int, density: float, lambda_: float, buffer_size: int | None
) -> None:
    case = Case(1, n_features, 5 * n_features + 7, buffer_size, lambda_, None, 1, True, density < 1.0, density)
    steps = case.transitions()
    model = case.model()
    model.update_many(steps)
    assert_equals_batch(model, steps, *lstd_by_products(steps, lambda_))


def test_replacing_traces_are_batch_lstd() -> None:
    for seed, (buffer_size, off_policy) in enumerate([(1, False), (3, True), (7, True), (None, False)]):
        steps = random_transitions(
            np.random.default_rng(seed), n_features=20, n_steps=200, density=0.2, off_policy=off_policy, gamma=0.95
        )
        model = TLSTD(20, 20, lambda_=0.9, buffer_size=buffer_size, rcond=1e-14, trace="replacing")
        for start in range(0, 200, 37):
            model.update_many(steps[start : start + 37])
        A, b = batch_lstd(steps, 0.9, replacing=True)
        assert_equals_batch(model, steps, A, b)


def test_replacing_trace_survives_long_decay() -> None:
    """The lazily scaled trace is rescaled many times over 3,000 steps of decay 0.5 without a reset."""
    rng = np.random.default_rng(0)
    n = 3000
    X = sp.csr_array((np.ones(n), rng.integers(0, 15, n), np.arange(n + 1)), shape=(n, 15))
    steps = Transitions.from_rows(
        X, np.arange(n - 1), rng.standard_normal(n - 1), np.arange(1, n), discounts=[0.5] * (n - 1),
        trace_discounts=[0.5] * (n - 1),
    )  # fmt: skip
    model = TLSTD(15, 15, lambda_=1.0, rcond=1e-14, trace="replacing")
    model.update_many(steps)
    A, b = batch_lstd(steps, 1.0, replacing=True)
    assert_equals_batch(model, steps, A, b)


def test_one_update_by_hand() -> None:
    """x=(1,0) → (0,1), r=2, γ=½, then (0,1) → end, r=3: A = [[1,-½],[0,1]]+λγ.., w solves Bellman's equations."""
    model = TLSTD(2, 2, lambda_=0.0)
    model.update(Transition([1.0, 0.0], 2.0, [0.0, 1.0], discount=0.5, trace_discount=0.0))
    # A = [1, 0]ᵀ[1, -½], b = [2, 0]: the least-norm solution of w₀ - ½ w₁ = 2
    np.testing.assert_allclose(model.weights, [1.6, -0.8], rtol=1e-14)
    np.testing.assert_allclose(model.singular_values, [np.sqrt(1.25)], rtol=1e-14)
    model.update(Transition([0.0, 1.0], 3.0, [0.0, 0.0], discount=0.0, trace_discount=0.5))
    np.testing.assert_allclose(model.weights, [3.5, 3.0], rtol=1e-14)


def test_forgetting_by_hand() -> None:
    """One feature, γ=0: w is the exponentially weighted mean of the rewards, Σβ(1-β)^{T-t}r / Σβ(1-β)^{T-t}."""
    model = TLSTD(1, 1, lambda_=0.5, beta=0.25)
    for reward in (4.0, 8.0, 0.0):
        model.update(Transition([1.0], reward, [1.0], discount=0.0, trace_discount=0.0))
    weights = np.array([0.75**2, 0.75, 1.0])
    assert model.predict([2.0]) == pytest.approx(2.0 * (weights @ [4.0, 8.0, 0.0]) / weights.sum(), rel=1e-14)


# --- truncated = the corrected dense algorithm ------------------------------------------------------------------------


def gapped_stream(seed: int, *, n_features: int, n_steps: int, rank: int, sparse: bool) -> Transitions:
    """Features whose LSTD matrix has about ``rank`` large singular values and a floor well below them."""
    rng = np.random.default_rng(seed)
    if sparse:
        # each step switches on one of `rank` patterns of four features (on both ends of the step) and a rare feature
        patterns = rng.permutation(n_features)[: 4 * rank].reshape(rank, 4)
        X = np.zeros((n_steps + 1, n_features))
        which = rng.integers(0, rank, n_steps + 1)
        X[np.arange(n_steps + 1)[:, None], patterns[which]] = rng.uniform(0.8, 1.2, (n_steps + 1, 4))
        X[np.arange(n_steps + 1), rng.integers(0, n_features, n_steps + 1)] += 0.1
    else:
        basis = np.linalg.qr(rng.standard_normal((n_features, rank)))[0] * np.linspace(2.0, 1.0, rank)
        X = rng.standard_normal((n_steps + 1, rank)) @ basis.T + 0.02 * rng.standard_normal((n_steps + 1, n_features))
    rewards = X[:-1] @ rng.standard_normal(n_features) + 0.1 * rng.standard_normal(n_steps)
    matrix = sp.csr_array(X) if sparse else X
    terminated = rng.random(n_steps) < 0.02
    truncated = rng.random(n_steps) < 0.02
    return Transitions.from_arrays(
        matrix[:-1], rewards, matrix[1:], terminated=terminated, truncated=truncated, gamma=0.3
    )


@pytest.mark.parametrize(
    ("sparse", "every_step", "lambda_", "beta"), pairwise((False, True), (False, True), (0.0, 0.8), (None, 0.005))
)
def test_truncated_is_the_corrected_reference(
    sparse: bool, lambda_: float, beta: float | None, every_step: bool
) -> None:
    d, rank, n_truncations = (120, 8, 24) if sparse else (50, 6, 24)
    steps = gapped_stream(3, n_features=d, n_steps=rank * (n_truncations + 1), rank=rank, sparse=sparse)
    options: dict[str, Any] = {"lambda_": lambda_, "beta": beta, "rcond": 1e-6}
    model = TLSTD(d, rank, buffer_size=rank, **options)
    reference = ReferenceTLSTD(d, rank, mini_batch=not every_step, **options)
    worst = 0.0
    for i, t in enumerate(steps):
        model.update(t)
        reference.update(
            dense(t.x),
            float(t.reward),
            dense(t.x_next),
            discount=t.discount,
            trace_discount=t.trace_discount,
            rho=t.rho,
        )
        if every_step or (i + 1) % rank == 0:
            w = reference.weights
            worst = max(worst, float(np.abs(model.weights - w).max() / max(np.abs(w).max(), 1e-12)))
    gaps = reference.truncation_gaps
    assert len(gaps) >= 20
    assert sum(np.isfinite(gaps)) >= 20, "nothing was truncated"
    assert min(gaps) >= 1.01, f"the comparison needs a gap: {min(gaps)}"
    assert worst < 1e-8
    np.testing.assert_allclose(model.singular_values, reference.singular_values[:rank], rtol=1e-9)


def ids(model: TLSTD) -> Any:
    return model._system.seen.ids


# --- the printed algorithms fail these same tests ---------------------------------------------------------------------


@pytest.mark.parametrize("mini_batch", [True, False])
def test_printed_algorithm_is_not_batch_lstd(mini_batch: bool) -> None:
    case = Case(0, 12, 120, None, 0.5, None, 1, False, False, 1.0)
    steps = case.transitions()
    printed = ReferenceTLSTD(12, 12, lambda_=0.5, mini_batch=mini_batch, rcond=0.0, as_printed=True)
    corrected = ReferenceTLSTD(12, 12, lambda_=0.5, mini_batch=mini_batch, rcond=0.0)
    for t in steps:
        for reference in (printed, corrected):
            reference.update(
                dense(t.x), float(t.reward), dense(t.x_next), discount=t.discount, trace_discount=t.trace_discount
            )
    A, b = batch_lstd(steps, 0.5)
    w = scipy.linalg.solve(A, b)[:, 0]
    assert np.abs(corrected.weights - w).max() < 1e-9 * np.abs(w).max()
    assert np.abs(printed.weights - w).max() > 0.5 * np.abs(w).max()


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_a_read_inverts_at_most_rank_singular_values(density: float) -> None:
    """Between compressions the core has more than ``rank`` directions; inverting them all would blow the weights up."""
    steps = random_transitions(np.random.default_rng(1), n_features=40, n_steps=130, density=density)
    model = TLSTD(40, 5, lambda_=0.5, buffer_size=25, rcond=0.0)
    model.update_many(steps)
    assert model._system.buffer.count == 5
    assert model._system.core().sigma.size > 5
    assert model.singular_values.size == 5
    solution = model._read()
    rank_of_weights = np.linalg.matrix_rank(np.linalg.pinv(reconstructed(model), rcond=1e-12))
    assert rank_of_weights > 5
    # w = Σ_{i<=5} v_i (u_iᵀb)/σ_i of the reconstructed matrix
    A = reconstructed(model)
    U, sigma, Vt = np.linalg.svd(A)
    _, b = batch_lstd(steps, 0.5)
    b = b[ids(model)]
    expected = Vt[:5].T @ ((U[:, :5].T @ b) / sigma[:5, None])
    assert solution is not None
    np.testing.assert_allclose(solution.weights(), expected, rtol=1e-8, atol=1e-10)


def reconstructed(model: TLSTD) -> FloatArray:
    """The matrix A that the model stands for at this moment, over the features seen."""
    core = model._system.core()
    left, right = core.left.expand(core.L), core.right.expand(core.Rt.T)
    product: FloatArray = (left * core.sigma) @ right.T
    return product


def test_cut_off_leaves_small_singular_values_alone() -> None:
    x = np.eye(2)
    for rcond, expected in ((1e-4, [1.0, 0.0]), (1e-7, [1.0, 5e3])):  # σ = ½ and ½·10⁻⁶
        model = TLSTD(2, 2, lambda_=0.0, rcond=rcond)
        model.update(Transition(x[0], 1.0, x[0], discount=0.0, trace_discount=0.0))
        model.update(Transition(1e-3 * x[1], 5.0, x[1], discount=0.0, trace_discount=0.0))
        np.testing.assert_allclose(model.weights, expected, rtol=1e-12)


def test_features_enter_in_order_of_appearance() -> None:
    model = TLSTD(2**40, 3, lambda_=0.5)
    far = [2**39 + 7, 5, 2**40 - 1]
    for a, b in ((0, 1), (1, 2)):
        x, x_next = (SparseVector([far[i]], [1.0], 2**40) for i in (a, b))
        model.update(Transition(x, 1.0, x_next, discount=0.5, trace_discount=0.5))
    assert model.n_seen == 3
    assert ids(model).tolist() == far
    with pytest.raises(CapacityError, match="sparse_weights"):
        _ = model.weights
    assert model.sparse_weights.indices.tolist() == sorted(far)
    assert model.predict(SparseVector([3], [1.0], 2**40)) == 0.0  # never seen
    assert model.predict(SparseVector([3, 5], [1.0, 1.0], 2**40)) == pytest.approx(
        float(model.sparse_weights.values[0]), rel=1e-12
    )


def test_replacing_traces_refuse_dense_features() -> None:
    model = TLSTD(10, 3, lambda_=0.5, trace="replacing")
    with pytest.raises(InvalidInputError, match="10 of 10"):
        model.update(Transition(np.ones(10), 1.0, np.ones(10), discount=0.5, trace_discount=0.5))
    assert model.n_updates == 0


@pytest.mark.parametrize("many", [False, True])
def test_a_trace_that_would_overflow_is_refused(many: bool) -> None:
    """Ratios above 1 multiply: after 1,000 steps at ρ=10 the trace would be 10^1000."""
    model = TLSTD(3, 3, lambda_=1.0)
    x = np.eye(3)[[0] * 1001]
    steps = Transitions(
        x, np.ones(1001), x, discounts=np.ones(1001), trace_discounts=np.ones(1001), rhos=np.full(1001, 10.0)
    )
    if not many:
        for t in steps[:99]:
            model.update(t)
    with pytest.raises(InvalidInputError, match="rho = 10"):
        model.update_many(steps) if many else model.update(steps[99])
    assert model.n_updates == (0 if many else 99)
    assert np.isfinite(model.weights).all()


def test_storage_switches_to_dense_when_features_turn_out_dense() -> None:
    """The first step is sparse, all others are not: same solution, dense buffers after the first compression."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 40))
    X[0, 1:] = 0.0
    steps = Transitions.from_episodes([(X, rng.standard_normal(199), False)], gamma=0.9)
    model = TLSTD(40, 40, lambda_=0.5, buffer_size=50, rcond=1e-14)
    model.update_many(steps)
    assert model._system.buffer.storage == "dense"
    A, b = batch_lstd(steps, 0.5)
    assert_equals_batch(model, steps, A, b)


def test_many_new_features_at_once() -> None:
    """600 unseen features in one step, half of them on each side: the tables of seen features must hold them all."""
    rng = np.random.default_rng(0)
    model = TLSTD(10**6, 5, lambda_=0.5)
    for _ in range(20):
        x, x_next = (SparseVector(rng.integers(0, 10**6, 300), np.ones(300), 10**6) for _ in range(2))
        model.update(Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.9))
    assert model.n_seen > 11_000
    assert np.unique(ids(model)).size == model.n_seen
    assert (model._system.seen.find(ids(model)) == np.arange(model.n_seen)).all()


def test_replacing_trace_that_grows() -> None:
    """Ratios above 1 with nothing active: the lazily kept scale of the trace grows past any float."""
    model, exact = (maker(10, lambda_=1.0, trace="replacing") for maker in (full_rank, LSTD))

    def one(*indices: int) -> SparseVector:
        return SparseVector(list(indices), np.ones(len(indices)), 10)

    steps = [Transition(one(0), 1.0, one(1), discount=1.0, trace_discount=0.0)]
    steps += [Transition(one(), 0.0, one(), discount=1.0, trace_discount=0.0)]
    steps += [Transition(one(), 0.0, one(), discount=1.0, trace_discount=1.0, rho=1.5)] * 3000
    steps += [Transition(one(i % 5), 1.0, one((i + 1) % 5), discount=0.9, trace_discount=0.9) for i in range(20)]
    for t in steps:
        model.update(t)
        exact.update(t)
    np.testing.assert_allclose(model.weights, exact.weights, rtol=1e-9)


def full_rank(n_features: int, **options: Any) -> TLSTD:
    return TLSTD(n_features, n_features, **options)


@pytest.mark.parametrize("rho", [7.3, 3.3, 1.5, 1e-310, 1e30])
def test_replacing_traces_with_extreme_ratios(rho: float) -> None:
    """Ratios that multiply the trace at every step do not multiply its rounding errors."""
    model, exact = (maker(4, lambda_=1.0, trace="replacing") for maker in (full_rank, LSTD))
    n_steps = 3 if rho > 10.0 else 100
    xs = [SparseVector([0, 1 + i % 3], [1.0, 1.0], 4) for i in range(n_steps + 1)]
    for i in range(n_steps):
        t = Transition(xs[i], 1.0, xs[i + 1], discount=0.9, trace_discount=0.9 if i else 0.0, rho=rho)
        model.update(t)
        exact.update(t)
    np.testing.assert_allclose(model.weights, exact.weights, rtol=1e-8, atol=1e-12)
    at_once = full_rank(4, lambda_=1.0, trace="replacing")
    decays = np.full(n_steps, 0.9)
    X = np.stack([x.toarray() for x in xs])
    at_once.update_many(
        Transitions(
            X[:-1], np.ones(n_steps), X[1:], discounts=decays, trace_discounts=[0.0, *decays[1:]], rhos=[rho] * n_steps
        )
    )
    np.testing.assert_allclose(at_once.weights, exact.weights, rtol=1e-8, atol=1e-12)


def test_storage_switches_back_to_sparse() -> None:
    """One dense sample does not make all later ones expensive."""
    rng = np.random.default_rng(0)
    X = np.zeros((200, 60))
    X[np.arange(200), rng.integers(0, 60, 200)] = 1.0
    X[0] = rng.standard_normal(60)
    steps = Transitions.from_episodes([(X, rng.standard_normal(199), False)], gamma=0.9)
    model = TLSTD(60, 60, lambda_=0.5, buffer_size=50, rcond=1e-14)
    model.update_many(steps[:10])
    assert model._system.buffer.storage == "dense"
    model.update_many(steps[10:])
    assert model._system.buffer.storage == "sparse"
    A, b = batch_lstd(steps, 0.5)
    assert_equals_batch(model, steps, A, b)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reads_do_not_depend_on_earlier_reads(seed: int) -> None:
    """What a read found out about the buffer's vectors (which depend on which) stays true for later reads."""
    steps = random_transitions(
        np.random.default_rng(seed), n_features=20, n_steps=80, density=0.15, sparse=True, off_policy=True
    )
    options: dict[str, Any] = {"lambda_": 0.5, "buffer_size": 7}
    model = TLSTD(20, 20, **options)
    for i, t in enumerate(steps):
        model.update(t)
        model.predict(t.x)
        unread = TLSTD(20, 20, **options)
        unread.update_many(steps[: i + 1])
        A, expected = reconstructed(model), reconstructed(unread)
        assert np.abs(A - expected).max() <= 1e-12 * np.abs(expected).max(), i


def test_repr_says_what_is_not_default() -> None:
    model = TLSTD(4, rank=2, lambda_=0.5)
    assert repr(model) == "<TLSTD(n_features=4, rank=2, lambda_=0.5), 0 samples>"


def test_views_of_the_system() -> None:
    """What waits, what a full buffer holds, the core and what a solution uses; with rank 0 there is no core."""
    steps = random_transitions(np.random.default_rng(4), n_features=9, n_steps=23)
    model = TLSTD(9, 4, lambda_=0.5, buffer_size=10, rcond=0.5)
    assert (model.n_buffered, model.buffer_capacity, model.core_shape, model.n_inverted) == (0, 0, (0, 0), 0)
    model.update_many(steps)
    assert (model.n_buffered, model.buffer_capacity) == (3, 10)
    assert model.core_shape == (7, 7)  # four kept directions, and three new ones on each side
    sigma = model.singular_values
    assert model.n_inverted == np.count_nonzero(sigma > 0.5 * sigma[0])
    assert 0 < model.n_inverted < 4
    assert model.parameters == {
        **{"n_features": 9, "rank": 4, "lambda_": 0.5, "buffer_size": 10, "rcond": 0.5, "beta": None},
        **{"trace": "accumulating", "subspace_lambda": None, "n_targets": 1},
    }
    td = ATD(9, 0, step_size=0.1, lambda_=0.5, eta=0.01)
    td.update_many(steps)
    assert (td.singular_values.size, td.n_inverted, td.core_shape) == (0, 0, (0, 0))


def wide(active: int, n_steps: int = 260) -> Transitions:
    """Samples of so many active features among 2,000."""
    rng = np.random.default_rng(active)
    X = sp.csr_array(np.array([rng.permutation(2000) < active for _ in range(n_steps + 1)], dtype=np.float64))
    return Transitions.from_episodes([(X, rng.standard_normal(n_steps), False)], gamma=0.9)


@pytest.mark.parametrize(("active", "size"), [(33, 80), (200, 52), (480, 22), (499, 21)])
def test_default_buffer_is_shorter_with_many_active_features(active: int, size: int) -> None:
    """By the first sample alone: the others, and how they come, change nothing."""
    steps, model = wide(active), TLSTD(2000, 10, lambda_=0.9)
    model.update_many(steps[:1])
    assert model.buffer_capacity == size
    model.update_many(wide(10))
    assert model.buffer_capacity == size
    assert TLSTD(2000, 10, lambda_=0.9).buffer_capacity == 0
    given = TLSTD(2000, 10, lambda_=0.9, buffer_size=80)
    given.update_many(steps[:1])
    assert given.buffer_capacity == 80


@pytest.mark.parametrize("before", [False, True])
def test_saved_files_go_on_with_their_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, before: bool) -> None:
    """Those of before buffers were shorter with many active features too, with the longer one."""
    steps, model = wide(200), TLSTD(2000, 10, lambda_=0.9)
    if before:
        monkeypatch.setattr(buffer, "MAX_ENTRIES", 2**40)
    model.update_many(steps[:70])
    model.save(tmp_path / "model")
    monkeypatch.undo()
    again = load(tmp_path / "model")
    assert isinstance(again, TLSTD)
    again.update_many(steps[70:])
    model.update_many(steps[70:])
    assert (again.buffer_capacity, again.n_buffered) == (model.buffer_capacity, model.n_buffered)
    assert model.buffer_capacity == (80 if before else 52)
    assert_array_equal(again.weights, model.weights)


def test_a_replacing_trace_is_put_back_after_an_interruption() -> None:
    """It is changed in place before the sample counts, at the start of a buffer and within one."""
    steps = random_transitions(np.random.default_rng(4), n_features=12, n_steps=15, density=0.2, terminate=0.0)

    def make() -> TLSTD:
        return TLSTD(12, 12, lambda_=0.9, trace="replacing", buffer_size=4)

    whole = make()
    whole.update_many(steps)
    for model in interrupted_everywhere(make, steps[:8], steps[8:10], every=2):
        model.update_many(steps[model.n_updates :])
        assert np.abs(model.weights - whole.weights).max() <= 1e-9 * np.abs(whole.weights).max()
