"""Which step sizes iLSTD diverges with: α₀(N₀+1) times the averaged A's largest diagonal entry, or column sum.

uv run python -m tlstd_lab.measurements.ilstd_steps          about two minutes
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tlstd import ILSTD, LSTD, RBF, Decay, FeatureMap, TileCoder, Transitions, boyan_chain, random_walk
from tlstd.core.arrays import FloatArray
from tlstd.domains.mountain_car import MountainCar
from tlstd.streams import record

N_STEPS = 20_000
N0 = (0, 10, 100, 1000)
PRODUCTS = {"largest diagonal entry": (0.5, 1.0, 1.5, 1.9), "largest column sum of |A|": (0.5, 1.0, 2.0, 3.0)}
OVERLAPPING = ("10 tilings", "RBFs")


def streams() -> Iterator[tuple[str, Transitions]]:
    car, rng = MountainCar(), np.random.default_rng
    for n_states in (5, 19):
        yield f"walk of {n_states}", random_walk(n_states=n_states, gamma=0.95).sample(N_STEPS, rng(0))
    yield "Boyan's chain", boyan_chain().sample(N_STEPS, rng(0))
    maps: dict[str, FeatureMap] = {
        "one tiling": TileCoder(car.low, car.high, tiles=20, tilings=1),
        "10 tilings": TileCoder(car.low, car.high, tiles=10, tilings=10),
        "RBFs": RBF(car.low, car.high, grid=8, width=0.12),
    }
    for name, features in maps.items():
        yield name, record(car, None, features, n_steps=N_STEPS, gamma=0.99, seed=0)
    place = np.arange(N_STEPS + 1) % 30  # a cycle of 30 states, one feature each
    discounts = np.full(N_STEPS, 0.95)
    yield (
        "cycle of 30",
        Transitions.from_rows(
            np.eye(30),
            place[:-1],
            rng(0).standard_normal(N_STEPS) + 3.0 * (place[:-1] == 0),
            place[1:],
            discounts=discounts,
            trace_discounts=np.concatenate([[0.0], discounts[1:]]),
        ),
    )


def diverged(steps: Transitions, lambda_: float, scale: float, product: float, largest: float) -> FloatArray:
    """For each N₀ and one or ten coordinates a step: whether a weight is more than twice the largest of LSTD's."""
    found = np.zeros((len(N0), 2))
    for i, n0 in enumerate(N0):
        for j, coordinates in enumerate((1, 10)):
            step_size = Decay(product / scale / (n0 + 1), n0)
            model = ILSTD(steps.n_features, step_size=step_size, lambda_=lambda_, coordinates_per_step=coordinates)
            model.update_many(steps)
            found[i, j] = not np.abs(model.weights).max() <= 2.0 * largest
    total: FloatArray = found.sum(axis=1)
    return total


def main() -> None:
    counts = {
        (rule, product, kind): np.zeros(len(N0)) for rule in PRODUCTS for product in PRODUCTS[rule] for kind in (0, 1)
    }
    n_runs = [0, 0]
    for name, steps in streams():
        kind = int(name in OVERLAPPING)
        for lambda_ in (0.0, 0.9):
            exact = LSTD(steps.n_features, lambda_=lambda_)
            exact.update_many(steps)
            A, largest = exact.system()[1], np.abs(exact.weights).max()
            scales = {
                "largest diagonal entry": np.diag(A).max(),
                "largest column sum of |A|": np.abs(A).sum(axis=0).max(),
            }
            n_runs[kind] += 2
            for rule, products in PRODUCTS.items():
                for product in products:
                    counts[rule, product, kind] += diverged(steps, lambda_, scales[rule], product, largest)
    print(
        f"runs of {N_STEPS:,} steps that diverged, of {n_runs[0]} with one feature a state and {n_runs[1]} with "
        "overlapping ones"
    )
    print(f"{'α₀(N₀+1) times the':28} {'is':>4}   " + " ".join(f"N₀={n0:<8}" for n0 in N0))
    for rule, products in PRODUCTS.items():
        for product in products:
            pairs = zip(counts[rule, product, 0], counts[rule, product, 1], strict=True)
            print(f"{rule:28} {product:4}   " + " ".join(f"{a:2.0f} and {b:2.0f}  " for a, b in pairs))


if __name__ == "__main__":
    main()
