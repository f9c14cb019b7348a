"""Every row runs, gives numbers, and what it compares with does the same thing."""

import math
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from tlstd_lab.bench import loops, problems, threads
from tlstd_lab.bench.accumulation import numpy_encoder
from tlstd_lab.bench.growth import slope
from tlstd_lab.bench.one_projection import OneProjectionTLSTD
from tlstd_lab.bench.problems import scattered
from tlstd_lab.bench.profile import profile
from tlstd_lab.bench.registry import ROWS
from tlstd_lab.bench.report import run
from tlstd_lab.bench.row import title
from tlstd_lab.bench.stepping import COORDINATES, LAMBDA, STEP_SIZE, DenseILSTD, csr
from tlstd_lab.reference import ReferenceTLSTD

from tlstd import ILSTD, TileCoder
from tlstd.core import threads as library_threads

SLOW = ("compile", "ilstd-memory", "import")  # several fresh processes each


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n in SLOW else n for n in ROWS])
def test_row_runs_in_quick_mode(name: str) -> None:
    row = run([name], quick=True)["rows"][name]
    assert row["lines"]
    for line in row["lines"]:
        assert line["what"]
        assert all(math.isfinite(value) for value in line["values"])
        if line["unit"] in ("×", "GB"):
            assert all(value > 0.0 for value in line["values"])
        assert line["low"] <= line["median"] <= line["high"]
        for times in line["times"]:
            assert len(times["cpu"]) == len(times["wall"]) > 0
            assert times["steps"] > 0
    assert row["title"] == title(ROWS[name])
    assert row["title"]


def test_the_issues_targets_are_in_the_table() -> None:
    report = run(["tlstd-energy", "tlstd-energy-read", "tlstd-tiles", "tlstd-rbf", "lstd", "tile-coding"], quick=True)
    targets = {name: row["lines"][0]["target"] for name, row in report["rows"].items()}
    assert targets == {
        "tlstd-energy": [">=", 60.0],
        "tlstd-energy-read": [">=", 10.0],
        "tlstd-tiles": [">=", 4.0],
        "tlstd-rbf": [">=", 1.5],
        "lstd": [">=", 20.0],
        "tile-coding": [">=", 50.0],
    }


@pytest.mark.parametrize("literally", [False, True])
def test_dense_ilstd_is_ilstd(literally: bool) -> None:
    stream = scattered(60, 200, active=3, seen=60)
    model = ILSTD(60, step_size=STEP_SIZE, lambda_=LAMBDA, coordinates_per_step=COORDINATES)
    full = DenseILSTD(60)
    for part in (stream[:120], stream[120:]):
        model.update_many(part)
        (full.learn_literally if literally else full.learn)(part)
    np.testing.assert_allclose(model.weights, full.w, rtol=0, atol=1e-12 * np.abs(full.w).max())


def test_the_bare_loop_touches_what_td_touches() -> None:
    stream = scattered(100, 50, active=4, seen=100)
    w, z = np.zeros(100), np.zeros(100)
    loops.touch(csr(stream.X), csr(stream.X_next), np.array(stream.rewards), 0.1, 0.9, w, z)
    np.testing.assert_array_equal(z, stream.X.toarray().sum(axis=0))  # type: ignore[union-attr]
    expected = np.zeros(100)
    for t in stream:
        x, x_next = t.x.toarray(), t.x_next.toarray()  # type: ignore[union-attr]
        expected += 0.1 * (float(t.reward) + 0.9 * x_next @ expected - x @ expected) * x
    np.testing.assert_allclose(w, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_numpy_encodes_as_the_coder_does(bias: bool) -> None:
    coder = TileCoder([-1.0, 0.0, 2.0], [1.0, 5.0, 3.0], tiles=[4, 1, 7], tilings=5, bias=bias)
    states = np.random.default_rng(0).uniform([-1.5, 0.0, 1.5], [1.5, 5.0, 3.5], (200, 3))
    encode = numpy_encoder(coder)
    np.testing.assert_array_equal([encode(state) for state in states], coder.indices(states))


def test_scattered_streams_have_the_features_they_promise() -> None:
    stream = scattered(10**7, 2_000, active=10, seen=1_000)
    used = np.unique(stream.X.indices)  # type: ignore[union-attr]
    assert used.size <= 1_000
    assert used.max() < 10**7
    assert (np.diff(stream.X.indptr) == 10).all()  # type: ignore[union-attr]
    np.testing.assert_array_equal(used % 10**4, 0)


def test_the_reference_goes_on_through_the_stream() -> None:
    problem = problems.energy(True)
    side = problems.reference(problem, mini_batch=False, buffers=2)
    first, second = side.prepare(), side.prepare()
    first()
    second()
    assert side.steps == 2 * problem.rank


def test_warm_models_are_at_the_end_of_a_buffer() -> None:
    problem = problems.tiles(True)
    warm = problems.warmed(problem)
    assert warm.start % warm.buffer == 0
    assert warm.model.n_updates == warm.start >= problem.warm
    assert warm.model.n_buffered == 0


def test_the_limit_on_threads_is_lifted_and_put_back() -> None:
    limit = library_threads.one_thread
    users = [module for module in sys.modules.values() if getattr(module, "one_thread", None) is limit]
    assert any(module.__name__.startswith("tlstd.core.") for module in users)
    with threads.no_limit():
        for module in users:
            assert isinstance(module.one_thread(), nullcontext)
    assert all(module.one_thread is limit for module in users)


def test_slopes() -> None:
    x = np.array([1.0, 3.0, 20.0])
    assert slope(x, 5.0 * x**1.5) == pytest.approx(1.5)


@pytest.mark.parametrize("read", [False, True])
def test_a_profile_adds_up(read: bool) -> None:
    shares = profile(problems.tiles(True), read=read)
    assert sum(share.share for share in shares) == pytest.approx(1.0)
    assert shares[0].share > 0.0


def test_one_projection_is_the_reference_where_nothing_is_dependent() -> None:
    rng, hurried = np.random.default_rng(0), OneProjectionTLSTD(30, 4, lambda_=0.7)
    reference = ReferenceTLSTD(30, 4, lambda_=0.7, mini_batch=True)
    X, rewards = rng.standard_normal((41, 30)), rng.standard_normal(40)
    for t in range(40):
        reference.update(X[t], rewards[t], X[t + 1], discount=0.9, trace_discount=0.9)
        hurried.update(X[t], rewards[t], X[t + 1], discount=0.9, trace=0.9)
    np.testing.assert_allclose(hurried.sigma, 40 * reference.singular_values, rtol=1e-10)
    np.testing.assert_allclose(hurried.weights(), reference.weights, rtol=0.0, atol=1e-10)
