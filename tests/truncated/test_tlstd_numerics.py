"""What rounding and truncation do to t-LSTD's factors over long streams, and what they cost in memory."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from tlstd_lab.processes.garnet import garnet
from tlstd_lab.reference import ReferenceTLSTD

import tlstd
from tests.helpers import dense, lstd_by_products, random_transitions
from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.domains.mountain_car import MountainCar
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import record
from tlstd.truncated.tlstd import TLSTD

EPS = float(np.finfo(float).eps)
CAR = MountainCar()
TILES = TileCoder(CAR.low, CAR.high, tiles=10, tilings=10)
RBFS = RBF(CAR.low, CAR.high, grid=32, width=0.12)


def tiles(n_steps: int) -> Transitions:
    return record(CAR, None, TILES, n_steps=n_steps, seed=0)


def rbfs(n_steps: int) -> Transitions:
    return record(CAR, None, RBFS, n_steps=n_steps, seed=0)


def duplicated(n_steps: int) -> Transitions:
    """Every feature occurs twice, to the bit."""
    small = RBF(CAR.low, CAR.high, grid=8, width=0.2)
    steps = record(CAR, None, small, n_steps=n_steps, seed=1)
    assert isinstance(steps.store, np.ndarray)
    return Transitions.from_rows(
        np.hstack([steps.store, steps.store]),
        steps.rows,
        steps.rewards,
        steps.next_rows,
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
    )


def low_rank(n_steps: int) -> Transitions:
    """80 features that span 12 dimensions: the true rank is below the rank asked for."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 12)) @ rng.standard_normal((12, 80))
    rows = rng.integers(0, 500, n_steps + 1)
    ends = rng.random(n_steps) < 0.02
    discounts = np.where(ends, 0.0, 0.95)
    return Transitions.from_rows(
        X,
        rows[:-1],
        rng.standard_normal(n_steps),
        rows[1:],
        discounts=discounts,
        trace_discounts=np.concatenate([[0.0], discounts[:-1]]),
    )


STREAMS: dict[str, tuple[Callable[[int], Transitions], int, float]] = {
    "tiles": (tiles, 50, 0.0),
    "RBFs": (rbfs, 50, 0.0),
    "duplicated features": (duplicated, 30, 0.5),
    "true rank below r": (low_rank, 20, 0.5),
    "lambda 1": (tiles, 50, 1.0),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("n_steps", [4_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_factors_stay_orthonormal(name: str, n_steps: int) -> None:
    """max|UᵀU - I| and max|VᵀV - I| at every 1,000th step."""
    make, rank, lambda_ = STREAMS[name]
    steps = make(n_steps)
    model = TLSTD(steps.n_features, rank, lambda_=lambda_)
    for start in range(0, n_steps, 1000):
        model.update_many(steps[start : start + 1000])
        assert model.orthogonality_error() <= 1e-12, f"after {start + 1000} steps"
    assert np.isfinite(model.predict(steps.X[:100])).all()


@pytest.mark.parametrize("name", STREAMS)
def test_factors_stay_orthonormal_in_the_papers_buffer(name: str) -> None:
    """The same with ``buffer_size=rank`` and reads in between."""
    make, rank, lambda_ = STREAMS[name]
    steps = make(2_000)
    model = TLSTD(steps.n_features, rank, lambda_=lambda_, buffer_size=rank)
    for start in range(0, 2_000, 95):
        model.update_many(steps[start : start + 95])
        assert np.isfinite(model.weights).all()
        assert model.orthogonality_error() <= 1e-12


def test_printed_algorithm_loses_orthogonality() -> None:
    """The k=1 algorithm as printed, on the RBF stream of the test above."""
    steps = rbfs(200)
    printed = ReferenceTLSTD(steps.n_features, 50, lambda_=0.0, mini_batch=False, as_printed=True)
    for t in steps:
        printed.update(
            dense(t.x), float(t.reward), dense(t.x_next), discount=t.discount, trace_discount=t.trace_discount
        )
    U = printed.U
    assert np.abs(U.T @ U - np.eye(U.shape[1])).max() > 1e-2


# --- distance to A ----------------------------------------------------------------------------------------------------


def model_matrix(model: TLSTD, n_features: int) -> FloatArray:
    """The matrix of rank ``model.rank`` that the model stands for, over all features."""
    ids, U, sigma, V = model.factors()
    A = np.zeros((n_features, n_features))
    A[np.ix_(ids, ids)] = (U * sigma) @ V.T
    return A


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("tiles", 0),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (("tiles", 2), ("tiles", 4), ("RBFs", 0))),
    ],
)
def test_truncated_svd_stays_near_the_best(name: str, seed: int) -> None:
    """‖A - UΣVᵀ‖_F within 1.15 of the Eckart–Young optimum after 10⁴ steps at r=50."""
    _, rank, lambda_ = STREAMS[name]
    features = TILES if name == "tiles" else RBFS
    steps = record(CAR, None, features, n_steps=10_000, seed=seed)
    d = steps.n_features
    exact, model = LSTD(d, lambda_=lambda_), TLSTD(d, rank, lambda_=lambda_)
    exact.update_many(steps)
    model.update_many(steps)
    ids, A, _ = exact.system()
    full = np.zeros((d, d))
    full[np.ix_(ids, ids)] = A
    best = np.sqrt((np.linalg.svd(A, compute_uv=False)[rank:] ** 2).sum())
    assert 1.0 <= np.linalg.norm(full - model_matrix(model, d)) / best <= 1.15


def lapack_ratio(steps: Transitions, lambda_: float, buffer_size: int | None) -> float:
    """‖A - UΣVᵀ‖ / (‖A‖ n ε), as LAPACK's own tests measure an SVD."""
    d = steps.n_features
    model = TLSTD(d, d, lambda_=lambda_, buffer_size=buffer_size)
    model.update_many(steps)
    A, _ = lstd_by_products(steps, lambda_)
    error = np.linalg.norm(A - model_matrix(model, d), 2)
    return float(error / (np.linalg.norm(A, 2) * d * EPS))


@pytest.mark.parametrize("buffer_size", [5, None])
@pytest.mark.parametrize("lambda_", [0.0, 0.9])
def test_nothing_is_lost_while_the_rank_suffices(lambda_: float, buffer_size: int | None) -> None:
    rng = np.random.default_rng(5)
    chain = garnet(60, 2, 5, 40, rng, gamma=0.95, features="binary")
    small_tiles = TileCoder(CAR.low, CAR.high, tiles=4, tilings=4)
    streams = {
        "sparse": random_transitions(rng, n_features=60, n_steps=300, density=0.08, sparse=True),
        "dense": random_transitions(rng, n_features=40, n_steps=240),
        "binary Garnet": chain.sample(300, rng, sparse=True),
        "tiles": record(CAR, None, small_tiles, n_steps=480, seed=rng),
    }
    for name, steps in streams.items():
        assert lapack_ratio(steps, lambda_, buffer_size) < 50, name


def test_little_is_lost_on_rbfs() -> None:
    """100 smooth, redundant RBFs: 1e-8 relative to ‖A‖ (measured: near 1e-14)."""
    features = RBF(CAR.low, CAR.high, grid=10, width=0.2)
    steps = record(CAR, None, features, n_steps=900, seed=3)
    for buffer_size in (5, None):
        assert lapack_ratio(steps, 0.5, buffer_size) * 100 * EPS < 1e-8


def test_nearly_dependent_features() -> None:
    """Pairs of features that differ by 1e-1 … 1e-15 pass every stage of the orthonormalisation."""
    rng = np.random.default_rng(7)
    for sparse in (False, True):
        for exponent in range(1, 16):
            X = rng.standard_normal((161, 20))
            if sparse:
                X[rng.random(X.shape) < 0.85] = 0.0
            X = np.hstack([X, X + 10.0**-exponent * rng.standard_normal(X.shape) * (X != 0.0)])
            matrix = sp.csr_array(X) if sparse else X
            steps = Transitions.from_episodes([(matrix, rng.standard_normal(160), False)], gamma=0.9)
            assert lapack_ratio(steps, 0.5, 13) < 50, f"sparse={sparse}, 1e-{exponent}"


# --- memory -----------------------------------------------------------------------------------------------------------


def test_memory_follows_the_features_seen() -> None:
    """d = 2³¹, 10⁵ distinct features: peak memory at most three times the two factors."""
    rng = np.random.default_rng(0)
    d, rank, active, n_steps = 2**31, 20, 40, 2_600
    batches = []
    for _ in range(13):
        ids = np.sort(rng.integers(0, d, (n_steps // 13 + 1, active)), axis=1)
        indptr = np.arange(0, ids.size + 1, active)
        batches.append(sp.csr_array((np.ones(ids.size), ids.ravel(), indptr), shape=(ids.shape[0], d)))
    episodes = [[(X, rng.standard_normal(X.shape[0] - 1), False)] for X in batches]
    parts = [Transitions.from_episodes(episode, gamma=0.9) for episode in episodes]
    TLSTD(d, rank, lambda_=0.9).update_many(parts[0][:100])  # compiles
    tracemalloc.start()
    model = TLSTD(d, rank, lambda_=0.9)
    for part in parts:
        model.update_many(part)
    assert np.isfinite(model.predict(SparseVector([1], [1.0], d)))
    assert np.isfinite(model.sparse_weights.values).all()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.n_seen > 100_000
    assert peak <= 3 * (2 * 8 * model.n_seen * rank), peak / (16 * model.n_seen * rank)


def test_memory_with_states_that_come_back() -> None:
    """Repeated vectors, which depend on each other and on the factors, do not become tall arrays."""
    rng = np.random.default_rng(0)
    d, rank, active = 2**31, 20, 40
    ids = np.sort(rng.integers(0, d, (1_301, active)), axis=1)
    X = sp.csr_array((np.ones(ids.size), ids.ravel(), np.arange(0, ids.size + 1, active)), shape=(ids.shape[0], d))
    rows = np.concatenate([np.arange(1_301), rng.integers(0, 10, 400)])
    n = rows.size - 1
    columns = {"discounts": np.full(n, 0.9), "trace_discounts": np.full(n, 0.9)}
    steps = Transitions.from_rows(X, rows[:-1], rng.standard_normal(n), rows[1:], **columns)
    TLSTD(d, rank, lambda_=0.9).update_many(steps[:200])  # compiles
    tracemalloc.start()
    model = TLSTD(d, rank, lambda_=0.9)
    for start in range(0, n, 100):
        model.update_many(steps[start : start + 100])
        assert np.isfinite(model.predict(steps[start].x))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.n_seen > 50_000
    assert peak <= 3 * (2 * 8 * model.n_seen * rank), peak / (16 * model.n_seen * rank)


def test_memory_of_a_short_stream_does_not_depend_on_d() -> None:
    sizes = []
    for d in (10**3, 10**9, 2**62):
        model = TLSTD(d, 10, lambda_=0.9)
        for i in range(100):
            x, x_next = (SparseVector([(7 * j) % 50], [1.0], d) for j in (i, i + 1))
            model.update(Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.9))
        sizes.append(model.nbytes)
    assert max(sizes) < 1.05 * min(sizes)  # the index has wider ids, or a row for each of few features


def test_a_step_allocates_nothing_of_the_size_of_the_model() -> None:
    """Between compressions neither update nor predict allocates as much as one number per feature seen."""
    rng = np.random.default_rng(0)
    d, active = 10**9, 30

    def x() -> SparseVector:
        return SparseVector(rng.integers(0, d, active), np.ones(active), d)

    model = TLSTD(d, 5, lambda_=0.9, buffer_size=40)
    steps = [Transition(x(), 1.0, x(), discount=0.9, trace_discount=0.9) for _ in range(2_030)]
    for t in steps[:2_010]:
        model.update(t)
    model.predict(steps[0].x)  # sets up what the buffer keeps
    assert model.n_seen > 100_000
    tracemalloc.start()
    for t in steps[2_010:]:
        model.update(t)
        model.predict(t.x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * model.n_seen / 2


def test_nearly_dependent_vectors_of_very_different_lengths(tmp_path: Path) -> None:
    """What a basis found through inner products leaves of a dependent vector is not a direction."""
    d, n, block = 30, 300, 30
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.zeros((n + 1, d))
        for x in X:
            x[rng.choice(d, size=2, replace=False)] = rng.normal(size=2) * 10.0 ** rng.uniform(-2, 2, size=2)
        discounts = rng.choice([0.0, 0.5, 0.9, 1.0], size=n, p=[0.04, 0.06, 0.5, 0.4])
        trace_discounts = np.append(0.0, discounts[:-1])
        columns = {"discounts": discounts, "trace_discounts": trace_discounts}
        model = TLSTD(d, d, lambda_=0.99, buffer_size=block)
        steps = Transitions(sp.csr_array(X[:-1]), rng.normal(size=n), sp.csr_array(X[1:]), **columns)
        model.update_many(steps[:block])
        z, A = np.zeros(d), np.zeros((d, d))
        for t in range(block):
            z = trace_discounts[t] * 0.99 * z + X[t]
            A += np.outer(z, X[t] - discounts[t] * X[t + 1]) / block
        ids, U, sigma, V = model.factors()
        found = np.zeros((d, d))
        found[np.ix_(ids, ids)] = (U * sigma) @ V.T
        assert np.abs(found - A).max() <= 1e-13 * np.abs(A).max()
        assert model.orthogonality_error() <= 1e-12
        model.save(tmp_path / "model")
        assert_array_equal(tlstd.load(tmp_path / "model").weights, model.weights)
