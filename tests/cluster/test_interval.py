"""Intervals from shards: against numbers computed sample by sample, and against one machine."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from tlstd.cluster.group_sums import spread
from tlstd.cluster.interval import UNEXPLAINED, AskedMean, Guess, sharded_interval
from tlstd.cluster.operator import ShardedOperator
from tlstd.cluster.shard import AskedStates, Shard

import tlstd
from tests.cluster.logs import LOG, in_files
from tests.cluster.parts import WHOLE, N, cut, mostly_right
from tlstd import KrylovLSTD, Transitions
from tlstd.cluster import evaluate as of_files
from tlstd.cluster.evaluate import evaluate_files
from tlstd.cluster.shard_pool import InProcess
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation import table_states
from tlstd.evaluation.influence import Asked, degrees, influences, standard_error
from tlstd.evaluation.intervals import interval_of

LAMBDA = 0.7
CUTS = (17, 140, 141, 260)
"""Where blocks of long episodes begin, besides the episodes."""


def dense(part: Transitions) -> tuple[FloatArray, FloatArray]:
    return np.asarray(sp.csr_array(part.X).todense()), np.asarray(sp.csr_array(part.X_next).todense())


def asked_shard(part: Transitions) -> Shard:
    """With the first states of its episodes as those asked for."""
    shard = Shard.of([part], N, LAMBDA)
    sample = np.flatnonzero(part.trace_discounts == 0.0)
    X = dense(part)[0][sample][:, shard.ids]
    asked = AskedStates(sp.csr_array(X.reshape(sample.size, shard.ids.size)), sample, np.full(sample.size, 0.25), False)
    return Shard(shard.samples, shard.ids, N, LAMBDA, 1, asked={"start states": asked})


def by_hand(h: FloatArray, w: FloatArray) -> tuple[float, float, float, int]:
    """The value, its standard error, their degrees of freedom and the number of groups, sample by sample."""
    X, X_next = dense(WHOLE)
    T, z = len(WHOLE), np.zeros(N)
    u, errors = np.zeros(T), np.zeros(T)
    for t in range(T):
        z = WHOLE.rhos[t] * (WHOLE.trace_discounts[t] * LAMBDA * z + X[t])
        u[t], errors[t] = h @ z, WHOLE.rewards[t] + WHOLE.discounts[t] * (X_next[t] @ w) - X[t] @ w
    starts: IntArray = np.flatnonzero(WHOLE.trace_discounts == 0.0)
    values = X[starts] @ w + 0.25
    begins = np.union1d(np.union1d(starts, CUTS), 0)
    moved, variances = [], []
    for a, b in pairwise([*begins.tolist(), T]):
        mine = values[(starts >= a) & (starts < b)]
        moved.append((u[a:b] * errors[a:b]).sum() / T + (mine - values.mean()).sum() / values.size)
        noise = (errors**2).mean() * (u[a:b] ** 2).sum() / T**2
        variances.append(noise + mine.size * values.var() / values.size**2)
    centred = np.array(moved) - np.mean(moved)
    value = values.mean() + (u * errors).mean()
    return float(value), standard_error(centred), degrees(np.array(variances)), len(moved)


@pytest.mark.parametrize("n_shards", [1, 2, 7, 64, 301])
def test_sums_of_groups(n_shards: int) -> None:
    """Also where an episode goes through several shards, and where a shard has nothing."""
    rng = np.random.default_rng(n_shards)
    parts = cut(WHOLE, n_shards)
    parts.insert(n_shards // 2, WHOLE[:0])
    operator = ShardedOperator(InProcess([asked_shard(part) for part in parts]))
    h, w = np.zeros(N), np.zeros(N)
    h[operator.ids], w[operator.ids] = rng.standard_normal((2, operator.n))
    sums = operator.pool.total("asked_sum", "start states")[:, 0]
    count = int(sums[operator.n])
    mean = float(sums[: operator.n] @ w[operator.ids] + sums[-1]) / count
    H = np.column_stack([h, w])[operator.ids]
    found = spread(operator.pool.each("group_sums", "start states", H, mean, count, CUTS), len(WHOLE), count)
    value, error, freedom, n_groups = by_hand(h, w)
    residual = (operator.b() - operator.matvec(H[:, 1:]))[:, 0]
    assert found.n_groups == n_groups
    assert mean + H[:, 0] @ residual == pytest.approx(value, rel=1e-10)
    assert found.standard_error == pytest.approx(error, rel=1e-10)
    assert found.degrees == pytest.approx(freedom, rel=1e-10)


@pytest.mark.parametrize("n_shards", [1, 7])
def test_as_with_all_samples_in_one_model(n_shards: int) -> None:
    """Where all systems are solved, the interval is the plug-in one of the model of all samples, but for its kind."""
    rng = np.random.default_rng(0)
    model = KrylovLSTD(N, lambda_=LAMBDA, dimension=N)
    model.update_many(WHOLE)
    x = np.zeros(N)
    x[model.seen_ids[:5]] = rng.uniform(size=5)
    (whole,) = influences(model, [Asked(x[None])])
    expected = interval_of(whole.plug_in())
    operator = ShardedOperator(InProcess([Shard.of([part], N, LAMBDA) for part in cut(WHOLE, n_shards)]))
    weights = operator.solve(N)
    asked = AskedMean(None, x[operator.ids], 0.0, 1)
    guess = Guess(model.seen_ids, 0.5 * whole.adjoint, 0.0)
    found = sharded_interval(
        operator, weights, asked, guess, 0.95, lambda name, function, *own: function(*own)
    ).interval
    assert found.value == pytest.approx(expected.value, rel=1e-6)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-4)
    assert found.n_groups == expected.n_groups


@pytest.fixture
def few_steps_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 500 steps are a large log, of which 400 are a sample, and λ is given."""
    monkeypatch.setattr(of_files, "SAMPLED", 500)
    monkeypatch.setattr(of_files, "SAMPLE", 400)
    for name in ("LAMBDAS", "OFF_POLICY_LAMBDAS"):
        monkeypatch.setattr(table_states, name, (0.5, 0.5))


@pytest.mark.usefixtures("few_steps_are_many")
@pytest.mark.parametrize("how", ["logged policy", "ratios", "no probabilities", "given states"])
def test_large_log(how: str, tmp_path: Path) -> None:
    """The interval of one machine, where features are few; the same from any number of files, and bits from a disk."""
    log = LOG if how != "no probabilities" else LOG.drop("probability")
    policy = None if how in ("logged policy", "given states") else mostly_right
    options: dict[str, Any] = {"gamma": 0.9, "policy": policy, "level": 0.9, "features": "columns"}
    options |= {"start": [[0.1, 0.2]] if how == "given states" else None}
    whole = tlstd.evaluate(log, estimators=("KrylovLSTD", "LSTDQ"), **options).rows[0].interval
    (tmp_path / "2").mkdir()
    (tmp_path / "7").mkdir()
    few = evaluate_files(in_files(log, tmp_path / "2", 2), **options)
    many = evaluate_files(in_files(log, tmp_path / "7", 7), **options)
    mapped = evaluate_files(str(tmp_path / "7" / "*.parquet"), spill=tmp_path / "spilled", **options)
    found, again = few.rows[0].interval, many.rows[0].interval
    assert whole is not None
    assert found is not None
    assert again is not None
    assert found.value == few.value
    assert few.interval(level=0.9) == found  # and not that of the sample, which is all that is known of the log here
    assert few.interval(level=0.5).standard_error == found.standard_error
    assert "debiased from" in few.rows[0].note
    assert found.n_groups == whole.n_groups
    assert abs(found.value - whole.value) < 0.05 * whole.standard_error
    assert found.half_width == pytest.approx(whole.half_width, rel=0.05)  # errors there are of weights without the fold
    assert found.covers == whole.covers
    assert again.value == pytest.approx(found.value, rel=1e-9)
    assert again.half_width == pytest.approx(found.half_width, rel=1e-9)
    assert mapped.rows[0].interval == again
    assert (mapped.predict([[0.0, 0.1]]) == many.predict([[0.0, 0.1]])).all()
    assert not list((tmp_path / "spilled").iterdir())
    assert any("Value and interval are of all steps" in note for note in few.notes)


@pytest.mark.usefixtures("few_steps_are_many")
def test_large_stream(tmp_path: Path) -> None:
    """One episode through all files is cut into the blocks of one machine; parameters are of its first steps."""
    rng = np.random.default_rng(1)
    x = np.cumsum(rng.standard_normal(3_000)) % 7.0
    log = pl.DataFrame(
        {"episode": 0, "step": np.arange(3_000), "obs": x, "reward": np.sin(x) + rng.standard_normal(3_000)}
    )
    whole = tlstd.evaluate(log, gamma=0.9, estimators="KrylovLSTD").rows[0].interval
    found = evaluate_files(in_files(log, tmp_path, 6), gamma=0.9)
    interval = found.rows[0].interval
    assert whole is not None
    assert interval is not None
    assert interval.n_groups == whole.n_groups > 5
    assert abs(interval.value - whole.value) < 0.5 * whole.standard_error
    assert interval.half_width == pytest.approx(whole.half_width, rel=0.3)
    assert any("the first 400 of them" in note for note in found.notes)


def rarely_seen(rng: np.random.Generator, n_steps: int = 4_000, n: int = 300) -> Transitions:
    """Episodes of ten steps with five of n features each, of which the last are seen a hundred times as rarely."""
    chances = 1.0 / np.arange(1.0, n + 1.0)
    chosen = rng.choice(n, size=(n_steps + 1, 5), p=chances / chances.sum())
    X = sp.csr_array((np.ones(chosen.size), (np.repeat(np.arange(n_steps + 1), 5), chosen.ravel())))
    first, last = np.arange(n_steps) % 10 == 0, np.arange(n_steps) % 10 == 9
    rewards = X[:-1] @ rng.standard_normal(n) + rng.standard_normal(n_steps)
    discounts = np.where(last, 0.0, 0.95)
    traces = np.where(first, 0.0, 0.95)
    return Transitions(X[:-1], rewards, X[1:], discounts=discounts, trace_discounts=traces)


@pytest.mark.parametrize("error", [1e-3, 10.0])
def test_as_if_solved_exactly(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Value and width are those of the dense solution after a few rounds, whatever standard error was guessed."""
    steps = rarely_seen(np.random.default_rng(0))
    operator = ShardedOperator(InProcess([Shard.of([part], 300, LAMBDA) for part in cut(steps, 5)]))
    weights = operator.solve(4)
    A, b = operator.matvec(np.eye(operator.n)), operator.b()[:, 0]
    x = np.asarray(steps.X[::10].mean(axis=0)).ravel()[operator.ids]
    h = np.linalg.solve(A.T, x)
    asked = AskedMean(None, x, 0.0, 400)
    parts = operator.pool.each("group_sums", None, np.column_stack([h, weights[:, 0]]), 0.0, 400, ())
    exact = spread(parts, len(steps), 0)
    guess = Guess(np.arange(3), np.full(3, 100.0), error)  # far off: it has to do no harm
    rounds: list[str] = []

    def counted(name: str, function: Any, *arguments: FloatArray) -> FloatArray:
        rounds.append(name)
        return np.asarray(function(*arguments))

    found = sharded_interval(operator, weights, asked, guess, 0.95, counted)
    assert found.settled
    assert not found.note
    assert found.n_rounds == len(rounds) - 1 <= 25  # with all scales 1: 33 and 86
    assert abs(found.interval.value - h @ b) < 0.1 * exact.standard_error
    assert found.interval.standard_error == pytest.approx(exact.standard_error, rel=0.05)
    assert abs(x @ weights[:, 0] - h @ b) > exact.standard_error  # what there was to be corrected
    monkeypatch.setattr("tlstd.cluster.interval.DIMENSIONS", (1, 2))
    stopped = sharded_interval(operator, weights, asked, guess, 0.95, counted)
    assert not stopped.settled
    assert found.unexplained <= UNEXPLAINED < stopped.unexplained
    assert "after 3 rounds" in stopped.note
