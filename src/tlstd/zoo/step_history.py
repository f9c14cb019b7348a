"""What has been learned but not yet added to iLSTD's matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged, with_room
from tlstd.zoo.kernels import ilstd as kernels


class StepHistory:
    """The trace's steps since some point in time, and which of A's columns each of them adds to.

    ``x_rows`` and ``x_vals`` from ``starts[s]`` to ``starts[s + 1]`` are ρ x of step s, ``decays[s]`` is what the trace
    was multiplied by before; step 0 has the whole trace and a decay of 0. A *note* says that step ``steps[i]`` adds
    ``d_vals[i]`` z to the column ``columns[i]``, or that it has been added (-1). ``latest[j]`` is column j's last note,
    ``earlier[i]`` the one before it, -1 if there is none. ``decays`` is as long as ``starts``.
    16 bytes an entry of x, 32 a note.
    """

    def __init__(self) -> None:
        self.sizes: IntArray = np.array([1, 0])  # steps, notes
        self.starts: IntArray = np.zeros(16, dtype=np.int64)
        self.decays: FloatArray = np.zeros(16)
        self.x_rows: IntArray = np.zeros(0, dtype=np.int64)
        self.x_vals: FloatArray = np.zeros(0)
        self.latest: IntArray = np.full(0, -1)
        self.earlier: IntArray = np.zeros(0, dtype=np.int64)
        self.steps: IntArray = np.zeros(0, dtype=np.int64)
        self.columns: IntArray = np.zeros(0, dtype=np.int64)
        self.d_vals: FloatArray = np.zeros(0)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels take."""
        x = self.x_rows, self.x_vals
        return self.sizes, self.starts, *x, self.decays, self.latest, *self._notes

    @property
    def _notes(self) -> tuple[Any, ...]:
        return self.earlier, self.steps, self.columns, self.d_vals

    def grow(self, n: int) -> None:
        """Make room for n columns."""
        self.latest = enlarged(self.latest, n, fill=-1)

    def make_room(self, n_entries: int, n_notes: int) -> None:
        """Make room for a further step with ``n_entries`` of x and ``n_notes`` notes."""
        n_steps, used = int(self.sizes[0]), int(self.starts[self.sizes[0]])
        needed = {"starts": n_steps + 2, "decays": n_steps + 2, "x_rows": used + n_entries, "x_vals": used + n_entries}
        needed |= dict.fromkeys(("earlier", "steps", "columns", "d_vals"), int(self.sizes[1]) + n_notes)
        self.__dict__.update({name: with_room(getattr(self, name), length) for name, length in needed.items()})

    def state(self) -> State:
        """What :meth:`restore` takes: the lists of notes follow from their columns."""
        n_steps, n_notes = self.sizes
        used = self.starts[n_steps]
        return {
            "starts": self.starts[: n_steps + 1],
            "decays": self.decays[:n_steps],
            "x_rows": self.x_rows[:used],
            "x_values": self.x_vals[:used],
            "steps": self.steps[:n_notes],
            "columns": self.columns[:n_notes],
            "d_values": self.d_vals[:n_notes],
        }

    def restore(self, saved: Saved, n: int) -> None:
        """Take over a saved state, if it can be one of n columns; only of fresh objects."""
        starts = saved.integers("starts", None, low=0, high=2**48)
        n_steps = starts.size - 1
        if n_steps < 1 or starts[0] != 0 or (np.diff(starts) < 0).any():
            raise saved.error("starts", "is not a list of where steps begin")
        decays = saved.floats("decays", n_steps, low=0.0)
        used = int(starts[-1])
        x_rows, x_vals = saved.integers("x_rows", used, low=0, high=n - 1), saved.floats("x_values", used)
        columns = saved.integers("columns", None, low=-1, high=n - 1)
        steps, d_vals = (
            saved.integers("steps", columns.size, low=0, high=n_steps - 1),
            saved.floats("d_values", columns.size),
        )
        if n <= kernels.SMALL and n_steps + columns.size + used > 1:
            raise saved.error("starts", f"has {n_steps} steps where {n} features need no history")
        if (np.diff(steps) < 0).any():
            raise saved.error("steps", "does not rise")
        self.grow(n)
        self.sizes = np.array([n_steps, columns.size])
        self.starts, self.x_rows, self.x_vals = starts.copy(), x_rows.copy(), x_vals.copy()
        self.decays = np.append(decays, 0.0)
        self.steps, self.columns, self.d_vals = steps.copy(), columns.copy(), d_vals.copy()
        self.earlier = np.zeros(columns.size, dtype=np.int64)
        kernels.link(self.arrays)
