"""Draw the ideas behind the library: transitions and their discounts, traces, the LSTD system, truncation, tracking.

The pictures of ``docs/concepts.md``; some ten seconds.

    uv run python -m tlstd_lab.pictures.concepts --out docs/figures
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.figures import new_figure, save
from tlstd.data.transitions import Transitions
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.random_walk import random_walk
from tlstd.evaluation import true_values
from tlstd.features.rbf import RBF
from tlstd.streams.simulated import record
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab import drawing
from tlstd_lab.chart import sequence
from tlstd_lab.drawing import output_folder

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
STYLE: Any = {**drawing.STYLE, "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8}
"""The look of the other figures, a little larger: these are read on a page, not in a column."""

GAMMA = 0.9
LAMBDAS = (0.0, 0.5, 0.9, 1.0)
RANKS = (3, 10, 30)
"""Of the approximations of A that are shown."""
SAMPLES = (200, 600, 5000)
"""After which the error is drawn against the rank."""
BETAS = (None, 0.003)
CHANGE, LENGTH = 3000, 6000
"""When the rewards change, and how long the stream is."""


# --- transitions ------------------------------------------------------------------------------------------------------


def draw_transitions(path: Path) -> None:
    """Write two episodes as chains of states, one that terminates and one that is cut off, with their discounts."""
    figure = new_figure(8.2, 2.1)
    axis: Any = figure.add_subplot()
    _episode(axis, 0.0, ["$x_0$", "$x_1$", "$x_2$"], "goal", terminated=True)
    _episode(axis, 5.0, ["$x_4$", "$x_5$"], "$x_6$", terminated=False)
    axis.text(-0.75, -0.75, "discount", va="center", ha="right", color=BLUE)
    axis.text(-0.75, -1.2, "trace discount", va="center", ha="right", color=ORANGE)
    axis.text(1.5, 0.75, "terminated: nothing comes after", ha="center", color=GREY)
    axis.text(6.0, 0.75, "truncated: recording stops, the world goes on", ha="center", color=GREY)
    axis.set(xlim=(-2.1, 8.2), ylim=(-1.45, 0.95))
    axis.set_axis_off()
    save(figure, path)


def _episode(axis: Any, start: float, states: list[str], last: str, *, terminated: bool) -> None:
    """States from left to right, an arrow with its reward and discounts between neighbours."""
    for i, name in enumerate([*states, last]):
        ending = i == len(states)
        colour = "#dddddd" if ending and terminated else "white"
        circle = {"boxstyle": "circle,pad=0.35", "facecolor": colour, "edgecolor": "black"}
        axis.text(start + i, 0.0, name, ha="center", va="center", bbox=circle, fontsize=8 if name == "goal" else 10)
        if ending:
            break
        arrow = {"arrowstyle": "-|>", "color": "black", "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", (start + i + 0.68, 0.0), (start + i + 0.32, 0.0), arrowprops=arrow)
        axis.text(start + i + 0.5, 0.16, f"$r_{{{int(start) - (start > 0) + i + 1}}}$", ha="center")
        bootstraps = not (terminated and i == len(states) - 1)
        axis.text(start + i + 0.5, -0.75, "γ" if bootstraps else "0", ha="center", va="center", color=BLUE, fontsize=11)
        axis.text(start + i + 0.5, -1.2, "γ" if i else "0", ha="center", va="center", color=ORANGE, fontsize=11)
    if not terminated:
        end = start + len(states)
        dotted = {"arrowstyle": "-|>", "color": GREY, "linestyle": ":", "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", (end + 1.1, 0.0), (end + 0.35, 0.0), arrowprops=dotted)


# --- traces -----------------------------------------------------------------------------------------------------------


def draw_traces(path: Path) -> None:
    """Write how much of a reward earlier states get, and the trace of one feature through two episodes."""
    figure = new_figure(8.2, 3.0)
    left, right = figure.subplots(1, 2)
    ago = np.arange(21)
    for number, lambda_ in enumerate(LAMBDAS):
        colour = sequence(number, len(LAMBDAS))
        left.plot(ago, (GAMMA * lambda_) ** ago, "o-", color=colour, label=f"λ={lambda_:g}")
    left.set(
        xticks=range(0, 21, 5),
        xlabel="steps ago",
        ylabel="share",
        title=f"what a surprise teaches earlier states, γ={GAMMA:g}",
    )
    left.legend()
    active, start = np.array([2, 3, 8, 18, 19, 24]), 15
    for lambda_, colour in ((0.9, sequence(2, 4)), (0.5, sequence(1, 4))):
        z, heights = 0.0, []
        for t in range(30):
            z = (0.0 if t == start else GAMMA * lambda_ * z) + float(t in active)
            heights.append(z)
        right.step(np.arange(30), heights, where="post", color=colour, label=f"λ={lambda_:g}")
    right.plot(active + 0.5, np.full(active.size, -0.12), "|", color="black", markersize=7)
    right.axvline(start, color=GREY, linestyle="--")
    right.text(start + 0.3, 2.5, "a new episode:\nthe trace is empty", color=GREY, va="top", fontsize=8)
    right.set(
        xlabel="step", ylabel="trace", title="the trace of one feature; ticks: when it is active", ylim=(-0.25, 2.6)
    )
    right.legend(loc="upper left")
    save(figure, path)


# --- the system and its truncation ------------------------------------------------------------------------------------


def rows(steps: Transitions, lambda_: float) -> tuple[FloatArray, FloatArray]:
    """Traces z_t and differences d_t of each step, by their definition: A is the mean of z dᵀ, b that of z r."""
    X, X_next = np.asarray(steps.X), np.asarray(steps.X_next)
    z, Z = np.zeros(X.shape[1]), np.empty_like(X)
    for t, decay in enumerate(lambda_ * steps.trace_discounts):
        z = decay * z + X[t]
        Z[t] = z
    return Z, X - steps.discounts[:, None] * X_next


def draw_system(path: Path) -> None:
    """Write A of Mountain Car with 64 RBFs, three approximations of low rank, and the singular values."""
    car = MountainCar()
    features = RBF(car.low, car.high, grid=8, width=0.15)
    Z, D = rows(record(car, None, features, n_steps=5000, seed=0), lambda_=0.0)
    A = Z.T @ D / len(Z)
    U, sigma, Vt = np.linalg.svd(A)
    figure: Any = new_figure(8.2, 4.6)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.0, 0.85))
    axes = top.subplots(1, len(RANKS) + 1)
    limit = float(np.abs(A).max()) / 3.0
    for axis, rank in zip(axes, (None, *RANKS), strict=True):
        shown = A if rank is None else (U[:, :rank] * sigma[:rank]) @ Vt[:rank]
        axis.imshow(shown, cmap="RdBu_r", vmin=-limit, vmax=limit)
        size = A.size if rank is None else 2 * rank * len(A)
        lost = 0.0 if rank is None else float(np.linalg.norm(shown - A) / np.linalg.norm(A))
        title = "A" if rank is None else f"rank {rank}, {lost:.0%} lost"
        axis.set(title=f"{title}\n{size:,} numbers", xticks=(), yticks=())
        axis.grid(visible=False)
    left, right = bottom.subplots(1, 2)
    left.semilogy(np.arange(1, sigma.size + 1), sigma / sigma[0], ".", color=ORANGE)
    for rank in RANKS:
        left.axvline(rank + 0.5, color=GREY, linewidth=0.8)
        left.text(rank + 1.0, 3e-6 if rank == RANKS[1] else 6e-7, f"rank {rank}", color=GREY, fontsize=8)
    left.axhline(1e-4, color="black", linestyle="--", linewidth=0.8)
    left.text(36.0, 3e-5, "cut-off", fontsize=8)
    left.set(title="singular values of A over the largest", xlabel="number of the singular value", ylim=(3e-7, 3))
    _draw_shapes(right)
    save(figure, path)


def _draw_shapes(axis: Any) -> None:
    """A of d × d as a tall, a diagonal and a wide matrix."""
    from matplotlib.patches import Rectangle

    for x, y, width, height, name in (
        (0.0, 0.0, 3.0, 3.0, "A\nd × d"),
        (4.2, 0.0, 1.0, 3.0, "U\nd × r"),
        (5.5, 2.0, 1.0, 1.0, "Σ"),
        (6.8, 2.0, 3.0, 1.0, "Vᵀ\nr × d"),
    ):
        axis.add_patch(Rectangle((x, y), width, height, facecolor="#f3d9c6", edgecolor="black"))
        axis.text(x + width / 2, y + height / 2, name, ha="center", va="center", fontsize=8)
    axis.text(3.6, 1.5, "≈", ha="center", va="center", fontsize=14)
    axis.set(xlim=(-0.2, 10.0), ylim=(-0.2, 3.2), aspect="equal", title="what t-LSTD keeps")
    axis.set_axis_off()


def errors_by_rank(n_streams: int, lambda_: float = 0.9) -> dict[int, FloatArray]:
    """RMSE (streams, ranks) of the truncated solutions of Mountain Car with 100 RBFs, by number of samples."""
    car = MountainCar()
    features = RBF(car.low, car.high, grid=10, width=0.15, bias=True)
    X, truth = features.encode_many(car.grid()), true_values(car, car.grid())
    errors = {n: np.empty((n_streams, features.n_features)) for n in SAMPLES}
    for run in range(n_streams):
        steps = record(car, None, features, n_steps=max(SAMPLES), seed=run)
        Z, D = rows(steps, lambda_)
        for n in SAMPLES:
            U, sigma, Vt = np.linalg.svd(Z[:n].T @ D[:n])
            b = Z[:n].T @ steps.rewards[:n]
            parts = (X @ Vt.T) * ((U.T @ b) / np.maximum(sigma, 1e-12 * sigma[0]))
            errors[n][run] = np.sqrt(np.mean((np.cumsum(parts, axis=1) - truth[:, None]) ** 2, axis=0))
    return errors


def draw_truncation(path: Path, *, n_streams: int = 30) -> None:
    """Write the error against the rank after few and after many samples."""
    figure = new_figure(5.6, 3.2)
    axis: Any = figure.add_subplot()
    for number, (n, errors) in enumerate(errors_by_rank(n_streams).items()):
        middle = np.median(errors, axis=0)
        best = int(middle.argmin())
        colour = sequence(number, len(SAMPLES))
        axis.plot(np.arange(1, middle.size + 1), middle, color=colour, label=f"{n:,} samples")
        axis.plot(best + 1, middle[best], "o", color=colour, markersize=7)
    axis.set(
        xlabel="rank",
        ylabel="RMSE",
        ylim=(0, 45),
        title="Mountain Car, 100 RBFs and a bias, no cut-off; dots: the best rank",
    )
    axis.text(3, 2, "bias", color=GREY)
    axis.text(90, 40, "variance", color=GREY, ha="right")
    axis.legend(loc="upper center")
    save(figure, path)


# --- the buffer, and tracking -----------------------------------------------------------------------------------------


def draw_buffer_and_tracking(path: Path) -> None:
    """Write how many directions a model holds while its buffer fills, and how two models follow changing rewards."""
    figure = new_figure(8.2, 3.0)
    left, right = figure.subplots(1, 2)
    rank, buffer = 20, 40
    samples = np.arange(0, 201)
    held = rank + samples % buffer
    held[:rank] = np.minimum(samples[:rank], rank)
    held[: buffer + 1] = samples[: buffer + 1]
    held[buffer] = rank
    left.plot(samples, held, color=ORANGE)
    left.axhline(rank, color=GREY, linestyle="--")
    left.text(200, rank - 5, "rank", ha="right", color=GREY)
    left.set(
        xlabel="samples", ylabel="directions in use", ylim=(0, 70), title=f"rank {rank}, buffer of {buffer} samples"
    )
    chain = random_walk(n_states=9, gamma=GAMMA)
    first = chain.sample(LENGTH, np.random.default_rng(0))
    rewards = np.where(np.arange(LENGTH) < CHANGE, first.rewards, -first.rewards)
    stream = Transitions.from_rows(
        first.store,
        first.rows,
        rewards,
        first.next_rows,
        discounts=first.discounts,
        trace_discounts=first.trace_discounts,
    )
    middle, truth = np.eye(9)[6], float(chain.values()[6])
    at = np.arange(100, LENGTH + 1, 100)
    for beta, colour in zip(BETAS, (BLUE, ORANGE), strict=True):
        model, values = TLSTD(9, rank=9, lambda_=0.5, beta=beta), []
        for stop in at:
            model.update_many(stream[stop - 100 : stop])
            values.append(model.predict(middle))
        right.plot(at, values, color=colour, label="running average" if beta is None else f"beta={beta:g}")
    right.plot(
        [0, CHANGE, CHANGE, LENGTH], [truth, truth, -truth, -truth], color="black", linestyle="--", label="true value"
    )
    right.set(xlabel="samples", ylabel="value of one state", title="rewards change their sign in the middle")
    right.legend()
    save(figure, path)


# --- command ----------------------------------------------------------------------------------------------------------

PICTURES: dict[str, Callable[[Path], None]] = {
    "concept_transitions.png": draw_transitions,
    "concept_traces.png": draw_traces,
    "concept_system.png": draw_system,
    "concept_truncation.png": draw_truncation,
    "concept_buffer_and_tracking.png": draw_buffer_and_tracking,
}


def main(report: Callable[[str], None] = print) -> None:
    """Draw all of them into a folder."""
    from matplotlib import rc_context

    folder = output_folder(__doc__)
    with rc_context(STYLE):
        for name, draw in PICTURES.items():
            draw(folder / name)
            report(f"{folder / name}")


if __name__ == "__main__":
    main()
