from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import batch_lstd, dense, pairwise, random_transitions
from tlstd import LSTD, boyan_chain, random_walk
from tlstd.core import file_format
from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import CapacityError, InvalidInputError, InvalidParameterError, StateError
from tlstd.estimators.loading import load
from tlstd.estimators.step_sizes import Decay, StepSize, as_schedule
from tlstd.zoo.ilstd import ILSTD
from tlstd.zoo.kernels.ilstd import PAGE, SMALL


def literal(steps: Transitions, lambda_: float, step_size: StepSize, m: int) -> tuple[FloatArray, FloatArray]:
    """w and μ by a dense loop, one line per equation."""
    w, mu, _, _ = literally(steps, lambda_, step_size, m)
    return w, mu


def literally(
    steps: Transitions, lambda_: float, step_size: StepSize, m: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The same, the summed A, and the value of each x_next right after its step."""
    n, values = steps.n_features, []
    columns_of_A, mu, w, z = np.zeros((n, n)), np.zeros(n), np.zeros(n), np.zeros(n)  # one column a row
    for t, alpha in zip(steps, as_schedule(step_size).values(1, len(steps)), strict=True):
        x, x_next = dense(t.x), dense(t.x_next)
        z = t.rho * (t.trace_discount * lambda_ * z + x)
        d = x - t.discount * x_next
        columns = np.flatnonzero(d)
        columns_of_A[columns] += np.outer(d[columns], z)
        mu += z * (t.reward - d @ w)
        for _ in range(m):
            j = np.abs(mu).argmax()
            step = alpha * mu[j]
            w[j] += step
            mu -= step * columns_of_A[j]
        values.append(x_next @ w)
    return w, mu, columns_of_A.T, np.array(values)


def assert_same(found: FloatArray, expected: FloatArray, tolerance: float = 1e-10) -> None:
    assert_allclose(found, expected, rtol=0.0, atol=tolerance * np.abs(expected).max(initial=1e-300))


def residual(model: ILSTD) -> FloatArray:
    ids, _, mu = model.system()
    full = np.zeros(model.n_features)
    full[ids] = mu
    return full


def tile_like(rng: np.random.Generator, n_steps: int, n_features: int, n_active: int) -> Transitions:
    """Binary features and numbers that floating point adds and multiplies exactly, so that ties are ties."""
    X = np.zeros((n_steps + 1, n_features))
    for row in X:
        row[rng.permutation(n_features)[:n_active]] = 1.0
    flags = {"terminated": rng.random(n_steps) < 0.2, "truncated": rng.random(n_steps) < 0.1}
    return Transitions.from_arrays(X[:-1], rng.integers(-2, 3, n_steps).astype(float), X[1:], **flags, gamma=0.5)


STREAMS: dict[str, dict[str, Any]] = {
    "dense": {},
    "sparse": {"sparse": True, "density": 0.2},
    "sparse, dense storage": {"density": 0.2},
    "off-policy": {"off_policy": True, "density": 0.6},
    "off-policy, sparse": {"off_policy": True, "sparse": True, "density": 0.3},
    "short episodes": {"terminate": 0.4, "truncate": 0.3, "density": 0.5},
    "all truncated": {"truncate": 1.0, "sparse": True, "density": 0.5},
    "one long episode": {"terminate": 0.0, "truncate": 0.0, "density": 0.3},
}
SCHEDULES: dict[str, StepSize] = {
    "decay": Decay(0.05, 10),
    "constant": 1e-3,
    "function": lambda t: 0.0 if t % 7 == 0 else 0.3 / (t + 10) ** 0.9,
}


class TestAgainstTheDenseLoop:
    @pytest.mark.parametrize(("kind", "lambda_", "m"), pairwise(STREAMS, (0.0, 0.5, 1.0), (1, 3, 50)))
    def test_weights_and_residual(self, kind: str, lambda_: float, m: int) -> None:
        """50 features, so that there are several pages; m = 50 are "all"."""
        steps = random_transitions(np.random.default_rng(len(kind)), n_features=50, n_steps=80, **STREAMS[kind])
        for step_size in SCHEDULES.values():
            w, mu = literal(steps, lambda_, step_size, m)
            assert np.abs(w).max() < 1e3  # else it would compare chaos
            model = ILSTD(50, step_size=step_size, lambda_=lambda_, coordinates_per_step=m)
            model.update_many(steps)
            assert_same(model.weights, w)
            assert_same(residual(model), mu)

    @pytest.mark.parametrize("kind", STREAMS)
    def test_values_after_each_step(self, kind: str) -> None:
        """Also those of final observations, and with features that no x has brought yet."""
        steps = random_transitions(np.random.default_rng(len(kind)), n_features=50, n_steps=80, **STREAMS[kind])
        for step_size in SCHEDULES.values():
            model = ILSTD(50, step_size=step_size, lambda_=0.5, coordinates_per_step=3)
            silent = copy.deepcopy(model)
            values = np.concatenate([model.update_and_predict(steps[:30]), model.update_and_predict(steps[30:])])
            silent.update_many(steps)
            assert_same(values, literally(steps, 0.5, step_size, 3)[3])
            assert_array_equal(model.weights, silent.weights)
            assert_array_equal(residual(model), residual(silent))

    @pytest.mark.parametrize("seed", range(6))
    def test_ties(self, seed: int) -> None:
        """Equal residuals are the rule with tiles: the first of them moves, in whatever order features appeared."""
        steps = tile_like(np.random.default_rng(seed), 40, 70, 5)
        for m in (1, 4):
            model = ILSTD(70, step_size=2.0**-6, lambda_=0.5, coordinates_per_step=m)
            one_by_one = copy.deepcopy(model)
            model.update_many(steps)
            for t in steps:
                one_by_one.update(t)
            assert_array_equal(one_by_one.weights, model.weights)
            assert_same(model.weights, literal(steps, 0.5, 2.0**-6, m)[0], 1e-12)

    def test_by_hand(self) -> None:
        """Two features, α = 0.1, λ = 0.5.

        First z = (1, 0), d = (1, -0.9), so μ = (3, 0); w₀ = 0.1·3 and μ₀ -= 0.3·1. Then z = 0.45·(1, 0) + (0, 2) and
        d = (0, 2) (terminated), so A = [[1, -0.9 + 0.45·2], [0, 4]] and μ = (2.7 + 0.45·5, 2·5); w₁ = 0.1·10 and
        μ -= 1·A e₁ = (0, 4).
        """
        model = ILSTD(2, step_size=0.1, lambda_=0.5)
        model.update(Transition([1.0, 0.0], 3.0, [0.0, 1.0], discount=0.9, trace_discount=0.0))
        assert_allclose(model.weights, [0.3, 0.0], rtol=1e-14)
        assert_allclose(model.system()[1], [[1.0, -0.9], [0.0, 0.0]], rtol=1e-14)
        assert_allclose(model.system()[2], [2.7, 0.0], rtol=1e-14)
        model.update(Transition([0.0, 2.0], 5.0, [7.0, 7.0], discount=0.0, trace_discount=0.9))
        assert_allclose(model.weights, [0.3, 1.0], rtol=1e-14)
        assert_allclose(model.system()[1], [[1.0, 0.0], [0.0, 4.0]], rtol=1e-14, atol=1e-15)
        assert_allclose(model.system()[2], [4.95, 6.0], rtol=1e-14)


def wandering(seed: int, n_steps: int, *, n_features: int = 1600, active: int = 80, gamma: float = 0.8) -> Transitions:
    """Sparse features near a place that wanders about: at first among few, in the end among all. Off-policy."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_steps + 1, n_features))
    for t, row in enumerate(X):
        width = n_features if t > n_steps // 4 else n_features // 2
        near = int(0.5 * (1.0 + np.sin(0.05 * t)) * (width - 200)) + rng.permutation(200)[:active]
        row[near] = rng.uniform(0.5, 1.5, active)
        row[0] = 1.0
    flags = {"terminated": rng.random(n_steps) < 0.02, "truncated": rng.random(n_steps) < 0.02}
    rewards, rhos = rng.standard_normal(n_steps), rng.choice([0.0, 0.5, 1.0, 2.0], n_steps, p=[0.02, 0.2, 0.58, 0.2])
    return Transitions.from_arrays(sp.csr_array(X[:-1]), rewards, sp.csr_array(X[1:]), **flags, gamma=gamma, rhos=rhos)


class TestNotedSteps:
    """More than SMALL features seen: most columns are added to late (and all when the history is full)."""

    OPTIONS: ClassVar[dict[str, Any]] = {"step_size": Decay(0.01, 50), "lambda_": 1.0, "coordinates_per_step": 7}

    def model(self, **changes: Any) -> ILSTD:
        return ILSTD(1600, **{**self.OPTIONS, **changes})

    @classmethod
    @cache  # nobody changes it: what is refused is not taken over
    def state(cls) -> dict[str, Any]:
        """The state of a model of 300 steps, parts of parts by their full names."""
        model = cls().model()
        model.update_many(wandering(6, 300))
        assert model.n_seen > SMALL
        flat: dict[str, Any] = {}
        for key, value in model._state().items():
            flat.update({f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value})
        return flat

    @pytest.mark.parametrize(
        ("seed", "gamma", "lambda_"), [(1, 0.99, 1.0), pytest.param(2, 0.8, 0.0, marks=pytest.mark.long)]
    )
    def test_against_the_dense_loop(self, seed: int, gamma: float, lambda_: float) -> None:
        steps = wandering(seed, 640, gamma=gamma)
        model = self.model(lambda_=lambda_)
        restarts, before, not_written = 0, 0, 0
        for start in range(0, 640, 40):
            model.update_many(steps[start : start + 40])
            restarts += int(model._history.sizes[0]) < before
            before = int(model._history.sizes[0])
            not_written = max(not_written, model._A.n_reserved - int(model._A.counts[0]))
        assert model.n_seen > SMALL
        assert restarts > 0
        assert not_written > 0
        w, mu, A, _ = literally(steps, lambda_, self.OPTIONS["step_size"], 7)
        assert_same(model.weights, w)
        assert_same(residual(model), mu)
        ids, found, _ = model.system()
        assert_same(found, A[np.ix_(ids, ids)], 1e-12)

    def test_values_after_each_step(self) -> None:
        """Where the loop comes back for pages and for room in the history."""
        steps = wandering(3, 400)
        model, silent, in_turn = self.model(), self.model(), self.model()
        values = model.update_and_predict(steps)
        silent.update_many(steps)
        expected = []
        for t in steps:
            in_turn.update(t)
            expected.append(in_turn.predict(t.x_next))
        assert model.n_seen > SMALL
        assert_same(values, np.array(expected), 1e-13)
        for other in (silent, in_turn):
            assert_array_equal(model.weights, other.weights)
            assert_array_equal(residual(model), residual(other))

    def test_however_the_stream_is_cut(self) -> None:
        """Bit by bit: when columns are caught up with depends on the steps alone."""
        steps = wandering(4, 640)
        whole, one_by_one, pieces, pickled = (self.model() for _ in range(4))
        whole.update_many(steps)
        for t in steps:
            one_by_one.update(t)
        rng, at = np.random.default_rng(0), 0
        while at < 640:
            size = int(rng.integers(1, 130))
            pieces.update_many(steps[at : at + size])
            pickled.update_many(steps[at : at + size])
            pickled = pickle.loads(pickle.dumps(pickled))
            _ = pieces.system()  # reading changes nothing
            at += size
        system = whole.system()
        for model in (one_by_one, pieces, pickled):
            assert_array_equal(model.weights, whole.weights)
            for x, y in zip(model.system(), system, strict=True):
                assert_array_equal(x, y)

    def test_saved_and_continued_is_never_stopped(self, tmp_path: Path) -> None:
        steps = wandering(5, 640)
        whole = self.model()
        for start in range(0, 640, 160):
            before = whole if start == 0 else load(tmp_path / "model")
            before.save(tmp_path / "model")
            loaded = load(tmp_path / "model")
            loaded.save(tmp_path / "again")
            assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
            loaded.update_many(steps[start : start + 160])
            loaded.save(tmp_path / "model")
        whole.update_many(steps)
        assert isinstance(loaded, ILSTD)
        assert_array_equal(loaded.weights, whole.weights)
        for x, y in zip(loaded.system(), whole.system(), strict=True):
            assert_array_equal(x, y)

    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            ("history.starts", lambda a: a[::-1], "where steps begin"),
            ("history.starts", lambda a: a[:1], "where steps begin"),
            ("history.starts", lambda a: a * 2, "shape"),
            ("history.decays", lambda a: -a, "outside"),
            ("history.decays", lambda a: a[1:], "shape"),
            ("history.x_rows", lambda a: a + 1600, "outside"),
            ("history.x_values", lambda a: a * np.nan, "not finite"),
            ("history.columns", lambda a: a + 1600, "outside"),
            ("history.columns", lambda a: a - 2, "outside"),
            ("history.steps", lambda a: a + 10**6, "outside"),
            ("history.d_values", lambda a: a[1:], "shape"),
            ("A.reserved", lambda a: a * 0, "twice"),
            ("A.reserved", lambda a: a - 10**7, "outside"),
            ("moved", lambda a: a + 10**6, "outside"),
        ],
    )
    def test_what_cannot_be_is_refused(self, name: str, change: Callable[[Any], Any], message: str) -> None:
        flat = self.state()
        fresh = self.model()
        fresh._n_updates = 300
        with pytest.raises(StateError, match=message):
            fresh._restore(Saved({**flat, name: change(flat[name])}))

    def test_refusal_leaves_the_model_unchanged(self) -> None:
        steps = wandering(7, 500)
        free = self.model()
        free.update_many(steps[:300])
        limit = 4 * free.n_seen * -(-free.n_seen // PAGE) + 8 * PAGE * (free._A.n_reserved + int(free._A.counts[1]))
        model = self.model(memory_limit=limit)
        model.update_many(steps[:250])
        with pytest.raises(CapacityError, match="memory_limit"):
            model.update_many(steps[250:])
        assert model.n_updates == 250
        model.update_many(steps[250:300])
        assert_array_equal(model.weights, free.weights)
        for x, y in zip(model.system(), free.system(), strict=True):
            assert_array_equal(x, y)


class TestResidual:
    @pytest.mark.parametrize("lambda_", [0.0, 0.9])
    def test_stays_b_minus_A_w(self, lambda_: float) -> None:
        """After 5,000 steps of 5 coordinates, against sums made without them."""
        rng = np.random.default_rng(0)
        steps = random_transitions(rng, n_features=40, n_steps=5000, density=0.1, sparse=True, off_policy=True)
        model = ILSTD(40, step_size=Decay(0.05, 100), lambda_=lambda_, coordinates_per_step=5)
        model.update_many(steps)
        A, b = (5000.0 * part for part in batch_lstd(steps, lambda_))
        ids, found_A, _ = model.system()
        assert_allclose(found_A, A[np.ix_(ids, ids)], rtol=1e-10, atol=1e-9)
        scale = np.abs(b[:, 0]) + np.abs(A) @ np.abs(model.weights)
        assert (np.abs(residual(model) - (b[:, 0] - A @ model.weights)) < 1e-12 * scale.max()).all()

    def test_long_traces_leave_no_error_in_A(self) -> None:
        """γλ = 0.9: what leaves the trace after 350 steps is no more than rounding."""
        rng = np.random.default_rng(1)
        options: dict[str, Any] = {"density": 0.01, "terminate": 0.0, "truncate": 0.0, "sparse": True}
        steps = random_transitions(rng, n_features=300, n_steps=600, **options)
        model = ILSTD(300, step_size=Decay(0.05, 100), lambda_=1.0)
        model.update_many(steps)
        ids, found, _ = model.system()
        A = 600.0 * batch_lstd(steps, 1.0)[0]
        assert np.abs(found - A[np.ix_(ids, ids)]).max() < 1e-13 * np.abs(A).max()


class TestApproachesLSTD:
    @pytest.mark.parametrize("lambda_", [0.0, 0.8])
    @pytest.mark.parametrize("oracle", ["random walk", "Boyan chain"])
    def test_with_all_coordinates_and_decaying_steps(self, oracle: str, lambda_: float) -> None:
        process = random_walk(7, gamma=0.95) if oracle == "random walk" else boyan_chain()
        stream = process.sample(40_000, np.random.default_rng(0))
        n = process.n_features
        distances = []
        for length in (400, 40_000):
            model = ILSTD(n, step_size=Decay(0.1, 50), lambda_=lambda_, coordinates_per_step=n)
            exact = LSTD(n, lambda_=lambda_, rcond=1e-12)
            model.update_many(stream[:length])
            exact.update_many(stream[:length])
            distances.append(np.abs(model.weights - exact.weights).max() / np.abs(exact.weights).max())
        assert distances[1] < 0.1 * distances[0], distances
        assert distances[1] < 1e-3, distances
        values = process.values()
        assert np.abs(model.predict(process.X) - values).max() < 0.05 * np.abs(values).max()

    def test_more_coordinates_are_closer(self) -> None:
        process = random_walk(11, gamma=0.95)
        stream = process.sample(3000, np.random.default_rng(3))
        exact = LSTD(11, lambda_=0.5, rcond=1e-12)
        exact.update_many(stream)
        distances = []
        for m in (1, 3, 11):
            model = ILSTD(11, step_size=Decay(0.1, 50), lambda_=0.5, coordinates_per_step=m)
            model.update_many(stream)
            distances.append(np.abs(model.weights - exact.weights).max())
        assert distances[0] > distances[1] > distances[2]


class TestDivergence:
    @pytest.mark.parametrize("m", [1, 4])
    def test_without_decay_is_data(self, m: int) -> None:
        """Warnings are errors here. Reading and learning go on."""
        stream = boyan_chain().sample(3000, np.random.default_rng(0))
        model = ILSTD(4, step_size=0.5, lambda_=0.5, coordinates_per_step=m)
        model.update_many(stream)
        assert not np.isfinite(model.weights).all()
        model.update(stream[0])
        model.update_many(stream[:10])
        assert model.n_updates == 3011
        X = np.asarray(boyan_chain().X)
        forms = (model.predict(X), model.predict(sp.csr_array(X)), np.array([model.predict(x) for x in X]))
        for values in forms:
            assert not np.isfinite(values).all()
        assert not np.isfinite(model.sparse_weights.values).all()

    def test_decay_of_the_same_first_step_converges(self) -> None:
        chain = boyan_chain()
        model = ILSTD(4, step_size=Decay(0.5, 10), lambda_=0.5, coordinates_per_step=4)
        model.update_many(chain.sample(3000, np.random.default_rng(0)))
        assert np.abs(model.predict(chain.X) - chain.values()).max() < 1.0


class TestCapacity:
    @staticmethod
    def stream(n_steps: int, n_features: int, seed: int = 0) -> Transitions:
        rng = np.random.default_rng(seed)
        return random_transitions(rng, n_features=n_features, n_steps=n_steps, density=3 / n_features, sparse=True)

    @pytest.mark.parametrize("limit", [100_000, 200_000, 400_000])
    def test_refusal_leaves_the_model_unchanged(self, limit: int) -> None:
        """Too many pages: refused whole, at the same point of the stream whether it comes in one piece or in steps."""
        known, rest = self.stream(20, 400), self.stream(300, 400, seed=1)
        options: dict[str, Any] = {"step_size": Decay(0.1, 10), "lambda_": 0.9, "coordinates_per_step": 2}
        model = ILSTD(400, memory_limit=limit, **options)
        model.update_many(known)
        before, n_seen, twin = model.weights.copy(), model.n_seen, copy.deepcopy(model)
        with pytest.raises(CapacityError, match=r"memory_limit = .* GB .*: use TLSTD"):
            model.update_many(rest)
        assert (model.n_updates, model.n_seen) == (20, n_seen)
        assert_array_equal(model.weights, before)
        taken = 0
        with pytest.raises(CapacityError):  # noqa: PT012 - which step is refused is the question
            for t in rest:
                twin.update(t)
                taken += 1
        assert 0 < taken < 300
        model.update_many(rest[:taken])
        assert_array_equal(model.weights, twin.weights)
        for x, y in zip(model.system(), twin.system(), strict=True):
            assert_array_equal(x, y)
        with pytest.raises(CapacityError):
            model.update(rest[taken])
        free = ILSTD(400, **options)
        free.update_many(known)
        free.update_many(rest[:taken])
        assert_array_equal(model.weights, free.weights)

    def test_too_many_features(self) -> None:
        model = ILSTD(1000, step_size=0.1, lambda_=0.0, memory_limit=1000)
        with pytest.raises(CapacityError, match="1000 distinct features"):
            model.update(Transition(np.ones(1000), 1.0, np.ones(1000), discount=0.9, trace_discount=0.0))
        assert (model.n_updates, model.n_seen) == (0, 0)
        model.update(Transition(np.eye(1000)[3], 1.0, np.eye(1000)[3], discount=0.0, trace_discount=0.0))
        assert model.weights[3] == 0.1

    def test_new_features_count_even_if_they_write_nothing(self) -> None:
        """With ρ = 0 nothing is added to A, but the table grows."""
        model = ILSTD(100, step_size=0.1, lambda_=0.0, memory_limit=4 * 8 + 2 * 256)
        x = np.eye(100)
        for i in (0, 1):
            model.update(Transition(x[i], 1.0, x[i], discount=0.0, trace_discount=0.0))
        with pytest.raises(CapacityError):
            model.update(Transition(x[2:30].sum(axis=0), 1.0, x[0], discount=0.0, trace_discount=0.0, rho=0.0))
        assert (model.n_updates, model.n_seen) == (2, 2)
        assert_array_equal(np.flatnonzero(model.weights), [0, 1])

    def test_a_step_size_that_cannot_be_used_changes_nothing(self) -> None:
        steps = self.stream(10, 50)
        model = ILSTD(50, step_size=lambda t: np.nan if t == 8 else 0.1, lambda_=0.5)
        with pytest.raises(InvalidParameterError, match=r"step_size\(8\)"):
            model.update_many(steps)
        assert (model.n_updates, model.n_seen) == (0, 0)
        model.update_many(steps[:7])
        assert model.n_updates == 7


def test_two_to_the_31_features() -> None:
    d = 2**31
    small = random_transitions(np.random.default_rng(0), n_features=60, n_steps=50, density=0.1, sparse=True)
    place = np.sort(np.random.default_rng(1).choice(d, 60, replace=False))
    place[-1] = d - 1
    model, twin = (ILSTD(n, step_size=Decay(0.1, 5), lambda_=0.7, coordinates_per_step=3) for n in (d, 60))

    def far(x: Any) -> SparseVector:
        return SparseVector(place[x.indices], x.values, d)

    for t in small:
        twin.update(t)
        model.update(
            Transition(far(t.x), t.reward, far(t.x_next), discount=t.discount, trace_discount=t.trace_discount)
        )
    assert_array_equal(model.sparse_weights.values, twin.sparse_weights.values)
    assert_array_equal(model.sparse_weights.indices, place[twin.sparse_weights.indices])
    assert model.predict(far(small[3].x)) == pytest.approx(twin.predict(small[3].x), rel=1e-14)
    assert model.predict(SparseVector([5], [1.0], d)) == 0.0
    assert model.nbytes < 1_000_000
    with pytest.raises(CapacityError, match="sparse_weights"):
        _ = model.weights


class TestSaving:
    @pytest.mark.parametrize("step_size", [0.001, Decay(0.1, 10)])
    def test_saved_and_continued_is_never_stopped(self, step_size: StepSize, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        steps = random_transitions(rng, n_features=200, n_steps=300, density=0.02, sparse=True, off_policy=True)
        for cut in (0, 1, 30, 250):
            model = ILSTD(200, step_size=step_size, lambda_=0.8, coordinates_per_step=2)
            model.update_many(steps[:cut])
            model.save(tmp_path / "model")
            loaded = load(tmp_path / "model")
            loaded.save(tmp_path / "again")
            assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
            for m in (model, loaded):
                m.update_many(steps[cut:])
            assert isinstance(loaded, ILSTD)
            for x, y in zip(loaded.system(), model.system(), strict=True):
                assert_array_equal(x, y)
            assert_array_equal(loaded.weights, model.weights)

    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            ("A.places", lambda a: a * 0, "twice"),
            ("A.places", lambda a: a + 10**6, "outside"),
            ("A.pages", lambda a: a + 1.0, "rows past"),
            ("A.pages", lambda a: a[1:], "shape"),
            ("A.pages", lambda a: a * np.nan, "not finite"),
            ("blocks", lambda a: a[:0], "does not fit the trace"),
            ("blocks", lambda a: np.repeat(a, 2), "twice"),
            ("blocks", lambda a: a + 100, "outside"),
            ("tops", lambda a: a * 0.5, "does not fit the trace"),
            ("z", lambda a: a[1:], "shape"),
            ("seen.ids", lambda a: a * 0, "twice"),
        ],
    )
    def test_what_cannot_be_is_refused(self, name: str, change: Callable[[Any], Any], message: str) -> None:
        """Above all what kernels would use as an index."""
        steps = random_transitions(np.random.default_rng(0), n_features=70, n_steps=40, density=0.05, sparse=True)
        model = ILSTD(70, step_size=Decay(0.1, 10), lambda_=0.8)
        model.update_many(steps)
        flat: dict[str, Any] = {}
        for key, value in model._state().items():
            flat.update({f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value})
        for values in (flat, {**flat, name: change(flat[name])}):
            fresh = ILSTD(70, step_size=Decay(0.1, 10), lambda_=0.8)
            fresh._n_updates = 40
            if values is flat:
                fresh._restore(Saved(dict(flat)))
                continue
            with pytest.raises(StateError, match=message):
                fresh._restore(Saved(values))

    def test_a_pickled_model_goes_on(self) -> None:
        """Its arrays do not own their memory, so they cannot grow in place."""
        steps = random_transitions(np.random.default_rng(0), n_features=300, n_steps=200, density=0.02, sparse=True)
        model = ILSTD(300, step_size=Decay(0.1, 10), lambda_=0.8)
        model.update_many(steps[:20])
        for protocol in (2, 5):
            whole, twin = copy.deepcopy(model), pickle.loads(pickle.dumps(model, protocol=protocol))
            whole.update_many(steps[20:])
            twin.update_many(steps[20:])
            assert_array_equal(twin.weights, whole.weights)

    def test_a_matrix_too_large_for_its_limit_is_refused(self) -> None:
        model = ILSTD(500, step_size=0.1, lambda_=0.0, memory_limit=1000)
        none = np.zeros(0, dtype=np.int64)
        values = {"places": none, "pages": np.zeros((0, PAGE)), "reserved": none.copy()}
        with pytest.raises(StateError, match="too large"):
            model._A.restore(Saved(values), 500)

    def test_functions_and_diverged_models_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(StateError, match="cannot be saved"):
            ILSTD(3, step_size=lambda t: 1.0 / t, lambda_=0.5).save(tmp_path / "model")
        model = ILSTD(4, step_size=0.5, lambda_=0.5)
        model.update_many(boyan_chain().sample(3000, np.random.default_rng(0)))
        with pytest.raises(StateError, match="diverged"):
            model.save(tmp_path / "model")
        assert not list(tmp_path.iterdir())


class TestParameters:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"step_size": 0.0}, "step_size is 0"),
            ({"step_size": "fast"}, "step_size is 'fast'"),
            ({"lambda_": 1.1}, "lambda_ is 1.1"),
            ({"coordinates_per_step": 0}, "coordinates_per_step is 0"),
            ({"coordinates_per_step": 1 << 20}, "coordinates_per_step is 1048576"),
            ({"coordinates_per_step": 1.5}, "coordinates_per_step is 1.5"),
            ({"memory_limit": 0}, "memory_limit is 0"),
        ],
    )
    def test_bad_ones_are_refused(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidParameterError, match=message):
            ILSTD(3, **{"step_size": 0.1, "lambda_": 0.5, **changes})

    def test_one_target_only(self) -> None:
        with pytest.raises(TypeError, match="n_targets"):
            ILSTD(3, step_size=0.1, lambda_=0.5, n_targets=2)  # type: ignore[call-arg]
        steps = random_transitions(np.random.default_rng(0), n_features=3, n_steps=5, n_targets=2)
        with pytest.raises(InvalidInputError, match="n_targets=1"):
            ILSTD(3, step_size=0.1, lambda_=0.5).update_many(steps)


def test_a_first_sample_without_active_features() -> None:
    empty = SparseVector([], [], 40)
    steps = random_transitions(np.random.default_rng(0), n_features=40, n_steps=30, density=0.1, sparse=True)
    model, plain = (ILSTD(40, step_size=Decay(0.1, 10), lambda_=0.8) for _ in range(2))
    model.update(Transition(empty, 1.0, empty, discount=0.9, trace_discount=0.0))
    assert model.n_updates == 1
    assert not model.weights.any()
    plain.update(Transition(steps[0].x, 0.0, steps[0].x, discount=1.0, trace_discount=0.0))  # teaches nothing either
    for m in (model, plain):
        m.update_many(steps[:1])
        m.update_many(steps[1:])
    assert_allclose(model.weights, plain.weights, rtol=1e-9, atol=1e-12)


def test_a_history_that_no_model_has_is_refused(tmp_path: Path) -> None:
    """Notes of a model with few features would become a cycle once there are many: an update that never ends."""
    model = ILSTD(70, step_size=Decay(0.1, 10), lambda_=0.8)
    model.update_many(
        random_transitions(np.random.default_rng(0), n_features=70, n_steps=40, density=0.05, sparse=True)
    )
    state = model._state()
    notes = {"steps": np.array([0]), "columns": np.array([3]), "d_values": np.array([1.0])}
    crafted = {**state, "history": {**state["history"], **notes}}
    whole = {"n_updates": 40, "trace_bound": 0.0, "model": crafted}
    file_format.write(tmp_path / "model", "ILSTD", model._parameters(), whole)
    with pytest.raises(StateError, match="need no history"):
        load(tmp_path / "model")
