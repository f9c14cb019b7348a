"""Shards against one model of all samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tlstd.cluster.operator import ShardedOperator
from tlstd.cluster.shard import Shard
from tlstd_lab.energy_programme import never_store
from tlstd_lab.processes.garnet import garnet_off_policy

from tests.cluster.parts import WHOLE, cut
from tests.estimators.test_merging import restarted, steps
from tlstd import KrylovLSTD, TileCoder, Transitions
from tlstd.cluster.shard_pool import InProcess
from tlstd.cluster.tree_sums import joined, pairwise_sum, tree_sums
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mountain_car import MountainCar
from tlstd.errors import InvalidInputError
from tlstd.streams.simulated import record


def sharded(parts: list[Transitions]) -> ShardedOperator:
    n, m = parts[0].n_features, parts[0].n_targets
    return ShardedOperator(InProcess([Shard.of([part], n, 0.7, m) for part in parts]))


def whole_model(whole: Transitions, **options: object) -> KrylovLSTD:
    model = KrylovLSTD(whole.n_features, lambda_=0.7, **options)  # type: ignore[arg-type]
    model.update_many(whole)
    return model


@pytest.mark.parametrize("n_shards", [1, 2, 7, 64, 301])
def test_products_are_those_of_all_samples(n_shards: int) -> None:
    """Also where an episode goes on in the next shard, or through several, or a shard has nothing."""
    parts = cut(WHOLE, n_shards)
    parts.insert(n_shards // 2, WHOLE[:0])
    operator, model = sharded(parts), whole_model(WHOLE, dimension=4)
    one = model.operator()
    order = np.argsort(model.seen_ids)
    assert (operator.ids == model.seen_ids[order]).all()
    V = np.random.default_rng(0).standard_normal((operator.n, 3))
    back = np.argsort(order)
    np.testing.assert_allclose(operator.matvec(V), one.matvec(V[back])[order], atol=1e-14)
    np.testing.assert_allclose(operator.rmatvec(V), one.rmatvec(V[back])[order], atol=1e-14)
    np.testing.assert_allclose(operator.b(), one.b()[order], atol=1e-14)
    ids, weights = operator.ids, operator.solve(4)
    np.testing.assert_allclose(weights[:, 0], model.weights[ids], atol=1e-10)


def problems() -> dict[str, tuple[Transitions, int]]:
    """Samples of three problems, and a dimension of the Krylov space."""
    car, storage = MountainCar(), EnergyStorage()
    tiles = TileCoder(car.low, car.high, tiles=10, tilings=10)
    more = TileCoder(storage.low, storage.high, tiles=[5, 5, 10, 5], tilings=8, bias=True)
    process = garnet_off_policy(40, 3, 3, 25, np.random.default_rng(0), gamma=0.95, features="binary", active=5)
    return {
        "Mountain Car": (record(car, None, tiles, n_steps=1_500, seed=0), 30),
        "energy": (record(storage, never_store(storage), more, n_steps=1_500, seed=0), 12),
        "Garnet, off-policy": (process.sample(1_500, np.random.default_rng(1)), 20),
    }


def test_predictions_from_any_number_of_shards() -> None:
    """Within 1e-10 of those of one model, at the same dimension."""
    for name, (whole, dimension) in problems().items():
        model = whole_model(whole, dimension=dimension)
        for n_shards in (1, 2, 7, 64):
            operator = sharded(cut(whole, n_shards))
            ids, weights = operator.ids, operator.solve(dimension)
            everywhere = np.zeros(whole.n_features)
            everywhere[ids] = weights[:, 0]
            away = np.abs(whole.X @ everywhere - model.predict(whole.X)).max()
            assert away < 1e-10, (name, n_shards, away)


def test_traces_that_are_not_passed_on_would_be_noticed() -> None:
    """The test above cuts through episodes: without their traces the products are others."""
    parts = cut(WHOLE, 7)
    with_traces, without = sharded(parts), sharded([restarted(part) for part in parts])
    assert np.abs(with_traces.b() - without.b()).max() > 1e-3


@pytest.mark.parametrize("dense", [False, True])
def test_ridge_and_targets(dense: bool) -> None:
    """A constant feature is not penalised, and the mean ‖x‖² is that of all samples."""
    whole = steps(200, 2, dense=dense, n_targets=2)
    model = whole_model(whole, dimension=5, ridge=0.1, n_targets=2)
    operator = sharded(cut(whole, 5)).with_ridge(0.1)
    ids, weights = operator.ids, operator.solve(5)
    np.testing.assert_allclose(weights, model.weights[ids], atol=1e-10)


def test_nothing_to_learn() -> None:
    """Said before anything is solved."""
    with pytest.raises(InvalidInputError, match="nothing can be learned"):
        sharded(cut(WHOLE[:0], 2))


def test_order_of_sums() -> None:
    """Pairwise by levels, whatever the number of parts."""

    def by_levels(parts: list[str]) -> str:
        while len(parts) > 1:
            pairs = list(_pairs(parts))
            parts = [f"({''.join(pair)})" if len(pair) > 1 else pair[0] for pair in pairs]
        return parts[0]

    def add(a: str, b: str) -> str:
        return f"({a}{b})"

    rng = np.random.default_rng(0)
    for n in range(1, 40):
        parts = [chr(97 + i % 26) for i in range(n)]
        assert pairwise_sum(parts, n, add) == by_levels(parts)
        workers = rng.integers(4, size=n)  # whichever has which, and whoever joins their sums
        sums = [
            tree_sums((((0, i), parts[i]) for i in rng.permutation(np.flatnonzero(workers == w)).tolist()), n, add)
            for w in range(4)
        ]
        (total,) = joined(n, add, [joined(n, add, sums[2:]), *sums[:2]]).values()
        assert total == by_levels(parts)


def _pairs(parts: list[str]) -> Iterator[list[str]]:
    for i in range(0, len(parts), 2):
        yield parts[i : i + 2]
