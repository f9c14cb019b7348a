"""Feature maps of this library as numbers and words, so that a file can hold the map that a model was made for."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tlstd
from tlstd.core.file_format import Saved
from tlstd.errors import StateError, TlstdError
from tlstd.features.base import FeatureMap

_PLAIN = ("TileCoder", "RBF", "Fourier", "OneHot", "Columns", "Polynomial", "RandomFourier")
"""Maps whose constructor's arguments are attributes of the same names."""


def description(features: FeatureMap) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What JSON can hold of a map, and its arrays by name; raises StateError for a map of another origin.

    Example
    -------
    >>> description(tlstd.OneHot([0], [3]))
    ({'kind': 'OneHot', 'low': [0.0], 'high': [3.0]}, {})
    """
    kind = type(features).__name__
    if getattr(tlstd, kind, None) is not type(features):
        raise StateError(
            f"the feature map {kind} is not one of the library, and a file cannot hold it: save the model itself "
            "(evaluation.model.save) and keep the map in your program"
        )
    made: Any = features
    if kind in _PLAIN:
        return {"kind": kind} | {
            name: _plain(getattr(made, name)) for name in inspect.signature(type(made)).parameters
        }, {}
    if kind == "AutoTiles":
        arrays = {f"scale{i}": scale for i, scale in enumerate(made.scales)}
        return {
            "kind": kind,
            "n_columns": len(made.scales),
            "tiles": list(made.tiles),
            "tilings": made.tilings,
            "hash_size": made.hash_size,
        }, arrays
    if kind == "Leaves":
        arrays = {name: getattr(made, name) for name in ("columns", "thresholds", "leaf_values")}
        return {"kind": kind, "n_columns": made.n_columns, "base": made.base}, arrays
    if kind == "StateAction":
        inside, arrays = description(made.features)
        return {"kind": kind, "features": inside, "n_actions": made.n_actions}, arrays
    if kind == "Concatenate":
        maps, arrays = [], {}
        for i, (part, columns) in enumerate(made.maps):
            inside, more = description(part)
            maps.append([inside, None if columns is None else columns.tolist()])
            arrays |= {f"map{i}.{name}": array for name, array in more.items()}
        return {"kind": kind, "maps": maps}, arrays
    raise StateError(f"the feature map {kind} cannot be saved: keep it in your program")


def restored(described: Any, saved: Saved) -> FeatureMap:
    """The map of a description; ``saved`` has its arrays and nothing else. Raises StateError for what is none."""
    try:
        features: FeatureMap = _made(described, saved)
        saved.finish()
    except StateError:
        raise
    except (TlstdError, TypeError, ValueError, KeyError, OverflowError, MemoryError, AttributeError) as error:
        raise StateError(f"its feature map cannot be made ({str(error)[:200]})") from error
    return features


def _made(described: Any, saved: Saved, depth: int = 0) -> Any:
    if not isinstance(described, dict) or depth > 8:
        raise StateError("its feature map is not described as this library does")
    arguments = dict(described)
    kind = arguments.pop("kind")
    if kind in _PLAIN:
        return getattr(tlstd, kind)(**arguments)
    if kind == "AutoTiles":
        n_columns = arguments.pop("n_columns")
        if len(arguments["tiles"]) != n_columns:
            raise StateError("its feature map has tiles for other columns")
        scales = [saved.floats(f"scale{i}", None, 2) for i in range(n_columns)]
        return tlstd.AutoTiles(scales, **arguments)
    if kind == "Leaves":
        columns = saved.integers("columns", None, None, low=0, high=2**63 - 1)
        thresholds, leaf_values = (saved.floats(name, None, None) for name in ("thresholds", "leaf_values"))
        return tlstd.Leaves(columns, thresholds, leaf_values, **arguments)
    if kind == "StateAction":
        return tlstd.StateAction(_made(arguments["features"], saved, depth + 1), arguments["n_actions"])
    if kind == "Concatenate":
        parts = []
        for i, (inside, columns) in enumerate(arguments["maps"]):
            part = _made(inside, saved.part(f"map{i}"), depth + 1)
            parts.append(part if columns is None else (part, columns))
        return tlstd.Concatenate(parts)
    raise StateError(f"its feature map {str(kind)[:40]!r} is none of the library")


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
