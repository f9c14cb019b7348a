"""A part of the samples, kept where it was read: what can be multiplied with, and what its neighbour has to know."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from tlstd.kernels import krylov as kernels
from tlstd.linalg.batch import Batch
from tlstd.linalg.sample_moments import constant_features, mean_square
from tlstd.linalg.sample_operator import SampleOperator
from tlstd.linalg.sample_store import SampleStore
from tlstd.linalg.samples import Samples, trace_after
from tlstd.types import FloatArray, IntArray, Transitions

NO_IDS: IntArray = np.zeros(0, dtype=np.int64)


class Trace(NamedTuple):
    """The eligibility trace z after the last sample of a shard."""

    ids: IntArray = NO_IDS
    values: FloatArray = np.zeros(0)
    factor: float = 0.0
    """By which a trace from before the shard is multiplied on its way through: Π ρ_t g_t λ."""

    def after(self, before: Trace) -> Trace:
        """The same, if there was another trace before the shard.

        >>> Trace(np.array([1, 5]), np.array([1.0, 2.0]), 0.5).after(Trace(np.array([5, 7]), np.array([8.0, 4.0])))
        Trace(ids=array([1, 5, 7]), values=array([1., 6., 2.]), factor=0.0)
        """
        if self.factor == 0.0 or not before.ids.size:
            return self._replace(factor=0.0)
        ids = np.union1d(self.ids, before.ids)
        values = np.zeros(ids.size)
        values[np.searchsorted(ids, self.ids)] = self.values
        values[np.searchsorted(ids, before.ids)] += self.factor * before.values
        return Trace(ids, values)


@dataclass(frozen=True, eq=False)
class Shard:
    """Samples in the compact form of ``KrylovLSTD``, over the features that occur in them."""

    samples: Samples
    ids: IntArray
    """Of the features, by their rows in ``samples``."""
    n_features: int
    lambda_: float
    n_targets: int
    places: IntArray | None = None
    """Of these features in the numbering that all shards have agreed on (:meth:`placed`)."""
    total: int = 0
    """Samples of all shards."""

    @classmethod
    def of(cls, pieces: Iterable[Transitions], n_features: int, lambda_: float, n_targets: int = 1) -> Shard:
        """A shard of transitions that follow one another; pieces are stored one at a time."""
        store = SampleStore(n_features, lambda_=lambda_, n_targets=n_targets)
        for piece in pieces:
            piece.check()
            if len(piece):
                store.append(Batch.from_transitions(piece))
        return cls(store.samples, store.ids.copy(), n_features, lambda_, n_targets)

    def __len__(self) -> int:
        return self.samples.n_samples

    def __reduce__(self) -> Any:
        # With its arrays inside: those that a cluster sends beside a pickle may lie at odd addresses when they arrive,
        # and NumPy adds up in another order there.
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return _unpickled, (pickle.dumps(own, protocol=4),)

    @property
    def nbytes(self) -> int:
        """Bytes of the samples."""
        return sum(chunk.nbytes for chunk in self.samples.chunks) + self.ids.nbytes

    def __sizeof__(self) -> int:
        return self.nbytes  # so that a scheduler knows what moving it would cost

    def trace(self) -> Trace:
        """What the next shard has to know if an episode goes on there."""
        z, factor = np.zeros(0), 1.0
        for c, chunk in enumerate(self.samples.chunks):
            count = self.samples.count(c)
            z = trace_after(chunk, count, self.lambda_, z)
            factor *= _factor(chunk, count, self.lambda_)
        kept = np.flatnonzero(z)
        return Trace(self.ids[kept], z[kept], factor)

    def seen_ids(self) -> IntArray:
        """Ids of its features."""
        return self.ids

    def trace_and_need(self) -> tuple[Trace, bool]:
        """Its :meth:`trace`, and whether a trace from before the first sample counts here, or behind it."""
        chunks = self.samples.chunks
        return self.trace(), not chunks or bool(chunks[0].trace_discounts[0] * self.lambda_ != 0.0)

    def after(self, before: Trace) -> Shard:
        """The same samples with a trace that was there before the first of them."""
        if not before.ids.size or not len(self):
            return self
        order = np.argsort(self.ids)
        at = np.minimum(np.searchsorted(self.ids, before.ids, sorter=order), self.ids.size - 1)
        found = order[at]
        known = self.ids[found] == before.ids
        ids = np.concatenate([self.ids, before.ids[~known]])
        border = np.zeros(ids.size)
        border[found[known]] = before.values[known]
        border[self.ids.size :] = before.values[~known]
        return replace(self, ids=ids, samples=self.samples._replace(n=ids.size, border=border))

    def placed(self, ids: IntArray, total: int) -> Shard:
        """The same in the numbering of all shards: ``ids`` in rising order."""
        return replace(self, places=np.searchsorted(ids, self.ids), total=total)

    # --- its part of sums over all shards -----------------------------------------------------------------------------

    def _operator(self) -> SampleOperator:
        return SampleOperator(self.samples, lambda_=self.lambda_, n_targets=self.n_targets)

    def _in_place(self, part: FloatArray, n: int) -> FloatArray:
        """What this shard adds to an average over all samples, (n, k)."""
        whole = np.zeros((n, part.shape[1]))
        whole[self.places] = part * (len(self) / self.total)
        return whole

    def matvec(self, V: FloatArray) -> FloatArray:
        """Its part of A V."""
        if not len(self):
            return np.zeros_like(V)
        return self._in_place(self._operator().matvec(V[self.places]), V.shape[0])

    def rmatvec(self, H: FloatArray) -> FloatArray:
        """Its part of AᵀH."""
        if not len(self):
            return np.zeros_like(H)
        return self._in_place(self._operator().rmatvec(H[self.places]), H.shape[0])

    def b(self, n: int) -> FloatArray:
        """Its part of b, (n, n_targets)."""
        return self._in_place(self._operator().b(), n) if len(self) else np.zeros((n, self.n_targets))

    def moments(self) -> tuple[float, IntArray, FloatArray]:
        """Its part of the mean ‖x‖², and the features that have one value, not 0, in all its samples."""
        if not len(self):
            return 0.0, NO_IDS, np.zeros(0)
        values = constant_features(self.samples)
        constant = np.flatnonzero(values)
        constant = constant[np.argsort(self.ids[constant])]
        square = mean_square(self.samples, self._operator().weights) * (len(self) / self.total)
        return square, self.ids[constant], values[constant]


def _unpickled(data: bytes) -> Shard:
    return Shard(**pickle.loads(data))


def _factor(chunk: Any, count: int, lambda_: float) -> float:
    rhos = np.ones(count) if chunk.rhos is None else chunk.rhos
    return float(kernels.trace_factors(chunk.trace_discounts[:count], rhos[:count], lambda_, np.empty(count)))
