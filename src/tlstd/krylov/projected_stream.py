"""The LSTD system projected on fixed bases, up to date with its solution after every sample."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.core.threads import one_thread
from tlstd.data.feature_index import FeatureIndex
from tlstd.data.kernels.sparse import dots, projected_value
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector
from tlstd.krylov.kernels import projected_stream as kernels
from tlstd.krylov.kernels.products import trace_factors
from tlstd.krylov.samples import Chunk, Samples

_NEGLIGIBLE = 1e-40  # what is on a trace below this share of the largest
_MOST_WEIGHT = 1e50  # of a sample, before all is scaled down
_NO_VALUES: FloatArray = np.zeros(0)


class SmallSystem(NamedTuple):
    """M y = c, in place up to date with its solution after every sample; as the kernels take it (see their header)."""

    matrices: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
    """M (m, m), its inverse, c (m,) and y."""
    moving: tuple[FloatArray, FloatArray]
    """tableᵀz (k,) after the last sample; the weight of the next, two numbers of the inverse, and samples so far."""

    @classmethod
    def begun(cls, M: FloatArray, c: FloatArray, trace: FloatArray, n_samples: int, weight: float = 1.0) -> SmallSystem:
        """LᵀA R and Lᵀb after ``n_samples``, as sums over samples in units of the weight of the next one."""
        made = cls(
            (np.array(M), np.zeros_like(M), np.array(c), np.zeros_like(c)),
            (np.array(trace), np.array([weight, 0.0, 0.0, float(n_samples)])),
        )
        kernels.begin(*made)
        return made

    @property
    def n_samples(self) -> int:
        """Samples so far."""
        return int(self.moving[1].item(3))

    @property
    def y(self) -> FloatArray:
        """The solution's coordinates; a view."""
        return self.matrices[3]

    def is_finite(self) -> bool:
        """Whether no number has become too large."""
        return all(np.isfinite(array).all() for array in (*self.matrices, *self.moving))

    def copied(self) -> SmallSystem:
        """A copy, in smaller units where the weight has become large."""
        M, inverse, c, y = (part.copy() for part in self.matrices)
        trace, numbers = (part.copy() for part in self.moving)
        if numbers[0] > _MOST_WEIGHT:  # powers of two: nothing is rounded
            factor = 2.0 ** -np.frexp(numbers[0])[1]
            for part, scale in ((M, factor), (c, factor), (inverse, 1.0 / factor)):
                part *= scale
            numbers[0] *= factor
        return SmallSystem((M, inverse, c, y), (trace, numbers))

    def state(self) -> State:
        """What :meth:`restored` takes."""
        names = "M", "inverse", "c", "y", "trace", "numbers"
        return dict(zip(names, (*self.matrices, *self.moving), strict=True))

    @classmethod
    def restored(cls, saved: Saved, shape: tuple[int, int], n_samples: int) -> SmallSystem:
        """The system that was saved, if it can be one with ``left`` of this shape after ``n_samples``."""
        k, m = shape
        M, inverse = saved.floats("M", m, m), saved.floats("inverse", m, m)
        c, y = saved.floats("c", m), saved.floats("y", m)
        trace, numbers = saved.floats("trace", k), saved.floats("numbers", 4)
        if numbers[3] != n_samples or numbers[2] not in (0.0, 1.0) or not numbers[0] > 0.0 or not numbers[1] >= 0.0:
            raise saved.error("numbers", f"are {numbers}, which cannot be after {n_samples} samples")
        return cls((M, inverse, c, y), (trace, numbers))


class ProjectedStream:
    """LᵀA_t R y = Lᵀb_t for bases L and R (n, m) that stay as they are while samples come; the weights are R y.

    Both bases are in one ``table`` (n, k): R is m of its columns, L is table · left. For a Krylov space with basis
    Q (n, m + 1) and A Q_m = Q H the table is Q, R its first m columns, and ``left`` an orthonormal basis of the columns
    of H, so that L spans A R. For a truncated SVD U Σ Vᵀ the table is [U V], ``left`` is (I, 0) and ``first`` is m.

    Features beyond the table have no weight. A step costs O(nnz·k + k·m + m²).

    Parameters
    ----------
    table : (n, k)
    left : (k, m)
    system : SmallSystem
        LᵀA R y = Lᵀb so far.
    first : int
        R are the columns of the table from here on.
    growth : float
        By what factor weights grow from one sample to the next: 1/(1-β) forgets.
    """

    def __init__(
        self, table: FloatArray, left: FloatArray, system: SmallSystem, *, first: int = 0, growth: float = 1.0
    ) -> None:
        self._table, self.n = np.ascontiguousarray(table), table.shape[0]
        self._bases = np.ascontiguousarray(left), first
        self.system, self.growth = system, growth

    @property
    def shape(self) -> tuple[int, int]:
        """(k, m): columns of the table, and dimensions of the solution."""
        return self._bases[0].shape

    @property
    def right(self) -> FloatArray:
        """R (n, m); a view."""
        left, first = self._bases
        return self._table[: self.n, first : first + left.shape[1]]

    @property
    def table(self) -> FloatArray:
        """Both bases (n, k); a view."""
        return self._table[: self.n]

    def weights(self) -> FloatArray:
        """R y (n,)."""
        with one_thread():
            w: FloatArray = self.right @ self.system.y
        return w

    def value(self, positions: IntArray, vals: FloatArray) -> float:
        """xᵀR y of a vector by the positions of its features, -1 for those that have none."""
        known = (positions >= 0) & (positions < self.n)
        return float(vals[known] @ (self.right[positions[known]] @ self.system.y))

    def value_of(self, x: SparseVector, index: FeatureIndex) -> float:
        """As :meth:`value`, to the bit, by the index of the features' positions."""
        places, hashed = index.table
        return projected_value(  # type: ignore[no-any-return]
            x.indices, x.values, places, hashed, self.n, self._table, self._bases[1], self.system.matrices[3]
        )

    def coordinates_of(self, ptr: IntArray, positions: IntArray, vals: FloatArray) -> FloatArray:
        """tableᵀx of the rows of a CSR matrix with positions of features, -1 for those that have none."""
        G = np.empty((ptr.size - 1, self._table.shape[1]))
        dots(ptr, positions, vals, 0, ptr.size - 1, self._table, self.n, G.shape[1], G)
        return G

    def coordinates(self, chunk: Chunk, first_row: int, stop_row: int, n: int, spare: int = 0) -> FloatArray:
        """tableᵀx of some rows of a chunk, whose features are the first ``n``, with ``spare`` further rows."""
        if chunk.X is None and n > self._table.shape[0]:  # features that came later have rows of zeros
            self._table = enlarged(self.table, max(n, self._table.shape[0] * 5 // 4 + 16))
        G = np.empty((stop_row - first_row + spare, self._table.shape[1]))
        _multiply(chunk, first_row, stop_row, self._table, G[: stop_row - first_row])
        return G

    def follow(
        self,
        samples: Samples,
        lambda_: float,
        target: int,
        *,
        values: FloatArray | None = None,
        ends: FloatArray | None = None,
    ) -> None:
        """Add the samples that are new in ``samples``; O(nnz·k + k·m + m²) each.

        If ``values`` (as many as there are new samples) is given, the value of each x_{t+1} right after its step is
        written there; ``ends`` has the coordinates tableᵀx_{t+1} of those with discount 0, in order.
        """
        n_ends = written = 0
        while self.system.n_samples < samples.n_samples:
            c, start = divmod(self.system.n_samples - samples.n_left, samples.chunk_size)
            chunk, stop = samples.chunks[c], samples.count(c)
            first_row = int(chunk.row[start])
            now = 0 if ends is None else int((chunk.next_row[start:stop] < 0).sum())
            G = self.coordinates(chunk, first_row, chunk.n_rows(stop), samples.n, now)
            if ends is not None and now:
                G[-now:] = ends[n_ends : n_ends + now]
                n_ends += now
            columns = (chunk.row, chunk.next_row, chunk.discounts, chunk.trace_discounts, chunk.rewards)
            rhos = _NO_VALUES if chunk.rhos is None else chunk.rhos
            out = _NO_VALUES if values is None else values[written:]
            kernels.follow(
                *(G, first_row, columns, rhos, target, start, stop, lambda_, self.growth),
                *(self._bases, *self.system, out),
            )
            written += stop - start

    def follow_one(self, chunk: Chunk, row: int, next_row: int, t: Transition, lambda_: float) -> bool:
        """Add a sample with ratio 1 by its rows in a chunk; False, with nothing changed, if :meth:`follow` has to."""
        rows = chunk.ptr, chunk.pos, _NO_VALUES if chunk.val is None else chunk.val
        step = t.reward, t.discount, t.trace_discount
        return kernels.follow_one(  # type: ignore[no-any-return]
            rows, row, next_row, step, lambda_, self.growth, self._table, self._bases, *self.system
        )

    def followed(
        self,
        G: FloatArray,
        columns: tuple[NDArray[Any], NDArray[Any], FloatArray, FloatArray, FloatArray],
        rhos: FloatArray,
        target: int,
        lambda_: float,
        values: FloatArray,
    ) -> ProjectedStream:
        """This with samples added, as a new object on the same bases; O(k·m + m²) each.

        Parameters
        ----------
        G : (rows, k)
            Coordinates tableᵀx.
        columns
            Rows of x and of x_next in G, γ_{t+1} and γ_t, (N,) each, and rewards (N, targets).
        rhos : (N,)
        target : int
        lambda_ : float
        values : (N,) or empty
            Where the value of each x_next right after its step is written, in place.
        """
        other = copy(self)
        other.system = self.system.copied()
        kernels.follow(
            *(G, 0, columns, rhos, target, 0, rhos.size, lambda_, self.growth),
            *(self._bases, *other.system, values),
        )
        return other

    # --- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What :meth:`restored` takes."""
        return {"table": self.table, "left": self._bases[0], "first": self._bases[1], **self.system.state()}

    @classmethod
    def restored(
        cls, saved: Saved, n: int, n_samples: int, growth: float, *, is_dense: bool = False
    ) -> ProjectedStream:
        """The system that was saved, if it can be one of at most ``n`` features (all, if dense) after ``n_samples``."""
        shape = saved.shape("left")
        k, m = shape if len(shape) == 2 else (0, 0)
        table = saved.floats("table", None, k)
        if table.shape[0] > n or (is_dense and table.shape[0] < n):
            raise saved.error("table", f"has {table.shape[0]} rows for {n} features")
        left = saved.floats("left", k, m)
        if m > k:
            raise saved.error("left", f"has {m} columns for {k} rows")
        first = saved.integer("first", high=k - m)
        return cls(table, left, SmallSystem.restored(saved, (k, m), n_samples), first=first, growth=growth)


def _multiply(chunk: Chunk, first: int, stop: int, table: FloatArray, G: FloatArray) -> None:
    """G = tableᵀx of the rows ``first:stop`` of a chunk, written."""
    if chunk.X is None:
        kernels.gather_rows(chunk.ptr, chunk.pos, chunk.val, first, stop, table, G)
        return
    with one_thread():
        np.matmul(chunk.X[first:stop], table, out=G)


def projected_trace(samples: Samples, lambda_: float, table: FloatArray) -> FloatArray:
    """tableᵀz after the last sample, for a table (n, k) of the features seen."""
    trace = np.zeros(table.shape[1])
    factor = 1.0
    for c in range(len(samples.chunks) - 1, -1, -1):
        chunk, count = samples.chunks[c], samples.count(c)
        factors = np.empty(count)
        carried = trace_factors(chunk.trace_discounts, chunk.ratios(count), lambda_, factors)
        used = np.flatnonzero(np.abs(factors) > _NEGLIGIBLE * np.abs(factors).max())
        if used.size:
            first, stop = int(chunk.row[used[0]]), int(chunk.row[count - 1]) + 1
            G = np.empty((stop - first, table.shape[1]))
            _multiply(chunk, first, stop, table, G)
            trace += factor * (factors[used] @ G[chunk.row[used] - first])
        factor *= carried
        if factor == 0.0:
            return trace
    border = samples.border
    return trace + factor * (border @ table[: border.size])
