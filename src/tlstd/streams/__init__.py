"""From a problem to transitions: simulated domains and any Gymnasium environment, on- and off-policy."""

from tlstd.core.parameters import Seed
from tlstd.streams.environments import from_gymnasium
from tlstd.streams.simulated import Trajectory, encode, record, stream, trajectory

__all__ = ["Seed", "Trajectory", "encode", "from_gymnasium", "record", "stream", "trajectory"]
