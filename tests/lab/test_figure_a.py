"""The spectrum task against a literally accumulated A, and the claims of figure A on made-up spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.panel import Results, Scale
from tlstd_lab.questions import panel
from tlstd_lab.questions.figure_a import panel as figure_a
from tlstd_lab.questions.figure_a import task
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store

from tlstd.core.arrays import FloatArray
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.errors import InvalidParameterError
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder


class MadeUp(Results):
    """Columns as a function of settings and seed, instead of stored ones."""

    def __init__(self, made: Callable[[dict[str, Any], int], FloatArray], scale: Scale, folder: Any) -> None:
        super().__init__(Store(folder), scale)
        self.made = made

    def column(self, specs: Any, name: str) -> FloatArray:
        return np.array([self.made(spec.plain_settings(), spec.seed) for spec in specs])


def literal(domain: MountainCar | Pendulum, features: Any, n_episodes: int, lambda_: float, seed: int) -> FloatArray:
    """A by its definition, one step at a time, from the starts of the seed's stream."""
    starts = domain.start(n_episodes, np.random.default_rng(np.random.SeedSequence(seed)))
    A, n_steps, policy = np.zeros((features.n_features, features.n_features)), 0, domain.policy()
    for state in starts:
        z, states = np.zeros(features.n_features), state[None]
        for step in range(10**6):
            x = _dense(features, domain, states)
            states, _, (terminated,) = domain.step(states, policy.act(states, np.zeros(1)))
            z = domain.gamma * lambda_ * z + x
            A += np.outer(z, x - (0.0 if terminated else domain.gamma) * _dense(features, domain, states))
            n_steps += 1
            if terminated or step + 1 == domain.episode_cap:
                break
    return A / n_steps


def _dense(features: Any, domain: Any, states: FloatArray) -> FloatArray:
    row = features.encode_many(domain.observe(states))
    return np.asarray(row[0] if isinstance(row, np.ndarray) else row.toarray()[0])


@pytest.mark.parametrize("lambda_", [0.0, 0.9])
@pytest.mark.parametrize("name", ["car", "pendulum"])
def test_task_is_the_svd_of_the_definition(name: str, lambda_: float) -> None:
    domain = {"car": MountainCar, "pendulum": Pendulum}[name]()
    for features, made in (
        ({"tilings": 2}, TileCoder(domain.low, domain.high, tiles=10, tilings=2)),
        ({"width": 0.2}, RBF(domain.low, domain.high, grid=10, width=0.2)),
    ):
        settings = {"domain": name, "features": features, "episodes": 4, "lambda_": lambda_}
        sigma = task.singular_values(settings, seed=3)["sigma"]
        A = literal(domain, made, 4, lambda_, seed=3)
        assert_allclose(sigma, np.linalg.svd(A, compute_uv=False), atol=1e-12)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"domain": "car", "features": {"width": 0.3}, "episodes": 20, "lambda_": 0.9}
    whole = task.singular_values(settings, seed=0)["sigma"]
    for entries in (1, 5_000, 20_000):
        monkeypatch.setattr(task, "ENTRIES", entries)
        assert_allclose(task.singular_values(settings, seed=0)["sigma"], whole, atol=1e-12)


def test_episodes_are_counted() -> None:
    path = task.episodes(MountainCar(), 300, seed=1)
    assert int(path.terminated.sum()) == 300
    assert path.terminated[-1]
    assert len(path.states) == len(path.rows) + 300


def test_bad_settings() -> None:
    with pytest.raises(InvalidParameterError, match="either tilings or width"):
        task.make_features(MountainCar(), {"tilings": 3, "width": 0.1})
    with pytest.raises(InvalidParameterError, match="there is no domain 'cart'"):
        task.singular_values({"domain": "cart", "features": {"tilings": 1}, "episodes": 1, "lambda_": 0}, 0)


def spectrum_of(size: int, number: int) -> FloatArray:
    """``number`` equal singular values that hold all but a little of the weight."""
    return np.where(np.arange(size) < number, 1.0, 1e-9)


@pytest.mark.parametrize(("number", "verdict"), [(5, "reproduced"), (50, "not")])
def test_few(number: int, verdict: str, tmp_path: Any) -> None:
    results = MadeUp(lambda settings, seed: spectrum_of(100, number), "paper", tmp_path)
    claim = panel("A.2").claims()[0]
    found = claim.judge(results)
    assert found.verdict == verdict
    assert found.number.value == pytest.approx(np.ceil(0.95 * number) / 100)


def test_few_by_squares_only_is_not_few(tmp_path: Any) -> None:
    slow = np.concatenate([np.ones(5), np.full(95, 0.05)])  # half of the sum is in the rest, but little of the squares
    found = panel("A.2").claims()[0].judge(MadeUp(lambda settings, seed: slow, "paper", tmp_path))
    assert found.verdict == "not"
    assert "of the sum of squares" in found.note


@pytest.mark.parametrize(("tiles", "verdict"), [(400, "reproduced"), (100, "not")])
def test_slower(tiles: int, verdict: str, tmp_path: Any) -> None:
    def made(settings: dict[str, Any], seed: int) -> FloatArray:
        return spectrum_of(1000, tiles) if "tilings" in settings["features"] else spectrum_of(100, 20)

    found = panel("A.5").claims()[1].judge(MadeUp(made, "paper", tmp_path))
    assert found.verdict == verdict


@pytest.mark.parametrize(("power", "verdict"), [(0.0, "reproduced"), (0.4, "partly"), (1.0, "not")])
def test_plateau(power: float, verdict: str, tmp_path: Any) -> None:
    def made(settings: dict[str, Any], seed: int) -> FloatArray:
        return spectrum_of(2000, round(60 * settings["features"]["tilings"] ** power))

    found = panel("A.3").claims()[0].judge(MadeUp(made, "paper", tmp_path))
    assert found.verdict == verdict
    assert found.number.value == pytest.approx(power, abs=0.02)


@pytest.mark.parametrize(("wide", "verdict"), [(15, "reproduced"), (45, "partly"), (60, "not")])
def test_drop(wide: int, verdict: str, tmp_path: Any) -> None:
    def made(settings: dict[str, Any], seed: int) -> FloatArray:
        return spectrum_of(100, wide if settings["features"]["width"] >= 0.2 else 60)

    assert panel("A.8").claims()[0].judge(MadeUp(made, "paper", tmp_path)).verdict == verdict


def test_panels_share_runs(tmp_path: Any) -> None:
    results = Results(Store(tmp_path), "paper")
    runs: dict[str, set[RunSpec]] = {f"A.{i}": set(panel(f"A.{i}").runs(results)) for i in range(1, 9)}
    assert len(runs["A.1"] & runs["A.3"]) == len(figure_a.LAMBDAS) * 3
    assert runs["A.2"] < runs["A.4"]
    assert not set().union(*(runs[f"A.{i}"] for i in range(1, 5))) & set().union(*(runs[f"A.{i}"] for i in range(5, 9)))
