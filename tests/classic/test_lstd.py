from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.processes import garnet

from tests.estimators import streams
from tests.estimators.streams import LAMBDAS
from tests.helpers import batch_lstd, dense, lstd_systems, pairwise, random_transitions
from tlstd import LSTD, MarkovRewardProcess, boyan_chain, random_walk
from tlstd.checks.data import as_sparse
from tlstd.classic.lstd import Solver
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import CapacityError, InvalidInputError, InvalidParameterError


def truncated_solution(A: FloatArray, b: FloatArray, rcond: float) -> FloatArray:
    """A⁺ b with the singular values at or below rcond·σ₁ left out, by scipy.linalg.pinv."""
    inverse: FloatArray = scipy.linalg.pinv(A, rtol=rcond)
    return inverse @ b


def assert_weights(model: LSTD, expected: FloatArray, tolerance: float = 1e-9) -> None:
    found = model.weights.reshape(expected.shape)
    assert_allclose(found, expected, rtol=0.0, atol=tolerance * max(1.0, np.abs(expected).max()))


DENSITIES = {
    "off-policy, sparse": 0.3,
    "short episodes": 0.5,
    "all terminate": 0.5,
    "one long episode": 0.3,
    "undiscounted": 0.4,
    "several targets": 0.4,
}
"""Of ten features so many are active that A is well conditioned."""
KINDS = pytest.mark.parametrize("kind", streams.STREAMS)


def stream_options(kind: str) -> dict[str, Any]:
    options = streams.STREAMS[kind]
    return {**options, "density": DENSITIES.get(kind, options.get("density", 1.0))}


class TestAgainstTheDenseLoop:
    @pytest.mark.parametrize(("kind", "lambda_", "beta"), pairwise(streams.STREAMS, (0.0, 0.5, 1.0), (None, 0.01)))
    def test_direct(self, kind: str, lambda_: float, beta: float | None) -> None:
        options = stream_options(kind)
        seed = [len(kind), int(10 * lambda_), beta is None]
        steps = random_transitions(np.random.default_rng(seed), n_features=10, n_steps=200, **options)
        model = LSTD(10, lambda_=lambda_, beta=beta, rcond=1e-10, n_targets=options.get("n_targets", 1))
        model.update_many(steps)
        A, b = batch_lstd(steps, lambda_, beta=beta)
        assert np.linalg.cond(A) < 1e5
        assert_weights(model, scipy.linalg.solve(A, b))
        ids, found_A, found_b = model.system()
        assert_allclose(found_A, A[np.ix_(ids, ids)], rtol=1e-10, atol=1e-11)
        assert_allclose(found_b, b[ids], rtol=1e-10, atol=1e-11)

    @KINDS
    @LAMBDAS
    def test_recursive(self, kind: str, lambda_: float) -> None:
        options = stream_options(kind)
        steps = random_transitions(np.random.default_rng(7), n_features=10, n_steps=150, **options)
        A, b = batch_lstd(steps, lambda_)
        for epsilon in (1e-6, 0.5, 20.0):
            model = LSTD(
                10,
                lambda_=lambda_,
                solver="recursive",
                initial_diagonal=epsilon,
                n_targets=options.get("n_targets", 1),
            )
            model.update_many(steps)
            assert_weights(model, scipy.linalg.solve(A + epsilon / 150 * np.eye(10), b))

    @KINDS
    def test_recursive_values_after_each_step(self, kind: str) -> None:
        options = stream_options(kind)
        steps = random_transitions(np.random.default_rng(8), n_features=10, n_steps=120, **options)
        n_targets = options.get("n_targets", 1)
        systems = list(lstd_systems(steps, 0.7))
        for epsilon in (1e-6, 0.5):
            expected = np.zeros((120, n_targets))
            for t, (A, b) in enumerate(systems):
                expected[t] = dense(steps[t].x_next) @ scipy.linalg.solve(A + epsilon / (t + 1) * np.eye(10), b)
            model, silent = (
                LSTD(10, lambda_=0.7, solver="recursive", initial_diagonal=epsilon, n_targets=n_targets)
                for _ in range(2)
            )
            values = np.concatenate([model.update_and_predict(steps[:50]), model.update_and_predict(steps[50:])])
            close = np.abs(values.reshape(expected.shape) - expected).max(axis=1) < 1e-9 * np.abs(expected).max()
            # with ε alone on the diagonal A is close to singular until every feature was seen
            assert close[30:].all()
            assert epsilon < 0.5 or close.all()
            silent.update_many(steps)
            assert_array_equal(model.weights, silent.weights)

    @LAMBDAS
    @pytest.mark.parametrize("density", [0.3, 1.0])
    @pytest.mark.parametrize("beta", [0.1, 0.9, 0.999999])
    def test_direct_with_strong_forgetting(self, lambda_: float, density: float, beta: float) -> None:
        """A is close to a matrix of rank 1, which the cut-off must see exactly as in the formula."""
        for seed in range(3):
            rng = np.random.default_rng(seed)
            steps = random_transitions(rng, n_features=6, n_steps=400, density=density, off_policy=True)
            model = LSTD(6, lambda_=lambda_, beta=beta, rcond=1e-4)
            model.update_many(steps)
            assert_weights(model, truncated_solution(*batch_lstd(steps, lambda_, beta=beta), 1e-4))

    @LAMBDAS
    @pytest.mark.parametrize(("beta", "n"), [(0.02, 6), (0.3, 3), (0.9, 2), (0.999999, 1)])
    def test_recursive_with_forgetting(self, lambda_: float, beta: float, n: int) -> None:
        for seed in range(3):
            steps = random_transitions(np.random.default_rng(seed), n_features=n, n_steps=300)
            model = LSTD(n, lambda_=lambda_, solver="recursive", beta=beta)
            model.update_many(steps)
            A, b = batch_lstd(steps, lambda_, beta=beta)
            A += (1.0 - beta) ** 300 * np.eye(n)
            assert_weights(model, scipy.linalg.solve(A, b))

    @LAMBDAS
    @pytest.mark.parametrize("solver", ["direct", "recursive"])
    @pytest.mark.parametrize("off_policy", [False, True])
    def test_replacing(self, lambda_: float, solver: Solver, off_policy: bool) -> None:
        rng = np.random.default_rng(3)
        X = np.zeros((301, 12))
        for row in X:
            row[rng.permutation(12)[:4]] = rng.uniform(0.5, 2.0, 4)
        rhos = rng.uniform(0.3, 1.7, 300) if off_policy else np.ones(300)
        flags = {"terminated": rng.random(300) < 0.05, "truncated": rng.random(300) < 0.05}
        steps = Transitions.from_arrays(X[:-1], rng.random(300), X[1:], **flags, gamma=0.95, rhos=rhos)
        options: dict[str, Any] = {"lambda_": lambda_, "solver": solver, "trace": "replacing", "rcond": 1e-10}
        A, b = batch_lstd(steps, lambda_, replacing=True)
        A += 0.0 if solver == "direct" else np.eye(12) / 300
        for data in (steps, as_sparse(steps)):
            model = LSTD(12, **options)
            model.update_many(data)
            assert_weights(model, scipy.linalg.solve(A, b))
        if lambda_ > 0.0:
            assert np.abs(batch_lstd(steps, lambda_)[0] - batch_lstd(steps, lambda_, replacing=True)[0]).max() > 1e-3

    def test_by_hand(self) -> None:
        """Two steps with one feature: z = 1, then 0.9·0.5·1 + 2 = 2.45; d = 1 - 0.9·2 = -0.8, then 2 (terminated)."""
        both: tuple[tuple[Solver, float], ...] = (("direct", 0.0), ("recursive", 1.0))
        for solver, diagonal in both:
            model = LSTD(1, lambda_=0.5, solver=solver)
            model.update(Transition([1.0], 3.0, [2.0], discount=0.9, trace_discount=0.0))
            model.update(Transition([2.0], 5.0, [7.0], discount=0.0, trace_discount=0.9))
            A, b = diagonal - 0.8 + 2.45 * 2.0, 3.0 + 2.45 * 5.0
            assert_allclose(model.weights, [b / A], rtol=1e-13)
            assert_allclose(model.system()[1], [[A / 2.0]], rtol=1e-13)
            assert_allclose(model.system()[2], [[b / 2.0]], rtol=1e-13)


class TestFormulas:
    @pytest.mark.parametrize("rcond", [0.0, 1e-6, 0.01, 0.2, 0.9])
    def test_cut_off(self, rcond: float) -> None:
        for seed in range(5):
            steps = random_transitions(np.random.default_rng(seed), n_features=7, n_steps=60, density=0.6)
            model = LSTD(7, lambda_=0.5, rcond=rcond)
            model.update_many(steps)
            assert_weights(model, truncated_solution(*batch_lstd(steps, 0.5), rcond))

    @pytest.mark.parametrize("eta", [1e-8, 1e-3, 1.0, 100.0])
    def test_tikhonov_of_the_averaged_system(self, eta: float) -> None:
        for seed, beta in ((0, None), (1, 0.05)):
            steps = random_transitions(np.random.default_rng(seed), n_features=7, n_steps=90, n_targets=2)
            model = LSTD(7, lambda_=0.5, rcond=0.0, tikhonov=eta, beta=beta, n_targets=2)
            model.update_many(steps)
            A, b = batch_lstd(steps, 0.5, beta=beta)
            assert_weights(model, scipy.linalg.solve(A.T @ A + eta * np.eye(7), A.T @ b))

    def test_tikhonov_on_top_of_the_cut_off(self) -> None:
        steps = random_transitions(np.random.default_rng(2), n_features=5, n_steps=60)
        model = LSTD(5, lambda_=0.0, rcond=0.5, tikhonov=0.1)
        model.update_many(steps)
        A, b = batch_lstd(steps, 0.0)
        U, sigma, Vt = np.linalg.svd(A)
        kept = sigma > 0.5 * sigma[0]
        assert 0 < kept.sum() < 5
        assert_weights(model, Vt.T @ (np.where(kept, sigma / (sigma**2 + 0.1), 0.0)[:, None] * (U.T @ b)))

    def test_repeated_features_share_their_weight(self) -> None:
        steps = random_transitions(np.random.default_rng(4), n_features=3, n_steps=100)
        X, X_next = np.asarray(steps.X), np.asarray(steps.X_next)
        doubled = Transitions(
            np.hstack([X, X]),
            steps.rewards,
            np.hstack([X_next, X_next]),
            discounts=steps.discounts,
            trace_discounts=steps.trace_discounts,
        )
        single, double = LSTD(3, lambda_=0.5), LSTD(6, lambda_=0.5)
        single.update_many(steps)
        double.update_many(doubled)
        assert_allclose(double.weights, np.tile(single.weights, 2) / 2.0, rtol=1e-9)


class TestStreams:
    @pytest.mark.parametrize("solver", ["direct", "recursive"])
    @pytest.mark.parametrize("kind", ["dense", "sparse", "off-policy, sparse", "several targets"])
    @pytest.mark.parametrize("beta", [None, 0.3])
    def test_update_many_is_repeated_update(self, solver: Solver, kind: str, beta: float | None) -> None:
        options = stream_options(kind)
        steps = random_transitions(np.random.default_rng(5), n_features=5, n_steps=200, **options)
        models = [
            LSTD(5, lambda_=0.8, solver=solver, beta=beta, n_targets=options.get("n_targets", 1)) for _ in range(4)
        ]
        for t in steps:
            models[0].update(t)
        models[1].update_many(steps)
        for cut in (steps[:1], steps[1:1], steps[1:130], steps[130:]):
            models[2].update_many(cut)
        for i, t in enumerate(steps):
            models[3].update(t)
            if i % 7 == 0:
                assert np.isfinite(models[3].weights).all()
        for model in models:
            assert model.n_updates == 200
            assert_weights(model, models[0].weights, 1e-10)

    def test_views_of_every_kind(self) -> None:
        """Slices with steps, reversed ones, Fortran order and integers are all data like any other."""
        steps = random_transitions(np.random.default_rng(6), n_features=4, n_steps=90, density=0.6)
        for data in (steps[::2], steps[::-1], as_sparse(steps)[::-3], as_sparse(steps)[10:80:2]):
            for solver in ("direct", "recursive"):
                model = LSTD(4, lambda_=0.5, solver=solver, rcond=1e-12)
                model.update_many(data)
                A, b = batch_lstd(data, 0.5)
                A += 0.0 if solver == "direct" else np.eye(4) / len(data)
                assert_weights(model, scipy.linalg.solve(A, b))

    def test_dense_and_sparse_mixed_in_one_stream(self) -> None:
        steps = random_transitions(np.random.default_rng(8), n_features=6, n_steps=120, density=0.5)
        for solver in ("direct", "recursive"):
            model, reference = LSTD(6, lambda_=0.5, solver=solver), LSTD(6, lambda_=0.5, solver=solver)
            reference.update_many(steps)
            for i, t in enumerate(steps):
                x = SparseVector.from_dense(dense(t.x)) if i % 2 else t.x
                x_next = SparseVector.from_dense(dense(t.x_next)) if i % 3 else t.x_next
                model.update(
                    Transition(x, t.reward, x_next, discount=t.discount, trace_discount=t.trace_discount, rho=t.rho)
                )
            assert_weights(model, reference.weights, 1e-10)

    def test_vanishing_features(self) -> None:
        """Products of 1e-160 are not numbers any more; the answer is finite, and useful data still counts."""
        for solver in ("direct", "recursive"):
            model = LSTD(2, lambda_=0.5, solver=solver)
            for _ in range(3):
                model.update(Transition([1e-160, 0.0], 1.0, [0.0, 0.0], discount=0.9, trace_discount=0.0))
                assert np.isfinite(model.weights).all()
            for _ in range(50):
                model.update(Transition([0.0, 2.0], 6.0, [0.0, 0.0], discount=0.0, trace_discount=0.0))
            assert_allclose(model.weights[1], 3.0, rtol=0.01)
            assert np.isfinite(model.weights).all()


class TestSize:
    @pytest.mark.parametrize("n_features", [2**31, 2**62, 2**63 - 1])
    @pytest.mark.parametrize("solver", ["direct", "recursive"])
    def test_hashed_features(self, n_features: int, solver: Solver) -> None:
        rng = np.random.default_rng(0)
        steps = random_transitions(rng, n_features=12, n_steps=200, density=0.3, n_targets=2, sparse=True)
        ids = rng.permutation(np.append(rng.integers(0, n_features, 10), [0, n_features - 1]))
        order = np.argsort(ids)

        def wide(X: Any) -> Any:
            X = sp.csr_array(X)
            return sp.csr_array((X.data, ids[X.indices], X.indptr.astype(np.int64)), shape=(X.shape[0], n_features))

        huge = Transitions(
            wide(steps.X),
            steps.rewards,
            wide(steps.X_next),
            discounts=steps.discounts,
            trace_discounts=steps.trace_discounts,
        )
        model, small = (LSTD(n, lambda_=0.5, solver=solver, n_targets=2) for n in (n_features, 12))
        small.update_many(steps)
        model.update_many(huge[:100])
        for t in huge[100:]:
            model.update(t)
        assert model.n_seen == 12
        with pytest.raises(CapacityError, match="sparse_weights"):
            _ = model.weights
        found: Any = model.sparse_weights
        assert found.shape == (n_features, 2)
        for c in range(2):
            column = slice(found.indptr[c], found.indptr[c + 1])
            assert_array_equal(found.indices[column], ids[order])
            assert_allclose(found.data[column], small.weights[order, c], rtol=1e-9)
        x = SparseVector(ids[:3], [1.0, 2.0, 3.0], n_features)
        assert_allclose(model.predict(x), np.array([1.0, 2.0, 3.0]) @ small.weights[:3], rtol=1e-9)
        assert_allclose(model.predict(huge.X), small.predict(steps.X), rtol=1e-9, atol=1e-12)
        assert_array_equal(model.predict(SparseVector([], [], n_features)), [0.0, 0.0])

    def test_many_features(self) -> None:
        """Two thousand features seen, most of them once."""
        rng = np.random.default_rng(1)
        n, d = 700, 10**9
        ids = rng.choice(d, 2000, replace=False)
        X = sp.csr_array((rng.random(3 * n), rng.choice(ids, 3 * n), np.arange(0, 3 * n + 1, 3)), shape=(n, d))
        X.sum_duplicates()
        steps = Transitions(X, rng.random(n), X, discounts=np.zeros(n), trace_discounts=np.zeros(n))
        model = LSTD(d, lambda_=0.5)
        model.update_many(steps)
        _, A, _ = model.system()
        assert model.n_seen == A.shape[0] == np.unique(X.indices).size
        assert_allclose(np.trace(A) * n, (X.data**2).sum(), rtol=1e-10)

    @pytest.mark.parametrize("solver", ["direct", "recursive"])
    @pytest.mark.parametrize("density", [0.1, 1.0])
    @pytest.mark.parametrize("once", [False, True])
    def test_too_many_features_leave_the_model_unchanged(self, solver: Solver, density: float, once: bool) -> None:
        rng = np.random.default_rng(2)
        small = random_transitions(rng, n_features=100, n_steps=30, density=0.1, sparse=True)
        X, X_next = (np.where(np.arange(100) < 20, to_array(M), 0.0) for M in (small.X, small.X_next))
        few = Transitions(
            sp.csr_array(X),
            small.rewards,
            sp.csr_array(X_next),
            discounts=small.discounts,
            trace_discounts=small.trace_discounts,
        )
        many = random_transitions(rng, n_features=100, n_steps=30, density=density)
        limit = 8 * 20 * 20 * (1 if solver == "direct" else 2)
        models = [LSTD(100, lambda_=0.5, solver=solver, memory_limit=limit) for _ in range(2)]
        for model in models:
            model.update_many(few)
        before = models[0].weights.copy()
        refused: Callable[[], None] = (
            partial(models[0].update, many[1]) if once else partial(models[0].update_many, many)
        )
        with pytest.raises(CapacityError, match="memory_limit"):
            refused()
        assert models[0].n_updates == 30
        assert models[0].n_seen == models[1].n_seen <= 20
        assert_array_equal(models[0].weights, before)
        for model in models:
            model.update_many(few)
        assert_array_equal(models[0].weights, models[1].weights)

    def test_a_dense_first_sample_is_refused_too(self) -> None:
        steps = random_transitions(np.random.default_rng(0), n_features=100, n_steps=3)
        for solver in ("direct", "recursive"):
            model = LSTD(100, lambda_=0.0, solver=solver, memory_limit=1000)
            with pytest.raises(CapacityError):
                model.update_many(steps)
            assert (model.n_updates, model.n_seen) == (0, 0)

    def test_half_of_the_features_need_no_room_for_all(self) -> None:
        """Where the first sample was sparse, a later one with many features takes room for those."""
        model = LSTD(100, lambda_=0.0, memory_limit=8 * 60 * 60)
        for n in (1, 50):
            x = np.repeat([1.0, 0.0], [n, 100 - n])
            model.update(Transition(x, 1.0, x, discount=0.5, trace_discount=0.5))
        assert model.n_seen == 50

    @pytest.mark.parametrize("solver", ["direct", "recursive"])
    def test_before_any_data(self, solver: Solver) -> None:
        model = LSTD(3, lambda_=0.0, solver=solver)
        assert_array_equal(model.weights, np.zeros(3))
        assert model.predict([1.0, 2.0, 3.0]) == 0.0
        ids, A, b = model.system()
        assert (ids.shape, A.shape, b.shape) == ((0,), (0, 0), (0, 1))
        model.update(Transition([0.0] * 3, 1.0, [0.0] * 3, discount=1.0, trace_discount=1.0))
        assert_array_equal(model.weights, np.zeros(3))
        assert model.n_seen == 0

    def test_system_is_a_copy(self) -> None:
        steps = random_transitions(np.random.default_rng(0), n_features=3, n_steps=50)
        for solver in ("direct", "recursive"):
            model, other = LSTD(3, lambda_=0.0, solver=solver), LSTD(3, lambda_=0.0, solver=solver)
            model.update_many(steps)
            other.update_many(steps)
            for array in model.system():
                array[...] = 1
            model.update_many(steps)
            other.update_many(steps)
            assert_array_equal(model.weights, other.weights)


def to_array(X: Any) -> FloatArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


class TestRefusals:
    @pytest.mark.parametrize(
        "options",
        [
            {"lambda_": -0.1},
            {"lambda_": 1.1},
            {"lambda_": np.nan},
            {"lambda_": None},
            {"lambda_": "0.5"},
            {"lambda_": True},
            {"lambda_": 10**400},
            {"solver": "lu"},
            {"solver": None},
            {"solver": ["direct"]},
            {"solver": np.array(["direct", "recursive"])},
            {"rcond": -1e-9},
            {"rcond": 1.0},
            {"rcond": np.nan},
            {"tikhonov": -1.0},
            {"tikhonov": np.inf},
            {"tikhonov": 1.0, "solver": "recursive"},
            {"initial_diagonal": 0.0},
            {"initial_diagonal": -1.0},
            {"initial_diagonal": np.inf},
            {"beta": 0.0},
            {"beta": 1.0},
            {"beta": np.nan},
            {"beta": -(10**400)},
            {"trace": "dutch"},
            {"trace": True},
            {"n_targets": 0},
            {"n_targets": 1.0},
            {"memory_limit": 0},
            {"memory_limit": 1e9},
            {"n_features": 0},
            {"n_features": 2.0},
            {"n_features": True},
            {"n_features": None},
        ],
        ids=str,
    )
    def test_bad_parameters(self, options: dict[str, Any]) -> None:
        given: dict[str, Any] = {"n_features": 3, "lambda_": 0.5} | options
        with pytest.raises(InvalidParameterError, match=str(next(iter(options)))):
            LSTD(given.pop("n_features"), **given)

    @pytest.mark.parametrize("beta", [5e-324, 1e-300, 1e-17, 1.0 - 2.0**-53])
    def test_extreme_forgetting_is_possible(self, beta: float) -> None:
        for solver in ("direct", "recursive"):
            model = LSTD(3, lambda_=0.5, beta=beta, solver=solver)
            model.update_many(random_transitions(np.random.default_rng(0), n_features=3, n_steps=300))
            assert np.isfinite(model.weights).all()

    def test_replacing_traces_of_dense_features(self) -> None:
        model = LSTD(10, lambda_=0.5, trace="replacing")
        with pytest.raises(InvalidInputError, match="accumulating"):
            model.update_many(random_transitions(np.random.default_rng(0), n_features=10, n_steps=5))
        assert (model.n_updates, model.n_seen) == (0, 0)

    @pytest.mark.parametrize("solver", ["direct", "recursive"])
    def test_refused_data_leave_the_model_unchanged(self, solver: Solver) -> None:
        steps = random_transitions(np.random.default_rng(0), n_features=3, n_steps=50)
        model = LSTD(3, lambda_=1.0, solver=solver)
        model.update_many(steps)
        before = model.weights.copy()
        poisoned = random_transitions(np.random.default_rng(1), n_features=3, n_steps=50)
        poisoned.rewards[49] = np.nan
        growing = random_transitions(np.random.default_rng(1), n_features=3, n_steps=50, terminate=0.0, truncate=0.0)
        growing.rhos[:] = 1e99
        wide = random_transitions(np.random.default_rng(1), n_features=4, n_steps=5)
        targets = random_transitions(np.random.default_rng(1), n_features=3, n_steps=5, n_targets=2)
        for bad in (poisoned, growing, wide, targets):
            with pytest.raises(InvalidInputError):
                model.update_many(bad)
            assert_array_equal(model.weights, before)
            assert model.n_updates == 50


PROCESSES: dict[str, Callable[[], MarkovRewardProcess]] = {
    "Boyan chain": boyan_chain,
    "random walk": lambda: random_walk(5, gamma=0.95),
    "Garnet": lambda: garnet(20, 2, 3, 6, np.random.default_rng(0), gamma=0.8, termination=0.05, reward_noise=0.3),
}


@pytest.mark.long
@pytest.mark.parametrize(("name", "lambda_"), [("Boyan chain", 0.0), *((name, 0.6) for name in PROCESSES)])
def test_error_falls_with_the_root_of_the_stream(name: str, lambda_: float) -> None:
    """The distance to the exact solution falls like T^(-1/2): the estimate is consistent and as quick as it can be."""
    process = PROCESSES[name]()
    exact = process.X @ process.solution(lambda_)
    frequency = process.state_distribution()
    if name != "Garnet":  # values that the features can represent
        assert_allclose(exact, process.values(), atol=1e-8)
    lengths, n_runs = [400, 2500, 16000], 64  # over many seeds the slope then varies by 0.025
    errors = np.zeros((n_runs, len(lengths)))
    for run in range(n_runs):
        stream = process.sample(lengths[-1], np.random.default_rng([run, len(name)]))
        model = LSTD(process.n_features, lambda_=lambda_, rcond=1e-10)
        for i, (start, stop) in enumerate(zip([0, *lengths], lengths, strict=False)):
            model.update_many(stream[start:stop])
            errors[run, i] = frequency @ (model.predict(process.X) - exact) ** 2
    slope = np.polyfit(np.log(lengths), 0.5 * np.log(errors.mean(axis=0)), 1)[0]
    assert abs(slope + 0.5) < 0.1


@pytest.mark.parametrize("solver", ["direct", "recursive"])
def test_features_of_terminal_next_states_have_no_rows(solver: Solver) -> None:
    model = LSTD(2**31, lambda_=0.5, solver=solver)
    x, end = SparseVector([3], [1.0], 2**31), SparseVector([5, 6], [1.0, 1.0], 2**31)
    model.update(Transition(x, 1.0, end, discount=0.0, trace_discount=0.0))
    assert model.n_seen == 1
    model.update(Transition(x, 1.0, end, discount=0.5, trace_discount=0.0))
    assert model.n_seen == 3
