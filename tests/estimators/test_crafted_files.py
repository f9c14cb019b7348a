"""Crafted files with valid checksums are refused, or make models that can be used: no crash, no hang, no other error.

Here 15 for every estimator; ``uv run tlstd campaign`` has 2,000.
"""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from zlib import crc32

import numpy as np
import pytest
from tlstd_lab.campaign import files, hordes, values

from tests.estimators.plain import Plain
from tlstd.checks import children
from tlstd.data.transitions import Transition
from tlstd.estimators.registry import ESTIMATORS
from tlstd.zoo.ilstd import ILSTD


@pytest.mark.parametrize(
    ("names", "tries"),
    [
        pytest.param(["TD"], 15, id="TD"),
        pytest.param([name for name in ESTIMATORS if name != "TD"], 15, id="others"),
        *(pytest.param([name], 300, id=f"{name}-300", marks=pytest.mark.long) for name in ESTIMATORS),
    ],
)
def test_crafted_files(names: list[str], tries: int) -> None:
    """One child for several estimators: to make it takes longer than most of them."""
    tasks = {}
    for name in names:
        factory, seed = ESTIMATORS[name], crc32(name.encode())  # another estimator changes nobody's files
        tasks[name] = files.file_task(factory, seed=seed, wide=isinstance(factory(12), ILSTD))
    numbers = [(name, i) for name in names for i in range(tries)]
    outcomes = children.run(
        lambda n: tasks[numbers[n][0]](numbers[n][1]),
        range(len(numbers)),
        seconds=files.SECONDS,
        megabytes=files.MEGABYTES,
    )
    assert [(numbers[outcome.number], outcome.words) for outcome in outcomes if outcome.failed] == []
    counts = Counter(outcome.words for outcome in outcomes)
    assert counts["refused"] + counts["used"] == len(numbers)
    if len(numbers) > 100:  # a quarter is used; of 15 it may be none
        assert min(counts["refused"], counts["used"]) > 0.1 * len(numbers)


def tried(kind: ModuleType, tries: int) -> list[children.Outcome]:
    task = files.crafting(kind.sound_files(), kind.use, 0)
    return children.run(task, range(tries), seconds=files.SECONDS, megabytes=files.MEGABYTES)


@pytest.mark.parametrize("tries", [25, pytest.param(2_000, marks=pytest.mark.long)])
def test_crafted_hordes(tries: int) -> None:
    outcomes = tried(hordes, tries)
    assert [outcome for outcome in outcomes if outcome.failed] == []
    counts = Counter(outcome.words for outcome in outcomes)
    assert min(counts["refused"], counts["used"]) > 0.1 * tries


@pytest.mark.parametrize("tries", [60, pytest.param(2_000, marks=pytest.mark.long)])
def test_crafted_value_functions(tries: int) -> None:
    """Features, constants and the model inside, each changed: refused, or used without another error."""
    outcomes = tried(values, tries)
    assert [outcome for outcome in outcomes if outcome.failed] == []
    counts = Counter(outcome.words for outcome in outcomes)
    assert min(counts["refused"], counts["used"]) > 0.1 * tries


@pytest.mark.long
def test_every_field_of_a_value_function_is_changed() -> None:
    sound = values.sound_files()
    changed = " ".join(files.crafted(sound, 0, i)[0] for i in range(6_000))
    for data in sound:
        header, arrays = files.unpack(data)
        for name in [*arrays, *header["parameters"], *header["parameters"]["features"]]:
            assert name in changed, f"{name} was never changed"


def test_every_field_is_changed() -> None:
    """All arrays, counters and parameters of a file, in many ways."""
    sound = files.sound_files(ESTIMATORS["TLSTD"])
    header, arrays = files.unpack(sound[0])
    changed = " ".join(files.crafted(sound, 0, i)[0] for i in range(1000))
    for name in [*arrays, *header["counters"], *header["parameters"]]:
        assert name in changed, f"{name} was never changed"
    for data in sound:
        assert files.pack(*files.unpack(data)) == data, "the format is not as described"


class Endless(Plain):
    """Never returns from an update if it has huge weights, which is not checked."""

    def learn(self, steps: list[Transition]) -> None:
        while (np.abs(self.state.w) > 1e50).any():
            pass
        super().learn(steps)


class Trusting(Plain):
    """Uses a number from its file as an index."""

    def predict(self, x: object) -> object:
        return np.zeros(10_000)[self.n_updates]


@pytest.mark.parametrize(("broken", "message"), [(Endless, "did not end within"), (Trusting, "IndexError")])
def test_broken_estimators_are_caught(broken: type[Plain], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SECONDS", 0.2)
    outcomes = files.try_files(broken, 50)
    assert any(message in outcome.words for outcome in outcomes if outcome.failed), outcomes
