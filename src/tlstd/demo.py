"""The demo: values of Mountain Car, from one stream by nine methods, and from a log with an error bar."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.classic.td import TD
from tlstd.classic.true_online_td import TrueOnlineTD
from tlstd.core.arrays import FloatArray
from tlstd.core.figures import new_figure, save
from tlstd.core.threads import one_thread
from tlstd.data.transitions import Transitions
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.policies import EpsilonGreedy
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.step_sizes import Decay
from tlstd.evaluation import true_values
from tlstd.evaluation.evaluate import evaluate
from tlstd.evaluation.report import Report
from tlstd.features.rbf import RBF
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.logs.log import Log
from tlstd.streams.simulated import record, trajectory
from tlstd.truncated.tlstd import TLSTD
from tlstd.zoo.atd import ATD
from tlstd.zoo.ilstd import ILSTD

if TYPE_CHECKING:
    from rich.table import Table

CAR = MountainCar()
LAMBDA = 0.9
GRID = 32
"""RBFs along each of the two axes."""
CHECKPOINTS = (250, 500, 1000, 2000, 3000, 4000)
METHODS: dict[str, Callable[[int], LinearEstimator]] = {
    "TD": lambda d: TD(d, step_size=0.02, lambda_=LAMBDA),
    "true-online TD": lambda d: TrueOnlineTD(d, step_size=0.02, lambda_=LAMBDA),
    "iLSTD": lambda d: ILSTD(d, step_size=Decay(0.003, 1000), lambda_=LAMBDA, coordinates_per_step=10),
    "ATD, rank 20": lambda d: ATD(d, 20, step_size=Decay(1.0, 0), lambda_=LAMBDA, eta=0.01),
    "t-LSTD, rank 20": lambda d: TLSTD(d, 20, lambda_=LAMBDA),
    "t-LSTD, rank 50": lambda d: TLSTD(d, 50, lambda_=LAMBDA),
    "t-LSTD, rank 100": lambda d: TLSTD(d, 100, lambda_=LAMBDA),
    "LSTD": lambda d: LSTD(d, lambda_=LAMBDA),
    "Krylov LSTD": lambda d: KrylovLSTD(d, lambda_=LAMBDA),
}
"""From the number of features. The step sizes are the best of a small sweep over another stream (seed 7)."""
PICTURES = ("TD", "t-LSTD, rank 50", "Krylov LSTD")
LOGGED, GAMMA = 8_000, 0.99


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
    features = RBF(CAR.low, CAR.high, grid=GRID, width=0.12)
    truth, X_grid = true_values(CAR, CAR.grid()), features.encode_many(CAR.grid())
    stream = record(CAR, None, features, n_steps=CHECKPOINTS[-1], seed=seed)
    d = features.n_features
    results = []
    for name, make in METHODS.items():
        report(name)
        _learn("warm-up", make(d), stream[: CHECKPOINTS[0]], X_grid, truth)  # compiles
        results.append(_learn(name, make(d), stream, X_grid, truth))
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

    out = Table(title=f"Mountain Car, {GRID**2} RBFs, {CHECKPOINTS[-1]} steps, λ={LAMBDA}")
    for heading in ("method", f"RMSE at {CHECKPOINTS[2]}", f"RMSE at {CHECKPOINTS[-1]}", "CPU time", "memory"):
        out.add_column(heading, justify="left" if heading == "method" else "right")
    for r in results:
        out.add_row(r.name, f"{r.errors[2]:.2f}", f"{r.errors[-1]:.2f}", f"{r.seconds:.2f} s", f"{r.megabytes:.2g} MB")
    return out


def draw(results: list[Result], truth: FloatArray, path: Path) -> None:
    """Write the figure: the true values, what three of the methods make of them, and the learning curves."""
    figure = new_figure(15, 3.2)
    axes = figure.subplots(1, 5, width_ratios=[1, 1, 1, 1, 1.7])
    pictures = [("true values", truth), *((r.name, r.values) for r in results if r.name in PICTURES)]
    extent = (CAR.low[0], CAR.goal, CAR.low[1], CAR.high[1])
    for axis, (name, values) in zip(axes, pictures, strict=False):
        image = axis.imshow(
            values.reshape(20, 20).T, origin="lower", aspect="auto", extent=extent, vmin=truth.min(), vmax=0.0
        )
        axis.set_title(name)
        axis.set_xlabel("position")
        axis.label_outer()
    axes[0].set_ylabel("velocity")
    figure.colorbar(image, ax=axes[:4], label="value", pad=0.01)
    colours = ("0.55", "0.2", "#E69F00", "#CC79A7", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#117733")
    for r, colour, marker in zip(results, colours, "x+PvosD^*", strict=True):
        axes[4].plot(CHECKPOINTS, r.errors, marker=marker, markersize=4, color=colour, label=r.name)
    axes[4].set(xlabel="samples", ylabel="RMSE on a 20 × 20 grid", yscale="log", title="learning curves")
    axes[4].set_yticks([5, 10, 20, 40], labels=["5", "10", "20", "40"])
    axes[4].minorticks_off()
    axes[4].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[4].spines[["top", "right"]].set_visible(False)
    save(figure, path)


def write_log(path: Path, *, seed: int = 0) -> Log:
    """Steps of a careless driver as a CSV file, and the same as a log: three times in ten any pedal is taken."""
    careless = EpsilonGreedy(CAR.policy(), [-1.0, 0.0, 1.0], epsilon=0.3)
    drive = trajectory(CAR, careless, n_steps=LOGGED, seed=seed, episode_cap=200)
    before, after = drive.states[drive.rows], drive.states[drive.rows + 1]
    ends = drive.terminated | drive.truncated
    columns = {
        "episode": np.cumsum(ends) - ends,
        "obs_0": before[:, 0],
        "obs_1": before[:, 1],
        "action": drive.actions.astype(np.int64) + 1,
        "reward": drive.rewards,
        "next_obs_0": after[:, 0],
        "next_obs_1": after[:, 1],
        "terminated": drive.terminated.astype(np.int64),
        "truncated": drive.truncated.astype(np.int64),
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return Log.from_arrays(
        before,
        drive.rewards,
        actions=columns["action"],
        terminated=drive.terminated,
        truncated=drive.truncated,
        episodes=columns["episode"],
        next_observations=after,
    )


def answer(log: Log) -> Report:
    """What the driver is worth."""
    return evaluate(log, gamma=GAMMA)
