"""Families of features, and the choice among them by how well held-out episodes are predicted.

``features="auto"`` fits values with each family to a sample of the log's episodes, drops those that are clearly behind,
and compares the others on more episodes. All families predict the same targets. λ is the same for all, and a fold's
dimension is chosen by the other folds; both are chosen anew once the family is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidInputError
from tlstd.evaluation import selection as select
from tlstd.evaluation.selection import FEWEST_GROUPS, Errors, thinned_steps
from tlstd.evaluation.steps import Rows, Steps, columns, hashes
from tlstd.evaluation.systems import MOST_DENSE, StateSystem
from tlstd.features.auto_tiles import AutoTiles
from tlstd.features.base import FeatureMap
from tlstd.features.columns import Columns
from tlstd.features.combine import Concatenate
from tlstd.features.leaves import Leaves
from tlstd.features.polynomial import Polynomial
from tlstd.features.random_fourier import RandomFourier

if TYPE_CHECKING:
    from tlstd.evaluation.fits import Actions, Pairs

Name: TypeAlias = Literal["auto", "tiles", "columns", "mixed", "linear", "quadratic", "smooth", "leaves"]
"""What ``features`` may be: "auto" chooses, the others are families."""

WIDTHS = (0.5, 1.0, 2.0)
"""Of random Fourier features, in median distances of two observations."""
WAVES = 300
"""Random Fourier features."""
MOST_COLUMNS = 64
"""Columns up to which there are products of every two."""
MOST_NUMBERS = 15_000_000
"""Dense features times states up to which a family takes part: 120 MB, and about four times that while it is fitted."""
NO_LEAVES = "there are too few episodes for leaves of trees, grown on one half for the other: use other features"
ROUNDS = (3_000, 12_000)
"""Steps on which families are compared, about."""
KEPT = 2
"""Families that are compared again, at most."""
MUCH = 4
"""So many times the steps of the sample, and the richest family is taken if it is not clearly behind."""
BEHIND = 2.0
"""Standard errors of the difference to the best family from which one is clearly behind."""
LAMBDA, WITH_RATIOS = 0.8, 0.5
"""λ of the comparison, on-policy and with importance ratios."""


class Family(NamedTuple):
    """A family of features."""

    name: str
    """For programs; ``features=`` takes it."""
    label: str
    """For people."""
    features: FeatureMap
    by_half: bool = False
    """Whether these are two maps side by side, of which each was made from the rewards of one half of the episodes."""

    def rows(self, steps: Steps) -> Rows:
        """The features of the states of steps; by halves, those that the rewards of their episode have no part in."""
        states = columns(steps.states)
        if not self.by_half:
            return Rows.of(self.features, states)
        assert isinstance(self.features, Concatenate)
        return Rows.of(_OfOtherHalf(self.features), np.column_stack([states, halves(steps)]))


class Offer(NamedTuple):
    """Families of which one is chosen, the first one if nothing can be held out."""

    families: tuple[Family, ...]
    leaves: bool = False
    """Whether leaves of trees are asked for: they are grown on what the best of these families expects."""

    @classmethod
    def given(cls, features: FeatureMap) -> Offer:
        """No choice."""
        return cls((Family("given", "the features given", features),))

    @property
    def cells(self) -> FeatureMap:
        """By which it is told what a log has: tiles, if there is a choice."""
        return self.families[0].features


class Tried(NamedTuple):
    """What was found of a family."""

    family: Family
    error: float
    """Mean squared held-out error, in units of ``unit``²."""
    behind: float
    """Over the error of the best family, and the standard error of that difference."""
    unsure: float
    unit: float
    n_steps: int
    """Of the sample on which it was found."""

    @property
    def level(self) -> bool:
        """Whether it is not clearly behind."""
        return self.behind <= BEHIND * self.unsure

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        numbers = {"error": self.error, "behind": self.behind, "unsure": self.unsure}
        own = {"name": self.family.name, "label": self.family.label, "features": self.family.features.n_features}
        in_units = {name: number * self.unit**2 for name, number in numbers.items()}
        return own | {"steps": self.n_steps} | {n: x if np.isfinite(x) else None for n, x in in_units.items()}


@dataclass(frozen=True, eq=False)
class Choice:
    """The features of a model, with what they were chosen by."""

    family: Family
    tried: tuple[Tried, ...] = ()
    """Families that were compared, best first; empty if there was no choice."""

    @property
    def features(self) -> FeatureMap:
        """The map."""
        return self.family.features

    @property
    def runner_up(self) -> Tried | None:
        """The best of the other families."""
        return next((each for each in self.tried[1:] if each.family.name != self.family.name), None)

    @property
    def note(self) -> str:
        """In a sentence; empty if there was no choice."""
        if len(self.tried) < 2:
            return ""
        best, other = self.tried[0], self.runner_up
        said = f"Of {len(self.tried)} kinds of features, {best.family.label} have the least held-out error"
        if best.behind > 0.0:
            sample = f"not clearly behind on a sample of {best.n_steps:,} steps"
            return f"Of {len(self.tried)} kinds of features, {best.family.label} are taken, the richest {sample}."
        if other is None:
            return f"{said}."
        least = max(other.error - other.behind, 0.0)  # of the best one where both were compared, in the same unit
        if not other.behind < 10.0 * least and other.behind > 0.0:
            return f"{said}; {other.family.label} have more than ten times as much."
        more, unsure = (100.0 * number / max(least, 1e-300) for number in (other.behind, 2.0 * other.unsure))
        return f"{said}; {other.family.label} have {more:.2g}% ± {unsure:.2g}% more."


def families(name: Name, states: FloatArray, n: int) -> Offer:
    """The families that a name stands for, fitted to states (M, D) of a log of n steps."""
    D = states.shape[1]
    found: list[Family] = []
    choice = name in ("auto", "leaves")

    def add(own: str, label: str, make: Callable[[], FeatureMap], width: int, *, takes_part: bool = True) -> None:
        if name == own or (choice and takes_part and n * width <= MOST_NUMBERS):
            found.append(Family(own, label, make()))

    products = D <= MOST_COLUMNS
    degree, width = (2, D * (D + 3) // 2) if products else (1, D)
    add("tiles", "tiles", lambda: AutoTiles.fit(states, n=n), 0)
    add("columns", "columns", lambda: Columns(D), D, takes_part=False)
    add("linear", "linear features", lambda: Polynomial.fit(states, degree=1), D, takes_part=not products)
    add("quadratic", "quadratic features", lambda: Polynomial.fit(states), width, takes_part=products)
    if found and found[0].name == "tiles" and choice:
        found.append(mixed(found[0].features, states, n))
    elif name == "mixed":
        found.append(mixed(AutoTiles.fit(states, n=n), states, n))
    for each in WIDTHS:
        add("smooth", f"smooth features of width {each:g}", partial(smooth, states, degree, each), WAVES + width)
    return Offer(tuple(found), name == "leaves")


def smooth(states: FloatArray, degree: int, width: float) -> FeatureMap:
    """Random Fourier features beside columns and their products."""
    return Concatenate([Polynomial.fit(states, degree=degree, bias=False), RandomFourier.fit(states, width=width)])


def mixed(tiles: FeatureMap, states: FloatArray, n: int, blocks: int = 1) -> Family:
    """Tiles beside columns and their products of the same size, in so many blocks of weights."""
    D = states.shape[1]
    most = min(MOST_NUMBERS // max(1, n), MOST_DENSE // blocks if blocks > 1 else MOST_NUMBERS)
    degree = 2 if D <= MOST_COLUMNS and most >= D * (D + 3) // 2 else 1
    size = float(np.sqrt(getattr(tiles, "n_active", 1)))
    both = Concatenate([tiles, Polynomial.fit(states, degree=degree, bias=False, size=size)])
    return Family("mixed", f"tiles beside {'quadratic' if degree == 2 else 'linear'} features", both)


def for_actions(offer: Offer, states: FloatArray, n: int, n_actions: int) -> Offer:
    """Where there is a choice: tiles beside quadratic features, for action values.

    An answer stands on these, with an interval. So what they cannot represent matters more than the noise that they
    add, and held-out errors see the noise first.
    """
    if len({each.name for each in offer.families}) < 2:
        return offer
    return Offer((mixed(offer.cells, states, n, n_actions),), offer.leaves)


# --- leaves ---------------------------------------------------------------------------------------------------------


class _OfOtherHalf:
    """Of two maps side by side the one that was made from the other half, twice: so states have the mean of both.

    States have one more column: the half of their episode, 0 or 1.
    """

    def __init__(self, both: Concatenate) -> None:
        self.maps = [each for each, _ in both.maps]
        self.n_features = both.n_features

    def encode(self, state: FloatArray) -> SparseVector:
        """Features of one state (D + 1,)."""
        row = self.encode_many(state[None])
        return SparseVector(row.indices, row.data, self.n_features)

    def encode_many(self, states: FloatArray) -> sp.csr_array:
        """Features of states (N, D + 1)."""
        first, second = (each.encode_many(states[:, :-1]) for each in self.maps)
        half = states[:, -1]
        parts = [sp.diags_array(2.0 * half) @ first, sp.diags_array(2.0 * (1.0 - half)) @ second]
        both = sp.csr_array(sp.hstack(parts, format="csr"))
        both.eliminate_zeros()
        return both


def halves(steps: Steps) -> IntArray:
    """(M,): the half of the episode of each state, by a hash of its name; of blocks of long episodes, by their fold.

    So a state has the same half in every sample of the steps.
    """
    log = steps.log
    names = hashes(log.ids, "half")
    if log.clusters is not None:
        assert log.cluster_names is not None
        names = hashes([str(name) for name in log.cluster_names], "half")[log.clusters]
    of_episode = (names % np.uint64(2)).astype(np.int64)
    half = np.zeros(len(steps.states), dtype=np.int64)
    if steps.row_of.size <= half.size:
        half[steps.row_of] = np.repeat(of_episode, np.diff(log.episodes))
    own = steps.fold % 2 if steps.n_blocks else of_episode[steps.episode]
    half[steps.after] = own
    half[steps.here] = own  # a block's first state, which the block before ends with, has the half of its own rewards
    return half


def leaves(steps: Steps, targets: FloatArray) -> Family | None:
    """Leaves of trees grown on targets (N,), by halves of the episodes; None if there are too few of these."""
    states, half = columns(steps.states)[steps.here], halves(steps)[steps.here]
    if min(np.unique(steps.group[half == k]).size for k in (0, 1)) < FEWEST_GROUPS:
        return None
    maps = [Leaves.fit(states[half == k], targets[half == k]) for k in (0, 1)]
    return Family("leaves", "leaves of trees", Concatenate(maps), by_half=True)


# --- the choice -----------------------------------------------------------------------------------------------------


Compared: TypeAlias = list[tuple[Family, Errors]]


def chosen(
    offer: Offer, steps: Steps, errors_of: Callable[[Sequence[Family], Steps, IntArray, IntArray], Compared]
) -> Choice:
    """The family of least held-out error; the first one where nothing can be held out.

    ``errors_of`` gives the held-out errors of some families on some of the steps, of none if there are none. It is told
    these, their places among all steps, and the places of their states.
    """
    left = list(offer.families)
    tried: list[Tried] = []
    for most in ROUNDS:
        if len(left) < 2 and not (offer.leaves and not tried):
            break
        sample, kept, used = thinned_steps(steps, most)
        found = errors_of(left, sample, kept, used)
        if not found:
            break
        best = min((errors for _, errors in found), key=lambda errors: errors.mean)
        now = [Tried(own, errors.mean, *errors.over(best), errors.unit, len(sample)) for own, errors in found]
        known = {each.family.label for each in now}
        now.sort(key=lambda each: each.error)
        tried = now + [each for each in tried if each.family.label not in known]
        level: dict[str, Family] = {}  # the best of each name
        for each in now:
            if each.level:
                level.setdefault(each.family.name, each.family)
        left = list(level.values())[:KEPT]
        if sample is steps:
            break
    if tried and len(steps) > MUCH * tried[0].n_steps:  # what adds noise to the sample adds less to all
        tried.sort(key=lambda each: not (each.family.name == "mixed" and each.level))
    if offer.leaves:
        tried = [each for each in tried if each.family.by_half]
        if not tried:
            raise InvalidInputError(NO_LEAVES)
    return Choice(tried[0].family if tried else offer.families[0], tuple(tried))


def of_states(offer: Offer, steps: Steps, rhos: FloatArray | None) -> Choice:
    """The family for values of states, by returns of held-out episodes; ``rhos`` (N,) are importance ratios."""
    lambda_ = 0.0 if steps.gamma == 0.0 else LAMBDA if rhos is None else WITH_RATIOS

    def errors(some: Sequence[Family], sample: Steps, kept: IntArray, used: IntArray) -> Compared:
        ratios = None if rhos is None else rhos[kept]
        some = [each for each in some if not each.by_half]
        systems = [StateSystem(sample, each.rows(sample), ratios) for each in some]
        targets = select.common_targets(systems, lambda_)
        if targets is None:
            return []
        found = [select.by_returns(system, lambda_, targets) for system in systems]
        if offer.leaves:
            best = int(np.argmin([each.errors.mean for each in found]))
            own = leaves(sample, select.expected_returns(systems[best], found[best], lambda_))
            if own is not None:
                some = [*some, own]
                found.append(select.by_returns(StateSystem(sample, own.rows(sample), ratios), lambda_, targets))
        return [(own, each.errors) for own, each in zip(some, found, strict=True)]

    return chosen(offer, steps, errors)


def of_actions(offer: Offer, whole: Actions) -> Choice:
    """The family for values of discrete actions, by TD errors of held-out episodes."""

    def errors(some: Sequence[Family], sample: Steps, kept: IntArray, used: IntArray) -> Compared:
        if not select.can_hold_out(sample):
            return []
        part = whole.part(sample, kept, used)
        some = [each for each in some if not each.by_half]
        found = [select.held_out_values(part.system(each.rows(sample))) for each in some]
        errors = select.errors_of_residuals(sample, found)
        if offer.leaves:
            best = int(np.argmin([each.mean for each in errors]))
            own = leaves(sample, found[best].targets)
            if own is not None:
                some = [*some, own]
                found.append(select.held_out_values(part.system(own.rows(sample))))
                errors = select.errors_of_residuals(sample, found)
        return list(zip(some, errors, strict=True))

    return chosen(offer, whole.steps, errors)


def of_pairs(offer: Offer, whole: Pairs) -> Choice:
    """The same for continuous actions, by features of state and action side by side."""
    if offer.leaves:
        raise InvalidInputError("leaves of trees are for values of states and of discrete actions: use other features")

    def errors(some: Sequence[Family], sample: Steps, kept: IntArray, used: IntArray) -> Compared:
        if not select.can_hold_out(sample):
            return []
        part = whole.part(sample, kept, used)
        found = [select.held_out_values(part.system(each.features)) for each in some]
        return list(zip(some, select.errors_of_residuals(sample, found), strict=True))

    return chosen(offer, whole.steps, errors)
