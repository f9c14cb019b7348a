"""The trace z of Algorithm 1 within a buffer, accumulating or replacing.

An accumulating trace z_t = ρ_t (γ_t λ z_{t-1} + x_t) is a combination of the trace before the buffer and of the x's in
it, so nothing is kept of it. A replacing trace, ρ_t x_t where x_t is not zero, has that form with
x̃_t = x_t - γ_t λ z_{t-1} on the support of x_t in place of x_t (``docs/numerics.md``, 10). For x̃ it is kept entry by
entry as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.data.batch import Batch
from tlstd.truncated.pending_vectors import PendingVectors

if TYPE_CHECKING:
    from tlstd.truncated.buffer import Buffer

MAX_AMPLIFICATION = 100.0
"""By which ratios may multiply rounding errors of a replacing trace within a buffer."""


class AccumulatingTrace:
    """Of which the buffer has everything."""

    may_be_dense: ClassVar[bool] = True

    trace = stamps = np.zeros(0)
    clock = np.ones(2)

    def arrays(self, size: int, n_samples: int | None) -> tuple[bool, FloatArray, FloatArray, FloatArray]:
        """What :func:`tlstd.data.kernels.sparse.append_transitions` takes, with room for features in ``size`` rows.

        What it changes is to be undone if there are ``n_samples`` in the end.
        """
        return not self.may_be_dense, self.trace, self.stamps, self.clock

    def room(self, buffer: Buffer, batch: Batch, start: int, lambda_: float) -> int:
        """For how many samples, of the batch from ``start`` on, the buffer has room."""
        return buffer.capacity - buffer.count

    def ends(self, buffer: Buffer) -> bool:
        """Whether the buffer has to be compressed before it is full."""
        return False

    def after(self, x: PendingVectors, coefficients: FloatArray, n: int) -> FloatArray:
        """z (n, 1) after the last sample, given its coefficients (k, 1) on the buffer's x."""
        z = np.zeros((n, 1))
        x.add_to(z, np.arange(x.count), coefficients)
        return z

    def mend(self, n_samples: int) -> None:
        """Be the trace after ``n_samples``, after an interruption."""

    def state(self, n: int) -> State:
        """What :meth:`restore` takes."""
        return {}

    def restore(self, saved: Saved, n: int) -> None:
        """Take over a saved state over n features; only of fresh objects."""


class ReplacingTrace(AccumulatingTrace):
    """A trace that is ``clock[1] * trace[row]`` where ``stamps[row] == clock[0]``, and 0 elsewhere.

    It is kept twice, entry by entry and through the buffered vectors. Ratios above 1 multiply the rounding difference
    of the two, so the buffer ends early where they do so by more than ``MAX_AMPLIFICATION``.
    """

    may_be_dense = False

    def __init__(self) -> None:
        self.trace: FloatArray = np.zeros(0)
        self.stamps: FloatArray = np.zeros(0)
        self.clock: FloatArray = np.array([1.0, 1.0])
        # what :meth:`mend` may have to go back to, and after how many samples it was that
        self._before: tuple[int, FloatArray, FloatArray, FloatArray] | None = None

    def room(self, buffer: Buffer, batch: Batch, start: int, lambda_: float) -> int:
        """As many as fit, or fewer where ratios multiply errors."""
        k, room = buffer.count, buffer.capacity - buffer.count
        new = slice(start, start + room)
        growth = batch.trace_discounts[new] * lambda_ * batch.rhos[new]
        q = _amplification(np.concatenate([buffer.decays[:k] * buffer.rhos[:k], growth]))
        over = np.flatnonzero(q[k:] > MAX_AMPLIFICATION)
        return int(over[0]) + 1 if over.size else room

    def ends(self, buffer: Buffer) -> bool:
        """Whether ratios have multiplied errors by too much."""
        q = _amplification(buffer.decays[: buffer.count] * buffer.rhos[: buffer.count])
        return bool((q[-1:] > MAX_AMPLIFICATION).any())

    def arrays(self, size: int, n_samples: int | None) -> tuple[bool, FloatArray, FloatArray, FloatArray]:
        """Make room, and remember the trace if it may have to be what it was."""
        self._before = None
        if self.trace.size < size:
            self.__dict__.update(trace=enlarged(self.trace, size), stamps=enlarged(self.stamps, size))
        if n_samples is not None:  # it is changed in place before the head is made or weights move
            self._before = n_samples, self.trace.copy(), self.stamps.copy(), self.clock.copy()
        return super().arrays(size, n_samples)

    def after(self, x: PendingVectors, coefficients: FloatArray, n: int) -> FloatArray:
        """z (n, 1) as it is kept entry by entry, which is exact."""
        z, alive = np.zeros((n, 1)), self.stamps[:n] == self.clock[0]
        z[alive, 0] = self.clock[1] * self.trace[:n][alive]
        return z

    def mend(self, n_samples: int) -> None:
        """Be the trace that was remembered, if it is the one after ``n_samples``."""
        if self._before is not None and self._before[0] == n_samples:
            trace, stamps, clock = (part.copy() for part in self._before[1:])
            self.__dict__.update(trace=trace, stamps=stamps, clock=clock)

    def state(self, n: int) -> State:
        """What :meth:`restore` takes."""
        alive = self.stamps[:n] == self.clock[0]
        trace = np.zeros(n)  # longer than what there is if features came with weights to start from
        trace[: alive.size] = np.where(alive, self.trace[:n], 0.0) + 0.0  # no −0.0
        return {"trace": trace, "trace_scale": float(self.clock[1])}

    def restore(self, saved: Saved, n: int) -> None:
        """Take over a saved state over n features; only of fresh objects."""
        self.trace = saved.floats("trace", n)
        self.stamps = (self.trace != 0.0).astype(np.float64)
        self.clock = np.array([1.0, saved.real("trace_scale", low=1e-100, high=1e100)])


def _amplification(growth: FloatArray) -> FloatArray:
    """q_j = g_j max(1, q_{j-1}): how far an error made at any step has been multiplied by step j."""
    q = np.zeros(growth.size)
    if (growth > 1.0).any():
        last = 0.0
        for j, g in enumerate(growth):
            last = q[j] = g * max(1.0, last)
    return q
