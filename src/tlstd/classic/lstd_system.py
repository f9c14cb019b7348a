"""What the full and the recursive LSTD system have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.feature_index import FeatureIndex
from tlstd.errors import CapacityError


class LSTDSystem(ABC):
    """A = Σ ω z dᵀ and b = Σ ω z r over the features seen, with running-average or exponentially forgetting weights.

    What is stored is ``scale``⁻¹ times the system, so that forgetting costs nothing per entry.

    Parameters
    ----------
    n_features, lambda_, beta, replacing, n_targets : as in ``LSTD``
    memory_limit : int
        Bytes that matrices may take; beyond that :class:`CapacityError` is raised and nothing changes.
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
    ) -> None:
        self.n_features, self.lambda_, self.beta, self.replacing = n_features, lambda_, beta, replacing
        self.n_targets, self.memory_limit = n_targets, memory_limit
        self._begin()

    def _begin(self) -> None:
        """Have no samples."""
        self.seen = FeatureIndex(self.n_features)
        self._scale: FloatArray = np.ones(1)
        self._progress: IntArray = np.zeros(2, dtype=np.int64)  # samples, and what a subclass counts with them
        self._b: FloatArray = np.zeros((0, self.n_targets))
        self.z: FloatArray = np.zeros(0)

    @property
    def n(self) -> int:
        """Number of features seen."""
        return len(self.seen)

    @property
    def n_samples(self) -> int:
        """Number of samples in the system."""
        return int(self._progress[0])

    @property
    @abstractmethod
    def A(self) -> FloatArray:
        """The stored matrix (n, n): A / scale. Not to be written to."""

    @property
    def b(self) -> FloatArray:
        """The stored right-hand side (n, m): b / scale. A view."""
        return self._b[: self.n]

    @property
    def scale(self) -> float:
        """What the stored sums have to be multiplied by."""
        return float(self._scale[0])

    def averaged(self) -> tuple[FloatArray, FloatArray]:
        """A and b as the paper has them: averages over the samples, or exponentially weighted sums."""
        factor = self.scale / max(self.n_samples, 1) if self.beta is None else self.scale
        return self.A * factor, self.b * factor

    @abstractmethod
    def _grow(self) -> None:
        """Make room for all features seen."""

    def mend(self) -> None:
        """Put everything in order after an interruption."""
        self.seen.mend()
        if self.n_samples == 0:
            self._begin()
        self._grow()


def check_memory(n: int, matrices: int, limit: int) -> None:
    """Raise :class:`CapacityError` if so many n × n matrices need more than ``limit`` bytes."""
    if 8 * n * n * matrices > limit:
        raise CapacityError(
            f"{n} distinct features need {8e-9 * n * n * matrices:.1f} GB for LSTD's matrices, over the limit of "
            f"{1e-9 * limit:.1f} GB: use TLSTD, which needs 16·{n}·rank bytes, or raise memory_limit"
        )
