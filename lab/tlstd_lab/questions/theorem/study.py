"""Does the paper's Theorem 1 hold, how tight is it, and is truncation better than Tikhonov's regularisation?

Thousands of random systems (A, b) whose limit is known exactly, with averages (A_t, b_t) along sampled streams or with
perturbations of other kinds; several ranks each. ``docs/theorem.md`` says what came out.

    uv run python -m tlstd_lab.questions.theorem.study --out docs/figures                about 1 minute
    uv run python -m tlstd_lab.questions.theorem.study --scale smoke --out FOLDER        a few seconds
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq

from tlstd.diagnostics import Comparison, compare, picard, plot_picard, proof_steps
from tlstd.domains import MarkovRewardProcess, boyan_chain, garnet, random_walk
from tlstd.estimators.lstd import LSTD
from tlstd.figures import new_figure, save
from tlstd.types import FloatArray

SEED = 2016
N_CASES = {"smoke": 3, "full": 400}
"""Systems of each family."""
RANKS_PER_CASE = 4
N_REPEATS = {"smoke": 1, "full": 40}
"""Streams behind each point of the trade-off."""
ORANGE, BLUE, GREEN, PURPLE, GREY = "#D55E00", "#0072B2", "#009E73", "#CC79A7", "0.45"
System: TypeAlias = tuple[FloatArray, FloatArray]
Pair: TypeAlias = tuple[float, float, float, float]


class Case(NamedTuple):
    """A limit A, b and what stands for the average of samples."""

    A: FloatArray
    b: FloatArray
    A_t: FloatArray
    b_t: FloatArray


# --- the cases ------------------------------------------------------------------------------------------------------


def sampled(process: MarkovRewardProcess, lambda_: float, n_steps: int, rng: np.random.Generator) -> System:
    """A_t and b_t of LSTD(λ) along a stream, in the order of the features."""
    model = LSTD(process.n_features, lambda_=lambda_)
    model.update_many(process.sample(n_steps, rng))
    ids, A, b = model.system()
    d = process.n_features
    A_t, b_t = np.zeros((d, d)), np.zeros(d)
    A_t[np.ix_(ids, ids)], b_t[ids] = A, b[:, 0]
    return A_t, b_t


def _along_stream(process: MarkovRewardProcess, rng: np.random.Generator, most: int = 10_000) -> Case:
    lambda_ = float(rng.choice([0.0, 0.5, 0.9, 1.0]))
    n_steps = int(np.exp(rng.uniform(np.log(20.0), np.log(most))))
    return Case(*process.system(lambda_), *sampled(process, lambda_, n_steps, rng))


def _garnet(rng: np.random.Generator) -> MarkovRewardProcess:
    n = int(rng.integers(10, 61))
    d = int(rng.integers(3, min(n, 25) + 1))
    kind = "binary" if rng.random() < 0.5 else "gaussian"
    return garnet(n, 2, 3, d, rng, gamma=float(rng.choice([0.5, 0.9, 0.99])), features=kind)  # type: ignore[arg-type]


def _garnet_stream(rng: np.random.Generator) -> Case:
    return _along_stream(_garnet(rng), rng)


def _redundant_stream(rng: np.random.Generator) -> Case:
    n = int(rng.integers(5, 13))
    return _along_stream(garnet(n, 2, 3, int(rng.integers(n + 1, 2 * n + 1)), rng, gamma=0.9), rng)


def _boyan_stream(rng: np.random.Generator) -> Case:
    return _along_stream(boyan_chain(int(rng.choice([13, 25, 41, 61]))), rng)


def _walk_stream(rng: np.random.Generator) -> Case:
    features = str(rng.choice(["tabular", "inverted", "dependent"]))
    n, gamma = int(rng.choice([5, 11, 19, 31])), float(rng.choice([0.9, 1.0]))
    return _along_stream(random_walk(n, gamma=gamma, features=features), rng)  # type: ignore[arg-type]


def _cycle_stream(rng: np.random.Generator) -> Case:
    """States in a fixed order, one feature each: no noise in the values, so that b_t = A_t w*; and σ come in pairs."""
    n = int(rng.integers(4, 21))
    gamma = float(rng.choice([0.5, 0.9, 0.99]))
    process = MarkovRewardProcess(np.roll(np.eye(n), 1, axis=1), rng.standard_normal(n), np.eye(n), gamma=gamma)
    return _along_stream(process, rng, most=200)


def _perturbed(rng: np.random.Generator) -> Case:
    """Gaussian noise instead of sampling."""
    A, b = _garnet(rng).system(0.0)
    size = 10.0 ** rng.uniform(-4.0, 0.0)
    noise = rng.standard_normal(A.shape) * np.linalg.norm(A, 2) / np.sqrt(b.size)
    return Case(A, b, A + size * noise, b + size * rng.standard_normal(b.size) * np.abs(b).mean())


def _turned(rng: np.random.Generator) -> Case:
    """A with its right singular vectors turned, and b_t = A_t w*: the noise term of the bound is zero."""
    A, b = _garnet(rng).system(0.0)
    skew = rng.standard_normal(A.shape)
    A_t = A @ expm(10.0 ** rng.uniform(-4.0, 0.0) * (skew - skew.T) / np.sqrt(b.size))
    return Case(A, b, A_t, A_t @ np.linalg.lstsq(A, b, rcond=1e-12)[0])


def _repeated(rng: np.random.Generator) -> Case:
    """Each singular value of A occurs three times; b_t = A_t w*."""
    d = 3 * int(rng.integers(2, 6))
    U, V = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    sigma = np.repeat(np.sort(rng.random(d // 3))[::-1], 3)
    A = (U * sigma) @ V.T
    A_t = A + 10.0 ** rng.uniform(-8.0, -1.0) * rng.standard_normal((d, d))
    w = V @ (sigma * rng.choice([-1.0, 1.0], d))
    return Case(A, A @ w, A_t, A_t @ w)


FAMILIES: dict[str, Callable[[np.random.Generator], Case]] = {
    "Garnet": _garnet_stream,
    "redundant Garnet": _redundant_stream,
    "Boyan chain": _boyan_stream,
    "random walk": _walk_stream,
    "cycle": _cycle_stream,
    "Gaussian noise": _perturbed,
    "turned": _turned,
    "repeated σ": _repeated,
}


def of_family(family: str, n: int, seed: int = SEED) -> Iterator[tuple[Case, list[int]]]:
    """``n`` cases of a family with the ranks at which they are looked at."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    for _ in range(n):
        case = FAMILIES[family](rng)
        d = case.b.size
        ranks = rng.choice(np.arange(1, d + 1), min(d, RANKS_PER_CASE), replace=False)
        yield case, sorted(map(int, ranks))


def cases(n: int, seed: int = SEED) -> Iterator[tuple[str, Case, list[int]]]:
    """``n`` cases of each family."""
    for family in FAMILIES:
        for case, ranks in of_family(family, n, seed):
            yield family, case, ranks


# --- does the bound hold? -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One case at one rank. Totals are divided by the error, so that a bound holds where its ratio is at least one."""

    family: str
    case: int
    n_features: int
    rank: int
    error: float
    void: bool
    """A_t has fewer than ``rank`` singular values: the stated bound is infinite."""
    stated: bool
    """Assumption 1 holds as stated, with C = 1."""
    as_stated: dict[str, float]
    """Totals with C = 1, by reading, whether or not the assumption holds."""
    free: dict[str, float]
    """Totals with the smallest C, for which the assumption always holds: by reading, vectors unaligned, and ours."""
    fails: list[str]
    """Which of them are below the error by more than rounding."""
    negative: bool
    """ε of the squared reading is negative."""
    flat: bool
    """The best exponent of the stated bound is below 1.01: its bias term does not depend on the rank."""
    capped: bool
    """ε(t) of the stated bound is its first argument, which does not depend on the samples."""
    steps: list[str]
    """Steps of the proof that do not hold: for the norm as they are, for the squared norm with "² " before them."""


def measure(family: str, number: int, case: Case, ranks: Sequence[int]) -> list[Row]:
    """All that is recorded of one case."""
    aligned, raw = compare(*case), compare(*case, alignment="none")
    return [_row(family, number, aligned, raw, rank) for rank in ranks]


def _row(family: str, number: int, aligned: Comparison, raw: Comparison, rank: int) -> Row:
    stated, free = aligned.bound(rank), aligned.bound(rank, constant=None)
    totals = {
        "norm": free.norm.total,
        "squared": free.squared.total,
        "unaligned": raw.bound(rank, constant=None).norm.total,
        "ours, Picard": free.corrected_picard.total,
        "ours": free.corrected.total,
    }
    if family == "repeated σ":  # by construction |uᵢᵀb| = σᵢ² in one basis; the bound is in another
        totals["other basis"] = aligned.bound(rank, p=2.0).norm.total
    at_one = {"norm": stated.norm.total, "squared": stated.squared.total}
    void = bool(np.isinf(free.noise))
    steps: list[str] = []
    if not void:
        p, C = free.norm.p, free.norm.constant
        steps = [s.name for s in proof_steps(aligned, rank, p=p, constant=C) if not s.holds]
        p, C = free.squared.p, free.squared.constant
        steps += ["² " + s.name for s in proof_steps(aligned, rank, p=p, constant=C, squared=True) if not s.holds]
    error = free.error
    return Row(
        family=family,
        case=number,
        n_features=aligned.n_features,
        rank=rank,
        error=error,
        void=void,
        stated=stated.assumption_holds,
        as_stated={name: _ratio(total, error) for name, total in at_one.items()},
        free={name: _ratio(total, error) for name, total in totals.items()},
        fails=[name for name, total in totals.items() if not free.holds(total)]
        + [f"C=1 {name}" for name, total in at_one.items() if not stated.holds(total)],
        negative=min(free.squared.cap, free.squared.difference) < 0.0,
        flat=free.norm.p < 1.01,
        capped=free.norm.cap < free.norm.difference,
        steps=steps,
    )


def _ratio(total: float, error: float) -> float:
    return total / error if error > 1e-9 else np.inf


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts of what holds and fails, and the middle 90% of bound / error where both are finite."""
    fails = Counter(name for row in rows for name in row.fails)
    kept = Counter(name for row in rows if row.stated for name in row.fails)
    finite = [row for row in rows if np.isfinite(row.free["norm"])]
    return {
        "cases": len({(row.family, row.case) for row in rows}),
        "cases × ranks": len(rows),
        "void": sum(row.void for row in rows),
        "assumption holds as stated": sum(row.stated for row in rows),
        "fails with C=1 though the assumption holds": {n: kept[f"C=1 {n}"] for n in ("norm", "squared")},
        "fails with C=1 where the assumption does not": {
            n: fails[f"C=1 {n}"] - kept[f"C=1 {n}"] for n in ("norm", "squared")
        },
        "fails with the smallest C": {
            n: fails[n] for n in ("norm", "squared", "unaligned", "ours, Picard", "ours", "other basis")
        },
        "squared fails with ε < 0": sum(row.negative for row in rows if "squared" in row.fails),
        "best p < 1.01": sum(row.flat for row in rows),
        "ε is its cap": sum(row.capped for row in rows),
        "steps that fail": dict(Counter(step for row in rows for step in row.steps).most_common()),
        "bound / error, 5%, 50%, 95%": {
            n: [float(f"{q:.4g}") for q in np.quantile([row.free[n] for row in finite], (0.05, 0.5, 0.95))]
            for n in ("norm", "unaligned", "ours, Picard", "ours")
            if finite
        },
    }


def cycle(n_states: int = 10) -> MarkovRewardProcess:
    """States in a fixed order, one feature each: the singular values of A come in pairs."""
    rewards = np.random.default_rng(SEED).standard_normal(n_states)
    return MarkovRewardProcess(np.roll(np.eye(n_states), 1, axis=1), rewards, np.eye(n_states), gamma=0.9)


def epsilon(process: str, samples: Sequence[int], seed: int = 0) -> dict[str, list[float]]:
    """ε(t) of a ``"cycle"`` or a random ``"walk"``: A's vectors fixed but for signs, or chosen anew for each t."""
    made = cycle() if process == "cycle" else random_walk(11, gamma=0.9)
    A, b = made.system(0.0)
    out: dict[str, list[float]] = {"signs": [], "rotations": []}
    for n in samples:
        A_t, b_t = sampled(made, 0.0, n, np.random.default_rng(seed))
        fixed, chosen = compare(A, b, A_t, b_t, alignment="signs"), compare(A, b, A_t, b_t)
        for name, c in (("signs", fixed), ("rotations", chosen)):
            out[name].append(float(c.bound(b.size // 2, p=1.5).norm.difference))
    return out


def convergence(n_states: int = 10, turns: Sequence[int] = (1, 10, 100, 1000, 10_000)) -> dict[str, Any]:
    """ε(t) along the cycle, rounded."""
    steps = [n_states * turn + n_states // 3 for turn in turns]
    found = epsilon("cycle", steps)
    return {"samples": steps} | {name: [float(f"{x:.3g}") for x in values] for name, values in found.items()}


# --- Tikhonov against truncation ------------------------------------------------------------------------------------


def tikhonov_of(sigma: FloatArray, rank: int) -> float:
    """The η for which Σ (σᵢ/(σᵢ²+η))² = Σ_{i<=r} σᵢ⁻²: white noise in b has the same effect on the weights.

    >>> round(tikhonov_of(np.array([1.0, 1.0]), 1), 6)  # 2 / (1 + η)² = 1
    0.414214
    """
    kept = sigma[sigma > 1e-12 * sigma[0]]
    wanted = (kept[:rank] ** -2.0).sum()

    def excess(log_eta: float) -> float:
        return float(np.log(((kept / (kept**2 + np.exp(log_eta))) ** 2).sum() / wanted))

    low, high = 2.0 * np.log(kept[-1]) - 40.0, 2.0 * np.log(kept[0]) + 40.0
    return float(np.exp(brentq(excess, low, high))) if rank < kept.size and excess(low) > 0.0 else 0.0


def filtered(c: Comparison, factors: FloatArray) -> tuple[float, float]:
    """Bias ‖w* − V̂ f Û ᵀA_t w*‖ and error ‖w* − V̂ f Ûᵀb_t‖ of the solution with these inverse factors f."""
    weights = c.V_t.T @ c.weights
    bias = (1.0 - factors * c.sigma_t) * weights
    return float(np.linalg.norm(bias)), float(np.linalg.norm(bias - factors * (c.U_t.T @ c.residual)))


def against_tikhonov(c: Comparison, rank: int) -> Pair:
    """Bias and error of truncation at this rank, then of Tikhonov's solution with the same variance."""
    inverse = np.zeros(c.n_features)
    inverse[:rank] = 1.0 / c.sigma_t[:rank]
    smooth = c.sigma_t / (c.sigma_t**2 + tikhonov_of(c.sigma_t, rank))
    return *filtered(c, inverse), *filtered(c, smooth)


def tikhonov_summary(values: dict[str, list[Pair]]) -> dict[str, Any]:
    """By family: median of Tikhonov's bias and error over truncation's, and how often each error is the smaller."""
    out: dict[str, Any] = {}
    for family, rows in values.items():
        numbers = np.array(rows).reshape(-1, 4)
        bias, error = numbers[:, 2] / numbers[:, 0], numbers[:, 3] / numbers[:, 1]
        out[family] = {
            "n": len(numbers),
            "bias ratio, 5%, 50%, 95%": [float(f"{q:.4g}") for q in np.quantile(bias, (0.05, 0.5, 0.95))],
            "error ratio, 5%, 50%, 95%": [float(f"{q:.4g}") for q in np.quantile(error, (0.05, 0.5, 0.95))],
            "Tikhonov has the smaller error": float(f"{(error < 1.0).mean():.3f}"),
        }
    return out


# --- the trade-off --------------------------------------------------------------------------------------------------


def smooth_walk(n_states: int = 31, n_features: int = 16, width: float = 3.0) -> MarkovRewardProcess:
    """The random walk with Gaussian bumps as features: an ill-conditioned system."""
    walk = random_walk(n_states)
    places, centres = np.arange(n_states)[:, None], np.linspace(0.0, n_states - 1.0, n_features)
    ends = np.zeros(n_states)
    ends[[0, -1]] = -1.0, 1.0
    bumps = np.exp(-(((places - centres) / width) ** 2))
    return MarkovRewardProcess(
        walk.P, np.zeros(n_states), bumps, gamma=1.0, start=walk.start, termination_rewards=ends, name="smooth walk"
    )


ORACLES: dict[str, tuple[MarkovRewardProcess, float]] = {
    "random walk, λ=1": (random_walk(31, features="dependent"), 1.0),
    "walk with RBFs, λ=1": (smooth_walk(), 1.0),
    "Boyan chain, λ=0": (boyan_chain(61), 0.0),
}
"""Coefficients that decay faster than the singular values, as fast, and not at all."""
SAMPLES = (300, 30_000)
CURVES = ("error", "noise part", "bias part", "stated", "ours")


def trade_off(n_repeats: int) -> dict[str, Any]:
    """Medians over streams of error, its two parts and the bounds (with the smallest C) for each rank, and regrets.

    The regret is the error at the rank where a bound is smallest over the smallest error.
    """
    out: dict[str, Any] = {}
    for name, (process, lambda_) in ORACLES.items():
        A, b = process.system(lambda_)
        for n_steps in SAMPLES:
            rng = np.random.default_rng([SEED, n_steps])
            every = np.array([curves(A, b, *sampled(process, lambda_, n_steps, rng)) for _ in range(n_repeats)])
            best = every[:, 0].min(axis=1)
            regret = {
                curve: float(np.median(every[np.arange(n_repeats), 0, every[:, i].argmin(axis=1)] / best))
                for i, curve in enumerate(CURVES)
                if i > 2
            }
            medians = np.median(every, axis=0)
            out[f"{name}, {n_steps} samples"] = {
                **{curve: [float(f"{x:.4g}") for x in medians[i]] for i, curve in enumerate(CURVES)},
                "regret": {curve: float(f"{x:.4g}") for curve, x in regret.items()},
            }
    return out


def curves(A: FloatArray, b: FloatArray, A_t: FloatArray, b_t: FloatArray) -> FloatArray:
    """Error, its parts and the bounds (``CURVES``) for each rank."""
    c = compare(A, b, A_t, b_t)
    results = [c.bound(rank, constant=None) for rank in range(1, b.size + 1)]
    return np.array(
        [
            [x.error for x in results],
            [x.noise_part for x in results],
            [x.bias_part for x in results],
            [x.norm.total for x in results],
            [x.corrected_picard.total for x in results],
        ]
    )


# --- figures --------------------------------------------------------------------------------------------------------


def draw_trade_off(results: dict[str, Any], path: Path) -> None:
    """A row for each oracle, a column for each number of samples."""
    figure = new_figure(6.4, 6.2)
    axes = figure.subplots(len(ORACLES), len(SAMPLES), sharex="row").ravel()
    styles = {
        "error": ("k", "-", 2.0),
        "noise part": (ORANGE, "-.", 1.2),
        "bias part": (BLUE, "--", 1.2),
        "stated": (PURPLE, "-", 1.2),
        "ours": (GREEN, "-", 1.2),
    }
    for axis, (name, curves) in zip(axes, results.items(), strict=True):
        ranks = np.arange(1, len(curves["error"]) + 1)
        for curve, (colour, style, width) in styles.items():
            label = {"stated": "bound, stated", "ours": "bound, ours"}.get(curve, curve)
            values = np.array(curves[curve])
            axis.plot(ranks, np.where(values > 0.0, values, np.nan), style, color=colour, linewidth=width, label=label)
            if curve in ("error", "stated", "ours"):
                best = int(values.argmin())
                axis.plot(ranks[best], values[best], "o", color=colour, markersize=4)
        axis.set_yscale("log")
        axis.set_title(name.replace("30000", "30,000"), fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        finite = np.array(curves["stated"])[np.isfinite(curves["stated"])]
        axis.set_ylim(min(curves["error"]) / 5.0, min(finite.max() * 2.0, 1e5))
    for axis in axes[-len(SAMPLES) :]:
        axis.set_xlabel("rank r")
    for axis in axes[:: len(SAMPLES)]:
        axis.set_ylabel("‖w$_{t,r}$ − w*‖")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    save(figure, path)


def draw_picard(path: Path) -> dict[str, Any]:
    """|uᵢᵀb| against σᵢ for three oracles at λ=0 and λ=1; returns exponents and constants."""
    garnet_process = garnet(100, 2, 3, 30, np.random.default_rng(SEED), gamma=0.95, features="binary")
    processes = {
        "Boyan chain, 101 states": boyan_chain(101),
        "random walk, 31 states": random_walk(31, features="dependent"),
        "Garnet, 100 states": garnet_process,
    }
    figure = new_figure(7.2, 3.3)
    out: dict[str, Any] = {}
    for axis, (name, process) in zip(figure.subplots(1, 3), processes.items(), strict=True):
        for lambda_, colour in ((0.0, ORANGE), (1.0, BLUE)):
            condition = picard(*process.system(lambda_))
            trend = condition.trend()
            plot_picard(condition, axis, colour=colour, label=f"λ={lambda_:g}: p ≈ {trend.p:.1f}".replace("-", "−"))
            interval = condition.exponents()
            out[f"{name}, λ={lambda_:g}"] = {
                "exponents": None if interval.empty else [interval.low, float(f"{interval.high:.4g}")],
                "smallest C at p=1": float(f"{condition.constant(1.0):.4g}"),
                "trend p": float(f"{trend.p:.3g}"),
                "trend deviation": float(f"{trend.deviation:.3g}"),
                "average exponents": not condition.average_exponents().empty,
            }
        axis.set_title(name, fontsize=9)
        axis.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.22), handletextpad=0.1)
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)
    return out


def draw_shares(by_family: dict[str, Any], path: Path) -> None:
    """Three panels over the families: the assumption, the readings, the tightness."""
    names = list(by_family)
    places = np.arange(len(names))[::-1]
    figure = new_figure(7.2, 3.4)
    left, middle, right = figure.subplots(1, 3, sharey=True, width_ratios=(1, 1, 1.4))

    def share(family: str, count: int) -> float:
        return 100.0 * count / float(by_family[family]["cases × ranks"])

    left.barh(places, [share(f, by_family[f]["assumption holds as stated"]) for f in names], 0.6, color=GREY)
    left.set(xlabel="cases × ranks, %", xlim=(0, 100))
    left.set_title("Assumption 1 holds", fontsize=9)
    for reading, offset, colour in (("norm", 0.2, BLUE), ("squared", -0.2, ORANGE)):
        fails = [share(f, by_family[f]["fails with the smallest C"][reading]) for f in names]
        label = f"read as {reading}" + (": never" if max(fails) == 0.0 else "")
        middle.barh(places + offset, fails, 0.36, color=colour, label=label)
    middle.set(xlabel="cases × ranks, %", xlim=(0, 5))
    middle.set_title("stated bound fails", fontsize=9)
    for bound_name, offset, colour, label in (
        ("norm", 0.24, "k", "stated, norm"),
        ("ours, Picard", 0.0, GREEN, "ours, from p and C"),
        ("ours", -0.24, PURPLE, "ours, from w*"),
    ):
        low, median, high = np.array([by_family[f]["bound / error, 5%, 50%, 95%"][bound_name] for f in names]).T
        right.errorbar(
            median, places + offset, xerr=(median - low, high - median), fmt="o", color=colour, markersize=3,
            linewidth=1, label=label,
        )  # fmt: skip
    right.axvline(1.0, color="0.7", linewidth=1)
    right.set(xscale="log", xlabel="1 is perfect")
    right.set_title("bound / error, median and 5–95%", fontsize=9)
    handles = [bars for axis in (middle, right) for bars in axis.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    left.set_yticks(places, labels=names)
    for axis in (left, middle, right):
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def draw_tikhonov(curves: dict[str, FloatArray], families: dict[str, Any], path: Path) -> None:
    """Bias and error of both against the rank on the two oracles, and ratios of errors over all families."""
    figure = new_figure(7.2, 3.3)
    *panels, last = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    for axis, (name, values) in zip(panels, curves.items(), strict=True):
        ranks = np.arange(1, len(values) + 1)
        for i, (colour, label) in enumerate(((BLUE, "truncation"), (ORANGE, "Tikhonov"))):
            axis.plot(ranks, values[:, 2 * i + 1], "-", color=colour, label=f"{label}, error")
            axis.plot(ranks, values[:, 2 * i], ":", color=colour, label=f"{label}, bias")
        axis.set(xlabel="rank r of equal variance", ylim=(0.0, None))
        axis.set_title(name, fontsize=9)
    panels[0].set_ylabel("‖w − w*‖")
    places = np.arange(len(families))[::-1]
    for quantity, offset, colour in (("bias", 0.18, "k"), ("error", -0.18, GREEN)):
        key = f"{quantity} ratio, 5%, 50%, 95%"
        low, median, high = np.array([families[f][key] for f in families]).T
        last.errorbar(
            median, places + offset, xerr=(median - low, high - median), fmt="o", color=colour, markersize=3,
            linewidth=1, label=f"ratio of {quantity}",
        )  # fmt: skip
    last.axvline(1.0, color="0.7", linewidth=1)
    last.set(xscale="log", xlim=(0.2, 2.5))
    last.set_title("Tikhonov / truncation", fontsize=9)
    last.set_xticks([0.25, 0.5, 1.0, 2.0], labels=["¼", "½", "1", "2"])
    last.minorticks_off()
    last.set_yticks(places, labels=list(families), fontsize=8)
    handles = [*panels[0].get_legend_handles_labels()[0], *last.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    for axis in (*panels, last):
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)


# --- command --------------------------------------------------------------------------------------------------------


def run(folder: Path, scale: str, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Measure everything and write ``theorem_*.png`` and ``theorem.json``."""
    rows: list[Row] = []
    both: dict[str, list[Pair]] = {family: [] for family in (*FAMILIES, "p > 1", "p <= 1")}
    for number, (family, case, ranks) in enumerate(cases(N_CASES[scale])):
        rows += measure(family, number, case, ranks)
        c = compare(*case)
        pairs = [against_tikhonov(c, rank) for rank in ranks if rank < c.rank_t]
        pairs = [pair for pair in pairs if min(pair) > 1e-9]
        both[family] += pairs
        both["p > 1" if c.condition.trend().p > 1.0 else "p <= 1"] += pairs
    by_family = {family: summary([row for row in rows if row.family == family]) for family in FAMILIES}
    tikhonov = tikhonov_summary({family: values for family, values in both.items() if values})
    trade_offs = trade_off(N_REPEATS[scale])
    pictures = draw_picard(folder / "theorem_picard.png")
    draw_trade_off(trade_offs, folder / "theorem_trade_off.png")
    draw_shares(by_family, folder / "theorem_shares.png")
    draw_tikhonov(
        _tikhonov_curves(N_REPEATS[scale]),
        {f: tikhonov[f] for f in FAMILIES if f in tikhonov},
        folder / "theorem_tikhonov.png",
    )
    violations = [
        {key: value for key, value in asdict(row).items() if key in ("family", "case", "n_features", "rank", "fails")}
        | {"bound / error": {n: float(f"{row.free[n]:.4g}") for n in row.fails if n in row.free}}
        for row in rows
        if set(row.fails) & set(row.free)
    ]
    results = {
        "scale": scale,
        "seed": SEED,
        "all": summary(rows),
        "families": by_family,
        "convergence": convergence(),
        "picard": pictures,
        "trade-off": trade_offs,
        "tikhonov": tikhonov,
        "violations with the smallest C": violations,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "theorem.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    for key, value in results["all"].items():  # type: ignore[attr-defined]
        report(f"{key}: {value}")
    return results


def _tikhonov_curves(n_repeats: int) -> dict[str, FloatArray]:
    """Medians over streams of 3,000 samples: (rank, [bias, error of truncation, of Tikhonov])."""
    out = {}
    for name in list(ORACLES)[:2]:
        process, lambda_ = ORACLES[name]
        A, b = process.system(lambda_)
        rng = np.random.default_rng([SEED, 7])
        runs = []
        for _ in range(n_repeats):
            c = compare(A, b, *sampled(process, lambda_, 3_000, rng))
            runs.append([against_tikhonov(c, rank) for rank in range(1, b.size)])
        out[name] = np.median(np.array(runs), axis=0)
    return out


def main(arguments: Sequence[str] | None = None, report: Callable[[str], None] = print) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder for what is written")
    parser.add_argument("--scale", choices=sorted(N_CASES), default="full", help="how many cases")
    options = parser.parse_args(arguments)
    run(options.out, options.scale, report)


if __name__ == "__main__":
    main()
