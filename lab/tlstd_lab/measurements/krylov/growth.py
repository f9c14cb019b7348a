"""CPU time against the number of features, samples, active features and dimensions: batch, and a stream's step."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from tlstd import KrylovLSTD
from tlstd.core.figures import new_figure, save
from tlstd.krylov.stream import GROWTH
from tlstd_lab.bench.growth import slope
from tlstd_lab.bench.problems import scattered
from tlstd_lab.bench.timing import timed
from tlstd_lab.measurements.krylov.topic import BATCH_COLOUR, KRYLOV_COLOUR, LAMBDA, Data, Picture, Topic
from tlstd_lab.tables import table

SEEN = 5_000
BASE = {"d": 10**6, "samples": 10_000, "active": 20, "dimension": 10}
"""What is not varied."""


class Varied(NamedTuple):
    """A quantity of ``BASE``, and the exponents that theory has for the growth with it: from the first to the last."""

    label: str
    points: tuple[int, ...]
    batch: tuple[int, ...]
    step: tuple[int, ...]


VARIED = {
    "d": Varied("features d", (10**4, 10**5, 10**6, 10**7, 10**8), (0,), (0,)),
    "samples": Varied("samples", (2_000, 5_000, 10_000, 20_000, 50_000, 100_000), (1,), (0,)),
    "active": Varied("active features", (5, 10, 20, 50, 100, 200), (1,), (1,)),
    "dimension": Varied("dimension", (2, 5, 10, 20, 50, 100), (1, 2), (1, 2)),
}


def refresh_from(n_samples: int) -> int:
    """The first number of samples, at least this one, at which a stream makes a new basis."""
    n = 1
    while n < n_samples:
        n += max(1, int(GROWTH * n))
    return n


def measure() -> Data:
    found: Data = {}
    for name, varied in VARIED.items():
        at = [seconds(**(BASE | {name: point})) for point in varied.points]
        found[name] = {"points": list(varied.points), "batch": [b for b, _ in at], "step": [s for _, s in at]}
    return {"base": BASE | {"seen": SEEN}, "curves": found}


def seconds(d: int, samples: int, active: int, dimension: int) -> tuple[float, float]:
    """Of a batch with its read, and of a step of a stream."""
    warm = refresh_from(samples)
    part = warm // 5  # without a refresh in it
    stream = scattered(d, warm + part, active=active, seen=SEEN)
    batches, steps = [], []
    for _ in range(4):
        model = KrylovLSTD(d, lambda_=LAMBDA, dimension=dimension)
        batches.append(timed(lambda m=model: (m.update_many(stream[:warm]), m.predict(stream.X[[0]])))[0])  # type: ignore[misc]
        streaming = KrylovLSTD(d, lambda_=LAMBDA, dimension=dimension, reads="stream")
        streaming.update_many(stream[:warm])
        steps.append(timed(lambda m=streaming: m.update_and_predict(stream[warm:]))[0] / part)  # type: ignore[misc]
    return median(batches[1:]), median(steps[1:])


def in_words(data: Data) -> str:
    rows = []
    for name, varied in VARIED.items():
        one, x = data["curves"][name], data["curves"][name]["points"]
        cells = [varied.label, f"{x[0]:,} to {x[-1]:,}"]
        for y, theory in ((one["batch"], varied.batch), (one["step"], varied.step)):
            cells += [f"{slope(x, y):.2f}, {slope(x[-3:], y[-3:]):.2f} at the end", " to ".join(map(str, theory))]
        rows.append(cells)
    return table(["against", "from", "batch: slope", "theory", "a stream's step: slope", "theory"], rows)


def draw(data: Data, path: Path) -> None:
    figure = new_figure(9.6, 2.6)
    axes = figure.subplots(1, len(VARIED))
    for axis, (name, varied) in zip(axes, VARIED.items(), strict=True):
        one = data["curves"][name]
        x = np.array(one["points"], dtype=float)
        for words, times, theory, colour, marker in (
            ("batch (ms)", 1e3 * np.array(one["batch"]), varied.batch, BATCH_COLOUR, "o"),
            ("step of a stream (µs)", 1e6 * np.array(one["step"]), varied.step, KRYLOV_COLOUR, "s"),
        ):
            axis.plot(x, times, color=colour, marker=marker, label=f"{words}: slope {slope(x, times):.2f}")
            for exponent in theory:
                guide = times[-1] * (x / x[-1]) ** exponent
                shown = guide > 0.3 * times.min()
                axis.plot(x[shown], guide[shown], "--", color="0.6", lw=0.8, zorder=0)
        axis.set_xlabel(varied.label)
        axis.set(xscale="log", yscale="log")
        low, high = axis.get_ylim()
        axis.set_ylim(low, 4.0 * high)
        axis.legend(loc="upper left")
    axes[0].set_ylabel("CPU time (dashed: theory)")
    save(figure, path)


TOPIC = Topic("growth", measure, in_words, Picture("krylov_growth.png", draw))
