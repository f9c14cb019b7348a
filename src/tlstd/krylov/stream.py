"""Krylov solutions that are up to date at every sample, between bases that are made anew as samples grow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch, packed
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector
from tlstd.krylov.choice import DimensionChoice, choose_dimensions
from tlstd.krylov.operator import SampleOperator
from tlstd.krylov.projected_stream import ProjectedStream, SmallSystem, projected_trace
from tlstd.krylov.samples import Samples, SampleStore

GROWTH = 1.0 / 3.0
"""Bases are made anew whenever there are this share of samples more than when they were made."""


class KrylovStream:
    """The samples of a store, with the solution for each target at every moment.

    At a *refresh* the Krylov bases Q of all samples are made, with W = orth(AQ). From then on WᵀA_tQ y = Wᵀb_t is
    followed (:class:`ProjectedStream`): O(nnz·m + m²) a sample. Refreshes are at sample 1 and whenever samples have
    grown by ``GROWTH``; with ``beta`` by ``GROWTH``/β at most. That is a function of the number of samples alone.

    Features first seen since a refresh have no row in Q, so no weight. (A row as the mean of those that were active
    with it is a little better on Mountain Car's tiles and much worse with 40,001 tiles and a bias.)

    Parameters
    ----------
    store : SampleStore
    dimension : int or None
        None: chosen by held-out data (:func:`choose_dimensions`) at sample 1 and whenever samples have doubled.
    operator : callable
        ``operator(samples)`` is the system of these samples.
    """

    def __init__(
        self, store: SampleStore, dimension: int | None, operator: Callable[[Samples], SampleOperator]
    ) -> None:
        self.store, self.dimension, self.operator = store, dimension, operator
        self._made: tuple[int, tuple[ProjectedStream, ...]] = (0, ())
        self._chosen: tuple[int, tuple[DimensionChoice, ...]] = (0, ())

    @property
    def choices(self) -> tuple[DimensionChoice, ...]:
        """What was chosen last, for each target."""
        return self._chosen[1]

    @property
    def refreshed(self) -> int:
        """Number of samples at the last refresh."""
        return self._made[0]

    @property
    def next_refresh(self) -> int:
        """Number of samples at the next one."""
        return self._grown(self.refreshed, GROWTH)

    def _grown(self, n_samples: int, share: float) -> int:
        """Number of samples after growth by some share, with ``beta`` by that share of 1/β at most."""
        beta = self.store.beta
        return n_samples + max(1, int(share * (n_samples if beta is None else min(n_samples, 1.0 / beta))))

    def append(self, batch: Batch, values: FloatArray | None = None) -> None:
        """Store and follow a checked batch. The value of each x_next after its step goes to ``values`` (N, n_targets).

        Interrupted, it has taken a part of the batch: as much as is in the store.
        """
        self.catch_up()
        start = 0
        while start < len(batch):
            stop = min(len(batch), start + self.next_refresh - self.store.samples.n_samples)
            if self.store.fold_size is not None:  # what has just been stored is never folded
                stop = min(stop, start + self.store.fold_size)
            part = batch.part(start, stop)
            self.store.append(part)
            if values is not None:
                self._follow_with_values(part, values[start:stop])
            self.catch_up()
            if values is not None and self.refreshed == self.store.samples.n_samples:
                last = self._next_rows(part, np.array([len(part) - 1]))
                values[stop - 1] = [p.coordinates_of(*last)[0, : p.shape[1]] @ p.system.y for p in self._made[1]]
            start = stop

    def append_one(self, t: Transition, bound: FloatArray) -> bool:
        """Store and follow one transition by a compiled call each; False, with nothing changed, if that cannot be."""
        samples, (_, streams) = self.store.samples, self._made
        n = samples.n_samples
        if len(streams) != 1 or streams[0].system.n_samples != n or n + 1 >= self.next_refresh:
            return False
        stored = self.store.append_one(t, bound)
        if stored is None:
            return False
        if not streams[0].follow_one(samples.chunks[-1], *stored, t, self.store.lambda_):
            self.catch_up()
        return True

    def value(self, x: SparseVector) -> float | None:
        """As :meth:`predict`, of one target, by one compiled call; None if something has to be done before."""
        samples, (_, streams) = self.store.samples, self._made
        if len(streams) != 1 or not streams[0].system.n_samples == samples.n_samples < self.next_refresh:
            return None
        return streams[0].value_of(x, self.store.index)

    def catch_up(self) -> None:
        """Follow what is in the store, if an append was interrupted, and refresh if it is time."""
        samples = self.store.samples
        refreshed, streams = self._made
        if (streams[-1].system.n_samples if streams else refreshed) == samples.n_samples < self.next_refresh:
            return
        for target, projected in enumerate(streams):
            projected.follow(samples, self.store.lambda_, target)
        if samples.n_samples >= self.next_refresh:
            operator = self.operator(samples)
            chosen = self._chosen
            if self.dimension is None and samples.n_samples >= self._grown(chosen[0], 1.0):
                chosen = samples.n_samples, choose_dimensions(operator)
            made = samples.n_samples, self._refresh(samples, operator, self._dimensions(chosen[1]))
            self.__dict__.update(_made=made, _chosen=chosen)

    def _dimensions(self, choices: tuple[DimensionChoice, ...]) -> list[int]:
        if self.dimension is None:
            return [choice.dimension for choice in choices]
        return [self.dimension] * self.store.n_targets

    def _follow_with_values(self, part: Batch, values: FloatArray) -> None:
        ended = np.flatnonzero(part.discounts == 0.0)
        rows = self._next_rows(part, ended)
        for target, projected in enumerate(self._made[1]):
            out = np.empty(len(part))
            ends = projected.coordinates_of(*rows)
            projected.follow(self.store.samples, self.store.lambda_, target, values=out, ends=ends)
            values[:, target] = out

    def _next_rows(self, batch: Batch, which: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """x_next of some samples as CSR arrays with positions of features."""
        _, _, x_next, next_rows = batch.sparse()
        ptr, ids, vals = packed(x_next, next_rows[which])
        return ptr, self.store.find(ids), vals

    def _refresh(
        self, samples: Samples, operator: SampleOperator, dimensions: list[int]
    ) -> tuple[ProjectedStream, ...]:
        beta, lambda_ = self.store.beta, self.store.lambda_
        total, weight, growth = float(samples.n_samples), 1.0, 1.0
        if beta is not None:
            total, weight, growth = 1.0, beta / (1.0 - beta), 1.0 / (1.0 - beta)
        arnoldi = operator.arnoldi()
        arnoldi.extend(max(dimensions))
        made = []
        with one_thread():
            for path, dimension in zip(arnoldi.paths, dimensions, strict=True):
                Q, Y, R, c = path.projection(dimension)
                table = np.ascontiguousarray(Q.T)
                trace = projected_trace(samples, lambda_, table)
                system = SmallSystem.begun(total * R, total * c, trace, samples.n_samples, weight)
                made.append(ProjectedStream(table, Y, system, growth=growth))
        return tuple(made)

    # --- reading ----------------------------------------------------------------------------------------------------

    def weights(self) -> FloatArray:
        """(n, n_targets)."""
        self.catch_up()
        weights = np.zeros((self.store.samples.n, self.store.n_targets))
        for target, projected in enumerate(self._made[1]):
            weights[: projected.n, target] = projected.weights()
        return weights

    def predict(self, ids: IntArray, vals: FloatArray) -> FloatArray:
        """Value of one vector, (n_targets,): O(nnz·m)."""
        self.catch_up()
        values = np.zeros(self.store.n_targets)
        positions = self.store.find(ids)
        for target, projected in enumerate(self._made[1]):
            values[target] = projected.value(positions, vals)
        return values

    # --- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What :meth:`restore` takes."""
        self.catch_up()
        refreshed, streams = self._made
        chosen_at, choices = self._chosen
        dimensions = np.array([[choice.dimension, choice.decided] for choice in choices], dtype=np.int64).reshape(-1, 2)
        chosen = {"chosen_at": chosen_at, "chosen": dimensions}
        return {
            "refreshed": refreshed,
            **chosen,
            **{f"target_{i}": projected.state() for i, projected in enumerate(streams)},
        }

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it fits the store, which has been restored; only of fresh objects."""
        samples, beta = self.store.samples, self.store.beta
        refreshed = saved.integer("refreshed", low=min(1, samples.n_samples), high=samples.n_samples)
        self._made = refreshed, ()
        late = samples.n_samples >= self.next_refresh
        if late or (refreshed < samples.n_left and samples.old is None):
            raise saved.error("refreshed", f"is {refreshed} with {samples.n_samples} samples, later than it should be")
        chosen_at = saved.integer("chosen_at", high=refreshed)
        numbers = saved.integers("chosen", self.store.n_targets if chosen_at else 0, 2, low=0, high=2**31)
        if (chosen_at > 0) != (self.dimension is None and refreshed > 0) or (numbers[:, 0] < 1).any():
            raise saved.error("chosen", "does not fit the samples or has a dimension of 0")
        self._chosen = chosen_at, tuple(_remembered(*row) for row in numbers.tolist())
        if refreshed:
            growth = 1.0 if beta is None else 1.0 / (1.0 - beta)
            parts = (saved.part(f"target_{i}") for i in range(self.store.n_targets))
            streams = (
                ProjectedStream.restored(part, samples.n, samples.n_samples, growth, is_dense=samples.is_dense is True)
                for part in parts
            )
            self._made = refreshed, tuple(streams)


def _remembered(dimension: int, decided: int) -> DimensionChoice:
    """A choice of before the model was saved: its scores are not kept."""
    return DimensionChoice(dimension, bool(decided), np.zeros(0), np.zeros(0), "Chosen before the model was saved.")
