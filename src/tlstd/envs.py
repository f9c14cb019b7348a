"""The domains as Gymnasium environments: importing this module registers each of them, as ``tlstd/<name>-v0``.

Gymnasium 1.0 and later read no entry points of other packages, so somebody has to import this module: the caller, or
Gymnasium itself if its name stands before the id. Only ``make`` imports the domain.
:class:`~tlstd.domains.environment.DomainEnv` says what the environments do.

Example
-------
>>> import gymnasium
>>> env = gymnasium.make("tlstd.envs:tlstd/Pendulum-v0", damping=0.1)
>>> env.unwrapped.domain.damping
0.1
>>> "tlstd/Pendulum-v0" in ENVIRONMENTS
True
"""

from __future__ import annotations

from tlstd.core.extras import needs
from tlstd.domains import DOMAINS

with needs("gymnasium"):
    import gymnasium


def _register(name: str) -> str:
    """Register a domain, unless that was done before, and return the id of its environment."""
    environment = f"tlstd/{name}-v0"
    if environment not in gymnasium.registry:
        # No max_episode_steps: the environment itself truncates after the domain's ``episode_cap``.
        gymnasium.register(environment, entry_point="tlstd.domains.environment:DomainEnv", kwargs={"domain": name})
    return environment


ENVIRONMENTS: tuple[str, ...] = tuple(_register(name) for name in sorted(DOMAINS))
"""The ids that ``gymnasium.make`` knows."""
