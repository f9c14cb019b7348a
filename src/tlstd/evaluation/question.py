"""What is asked of a log: one frozen object, from which everything is computed."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import as_floats
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation.families import Name as FamilyName
from tlstd.evaluation.families import Offer, families
from tlstd.evaluation.fits import Starts
from tlstd.evaluation.policies import Target
from tlstd.evaluation.silence import given_limits
from tlstd.features.base import FeatureMap, check_map
from tlstd.features.one_hot import OneHot
from tlstd.logs.log import Log

Features: TypeAlias = FeatureMap | FamilyName
StartName: TypeAlias = Literal["first", "all"]
Start: TypeAlias = ArrayLike | StartName
Probabilities: TypeAlias = Literal["logged", "estimate"]

ESTIMATORS = (
    "mean of returns",
    "returns with tails",
    "doubly robust",
    "KrylovLSTD",
    "LSTDQ",
    "weighted IS",
    "LSTD",
    "t-LSTD",
    "TD",
    "fitted trees",
)
"""Rows of the table by name, for ``estimators=``. "mean of returns" and "returns with tails" ask for the same row: the
ends of the episodes decide which of the two it is."""
COMPARED = frozenset({"LSTD", "t-LSTD", "TD", "weighted IS", "fitted trees"})
"""Rows that only stand beside the answer: on request."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Discounts, policies, starts, rewards and segments, all of whose combinations are answered by one pass.

    Example
    -------
    >>> Question(gammas=(0.9, 0.99)).gammas
    (0.9, 0.99)
    >>> Question(gammas=(1.5,))
    Traceback (most recent call last):
    ...
    tlstd.errors.InvalidParameterError: gamma is 1.5: it must lie in [0, 1]
    """

    gammas: tuple[float, ...]
    policies: tuple[Any, ...] = (None,)
    """Functions, tables, "logged", or None: the policy in the log's columns, and else the logged one."""
    starts: tuple[Start | None, ...] = (None,)
    rewards: tuple[ArrayLike | None, ...] = (None,)
    """(N,) numbers in place of the log's rewards; None: these."""
    segments: tuple[ArrayLike | None, ...] = (None,)
    """Places in the log of the episodes that count; None: all."""
    features: Features = "auto"
    estimators: tuple[str, ...] | None = None
    probabilities: Probabilities = "logged"
    level: float = 0.95
    cost: bool = False
    compare: bool = False
    returns: tuple[float, float] | None = None
    """The range of discounted returns from any step on."""
    reward_range: tuple[float, float] | None = None
    """The range of single rewards."""

    def __post_init__(self) -> None:
        for gamma in self.gammas:
            parameters.real("gamma", gamma, low=0.0, high=1.0)
        for start in self.starts:
            if isinstance(start, str):
                parameters.choice("start", start, get_args(StartName), why=", or states")
        if not isinstance(self.features, str):
            check_map(self.features)
        else:
            parameters.choice("features", self.features, get_args(FamilyName), why=", or a feature map")
        parameters.choice("probabilities", self.probabilities, get_args(Probabilities))
        parameters.positive("level", self.level, high=1.0)
        parameters.flag("cost", self.cost)
        parameters.flag("compare", self.compare)
        for name in self.estimators or ():
            parameters.choice("estimators", name, ESTIMATORS)
        if self.estimators is not None and not self.estimators:
            raise InvalidParameterError(f"estimators is empty: name at least one of {', '.join(ESTIMATORS)}")
        given_limits(self.returns, self.reward_range, 0.0, True)

    def wants(self, name: str) -> bool:
        """Whether a row of the table is asked for."""
        if self.estimators is None:
            return self.compare or name not in COMPARED
        return name in self.estimators or ("returns" in name and any("returns" in own for own in self.estimators))

    def described(self) -> dict[str, Any]:
        """As JSON has it. Functions are described by their names and the contents of the files that define them."""
        asked = {each.name: _described(getattr(self, each.name)) for each in fields(self)}
        return asked | {"version": import_module("tlstd").__version__}


def names_of(estimators: Iterable[str] | None) -> tuple[str, ...] | None:
    """Names of rows as they are given."""
    if estimators is None:
        return None
    given = (estimators,) if isinstance(estimators, str) else tuple(estimators)
    return tuple("mean of returns" if name == "Monte Carlo" else name for name in given)


def offered(question: Question, log: Log, *, joint: bool = False, n: int | None = None) -> Offer:
    """The families of features of which one is chosen; ``joint``: of states and continuous actions side by side.

    ``n`` is the number of steps of the whole log, where this one is a sample of it.
    """
    given = question.features
    if not isinstance(given, str):
        return Offer.given(given)
    states = np.hstack([log.states, log.actions]) if joint and log.actions is not None else log.states
    if log.discrete and not joint:
        assert log.n_observations is not None
        return Offer.given(OneHot([0], [max(1, log.n_observations - 1)]))
    return families(given, states, len(log) if n is None else n)


def start_sets(log: Log, start: Start | None, target: Target | None, sample: Log | None = None) -> list[Starts]:
    """Each set of start states; the first one is the answer's. ``sample`` is that of a log without observations."""
    if start is not None and not isinstance(start, str):
        return [Starts("given states", given_states(start, log if sample is None else sample), None)]
    if start is None:
        sets = log.starts
    else:
        sets = {"start states": log.start_rows} if start == "first" else {"all states": np.arange(len(log))}
    if any(not rows.size for rows in sets.values()):
        raise InvalidInputError('the log has no first row of an episode: pass start="all", or states')
    table = None if target is None else target.table
    return [
        Starts(name, log.observations[rows], rows, None if table is None else table[rows])
        for name, rows in sets.items()
    ]


def given_states(start: ArrayLike, log: Log) -> Any:
    """States that were given, in the form of the log's observations."""
    states, shape = as_floats(start, "start", None), log.observations.shape[1:]
    if states.shape == shape:
        states = states[None]
    if states.shape[1:] != shape or not len(states):
        raise InvalidInputError(f"start has shape {states.shape}: pass states (M, {', '.join(map(str, shape))})")
    return states.astype(log.observations.dtype)


def with_rewards(log: Log, rewards: ArrayLike | None) -> Log:
    """The log with other rewards."""
    if rewards is None:
        return log
    array = as_floats(rewards, "rewards", 1)
    if array.size != len(log):
        raise InvalidInputError(f"rewards has {array.size} numbers: the log has {len(log)} steps, and each needs one")
    return replace(log, rewards=array)


def _described(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, np.number)):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): _described(of) for key, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [_described(each) for each in value]
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        data = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
        return {"shape": list(array.shape), "type": str(array.dtype), "contents": _digest(data)}
    return _defined(value)


def _defined(value: Any) -> dict[str, str | None]:
    """A function, or an object of some class. What it makes of the log is compared where the files are encoded."""
    named = value if hasattr(value, "__qualname__") else type(value)
    file = getattr(sys.modules.get(named.__module__), "__file__", None)
    contents = _digest(Path(file).read_bytes()) if file is not None and Path(file).is_file() else None
    described = {"name": f"{named.__module__}:{named.__qualname__}", "contents": contents}
    return described if named is value else described | {"parameters": re.sub(r" at 0x[0-9a-f]+", "", repr(value))}


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
