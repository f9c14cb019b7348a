"""Feature maps from states to vectors, one per file; the maps by name are the one line to add for a new one."""

from __future__ import annotations

from collections.abc import Callable

from tlstd.features.combine import Concatenate, FeatureMap, StateAction
from tlstd.features.fourier import Fourier
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd.types import FloatArray

FEATURE_MAPS: dict[str, Callable[[FloatArray, FloatArray], FeatureMap]] = {
    "TileCoder": lambda low, high: TileCoder(low, high, tiles=4, tilings=8, bias=True),
    "TileCoder (hashed)": lambda low, high: TileCoder(low, high, tiles=100, tilings=8, hash_size=512, bias=True),
    "RBF": lambda low, high: RBF(low, high, grid=3, width=0.5, bias=True),
    "RBF (gaussian)": lambda low, high: RBF(low, high, grid=3, width=0.5, convention="gaussian"),
    "Fourier": lambda low, high: Fourier(low, high, order=2),
    "Fourier (uncoupled)": lambda low, high: Fourier(low, high, order=3, max_coupling=1),
    "Concatenate": lambda low, high: Concatenate(
        [TileCoder(low, high, tiles=2, tilings=4), (Fourier(low[:1], high[:1], order=3), [0])]
    ),
}
"""Typical instances, made from the corners of a box; the contract of feature maps is tested on each of them.

:class:`StateAction` is not among them: it encodes actions too.
"""

__all__ = ["FEATURE_MAPS", "RBF", "Concatenate", "FeatureMap", "Fourier", "StateAction", "TileCoder"]
