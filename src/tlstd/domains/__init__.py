"""Problems with known values: finite processes in closed form, and simulated domains.

An oracle is a function that returns a :class:`MarkovRewardProcess`; a new one is a new file and a line in
:data:`ORACLES`. A simulated domain, with continuous states, is a subclass of :class:`Domain`; a new one is a new file
and a line in :data:`DOMAINS`, which also makes it a Gymnasium environment (:mod:`tlstd.envs`). Their files are imported
when one is made: some compile their dynamics.

Example
-------
>>> ORACLES["random_walk"](5)
MarkovRewardProcess('random walk, 5 states, tabular features', 5 states, 5 features, gamma=1)
>>> DOMAINS["Pendulum"](damping=0.1).state_names
('angle', 'velocity', 'held')
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from tlstd.domains.baird import baird
from tlstd.domains.base import Domain
from tlstd.domains.boyan_chain import boyan_chain
from tlstd.domains.mdp import MarkovRewardProcess, OffPolicyProcess, Trajectory
from tlstd.domains.random_walk import random_walk


def _make(module: str, name: str, *arguments: Any, **parameters: Any) -> Any:
    """Make what ``name`` makes, of a module that is imported only now."""
    return getattr(import_module(f"tlstd.domains.{module}"), name)(*arguments, **parameters)


ORACLES: dict[str, Callable[..., MarkovRewardProcess]] = {
    "baird": partial(_make, "baird", "baird"),
    "boyan_chain": partial(_make, "boyan_chain", "boyan_chain"),
    "random_walk": partial(_make, "random_walk", "random_walk"),
}
"""Problems whose values and LSTD systems are known exactly, by name."""

DOMAINS: dict[str, Callable[..., Domain]] = {
    "EnergyStorage": partial(_make, "energy_storage", "EnergyStorage"),
    "MountainCar": partial(_make, "mountain_car", "MountainCar"),
    "Pendulum": partial(_make, "pendulum", "Pendulum"),
}
"""Simulated domains by name: from their parameters, as keywords, to the domain."""

__all__ = [
    "DOMAINS",
    "ORACLES",
    "Domain",
    "MarkovRewardProcess",
    "OffPolicyProcess",
    "Trajectory",
    "baird",
    "boyan_chain",
    "random_walk",
]
