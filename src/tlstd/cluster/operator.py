"""The LSTD system of all shards, as an operator: A v = Σ_s A_s v, of which only vectors travel."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.classic.ridge import even_scales, ridge_diagonal
from tlstd.cluster.shard import Trace
from tlstd.cluster.shard_pool import ShardPool
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError
from tlstd.krylov.arnoldi import Arnoldi


class ShardedOperator:
    """A and b of :class:`~tlstd.krylov.operator.SampleOperator`, averages over the samples of all shards.

    The shards agree on a numbering: the features seen by any of them, by their ids. A product is one round: a vector
    over these features goes to every worker, and their parts come back as a sum along the order of the shards.

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
    >>> ids, weights = operator.solve(3)
    >>> bool(np.abs(weights[:, 0] - model.weights[ids]).max() < 1e-12)
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
        self.shift: FloatArray | None = None

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

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.n, self.n

    def with_ridge(self, ridge: float) -> ShardedOperator:
        """A + ηD, η in units of the mean ‖x‖², D the identity but 0 for features that are constant; changes itself."""
        moments: list[tuple[float, IntArray, FloatArray]] = [
            part for part, count in zip(self.pool.each("moments"), self.counts, strict=True) if count
        ]
        ids, values = moments[0][1:]
        for _, other, of in moments[1:]:
            ids, i, j = np.intersect1d(ids, other, assume_unique=True, return_indices=True)
            same = values[i] == of[j]
            ids, values = ids[same], values[i][same]
        square = float(sum(part[0] for part in moments))
        self.shift = ridge_diagonal(ridge, square, np.isin(self.ids, ids))
        return self

    def scales(self) -> FloatArray:
        """s (n, 1) by which features that are seen rarely become as long as the others, see :func:`even_scales`."""
        shift = np.zeros(self.n) if self.shift is None else self.shift
        return even_scales(self.pool.total("squares", self.n)[:, 0], shift)[:, None]

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
        return self.pool.total("b", self.n)

    def solve(self, dimension: int, product: Any = None) -> tuple[IntArray, FloatArray]:
        """Ids of the features seen and weights (n, n_targets) of least residual in a Krylov space.

        ``product`` is used in place of :meth:`matvec`, if it is given.
        """
        multiply = self.matvec if product is None else product
        arnoldi = Arnoldi(lambda V, columns: multiply(V), self.b())
        arnoldi.extend(dimension)
        return self.ids, arnoldi.solutions(dimension)
