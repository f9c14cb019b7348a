"""Weights that take a step along A⁺z and z at every sample, without anything of their size being touched."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.data.feature_index import FeatureIndex
from tlstd.data.kernels import sparse as kernels
from tlstd.truncated.buffer import SparseBuffer
from tlstd.truncated.truncated_system import TruncatedSystem


class MovingWeights:
    """w = base + V on_V + (right block) on_right + (left block) on_left, over the features a system has seen.

    Between compressions of the system a step only changes small coefficients; what lies in explicit directions (rare
    with sparse features) goes to ``base`` at once. :meth:`fold` multiplies everything out, before a compression.
    """

    def __init__(self, system: TruncatedSystem, n_targets: int) -> None:
        self.system = system
        self.n_moves = 0
        self.base: FloatArray = np.zeros((0, n_targets))
        self.on_V: FloatArray = np.zeros((0, n_targets))
        self.on_left: FloatArray = np.zeros((0, n_targets))
        self.on_right: FloatArray = np.zeros((0, n_targets))

    def begin(self, ids: IntArray, values: FloatArray) -> None:
        """Start at weights (n, m) of the features ``ids``, before the system has seen anything."""
        self.system.seen = FeatureIndex(self.system.n_features, ids)
        self.base = values.copy()

    def predict(self, ids: IntArray, values: FloatArray) -> FloatArray:
        """wᵀx for one sparse x, (m,). O(nnz (r + k))."""
        system, x, out = self.system, self.system.seen.lookup(ids, values), np.zeros(self.base.shape[1])
        kernels.add_weights(*x, self.base, out)
        if self.on_left.shape[0]:
            kernels.add_factored(*x, system.factors.V, self.on_V, out)
            if isinstance(system.buffer, SparseBuffer):
                left, right = system.buffer.left, system.buffer.right
                every, scratch = np.arange(left.count), system.buffer.scratch(len(system.seen))
                left.add_value(x, every, self.on_left, scratch, out)
                right.add_value(x, every, self.on_right, scratch, out)
        return out

    def move(self, along_inverse: FloatArray, along_trace: FloatArray, rcond: float) -> None:
        """w += A⁺z along_inverseᵀ + z along_traceᵀ, both (m,), for the trace z of the system's last sample."""
        system, m = self.system, self.base.shape[1]
        size, k = system.buffer.left.norms.size, system.buffer.count
        on_V = self.on_V if self.on_V.shape[0] else np.zeros((system.factors.sigma.size, m))
        on_left, on_right, base = _longer(self.on_left, size), _longer(self.on_right, size), self.base
        core = system.core()
        if system.rank:
            right = core.right
            step_V, step_D, step_E = right.split(core.step(rcond)[:, None] * along_inverse)
            on_V = on_V + step_V
            on_right[right.picked] += step_D
            if step_E.shape[0]:
                base = _longer(base, len(system.seen))
                base += right.E @ step_E
        if isinstance(system.buffer, SparseBuffer):
            on_left[:k] += core.z_coefficients * along_trace
        elif along_trace.any():
            base = _longer(base, len(system.seen))
            system.buffer.left.add_to(base, np.arange(k), core.z_coefficients * along_trace)
        self.__dict__.update(on_V=on_V, on_left=on_left, on_right=on_right, base=base, n_moves=system.n_samples)

    def dense(self) -> FloatArray:
        """The weights (n, m) of the features seen. O(n r)."""
        system = self.system
        w = np.zeros((len(system.seen), self.base.shape[1]))
        w[: self.base.shape[0]] = self.base
        if self.on_left.shape[0]:
            V, every = system.factors.V, np.arange(system.buffer.count)
            w[: V.shape[0]] += V @ self.on_V
            if isinstance(system.buffer, SparseBuffer):
                system.buffer.left.add_to(w, every, self.on_left[every])
                system.buffer.right.add_to(w, every, self.on_right[every])
        return w

    def fold(self) -> None:
        """Multiply everything out into ``base``; call before the system is compressed."""
        none = np.zeros((0, self.base.shape[1]))
        self.__dict__.update(base=self.dense(), on_V=none, on_left=none, on_right=none)

    def state(self) -> State:
        """What :meth:`restore` takes; at the end of a buffer everything is in ``base``."""
        k = self.system.buffer.count  # of which nothing is left in coefficients if a compression was interrupted
        on_V = _longer(self.on_V, self.system.factors.sigma.size) if k else self.on_V
        on_left, on_right = (_longer(array, k)[:k] for array in (self.on_left, self.on_right))
        return {"base": self.base, "on_V": on_V, "on_left": on_left, "on_right": on_right}

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one of the system, which is restored before; only of fresh objects."""
        k, m = self.system.buffer.count, self.base.shape[1]
        base = saved.floats("base", None, m)
        if base.shape[0] > len(self.system.seen):
            raise saved.error("base", f"has {base.shape[0]} rows where {len(self.system.seen)} features were seen")
        self.base = base
        self.on_V = saved.floats("on_V", self.system.factors.sigma.size if k else 0, m)
        self.on_left, self.on_right = saved.floats("on_left", k, m), saved.floats("on_right", k, m)


def _longer(array: FloatArray, length: int) -> FloatArray:
    """A copy with rows of zeros appended, of at least ``length`` rows."""
    return np.array(enlarged(array, length))
