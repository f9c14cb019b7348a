"""The LSTD system of all shards, as an operator: A v = Σ_s A_s v, of which only vectors travel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlstd.classic.ridge import even_scales
from tlstd.cluster.shard import Trace
from tlstd.cluster.shard_pool import ShardPool
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError
from tlstd.krylov.operator import Operator


class ShardedOperator(Operator):
    """A and b of :class:`~tlstd.krylov.operator.SampleOperator`, averages over the samples of all shards.

    Each shard knows its part of the three functions (:class:`~tlstd.cluster.shard.Shard`), and the pool adds the parts
    up, in this process or on workers. The shards agree on a numbering: the features seen by any of them, by their ids.
    A product is one round: a vector over these features goes to every worker, and their parts come back as a sum along
    the order of the shards.

    Parameters
    ----------
    pool : ShardPool
        Its shards are changed: they learn the numbering, and the traces of episodes that go on from shard to shard.

    Example
    -------
    >>> from tlstd import KrylovLSTD, boyan_chain
    >>> from tlstd.cluster.shard_pool import InProcess
    >>> from tlstd.cluster.shard import Shard
    >>> steps = boyan_chain().sample(100, np.random.default_rng(0))
    >>> parts = steps[:30], steps[30:]
    >>> operator = ShardedOperator(InProcess([Shard.of([part], 4, lambda_=0.5) for part in parts]))
    >>> model = KrylovLSTD(4, lambda_=0.5, dimension=3)
    >>> model.update_many(steps)
    >>> bool(np.abs(operator.solve(3)[:, 0] - model.weights[operator.ids]).max() < 1e-12)
    True
    """

    def __init__(self, pool: ShardPool) -> None:
        self.pool = pool
        self._pass_traces_on()
        self.counts: list[int] = pool.each("__len__")
        if not sum(self.counts):
            raise InvalidInputError("the shards have no steps whose next observation is known: nothing can be learned")
        self.ids: IntArray = pool.union("seen_ids")
        before = np.cumsum(self.counts) - self.counts
        pool.change("placed", [(self.ids, sum(self.counts), int(first)) for first in before])

    def _pass_traces_on(self) -> None:
        """Give every shard the trace that reaches into it; nothing where episodes end with their shard."""
        before, borders = Trace(), []
        for own, needs in self.pool.each("trace_and_need"):
            borders.append((before if needs else Trace(),))
            before = own.after(borders[-1][0])
        if any(border.ids.size for (border,) in borders):
            self.pool.change("after", borders)

    @property
    def n(self) -> int:
        """Number of features seen."""
        return self.ids.size

    def moments(self) -> tuple[float, NDArray[np.bool_]]:
        """The mean ‖x‖², and which features have one value, not 0, in the samples of all shards."""
        parts: list[tuple[float, IntArray, FloatArray]] = [
            part for part, count in zip(self.pool.each("moments"), self.counts, strict=True) if count
        ]
        ids, values = parts[0][1:]
        for _, other, of in parts[1:]:
            ids, i, j = np.intersect1d(ids, other, assume_unique=True, return_indices=True)
            same = values[i] == of[j]
            ids, values = ids[same], values[i][same]
        return float(sum(part[0] for part in parts)), np.isin(self.ids, ids)

    def scales(self) -> FloatArray:
        """s (n, 1) by which features that are seen rarely become as long as the others, see :func:`even_scales`."""
        shift = np.zeros(self.n) if self.shift is None else self.shift
        return even_scales(self.pool.total("squares")[:, 0], shift)[:, None]

    def matvec(self, V: FloatArray) -> FloatArray:
        """A V for the columns of V (n, k)."""
        return self._shifted(self.pool.total("matvec", np.ascontiguousarray(V)), V)

    def rmatvec(self, H: FloatArray) -> FloatArray:
        """AᵀH for the columns of H (n, k)."""
        return self._shifted(self.pool.total("rmatvec", np.ascontiguousarray(H)), H)

    def _shifted(self, product: FloatArray, V: FloatArray) -> FloatArray:
        return product if self.shift is None else product + self.shift[:, None] * V

    def b(self) -> FloatArray:
        """The right-hand sides (n, n_targets)."""
        return self.pool.total("b")
