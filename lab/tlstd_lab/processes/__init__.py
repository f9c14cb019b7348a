"""Processes with known values that only experiments use: random Garnet processes and the spiral.

Example
-------
>>> ORACLES["spiral"]()
MarkovRewardProcess("the spiral's ring", 3 states, 2 features, gamma=0.9)
"""

from collections.abc import Callable

from tlstd.domains import MarkovRewardProcess
from tlstd_lab.processes.garnet import garnet, garnet_off_policy
from tlstd_lab.processes.spiral import spiral

ORACLES: dict[str, Callable[..., MarkovRewardProcess]] = {
    "garnet": garnet,
    "garnet_off_policy": garnet_off_policy,
    "spiral": spiral,
}
"""The same as :data:`tlstd.domains.ORACLES`, for these processes."""

__all__ = ["ORACLES", "garnet", "garnet_off_policy", "spiral"]
