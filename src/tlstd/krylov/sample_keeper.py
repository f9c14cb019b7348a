"""Shared code of the estimators that keep their samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlstd.estimators.base import LinearEstimator, synchronized

if TYPE_CHECKING:
    from tlstd.krylov.samples import SampleStore


class SampleKeeper(LinearEstimator):
    """Base of the estimators that learn by storing samples, in ``_store``."""

    _store: SampleStore

    def _count(self) -> int:
        return self._store.samples.n_samples

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features seen so far."""
        return self._store.samples.n

    @property
    @synchronized
    def bytes_per_sample(self) -> float:
        """Bytes that a further sample takes, room at the end included: what those that are kept take, and an eighth."""
        return 1.125 * self._store.nbytes / max(1, self._store.samples.n_kept)
