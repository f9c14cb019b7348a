"""Files of value functions: sound ones of each kind, and how one is used that may not be sound."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tlstd import AutoTiles, Columns, KrylovLSTD, Log, OneHot
from tlstd.errors import StateError, TlstdError
from tlstd.evaluation import ValueFunction


def sound_files() -> list[bytes]:
    """Values of states, of discrete actions with their constants, and of continuous ones, by different maps."""
    rng = np.random.default_rng(0)
    seen, done = rng.random((60, 2)), rng.random(60) < 0.1
    numbers, taken = rng.integers(0, 4, 60), rng.integers(0, 2, 60)
    plain = Log.from_arrays(seen, rng.random(60), terminated=done)
    discrete = Log.from_arrays(numbers, rng.random(60), actions=taken, terminated=done, n_observations=4)
    continuous = Log.from_arrays(seen, rng.random(60), actions=rng.random((60, 1)), terminated=done)
    tiles, joint, states = AutoTiles.fit(seen), Columns(3), OneHot([0], [3])
    made: list[tuple[ValueFunction, Log, Any]] = [
        (ValueFunction(KrylovLSTD(tiles.n_features, lambda_=0.5, dimension=3), tiles, 0.9), plain, None),
        (
            ValueFunction(
                KrylovLSTD(8, lambda_=0.0, dimension=2), states, 0.9, kind="actions", n_actions=2, offsets=[1.0, -2.0]
            ),
            discrete,
            _policy,
        ),
        (
            ValueFunction(
                KrylovLSTD(4, lambda_=0.0, dimension=2), joint, 0.9, kind="joint", n_actions=1, offsets=[3.0]
            ),
            continuous,
            _draw,
        ),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values"
        for values, log, policy in made:
            values.update(log, policy=policy)
            values.save(path)
            found.append(path.read_bytes())
    return found


def _policy(states: Any) -> Any:
    return np.full((len(states), 2), 0.5)


def _draw(states: Any) -> Any:
    return np.zeros((len(states), 1))


def use(data: bytes) -> str:
    """Load a file and use what it holds: ask, learn, save, load. Returns "refused" or "used".

    StateError on loading and any TlstdError afterwards are the library's right; everything else is raised.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values"
        path.write_bytes(data)
        try:
            values = ValueFunction.load(path)
        except StateError:
            return "refused"
        for action in _actions(values):
            with suppress(TlstdError):
                action()
        try:
            values.save(path)
        except TlstdError:
            return "used"
        ValueFunction.load(path)
    return "used"


def _actions(values: ValueFunction) -> list[Callable[[], object]]:
    """What is asked, whatever was changed."""
    two, numbers = np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([0, 3])
    policy = _policy if values.kind == "actions" else _draw if values.kind == "joint" else None
    log = Log.from_arrays([0, 1, 2], [1.0, 0.0, 1.0], actions=[0, 1, 0], terminated=[0, 0, 1], discrete=True)
    return [
        lambda: values.predict(two, policy=policy),
        lambda: values.predict(numbers, policy=policy),
        lambda: values.predict(numbers),
        lambda: values.update(log, policy=policy),
        lambda: values.predict(numbers, policy=policy),
        lambda: repr(values),
    ]
