"""Draw what the feature maps compute: the layout of tile coding, the two widths of RBFs, the Fourier basis.

The picture of ``docs/features.md``; nothing in it is measured.

    uv run python -m tlstd_lab.pictures.features --out docs/figures
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tlstd.core.figures import new_figure, save
from tlstd.features.fourier import Fourier
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd_lab.drawing import output_folder

CODER = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=(4, 3), tilings=2)
STATE = (0.6, 0.4)
TILING_COLOURS = ("#0072B2", "#D55E00")
CURVE_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73")


def draw(path: Path) -> None:
    """Write the figure: tilings 0 and 1 with their indices, both with one state; below, an RBF and a Fourier basis."""
    figure: Any = new_figure(11, 7.4)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1.0))
    axes = top.subplots(1, 3)
    for tiling in range(2):
        _draw_tiling(axes[tiling], tiling)
    _draw_offsets(axes[2])
    left, right = bottom.subfigures(1, 2, width_ratios=(2.0, 1.0))
    rbf, cosines = left.subplots(1, 2)
    _draw_rbf(rbf)
    _draw_cosines(cosines)
    _draw_planes(right)
    save(figure, path)


def _edges(tiling: int) -> list[Any]:
    """Boundaries of the tiles per dimension: n + 1 of them, range/(n − 1) apart, from j/(N n) below the box."""
    return [(np.arange(n + 1)) / (n - 1) - tiling / (CODER.tilings * n) for n in CODER.tiles]


def _active_tile(tiling: int) -> tuple[int, int, int]:
    """Coordinates and index of the tile that holds the state."""
    index = int(CODER.indices([STATE])[0, tiling])
    k_1, k_2 = divmod(index - tiling * CODER.tiles[0] * CODER.tiles[1], CODER.tiles[1])
    return k_1, k_2, index


def _draw_box(axis: Any) -> None:
    from matplotlib.patches import Rectangle

    axis.add_patch(Rectangle((0, 0), 1, 1, fill=False, edgecolor="black", linewidth=2.2, zorder=4))
    axis.set(xlim=(-0.16, 1.6), ylim=(-0.2, 1.74), aspect="equal", xlabel="$u_1$", ylabel="$u_2$")
    axis.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axis.spines[["top", "right", "left", "bottom"]].set_visible(False)


def _draw_grid(axis: Any, tiling: int) -> None:
    colour = TILING_COLOURS[tiling]
    x, y = _edges(tiling)
    style = "-" if tiling == 0 else "--"
    axis.vlines(x, y[0], y[-1], color=colour, linewidth=1.2, linestyle=style)
    axis.hlines(y, x[0], x[-1], color=colour, linewidth=1.2, linestyle=style)


def _shade_active(axis: Any, tiling: int) -> None:
    from matplotlib.patches import Rectangle

    x, y = _edges(tiling)
    k_1, k_2, _ = _active_tile(tiling)
    corner, width, height = (x[k_1], y[k_2]), x[1] - x[0], y[1] - y[0]
    axis.add_patch(Rectangle(corner, width, height, facecolor=TILING_COLOURS[tiling], alpha=0.28, linewidth=0))


def _mark_state(axis: Any) -> None:
    axis.plot(*STATE, "o", color="black", markersize=6, zorder=5)


def _write_index(axis: Any, tiling: int, k_1: int, k_2: int, index: int, *, bold: bool) -> None:
    """The index of a tile, inside it where no edge of the box crosses it."""
    x, y = _edges(tiling)
    right, up = ((0.4, 0.5), (0.72, 0.7))[tiling]
    weight = "bold" if bold else "normal"
    axis.text(
        x[k_1] + right * (x[1] - x[0]),
        y[k_2] + up * (y[1] - y[0]),
        str(index),
        color=TILING_COLOURS[tiling],
        fontsize=13 if bold else 10,
        fontweight=weight,
        ha="center",
        va="center",
        zorder=6,
    )


def _draw_tiling(axis: Any, tiling: int) -> None:
    """One tiling: every tile with its index, the active one shaded."""
    _draw_box(axis)
    _draw_grid(axis, tiling)
    _shade_active(axis, tiling)
    _mark_state(axis)
    n_1, n_2 = CODER.tiles
    active = _active_tile(tiling)
    for k_1 in range(n_1):
        for k_2 in range(n_2):
            index = tiling * n_1 * n_2 + n_2 * k_1 + k_2
            _write_index(axis, tiling, k_1, k_2, index, bold=index == active[2])
    first = f"{tiling * n_1 * n_2} + " if tiling else ""
    axis.set_title(
        f"tiling {tiling}: the dot is in tile $(k_1, k_2)$ = {active[:2]},\nindex {first}3 $k_1$ + $k_2$ = {active[2]}",
        fontsize=10,
    )


def _draw_offsets(axis: Any) -> None:
    """Both tilings, the shift between them, and the two active tiles."""
    _draw_box(axis)
    for tiling in range(2):
        _draw_grid(axis, tiling)
        _shade_active(axis, tiling)
        _write_index(axis, tiling, *_active_tile(tiling), bold=True)
    _mark_state(axis)
    (x0, y0), (x1, y1) = ((edges[0][-1], edges[1][-1]) for edges in (_edges(0), _edges(1)))
    arrow = {"arrowstyle": "->", "color": "black", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", (x1, y0 + 0.05), (x0, y0 + 0.05), arrowprops=arrow)
    axis.annotate("", (x0 + 0.05, y1), (x0 + 0.05, y0), arrowprops=arrow)
    axis.text((x0 + x1) / 2 - 0.02, y0 + 0.07, r"$\frac{1}{2\cdot 4}$", ha="center", va="bottom", fontsize=13)
    axis.text(x0 + 0.08, (y0 + y1) / 2, r"$\frac{1}{2\cdot 3}$", ha="left", va="center", fontsize=13)
    active = f"{_active_tile(0)[2]} and {_active_tile(1)[2]}"
    axis.set_title(f"both: tiling 1 lies lower, as the arrows show;\nactive features {active}", fontsize=10)


def _draw_rbf(axis: Any) -> None:
    states = np.linspace(0.0, 1.0, 201)[:, None]
    for convention, style in (("paper", "-"), ("gaussian", ":")):
        rbf = RBF([0.0], [1.0], grid=4, width=0.2, convention=convention)  # type: ignore[arg-type]
        for i, bump in enumerate(rbf.encode_many(states).T):
            axis.plot(states, bump, style, color=CURVE_COLOURS[i], label=convention if i == 0 else None)
    axis.legend(title="convention", loc="upper center", ncols=2, frameon=False, fontsize=9, title_fontsize=9)
    axis.set(xlabel="$u$", ylim=(0, 1.45), yticks=(0, 0.5, 1), xticks=(0, 1 / 3, 2 / 3, 1))
    axis.set_xticklabels(["0", "⅓", "⅔", "1"])
    axis.set_title("RBF: grid=4, width=0.2", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_cosines(axis: Any) -> None:
    states = np.linspace(0.0, 1.0, 201)[:, None]
    for i, cosine in enumerate(Fourier([0.0], [1.0], order=3).encode_many(states).T):
        axis.plot(states, cosine, color=CURVE_COLOURS[i], label=f"c={i}")
    axis.legend(loc="upper center", ncols=4, frameon=False, fontsize=9, handlelength=1.0, columnspacing=0.8)
    axis.set(xlabel="$u$", ylim=(-1.1, 1.6), yticks=(-1, 0, 1), xticks=(0, 0.5, 1))
    axis.set_title(r"Fourier: order=3, features $\cos(\pi c u)$", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_planes(figure: Any) -> None:
    """The nine features of a Fourier basis in two dimensions, as small pictures with their indices."""
    basis = Fourier([0.0, 0.0], [1.0, 1.0], order=2)
    u = np.linspace(0.0, 1.0, 61)
    states = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    planes = basis.encode_many(states).T.reshape(-1, u.size, u.size)
    axes = figure.subplots(3, 3)
    for index, (axis, plane) in enumerate(zip(axes.ravel(), planes, strict=True)):
        axis.imshow(plane.T, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=-1, vmax=1)
        c = ", ".join(str(n) for n in basis.coefficients[index])
        axis.set_title(f"{index}: c=({c})", fontsize=8, pad=2)
        axis.set(xticks=(), yticks=())
    figure.suptitle("Fourier in two dimensions, order=2\n(blue −1, white 0, red 1)", fontsize=10)


def main(report: Callable[[str], None] = print) -> None:
    """Draw ``tile_coding.png`` into a folder."""
    path = output_folder(__doc__) / "tile_coding.png"
    draw(path)
    report(f"{path}: the state {STATE} has the active tiles {CODER.indices([STATE])[0].tolist()}")


if __name__ == "__main__":
    main()
