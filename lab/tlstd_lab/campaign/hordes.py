"""Files of hordes: sound ones, and how one is used that may not be sound."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tlstd import LSTD, TD, Horde, KrylovLSTD, Question, Steps, TileCoder
from tlstd.errors import StateError, TlstdError


def steps(n: int, seed: int = 0) -> Steps:
    """A walk of two numbers."""
    rng = np.random.default_rng(seed)
    places = rng.random((n + 1, 2))
    ends = rng.random(n) < 0.1
    columns = {"light": rng.random(n), "both": rng.random((n, 2))}
    return Steps(places[:-1], places[1:], terminated=ends, truncated=np.zeros(n, bool), columns=columns)


def sound_files() -> list[bytes]:
    """Hordes of three models with questions of one and of several numbers: new, in the middle, of other models."""
    features = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=3, tilings=2, bias=True)
    questions = [
        Question("light", 0.9),
        Question("both", 0.5, size=2),
        Question(1.0, 0.9),
        Question("light", 0.9, lambda_=0.2),
    ]
    models: list[Any] = [
        LSTD(features.n_features, lambda_=0.8),
        TD(features.n_features, lambda_=0.5, step_size=0.1),
        KrylovLSTD(features.n_features, lambda_=0.5, dimension=2),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "horde"
        for model in models:
            for n in (0, 33):
                horde = Horde(features, questions, model)
                horde.update_many(steps(n))
                horde.save(path)
                found.append(path.read_bytes())
    return found


def use(data: bytes) -> str:
    """Load a file and use what it holds: ask, learn, save, load. Returns "refused" or "used".

    StateError on loading and any TlstdError afterwards are the library's right; everything else is raised.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "horde"
        path.write_bytes(data)
        try:
            horde = Horde.load(path)
        except StateError:
            return "refused"
        for action in _actions(horde):
            with suppress(TlstdError):
                action()
        try:
            horde.save(path)
        except TlstdError:
            return "used"
        Horde.load(path)
    return "used"


def _actions(horde: Horde) -> list[Callable[[], object]]:
    more = steps(30, seed=1)
    return [
        lambda: horde.predict([0.5, 0.5]),
        lambda: horde.update_many(more),
        lambda: horde.update([0.1, 0.2], [0.3, 0.4], columns={"light": 1.0, "both": [1.0, 2.0]}),
        lambda: horde.update_and_predict(more),
        lambda: horde.predict(more.observations),
        lambda: repr(horde),
    ]
