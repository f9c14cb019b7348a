"""Draw the domains, with the values of their policies and what the policies do, and measure what is hidden in them.

The figures and the numbers of ``docs/domains.md``; about 20 s, some of it only the first time.

    uv run python -m tlstd_lab.pictures.domains --out docs/figures
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.domains.base import Domain
from tlstd.domains.energy_storage import EnergyStorage, StoragePolicy
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.evaluation import rollout_values, true_values
from tlstd.streams.simulated import trajectory
from tlstd_lab.energy_programme import aliasing_floor, exact_values, greedy, never_store, optimal_policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 0
CAR_STARTS = ((-0.5, 0.0), (0.1, -0.01), (-0.7, 0.03))
PENDULUM_STARTS = ((0.3, 0.0, 0.0), (-1.5, 0.0, 0.0), (1.6, -7.0, 0.0))
STORAGES = (0, 10, 20, 30)
"""Levels of storage for which values are drawn against the price."""
PATH_SEED, BURN_IN = 4, 1000
IN_SAMPLE = ((10_000, 10), (30_000, 10), (40_000, 10), (100_000, 5), (1_000_000, 2))
"""Lengths of recorded paths of EnergyStorage, and how many of each."""
PATH_STEPS = 100_000
"""Length of the recorded paths of Mountain Car and Pendulum."""
CELLS = (20, 100, 500)
"""Cells in each dimension in which the hidden part of Pendulum's values is averaged."""

BLUE, ORANGE, GREEN, SKY = "#0072B2", "#D55E00", "#009E73", "#56B4E9"
LINES = ("#A6E3FF", "#FF7F0E", "#F781BF")
"""Episodes on a heat map, where they have a dark rim."""


# --- Mountain Car and Pendulum --------------------------------------------------------------------------------------


def draw_mountain_car(path: Path, *, resolution: int = 200) -> None:
    """Write the figure of Mountain Car: its picture, the values over the whole box, and three episodes."""
    car = MountainCar()
    episodes = [_episode(car, start) for start in CAR_STARTS]
    figure, picture, below, right = _frame()
    picture.imshow(car.draw(np.array([-0.72, 0.035])))
    picture.set_title("one state, as domain.draw shows it", fontsize=10)

    for states, colour in zip(episodes, LINES, strict=True):
        _line(below, np.arange(len(states)), states[:, 0], colour)
    below.axhline(car.goal, color="0.4", linewidth=1, linestyle="--")
    below.text(0.01, car.goal + 0.05, "goal", color="0.25", fontsize=9, transform=_across(below))
    below.set(xlabel="step", ylabel="position", ylim=(-1.3, 0.75))
    below.set_title("the same episodes in time", fontsize=10)

    image = _heat_map(right, car, resolution)
    for number, (states, colour) in enumerate(zip(episodes, LINES, strict=True), start=1):
        _line(right, states[:, 0], states[:, 1], colour)
        _mark(right, states[0], str(number), colour)
    right.axvline(car.goal, color="white", linewidth=1, linestyle="--")
    right.plot(*car.grid().T, ".", color="white", markersize=1.5, alpha=0.55)
    right.set(xlabel="position", ylabel="velocity")
    right.set_title("true values, γ=0.99, and three episodes; dots: the 20 × 20 test states", fontsize=10)
    figure.colorbar(image, ax=right, label="value", pad=0.01)
    _save(figure, path)


def draw_pendulum(path: Path, *, resolution: int = 200) -> None:
    """Write the figure of Pendulum: its picture, the values of ``held`` = 0, and three swing-ups."""
    pendulum = Pendulum()
    episodes = [_episode(pendulum, start) for start in PENDULUM_STARTS]
    figure, picture, below, right = _frame()
    picture.imshow(pendulum.draw(np.array([2.2, 3.0, 0.0])))
    picture.set_title("one state, as domain.draw shows it", fontsize=10)

    seconds = pendulum.substeps * pendulum.time_step
    for states, colour in zip(episodes, LINES, strict=True):
        _line(below, np.linspace(0.0, seconds * (len(states) - 1), len(states)), -np.cos(states[:, 0]), colour)
    level = math.cos(pendulum.upright)
    below.axhspan(level, 1.02, color=GREEN, alpha=0.25, linewidth=0)
    below.text(0.01, 1.07, "counts as upright", color="0.25", fontsize=9, transform=_across(below))
    below.set(xlabel="seconds", ylabel="height −cos θ", ylim=(-1.1, 1.4))
    below.set_title("the same episodes in time", fontsize=10)

    image = _heat_map(right, pendulum, resolution)
    for number, (states, colour) in enumerate(zip(episodes, LINES, strict=True), start=1):
        turns = np.flatnonzero(np.abs(np.diff(states[:, 0])) > math.pi) + 1
        whole = np.insert(states[:, :2], turns, np.nan, axis=0)  # no line across where the angle wraps
        _line(right, whole[:, 0], whole[:, 1], colour)
        _mark(right, states[0], str(number), colour)
    right.plot(*pendulum.grid()[:, :2].T, ".", color="white", markersize=1.5, alpha=0.55)
    quarters = np.arange(-2, 3) * math.pi / 2
    right.set_xticks(quarters, labels=["−π\nupright", "−π/2", "0\nhanging", "π/2", "π\nupright"])
    right.set(xlabel="angle θ", ylabel="velocity ω")
    right.set_title("true values, γ=0.99, held=0, and three episodes; dots: test states", fontsize=10)
    figure.colorbar(image, ax=right, label="value", pad=0.01)
    _save(figure, path)


def _episode(domain: Domain, start: Sequence[float]) -> FloatArray:
    """States of one episode of the domain's policy."""
    path = trajectory(domain, n_steps=1000, seed=SEED, starts=[start])
    last = int(np.argmax(path.terminated | path.truncated))
    return path.states[: last + 2]


def _heat_map(axis: Any, domain: Domain, resolution: int) -> Any:
    """Values at the midpoints of resolution × resolution cells of the box, whatever is hidden being 0."""
    middle = (np.arange(resolution) + 0.5) / resolution
    x, y = (domain.low + (domain.high - domain.low) * middle[:, None]).T
    states = np.zeros((resolution**2, domain.state_size))
    states[:, 0], states[:, 1] = np.tile(x, resolution), np.repeat(y, resolution)
    values = true_values(domain, states).reshape(resolution, resolution)
    extent = (domain.low[0], domain.high[0], domain.low[1], domain.high[1])
    image = axis.imshow(values, origin="lower", aspect="auto", extent=extent, cmap="viridis", interpolation="nearest")
    axis.set(xlim=extent[:2], ylim=extent[2:])
    return image


def _frame() -> tuple[Figure, Any, Any, Any]:
    """A figure with a picture and a panel below it on the left, and a large panel on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.2), layout="constrained")
    axes = figure.subplot_mosaic(
        [["picture", "right"], ["below", "right"]], width_ratios=[1.0, 1.7], height_ratios=[1.2, 1.0]
    )
    axes["picture"].set_axis_off()
    axes["below"].spines[["top", "right"]].set_visible(False)
    return figure, axes["picture"], axes["below"], axes["right"]


def _line(axis: Any, x: FloatArray | IntArray, y: FloatArray, colour: str) -> None:
    """A line that shows on any ground."""
    from matplotlib.patheffects import Normal, Stroke

    rim = [Stroke(linewidth=2.9, foreground="#222222"), Normal()]
    axis.plot(x, y, color=colour, linewidth=1.5, path_effects=rim)


def _mark(axis: Any, state: FloatArray, text: str, colour: str) -> None:
    """A numbered dot where an episode starts."""
    axis.plot(state[0], state[1], "o", color=colour, markersize=13, markeredgecolor="#222222", zorder=5)
    axis.text(state[0], state[1], text, fontsize=9, ha="center", va="center_baseline", zorder=6)


def _across(axis: Any) -> Any:
    """Shares of the axis across, data upwards."""
    return axis.get_yaxis_transform()


# --- EnergyStorage --------------------------------------------------------------------------------------------------


def draw_energy_storage(path: Path) -> None:
    """Write the figure of EnergyStorage: its picture, slices of the exact values, one observation, and a path."""
    from matplotlib.figure import Figure

    domain = EnergyStorage()
    policy = optimal_policy(domain)
    figure: Any = Figure(figsize=(10, 10.4), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.35, 1.0])
    axes = top.subplot_mosaic([["picture", "price"], ["map", "phase"]], height_ratios=[1.0, 1.1])
    phase = 3 * domain.period // 5
    demand = np.clip(domain.demand_means[phase] - 1.0, domain.low[3], domain.high[3])
    axes["picture"].imshow(domain.draw(np.array([*_middle(domain)[:3], demand, phase])))
    axes["picture"].set_axis_off()
    axes["picture"].set_title("one state, as domain.draw shows it", fontsize=10)
    _draw_price(axes["price"], domain, policy)
    _draw_map(top, axes["map"], domain, policy)
    _draw_phase(axes["phase"], domain, policy)
    _draw_path(bottom.subplots(3, 1, sharex=True, height_ratios=[1.35, 1.0, 1.0]), domain, policy)
    _save(figure, path)


def _middle(domain: EnergyStorage) -> FloatArray:
    """The state in the middle of the box (below it, where that is between whole numbers), at phase 0."""
    return np.append(np.floor(0.5 * (domain.low + domain.high)), 0.0)


def _draw_price(axis: Any, domain: EnergyStorage, policy: StoragePolicy) -> None:
    """Values against the price, for some levels of storage."""
    prices = np.arange(domain.low[2], domain.high[2] + 1.0)
    middle = _middle(domain)
    for level, style, shade in zip(STORAGES, ("-", "--", "-.", ":"), (0.0, 0.28, 0.52, 0.72), strict=True):
        states = np.tile(middle, (prices.size, 1))
        states[:, 0] = level
        states[:, 2] = prices
        colour = _viridis(shade)
        axis.plot(prices, exact_values(domain, policy, states), style, color=colour, label=f"{level}")
    axis.legend(title="storage", frameon=False, fontsize=9, title_fontsize=9, ncols=2)
    axis.set(xlabel="price", ylabel="value")
    axis.set_title(f"values at wind {middle[1]:.0f}, demand {middle[3]:.0f}, phase 0 (γ=0.8)", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_map(figure: Any, axis: Any, domain: EnergyStorage, policy: StoragePolicy) -> None:
    """Values over phase and storage, at the demand of the phase."""
    phases, levels = np.arange(domain.period), np.arange(domain.capacity + 1.0)
    middle = _middle(domain)
    states = np.tile(middle, (levels.size * phases.size, 1))
    states[:, 0], states[:, 4] = np.repeat(levels, phases.size), np.tile(phases, levels.size)
    states[:, 3] = np.clip(domain.demand_means, domain.low[3], domain.high[3])[states[:, 4].astype(np.int64)]
    values = exact_values(domain, policy, states).reshape(levels.size, phases.size)
    extent = (-0.5, domain.period - 0.5, -0.5, domain.capacity + 0.5)
    image = axis.imshow(values, origin="lower", aspect="auto", extent=extent, cmap="viridis", interpolation="nearest")
    axis.set(xlabel="phase", ylabel="storage")
    axis.set_title(f"values at wind {middle[1]:.0f}, price {middle[2]:.0f}, demand without noise", fontsize=10)
    figure.colorbar(image, ax=axis, pad=0.01)


def _draw_phase(axis: Any, domain: EnergyStorage, policy: StoragePolicy) -> None:
    """Values of one observation at all phases where it can occur: what features see as one state."""
    floor = aliasing_floor(domain, policy)
    middle = _middle(domain)
    states = np.tile(middle, (domain.period, 1))
    states[:, 4] = np.arange(domain.period)
    reach = domain.demand_noise.size // 2
    possible = np.abs(domain.demand_means - middle[3]) <= reach
    values = exact_values(domain, policy, states)
    axis.plot(states[possible, 4], values[possible], "o", color=BLUE, markersize=3.5, label="value")
    index = tuple((middle[:4] - domain.low).astype(np.int64))
    axis.axhline(
        floor.predictor[index], color=ORANGE, linestyle="--", label="best prediction that does not see the phase"
    )
    low, high = values[possible].min(), values[possible].max()
    axis.set(xlabel="phase", ylabel="value", xlim=(-2, domain.period + 1))
    axis.set_ylim(low - 0.08 * (high - low), high + 0.3 * (high - low))
    seen = f"({middle[0]:.0f}, {middle[1]:.0f}, {middle[2]:.0f}, {middle[3]:.0f})"
    axis.set_title(f"one observation {seen} at the phases it occurs", fontsize=10)
    axis.legend(frameon=False, fontsize=9, loc="upper right")
    axis.spines[["top", "right"]].set_visible(False)


def _draw_path(axes: Any, domain: EnergyStorage, policy: StoragePolicy) -> None:
    """Two periods of a path: the price with what the storage does, the storage, wind and demand."""
    burn = BURN_IN - BURN_IN % domain.period
    path = trajectory(domain, policy, n_steps=burn + 3 * domain.period, seed=PATH_SEED)
    first = burn + int(-path.states[burn, 4] % domain.period)  # at phase 0
    states = path.states[first : first + 2 * domain.period]
    charge, discharge = domain.flows(states[:, 0], path.actions[first : first + len(states)])
    t = np.arange(len(states))
    storage, wind, price, demand, _ = states.T
    bought = charge - np.minimum(charge, np.maximum(wind - demand, 0.0))
    axes[0].plot(t, price, color="0.6", linewidth=1, drawstyle="steps-mid")
    for chosen, marker, colour, name in (
        (bought > 0, "^", BLUE, "charges, buying"),
        ((charge > 0) & (bought == 0), "s", SKY, "charges with surplus wind"),
        (discharge > 0, "v", ORANGE, "discharges"),
    ):
        axes[0].plot(t[chosen], price[chosen], marker, color=colour, markersize=4.5, label=name)
    axes[0].set_ylim(domain.low[2] - 2, domain.high[2] + 0.3 * (domain.high[2] - domain.low[2]))
    axes[0].set(ylabel="price")
    axes[0].legend(frameon=False, fontsize=9, ncols=3, loc="upper left")
    axes[1].fill_between(t, storage, step="mid", color=GREEN, alpha=0.5, linewidth=0)
    axes[1].set(ylabel="storage", ylim=(0, domain.capacity))
    axes[2].plot(t, demand, color=ORANGE, linewidth=1.3, drawstyle="steps-mid", label="demand")
    axes[2].plot(t, wind, color=BLUE, linewidth=1.3, linestyle=(0, (3, 1)), drawstyle="steps-mid", label="wind")
    axes[2].set(xlabel="step", ylabel="energy", ylim=(-0.3, max(domain.high[1], domain.high[3]) * 1.35))
    axes[2].legend(frameon=False, fontsize=9, ncols=2, loc="upper left")
    axes[0].set_title("two periods of a path under the policy", fontsize=10)
    for axis in axes:
        axis.set_xlim(-1, len(t))
        axis.axvline(domain.period, color="0.7", linewidth=0.8, linestyle=":")
        axis.spines[["top", "right"]].set_visible(False)


def _viridis(share: float) -> Any:
    import matplotlib as mpl

    return mpl.colormaps["viridis"](share)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, pil_kwargs={"optimize": True})


# --- numbers --------------------------------------------------------------------------------------------------------


def measure_grids() -> list[str]:
    """Of the 20 × 20 grids: RMSE of a predictor that always says zero, range of the values, longest episode."""
    lines = []
    for domain in (MountainCar(), Pendulum()):
        values = true_values(domain, domain.grid())
        low, high = values.min(), values.max()
        lines.append(f"{domain.name}: a zero predictor has RMSE {_rms(values):.1f}; values {low:.1f} to {high:.1f}")
        path = trajectory(domain, n_steps=PATH_STEPS, seed=SEED)
        steps = np.diff(np.flatnonzero(path.terminated), prepend=-1)
        n_truncated = int(path.truncated[:-1].sum())
        lines.append(
            f"  {PATH_STEPS:,} steps: {steps.size:,} whole episodes, half of them within {np.median(steps):.0f} steps, "
            f"the longest {steps.max()}; {n_truncated} truncated"
        )
    return lines


def measure_held(seed: int = SEED) -> list[str]:
    """What Pendulum's hidden ``held`` is worth along the policy's stream.

    Let Δ = V(θ, ω, held) − V(θ, ω, 0). Its root mean square is the error of V(θ, ω, 0) as a predictor of the values
    along the stream. A function of (θ, ω) can do better by adding what Δ is on average there: here its means over cells
    in the first half of the stream, tested on the second half.
    """
    domain = Pendulum()
    path = trajectory(domain, n_steps=PATH_STEPS, seed=seed)
    states = path.states[path.rows]
    values, fresh = true_values(domain, states), states.copy()
    fresh[:, 2] = 0.0
    changed = states[:, 2] > 0.0
    delta = np.zeros(len(states))
    delta[changed] = values[changed] - true_values(domain, fresh[changed])
    lines = [
        f"Pendulum, {PATH_STEPS:,} steps: held > 0 in {100 * changed.mean():.0f}% of them; "
        f"values have sd {values.std():.1f}, rms of V(held) − V(0) is {_rms(delta):.1f}"
    ]
    half = len(states) // 2
    for n in CELLS:
        cells = _cells(domain, states, n)
        mean = _means(cells[:half], delta[:half], n * n)
        lines.append(f"  {n}×{n} cells: rms {_rms(delta[half:] - mean[cells[half:]]):.1f} left")
    grid = domain.grid()
    bias = _means(_cells(domain, states, 20), delta, 400)[_cells(domain, grid, 20)]
    lines.append(f"  these means move the values of the 20×20 test states, which have held=0, by rms {_rms(bias):.1f}")
    return lines


def _cells(domain: Domain, states: FloatArray, n: int) -> IntArray:
    """In which of n × n equal cells of the box each state lies."""
    share = (domain.observe(states) - domain.low) / (domain.high - domain.low)
    row, column = np.clip((n * share).astype(np.int64), 0, n - 1).T
    index: IntArray = n * row + column
    return index


def measure_energy() -> list[str]:
    """The exact aliasing floor of EnergyStorage, and what means over recorded paths make of it."""
    domain = EnergyStorage()
    policy = optimal_policy(domain)
    floor = aliasing_floor(domain, policy)
    lines = [f"EnergyStorage: floor {floor.rmse:.1f}, sd of the values {floor.sd:.1f}, mean {floor.mean:.1f}"]
    for n_steps, n_paths in IN_SAMPLE:
        floors = [_in_sample(domain, policy, n_steps, seed) for seed in range(n_paths)]
        spread = f"{min(floors):.1f} to {max(floors):.1f}"
        lines.append(f"  in-sample, {n_steps:,} steps: {np.mean(floors):.1f} ({n_paths} paths: {spread})")
    return lines


def measure_policies() -> list[str]:
    """Mean reward per step of four policies of EnergyStorage, with a standard error from independent paths."""
    domain, lines = EnergyStorage(), []
    for name, policy in (
        ("near-optimal", optimal_policy(domain)),
        ("own", domain.policy()),
        ("greedy", greedy(domain)),
        ("idle", never_store(domain)),
    ):
        means = [trajectory(domain, policy, n_steps=100_000, seed=seed).rewards.mean() for seed in range(10)]
        error = np.std(means, ddof=1) / math.sqrt(len(means))
        lines.append(f"EnergyStorage, {name} policy: {np.mean(means):.1f} per step (standard error {error:.1f})")
    return lines


def measure_losses() -> list[str]:
    """How far interpolated values are from rollouts where a charge efficiency below 1 leaves the grid."""
    domain = EnergyStorage(charge_efficiency=0.9, discharge_efficiency=0.95, period=20)
    policy = optimal_policy(domain)
    rng = np.random.default_rng(SEED)
    states = domain.start(100, rng)
    states[:, 0] = rng.uniform(0.0, domain.capacity, len(states))
    means, error, _, _ = rollout_values(domain, states, n_rollouts=1000, rng=rng, policy=policy, tolerance=0.01)
    excess = exact_values(domain, policy, states) - means
    return [
        f"EnergyStorage, efficiencies 0.9 and 0.95, period 20: mean value {means.mean():.0f}; "
        f"interpolated less rollouts: mean {excess.mean():.1f}, rms {_rms(excess):.1f}; "
        f"standard errors of rollouts: rms {_rms(error):.1f}"
    ]


def _in_sample(domain: EnergyStorage, policy: StoragePolicy, n_steps: int, seed: int) -> float:
    """Error of the means of the values of equal observations of a path, on that same path."""
    states = trajectory(domain, policy, n_steps=n_steps, seed=seed).states[:-1]
    values = exact_values(domain, policy, states)
    index = np.ravel_multi_index(tuple((states[:, :4] - domain.low).astype(np.int64).T), domain.table_shape[1:])
    return _rms(values - _means(index, values, math.prod(domain.table_shape[1:]))[index])


def _means(index: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Mean of the values of each index; 0 where there are none."""
    means: FloatArray = np.bincount(index, values, minlength=size) / np.maximum(np.bincount(index, minlength=size), 1)
    return means


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


# --- command --------------------------------------------------------------------------------------------------------

FIGURES: dict[str, Callable[[Path], None]] = {
    "domain_mountain_car.png": draw_mountain_car,
    "domain_pendulum.png": draw_pendulum,
    "domain_energy_storage.png": draw_energy_storage,
}

MEASURES = (measure_grids, measure_held, measure_policies, measure_energy, measure_losses)
"""Functions that return lines of the report."""


def main(arguments: Sequence[str] | None = None, report: Callable[[str], None] = print) -> None:
    """Draw the three figures into a folder and report the numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder for the figures")
    folder = parser.parse_args(arguments).out
    for name, draw in FIGURES.items():
        draw(folder / name)
        report(f"{folder / name}")
    for measure in MEASURES:
        for line in measure():
            report(line)


if __name__ == "__main__":
    main()
