"""Where experience comes from: finite processes known in closed form, and simulated domains.

An oracle is a function that returns a :class:`MarkovRewardProcess`; a new one is a new file and a line in
:data:`ORACLES`. Domains with continuous states, such as :mod:`tlstd.domains.mountain_car`, are modules of functions.

Example
-------
>>> sorted(ORACLES)
['boyan_chain', 'garnet', 'garnet_off_policy', 'random_walk']
>>> ORACLES["random_walk"](5)
MarkovRewardProcess('random walk, 5 states, tabular features', 5 states, 5 features, gamma=1)
"""

from collections.abc import Callable

from tlstd.domains.boyan_chain import boyan_chain
from tlstd.domains.garnet import garnet, garnet_off_policy
from tlstd.domains.mdp import MarkovRewardProcess, OffPolicyProcess, Trajectory
from tlstd.domains.random_walk import random_walk

ORACLES: dict[str, Callable[..., MarkovRewardProcess]] = {
    "boyan_chain": boyan_chain,
    "garnet": garnet,
    "garnet_off_policy": garnet_off_policy,
    "random_walk": random_walk,
}
"""Problems whose values and LSTD systems are known exactly, by name."""

__all__ = [
    "ORACLES",
    "MarkovRewardProcess",
    "OffPolicyProcess",
    "Trajectory",
    "boyan_chain",
    "garnet",
    "garnet_off_policy",
    "random_walk",
]
