"""Fitted evaluation by scikit-learn, and ``tlstd.evaluate``, on the samples of the contest on 40,001 tiles.

uv run --with scikit-learn python -m tlstd_lab.measurements.fitted     # about ten minutes; writes fitted.json
uv run python -m tlstd_lab.measurements.fitted tlstd                   # only methods with this word; others are kept

What tools of the kind of FQE do: regress r + γ V(x′) on x, again and again, here for state values of the logged
policy. All of these get the four observations, and make of them what they like. Defaults of the regressions but for
what is named in their functions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tlstd import Log, evaluate
from tlstd.core.arrays import FloatArray
from tlstd.streams import trajectory
from tlstd_lab.problems import EVALUATION_SEED, problem
from tlstd_lab.tables import DOCS

PATH = DOCS / "figures" / "fitted.json"
SAMPLES = (1_000, 10_000)
RUNS = 10
ITERATIONS = 40
"""γ⁴⁰ is 10⁻⁴ with the problem's γ of 0.8."""


class Steps(NamedTuple):
    """Observations of one stream, and the discount."""

    X: FloatArray
    rewards: FloatArray
    X_next: FloatArray
    gamma: float


Values = Callable[[FloatArray], FloatArray]
"""From observations to values."""


def trees(seed: int) -> Any:
    """Gradient boosting, fitted anew in each iteration."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=seed)


def network(seed: int) -> Any:
    """Two layers of 64, which go on from iteration to iteration, ten passes each."""
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(
        hidden_layer_sizes=(64, 64), max_iter=10, warm_start=True, n_iter_no_change=1_000, random_state=seed
    )


def fitted(make: Callable[[int], Any], steps: Steps, seed: int) -> Values:
    """The regression after the last iteration; inputs and targets have mean 0 and deviation 1."""
    model, targets = make(seed), steps.rewards
    middle, width = steps.X.mean(axis=0), steps.X.std(axis=0)
    X, X_next = (steps.X - middle) / width, (steps.X_next - middle) / width
    for _ in range(ITERATIONS):
        centre, scale = targets.mean(), targets.std()
        model.fit(X, (targets - centre) / scale)
        targets = steps.rewards + steps.gamma * (centre + scale * model.predict(X_next))
    return lambda seen: centre + scale * model.predict((seen - middle) / width)


def evaluated(steps: Steps, seed: int) -> Values:
    """The command's default, without the other estimators that stand beside its answer."""
    log = Log.from_arrays(steps.X, steps.rewards, next_observations=steps.X_next)
    return evaluate(log, gamma=steps.gamma, estimators=["KrylovLSTD"]).predict


def errors(method: Callable[[Steps, int], Values], seed: int) -> dict[str, list[float]]:
    """RMSE and CPU seconds for each number of samples."""
    made = problem("energy")
    domain = made.domain
    test = domain.observe(trajectory(domain, made.policy, n_steps=10_000, seed=EVALUATION_SEED).states[::10])
    path = trajectory(domain, made.policy, n_steps=SAMPLES[-1], seed=seed)
    seen = domain.observe(path.states)
    found: dict[str, list[float]] = {"rmse": [], "seconds": []}
    for n in SAMPLES:
        rows = path.rows[:n]
        began = time.process_time()
        values = method(Steps(seen[rows], path.rewards[:n], seen[rows + 1], domain.gamma), seed)
        found["seconds"].append(time.process_time() - began)
        found["rmse"].append(made.rmse(values(test)))
    return found


METHODS: dict[str, tuple[Callable[[Steps, int], Values], str]] = {
    "fitted evaluation, neural network": (partial(fitted, network), "iterations, layers, step size, passes"),
    "fitted evaluation, boosted trees": (partial(fitted, trees), "iterations, trees, their size and rate"),
    "`tlstd evaluate`": (evaluated, "nothing"),
}
"""By name, and what they have to be told."""


def main(word: str = "") -> None:
    """Measure, print and write; only methods with a word, and the others stay as they were."""
    import warnings

    warnings.filterwarnings("ignore", message="Stochastic Optimizer")  # ten passes are not meant to converge
    kept = json.loads(PATH.read_text(encoding="utf-8"))["methods"] if word else {}
    found: dict[str, Any] = {"samples": SAMPLES, "methods": kept}
    errors(evaluated, RUNS)  # compiles
    for name, (method, told) in METHODS.items():
        if word not in name:
            continue
        runs = [errors(method, seed) for seed in range(RUNS)]
        found["methods"][name] = {
            "to be told": told,
            "rmse": [[round(e, 3) for e in run["rmse"]] for run in runs],
            "seconds": [round(float(s), 4) for s in np.mean([run["seconds"] for run in runs], axis=0)],
        }
        print(name, np.mean([run["rmse"] for run in runs], axis=0), found["methods"][name]["seconds"], flush=True)
    PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
