"""The public names of feature maps: the one line to add for a new one."""

from tlstd.features.auto_tiles import AutoTiles as AutoTiles
from tlstd.features.base import FeatureMap as FeatureMap
from tlstd.features.columns import Columns as Columns
from tlstd.features.combine import Concatenate as Concatenate
from tlstd.features.combine import StateAction as StateAction
from tlstd.features.fourier import Fourier as Fourier
from tlstd.features.leaves import Leaves as Leaves
from tlstd.features.one_hot import OneHot as OneHot
from tlstd.features.polynomial import Polynomial as Polynomial
from tlstd.features.random_fourier import RandomFourier as RandomFourier
from tlstd.features.rbf import RBF as RBF
from tlstd.features.registry import FEATURE_MAPS as FEATURE_MAPS
from tlstd.features.tile_coding import TileCoder as TileCoder
