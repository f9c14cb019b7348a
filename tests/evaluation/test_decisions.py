"""Logs of single decisions: no episodes, and a discount of 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tlstd
from tlstd.core.arrays import FloatArray

NOTE = "There are no episodes and the discount is 0: each row is an episode of one step."


def decisions(seed: int = 0, n: int = 1_000) -> dict[str, Any]:
    """Contexts of two numbers and two actions at random; the reward depends on both."""
    rng = np.random.default_rng(seed)
    x, actions = rng.uniform(-1.0, 1.0, (n, 2)), rng.integers(0, 2, n)
    rewards = 2.0 + x[:, 0] * (2 * actions - 1) + 0.1 * rng.standard_normal(n)
    return {"obs_0": x[:, 0], "obs_1": x[:, 1], "action": actions, "reward": rewards, "probability": np.full(n, 0.5)}


def best(contexts: FloatArray) -> FloatArray:
    """The better action: worth 2 + E|x| = 2.5."""
    right = contexts[:, 0] > 0.0
    return np.stack([~right, right], axis=1).astype(np.float64)


def test_the_value_is_the_mean_reward() -> None:
    table = decisions()
    found = tlstd.evaluate(table, gamma=0.0, estimators=("KrylovLSTD", "mean of returns"))
    assert list(found.rows[0].values) == ["start states"]
    assert found.value == pytest.approx(table["reward"].mean(), rel=1e-12)
    assert NOTE in found.notes
    assert not any("stream" in note or "left out" in note for note in found.notes)
    interval = found.interval()
    spread = table["reward"].std() / np.sqrt(1_000)
    assert interval.standard_error == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("policy", [None, best])
def test_sound_logs_are_not_red(policy: Any) -> None:
    lights = []
    for seed in range(5):
        found = tlstd.evaluate(decisions(seed), gamma=0.0, policy=policy, estimators=("KrylovLSTD", "mean of returns"))
        lights.append(found.light)
        assert abs(found.value - (2.0 if policy is None else 2.5)) < 0.15
    assert "red" not in lights


def test_in_files(tmp_path: Path) -> None:
    """A file is no episode: every row is one, with workers too."""
    from tlstd.cluster.evaluate import evaluate_files  # here: the other tests do without
    from tlstd.evaluation import Question

    frame = pl.DataFrame(decisions())
    for i in range(4):
        frame[250 * i : 250 * (i + 1)].write_parquet(tmp_path / f"{i}.parquet")
    whole = tlstd.evaluate(frame, gamma=0.0, estimators=("KrylovLSTD",))
    for found in (
        tlstd.evaluate(tmp_path, gamma=0.0, estimators=("KrylovLSTD",)),
        evaluate_files(tmp_path, question=Question(gammas=(0.0,), estimators=("KrylovLSTD",))),
    ):
        assert found.value == pytest.approx(whole.value, rel=1e-9)
        assert str(found.interval()) == str(whole.interval())
        assert NOTE in found.notes
        assert not any("cut off" in note for note in found.notes)


@pytest.mark.parametrize(
    "more", [{"episode": np.repeat(np.arange(100), 10)}, {"terminated": np.arange(1_000) % 10 == 9}]
)
def test_episodes_stay_what_they_are(more: dict[str, Any]) -> None:
    found = tlstd.evaluate(decisions() | more, gamma=0.0, estimators=("KrylovLSTD", "mean of returns"))
    assert NOTE not in found.notes
    assert found.rows[0].note.startswith("100 returns")


def test_a_stream_with_a_discount_names_its_blocks() -> None:
    found = tlstd.evaluate(decisions(), gamma=0.5, estimators=("KrylovLSTD",))
    assert "block (steps " in found.trust["influence"].sentence
    names = [name for name, _ in found.most_influential(3)]
    assert len(set(names)) == 3
    assert all(str(name).startswith("steps ") for name in names)
