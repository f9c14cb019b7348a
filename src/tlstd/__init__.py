"""Incremental truncated LSTD: value functions from a stream or a log of experience.

The sample efficiency of least squares in O(features x rank) memory. Start with :class:`TLSTD` and
:class:`TransitionBuilder` (stepping an environment) or :class:`Transitions` (arrays and logs).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tlstd.domains.boyan_chain import boyan_chain as boyan_chain
    from tlstd.domains.garnet import garnet as garnet
    from tlstd.domains.mdp import MarkovRewardProcess as MarkovRewardProcess
    from tlstd.domains.random_walk import random_walk as random_walk
    from tlstd.errors import BusyError as BusyError
    from tlstd.errors import CapacityError as CapacityError
    from tlstd.errors import InvalidInputError as InvalidInputError
    from tlstd.errors import InvalidParameterError as InvalidParameterError
    from tlstd.errors import ReadOnlyError as ReadOnlyError
    from tlstd.errors import StateError as StateError
    from tlstd.errors import TlstdError as TlstdError
    from tlstd.estimators.atd import ATD as ATD
    from tlstd.estimators.base import Estimator as Estimator
    from tlstd.estimators.handover import Handover as Handover
    from tlstd.estimators.ilstd import ILSTD as ILSTD
    from tlstd.estimators.krylov_lstd import KrylovLSTD as KrylovLSTD
    from tlstd.estimators.lstd import LSTD as LSTD
    from tlstd.estimators.step_sizes import Decay as Decay
    from tlstd.estimators.td import TD as TD
    from tlstd.estimators.tlstd import TLSTD as TLSTD
    from tlstd.estimators.true_online_td import TrueOnlineTD as TrueOnlineTD
    from tlstd.features.combine import Concatenate as Concatenate
    from tlstd.features.combine import FeatureMap as FeatureMap
    from tlstd.features.combine import StateAction as StateAction
    from tlstd.features.fourier import Fourier as Fourier
    from tlstd.features.rbf import RBF as RBF
    from tlstd.features.tile_coding import TileCoder as TileCoder
    from tlstd.state import load as load
    from tlstd.types import SparseVector as SparseVector
    from tlstd.types import Transition as Transition
    from tlstd.types import TransitionBuilder as TransitionBuilder
    from tlstd.types import Transitions as Transitions

__version__ = "0.1.0"

_HOME = {
    "ATD": "estimators.atd",
    "Decay": "estimators.step_sizes",
    "Handover": "estimators.handover",
    "ILSTD": "estimators.ilstd",
    "TD": "estimators.td",
    "TrueOnlineTD": "estimators.true_online_td",
    "BusyError": "errors",
    "CapacityError": "errors",
    "Concatenate": "features.combine",
    "Estimator": "estimators.base",
    "FeatureMap": "features.combine",
    "Fourier": "features.fourier",
    "InvalidInputError": "errors",
    "InvalidParameterError": "errors",
    "KrylovLSTD": "estimators.krylov_lstd",
    "LSTD": "estimators.lstd",
    "MarkovRewardProcess": "domains.mdp",
    "RBF": "features.rbf",
    "SparseVector": "types",
    "ReadOnlyError": "errors",
    "StateError": "errors",
    "StateAction": "features.combine",
    "TLSTD": "estimators.tlstd",
    "TileCoder": "features.tile_coding",
    "TlstdError": "errors",
    "Transition": "types",
    "TransitionBuilder": "types",
    "Transitions": "types",
    "boyan_chain": "domains.boyan_chain",
    "garnet": "domains.garnet",
    "load": "state",
    "random_walk": "domains.random_walk",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import tlstd`` stays quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'tlstd' has no attribute {name!r}")
    value = getattr(import_module(f"tlstd.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
