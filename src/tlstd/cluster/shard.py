"""A part of the samples, kept where it was read: what can be multiplied with, and what its neighbour has to know."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tlstd.cluster.group_sums import GroupSums, Stretches, summed
from tlstd.cluster.spill import Mapped, spilled
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch
from tlstd.data.held_out import LARGEST_TAIL
from tlstd.data.transitions import Transitions
from tlstd.krylov.adjoint import td_errors, trace_values
from tlstd.krylov.kernels import products as kernels
from tlstd.krylov.operator import SampleOperator, constant_features, feature_squares, gather, mean_square, scatter
from tlstd.krylov.samples import Samples, SampleStore, trace_after

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


class AskedStates(NamedTuple):
    """States of a shard whose mean value is asked for."""

    X: sp.csr_array
    """(M, n): over the shard's features."""
    sample: IntArray
    """(M,): the sample that each of them came with."""
    offsets: FloatArray
    """(M,): what comes on top of features times weights."""
    own: bool
    """Whether the x of all samples are asked for too."""


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
    n: int = 0
    """Features of all shards."""
    total: int = 0
    """Samples of all shards."""
    first: int = 0
    """Samples of the shards before."""
    asked: dict[str, AskedStates] = field(default_factory=dict)
    """By name."""
    folder: str | None = None
    """Where samples are kept that are not in memory."""
    mapped: Mapped | None = None

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
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "mapped"}
        return _unpickled, (pickle.dumps(own, protocol=4),)

    @property
    def nbytes(self) -> int:
        """Bytes of the samples."""
        return sum(chunk.nbytes for chunk in self.samples.chunks) + self.ids.nbytes

    def __sizeof__(self) -> int:
        return self.nbytes  # so that a scheduler knows what moving it would cost

    def digest(self) -> str:
        """A hash of everything in it that sums are taken of, wherever that is kept."""
        samples, found = self.samples, hashlib.blake2b(digest_size=16)
        arrays: list[Any] = [self.ids, samples.border]
        for c, chunk in enumerate(samples.chunks):
            count = samples.count(c)
            rows = chunk.n_rows(count)
            entries = None if chunk.X is not None else chunk.ptr[rows]
            arrays += [chunk.X[:rows]] if chunk.X is not None else [chunk.ptr[: rows + 1], chunk.pos[:entries]]
            arrays += [None if chunk.val is None else chunk.val[:entries]]
            arrays += [chunk.row[:count], chunk.next_row[:count], chunk.rewards[:count]]
            arrays += [chunk.discounts[:count], chunk.trace_discounts[:count], chunk.ratios(count)]
        for name, asked in self.asked.items():
            arrays += [np.array([name, str(asked.own)]), asked.X.data, asked.X.indices, asked.X.indptr]
            arrays += [asked.sample, asked.offsets]
        for array in (np.array([self.lambda_, self.n_features]), *arrays):
            found.update(b"-" if array is None else f"{array.dtype} {array.shape};".encode())
            if array is not None:
                found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return found.hexdigest()

    def spilled(self, folder: str | None) -> Shard:
        """The same with its samples in a file of a folder of this machine; in memory, if that is None."""
        if folder is None or not len(self):
            return self
        samples, mapped = spilled(self.samples, folder)
        return replace(self, samples=samples, folder=folder, mapped=mapped)

    def rest(self) -> None:
        """Give memory back that can be had again."""
        if self.mapped is not None:
            self.mapped.rest()

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

    def placed(self, ids: IntArray, total: int, first: int) -> Shard:
        """The same in the numbering of all shards: ``ids`` in rising order; ``first`` samples are in shards before."""
        places = np.searchsorted(ids, self.ids)
        return replace(self, places=places, n=ids.size, total=total, first=first)

    # --- its part of sums over all shards -----------------------------------------------------------------------------

    def _operator(self) -> SampleOperator:
        return SampleOperator(self.samples, lambda_=self.lambda_, n_targets=self.n_targets)

    def _in_place(self, part: FloatArray) -> FloatArray:
        """What this shard adds to an average over all samples, (n, k)."""
        whole = np.zeros((self.n, part.shape[1]))
        whole[self.places] = part * (len(self) / self.total)
        return whole

    def matvec(self, V: FloatArray) -> FloatArray:
        """Its part of A V."""
        if not len(self):
            return np.zeros_like(V)
        return self._in_place(self._operator().matvec(V[self.places]))

    def rmatvec(self, H: FloatArray) -> FloatArray:
        """Its part of AᵀH."""
        if not len(self):
            return np.zeros_like(H)
        return self._in_place(self._operator().rmatvec(H[self.places]))

    def b(self) -> FloatArray:
        """Its part of b, (n, n_targets)."""
        return self._in_place(self._operator().b()) if len(self) else np.zeros((self.n, self.n_targets))

    def asked_sum(self, name: str) -> FloatArray:
        """(n + 2, 1): the sum of the features of states asked for, and below it their number and their offsets' sum."""
        whole, asked = np.zeros((self.n + 2, 1)), self.asked[name]
        sums = np.zeros((self.ids.size, 1))
        if asked.own:
            for c, chunk in enumerate(self.samples.chunks):
                count = self.samples.count(c)
                scatter(chunk, chunk.row[:count], np.ones((count, 1)), sums)
        sums[: asked.X.shape[1], 0] += np.asarray(asked.X.sum(axis=0)).ravel()
        whole[self.places] = sums
        whole[self.n] = asked.X.shape[0] + (len(self) if asked.own else 0)
        whole[self.n + 1] = asked.offsets.sum()
        return whole

    def stretches(self, longest: float) -> Stretches:
        """Where its episodes begin, and which are longer than that."""
        n = len(self)
        if not n:
            return Stretches(0, 0, 0, [], 0.0)
        discounts, traces = self.samples.discounts()
        logs = float(np.log(np.maximum(discounts, LARGEST_TAIL)).sum())
        begins = np.flatnonzero(traces == 0.0)
        if not begins.size:
            return Stretches(n, n, n, [], logs)
        lengths = np.diff(begins)
        long = [(int(begins[i]), int(lengths[i])) for i in np.flatnonzero(lengths > longest)]
        return Stretches(n, int(begins[0]), int(begins[-1]), long, logs)

    def group_sums(
        self, name: str | None, H: FloatArray, centre: float, n_asked: int, cuts: tuple[int, ...], unit: float = 1.0
    ) -> GroupSums:
        """What its episodes have moved a value by.

        Parameters
        ----------
        name : str or None
            Of the states asked for; None if they were given, and are not of the log.
        H : (n, 2)
            h with Aᵀh = x, and the weights w.
        centre, n_asked : float, int
            The mean value of all states asked for by w, and their number.
        cuts : integers
            Samples, counted over all shards, with which a block of a long episode begins.
        unit : float
            A power of two that errors and values are divided by.
        """
        n = len(self)
        c, k = np.zeros(n), np.zeros(n)
        if not n:
            return summed(np.zeros(0, dtype=np.int64), c, k, k, c, 0.0)
        local, operator, border = H[self.places], self._operator(), self.samples.border
        carry = np.einsum("i,ij->j", border, local[: border.size, :1])
        with one_thread():
            u = trace_values(operator, local[:, :1], np.zeros(n, dtype=np.bool_), carry)[:, 0]
            errors = td_errors(operator, local[:, 1:])[:, 0] / unit
        c += u * errors / self.total
        square = 0.0
        if name is not None:
            sample, values = self._asked_values(name, local[:, 1])
            off = (values - centre) / unit
            c += np.bincount(sample, off / n_asked, n)
            k += np.bincount(sample, None, n)
            square = float((off**2).sum())
        begins = self.samples.discounts()[1] == 0.0
        inside = np.array([cut - self.first for cut in cuts if 0 <= cut - self.first < n], dtype=np.int64)
        begins[inside] = True
        return summed(np.flatnonzero(begins), c, u * u, k, errors, square)

    def _asked_values(self, name: str, w: FloatArray) -> tuple[IntArray, FloatArray]:
        """Samples that states asked for came with, and their values."""
        asked = self.asked[name]
        values = asked.X @ w[: asked.X.shape[1]] + asked.offsets
        if not asked.own:
            return asked.sample, values
        own = np.empty(len(self))
        columns = np.ascontiguousarray(w[:, None])
        for c, chunk in enumerate(self.samples.chunks):
            count, start = self.samples.count(c), c * self.samples.chunk_size
            own[start : start + count] = gather(chunk, count, columns)[chunk.row[:count], 0]
        return np.concatenate([np.arange(len(self)), asked.sample]), np.concatenate([own, values])

    def squares(self) -> FloatArray:
        """(n, 1): its part of Σ x_i² of each feature over the samples, in units of their number."""
        return self._in_place(feature_squares(self.samples)[:, None] / max(1, len(self)))

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
    shard = Shard(**pickle.loads(data))
    return shard.spilled(shard.folder)


def _factor(chunk: Any, count: int, lambda_: float) -> float:
    traces = chunk.trace_discounts[:count]
    return float(kernels.trace_factors(traces, chunk.ratios(count), lambda_, np.empty(count)))
