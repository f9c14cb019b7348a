"""How fast streams are recorded: ratios to stepping Gymnasium's environment, in the same run.

uv run python -m tlstd_lab.measurements.streams          about half a minute
"""

from __future__ import annotations

import tracemalloc

import gymnasium
import numpy as np

from tlstd import TileCoder
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.evaluation import true_values
from tlstd.streams import record
from tlstd_lab.bench.timing import timed
from tlstd_lab.energy_programme import optimal_policy

REPEATS = 5


def gymnasium_steps(n: int) -> None:
    """Energy pumping in Gymnasium's own Mountain Car, without features."""
    env = gymnasium.make("MountainCar-v0")
    observation, _ = env.reset(seed=0)
    for _ in range(n):
        observation, _, terminated, truncated, _ = env.step(2 if observation[1] >= 0 else 0)
        if terminated or truncated:
            observation, _ = env.reset()


def mountain_car() -> None:
    car = MountainCar()
    tiles = TileCoder(car.low, car.high, tiles=10, tilings=10)
    record(car, None, tiles, n_steps=1000, seed=0)  # compiles
    ours, theirs, ratios = [], [], []
    for repeat in range(REPEATS):
        ours.append(1e6 * timed(lambda: record(car, None, tiles, n_steps=1_000_000, seed=repeat))[0] / 1e6)  # noqa: B023
        theirs.append(1e6 * timed(lambda: gymnasium_steps(50_000))[0] / 50_000)
        ratios.append(theirs[-1] / ours[-1])
    print(
        f"Mountain Car, 10⁶ transitions with 10 tilings: {np.median(ours):.2f} µs each; Gymnasium one by one, without "
        f"features: {np.median(theirs):.1f} µs; ratio {np.median(ratios):.0f} ({min(ratios):.0f} to {max(ratios):.0f})"
    )


def values() -> None:
    for domain in (MountainCar(), Pendulum()):
        times = [timed(lambda d=domain: true_values(d, d.grid()))[0] for _ in range(REPEATS)]  # type: ignore[misc]
        print(f"true values of {domain.name} on the 20×20 grid: {1e3 * np.median(times):.0f} ms")


def storage() -> None:
    domain = EnergyStorage()
    seconds, policy = timed(lambda: optimal_policy(domain))
    print(f"EnergyStorage's near-optimal policy, from the cache or computed: {seconds:.2f} s")
    tiles = TileCoder(domain.low, domain.high, tiles=[5, 5, 10, 5], tilings=32, bias=True)
    record(domain, policy, tiles, n_steps=100, seed=0)  # compiles
    times = [timed(lambda: record(domain, policy, tiles, n_steps=100_000, seed=0))[0] for _ in range(REPEATS)]
    tracemalloc.start()
    record(domain, policy, tiles, n_steps=100_000, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"EnergyStorage, 10⁵ transitions with {tiles.n_features:,} features: {np.median(times):.2f} s, peak memory "
        f"{1e-6 * peak:.0f} MB"
    )


if __name__ == "__main__":
    mountain_car()
    values()
    storage()
