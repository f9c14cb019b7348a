"""What feature maps over a box take in: its corners, counts per dimension, and states; and what any map gives back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, TrustedMatrix, as_real, locked
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features.base import FeatureMap

_FLOAT = np.dtype(np.float64)


def as_box(low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return read-only copies of the corners (D,), checked."""
    bottom, top = (
        as_real(corner, name, InvalidParameterError).copy() for corner, name in ((low, "low"), (high, "high"))
    )
    if bottom.ndim != 1 or bottom.size == 0 or bottom.shape != top.shape:
        raise InvalidParameterError(f"low and high have shapes {bottom.shape} and {top.shape}: pass (D,) for both")
    with np.errstate(over="ignore", invalid="ignore"):
        good = np.isfinite(top - bottom) & (bottom < top)
    if not good.all():
        i = int(np.flatnonzero(~good)[0])
        raise InvalidParameterError(
            f"low[{i}] is {bottom[i]} and high[{i}] is {top[i]}: the box needs a finite range with low < high"
        )
    return locked(bottom), locked(top)


def as_counts(
    name: str, value: int | Sequence[int], n_dimensions: int, *, low: int = 1, why: str = ""
) -> tuple[int, ...]:
    """Return ``value``, one integer >= ``low`` for all dimensions or one for each, as one for each."""
    remedy = f"{why}, or {n_dimensions} of them"
    if not isinstance(value, (Sequence, np.ndarray)) or getattr(value, "shape", None) == ():
        return (parameters.integer(name, value, low=low, why=remedy),) * n_dimensions
    if len(value) != n_dimensions:
        raise InvalidParameterError(f"{name} is {value!r}: it must be an integer >= {low}{remedy}")
    return tuple(parameters.integer(f"{name}[{i}]", count, low=low, why=why) for i, count in enumerate(value))


def as_row(state: ArrayLike, n_dimensions: int) -> FloatArray:
    """Return one state (D,) as compiled functions take it; whether it is a number is for them to say."""
    is_plain = type(state) is np.ndarray and state.dtype is _FLOAT  # spares a look at what else it could be
    array: FloatArray = state if is_plain else as_real(state, "the state")  # type: ignore[assignment]
    if array.shape != (n_dimensions,):
        raise InvalidInputError(f"the state has shape {array.shape}: pass ({n_dimensions},), or use encode_many")
    return array if array.flags.carray else array.copy()  # C-ordered and writeable, the one kind that is compiled for


def as_state(state: ArrayLike, n_dimensions: int) -> FloatArray:
    """Return one state (D,) as states (1, D); whether it is a number is for :func:`as_states` to say."""
    return as_row(state, n_dimensions)[None]


def as_states(states: ArrayLike, n_dimensions: int, *, with_nan: bool = False) -> FloatArray:
    """Return states as an array (N, D). ``with_nan`` leaves it to the caller to find those that are not a number."""
    array = as_real(states, "states")
    if array.ndim != 2 or array.shape[1] != n_dimensions:
        raise InvalidInputError(f"states have shape {array.shape}: pass (N, {n_dimensions})")
    if not with_nan and np.isnan(array).any():
        raise not_a_number(array, int(np.flatnonzero(np.isnan(array).any(axis=1))[0]))
    return array


def as_observations(observations: ArrayLike) -> FloatArray:
    """Return what a map is made from, (N, D), finite, at least one of each."""
    array = as_real(observations, "observations")
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInputError(f"observations have shape {array.shape}: pass (N, D), at least one of each")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise InvalidInputError(f"observation {row} is {array[row].tolist()}: drop what is not finite")
    return array


def not_a_number(states: FloatArray, row: int) -> InvalidInputError:
    """Return the error that ``states[row]`` is not a number."""
    return InvalidInputError(f"state {row} is {states[row].tolist()}: clean or drop states that are not a number")


@cache
def compiled(name: str) -> Any:
    """A file of kernels; imported on first use, so that making a map does not load numba."""
    return import_module(f"tlstd.features.kernels.{name}")


def binary_rows(index: IntArray, n_features: int, *, rising: bool) -> sp.csr_array:
    """Ones at these places (N, n_active), as a canonical csr_array of shape (N, n_features) with 64-bit indices.

    ``rising`` says that places rise along each row; otherwise they may repeat, and their ones add up.
    """
    X = sp.csr_array((len(index), n_features), dtype=np.float64)
    # set, not passed: the constructor would search the indices for a smaller type, and estimators use 64 bits
    X.indptr = np.arange(0, index.size + 1, index.shape[1])
    X.indices, X.data = index.ravel(), np.ones(index.size)
    if rising:
        X.has_canonical_format = True
    else:
        X.sum_duplicates()
    return X


def encoded(features: FeatureMap, observations: FloatArray) -> Any:
    """What a feature map, which may be anybody's, makes of observations (N, size): N rows."""
    store = features.encode_many(observations)
    if tuple(store.shape) != (len(observations), features.n_features):
        raise InvalidInputError(
            f"encode_many returned shape {tuple(store.shape)} for {len(observations)} observations and "
            f"n_features={features.n_features}: return one row of features per observation"
        )
    return store


def encoded_once(features: FeatureMap, observations: FloatArray) -> Any:
    """As :func:`encoded`, for ``Transitions`` made at once: rows that are sound by construction say so."""
    store = encoded(features, observations)
    return TrustedMatrix(store) if "_makes_sound_rows" in vars(type(features)) else store  # not of a subclass
