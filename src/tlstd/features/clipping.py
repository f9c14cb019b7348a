"""Which columns of states lie outside of the box of a feature map, where they count as its edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import tlstd
from tlstd.core.arrays import FloatArray, as_real
from tlstd.errors import InvalidInputError
from tlstd.features.base import FeatureMap

SHARE = 0.01
"""Share of the states above which a column is named."""
MOST_NAMED = 5
"""Columns that a note names."""


class _Clipped(NamedTuple):
    """A column that lies outside of its sides of a box."""

    share: float
    low: float
    high: float


def clipped(features: FeatureMap | tlstd.StateAction, states: ArrayLike) -> list[tuple[int, float]]:
    """The columns of which more than 1% of the states lie outside of the box of a feature map, with the share.

    Maps with a box have attributes ``low`` and ``high``, (D,), as :class:`~tlstd.TileCoder`, :class:`~tlstd.RBF`,
    :class:`~tlstd.Fourier` and :class:`~tlstd.OneHot` have. Maps inside of :class:`~tlstd.Concatenate` and
    :class:`~tlstd.StateAction` count too; of a column in several boxes the largest share is given. A dimension with one
    tile does not count, nor does what :class:`~tlstd.OneHot` rounds into its box. Other maps have no box: the list is
    empty.

    Parameters
    ----------
    features : FeatureMap
    states : (N, D)
        O(N D) time.

    Example
    -------
    >>> coder = tlstd.TileCoder([0.0, 0.0], [1.0, 1.0], tiles=4, tilings=2)
    >>> clipped(coder, [[0.5, 0.0], [0.2, 3.0], [0.1, 1.0], [0.9, -1.0]])
    [(1, 0.5)]
    """
    return [(column, found.share) for column, found in sorted(_found(features, states).items())]


def clipped_note(features: FeatureMap | tlstd.StateAction, states: ArrayLike, names: Sequence[str] = ()) -> str:
    """What :func:`clipped` finds, as a sentence; empty if it finds nothing.

    Parameters
    ----------
    features, states
        As for :func:`clipped`.
    names : sequence of words
        Names of the columns. A column without a name is "column 0".

    Example
    -------
    >>> coder = tlstd.TileCoder([-6.0], [6.0], tiles=4, tilings=2)
    >>> clipped_note(coder, [[0.0], [7.0], [9.0], [-8.0]], ["speed"])
    '75% of speed lies outside of the box [-6, 6] of the features, and counts as its edge: give a wider box.'
    """
    found = sorted(_found(features, states).items(), key=lambda item: (-item[1].share, item[0]))
    if not found:
        return ""
    said = [(f"{each.share:.0%} of {_name(names, i)}", f"[{each.low:g}, {each.high:g}]") for i, each in found]
    if len(said) == 1:
        what, box = said[0]
        return f"{what} lies outside of the box {box} of the features, and counts as its edge: give a wider box."
    listed = ", ".join(f"{what} (outside of {box})" for what, box in said[:MOST_NAMED])
    more = len(said) - MOST_NAMED
    listed += f" and {more} more column{'s' * (more != 1)}" * (more > 0)
    return f"States outside of the box of the features count as its edge: {listed}. Give a wider box."


def _name(names: Sequence[str], column: int) -> str:
    return names[column] if column < len(names) else f"column {column}"


def _found(features: Any, states: ArrayLike) -> dict[int, _Clipped]:
    array = as_real(states, "states")
    if array.ndim != 2:
        raise InvalidInputError(f"states have shape {array.shape}: pass (N, D)")
    found: dict[int, _Clipped] = {}
    if not len(array):
        return found
    for column, low, high, rounds in _sides(features, np.arange(array.shape[1])):
        values: FloatArray = np.rint(array[:, column]) if rounds else array[:, column]
        share = float(np.count_nonzero((values < low) | (values > high)) / len(array))
        if share > SHARE and (column not in found or share > found[column].share):
            found[column] = _Clipped(share, low, high)
    return found


def _sides(features: Any, columns: Any) -> Iterator[tuple[int, float, float, bool]]:
    """The column, ends, and whether values are rounded, of each side of the boxes of a map that sees ``columns``."""
    if isinstance(features, tlstd.StateAction):
        yield from _sides(features.features, columns)
        return
    if isinstance(features, tlstd.Concatenate):
        for part, seen in features.maps:
            if seen is None or seen.max() < len(columns):  # otherwise the map refuses these states
                yield from _sides(part, columns if seen is None else columns[seen])
        return
    try:  # of a map of somebody's own these may be anything
        low, high = (np.asarray(getattr(features, name), dtype=np.float64) for name in ("low", "high"))
    except (AttributeError, TypeError, ValueError):
        return
    if low.shape != (len(columns),) or high.shape != low.shape:
        return
    rounds = isinstance(features, tlstd.OneHot)
    if rounds:
        low, high = np.rint(low), np.rint(high)
    for i, column in enumerate(columns.tolist()):
        if not (isinstance(features, tlstd.TileCoder) and features.tiles[i] == 1):
            yield column, float(low[i]), float(high[i]), rounds
