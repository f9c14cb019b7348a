"""Does the truncated SVD re-orient itself? Its distance to A over time, and after the stream has changed.

The paper leaves open whether an incremental SVD that throws directions away converges to the best one. Measured here:
the ratio ‖A_t - UΣVᵀ‖_F / (Eckart–Young optimum) along Mountain Car streams with tiles and with RBFs, and for a
stream that comes from the left half of the state space for 5,000 steps and from the right half from then on.

    uv run python -m tlstd.experiments.reorientation --out docs/figures
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.lstd import LSTD
from tlstd.estimators.tlstd import TLSTD
from tlstd.experiments.figures import new_figure, output_folder, save
from tlstd.features.combine import FeatureMap
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import record
from tlstd.types import FloatArray, IntArray, Transitions

CAR = MountainCar()
MAPS: dict[str, FeatureMap] = {
    "tiles": TileCoder(CAR.low, CAR.high, tiles=10, tilings=10),
    "RBFs": RBF(CAR.low, CAR.high, grid=32, width=0.12),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """One curve: which features and stream, the rank, λ, the buffer and the forgetting factor."""

    features: str
    change_at: int | None = None
    rank: int = 50
    lambda_: float = 0.0
    buffer_size: int | None = None
    beta: float | None = None
    n_steps: int = 10_000
    n_points: int = 25
    seed: int = 0


CURVES = [
    Settings("tiles"),
    Settings("tiles", buffer_size=50),
    Settings("RBFs"),  # here the default buffer is the rank
    *(Settings(features, change_at=5_000, n_steps=20_000, beta=beta) for features in MAPS for beta in (None, 1e-3)),
]


def stream(settings: Settings) -> Transitions:
    """Mountain Car transitions; with ``change_at``, single steps left of the valley, then right of it."""
    n, features = settings.n_steps, MAPS[settings.features]
    if settings.change_at is None:
        return record(CAR, None, features, n_steps=n, seed=settings.seed)
    # random states of one half, then of the other: the two share hardly any feature
    states = CAR.start(8 * n, np.random.default_rng(settings.seed))
    bottom = -np.pi / 6.0
    left, right = states[states[:, 0] < bottom][: settings.change_at], states[states[:, 0] >= bottom]
    states = np.concatenate([left, right])[:n]
    after, rewards, terminated = CAR.step(states, CAR.policy().function(states))
    return Transitions(
        features.encode_many(states),
        rewards,
        features.encode_many(after),
        discounts=np.where(terminated, 0.0, 0.99),
        trace_discounts=np.zeros(n),
    )


def run(settings: Settings) -> dict[str, list[float]]:
    """Ratio to the Eckart–Young optimum, and the share of A's leading left subspace that U holds, along the stream."""
    steps = stream(settings)
    d = steps.n_features
    exact = LSTD(d, lambda_=settings.lambda_, beta=settings.beta)
    model = TLSTD(d, settings.rank, lambda_=settings.lambda_, beta=settings.beta, buffer_size=settings.buffer_size)
    curve: dict[str, list[float]] = {"samples": [], "ratio": [], "overlap": []}
    for points in np.array_split(np.arange(settings.n_steps), settings.n_points):
        part = steps[int(points[0]) : int(points[-1]) + 1]
        exact.update_many(part)
        model.update_many(part)
        ids, A, _ = exact.system()
        ratio, overlap = _compare(ids, A, model, settings.rank)
        curve["samples"].append(float(points[-1] + 1))
        curve["ratio"].append(ratio)
        curve["overlap"].append(overlap)
    return curve


def _compare(ids: IntArray, A: FloatArray, model: TLSTD, rank: int) -> tuple[float, float]:
    seen, U, sigma, V = model.factors()
    every = np.zeros((2, model.n_features, sigma.size))
    every[:, seen] = U, V
    U, V = every[:, ids]  # rows in the order of LSTD's features
    best_U, best_sigma, _ = np.linalg.svd(A)
    best = np.sqrt((best_sigma[rank:] ** 2).sum())
    overlap = np.linalg.norm(best_U[:, :rank].T @ U) ** 2 / sigma.size
    return float(np.linalg.norm(A - (U * sigma) @ V.T) / best), float(overlap)


def draw(curves: list[tuple[Settings, dict[str, list[float]]]], path: Path) -> None:
    """Two panels: the steady streams, and the streams that change."""
    figure = new_figure(9, 3.3)
    axes = figure.subplots(1, 2)
    colours = {"tiles": "#0072B2", "RBFs": "#D55E00"}
    for settings, curve in curves:
        axis = axes[int(settings.change_at is not None)]
        if settings.change_at is not None:
            axis.axvline(settings.change_at, color="0.6", linewidth=0.8)
            label = f"{settings.features}, " + ("running average" if settings.beta is None else f"β={settings.beta:g}")
            solid = settings.beta is None
        else:
            label = f"{settings.features}, buffer " + ("by default" if settings.buffer_size is None else "= rank")
            solid = settings.buffer_size is None
        axis.plot(
            curve["samples"], curve["ratio"], "-" if solid else "--", color=colours[settings.features], label=label
        )
    axes[0].set(title="one stream", ylabel="‖A − UΣVᵀ‖ / best possible at rank 50")
    axes[1].set(title="states from one half, then from the other")
    for axis in axes:
        axis.set(xlabel="samples", ylim=(0.99, None))
        axis.locator_params(axis="x", nbins=5)
        axis.legend(frameon=False, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def main(report: Callable[[str], None] = print) -> None:
    """Run all curves, write ``reorientation.json`` and ``reorientation.png``, and say what came out."""
    folder = output_folder(__doc__)
    curves = []
    for settings in CURVES:
        curve = run(settings)
        curves.append((settings, curve))
        report(
            f"{settings.features:6} change_at={settings.change_at} buffer={settings.buffer_size} beta={settings.beta}: "
            f"ratio largest {max(curve['ratio']):.3f}, at the end {curve['ratio'][-1]:.3f}; "
            f"overlap with the best subspace at the end {curve['overlap'][-1]:.3f}"
        )
    draw(curves, folder / "reorientation.png")
    text = json.dumps([{"settings": asdict(s), **c} for s, c in curves], indent=1)
    (folder / "reorientation.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
