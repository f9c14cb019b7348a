"""The demo: values of Mountain Car, learned from one stream by LSTD and by t-LSTD at three ranks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tlstd.domains import mountain_car
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.lstd import LSTD
from tlstd.estimators.tlstd import TLSTD
from tlstd.features.rbf import RBF
from tlstd.linalg.threads import one_thread
from tlstd.types import FloatArray, Transitions

if TYPE_CHECKING:
    from rich.table import Table

LAMBDA = 0.9
RANKS = (20, 50, 100)
CHECKPOINTS = (250, 500, 1000, 2000, 3000, 4000, 6000, 8000)


@dataclass(frozen=True, slots=True)
class Result:
    """What one method reached: RMSE at each checkpoint, CPU seconds of learning and solving, memory in MB."""

    name: str
    errors: list[float]
    seconds: float
    megabytes: float
    values: FloatArray


def run(*, seed: int = 0, report: Callable[[str], None] = lambda _: None) -> tuple[list[Result], FloatArray]:
    """Learn from one recorded stream with every method; returns the results and the true values of the 20 × 20 grid."""
    features = RBF(mountain_car.LOW, mountain_car.HIGH, grid=32, width=0.12)
    grid = mountain_car.grid(20)
    truth, X_grid = mountain_car.true_values(grid), features.encode_many(grid)
    stream = mountain_car.record(CHECKPOINTS[-1], features, np.random.default_rng(seed))
    d = features.n_features
    report("compiling")
    for warm_up in (TLSTD(d, 2, lambda_=LAMBDA), LSTD(d, lambda_=LAMBDA)):
        _learn("warm-up", warm_up, stream[: CHECKPOINTS[0]], X_grid, truth)
    models: dict[str, LinearEstimator] = {f"t-LSTD, rank {r}": TLSTD(d, r, lambda_=LAMBDA) for r in RANKS}
    models["LSTD"] = LSTD(d, lambda_=LAMBDA)
    results = []
    for name, model in models.items():
        report(name)
        results.append(_learn(name, model, stream, X_grid, truth))
    return results, truth


def _learn(name: str, model: LinearEstimator, stream: Transitions, X: FloatArray, truth: FloatArray) -> Result:
    errors, seconds, start = [], 0.0, 0
    values = np.zeros_like(truth)
    for stop in (c for c in CHECKPOINTS if c <= len(stream)):
        with one_thread():  # CPU time would add up what a second BLAS thread spends waiting
            begin = time.process_time()
            model.update_many(stream[start:stop])
            values = model.predict(X)
            seconds += time.process_time() - begin
        errors.append(float(np.sqrt(np.mean((values - truth) ** 2))))
        start = stop
    return Result(name, errors, seconds, 1e-6 * model.nbytes, values)


def table(results: list[Result]) -> Table:
    """The results as a table for the terminal."""
    from rich.table import Table

    out = Table(title=f"Mountain Car, 1024 RBFs, {CHECKPOINTS[-1]} steps, λ={LAMBDA}")
    for heading in ("method", f"RMSE at {CHECKPOINTS[2]}", f"RMSE at {CHECKPOINTS[-1]}", "CPU time", "memory"):
        out.add_column(heading, justify="left" if heading == "method" else "right")
    for r in results:
        out.add_row(r.name, f"{r.errors[2]:.2f}", f"{r.errors[-1]:.2f}", f"{r.seconds:.2f} s", f"{r.megabytes:.1f} MB")
    return out


def draw(results: list[Result], truth: FloatArray, path: Path) -> None:
    """Write the figure: the true values, what the smallest and largest rank make of them, and the learning curves."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(14, 3.4), layout="constrained", width_ratios=[1, 1, 1, 1.3])
    pictures = [("true values", truth), *((r.name, r.values) for r in (results[0], results[-2]))]
    extent = (mountain_car.LOW[0], mountain_car.GOAL, mountain_car.LOW[1], mountain_car.HIGH[1])
    for axis, (name, values) in zip(axes, pictures, strict=False):
        image = axis.imshow(
            values.reshape(20, 20).T, origin="lower", aspect="auto", extent=extent, vmin=truth.min(), vmax=0.0
        )
        axis.set_title(name)
        axis.set_xlabel("position")
    axes[0].set_ylabel("velocity")
    figure.colorbar(image, ax=axes[:3], label="value", pad=0.01)
    for r, colour, marker in zip(results, ("#56B4E9", "#009E73", "#0072B2", "#D55E00"), "osD^", strict=True):
        axes[3].plot(CHECKPOINTS, r.errors, marker=marker, markersize=4, color=colour, label=r.name)
    axes[3].set(xlabel="samples", ylabel="RMSE on a 20 × 20 grid", yscale="log", title="learning curves")
    axes[3].set_yticks([5, 10, 20], labels=["5", "10", "20"])
    axes[3].minorticks_off()
    axes[3].legend(frameon=False, fontsize=8)
    axes[3].spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
