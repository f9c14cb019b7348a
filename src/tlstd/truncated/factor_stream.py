"""The solution of a truncated system at every sample, in the subspaces that its last compression has left."""

from __future__ import annotations

import sys
from math import log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.svd import svd
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch, packed, row_arrays
from tlstd.krylov.projected_stream import ProjectedStream, SmallSystem
from tlstd.truncated.truncated_system import TruncatedSystem

SMALLEST = 1e-10
"""Share of the largest singular value up to which others are left out in any case."""

_MOST_GROWTH = 50.0 * log(10.0)  # logarithm of how far weights may grow at once


class FactorStream:
    """UᵀA_tV y = Uᵀb_t for the factors U and V of a compression, followed and solved with every sample; w = V y.

    The matrix is diag(σ) at the compression, and a sample adds Uᵀz dᵀV to it: O(nnz·r + r²). Singular values at or
    below ``rcond`` (at least ``SMALLEST``) times the largest are left out. What is new since the compression has no
    direction: the samples of the buffer count only as far as U and V see them.

    Before the first compression there is nothing to follow, nor after numbers too large for it, up to the next one.

    Parameters
    ----------
    system : TruncatedSystem
        With accumulating traces. Samples are appended here, and go there.
    rcond : float
    """

    def __init__(self, system: TruncatedSystem, rcond: float) -> None:
        self.system, self.rcond = system, rcond
        beta = system.beta
        self._growth = 1.0 if beta is None else 1.0 / (1.0 - beta)
        self._longest = sys.maxsize if beta is None else max(1, int(-_MOST_GROWTH / log1p(-beta)))
        self._made: tuple[int, dict[int, tuple[ProjectedStream, ...]]] = (0, {})

    @property
    def current(self) -> tuple[ProjectedStream, ...]:
        """The small system of each target as of the last sample; none where there is nothing to follow."""
        compressed, made = self._made
        if self.system.n_compressed == 0:
            return ()
        if compressed != self.system.n_compressed:  # just now: the buffer is empty
            made = {self.system.n_samples: _finite(self._begun())}
            self._made = self.system.n_compressed, made
        return made[self.system.n_samples]

    def append(self, batch: Batch, values: FloatArray | None = None) -> int:
        """Take in a checked batch; how many samples of it.

        The value of each x_next after its step goes to ``values`` (N, n_targets), if they are wanted, and then it ends
        where there is nothing to follow. Interrupted, it has taken a part of the batch.
        """
        start = 0
        while start < len(batch):
            stop = min(start + self.system.make_room(batch, start), start + self._longest)
            part = batch.part(start, stop)
            now, n, compressed = self.current, self.system.n_samples, self.system.n_compressed
            if values is not None and not now:
                return start
            after = _finite(self._followed(now, part, None if values is None else values[start:stop])) if now else ()
            if values is not None and not after:
                return start
            self._made = compressed, {n: now, n + len(part): after}  # whichever is counted in the end
            self.system.append(part)
            if values is not None and self.system.n_compressed != compressed:
                last, rows = part.part(len(part) - 1, len(part)).sparse()[2:]
                values[stop - 1] = self.predict(*row_arrays(last, rows[0]))
            start = stop
        return start

    def _begun(self) -> tuple[ProjectedStream, ...]:
        """The small systems at a compression."""
        table, left, sigma, b, z = self._bases()
        q, beta, n_samples = sigma.size, self.system.beta, self.system.n_compressed
        total, weight = (float(n_samples), 1.0) if beta is None else (1.0, beta / (1.0 - beta))
        with one_thread():
            c, trace = total * (table[:, :q].T @ b), table.T @ z
        M = np.diag(total * sigma)
        systems = (SmallSystem.begun(M, c[:, i], trace, n_samples, weight) for i in range(c.shape[1]))
        return tuple(ProjectedStream(table, left, system, first=q, growth=self._growth) for system in systems)

    def _bases(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """[U V] without what is left out, (I, 0), σ, b and z of the last compression."""
        factors, second = self.system.factors, self.system.equations
        U, sigma, V, b, z = factors.U, factors.sigma, factors.V, self.system.b, self.system.z
        with one_thread():
            if second is not None:  # the equations of another λ: G = UᵀA₂V is diagonal in its own singular vectors
                L, sigma, Rt = svd(second.G)
                U, V, b, z = U @ L, V @ Rt.T, second.b, second.z
        cut = max(self.rcond, SMALLEST) * sigma[:1].max(initial=0.0)
        q = int(np.count_nonzero(~(sigma <= cut)))  # NaN stay: they are news
        table = np.ascontiguousarray(np.hstack([U[:, :q], V[:, :q]]))
        return table, np.eye(2 * q, q), sigma[:q], b, z

    def _followed(
        self, now: tuple[ProjectedStream, ...], part: Batch, values: FloatArray | None
    ) -> tuple[ProjectedStream, ...]:
        G, rows, next_rows = self._coordinates(now[0], part)
        made = []
        second = self.system.equations
        lambda_ = self.system.lambda_ if second is None else second.lambda_
        for target, stream in enumerate(now):
            columns = (rows, next_rows, part.discounts, part.trace_discounts, part.rewards)
            out = np.empty(0 if values is None else len(part))
            made.append(stream.followed(G, columns, part.rhos, target, lambda_, out))
            if values is not None:
                values[:, target] = out
        return tuple(made)

    def _coordinates(self, stream: ProjectedStream, part: Batch) -> tuple[FloatArray, NDArray[Any], NDArray[Any]]:
        """tableᵀx of both sides, and the rows of them that each sample has."""
        N, n = len(part), stream.n
        each = np.arange(2 * N, dtype=np.int32)  # as the rows of a chunk: the kernel is compiled once for both
        if isinstance(part.x, np.ndarray) and isinstance(part.x_next, np.ndarray) and n == self.system.n_features:
            with one_thread():
                sides = np.vstack(part.dense(self.system.seen.ids))
                return sides @ stream.table, each[:N], each[N:]
        x, rows, x_next, next_rows = part.sparse()
        if x is x_next:  # the next row mostly is the following row
            picked, where = np.unique(np.concatenate([rows, next_rows]), return_inverse=True)
            each = where.astype(np.int32)
            return self._gathered(stream, x, picked), each[:N], each[N:]
        G = np.vstack([self._gathered(stream, x, rows), self._gathered(stream, x_next, next_rows)])
        return G, each[:N], each[N:]

    def _gathered(
        self, stream: ProjectedStream, csr: tuple[IntArray, IntArray, FloatArray], picked: IntArray
    ) -> FloatArray:
        ptr, ids, vals = packed(csr, picked)
        return stream.coordinates_of(ptr, self.system.seen.find(ids), vals)

    # --- reading ----------------------------------------------------------------------------------------------------

    def weights(self) -> FloatArray:
        """(n, n_targets), 0 for features that were first seen since the compression."""
        streams = self.current
        weights = np.zeros((len(self.system.seen), len(streams)))
        for target, stream in enumerate(streams):
            weights[: stream.n, target] = stream.weights()
        return weights

    def predict(self, ids: IntArray, vals: FloatArray) -> FloatArray:
        """Value of one vector, (n_targets,): O(nnz·r)."""
        streams = self.current
        positions = self.system.seen.find(ids)
        return np.array([stream.value(positions, vals) for stream in streams])

    # --- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What :meth:`restore` takes: what the buffer has changed."""
        streams = self.current
        if self.system.n_compressed == 0 or self.system.buffer.count == 0:
            return {}
        if not streams:
            return {"followed": False}
        return {f"target_{i}": stream.system.state() for i, stream in enumerate(streams)}

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it fits the system, which has been restored; only of fresh objects."""
        system = self.system
        if system.n_compressed and system.buffer.count:
            streams = _finite(self._begun())
            if not streams or not saved.shape("target_0.numbers"):
                if saved.flag("followed"):
                    raise saved.error("followed", "is true without a system")
                streams = ()
            for i, stream in enumerate(streams):
                stream.system = SmallSystem.restored(saved.part(f"target_{i}"), stream.shape, system.n_samples)
            self._made = system.n_compressed, {system.n_samples: streams}


def _finite(streams: tuple[ProjectedStream, ...]) -> tuple[ProjectedStream, ...]:
    """The systems, or none if numbers have become too large in one of them."""
    return streams if all(stream.system.is_finite() for stream in streams) else ()
