"""Runs are known by what they mean, not by how it was written."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from tlstd_lab import tasks
from tlstd_lab.question import Task
from tlstd_lab.spec import RunSpec

from tlstd.errors import InvalidParameterError

SETTINGS: dict[str, Any] = {"rank": 20, "features": {"grid": [3, 4], "width": 0.12}, "domain": "kårt", "none": None}


def spec(**settings: Any) -> RunSpec:
    return RunSpec("module:function", {**SETTINGS, **settings}, seed=3)


@pytest.mark.parametrize(
    "same",
    [
        RunSpec("module:function", dict(reversed(SETTINGS.items())), seed=3),
        RunSpec("module:function", json.loads(json.dumps(SETTINGS)), seed=np.int32(3)),  # type: ignore[arg-type]
        spec(rank=20.0),
        spec(rank=np.float64(20.0)),
        spec(features={"width": np.float64(0.12), "grid": (3.0, np.int64(4))}),
        RunSpec("module:function", spec().settings, seed=3, timed=False, version=1),
        RunSpec.from_json(spec().to_json()),
        RunSpec.from_json(json.loads(spec().to_json())),
        pickle.loads(pickle.dumps(spec())),
    ],
)
def test_the_same_run_has_one_key(same: RunSpec) -> None:
    assert same.key == spec().key
    assert same == spec()
    assert len({same, spec()}) == 1
    assert same.plain_settings() == {**SETTINGS, "rank": 20}


@pytest.mark.parametrize(
    "other",
    [
        spec(rank=21),
        spec(rank="20"),
        spec(none=False),
        spec(features={"grid": [4, 3], "width": 0.12}),
        spec(more=0),
        RunSpec("module:other", SETTINGS, seed=3),
        RunSpec("module:function", SETTINGS, seed=4),
        RunSpec("module:function", SETTINGS, seed=3, timed=True),
        RunSpec("module:function", SETTINGS, seed=3, version=2),
    ],
)
def test_another_run_has_another_key(other: RunSpec) -> None:
    assert other != spec()
    assert len({other, spec()}) == 2


def test_true_is_not_one_and_zero_has_no_sign() -> None:
    assert spec(rank=True) != spec(rank=1)
    assert spec(rank=-0.0) == spec(rank=0)
    assert spec(rank=1e300).plain_settings()["rank"] == 1e300


def test_it_cannot_change() -> None:
    given = {"inner": {"list": [1, 2]}}
    run = RunSpec("module:function", given)
    key = RunSpec("module:function", {"inner": {"list": [1, 2]}}).key
    given["inner"]["list"].append(3)
    run.plain_settings()["inner"]["list"].append(3)
    assert run.key == key
    assert run.settings["inner"]["list"] == (1, 2)
    with pytest.raises(AttributeError):
        run.seed = 4  # type: ignore[misc]
    with pytest.raises(TypeError):
        run.settings["inner"] = 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": float("nan")}, "settings.width is nan"),
        ({"a": {"b": [1, float("inf")]}}, r"settings.a.b\[1\] is inf"),
        ({"a": np.zeros(2)}, "settings.a is array"),
        ({"a": {1: 2}}, "settings.a has the key 1"),
        ([1], r"settings is \[1\]"),
    ],
)
def test_what_json_cannot_hold_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        RunSpec("module:function", settings)


@pytest.mark.parametrize("json_", ["no json", "[1]", '{"settings": {}}', '{"task": "a:b", "sed": 1}'])
def test_what_is_no_spec_is_refused(json_: str) -> None:
    with pytest.raises(InvalidParameterError, match="is not a run"):
        RunSpec.from_json(json_)


def test_a_new_version_of_a_task_makes_new_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tasks.TASKS, "toy", Task("collections:Counter"))
    old = RunSpec("toy")
    assert tasks.load(old.task, old.version).__name__ == "Counter"
    monkeypatch.setitem(tasks.TASKS, "toy", Task("collections:Counter", version=2))
    assert RunSpec("toy") != old
    assert RunSpec.from_json(old.to_json()) == old
    with pytest.raises(InvalidParameterError, match="version 1 of 'toy', which is at version 2"):
        tasks.load(old.task, old.version)


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="no task 'nothing'"):
        RunSpec("nothing")
    with pytest.raises(InvalidParameterError, match="cannot be imported"):
        tasks.load("collections:nothing", 1)


def test_every_registered_task_can_be_imported() -> None:
    for name, task in tasks.TASKS.items():
        assert callable(tasks.load(name, task.version))
