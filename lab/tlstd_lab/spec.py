"""What a run is: a task, its settings and a seed, known by the hash of their canonical JSON."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tlstd.core.parameters import integer
from tlstd.errors import InvalidParameterError
from tlstd_lab import tasks

EXACT = 2.0**53
"""Whole floats up to here are exact, and are written as integers."""
AS_IT_IS = frozenset((str, int, bool))
"""What most settings are: it is taken as it is, without asking for more or saying where it stands."""


class Settings(Mapping[str, Any]):
    """A mapping that cannot change: text, numbers, booleans, None, tuples and further ``Settings`` by name.

    Whole floats become integers and arrays' scalars become numbers, so that what is equal is written alike.

    Example
    -------
    >>> Settings({"rank": np.int64(5), "widths": [1.0, 0.5]})
    Settings({'rank': 5, 'widths': (1, 0.5)})
    """

    def __init__(self, values: Mapping[str, Any], name: str = "settings") -> None:
        self._values = {
            key: value if type(value) in AS_IT_IS else _frozen(value, f"{name}.{key}")
            for key, value in sorted(_words(values, name).items())
        }

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        return f"Settings({self._values!r})"

    def plain(self) -> dict[str, Any]:
        """Return a copy of dicts and lists."""
        return {key: _plain(value) for key, value in self._values.items()}

    @cached_property
    def json(self) -> str:
        """The canonical JSON: specs that differ in their seed only share it."""
        return _canonical(self.plain())


@dataclass(frozen=True, eq=False)
class RunSpec:
    """One run, and all that its result depends on.

    Two specs are equal if their keys are. The key is taken from canonical JSON: names in order, no spaces, whole
    numbers without a point (``1.0`` is ``1``, as in RFC 8785, so that ``lambda_=1`` and ``lambda_=1.0`` are one run;
    the task is given the integer), tuples as lists; ``True`` is not ``1``. NaN and infinities are refused.

    Parameters
    ----------
    task : str
        A name in :data:`tlstd_lab.tasks.TASKS`, or ``"module:function"`` for a function of your own.
    settings : mapping
        What JSON can hold, nested as you like; kept as immutable :class:`Settings`.
    seed : int >= 0
    timed : bool
        The run measures time: it must have a core for itself, and nothing else may run. Part of the key, since a run
        among others is no substitute.
    version : int >= 0
        Of the task; part of the key, so that a task that has come to mean something else makes new results. 0 stands
        for the present one.

    Example
    -------
    >>> spec = RunSpec("package.module:function", {"rank": 20, "lambda_": 1.0}, seed=3)
    >>> spec.key
    '401d7cdaa4b8493399ceda9a85c4e6b4'
    >>> RunSpec("package.module:function", {"lambda_": 1, "rank": 20}, seed=3) == spec
    True
    >>> RunSpec.from_json(spec.to_json()) == spec
    True
    >>> print(spec.to_json())
    {"seed":3,"settings":{"lambda_":1,"rank":20},"task":"package.module:function","timed":false,"version":1}
    """

    task: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    timed: bool = False
    version: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.task, str):
            raise InvalidParameterError(f"task is {self.task!r}: give its name")
        if not isinstance(self.timed, bool):
            raise InvalidParameterError(f"timed is {self.timed!r}: it must be True or False")
        if not isinstance(self.settings, Settings):
            object.__setattr__(self, "settings", Settings(self.settings))
        object.__setattr__(self, "seed", integer("seed", self.seed, low=0, high=None))
        version = integer("version", self.version, low=0)
        object.__setattr__(self, "version", version or tasks.version(self.task))

    @cached_property
    def key(self) -> str:
        """The first 32 hexadecimal digits of the SHA-256 of :meth:`to_json`."""
        return key_of(self.to_json())

    def plain_settings(self) -> dict[str, Any]:
        """Return the settings as dicts and lists of the caller's own."""
        assert isinstance(self.settings, Settings)
        return self.settings.plain()

    def to_json(self) -> str:
        """Return the canonical JSON."""
        assert isinstance(self.settings, Settings)
        others = _others(self.task, self.timed, self.version)
        return f'{{"seed":{self.seed},"settings":{self.settings.json},{others}'  # names in order

    @classmethod
    def from_json(cls, json_: str | Mapping[str, Any]) -> RunSpec:
        """Make a spec from JSON text, or from the dict that the text stands for."""
        try:
            values = json.loads(json_) if isinstance(json_, str) else json_
            return cls(**values)
        except (TypeError, json.JSONDecodeError, RecursionError) as error:  # not an object, or other fields
            raise InvalidParameterError(
                f"{str(json_)[:200]!r} is not a run ({error}): give task, settings, seed, and perhaps timed and version"
            ) from None

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, RunSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


def key_of(json_: str) -> str:
    """The key of a run with this canonical JSON."""
    return hashlib.sha256(json_.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@lru_cache(maxsize=256)
def _others(task: str, timed: bool, version: int) -> str:
    """The end of a spec's canonical JSON, which many specs share."""
    return _canonical({"task": task, "timed": timed, "version": version})[1:]


def _canonical(values: Mapping[str, Any]) -> str:
    """The one JSON text of dicts, lists and what is in them."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _words(values: object, name: str) -> Mapping[str, Any]:
    """Check that it is a mapping whose keys are text."""
    if not isinstance(values, (dict, Mapping)):  # what it is mostly is asked first
        raise InvalidParameterError(f"{name} is {values!r}: it must be a mapping of names to values")
    for key in values:
        if not isinstance(key, str):
            raise InvalidParameterError(f"{name} has the key {key!r}: keys must be text")
    return values


def _frozen(value: object, name: str) -> Any:
    """The one immutable form of a value that JSON can hold."""
    if type(value) in AS_IT_IS:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple)):
        return tuple(
            [item if type(item) in AS_IT_IS else _frozen(item, f"{name}[{i}]") for i, item in enumerate(value)]
        )
    if isinstance(value, (dict, Mapping)):
        return Settings(value, name)
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) <= EXACT else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise InvalidParameterError(f"{name} is {value!r}: use finite numbers, text, True, False, None, lists and dicts")


def _plain(value: Any) -> Any:
    """The same with dicts and lists."""
    if isinstance(value, Settings):
        return value.plain()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
