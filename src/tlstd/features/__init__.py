"""Feature maps from states to vectors, one per file."""

from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder

__all__ = ["RBF", "TileCoder"]
