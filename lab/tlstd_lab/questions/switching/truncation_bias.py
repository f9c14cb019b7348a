"""Does TD remove t-LSTD's truncation bias? On Mountain Car's tiles, with rank 30 of 1,000 features and λ=1.

The paper names two ways to combine t-LSTD with TD. Measured here against their parts: ``ATD`` (both at every step) and
``Handover`` (first t-LSTD, then TD from its weights). Step sizes are chosen on other seeds than those reported, by the
error after the last sample.

    uv run python -m tlstd_lab.questions.switching.truncation_bias --out docs/figures
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.atd import ATD
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.handover import Handover
from tlstd.estimators.lstd import LSTD
from tlstd.estimators.step_sizes import Decay
from tlstd.estimators.td import TD
from tlstd.estimators.tlstd import TLSTD
from tlstd.evaluation import true_values
from tlstd.features.tile_coding import TileCoder
from tlstd.figures import new_figure, save
from tlstd.streams.simulated import record
from tlstd.types import FloatArray
from tlstd_lab.drawing import output_folder

RANK, LAMBDA = 30, 1.0
SAMPLES = (500, 1000, 2000, 4000, 8000, 15_000, 30_000)
SEEDS = range(8)
TUNING_SEEDS = range(100, 103)
STEP_SIZES = (0.001, 0.003, 0.01, 0.03)
CAR = MountainCar()
TILES = TileCoder(CAR.low, CAR.high, tiles=10, tilings=10)

METHODS: dict[str, Callable[[int, float], LinearEstimator]] = {
    "t-LSTD": lambda d, _: TLSTD(d, RANK, lambda_=LAMBDA),
    "TD": lambda d, alpha: TD(d, step_size=alpha, lambda_=LAMBDA),
    "ATD": lambda d, eta: ATD(d, RANK, step_size=Decay(1.0, 0), lambda_=LAMBDA, eta=eta, buffer_size=RANK),
    "t-LSTD, then TD": lambda d, alpha: Handover(
        TLSTD(d, RANK, lambda_=LAMBDA), TD(d, step_size=alpha, lambda_=LAMBDA), settled=0.3
    ),
    "LSTD": lambda d, _: LSTD(d, lambda_=LAMBDA),
}
"""From the number of features and TD's step size; the first and the last have none."""


def errors(make: Callable[[int, float], LinearEstimator], step_size: float, seed: int) -> list[float]:
    """RMSE on the 20 × 20 grid after each number of ``SAMPLES``."""
    stream = record(CAR, None, TILES, n_steps=SAMPLES[-1], seed=seed)
    truth, X = true_values(CAR, CAR.grid()), TILES.encode_many(CAR.grid())
    model, out = make(TILES.n_features, step_size), []
    for start, stop in zip((0, *SAMPLES), SAMPLES, strict=False):
        model.update_many(stream[start:stop])
        out.append(float(np.sqrt(np.mean((model.predict(X) - truth) ** 2))))
    return out


def run(report: Callable[[str], None] = print) -> dict[str, tuple[float | None, FloatArray]]:
    """Step size and errors (seeds, samples) of every method."""
    results: dict[str, tuple[float | None, FloatArray]] = {}
    for name, make in METHODS.items():
        best = None if name in ("t-LSTD", "LSTD") else min(STEP_SIZES, key=lambda a: _mean_error(make, a, TUNING_SEEDS))
        curves = np.array([errors(make, best or 0.0, seed) for seed in SEEDS])
        results[name] = best, curves
        mean, half = curves[:, -1].mean(), _half_width(curves)[-1]
        report(f"{name:16} step size {best}: RMSE {mean:.2f} ± {half:.2f} after {SAMPLES[-1]} samples")
    return results


def _mean_error(make: Callable[[int, float], LinearEstimator], step_size: float, seeds: Iterable[int]) -> float:
    last = np.mean([errors(make, step_size, seed)[-1] for seed in seeds])
    return float(last) if np.isfinite(last) else np.inf


def _half_width(curves: FloatArray) -> FloatArray:
    """Half of a 95% interval of the mean, by Student's t."""
    from scipy.stats import t

    n = len(curves)
    width: FloatArray = t.ppf(0.975, n - 1) * curves.std(axis=0, ddof=1) / np.sqrt(n)
    return width


def draw(results: dict[str, tuple[float | None, FloatArray]], path: Path) -> None:
    """One panel: errors against samples, mean and 95% interval over seeds."""
    figure = new_figure(5.5, 3.6)
    axis = figure.subplots()
    colours = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "0.35")
    for (name, (step_size, curves)), colour, marker in zip(results.items(), colours, "soD^v", strict=True):
        mean, half = curves.mean(axis=0), _half_width(curves)
        label = name if step_size is None else f"{name}, step size {step_size:g}"
        axis.plot(SAMPLES, mean, marker=marker, markersize=4, color=colour, label=label)
        axis.fill_between(SAMPLES, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axis.set(xscale="log", yscale="log", xlabel="samples", ylabel="RMSE on a 20 × 20 grid", ylim=(None, 80))
    axis.set_xticks([500, 1000, 3000, 10_000, 30_000], labels=["500", "1,000", "3,000", "10,000", "30,000"])
    axis.set_yticks([3, 5, 10, 20, 40], labels=["3", "5", "10", "20", "40"])
    axis.minorticks_off()
    axis.set_title(f"Mountain Car, 1,000 tiles, rank {RANK}, λ={LAMBDA:g}", fontsize=10)
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def main() -> None:
    """Run everything (about 15 minutes), write ``truncation_bias.json`` and ``.png``, and say what came out."""
    folder = output_folder(__doc__)
    results = run()
    draw(results, folder / "truncation_bias.png")
    text = {
        name: {"step_size": a, "samples": SAMPLES, "rmse": curves.tolist()} for name, (a, curves) in results.items()
    }
    (folder / "truncation_bias.json").write_text(json.dumps(text) + "\n")


if __name__ == "__main__":
    main()
