"""What is asked of a feature map."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.data.vectors import Vector
from tlstd.errors import InvalidParameterError


class FeatureMap(Protocol):
    """What is asked of a map from states to features; all of :mod:`tlstd.features` fit, and so may yours."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    def encode(self, state: Any, /) -> Vector:
        """Return the features of one state (D,): a vector of n_features, dense or SparseVector."""

    def encode_many(self, states: Any, /) -> Any:
        """Return the features of states (N, D), shape (N, n_features): dense, or csr_array if ``encode`` is sparse."""


class EqualByArguments:
    """Base of the maps of this library: equal, with equal hashes, if they are of one class and made in the same way.

    A subclass keeps each constructor argument in an attribute of the same name, complete and checked: two ways of
    saying the same (one number of tiles, or the same number for each dimension) make equal maps. A map inside another
    one is compared by its own ``==``.

    Example
    -------
    >>> from tlstd import OneHot
    >>> OneHot([0], [3]) == OneHot([0.0], [3.0]), len({OneHot([0], [3]), OneHot([0], [3]), OneHot([0], [4])})
    (True, 2)
    """

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _arguments(self) == _arguments(other)

    def __hash__(self) -> int:
        return hash((type(self), _arguments(self)))


def _arguments(features: object) -> tuple[Any, ...]:
    names = inspect.signature(type(features)).parameters
    if not all(hasattr(features, name) for name in names):  # a subclass of somebody's own: only itself
        return (id(features),)
    return tuple(_hashable(getattr(features, name)) for name in names)


def _hashable(value: Any) -> Any:
    """Arrays and sequences as tuples, anything else as it is."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


Factory: TypeAlias = Callable[[FloatArray, FloatArray], FeatureMap]
"""Makes a feature map from the corners of a box, low and high."""


def check_map(value: object) -> None:
    """Raise unless it is a feature map."""
    missing = [name for name in ("n_features", "encode", "encode_many") if not hasattr(value, name)]
    if missing:
        raise InvalidParameterError(
            f"{value!r} has no {missing[0]}: pass a feature map, with n_features, encode and encode_many"
        )
