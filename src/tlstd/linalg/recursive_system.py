"""The LSTD system with its inverse followed from sample to sample."""

from __future__ import annotations

import numpy as np

from tlstd.container import Saved, State
from tlstd.linalg.batch import Batch
from tlstd.linalg.normal_system import check_memory
from tlstd.linalg.recursive_inverse import RecursiveInverse
from tlstd.linalg.seen import SeenFeatures
from tlstd.types import FloatArray


class RecursiveSystem:
    """A = ε I + Σ ω z dᵀ with its inverse, and b = Σ ω z r; parameters as in ``LSTD``.

    As in :class:`~tlstd.linalg.normal_system.NormalSystem`, what is stored is ``scale``⁻¹ times the system.
    """

    def __init__(
        self,
        n_features: int,
        *,
        lambda_: float,
        beta: float | None,
        replacing: bool,
        n_targets: int,
        memory_limit: int,
        initial_diagonal: float,
    ) -> None:
        self.n_features, self.lambda_, self.beta, self.replacing = n_features, lambda_, beta, replacing
        self.memory_limit = memory_limit
        self.seen = SeenFeatures()
        self.inverse = RecursiveInverse(initial_diagonal)
        self._scale: FloatArray = np.ones(1)
        self.z: FloatArray = np.zeros(0)
        self.b: FloatArray = np.zeros((0, n_targets))

    @property
    def n_samples(self) -> int:
        """Number of samples in the system."""
        return int(self.inverse.progress[0])

    @property
    def scale(self) -> float:
        """What the stored sums have to be multiplied by."""
        return float(self._scale[0])

    def check_capacity(self, batch: Batch) -> None:
        """Raise :class:`CapacityError` if the batch would make the system too large."""
        check_memory(self.seen.count_with(batch.ids()), 2, self.memory_limit)

    def append(self, batch: Batch) -> None:
        """Add a checked batch, sample by sample. O(n²) each."""
        (x_indptr, x_ids, x_vals), rows, (n_indptr, n_ids, n_vals), next_rows = batch.sparse()
        for t, (row, next_row) in enumerate(zip(rows, next_rows, strict=True)):
            x = slice(x_indptr[row], x_indptr[row + 1])
            x_next = slice(n_indptr[next_row], n_indptr[next_row + 1])
            if batch.discounts[t] == 0.0:
                x_next = slice(0, 0)
            self.seen.insert(x_ids[x])
            self.seen.insert(n_ids[x_next])
            self._grow()
            at = self.seen.find(x_ids[x])
            z = self.z * (batch.rhos[t] * batch.trace_discounts[t] * self.lambda_)
            if self.replacing:
                z[at] = 0.0
            z[at] += batch.rhos[t] * x_vals[x]
            z[np.abs(z) < 1e-300] = 0.0
            d = np.zeros(z.size)
            d[at] = x_vals[x]
            d[self.seen.find(n_ids[x_next])] -= batch.discounts[t] * n_vals[x_next]
            self._add(z, d, batch.rewards[t])

    def _grow(self) -> None:
        n = len(self.seen)
        if n > self.z.size:
            self.inverse.grow(n, self.scale)
            b = np.concatenate([self.b, np.zeros((n - self.z.size, self.b.shape[1]))])
            self.__dict__.update(b=b, z=np.concatenate([self.z, np.zeros(n - self.z.size)]))

    def _add(self, z: FloatArray, d: FloatArray, rewards: FloatArray) -> None:
        weight = scale = 1.0
        if self.beta is not None:
            scale = self.scale * (1.0 - self.beta)
            if scale < 1e-50:
                self.inverse.rescale(self.scale, self.b, self._scale)
                scale = 1.0 - self.beta
            weight = self.beta / scale
        self.inverse.update(self.z, z, d, weight, self.b, np.array(rewards), self._scale, scale)

    def mend(self) -> None:
        """Put everything in order after an interruption."""
        self.seen.mend()
        if self.n_samples == 0:
            self.__init__(  # type: ignore[misc]
                self.n_features,
                lambda_=self.lambda_,
                beta=self.beta,
                replacing=self.replacing,
                n_targets=self.b.shape[1],
                memory_limit=self.memory_limit,
                initial_diagonal=self.inverse.initial_diagonal,
            )
        self._grow()

    def averaged(self) -> tuple[FloatArray, FloatArray]:
        """A (with its initial diagonal) and b, averaged over the samples or exponentially weighted."""
        factor = self.scale / max(self.n_samples, 1) if self.beta is None else self.scale
        return self.inverse.A * factor, self.b * factor

    def solve(self, rcond: float) -> FloatArray:
        """The weights, (n, m)."""
        return self.inverse.solve(self.b, rcond)

    def state(self) -> State:
        """What :meth:`restore` takes."""
        return {
            "seen": self.seen.state(),
            "inverse": self.inverse.state(),
            "scale": self.scale,
            "n_samples": self.n_samples,
            "z": self.z,
            "b": self.b,
        }

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one of these parameters; only of fresh objects."""
        self.seen.restore(saved.part("seen"), self.n_features)
        n = len(self.seen)
        self.inverse.restore(saved.part("inverse"), n)
        self._scale = np.array([saved.real("scale", low=1e-50 if self.beta is not None else 1.0, high=1.0)])
        self.inverse.progress[0] = saved.integer("n_samples")
        self.z = saved.floats("z", n)
        self.b = saved.floats("b", n, self.b.shape[1])
        if n and not self.n_samples:
            raise saved.error("n_samples", f"is 0 where {n} features were seen")
