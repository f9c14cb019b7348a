"""From 10⁴ to 10⁶ steps: an estimator holds as much as at first, or its declared bytes for each further sample.

A try is 10,000 further steps; the model goes on from the file that the try before has saved.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from pathlib import Path
from typing import Any

from tlstd.checks.data import as_sparse, loaded, stream
from tlstd.data.transitions import Transitions
from tlstd.estimators.registry import ESTIMATORS
from tlstd_lab.campaign.faults import Task
from tlstd_lab.campaign.row import Row

STEPS = 10_000
"""Of one try."""
BLOCK = 1_000
ROOM = 0.1, 4_000
"""By which the pickled model may differ, in parts and in bytes: buffers are more or less full."""
PEAK = 128 << 20, 4
"""Bytes that a block may take for a while (what is still compiled takes about 100 MB), and how often the model: it is
solved and pickled ten times, and memory that is free again is not given back at once."""


def _task(subject: str, seed: int, folder: Path) -> Task:
    factory = ESTIMATORS[subject]
    steps = as_sparse(stream(BLOCK - 1, seed=seed))
    path, note = folder / "model.tlstd", folder / "held.json"
    warm = factory(steps.n_features)
    with tempfile.TemporaryDirectory() as place:  # all that is compiled is compiled before anything is measured
        for _ in range(2):
            _learn(warm, steps)
            warm.save(Path(place) / "model.tlstd")
            warm = loaded(Path(place) / "model.tlstd", type(warm))

    def task(number: int) -> str:
        model = loaded(path, type(warm)) if number else factory(steps.n_features)
        held, before = 0, _memory("VmRSS")
        _reset_peak()
        for _ in range(STEPS // BLOCK):
            _learn(model, steps)
            held = max(held, len(pickle.dumps(model)))
        peak, n = _memory("VmHWM") - before, model.n_updates
        if number == 0:
            note.write_text(json.dumps([held, n]))
        first, since = json.loads(note.read_text())
        allowed = (1.0 + ROOM[0]) * first + ROOM[1] + 1.02 * (n - since) * getattr(model, "bytes_per_sample", 0)
        assert held <= allowed, f"it holds {held:,} bytes after {n:,} steps ({first:,} after {since:,})"
        assert peak <= PEAK[0] + PEAK[1] * held, f"learning takes {peak:,} bytes for a while, of a model of {held:,}"
        model.save(path)
        return "grows as declared" if hasattr(model, "bytes_per_sample") else "flat"

    return task


def _learn(model: Any, steps: Transitions) -> None:
    model.update_many(steps)
    model.predict(steps[0].x)
    model.update(steps[0])  # whatever was cached for reading is gone again


def _memory(name: str) -> int:
    """Bytes of this process, as Linux says."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


ROW = Row(
    promise="memory is flat from 1e4 to 1e6 steps, or as declared",
    unit="steps",
    target=1_000_000,
    task=_task,
    each=STEPS,
    seconds=120.0,
    checked=False,
    chain=True,
)
