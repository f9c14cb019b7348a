from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.processes.garnet import garnet, garnet_off_policy

from tests.estimators.streams import LAMBDAS, STREAMS, assert_weights, learned_in_pieces
from tests.helpers import dense, pairwise, random_transitions
from tlstd.classic.td import TD
from tlstd.core.arrays import FloatArray
from tlstd.core.parameters import Trace
from tlstd.data import loop_vectors as vectors_module
from tlstd.data.batch import Batch
from tlstd.data.loop_vectors import vectors_of
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.domains.boyan_chain import boyan_chain
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.domains.random_walk import random_walk
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.estimators.step_sizes import Decay, StepSize, as_schedule


def literal_td(steps: Transitions, step_size: StepSize, lambda_: float, replacing: bool = False) -> FloatArray:
    """TD(λ) in dense NumPy, one line per equation; (d, m)."""
    alphas = as_schedule(step_size).values(1, len(steps))
    W, z = np.zeros((steps.n_features, steps.n_targets)), np.zeros(steps.n_features)
    for t, alpha in zip(steps, alphas, strict=True):
        x, x_next = dense(t.x), dense(t.x_next)
        delta = t.reward + t.discount * x_next @ W - x @ W
        z = t.trace_discount * lambda_ * z
        if replacing:
            z[x != 0.0] = 0.0
        z = t.rho * (z + x)
        W = W + alpha * np.outer(z, delta)
    return W


SCHEDULES: dict[str, StepSize] = {"constant": 0.005, "decay": Decay(0.02, 50), "function": lambda t: 0.02 / t**0.3}
KINDS = pytest.mark.parametrize("kind", STREAMS)


class TestAgainstTheLiteralLoop:
    @pytest.mark.parametrize(("kind", "lambda_", "schedule"), pairwise(STREAMS, (0.0, 0.5, 1.0), SCHEDULES))
    def test_accumulating(self, kind: str, lambda_: float, schedule: str) -> None:
        options, step_size = STREAMS[kind], SCHEDULES[schedule]
        rng = np.random.default_rng([len(kind), int(10 * lambda_), len(schedule)])
        steps = random_transitions(rng, n_features=20, n_steps=150, **options)
        model = TD(20, step_size=step_size, lambda_=lambda_, n_targets=options.get("n_targets", 1))
        model.update_many(steps[:60])
        model.update_many(steps[60:])
        assert_weights(model, literal_td(steps, step_size, lambda_))

    @pytest.mark.parametrize("kind", [kind for kind in STREAMS if STREAMS[kind].get("density", 1.0) < 0.5])
    @LAMBDAS
    def test_replacing(self, kind: str, lambda_: float) -> None:
        options = STREAMS[kind]
        steps = random_transitions(np.random.default_rng(len(kind)), n_features=30, n_steps=150, **options)
        n_targets = options.get("n_targets", 1)
        model = TD(30, step_size=Decay(0.02, 50), lambda_=lambda_, trace="replacing", n_targets=n_targets)
        model.update_many(steps[:60])
        for t in steps[60:]:
            model.update(t)
        expected = literal_td(steps, Decay(0.02, 50), lambda_, replacing=True)
        assert_weights(model, expected)
        if lambda_ > 0.0 and "all" not in kind:
            assert np.abs(expected - literal_td(steps, Decay(0.02, 50), lambda_)).max() > 1e-3

    @pytest.mark.parametrize("gamma", [0.9, 1.0])
    def test_long_streams(self, gamma: float) -> None:
        """Four episodes of 1,500 steps, in which the sums are settled and entries leave hundreds of times."""
        rng = np.random.default_rng(0)
        X = np.zeros((6_001, 200))
        for row in X:
            row[rng.integers(0, 200, 4)] = 1.0
        terminated = np.arange(1, 6_001) % 1_500 == 0
        flags: dict[str, Any] = {"terminated": terminated, "truncated": np.zeros(6_000, dtype=bool), "gamma": gamma}
        store = sp.csr_array(X)
        steps = Transitions.from_arrays(store[:-1], rng.standard_normal(6_000), store[1:], **flags)
        model = TD(200, step_size=0.01, lambda_=0.9)
        model.update_many(steps)
        assert_weights(model, literal_td(steps, 0.01, 0.9))

    def test_by_hand(self) -> None:
        """Three steps with α = λ = 0.5, γ = 0.9 over two features.

        δ = 1, z = (1, 0), w = (0.5, 0). δ = 2 + 0.9·0.5 = 2.45, z = (0.45, 1), w = (1.05125, 1.225). Terminated, with
        ρ = 2: δ = -1 - 1.05125, z = 2 (0.45·0.45 + 1, 0.45) = (2.405, 0.9), w = (-1.415378125, 0.3019375).
        """
        a, b = [1.0, 0.0], [0.0, 1.0]
        model = TD(2, step_size=0.5, lambda_=0.5)
        model.update(Transition(a, 1.0, b, discount=0.9, trace_discount=0.0))
        assert_array_equal(model.weights, [0.5, 0.0])
        model.update(Transition(b, 2.0, a, discount=0.9, trace_discount=0.9))
        assert_allclose(model.weights, [1.05125, 1.225], rtol=1e-14)
        model.update(Transition(a, -1.0, b, discount=0.0, trace_discount=0.9, rho=2.0))
        assert_allclose(model.weights, [-1.415378125, 0.3019375], rtol=1e-14)
        assert model.n_updates == 3

    def test_replacing_by_hand(self) -> None:
        """z = (1, 0), then (0.45, 1), then (2, 0) of the value 2, not 0.45·0.45 + 2; rewards 1, 1, 10, no bootstrap."""
        model = TD(2, step_size=0.1, lambda_=0.5, trace="replacing")
        for x, reward, trace_discount in (([1, 0], 1.0, 0.0), ([0, 1], 1.0, 0.9), ([2, 0], 10.0, 0.9)):
            model.update(Transition(x, reward, [0, 0], discount=0.0, trace_discount=trace_discount))
        # w = (0.1, 0), then + 0.1·1·(0.45, 1) = (0.145, 0.1), then δ = 10 - 0.29 and z = (2, 0.45)
        assert_allclose(model.weights, [0.145 + 0.971 * 2.0, 0.1 + 0.971 * 0.45], rtol=1e-14)

    def test_dense_by_hand(self) -> None:
        """All features active: δ = 2, w = 0.1·2·(1, 2); then δ = 1 + 0.9·1 - 1.4, z = (0.45 + 3, 0.9 + 2)."""
        model = TD(2, step_size=0.1, lambda_=0.5)
        model.update(Transition([1.0, 2.0], 2.0, [0.0, 0.0], discount=0.9, trace_discount=0.0))
        assert_allclose(model.weights, [0.2, 0.4], rtol=1e-14)
        model.update(Transition([3.0, 2.0], 1.0, [1.0, 2.0], discount=0.9, trace_discount=0.9))
        assert_allclose(model.weights, [0.2 + 0.05 * 3.45, 0.4 + 0.05 * 2.9], rtol=1e-14)


class TestForm:
    """How the data come does not change a bit of the result."""

    @KINDS
    def test_cuts(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        options = STREAMS[kind]
        steps = random_transitions(np.random.default_rng(5), n_features=20, n_steps=90, **options)
        make = partial(TD, 20, step_size=0.01, lambda_=0.9, n_targets=options.get("n_targets", 1))
        whole, *others = learned_in_pieces(make, steps)
        monkeypatch.setattr(vectors_module, "_CHUNK", 33)
        others += learned_in_pieces(make, steps)[:1]
        assert len(others) == 3
        for model in others:
            assert_array_equal(model.weights, whole.weights)

    @pytest.mark.parametrize("density", [0.2, 1.0])
    def test_rows_in_any_order(self, density: float) -> None:
        """Transitions that point into a store, forwards, backwards and with strides, are those that own their rows."""
        rng = np.random.default_rng(6)
        X = rng.standard_normal((50, 20)) * (rng.random((50, 20)) < density)
        rows, next_rows = rng.integers(0, 50, 200), rng.integers(0, 50, 200)
        rows[:50] = np.r_[0, 1 + rng.permutation(48), 49]  # from first to last, but not in order
        columns = {"discounts": np.full(200, 0.9), "trace_discounts": np.full(200, 0.8)}
        rewards = rng.standard_normal(200)
        for store in (X, sp.csr_array(X)):
            pointing = Transitions.from_rows(store, rows, rewards, next_rows, **columns)
            owning = Transitions(X[rows], rewards, X[next_rows], **columns)
            for key in (slice(None), slice(None, 50), slice(None, None, -1), slice(3, 190, 7)):
                a, b = (TD(20, step_size=0.01, lambda_=0.5) for _ in range(2))
                a.update_many(pointing[key])
                b.update_many(owning[key])
                assert_array_equal(a.weights, b.weights)

    def test_read_only_and_mixed_input(self) -> None:
        rng = np.random.default_rng(7)
        X = rng.standard_normal((41, 12))
        columns = {"discounts": np.full(40, 0.9), "trace_discounts": np.full(40, 0.8)}
        rewards = rng.standard_normal(40)
        expected = TD(12, step_size=0.01, lambda_=0.5)
        expected.update_many(Transitions(X[:-1], rewards, X[1:], **columns))
        locked = X.copy()
        locked.flags.writeable = False
        for first, second in ((locked[:-1], locked[1:]), (sp.csr_array(X[:-1]), X[1:])):
            model = TD(12, step_size=0.01, lambda_=0.5)
            model.update_many(Transitions(first, rewards, second, **columns))
            assert_allclose(model.weights, expected.weights, rtol=1e-13, atol=1e-15)

    def test_features_change_from_dense_to_sparse_and_back(self) -> None:
        for first, second in ((1.0, 0.1), (0.1, 1.0)):
            rng = np.random.default_rng(8)
            parts = [random_transitions(rng, n_features=20, n_steps=50, density=p) for p in (first, second)]
            model = TD(20, step_size=0.01, lambda_=0.9)
            for part in parts:
                model.update_many(part)
            X, X_next = (np.vstack([np.asarray(getattr(p, name)) for p in parts]) for name in ("X", "X_next"))
            rewards, discounts, trace_discounts = (
                np.concatenate([getattr(p, name) for p in parts])
                for name in ("rewards", "discounts", "trace_discounts")
            )
            both = Transitions(X, rewards, X_next, discounts=discounts, trace_discounts=trace_discounts)
            assert_weights(model, literal_td(both, 0.01, 0.9))


class TestVectors:
    """What the sparse loop is given: views of a recorded trajectory, copies of everything else."""

    def transitions(self, store: Any, rows: Any, next_rows: Any) -> Transitions:
        n = len(rows)
        columns = {"discounts": np.full(n, 0.9), "trace_discounts": np.full(n, 0.9)}
        return Transitions.from_rows(store, rows, np.ones(n), next_rows, **columns)

    @pytest.mark.parametrize(
        ("rows", "next_rows", "is_view"),
        [
            ([0, 1, 2, 3], [1, 2, 3, 4], True),
            ([3, 4, 5], [4, 5, 6], True),
            ([0, 1, 3, 4], [1, 2, 4, 5], True),  # two episodes
            ([4, 3, 2], [3, 2, 1], True),
            ([2, 2, 2], [2, 2, 2], True),
            ([0, 1, 4], [1, 2, 5], False),  # row 3 is not used
            ([0, 9, 0], [9, 0, 9], False),
            ([5], [1], False),
        ],
    )
    def test_vectors(self, rows: list[int], next_rows: list[int], is_view: bool) -> None:
        X = np.random.default_rng(0).standard_normal((10, 6)) * (np.arange(60).reshape(10, 6) % 3 > 0)
        store = sp.csr_array(X)
        for first, second in ((store, store), (store, store.copy())):
            steps = self.transitions(store, rows, next_rows)
            steps.next_store = second
            steps.store = first
            vectors = vectors_of(Batch.from_transitions(steps))
            shared = np.shares_memory(vectors.values, first.data)
            assert shared == (is_view and first is second)
            assert vectors.values.flags.writeable
            assert vectors.ids.flags.writeable
            n = vectors.indptr.size - 1
            dense = sp.csr_array((vectors.values, vectors.ids, vectors.indptr), shape=(n, 6)).toarray()
            assert_array_equal(dense[vectors.first], X[rows])
            assert_array_equal(dense[vectors.second], X[next_rows])

    def test_read_only_stores_are_copied(self) -> None:
        store = sp.csr_array(np.eye(5))
        steps = self.transitions(store, [0, 1, 2], [1, 2, 3])
        csr: Any = steps.store
        csr.data.flags.writeable = csr.indices.flags.writeable = False
        vectors = vectors_of(Batch.from_transitions(steps))
        assert vectors.values.flags.writeable
        assert vectors.ids.flags.writeable

    @pytest.mark.parametrize("n_targets", [1, 3])
    @pytest.mark.parametrize("trace", ["accumulating", "replacing"])
    @pytest.mark.parametrize("n_features", [300, 50_000, 2**40])
    def test_stores_of_all_kinds_teach_the_same(self, n_features: int, trace: Trace, n_targets: int) -> None:
        """One store, two stores, gaps between rows, one by one: not a bit differs."""
        rng = np.random.default_rng(n_targets)
        names = np.sort(rng.choice(n_features, 200, replace=False))
        X = sp.random_array((401, 200), density=0.03, format="csr", rng=rng)
        X = sp.csr_array((X.data, names[X.indices], X.indptr), shape=(401, n_features))
        spread = sp.csr_array(sp.vstack([X, X[::-1]]))[np.repeat(np.arange(401), 2)]
        rewards, gammas = rng.standard_normal((400, n_targets)), rng.choice([0.9, 0.9, 0.5, 0.0], 400)
        columns = {"discounts": gammas, "trace_discounts": np.roll(gammas, 1)}
        t = np.arange(400)
        forms = [
            Transitions.from_rows(X, t, rewards, t + 1, **columns),
            Transitions(X[:-1], rewards, X[1:], **columns),
            Transitions.from_rows(spread, 2 * t, rewards, 2 * t + 2, **columns),
        ]
        models = [TD(n_features, step_size=0.05, lambda_=0.8, trace=trace, n_targets=n_targets) for _ in range(4)]
        for model, steps in zip(models, forms, strict=False):
            model.update_many(steps)
        for step in forms[0]:
            models[3].update(step)
        first = models[0].sparse_weights
        for model in models[1:]:
            other = model.sparse_weights
            assert model.n_seen == models[0].n_seen
            if isinstance(first, SparseVector):
                assert_array_equal(other.indices, first.indices)
                assert_array_equal(other.values, first.values)
            else:
                assert abs(other - first).nnz == 0

    def test_what_lies_between_rows_in_use_does_not_matter(self) -> None:
        X = sp.csr_array(np.eye(40)[:20])
        steps = self.transitions(X, [0, 1, 5, 6], [1, 2, 6, 7])
        twin = self.transitions(X.copy(), [0, 1, 5, 6], [1, 2, 6, 7])
        csr: Any = steps.store
        csr.indices[3:5], csr.data[3:5] = 2**60, np.nan
        models = [TD(40, step_size=0.1, lambda_=0.9) for _ in range(2)]
        for model, part in zip(models, (steps, twin), strict=True):
            model.update_many(part)
        assert_array_equal(models[0].weights, models[1].weights)

    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e101])
    def test_bad_values_change_nothing(self, value: float) -> None:
        X = sp.csr_array(np.eye(40)[:20])
        steps = self.transitions(X, np.arange(19), np.arange(1, 20))
        model = TD(40, step_size=0.1, lambda_=0.9)
        model.update_many(steps[:10])
        before = model.weights
        csr: Any = steps.store
        for e in (12, 19):
            csr.data[e] = value
            with pytest.raises(InvalidInputError, match=str(value).replace("+", r"\+")):
                model.update_many(steps[10:])
            csr.data[e] = 1.0
        csr.indices[13] = 40
        with pytest.raises(InvalidInputError, match="must lie in"):
            model.update_many(steps[10:])
        assert_array_equal(model.weights, before)
        assert model.n_updates == 10


PROCESSES: dict[str, MarkovRewardProcess] = {
    "Boyan's chain": boyan_chain(),
    "random walk": random_walk(7, gamma=0.95, features="dependent"),
    "Garnet": garnet(20, 2, 3, 6, np.random.default_rng(0), gamma=0.9, reward_noise=0.5),
    "off-policy Garnet": garnet_off_policy(20, 2, 3, 6, np.random.default_rng(1), gamma=0.9),
}


@cache
def long_stream(name: str, n_steps: int) -> Transitions:
    return PROCESSES[name].sample(n_steps, np.random.default_rng(2), sparse=True)


class TestExpectedUpdate:
    @pytest.mark.long
    @pytest.mark.parametrize("name", PROCESSES)
    @LAMBDAS
    def test_vanishes_at_the_solution(self, name: str, lambda_: float) -> None:
        """The mean of δ_t z_t is b - A w: zero at the oracle's w*, within 4.5 standard errors, and not zero elsewhere.

        A step size of 1e-9 leaves the weights where they start, so that their change is the sum of δ_t z_t. The error
        is estimated from 40 batches of 2,500 steps, which are nearly independent.
        """
        if name == "off-policy Garnet" and lambda_ == 1.0:
            lambda_ = 0.8  # the traces' variance is infinite at 1
        process, alpha, batches, length = PROCESSES[name], 1e-9, 40, 2_500
        A, b = process.system(lambda_)
        solution = process.solution(lambda_)
        assert np.abs(b - A @ solution).max() < 1e-12 * max(1.0, np.abs(b).max())
        stream = long_stream(name, batches * length)
        off = solution + np.random.default_rng(3).standard_normal(solution.size)
        for start, expected in ((solution, 0.0 * b), (off, b - A @ off)):
            model = TD(process.n_features, step_size=alpha, lambda_=lambda_)
            model.start_from(start)
            means = np.zeros((batches, solution.size))
            before = start
            for i in range(batches):
                model.update_many(stream[i * length : (i + 1) * length])
                means[i] = (model.weights - before) / (alpha * length)
                before = model.weights
            errors = means.std(axis=0, ddof=1) / np.sqrt(batches)
            assert (np.abs(means.mean(axis=0) - expected) <= 4.5 * errors + 1e-6).all()
        assert (np.abs(expected) > 10.0 * errors).any()  # there was something to see

    @pytest.mark.parametrize("name", ["Boyan's chain", "random walk"])
    def test_small_steps_end_there(self, name: str) -> None:
        process = PROCESSES[name]
        model = TD(process.n_features, step_size=Decay(0.05, 1_000), lambda_=0.5)
        model.update_many(process.sample(300_000, np.random.default_rng(0)))
        solution = process.solution(0.5)
        assert np.abs(model.weights - solution).max() < 0.1 * np.abs(solution).max()


class TestSize:
    @pytest.mark.parametrize("n_features", [2**31, 2**62])
    @pytest.mark.parametrize("trace", ["accumulating", "replacing"])
    def test_features_never_seen_take_no_memory(self, n_features: int, trace: Trace) -> None:
        rng = np.random.default_rng(0)
        ids = np.unique(rng.integers(0, n_features, 3_000))
        picked = [np.unique(rng.integers(0, ids.size, 5)) for _ in range(1_001)]
        model, small = (TD(n, step_size=0.05, lambda_=0.9, trace=trace) for n in (n_features, ids.size))
        for t in range(1_000):
            for each, names in ((model, ids), (small, np.arange(ids.size))):
                x, x_next = (
                    SparseVector(names[p], np.ones(p.size), each.n_features) for p in (picked[t], picked[t + 1])
                )
                each.update(Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.9 if t % 50 else 0.0))
        assert 2_000 < model.n_seen == small.n_seen
        assert model.nbytes < 150 * model.n_seen
        weights = model.sparse_weights
        assert isinstance(weights, SparseVector)
        assert_array_equal(weights.indices, ids[small.weights != 0.0])
        assert_array_equal(weights.values, small.weights[small.weights != 0.0])
        x, same = SparseVector(ids[:9], np.ones(9), n_features), SparseVector(np.arange(9), np.ones(9), ids.size)
        assert model.predict(x) == small.predict(same)

    def test_update_many_at_a_huge_size(self) -> None:
        rng = np.random.default_rng(1)
        X = sp.csr_array(
            (np.ones(40_000), rng.integers(0, 2**31, 40_000), np.arange(0, 40_001, 4)), shape=(10_000, 2**31)
        )
        ones = np.full(9_999, 0.9)
        steps = Transitions.from_rows(
            X, np.arange(9_999), ones, np.arange(1, 10_000), discounts=ones, trace_discounts=ones
        )
        model = TD(2**31, step_size=0.05, lambda_=0.9, n_targets=1)
        model.update_many(steps)
        assert model.n_seen > 39_000
        assert model.nbytes < 150 * model.n_seen
        assert np.isfinite(model.sparse_weights.values).all()

    def test_repeats_take_no_memory(self) -> None:
        X = sp.csr_array(np.eye(20))
        rows, gammas = np.random.default_rng(0).integers(0, 20, 50_000), np.full(50_000, 0.9)
        model = TD(20, step_size=0.05, lambda_=0.9)
        model.update_many(Transitions.from_rows(X, rows, gammas, rows, discounts=gammas, trace_discounts=gammas))
        assert model.n_seen == 20
        assert model.nbytes < 5_000

    def test_next_features_take_no_memory(self) -> None:
        model = TD(10, step_size=0.1, lambda_=0.5)
        model.update(Transition(np.eye(10)[0], 1.0, np.eye(10)[1], discount=0.9, trace_discount=0.0))
        assert model.n_seen == 1
        assert model.predict(np.eye(10)[1]) == 0.0

    def test_the_trace_does_not_grow_for_ever(self) -> None:
        """Ten new features a step at γλ = 0.81: entries leave after ln(1e-20) / ln(0.81) = 219 steps and 33 epochs."""
        n = 5_000
        X = sp.csr_array((np.ones(10 * n), np.arange(10 * n), np.arange(0, 10 * n + 1, 10)), shape=(n, 10 * n))
        gammas = np.full(n - 1, 0.9)
        steps = Transitions.from_rows(
            X, np.arange(n - 1), gammas, np.arange(1, n), discounts=gammas, trace_discounts=gammas
        )
        model = TD(10 * n, step_size=0.01, lambda_=0.9)
        model.update_many(steps)
        assert model._counts[0] < 10 * (219 + 33 * 20)


class TestDivergence:
    @pytest.mark.parametrize("density", [0.1, 1.0])
    def test_is_silent(self, density: float) -> None:
        """Far too large a step size ends in infinite or undefined weights, without an error or a warning."""
        steps = random_transitions(np.random.default_rng(0), n_features=20, n_steps=800, density=density)
        model = TD(20, step_size=50.0, lambda_=0.9)
        model.update_many(steps)
        model.update(steps[0])
        assert not np.isfinite(model.weights).all()
        for x in (np.ones(20), SparseVector([3], [1.0], 20), np.eye(20), sp.csr_array(np.eye(20))):
            model.predict(x)
        assert not np.isfinite(model.predict(np.eye(20))).all()
        model.sparse_weights  # noqa: B018


class TestStartFrom:
    @pytest.mark.parametrize("density", [0.2, 1.0])
    @pytest.mark.parametrize("n_targets", [1, 3])
    def test_forms(self, density: float, n_targets: int) -> None:
        rng = np.random.default_rng(0)
        W = rng.standard_normal((20, n_targets)) * (rng.random((20, 1)) < 0.6)
        plain: Any = W[:, 0] if n_targets == 1 else W
        forms = [plain, sp.csc_array(W), sp.coo_array(W)]
        if n_targets == 1:
            forms += [SparseVector.from_dense(W[:, 0]), plain.tolist(), W]
        steps = random_transitions(rng, n_features=20, n_steps=40, density=density, n_targets=n_targets)
        results = []
        for form in forms:
            model = TD(20, step_size=0.01, lambda_=0.5, n_targets=n_targets)
            model.start_from(np.ones_like(plain))
            model.start_from(form)
            assert_array_equal(model.weights, plain)
            assert_allclose(model.predict(np.ones(20)), plain.sum(axis=0), rtol=1e-13)
            assert model.n_updates == 0
            model.update_many(steps)
            results.append(model.weights)
        for result in results[1:]:
            assert_array_equal(result, results[0])
        # linearity: TD from w is TD from 0 on what w leaves unexplained
        left = steps.rewards.reshape(40, -1) + steps.discounts[:, None] * (steps.X_next @ W) - steps.X @ W
        columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
        fresh = TD(20, step_size=0.01, lambda_=0.5, n_targets=n_targets)
        fresh.update_many(Transitions(steps.X, left if n_targets > 1 else left[:, 0], steps.X_next, **columns))
        assert_allclose(results[0], plain + fresh.weights, rtol=1e-10, atol=1e-12)

    def test_from_another_model_at_a_huge_size(self) -> None:
        first = TD(2**40, step_size=0.1, lambda_=0.9, n_targets=2)
        x = SparseVector([7, 2**39], [1.0, 2.0], 2**40)
        first.update(Transition(x, [1.0, 0.0], x, discount=0.0, trace_discount=0.0))
        second = TD(2**40, step_size=0.1, lambda_=0.9, n_targets=2)
        second.start_from(first.sparse_weights)
        assert_array_equal(second.predict(x), first.predict(x))

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.ones(3), "3 features"),
            (np.ones((4, 2)), "2 target"),
            (np.full(4, np.nan), "nan"),
            (SparseVector([0], [1.0], 5), "5 features"),
            (sp.csc_array(np.full((4, 1), np.inf)), "inf"),
            (SparseVector._trusted(np.array([1]), np.array([np.nan]), 4), "finite"),
            ("abc", "weights"),
            (np.ones((4, 1, 1)), "shape"),
        ],
    )
    def test_refused(self, weights: Any, message: str) -> None:
        model = TD(4, step_size=0.1, lambda_=0.5)
        model.start_from([1.0, 2.0, 3.0, 4.0])
        with pytest.raises(InvalidInputError, match=message):
            model.start_from(weights)
        assert_array_equal(model.weights, [1.0, 2.0, 3.0, 4.0])

    def test_refused_after_an_update(self) -> None:
        model = TD(2, step_size=0.1, lambda_=0.5)
        model.update(Transition([1.0, 0.0], 1.0, [0.0, 0.0], discount=0.0, trace_discount=0.0))
        with pytest.raises(InvalidInputError, match="after 1 updates"):
            model.start_from([0.0, 0.0])


class TestParameters:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"step_size": 0.0}, "step_size is 0.0"),
            ({"step_size": "x"}, "step_size is 'x'"),
            ({"lambda_": 1.1}, "lambda_ is 1.1"),
            ({"trace": "dutch"}, "trace is 'dutch'"),
            ({"n_targets": 0}, "n_targets is 0"),
            ({"n_features": 0}, "n_features is 0"),
        ],
    )
    def test_refused(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidParameterError, match=message):
            TD(**{"n_features": 3, "step_size": 0.1, "lambda_": 0.5, **change})

    def test_beta_is_no_option(self) -> None:
        with pytest.raises(TypeError, match="beta"):
            TD(3, step_size=0.1, lambda_=0.5, beta=0.1)  # type: ignore[call-arg]

    def test_replacing_refuses_dense_features(self) -> None:
        model = TD(10, step_size=0.1, lambda_=0.5, trace="replacing")
        with pytest.raises(InvalidInputError, match="6 of 10 entries"):
            model.update(
                Transition(np.r_[np.ones(6), np.zeros(4)], 1.0, np.zeros(10), discount=0.9, trace_discount=0.0)
            )
        assert model.n_updates == model.n_seen == 0
