"""Least squares over parts that are somewhere else: vectors over features travel, and numbers of single steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.cluster.checkpoint import Checkpoint
from tlstd.cluster.part import Places
from tlstd.cluster.shard_pool import ShardPool
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation import fits
from tlstd.evaluation import selection as select
from tlstd.evaluation.families import Offer
from tlstd.evaluation.fits import Fit
from tlstd.evaluation.ladder import Case
from tlstd.evaluation.policies import Policy, Target, as_target, of_logged_actions
from tlstd.evaluation.question import offered
from tlstd.evaluation.selection import Selection
from tlstd.evaluation.silence import Gaps, Support, merged
from tlstd.evaluation.steps import Steps, dealt
from tlstd.evaluation.systems import System, constant
from tlstd.features.base import FeatureMap
from tlstd.logs.log import Log

Round = Callable[[], None]


class PooledSystem(System):
    """A system whose steps are parts of a pool, by a name that all of them know.

    Parameters
    ----------
    pool : ShardPool
        Of :class:`~tlstd.cluster.part.Part`.
    name : str
    steps : Steps
        Of all parts.
    ids, n : as in :class:`~tlstd.evaluation.systems.System`
    first : (parts + 1,) integers
        The first row of features of each part.
    rounds : Checkpoint
    tell : function
        Called after each round.
    label : str
        With which the names of rounds begin.
    """

    def __init__(
        self,
        pool: ShardPool,
        name: str,
        steps: Steps,
        ids: IntArray,
        n: int,
        first: IntArray,
        rounds: Checkpoint,
        tell: Round,
        rhos: FloatArray | None = None,
        label: str = "",
    ) -> None:
        super().__init__(steps, ids, n, rhos)
        self.label = label
        self.pool, self.name, self.first, self.rounds, self.tell = pool, name, first, rounds, tell
        self.rewards = [
            np.concatenate(pool.each("rewards", name, side)) for side in range(max(pool.each("n_sides", name)))
        ]
        self._done = 0

    def _total(self, method: str, *arguments: Any) -> FloatArray:
        """A sum over parts, kept if rounds are."""
        self._done += 1
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        words = "-".join(str(each).replace(" ", "") for each in arguments if not isinstance(each, np.ndarray))
        label = f"{self.label}{self.name}-{method}-{self._done:04d}"

        def made(*_: FloatArray) -> FloatArray:
            return self.pool.total(method, self.name, *arguments)

        found = self.rounds.remember(label, made, *arrays, np.frombuffer(words.encode(), np.uint8).astype(np.float64))
        self.tell()
        return found

    def products(
        self, V: FloatArray, folds: Sequence[int], lambdas: Sequence[float], seen: list[FloatArray] | None = None
    ) -> FloatArray:
        """T A V."""
        assert seen is None
        return self._total("products", V, list(folds), list(lambdas))

    def transposed(self, H: FloatArray, folds: Sequence[int], lambdas: Sequence[float]) -> FloatArray:
        """T AᵀH."""
        return self._total("transposed", H, list(folds), list(lambdas))

    def sides(self, folds: Sequence[int], lambdas: Sequence[float], sides: Sequence[int]) -> FloatArray:
        """T b."""
        return self._total("sides", list(folds), list(lambdas), list(sides))

    def traces(self, H: FloatArray, lambdas: Sequence[float]) -> FloatArray:
        """z_tᵀH."""
        return np.concatenate(self.pool.each("traces", self.name, H, list(lambdas)))

    def by_others(self, W: FloatArray, folds: IntArray) -> FloatArray:
        """Values of all steps."""
        return np.concatenate(self.pool.each("by_others", self.name, W, folds))

    def values(self, V: FloatArray, rows: IntArray) -> FloatArray:
        """Values of rows of features, which are counted over all parts."""
        order = np.argsort(rows, kind="stable")
        found = np.empty((rows.size, V.shape[1]))
        sorted_rows = rows[order]
        pieces = []
        cuts = np.searchsorted(sorted_rows, self.first)
        for i, part in enumerate(self._each_row(V, sorted_rows)):
            assert len(part) == cuts[i + 1] - cuts[i]
            pieces.append(part)
        found[order] = np.concatenate(pieces)
        return found

    def _each_row(self, V: FloatArray, rows: IntArray) -> list[FloatArray]:
        found: list[FloatArray] = self.pool.each("values_between", self.name, V, self.first, rows)
        return found

    def values_sum(self, weights: FloatArray) -> FloatArray:
        """Weighted sum of values, as features."""
        return self.pool.total("values_sum_of", self.name, weights, self.first)[:, 0]

    @property
    def n_rows(self) -> int:
        """Rows of features of states."""
        return int(self.first[-1])

    @cached_property
    def _moments(self) -> FloatArray:
        found: FloatArray = self.pool.total("moments", self.name)[:, 0]
        return found

    @cached_property
    def squares(self) -> float:
        """Σ ‖x‖²."""
        return float(self._moments[-2])

    @cached_property
    def constant(self) -> FloatArray:
        """Features that are 1 in all rows."""
        return constant(self._moments[:-2], int(self._moments[-1]))


class PooledFits:
    """What :class:`~tlstd.evaluation.ladder.Case` learns by, where the log is in parts.

    Features, λ and dimensions are chosen on a sample of whole episodes, which is in this process; weights, values and
    influences are of all parts.
    """

    def __init__(
        self, pool: ShardPool, sample: Log, n_steps: int, rounds: Checkpoint, tell: Round, label: str = ""
    ) -> None:
        self.pool, self.sample, self.n_steps, self.rounds, self.tell = pool, sample, n_steps, rounds, tell
        self.label = label

    def cells(self, case: Case, joint: bool) -> FeatureMap:
        """The first family of features, by which action values are learned, too."""
        return self._offered(case, joint).cells

    def _offered(self, case: Case, joint: bool = False) -> Offer:
        """The families of features."""
        offer = offered(case.question, self.sample, joint=joint, n=self.n_steps)
        if offer.leaves:
            raise InvalidInputError("leaves of trees need one process, which holds the whole log: use other features")
        return offer

    def ratios(self, case: Case, target: Target) -> FloatArray:
        """(len(log),): importance ratios."""
        sent = self._sent(case, target)
        self.pool.change("asked_about", [(sent,)] * len(self.pool))
        return np.concatenate(self.pool.each("ratios"))

    def states(self, case: Case, rhos: FloatArray | None) -> Fit:
        """Values of states."""
        target, own = case.target, None
        if rhos is not None:
            assert target is not None
            own = _ratios_of(self._sent(case, target), self.sample)
        of_sample = fits.fit_states(self.sample, self._offered(case), case.gamma, own)
        features, chosen = of_sample.features, of_sample.selection
        steps, ids, first = self._encoded(
            case, "states", features, None if target is None else self._sent(case, target)
        )
        self._change("of_states", "states", steps, ids, rhos is not None)
        ratios = None if rhos is None else rhos[steps.kept]
        system = self._system("states", steps, ids, ids.size, first, ratios)
        return replace(fits.of_states(system, features, _apart(chosen, steps)), choice=of_sample.choice)

    def actions(self, case: Case, target: Target) -> Fit:
        """Action values of discrete actions."""
        features, pool = self.cells(case, False), self.pool
        sent, n_actions = self._sent(case, target), self._n_actions(case, target)
        chosen = fits.fit_actions(self.sample, features, case.gamma, _own(sent, self.sample)).selection
        steps, ids, first = self._encoded(case, "actions", features, sent)
        chosen = _apart(chosen, steps)
        self._change("of_actions", "actions", steps, ids, n_actions)
        table = all(pool.each("is_table"))
        supports = [merged(each, table) for each in zip(*pool.each("supports"), strict=True)]
        pool.change("supported", [(supports,)] * len(pool))
        sums = pool.total("constants", "actions")
        offsets = fits.solved_constants(sums[:, :-1], sums[:, -1])
        gaps = _together(pool.each("own_gaps"), first)
        pool.change("with_constants", [("actions", offsets, bool(gaps.rows.size))] * len(pool))
        n = n_actions * ids.size
        system, full = (self._system(name, steps, ids, n, first) for name in ("actions", "full"))
        folds, weights = select.weights(system, chosen)
        every = [weights, *(select.weights(system, chosen, side)[1] for side in range(1, len(system.rewards)))]
        tops = np.concatenate(pool.each("tops", "actions", offsets))
        full_tops = np.concatenate(pool.each("full_tops", offsets))
        beyond = tops[:, 1] if len(every) > 1 else np.zeros(len(tops))
        return Fit(
            "actions", system, features, chosen, folds, every, target, offsets, tops[:, 0], beyond, gaps,
            table, tuple(supports), full, full_tops,
        )  # fmt: skip

    def pairs(self, case: Case, target: Target) -> Fit:
        """Action values of continuous actions."""
        features, pool = self.cells(case, True), self.pool
        chosen = fits.fit_pairs(self.sample, features, case.gamma, target).selection
        steps, ids, first = self._encoded(case, "joint", features, Target(function=target.function))
        self._change("of_pairs", "joint", steps, ids)
        support = merged(pool.each("pair_support"), False)
        pool.change("supported_pairs", [(features, support)] * len(pool))
        self.rounds.add({f"contents of the files, {self.label}pairs of the policy": pool.each("contents", "joint")})
        beyond = np.concatenate(pool.each("beyond"))
        sums = pool.total("constants", "joint")
        offsets = fits.solved_constants(sums[:, :-1], sums[:, -1])
        pool.change("with_constants", [("joint", offsets, bool(beyond.any()))] * len(pool))
        system = self._system("joint", steps, ids, ids.size, first)
        return fits.of_pairs(system, features, _apart(chosen, steps), target, offsets, beyond, support)

    # --- parts ------------------------------------------------------------------------------------------------------

    def _encoded(self, case: Case, name: str, features: Any, target: Target | None) -> tuple[Steps, IntArray, IntArray]:
        """The steps of all parts, the features that occur, and the first row of each part."""
        pool = self.pool
        pool.change("encoded", [(name, features, case.gamma, target)] * len(pool))
        places: list[Places] = pool.each("places", name)
        if not sum(each.rewards.size for each in places):
            raise InvalidInputError("the log has no step whose next observation is known: nothing can be learned")
        first = np.concatenate([[0], np.cumsum([each.n_rows for each in places])])
        return joined(places, case.log, case.gamma, first), pool.union("seen_ids", name), first

    def _change(self, method: str, name: str, steps: Steps, ids: IntArray, *others: Any) -> None:
        sizes = [len(each.rewards) for each in self.pool.each("places", name)]
        cuts = np.concatenate([[0], np.cumsum(sizes)])
        self.pool.change(
            method,
            [(ids, steps.group[a:b], steps.fold[a:b], *others) for a, b in pairwise(cuts.tolist())],
        )
        self.rounds.add({f"contents of the files, {self.label}{name}": self.pool.each("contents", name)})

    def _system(
        self, name: str, steps: Steps, ids: IntArray, n: int, first: IntArray, rhos: FloatArray | None = None
    ) -> PooledSystem:
        return PooledSystem(self.pool, name, steps, ids, n, first, self.rounds, self.tell, rhos, self.label)

    def _n_actions(self, case: Case, target: Target) -> int:
        """Of the policy and of all files."""
        assert case.log.actions is not None
        return max(target.n_actions(self.sample), int(case.log.actions.max(initial=0)) + 1)

    def _sent(self, case: Case, target: Target) -> Target:
        """The policy as parts get it: probabilities of all actions, or nothing for columns of their own file."""
        if target.function is None or case.continuous:
            return Target(function=target.function)
        return Target(function=AllProbabilities(target.function, self._n_actions(case, target)))


def joined(places: Sequence[Places], log: Log, gamma: float, first: IntArray) -> Steps:
    """The steps of all parts as one, dealt into groups and folds; rows of features are counted over all parts."""
    lengths = [each.row_of.size for each in places]
    begin = np.concatenate([[0], np.cumsum(lengths)])[:-1]

    def over(name: str, offsets: IntArray) -> IntArray:
        return np.concatenate([getattr(each, name) + at for each, at in zip(places, offsets.tolist(), strict=True)])

    kept, discounts = over("kept", begin), np.concatenate([each.discounts for each in places])
    episode = np.searchsorted(log.episodes, kept, side="right") - 1
    group, fold, n_blocks = dealt(episode, discounts, log)
    states = np.zeros((int(first[-1]), 0))
    if log.discrete:
        states = np.concatenate([each.states for each in places if each.states is not None])
    return Steps(
        log=log,
        gamma=gamma,
        kept=kept,
        states=states,
        row_of=over("row_of", first[:-1]),
        here=over("here", first[:-1]),
        after=over("after", first[:-1]),
        rewards=np.concatenate([each.rewards for each in places]),
        discounts=discounts,
        episode=episode,
        group=group,
        fold=fold,
        n_groups=int(group[-1]) + 1,
        n_blocks=n_blocks,
    )


class AllProbabilities:
    """A policy as probabilities of all actions, also where a file does not have all of them.

    Example
    -------
    >>> AllProbabilities(lambda states: np.ones(len(states), dtype=int), 3)(np.zeros((2, 1)))
    array([[0., 1., 0.],
           [0., 1., 0.]])
    """

    def __init__(self, function: Policy, n_actions: int) -> None:
        self.function, self.n_actions = function, n_actions

    def __call__(self, observations: NDArray[Any]) -> FloatArray:
        """(M, n_actions)."""
        return Target(function=self.function).probabilities(observations, self.n_actions)


def _apart(chosen: Selection, steps: Steps) -> Selection:
    """Settings without the paths of the sample; folds that the sample does not have get those of all episodes."""
    of_fold = {fold: chosen.of_fold.get(fold, chosen.whole) for fold in steps.folds.tolist()}
    return replace(chosen, of_fold=of_fold, paths={})


def _own(target: Target, sample: Log) -> Target:
    return target if target.function is not None else as_target(sample.policy, sample)


def _ratios_of(target: Target, sample: Log) -> FloatArray:
    own = _own(target, sample)
    assert sample.probabilities is not None and sample.actions is not None
    found = of_logged_actions(own, sample, 0 if sample.actions.ndim > 1 else own.n_actions(sample))
    ratios: FloatArray = found / sample.probabilities
    return ratios


def _together(gaps: Sequence[Gaps], first: IntArray) -> Gaps:
    """Gaps of all parts, with rows counted over all of them."""
    rows = np.concatenate([each.rows + at for each, at in zip(gaps, first[:-1].tolist(), strict=True)])
    return Gaps(rows, np.concatenate([each.actions for each in gaps]), np.concatenate([each.weights for each in gaps]))


__all__ = ["PooledFits", "PooledSystem", "Support", "joined"]
