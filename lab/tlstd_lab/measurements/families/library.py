"""What the library is measured with: ``evaluate`` with its default features, with those of 0.2, and by family."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tlstd import AutoTiles, Log, evaluate
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError
from tlstd_lab.measurements.families.problems import Problem

FAMILIES = ("tiles", "mixed", "quadratic", "smooth", "leaves")
"""Names of single families for ``features=``. What the library refuses is left out of the table."""
OF_VALUES, OF_ACTIONS = "KrylovLSTD", "LSTDQ"
"""The rows that predict values of states, of the logged and of another policy."""

Found = tuple[Callable[[FloatArray], FloatArray], str]
"""From observations to values, and the features in words."""


def evaluated(features: Any, made: Problem, log: Log, seed: int) -> Found:
    """The value function of ``evaluate`` with these features."""
    row = OF_VALUES if made.policy is None else OF_ACTIONS
    report = evaluate(log, gamma=made.gamma, features=features, policy=made.policy, estimators=[row])
    return report.predict, repr(report.features)


def of_tiles(made: Problem, log: Log, seed: int) -> Found:
    """The features of 0.2: tiles, by their name if it is known."""
    try:
        return evaluated("tiles", made, log, seed)
    except InvalidParameterError:
        return evaluated(AutoTiles.fit(log.states), made, log, seed)


LIBRARY: dict[str, Callable[[Problem, Log, int], Found]] = {
    "auto": partial(evaluated, "auto"),
    "auto of 0.2": of_tiles,
    **{name: partial(evaluated, name) for name in FAMILIES},
}
