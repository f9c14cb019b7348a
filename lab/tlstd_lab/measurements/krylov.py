"""Krylov LSTD against TD, t-LSTD and LSTD: errors, CPU times and growth, each comparison within one run.

uv run python -m tlstd_lab.measurements.krylov               # everything, about 15 minutes of one core
uv run python -m tlstd_lab.measurements.krylov time hashed   # some measurements
uv run python -m tlstd_lab.measurements.krylov --write       # measures nothing: tables and figures from what is stored

Every measurement goes into ``docs/figures/krylov.json`` as soon as it is finished. Then the tables of
``docs/krylov.md`` are written between their marks, and the figures ``docs/figures/krylov_*.png`` are drawn.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from tlstd import LSTD, TD, TLSTD, Decay, KrylovLSTD, Transitions
from tlstd.domains.energy_programme import exact_values
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation import true_values
from tlstd.figures import new_figure, save
from tlstd.linalg.krylov import Arnoldi
from tlstd.linalg.krylov_stream import GROWTH
from tlstd.linalg.svd import inverse_factors, svd
from tlstd.linalg.threads import one_thread
from tlstd.streams.simulated import encode, record, trajectory
from tlstd.types import FloatArray
from tlstd_lab.bench.growth import slope
from tlstd_lab.bench.problems import scattered
from tlstd_lab.bench.report import machine
from tlstd_lab.bench.timing import Side, Times, interleaved, ratios
from tlstd_lab.chart import COLOURS, DOTTED, Axis, Chart, Series, curve
from tlstd_lab.chart import points as series_points
from tlstd_lab.drawing import STYLE, draw
from tlstd_lab.panel import seeds
from tlstd_lab.problems import EVALUATION_SEED, Problem, problem

DOCS = Path(__file__).parents[3] / "docs"
LAMBDA = 0.9
DIMENSION = 8
"""Of the runs in which it is given, on energy."""
STREAMS, CAR_STREAMS, TUNING, REPEATS = 10, 5, 5, 5
ENERGY_SAMPLES = (1_000, 4_000, 10_000)
CAR_SAMPLES = (1_000, 5_000, 10_000)
CUTOFFS = (*(10.0 ** -np.arange(1.0, 10.5, 0.5)).tolist(), 0.0)
PAPER = tuple(2.0**e for e in range(-11, 0))
"""The paper's α₀, to be divided by the active features."""
LONGEST = 300
"""Dimensions among which the best in hindsight is looked for."""

Data = dict[str, Any]


# --- errors ---------------------------------------------------------------------------------------------------------


def path_errors(model: KrylovLSTD, made: Problem) -> list[float]:
    """RMSE of the dimensions 1, 2, … of one path."""
    operator = model.operator()
    arnoldi = Arnoldi(lambda V, columns: operator.matvec(V), operator.b())
    arnoldi.extend(LONGEST)
    (path,), ids = arnoldi.paths, model.seen_ids
    X = made.X if isinstance(made.X, np.ndarray) else sp.csc_array(made.X)
    on_basis = X[:, ids] @ path.Q.T  # (states, m + 1)
    coordinates = [path.coordinates(m) for m in range(1, path.dimension + 1)]
    return [made.rmse(on_basis[:, : y.size] @ y) for y in coordinates]


class Setting(NamedTuple):
    """A step size of TD, times the active features, with its λ and N₀; infinite N₀ is a constant step."""

    alpha: float
    lambda_: float
    n0: float

    def model(self, made: Problem) -> TD:
        alpha = self.alpha / made.square_length
        step = alpha if np.isinf(self.n0) else Decay(alpha, self.n0)
        return TD(made.features.n_features, step_size=step, lambda_=self.lambda_)

    def __str__(self) -> str:
        decay = "constant" if np.isinf(self.n0) else f"N₀={self.n0:g}"
        return f"α={self.alpha:g}/active, λ={self.lambda_:g}, {decay}"


def td_errors(setting: Setting, made: Problem, stream: Transitions, samples: Sequence[int]) -> list[float]:
    model, errors, start = setting.model(made), [], 0
    with np.errstate(all="ignore"):
        for stop in samples:
            model.update_many(stream[start:stop])
            errors.append(made.rmse(model.predict(made.X)))
            start = stop
    return errors


class Tuning:
    """TD's mean error over the tuning streams, by setting and number of samples; each setting is run once."""

    def __init__(self, made: Problem, samples: Sequence[int]) -> None:
        self.made, self.samples = made, samples
        self.streams = [sample(made, samples[-1], seed) for seed in seeds(TUNING, tuning=True)]
        self.errors: dict[Setting, FloatArray] = {}

    def best(self, settings: Iterable[Setting], at: int) -> Setting:
        settings = list(settings)
        for setting in settings:
            if setting not in self.errors:
                runs = [td_errors(setting, self.made, stream, self.samples) for stream in self.streams]
                self.errors[setting] = np.mean(runs, axis=0)
        return min(settings, key=lambda setting: float(self.errors[setting][at]))

    def best_of_all(self, at: int) -> Setting:
        """The best over α, λ and N₀, with grids that grow until it is inside."""
        alphas, n0s = [2.0**e for e in range(-5, 2)], [100.0, 1e3, 1e4, np.inf]
        lambdas = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
        while True:
            best = self.best((Setting(*values) for values in product(alphas, lambdas, n0s)), at)
            if best.alpha == min(alphas):
                alphas.append(best.alpha / 2.0)
            elif best.alpha == max(alphas):
                alphas.append(2.0 * best.alpha)
            elif best.n0 == min(n0s):
                n0s.append(best.n0 / 10.0)
            elif best.n0 == max(n for n in n0s if np.isfinite(n)):
                n0s.append(10.0 * best.n0)  # constant is the far end of it
            else:
                return best


def sample(made: Problem, n: int, seed: int) -> Transitions:
    return record(made.domain, None, made.features, n_steps=n, seed=seed)


def energy() -> Data:
    """RMSE on energy storage of "auto", of TD, and of the best dimension in hindsight."""
    made = problem("energy")
    tuning = Tuning(made, ENERGY_SAMPLES)
    streams = [sample(made, ENERGY_SAMPLES[-1], seed) for seed in seeds(STREAMS)]
    found: list[Data] = []
    for at, n in enumerate(ENERGY_SAMPLES):
        settings = {
            "paper": tuning.best((Setting(alpha, LAMBDA, np.inf) for alpha in PAPER), at),
            "tuned": tuning.best_of_all(at),
        }
        row: Data = {"samples": n, "settings": {name: str(setting) for name, setting in settings.items()}}
        for name, setting in settings.items():
            row[name] = [td_errors(setting, made, stream, (n,))[0] for stream in streams]
        row |= auto_against_hindsight(made, [stream[:n] for stream in streams])
        found.append(row)
    return {"rows": found, "td_runs": len(tuning.errors) * TUNING, "td_settings": len(tuning.errors)}


def auto_against_hindsight(made: Problem, streams: Sequence[Transitions]) -> Data:
    found: dict[str, list[Any]] = {name: [] for name in ("auto", "dimensions", "best", "best_dimensions", "notes")}
    for stream in streams:
        model = KrylovLSTD(made.features.n_features, lambda_=LAMBDA)
        model.update_many(stream)
        errors = path_errors(model, made)
        best = int(np.argmin(errors))
        found["auto"].append(made.rmse(model.predict(made.X)))
        found["dimensions"].append(model.chosen_dimension)
        found["best"].append(errors[best])
        found["best_dimensions"].append(best + 1)
        found["notes"].append(model.choices[0].note)
    return found


def car() -> Data:
    """RMSE on Mountain Car of "auto", of LSTD at its best cut-off in hindsight, and of the best dimension.

    On the grid of states that the figures use, and on states that another stream goes through.
    """
    found = []
    for name in ("car-tiles", "car-rbf"):
        made = problem(name)
        states = trajectory(made.domain, n_steps=5_000, seed=EVALUATION_SEED).states[::10]
        there = made._replace(X=made.features.encode_many(states), truth=true_values(made.domain, states))
        streams = [sample(made, CAR_SAMPLES[-1], seed) for seed in seeds(CAR_STREAMS)]
        for n in CAR_SAMPLES:
            parts = [stream[:n] for stream in streams]
            best = [best_cutoff(made, part) for part in parts]
            row: Data = {"problem": made.title, "samples": n}
            row |= {"lstd": [error for error, _ in best], "cutoffs": [cutoff for _, cutoff in best]}
            visited = auto_against_hindsight(there, parts)
            visited["lstd"] = [best_cutoff(there, part)[0] for part in parts]
            found.append(row | auto_against_hindsight(made, parts) | {"visited": visited})
    return {"rows": found}


def best_cutoff(made: Problem, stream: Transitions) -> tuple[float, float]:
    """LSTD's least RMSE over cut-offs, with one decomposition."""
    model = LSTD(made.features.n_features, lambda_=LAMBDA)
    model.update_many(stream)
    ids, A, b = model.system()
    with one_thread():
        U, sigma, Vt = svd(A)
    X = made.X if isinstance(made.X, np.ndarray) else sp.csc_array(made.X)
    on_v, on_u = X[:, ids] @ Vt.T, U.T @ b.reshape(ids.size)
    errors = [made.rmse(on_v @ (inverse_factors(sigma, rcond=cutoff) * on_u)) for cutoff in CUTOFFS]
    best = int(np.argmin(errors))
    return errors[best], CUTOFFS[best]


# --- time -----------------------------------------------------------------------------------------------------------


def measured(*sides: Side, repeats: int = REPEATS) -> dict[str, Times]:
    with one_thread():
        return {times.name: times for times in interleaved(sides, repeats)}


def side(name: str, make: Callable[[], LinearEstimator], action: Callable[[LinearEstimator], object], n: int) -> Side:
    return Side(name, n, lambda: partial(action, make()))


def timing() -> Data:
    """CPU time on energy storage with 10,000 samples: batch reads, compiled streams, and streams from Python."""
    made, n = problem("energy"), ENERGY_SAMPLES[-1]
    d, stream = made.features.n_features, sample(made, n, 0)
    steps = list(stream)
    alpha = PAPER[-1] / made.square_length
    td = partial(TD, d, step_size=alpha, lambda_=LAMBDA)
    krylov = partial(KrylovLSTD, d, lambda_=LAMBDA)
    x = steps[-1].x_next

    def learn(model: LinearEstimator) -> None:
        model.update_many(stream)
        model.predict(x)

    def sweep(_: object) -> None:
        for a in PAPER:
            learn(TD(d, step_size=a / made.square_length, lambda_=LAMBDA))

    def together(model: LinearEstimator) -> None:
        model.update_and_predict(stream)

    def one_by_one(model: LinearEstimator, part: Sequence[Any] = steps) -> None:
        for step in part:
            model.update(step)
            model.predict(step.x_next)

    warm, part = 6_400, 320  # a model in its steady state: whole buffers stand for all 10,000 samples

    def tlstd(name: str, buffer_size: int | None) -> Side:
        model = TLSTD(d, 40, lambda_=LAMBDA, buffer_size=buffer_size)
        model.update_many(stream[:warm])
        return Side(name, part, lambda: partial(one_by_one, deepcopy(model), steps[warm : warm + part]))

    times = measured(
        side("TD pass", td, learn, 1),
        Side("TD sweep", 1, lambda: partial(sweep, None)),
        side("batch given", partial(krylov, dimension=DIMENSION), learn, 1),
        side("batch auto", krylov, learn, 1),
        side("TD compiled", td, together, n),
        side("stream given", partial(krylov, dimension=DIMENSION, reads="stream"), together, n),
        side("stream auto", partial(krylov, reads="stream"), together, n),
        side("TD Python", td, one_by_one, n),
        side("stream given Python", partial(krylov, dimension=DIMENSION, reads="stream"), one_by_one, n),
        side("stream auto Python", partial(krylov, reads="stream"), one_by_one, n),
        tlstd("t-LSTD Python", None),
        tlstd("t-LSTD Python, buffer 40", 40),
    )

    def against(ours: str, theirs: str) -> list[float]:
        return list(ratios(times[ours], times[theirs]))

    return {
        "seconds": {name: list(t.cpu) for name, t in times.items()},
        "steps": {name: t.steps for name, t in times.items()},
        "ratios": {
            "batch given / TD pass": against("batch given", "TD pass"),
            "batch auto / TD pass": against("batch auto", "TD pass"),
            "batch auto / TD sweep": against("batch auto", "TD sweep"),
            "stream given / TD compiled": against("stream given", "TD compiled"),
            "stream auto / TD compiled": against("stream auto", "TD compiled"),
            "stream given Python / TD Python": against("stream given Python", "TD Python"),
            "stream auto Python / TD Python": against("stream auto Python", "TD Python"),
            "stream given Python / t-LSTD Python": against("stream given Python", "t-LSTD Python"),
            "stream auto Python / t-LSTD Python": against("stream auto Python", "t-LSTD Python"),
            "stream given Python / t-LSTD, buffer 40": against("stream given Python", "t-LSTD Python, buffer 40"),
            "stream auto Python / t-LSTD, buffer 40": against("stream auto Python", "t-LSTD Python, buffer 40"),
        },
    }


def every_step() -> Data:
    """10,000 samples of energy storage with a prediction at every step: errors and CPU time, t-LSTD (rank 40) too."""
    made, n = problem("energy"), ENERGY_SAMPLES[-1]
    d, domain = made.features.n_features, EnergyStorage()
    path = trajectory(domain, n_steps=n, seed=0)
    stream = encode(path, made.features, domain)
    truth = exact_values(domain, domain.policy(), path.states[path.rows + 1])
    makers: dict[str, Callable[[], LinearEstimator]] = {
        "Krylov LSTD, stream, dimension 8": lambda: KrylovLSTD(d, lambda_=LAMBDA, dimension=DIMENSION, reads="stream"),
        "Krylov LSTD, stream, auto": lambda: KrylovLSTD(d, lambda_=LAMBDA, reads="stream"),
        "TD, α=0.5/active": lambda: TD(d, step_size=PAPER[-1] / made.square_length, lambda_=LAMBDA),
        "t-LSTD, rank 40": lambda: TLSTD(d, 40, lambda_=LAMBDA, buffer_size=40),
    }
    found = {}
    for name, make in makers.items():
        make().update_and_predict(stream[:50])  # compiles
        times = []
        for _ in range(1 if name.startswith("t-LSTD") else REPEATS):
            model = make()
            begin = time.process_time()
            values = model.update_and_predict(stream)
            times.append(time.process_time() - begin)
        seconds = float(np.median(times))
        wrong = values - truth
        found[name] = {
            "seconds": seconds,
            "rmse": made.rmse(model.predict(made.X)),
            "rmse_of_predictions": float(np.sqrt(np.mean(wrong**2))),
            "rmse_of_later_predictions": float(np.sqrt(np.mean(wrong[n // 2 :] ** 2))),
        }
    return found


# --- a large hashed problem -----------------------------------------------------------------------------------------


@numba.njit
def bare_pass(ptr, pos, v, p, out):  # type: ignore[no-untyped-def]
    """Σ v[pos] of every row, then out[pos] += that sum: what a product cannot do without."""
    for r in range(p.size):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        e = ptr[r]
        for _ in range((ptr[r + 1] - e) // 4):
            a += v[np.uint32(pos[e])]
            b += v[np.uint32(pos[e + 1])]
            c += v[np.uint32(pos[e + 2])]
            d += v[np.uint32(pos[e + 3])]
            e += 4
        for i in range(e, ptr[r + 1]):
            a += v[np.uint32(pos[i])]
        p[r] = (a + b) + (c + d)
    for r in range(p.size):
        s = p[r]
        for e in range(ptr[r], ptr[r + 1]):
            out[np.uint32(pos[e])] += s


def hashed() -> Data:
    """One product with A for 10⁶ samples with 30 of 10⁶ hashed features, over a bare compiled pass; and memory."""
    n_samples = n_features = 10**6
    active = 30
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, n_features // active, (n_samples + 1, active)) * active + np.arange(active), axis=1)
    X = sp.csr_array(
        (np.ones(ids.size), ids.ravel(), np.arange(0, ids.size + 1, active)), shape=(n_samples + 1, n_features)
    )
    stream = Transitions.from_episodes([(X, rng.standard_normal(n_samples), False)], gamma=0.9)
    model = KrylovLSTD(n_features, lambda_=LAMBDA, dimension=DIMENSION)
    begin = time.process_time()
    model.update_many(stream)
    storing = time.process_time() - begin
    operator = model.operator()
    ptr, pos = rows_of(
        operator.samples.chunks, [operator.samples.count(c) for c in range(len(operator.samples.chunks))]
    )
    v, p, out = rng.standard_normal(operator.n), np.zeros(ptr.size - 1), np.zeros(operator.n)
    times = measured(
        Side("product", 1, lambda: partial(operator.matvec, v)),
        Side("bare pass", 1, lambda: partial(bare_pass, ptr, pos, v, p, out)),
        repeats=9,
    )
    kept = sum(chunk.nbytes for chunk in operator.samples.chunks)
    return {
        "seconds": {name: list(t.cpu) for name, t in times.items()},
        "ratios": list(ratios(times["product"], times["bare pass"])),
        "storing": storing,
        "features_seen": operator.n,
        "bytes_per_sample": kept / n_samples,
        "documented": 4 * active + 36,
        "bytes_in_all": model.nbytes,
    }


def rows_of(chunks: Sequence[Any], counts: Sequence[int]) -> tuple[Any, Any]:
    """The rows x_t of all chunks as one CSR matrix with the store's own positions."""
    pieces, lengths = [], []
    for chunk, count in zip(chunks, counts, strict=True):
        last = int(chunk.row[count - 1]) + 1
        pieces.append(chunk.pos[: chunk.ptr[last]])
        lengths.append(np.diff(chunk.ptr[: last + 1]))
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int32)
    return ptr, np.concatenate(pieces)


# --- growth ---------------------------------------------------------------------------------------------------------


def growth() -> Data:
    """CPU time against the number of features, samples, active features and dimensions: batch, and a stream's step."""
    base: dict[str, int] = {"d": 10**6, "samples": 10_000, "active": 20, "dimension": 10}
    seen = 5_000
    ranges = {
        "d": (10**4, 10**5, 10**6, 10**7, 10**8),
        "samples": (2_000, 5_000, 10_000, 20_000, 50_000, 100_000),
        "active": (5, 10, 20, 50, 100, 200),
        "dimension": (2, 5, 10, 20, 50, 100),
    }
    found: Data = {}
    for name, points in ranges.items():
        batch, steps = [], []
        for point in points:
            now = base | {name: point}
            warm = refresh_from(now["samples"])
            part = warm // 5  # without a refresh in it
            stream = scattered(now["d"], warm + part, active=now["active"], seen=seen)
            options: Data = {"lambda_": LAMBDA, "dimension": now["dimension"]}
            batch_times, step_times = [], []
            for _ in range(4):
                model = KrylovLSTD(now["d"], **options)
                begin = time.process_time()
                model.update_many(stream[:warm])
                model.predict(stream.X[[0]])
                batch_times.append(time.process_time() - begin)
                streaming = KrylovLSTD(now["d"], reads="stream", **options)
                streaming.update_many(stream[:warm])
                begin = time.process_time()
                streaming.update_and_predict(stream[warm:])
                step_times.append((time.process_time() - begin) / part)
            batch.append(float(np.median(batch_times[1:])))
            steps.append(float(np.median(step_times[1:])))
        found[name] = {"points": list(points), "batch": batch, "step": steps}
    return {"base": base | {"seen": seen}, "curves": found}


def refresh_from(n_samples: int) -> int:
    """The first number of samples, at least this one, at which a stream makes a new basis."""
    n = 1
    while n < n_samples:
        n += max(1, int(GROWTH * n))
    return n


# --- from the first sample on ---------------------------------------------------------------------------------------


def first_samples() -> Data:
    """RMSE from sample 1 on: a stream beside batch reads of all samples so far, both "auto", and TD."""
    points = sorted({round(10.0 ** (0.2 * i)) for i in range(21)})
    tuned = {"energy": Setting(PAPER[-1], LAMBDA, np.inf), "car-tiles": Setting(PAPER[-1], LAMBDA, np.inf)}
    found: Data = {"samples": points, "problems": {}}
    for name, setting in tuned.items():
        made = problem(name)
        d = made.features.n_features
        rows: dict[str, list[list[float]]] = {"stream": [], "batch": [], "TD": []}
        for seed in seeds(CAR_STREAMS):
            stream = sample(made, points[-1], seed)
            rows["TD"].append(td_errors(setting, made, stream, points))
            for reads in ("stream", "batch"):
                model, start, errors = KrylovLSTD(d, lambda_=LAMBDA, reads=reads), 0, []
                for stop in points:
                    model.update_many(stream[start:stop])
                    errors.append(made.rmse(model.predict(made.X)))
                    start = stop
                rows[reads].append(errors)
        zero = made.rmse(np.zeros(made.truth.size))
        found["problems"][name] = {"title": made.title, "errors": rows, "zero": zero}
    return found


# --- tables ---------------------------------------------------------------------------------------------------------


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Of the means over streams."""
    return float(np.mean(ours) / np.mean(theirs))


def verdict(value: float, target: float, digits: int = 2) -> str:
    """A ratio beside its target, in bold where it is missed."""
    text = f"{value:.{digits}f}" if value >= 0.1 else f"{value:.3f}"
    return f"{text} (≤ {target:g})" if value <= target else f"**{text}** (≤ {target:g})"


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Mean and standard deviation over streams."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def some(values: Sequence[float]) -> str:
    """Median, lowest and highest of repeats."""
    return f"{np.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def span(values: Sequence[int]) -> str:
    return f"{min(values)} to {max(values)}" if min(values) < max(values) else str(values[0])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def energy_table(data: Data) -> str:
    head = ["samples", "Krylov LSTD", "dimensions", "TD, paper's grid", "TD, tuned", "/ TD, paper's grid",
            "/ TD, tuned", "best in hindsight", "/ best"]  # fmt: skip
    rows = [
        [
            f"{row['samples']:,}", spread(row["auto"]), span(row["dimensions"]), spread(row["paper"]),
            spread(row["tuned"]), verdict(ratio(row["auto"], row["paper"]), 0.85),
            verdict(ratio(row["auto"], row["tuned"]), 0.92),
            f"{spread(row['best'])}, dimensions {span(row['best_dimensions'])}",
            verdict(ratio(row["auto"], row["best"]), 1.05, 3),
        ]
        for row in data["rows"]
    ]  # fmt: skip
    settings = "; ".join(f"{row['samples']:,}: {row['settings']['tuned']}" for row in data["rows"])
    single = [np.divide(row["auto"], row["paper"]) for row in data["rows"]]
    ranges = ", ".join(f"{values.min():.2f} to {values.max():.2f}" for values in single)
    by_stream = f"Stream by stream the ratios to TD on the paper's grid go from {ranges}."
    note = (
        f"TD was tuned by {data['td_runs']:,} runs ({data['td_settings']} settings, {TUNING} streams of other seeds), "
        f"at each number of samples by itself. Best: {settings}. {by_stream}"
    )
    return f"{table(head, rows)}\n\n{note}"


def car_table(data: Data) -> str:
    head = ["", "samples", "Krylov LSTD", "dimensions", "LSTD, best cut-off", "/ LSTD", "best dimension in hindsight",
            "/ best", "where a stream goes: / LSTD", "/ best"]  # fmt: skip
    rows = [
        [
            row["problem"], f"{row['samples']:,}", spread(row["auto"], 1), span(row["dimensions"]),
            spread(row["lstd"], 1), verdict(ratio(row["auto"], row["lstd"]), 1.05, 3),
            f"{spread(row['best'], 1)}, dimensions {span(row['best_dimensions'])}",
            verdict(ratio(row["auto"], row["best"]), 1.05, 3),
            *(f"{ratio(row['visited']['auto'], row['visited'][other]):.3f}" for other in ("lstd", "best")),
        ]
        for row in data["rows"]
    ]  # fmt: skip
    return table(head, rows)


def timing_table(data: Data) -> str:
    targets = {
        "batch given / TD pass": ("batch, dimension 8", "one TD pass", 2.0),
        "batch auto / TD pass": ('batch, "auto", folds included', "one TD pass", 8.0),
        "batch auto / TD sweep": ("the same", "TD's sweep over the paper's 11 step sizes", 1.0),
        "stream given / TD compiled": ("`update_and_predict`, dimension 8", "TD by the same call", 8.0),
        "stream auto / TD compiled": ('`update_and_predict`, "auto"', "TD by the same call", 20.0),
        "stream given Python / TD Python": ("`update` and `predict`, dimension 8", "TD's", 1.5),
        "stream auto Python / TD Python": ('`update` and `predict`, "auto"', "TD's", 1.5),
        "stream given Python / t-LSTD Python": ("the same, dimension 8", "t-LSTD's, rank 40", 0.1),
        "stream auto Python / t-LSTD Python": ('the same, "auto"', "t-LSTD's, rank 40", 0.1),
        "stream given Python / t-LSTD, buffer 40": ("the same, dimension 8", "t-LSTD's with `buffer_size=40`", 0.1),
        "stream auto Python / t-LSTD, buffer 40": ('the same, "auto"', "t-LSTD's with `buffer_size=40`", 0.1),
    }
    rows = []
    for name, (ours, theirs, target) in targets.items():
        values = data["ratios"][name]
        reached = "yes" if np.median(values) <= target else "**no**"
        rows.append([ours, theirs, some(values), f"≤ {target:g}", reached])
    each = {name: float(np.median(values)) / data["steps"][name] for name, values in data["seconds"].items()}
    ms = {name: f"{1e3 * seconds:.0f}" for name, seconds in each.items()}
    us = {name: f"{1e6 * seconds:,.{1 if seconds < 1e-4 else 0}f}" for name, seconds in each.items()}
    note = (
        f"In these runs TD took {ms['TD pass']} ms for a pass, batch reads {ms['batch given']} ms (dimension 8) and "
        f'{ms["batch auto"]} ms ("auto"). A step by `update_and_predict` took {us["TD compiled"]} µs with TD, '
        f"{us['stream given']} and {us['stream auto']} µs here; from Python {us['TD Python']} µs with TD, "
        f"{us['stream given Python']} and {us['stream auto Python']} µs here, {us['t-LSTD Python']} µs with t-LSTD and "
        f"{us['t-LSTD Python, buffer 40']} µs with its shorter buffer, which is better for reads (320 steps after "
        "6,400 samples stand for all)."
    )
    return f"{table(['', 'against', 'CPU time, ratio', 'target', 'reached'], rows)}\n\n{note}"


def every_step_table(data: Data) -> str:
    theirs = data["t-LSTD, rank 40"]
    rows = []
    for name, row in data.items():
        ratios = ["", ""]
        if name.startswith("Krylov"):
            ratios = [verdict(row["rmse"] / theirs["rmse"], 0.5), verdict(row["seconds"] / theirs["seconds"], 0.02, 3)]
        rows.append([name, f"{row['rmse']:.0f}", ratios[0], f"{row['rmse_of_predictions']:.0f}",
                     f"{row['rmse_of_later_predictions']:.0f}", f"{row['seconds']:.3g} s", ratios[1]])  # fmt: skip
    head = ["", "RMSE at the end", "/ t-LSTD", "of the 10,000 predictions", "of the last 5,000", "CPU time", "/ t-LSTD"]
    return table(head, rows)


def hashed_table(data: Data) -> str:
    product, bare = (float(np.median(data["seconds"][name])) for name in ("product", "bare pass"))
    rows = [
        [
            "a product",
            f"{1e3 * product:.0f} ms",
            f"{some(data['ratios'])} of a bare pass ({1e3 * bare:.0f} ms)",
            "≤ 1.5",
        ],
        [
            "bytes a sample",
            f"{data['bytes_per_sample']:.1f}",
            f"{data['documented']} documented; {1e-6 * data['bytes_in_all']:.0f} MB with the features' index",
            f"≤ {data['documented'] + 4}",
        ],
        ["storing", f"{1e6 * data['storing'] / 1e6:.2f} µs a sample", "", ""],
    ]
    return table(["", "", "against", "target"], rows)


LABELS = {"d": "features d", "samples": "samples", "active": "active features", "dimension": "dimension"}
THEORY = {"d": ("0", "0"), "samples": ("1", "0"), "active": ("1", "1"), "dimension": ("1 to 2", "1 to 2")}


def growth_table(data: Data) -> str:
    rows = []
    for name, one in data["curves"].items():
        x = one["points"]
        cells = [LABELS[name], f"{x[0]:,} to {x[-1]:,}"]
        for kind, theory in zip(("batch", "step"), THEORY[name], strict=True):
            cells += [f"{slope(x, one[kind]):.2f}, {slope(x[-3:], one[kind][-3:]):.2f} at the end", theory]
        rows.append(cells)
    return table(["against", "from", "batch: slope", "theory", "a stream's step: slope", "theory"], rows)


def first_samples_table(data: Data) -> str:
    wanted = [n for n in data["samples"] if n in (1, 10, 100, 1_000, 10_000)]
    rows = []
    for one in data["problems"].values():
        for name, runs in one["errors"].items():
            means = np.mean(runs, axis=0)
            digits = 0 if one["zero"] > 100.0 else 1
            rows.append([one["title"], name, *(f"{means[data['samples'].index(n)]:.{digits}f}" for n in wanted)])
        rows.append([one["title"], "predicting 0", *[f"{one['zero']:.0f}"] * len(wanted)])
    return table(["", "RMSE after", *(f"{n:,}" for n in wanted)], rows)


# --- figures --------------------------------------------------------------------------------------------------------

KRYLOV_COLOUR, BATCH_COLOUR = "#009E73", "#000000"


def draw_first_samples(data: Data, path: Path) -> None:
    figure = new_figure(7.2, 3.0)
    axes = figure.subplots(1, len(data["problems"]))
    lines = (
        ("batch", "Krylov LSTD, batch", BATCH_COLOUR, "o"),
        ("stream", "Krylov LSTD, stream", KRYLOV_COLOUR, "s"),
        ("TD", "TD, α=0.5/active", COLOURS["TD"], "^"),
    )
    samples = data["samples"]
    for axis, one in zip(axes, data["problems"].values(), strict=True):
        series = [curve(samples, np.array(one["errors"][name]), *look, marker=marker) for name, *look, marker in lines]
        zero = series_points(samples, np.full(len(samples), one["zero"]))
        series.append(Series("predicting 0", "#777777", zero, dash=DOTTED, width=1.0))
        draw(Chart(series, Axis("samples", log=True), Axis("RMSE", log=True)), axis)
        axis.set_title(one["title"])
    save(figure, path)


def draw_growth(data: Data, path: Path) -> None:
    figure = new_figure(9.6, 2.6)
    axes = figure.subplots(1, len(data["curves"]))
    for axis, (name, one) in zip(axes, data["curves"].items(), strict=True):
        x = np.array(one["points"], dtype=float)
        for kind, scale, colour, marker in (("batch", 1e3, BATCH_COLOUR, "o"), ("step", 1e6, KRYLOV_COLOUR, "s")):
            y = scale * np.array(one[kind])
            label = f"{'batch (ms)' if kind == 'batch' else 'step of a stream (µs)'}: slope {slope(x, y):.2f}"
            axis.plot(x, y, color=colour, marker=marker, label=label)
            for exponent in {"0": (0,), "1": (1,), "1 to 2": (1, 2)}[THEORY[name][kind == "step"]]:
                guide = y[-1] * (x / x[-1]) ** exponent
                shown = guide > 0.3 * y.min()
                axis.plot(x[shown], guide[shown], "--", color="0.6", lw=0.8, zorder=0)
        axis.set_xlabel(LABELS[name])
        axis.set(xscale="log", yscale="log")
        low, high = axis.get_ylim()
        axis.set_ylim(low, 4.0 * high)
        axis.legend(loc="upper left")
    axes[0].set_ylabel("CPU time (dashed: theory)")
    save(figure, path)


# --- the command ----------------------------------------------------------------------------------------------------

MEASUREMENTS: dict[str, Callable[[], Data]] = {
    "energy": energy,
    "car": car,
    "time": timing,
    "every-step": every_step,
    "hashed": hashed,
    "growth": growth,
    "first-samples": first_samples,
}
TABLES: dict[str, Callable[[Data], str]] = {
    "energy": energy_table,
    "car": car_table,
    "time": timing_table,
    "every-step": every_step_table,
    "hashed": hashed_table,
    "growth": growth_table,
    "first-samples": first_samples_table,
}
FIGURES: dict[str, tuple[str, Callable[[Data, Path], None]]] = {
    "growth": ("krylov_growth.png", draw_growth),
    "first-samples": ("krylov_first_samples.png", draw_first_samples),
}


def with_tables(text: str, stored: Data) -> str:
    """The page with its tables, each between its marks, as they follow from what is stored."""
    for name, make in TABLES.items():
        if name in stored:
            mark = f"<!-- table: {name} -->\n"
            before, found, rest = text.partition(mark)
            if not found:
                raise ValueError(f"the page has no place for the table {name}: it needs the line {mark!r}")
            after = rest[rest.index("<!-- end -->") :]
            text = f"{before}{mark}\n{make(stored[name]['data'])}\n\n{after}"
    return text


def write(stored: Data) -> None:
    """Tables and figures."""
    import matplotlib as mpl

    page = DOCS / "krylov.md"
    page.write_text(with_tables(page.read_text(encoding="utf-8"), stored), encoding="utf-8")
    with mpl.rc_context(STYLE):
        for name, (file, draw) in FIGURES.items():
            if name in stored:
                draw(stored[name]["data"], DOCS / "figures" / file)


def main(*arguments: str) -> None:
    names = [name for name in arguments if name != "--write"]
    unknown = set(names) - set(MEASUREMENTS)
    if unknown:
        raise SystemExit(f"there is no measurement {', '.join(sorted(unknown))}: choose from {', '.join(MEASUREMENTS)}")
    store = DOCS / "figures" / "krylov.json"
    stored: Data = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    chosen = [] if "--write" in arguments else [name for name in MEASUREMENTS if not names or name in names]
    for name in chosen:
        begin = time.process_time()
        data = MEASUREMENTS[name]()
        stored[name] = {"data": data, "cpu_seconds": time.process_time() - begin, "machine": machine()}
        store.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{name}: {stored[name]['cpu_seconds']:.0f} s\n\n{TABLES[name](data)}\n", flush=True)
    write(stored)


if __name__ == "__main__":
    main(*sys.argv[1:])
