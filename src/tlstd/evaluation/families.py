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

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation import selection as select
from tlstd.evaluation.selection import Errors, thinned_steps
from tlstd.evaluation.steps import Rows, Steps, columns
from tlstd.evaluation.systems import StateSystem
from tlstd.features.auto_tiles import AutoTiles
from tlstd.features.base import FeatureMap
from tlstd.features.columns import Columns
from tlstd.features.combine import Concatenate
from tlstd.features.polynomial import Polynomial
from tlstd.features.random_fourier import RandomFourier

if TYPE_CHECKING:
    from tlstd.evaluation.fits import Actions, Pairs

Name: TypeAlias = Literal["auto", "tiles", "columns", "linear", "quadratic", "smooth"]
"""What ``features`` may be: "auto" chooses, the others are families."""

WIDTHS = (0.5, 1.0, 2.0)
"""Of random Fourier features, in median distances of two observations."""
WAVES = 300
"""Random Fourier features."""
MOST_COLUMNS = 64
"""Columns up to which there are products of every two."""
MOST_NUMBERS = 50_000_000
"""Dense features times states up to which a family takes part: 400 MB."""
ROUNDS = (3_000, 12_000)
"""Steps on which families are compared, about."""
KEPT = 3
"""Families that are compared again, at most."""
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
        if other is None:
            return f"{said}."
        more, unsure = (100.0 * number / max(best.error, 1e-300) for number in (other.behind, 2.0 * other.unsure))
        return f"{said}; {other.family.label} have {more:.2g}% ± {unsure:.2g}% more."


def families(name: Name, states: FloatArray, n: int) -> list[Family]:
    """The families that a name stands for, fitted to states (M, D) of a log of n steps; one, unless it is "auto"."""
    D, found = states.shape[1], []

    def add(own: str, label: str, make: Callable[[], FeatureMap], width: int) -> None:
        if name == own or (name == "auto" and own != "columns" and n * width <= MOST_NUMBERS):
            found.append(Family(own, label, make()))

    add("tiles", "tiles", lambda: AutoTiles.fit(states, n=n), 0)
    add("columns", "columns", lambda: Columns(D), D)
    products = D <= MOST_COLUMNS
    degree = 2 if products else 1
    if name == "linear" or not products:
        add("linear", "linear features", lambda: Polynomial.fit(states, degree=1), D)
    if name == "quadratic" or products:
        add("quadratic", "quadratic features", lambda: Polynomial.fit(states), D * (D + 3) // 2)
    size = WAVES + D * (D + 3) // 2 if products else WAVES + D
    for width in WIDTHS:
        add("smooth", f"smooth features of width {width:g}", partial(smooth, states, degree, width), size)
    return found


def smooth(states: FloatArray, degree: int, width: float) -> FeatureMap:
    """Random Fourier features beside columns and their products."""
    return Concatenate([Polynomial.fit(states, degree=degree, bias=False), RandomFourier.fit(states, width=width)])


def chosen(
    offered: Sequence[Family],
    steps: Steps,
    errors_of: Callable[[Sequence[Family], Steps, IntArray, IntArray], list[Errors] | None],
) -> Choice:
    """The family of least held-out error; the first one where nothing can be held out.

    ``errors_of`` gives the held-out errors of some families on some of the steps. It is told these, their places among
    all steps, and the places of their states.
    """
    left = list(offered)
    tried: list[Tried] = []
    for most in ROUNDS:
        if len(left) < 2:
            break
        sample, kept, used = thinned_steps(steps, most)
        found = errors_of(left, sample, kept, used)
        if found is None:
            break
        means = [each.mean for each in found]
        best = int(np.argmin(means))
        now = [
            Tried(family, each.mean, *each.over(found[best]), each.unit, len(sample))
            for family, each in zip(left, found, strict=True)
        ]
        known = {each.family.label for each in now}
        tried = sorted(now, key=lambda each: each.error) + [each for each in tried if each.family.label not in known]
        left = [each.family for each in tried[: len(now)] if each.level][:KEPT]
        if sample is steps:
            break
    return Choice(tried[0].family if tried else offered[0], tuple(tried))


def of_states(offered: Sequence[Family], steps: Steps, rhos: FloatArray | None) -> Choice:
    """The family for values of states, by returns of held-out episodes; ``rhos`` (N,) are importance ratios."""
    lambda_ = 0.0 if steps.gamma == 0.0 else LAMBDA if rhos is None else WITH_RATIOS

    def errors(some: Sequence[Family], sample: Steps, kept: IntArray, used: IntArray) -> list[Errors] | None:
        ratios = None if rhos is None else rhos[kept]
        states = columns(sample.states)
        systems = [StateSystem(sample, Rows.of(family.features, states), ratios) for family in some]
        return select.errors_of_returns(systems, lambda_)

    return chosen(offered, steps, errors)


def of_actions(offered: Sequence[Family], whole: Actions) -> Choice:
    """The family for values of discrete actions, by residuals of held-out episodes."""

    def errors(some: Sequence[Family], sample: Steps, kept: IntArray, used: IntArray) -> list[Errors] | None:
        states, part = columns(sample.states), whole.part(sample, kept, used)
        return select.errors_of_residuals([part.system(Rows.of(family.features, states)) for family in some])

    return chosen(offered, whole.steps, errors)


def of_pairs(offered: Sequence[Family], whole: Pairs) -> Choice:
    """The same for continuous actions, by features of state and action side by side."""

    def errors(some: Sequence[Family], sample: Steps, kept: IntArray, used: IntArray) -> list[Errors] | None:
        part = whole.part(sample, kept, used)
        return select.errors_of_residuals([part.system(family.features) for family in some])

    return chosen(offered, whole.steps, errors)
