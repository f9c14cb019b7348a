"""A file of a log as a part of the systems of least squares, kept where it was read."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.cluster.log_shard import LogShard
from tlstd.cluster.spill import Mapped
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.threads import one_thread
from tlstd.evaluation import fits
from tlstd.evaluation.policies import Target, as_target, of_logged_actions
from tlstd.evaluation.silence import Gaps, Support, is_table, supported, supports_of
from tlstd.evaluation.steps import Rows, Steps, columns, steps_of
from tlstd.evaluation.systems import ActionSystem, PairSystem, RowsSystem, StateSystem, System
from tlstd.features.base import FeatureMap


class Places(NamedTuple):
    """What the others have to know of the steps of a part: with rows counted from its own first one."""

    row_of: IntArray
    kept: IntArray
    here: IntArray
    after: IntArray
    rewards: FloatArray
    discounts: FloatArray
    states: NDArray[Any] | None
    """Of discrete observations."""
    n_rows: int


@dataclass(frozen=True, eq=False)
class Part:
    """The steps of a file with systems by name, each of them a part of a larger one.

    Traces start anew with the file. Returns do not: what an episode brings is added up by who asks.
    """

    shard: LogShard
    number: int
    """Its place among the parts."""
    target: Target | None = None
    steps: dict[str, Steps] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    maps: dict[str, FeatureMap] = field(default_factory=dict)
    """Features of the rows."""
    chances: FloatArray | None = None
    """π(a|s) of the rows, for discrete actions."""
    systems: dict[str, System] = field(default_factory=dict)
    gaps: Gaps | None = None
    mapped: Mapped | None = None

    def __reduce__(self) -> Any:
        # With its arrays inside: those that a cluster sends beside a pickle may lie at odd addresses when they arrive,
        # and NumPy adds up in another order there.
        # The policy is apart: only the pickles of a cluster can hold a function that has no name.
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("mapped", "target")}
        return _unpickled, (pickle.dumps(own, protocol=4), self.target)

    @property
    def nbytes(self) -> int:
        """Bytes of the features."""
        return sum(_nbytes(block) for rows in self.rows.values() for block in rows.blocks)

    def __sizeof__(self) -> int:
        return self.nbytes + self.shard.__sizeof__()  # so that a scheduler knows what moving it would cost

    def rest(self) -> None:
        """Give memory back that can be had again."""
        self.shard.rest()
        if self.mapped is not None:
            self.mapped.rest()

    def asked_about(self, target: Target) -> Part:
        """With the policy that is asked about."""
        return replace(self, target=target)

    def anew(self) -> Part:
        """For another question about the same steps: only features of states are kept."""
        kept = [name for name in self.rows if name != "joint"]
        return Part(
            self.shard,
            self.number,
            steps={name: self.steps[name] for name in kept},
            rows={name: self.rows[name] for name in kept},
            maps={name: self.maps[name] for name in kept},
            mapped=self.mapped,
        )

    # --- making it --------------------------------------------------------------------------------------------------

    def encoded(self, name: str, features: FeatureMap, gamma: float, target: Target | None) -> Part:
        """The steps, and the features of their states, for a system of some kind."""
        log = self.shard._log
        if name == "joint":
            steps, rows = fits.pair_rows(log, features, gamma)
            made = replace(self, target=target, steps=self.steps | {name: steps}, rows=self.rows | {name: rows})
            return replace(made, maps=self.maps | {name: features})._spilled()
        own = None if target is None else self._target(target)
        steps = steps_of(log, gamma) if name == "states" or own is None else fits.action_steps(log, gamma, own)
        others = (of for of, own in self.maps.items() if of != "joint" and own == features)
        same = (of for of in others if np.array_equal(self.steps[of].states, steps.states))
        known = next((self.rows[of] for of in same), None)
        rows = Rows.of(features, columns(steps.states)) if known is None else known
        made = replace(self, target=own, steps=self.steps | {name: steps}, rows=self.rows | {name: rows})
        made = replace(made, maps=self.maps | {name: features})
        return made._spilled() if known is None else made

    def _target(self, target: Target) -> Target:
        """The policy; where it is in columns of the log, those of this file."""
        return target if target.function is not None else as_target(self.shard._log.policy, self.shard._log)

    def _spilled(self) -> Part:
        """The same with its features in a file, if its :class:`LogFile` says so."""
        folder = self.shard.file.spill
        arrays = [block.indices for rows in self.rows.values() for block in rows.blocks if hasattr(block, "indices")]
        if folder is None or not arrays:
            return self
        mapped = Mapped(folder, arrays)
        moved = iter(mapped.arrays)
        for rows in self.rows.values():
            for block in rows.blocks:
                if hasattr(block, "indices"):
                    block.indices = next(moved)
        return replace(self, mapped=mapped)

    def seen_ids(self, name: str) -> IntArray:
        """Features that occur here."""
        return self.rows[name].ids

    def places(self, name: str) -> Places:
        """The steps, for the others."""
        steps = self.steps[name]
        states = steps.states if self.shard._log.discrete else None
        own = steps.row_of, steps.kept, steps.here, steps.after, steps.rewards, steps.discounts
        return Places(*own, states, len(steps.states))

    def of_states(self, ids: IntArray, group: IntArray, fold: IntArray, with_ratios: bool) -> Part:
        """With the system of state values, over features that all parts have agreed on."""
        steps, rows = self._dealt("states", group, fold), self.rows["states"].over(ids)
        system = StateSystem(steps, rows, self.ratios()[steps.kept] if with_ratios else None)
        return self._with("states", steps, rows, system)

    def ratios(self) -> FloatArray:
        """Importance ratios of the log's steps."""
        log = self.shard._log
        assert self.target is not None and log.probabilities is not None
        own = self._target(self.target)
        n_actions = 0 if log.actions is None or log.actions.ndim > 1 else own.n_actions(log)
        found: FloatArray = of_logged_actions(own, log, n_actions) / log.probabilities
        return found

    def of_pairs(self, ids: IntArray, group: IntArray, fold: IntArray) -> Part:
        """With the rows of state and continuous action side by side; :meth:`supported_pairs` makes their system."""
        steps, rows = self._dealt("joint", group, fold), self.rows["joint"].over(ids)
        return replace(self, steps=self.steps | {"joint": steps}, rows=self.rows | {"joint": rows})

    def pair_support(self) -> Support:
        """What this part has of pairs of state and action."""
        rows = self.rows["joint"]
        return Support.of(rows, np.ones(rows.size), False)

    def supported_pairs(self, features: FeatureMap, support: Support) -> Part:
        """With the system of pairs, of which those count that are like logged ones."""
        steps, rows = self.steps["joint"], self.rows["joint"]
        assert self.target is not None
        return self._with("joint", steps, rows, fits.pair_system(steps, rows, features, self.target, support))

    def beyond(self) -> FloatArray:
        """(rows,): the policy's probability of continuous actions that the log does not have."""
        system = self.systems["joint"]
        assert isinstance(system, PairSystem)
        return system.beyond

    def of_actions(self, ids: IntArray, group: IntArray, fold: IntArray, n_actions: int) -> Part:
        """With the rows of action values; :meth:`supported` makes their system."""
        steps, rows = self._dealt("actions", group, fold), self.rows["actions"].over(ids)
        assert self.target is not None
        chances = fits.chances_of(self._target(self.target), steps, rows.size, n_actions)
        return replace(self, steps=self.steps | {"actions": steps}, rows=self.rows | {"actions": rows}, chances=chances)

    def supports(self) -> list[Support]:
        """What this part has of each action."""
        assert self.chances is not None
        n_actions = self.chances.shape[1]
        return supports_of(self.rows["actions"], self.steps["actions"], self._actions(), n_actions)

    def is_table(self) -> bool:
        """Whether each state has one feature."""
        return is_table(self.rows["actions"])

    def supported(self, supports: Sequence[Support]) -> Part:
        """With the system of action values, in which only actions that the log has count."""
        steps, rows = self.steps["actions"], self.rows["actions"]
        assert self.chances is not None
        kept, gaps = supported(supports, rows, steps, self.chances)
        system = ActionSystem(steps, rows, self._actions(), kept)
        full = ActionSystem(steps, rows, self._actions(), self.chances)
        return replace(self, systems=self.systems | {"actions": system, "full": full}, gaps=gaps)

    def constants(self, name: str) -> FloatArray:
        """Its part of the system (A, b) of the actions' constants, side by side."""
        system = self.systems[name]
        if isinstance(system, ActionSystem):
            A, b = fits.constants(system.steps, system.actions, system.chances)
        else:
            A, b = fits.pair_constants(system.steps, _pairs(system).beyond)
        return np.column_stack([A, b])

    def with_constants(self, name: str, offsets: FloatArray, silent: bool) -> Part:
        """With rewards less these constants."""
        system = self.systems[name]
        if isinstance(system, ActionSystem):
            assert self.chances is not None
            fits.set_rewards(system, offsets, self.chances)
        else:
            fits.set_pair_rewards(_pairs(system), offsets)
        if silent and len(system.rewards) < 2:
            system.rewards.append(np.zeros(len(system.steps)))
        return self

    def _dealt(self, name: str, group: IntArray, fold: IntArray) -> Steps:
        return replace(self.steps[name], group=np.array(group), fold=np.array(fold))

    def _with(self, name: str, steps: Steps, rows: Rows, system: System) -> Part:
        return replace(
            self, steps=self.steps | {name: steps}, rows=self.rows | {name: rows}, systems=self.systems | {name: system}
        )

    def _actions(self) -> IntArray:
        actions = self.shard._log.actions
        assert actions is not None
        return actions[self.steps["actions"].kept].astype(np.int64)

    # --- what it adds to sums, and what it says of its steps ----------------------------------------------------------

    def products(self, name: str, V: FloatArray, folds: list[int], lambdas: list[float]) -> FloatArray:
        """Its part of T A V."""
        with one_thread():
            return self.systems[name].products(np.array(V), folds, lambdas)

    def transposed(self, name: str, H: FloatArray, folds: list[int], lambdas: list[float]) -> FloatArray:
        """Its part of T AᵀH."""
        with one_thread():
            return self.systems[name].transposed(np.array(H), folds, lambdas)

    def sides(self, name: str, folds: list[int], lambdas: list[float], sides: list[int]) -> FloatArray:
        """Its part of T b."""
        with one_thread():
            return self.systems[name].sides(folds, lambdas, sides)

    def traces(self, name: str, H: FloatArray, lambdas: list[float]) -> FloatArray:
        """z_tᵀH of its steps."""
        with one_thread():
            return self.systems[name].traces(np.array(H), lambdas)

    def by_others(self, name: str, W: FloatArray, folds: IntArray) -> FloatArray:
        """Values of its steps, see :meth:`~tlstd.evaluation.systems.System.by_others`."""
        with one_thread():
            return self.systems[name].by_others(np.array(W), folds)

    def values_between(self, name: str, V: FloatArray, first: IntArray, rows: IntArray) -> FloatArray:
        """Values of its rows among ``rows``, counted over all parts, the first of which begin with ``first``."""
        low, high = first[self.number], first[self.number + 1]
        own = rows[(rows >= low) & (rows < high)] - low
        with one_thread():
            return self.systems[name].values(np.array(V), own)

    def values_sum_of(self, name: str, weights: FloatArray, first: IntArray) -> FloatArray:
        """Its part of the weighted sum of values of all rows, as features."""
        own = np.array(weights[first[self.number] : first[self.number + 1]])
        with one_thread():
            return self.systems[name].values_sum(own)[:, None]

    def rewards(self, name: str, side: int) -> FloatArray:
        """Of its steps, for a right-hand side."""
        return self.systems[name].rewards[side]

    def n_sides(self, name: str) -> int:
        """Number of right-hand sides."""
        return len(self.systems[name].rewards)

    def tops(self, name: str, offsets: FloatArray) -> FloatArray:
        """(rows, 2): what constants add to the policy's value, and the probability of unsupported actions."""
        system = self.systems[name]
        assert isinstance(system, ActionSystem) and self.chances is not None
        return np.column_stack([system.chances @ offsets, self.chances.sum(axis=1) - system.chances.sum(axis=1)])

    def full_tops(self, offsets: FloatArray) -> FloatArray:
        """(rows,): what constants add to the policy's value, over all its actions."""
        assert self.chances is not None
        return self.chances @ offsets

    def own_gaps(self) -> Gaps:
        """Actions that the log does not have in the states of this part."""
        assert self.gaps is not None
        return self.gaps

    def moments(self, name: str) -> FloatArray:
        """(n + 2, 1): Σ (1 - x)² over rows, Σ ‖x‖² and the number of rows; of action values no feature is constant."""
        system = self.systems[name]
        n = len(system.steps) if isinstance(system, PairSystem) else system.n_rows
        sums = system.sums if isinstance(system, RowsSystem) else np.full(system.n, float(n))
        return np.concatenate([sums, [system.squares, float(n)]])[:, None]

    def contents(self, name: str) -> str:
        """A hash of what sums are taken of, wherever that is kept."""
        found, steps = hashlib.blake2b(digest_size=16), self.steps[name]
        system = self.systems.get(name)
        arrays: list[Any] = [self.rows[name].ids, steps.here, steps.after, steps.fold, steps.rewards, steps.discounts]
        arrays += [self.chances, self._actions()] if self.chances is not None and name == "actions" else []
        arrays += [] if system is None or system.rhos is None else [system.rhos]
        blocks = list(self.rows[name].blocks)
        if isinstance(system, PairSystem):
            arrays, blocks = [*arrays, system.beyond], [*blocks, *system.behind.blocks]
        for block in blocks:
            arrays += [block.data, block.indices, block.indptr] if hasattr(block, "indices") else [block]
        for array in arrays:
            found.update(f"{array.dtype} {array.shape};".encode())
            found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return found.hexdigest()


def _pairs(system: System) -> PairSystem:
    assert isinstance(system, PairSystem)
    return system


def _nbytes(block: Any) -> int:
    return int(block.indices.nbytes + block.indptr.nbytes) if hasattr(block, "indices") else int(block.nbytes)


def _unpickled(data: bytes, target: Target | None) -> Part:
    return Part(**pickle.loads(data), target=target)._spilled()
