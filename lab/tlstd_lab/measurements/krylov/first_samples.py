"""RMSE from sample 1 on: a stream beside batch reads of all samples so far, both "auto", and TD."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tlstd import KrylovLSTD
from tlstd.core.figures import new_figure, save
from tlstd.estimators.base import LinearEstimator
from tlstd_lab.chart import COLOURS, DOTTED, Axis, Chart, Series, curve
from tlstd_lab.chart import points as series_points
from tlstd_lab.drawing import draw as draw_chart
from tlstd_lab.measurements.krylov.topic import (
    BATCH_COLOUR,
    CAR_STREAMS,
    KRYLOV_COLOUR,
    LAMBDA,
    Data,
    Picture,
    Topic,
    sample,
)
from tlstd_lab.measurements.krylov.tuned_td import LARGEST, errors_after
from tlstd_lab.panel import seeds
from tlstd_lab.problems import Problem, problem
from tlstd_lab.tables import table


class Line(NamedTuple):
    """A learner: its name in ``krylov.json`` and the table, and its line in the figure."""

    name: str
    make: Callable[[Problem], LinearEstimator]
    label: str
    colour: str
    marker: str


LINES = (
    Line("stream", lambda made: KrylovLSTD(made.features.n_features, lambda_=LAMBDA, reads="stream"),
         "Krylov LSTD, stream", KRYLOV_COLOUR, "s"),
    Line("batch", lambda made: KrylovLSTD(made.features.n_features, lambda_=LAMBDA),
         "Krylov LSTD, batch", BATCH_COLOUR, "o"),
    Line("TD", LARGEST.model, "TD, α=0.5/active", COLOURS["TD"], "^"),
)  # fmt: skip
DRAWN = (LINES[1], LINES[0], LINES[2])
"""In this order, so that the stream's line lies above that of batch reads."""


def measure() -> Data:
    points = sorted({round(10.0 ** (0.2 * i)) for i in range(21)})
    found: Data = {"samples": points, "problems": {}}
    for name in ("energy", "car-tiles"):
        made = problem(name)
        streams = [sample(made, points[-1], seed) for seed in seeds(CAR_STREAMS)]
        errors = {line.name: [errors_after(points, line.make(made), made, s) for s in streams] for line in LINES}
        zero = made.rmse(np.zeros(made.truth.size))
        found["problems"][name] = {"title": made.title, "errors": errors, "zero": zero}
    return found


def in_words(data: Data) -> str:
    wanted = [n for n in data["samples"] if n in (1, 10, 100, 1_000, 10_000)]
    rows = []
    for one in data["problems"].values():
        digits = 0 if one["zero"] > 100.0 else 1
        for line in LINES:
            means = np.mean(one["errors"][line.name], axis=0)
            rows.append([one["title"], line.name, *(f"{means[data['samples'].index(n)]:.{digits}f}" for n in wanted)])
        rows.append([one["title"], "predicting 0", *[f"{one['zero']:.0f}"] * len(wanted)])
    return table(["", "RMSE after", *(f"{n:,}" for n in wanted)], rows)


def draw(data: Data, path: Path) -> None:
    figure = new_figure(7.2, 3.0)
    axes = figure.subplots(1, len(data["problems"]))
    samples = data["samples"]
    for axis, one in zip(axes, data["problems"].values(), strict=True):
        series = [
            curve(samples, np.array(one["errors"][line.name]), line.label, line.colour, marker=line.marker)
            for line in DRAWN
        ]
        zero = series_points(samples, np.full(len(samples), one["zero"]))
        series.append(Series("predicting 0", "#777777", zero, dash=DOTTED, width=1.0))
        draw_chart(Chart(series, Axis("samples", log=True), Axis("RMSE", log=True)), axis)
        axis.set_title(one["title"])
    save(figure, path)


TOPIC = Topic("first-samples", measure, in_words, Picture("krylov_first_samples.png", draw))
