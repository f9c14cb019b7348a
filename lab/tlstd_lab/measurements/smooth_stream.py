"""Why Krylov LSTD has a larger error on one stream of energy storage with random Fourier features.

uv run python -m tlstd_lab.measurements.smooth_stream     # ten seconds; prints tables, writes nothing

Thirty streams of 1,000 samples. Rules for the dimension beside the default one, the best fixed one, and what a stream
shows of the states where renewable energy and price are both high, whose values are the largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlstd import LSTD, KrylovLSTD
from tlstd.core.arrays import FloatArray
from tlstd.core.threads import one_thread
from tlstd.streams import trajectory
from tlstd_lab.problems import EVALUATION_SEED, problem, stream
from tlstd_lab.tables import table

NAME = "energy-fourier"
SAMPLES, STREAMS = 1_000, 30
DIMENSIONS = range(1, 31)
RICH = {"renewable": (1, 6.0), "price": (2, 50.0)}
"""Columns of the observations, and from where on they are high."""
RIDGE = 1e-4


def rich(observations: FloatArray) -> NDArray[np.bool_]:
    """Where renewable energy and price are both high."""
    high = [observations[:, column] >= low for column, low in RICH.values()]
    both: NDArray[np.bool_] = high[0] & high[1]
    return both


def evaluated() -> FloatArray:
    """Observations of the states where errors are measured."""
    made = problem(NAME)
    states = trajectory(made.domain, made.policy, n_steps=10_000, seed=EVALUATION_SEED).states[::10]
    return np.asarray(made.domain.observe(states))


def errors_on(seed: int) -> dict[str, float]:
    """Errors after the samples of one stream: by rule, with the dimensions, and by kind of state."""
    made, steps, here = problem(NAME), stream(NAME, SAMPLES, seed), rich(evaluated())

    def error(model: KrylovLSTD | LSTD) -> float:
        model.update_many(steps)
        return made.rmse(model.predict(made.X))

    by = {m: error(KrylovLSTD(made.n_features, lambda_=0.9, dimension=m)) for m in DIMENSIONS}
    auto = KrylovLSTD(made.n_features, lambda_=0.9)
    found = {"auto": error(auto)}
    wrong = auto.predict(made.X) - made.truth
    (choice,) = auto.choices
    near = 1 + np.flatnonzero(choice.scores <= choice.scores.min() + choice.standard_errors[choice.scores.argmin()])
    best = min(by, key=lambda m: by[m])
    path = trajectory(made.domain, made.policy, n_steps=SAMPLES, seed=seed)
    return found | {
        "smallest within one standard error": by[int(near[0])],
        "largest within one standard error": by[min(int(near[-1]), DIMENSIONS[-1])],
        "twice the chosen one": by[min(2 * choice.dimension, DIMENSIONS[-1])],
        **{f"always {m}": by[m] for m in (5, 8, 10, 12, 16, 20)},
        "best in hindsight": by[best],
        f"LSTD, ridge {RIDGE:g}": error(LSTD(made.n_features, lambda_=0.9, ridge=RIDGE)),
        "dimension": choice.dimension,
        "best dimension": best,
        "rmse, rich": float(np.sqrt((wrong[here] ** 2).mean())),
        "bias, rich": float(wrong[here].mean()),
        "rmse, elsewhere": float(np.sqrt((wrong[~here] ** 2).mean())),
        "largest reward": float(steps.rewards.max()),
        "share": float(rich(made.domain.observe(path.states[:-1])).mean()),
    }


def of(model: KrylovLSTD, seed: int, n: int) -> float:
    """The error of a model after the first samples of a stream."""
    made = problem(NAME)
    model.update_many(stream(NAME, n, seed))
    return made.rmse(model.predict(made.X))


def main() -> None:
    """Print the rules, then the streams with the largest errors."""
    with one_thread(), np.errstate(all="ignore"):
        rows = [errors_on(seed) for seed in range(STREAMS)]
    made = problem(NAME)
    rules = list(rows[0])[: list(rows[0]).index("dimension")]
    worst = int(np.argmax([row["auto"] for row in rows]))
    lines = []
    for name in rules:
        errors = np.array([row[name] for row in rows])
        lines.append([name, f"{errors.mean():.1f}", f"{errors.max():.0f}", f"{errors[worst]:.0f}"])
    print(table(["dimension", "mean RMSE", "largest", f"stream {worst}"], lines), "\n")
    others = [row for i, row in enumerate(rows) if i != worst]
    for name in list(rows[0])[len(rules) + 2 :]:
        mean = np.mean([row[name] for row in others])
        print(f"{name}: stream {worst} {rows[worst][name]:.4g}, mean of the others {mean:.4g}")
    here = rich(evaluated())
    values = made.truth[here].mean(), made.truth[~here].mean()
    print(f"evaluated states: {here.mean():.3f} rich, mean value {values[0]:.0f}, elsewhere {values[1]:.0f}")
    for lambda_ in (0.0, 0.4, 0.8, 0.9, 1.0):
        print(f"stream {worst}, λ={lambda_:g}: {of(KrylovLSTD(made.n_features, lambda_=lambda_), worst, SAMPLES):.0f}")
    for n in (1_000, 1_500, 2_000, 4_000):
        print(f"stream {worst}, {n:,} samples: {of(KrylovLSTD(made.n_features, lambda_=0.9), worst, n):.0f}")
    lines = []
    for i in np.argsort([-row["auto"] for row in rows]):
        row = rows[i]
        words = [f"{row[name]:.0f}" for name in ("auto", "dimension", "best in hindsight", "best dimension")]
        lines.append([str(i), *words, f"{row['share']:.3f}"])
    print(table(["stream", "auto", "dimension", "best in hindsight", "its dimension", "share of rich states"], lines))


if __name__ == "__main__":
    main()
