"""The paper's algorithms as printed against the corrected ones, on Mountain Car with RBFs.

Each is fed the same stream; recorded are the loss of orthogonality max|UᵀU - I| and the error of the learned values.

    uv run python -m tlstd.experiments.printed_algorithms --out docs/figures
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.tlstd import TLSTD
from tlstd.evaluation import true_values
from tlstd.experiments.figures import new_figure, output_folder, save
from tlstd.features.rbf import RBF
from tlstd.linalg.reference import ReferenceTLSTD
from tlstd.streams.simulated import record
from tlstd.types import Transitions

RANK, LAMBDA, N_STEPS, EVERY, RCOND = 50, 0.0, 1_000, 50, 0.01
Curve: TypeAlias = dict[str, list[float]]


def run(seed: int = 0) -> dict[str, Curve]:
    """Orthogonality and RMSE along the stream for each algorithm: printed and corrected, k=r and k=1, and ``TLSTD``."""
    car = MountainCar()
    features = RBF(car.low, car.high, grid=32, width=0.12)
    steps = record(car, None, features, n_steps=N_STEPS, seed=seed)
    X, truth = features.encode_many(car.grid()), true_values(car, car.grid())

    def rmse(weights: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        return float(np.sqrt(np.mean((X @ weights - truth) ** 2)))

    curves: dict[str, Curve] = {}
    for printed in (True, False):
        for mini_batch in (True, False):
            model = ReferenceTLSTD(
                features.n_features, RANK, lambda_=LAMBDA, mini_batch=mini_batch, rcond=RCOND, as_printed=printed
            )
            curve: Curve = {"samples": [], "orthogonality": [], "rmse": []}
            for i, start in enumerate(range(0, N_STEPS, EVERY)):
                _feed(model, steps[start : start + EVERY])
                U = model.U
                curve["samples"].append(float((i + 1) * EVERY))
                curve["orthogonality"].append(float(np.abs(U.T @ U - np.eye(U.shape[1])).max(initial=0.0)))
                curve["rmse"].append(rmse(model.weights))
            curves[f"{'printed' if printed else 'corrected'}, k={'r' if mini_batch else '1'}"] = curve
    ours = TLSTD(features.n_features, RANK, lambda_=LAMBDA, rcond=RCOND, buffer_size=RANK)
    curve = {"samples": [], "orthogonality": [], "rmse": []}
    for i, start in enumerate(range(0, N_STEPS, EVERY)):
        ours.update_many(steps[start : start + EVERY])
        curve["samples"].append(float((i + 1) * EVERY))
        curve["orthogonality"].append(ours.orthogonality_error())
        curve["rmse"].append(rmse(ours.weights))
    curves["TLSTD"] = curve
    return curves


def _feed(model: ReferenceTLSTD, steps: Transitions) -> None:
    for t in steps:
        model.update(
            np.asarray(t.x),
            float(t.reward),
            np.asarray(t.x_next),
            discount=t.discount,
            trace_discount=t.trace_discount,
        )


def draw(curves: dict[str, Curve], path: Path) -> None:
    """Two panels: orthogonality and error along the stream."""
    styles = {
        "printed, k=r": ("#E69F00", "-"),
        "printed, k=1": ("#D55E00", "-"),
        "corrected, k=r": ("#56B4E9", "-"),
        "corrected, k=1": ("#009E73", "--"),
        "TLSTD": ("#0072B2", ":"),
    }
    figure = new_figure(9, 3.3)
    axes = figure.subplots(1, 2)
    for name, curve in curves.items():
        colour, style = styles[name]
        for axis, quantity in zip(axes, ("orthogonality", "rmse"), strict=True):
            axis.plot(curve["samples"], np.maximum(curve[quantity], 1e-16), style, color=colour, label=name)
    axes[0].set(ylabel="max|UᵀU − I|", yscale="log", title="loss of orthogonality")
    axes[1].set(ylabel="RMSE on a 20 × 20 grid", yscale="log", title="error of the values")
    for axis in axes:
        axis.set_xlabel("samples")
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].legend(frameon=False, fontsize=8)
    save(figure, path)


def main() -> None:
    """Run, write ``printed_algorithms.json`` and ``.png``, and say what came out."""
    folder = output_folder(__doc__)
    curves = run()
    for name, curve in curves.items():
        last = {quantity: values[-1] for quantity, values in curve.items()}
        print(f"{name:15} {N_STEPS} samples: max|UᵀU-I| {last['orthogonality']:.1e}, RMSE {last['rmse']:.2f}")
    draw(curves, folder / "printed_algorithms.png")
    (folder / "printed_algorithms.json").write_text(json.dumps(curves, indent=1) + "\n")


if __name__ == "__main__":
    main()
