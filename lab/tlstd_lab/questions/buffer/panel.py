"""Beyond the paper: how far should the basis grow before it is cut back? The buffer's effect on the error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import LIGHT_GREY, MARKERS, Axis, Chart, Rule, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

RANK = 50
SIZES = {"smoke": (5, 50), "quick": (5, 20, 50, 150, 500), "paper": (5, 10, 20, 50, 100, 200, 500, 1000)}
SAMPLES = {"smoke": 300, "quick": 5000, "paper": 5000}
RUNS = {"smoke": 1, "quick": 3, "paper": 8}


class Buffer(Panel):
    """RMSE of t-LSTD against its buffer size, relative to a single cut at the end."""

    name = "buffer"
    title = f"Buffer size, Mountain Car, rank {RANK}"
    caption = (
        f"t-LSTD's RMSE over that of the exact A, cut once to rank {RANK} at the end, against the samples folded in at "
        "once. The paper's algorithms are k=1 and k=r."
    )
    lines: ClassVar[dict[str, tuple[str, float]]] = {
        "tiles, λ=1": ("car-tiles", 1.0),
        "tiles, λ=0.9": ("car-tiles", 0.9),
        "RBFs, λ=0": ("car-rbf", 0.0),
    }

    def size_runs(self, scale: Scale, line: str, size: int) -> list[RunSpec]:
        """Return the runs with one buffer size."""
        problem, lambda_ = self.lines[line]
        estimator = {"class": "TLSTD", "rank": RANK, "lambda_": lambda_, "buffer_size": size}
        settings = {"problem": problem, "estimator": estimator, "samples": [pick(SAMPLES, scale)]}
        return specs("curve", settings, seeds(pick(RUNS, scale)))

    def once_runs(self, scale: Scale, line: str) -> list[RunSpec]:
        """Return the runs of the exact A, of which only the leading singular values are inverted."""
        problem, lambda_ = self.lines[line]
        settings = {"problem": problem, "lambda_": lambda_, "rank": RANK, "samples": [pick(SAMPLES, scale)]}
        return specs("cut-once", settings, seeds(pick(RUNS, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all lines and sizes, one seed after the other."""
        scale = results.scale
        wanted = [spec for line in self.lines for spec in self.once_runs(scale, line)]
        for line in self.lines:
            wanted += [spec for size in pick(SIZES, scale) for spec in self.size_runs(scale, line, size)]
        return sorted(wanted, key=lambda spec: (spec.settings["problem"], spec.seed))

    def ratios(self, results: Results, line: str) -> FloatArray:
        """Return errors over those of a single cut: (runs, sizes)."""
        once = results.column(self.once_runs(results.scale, line), "rmse")[:, -1]
        sizes = pick(SIZES, results.scale)
        errors = [results.column(self.size_runs(results.scale, line, size), "rmse")[:, -1] for size in sizes]
        return np.array(errors).T / once[:, None]

    def chart(self, results: Results) -> Chart:
        """Return a line for each set of features and λ."""
        sizes, colours = pick(SIZES, results.scale), ("#D55E00", "#0072B2", "#009E73")
        series = [
            curve(sizes, self.ratios(results, line), line, colour, marker=marker)
            for line, colour, marker in zip(self.lines, colours, MARKERS, strict=False)
        ]
        x = Axis("samples folded in at once (dotted: k = r)", log=True)
        y = Axis("RMSE / RMSE of one cut at the end")
        return Chart(series, x, y, (Rule("y", 1.0, "#000000"), Rule("x", RANK, LIGHT_GREY)))

    def claims(self) -> Sequence[Claim]:
        """Return that the buffer hardly matters from the rank on."""
        statement = "From k = r on, cutting back after every buffer costs at most 10% against a single cut at the end."
        return (Claim("buffer-enough", BEYOND, statement, self._enough),)

    def _enough(self, results: Results) -> Finding:
        long_enough = np.array(pick(SIZES, results.scale)) >= RANK
        found = {}
        for line in self.lines:
            ratios = self.ratios(results, line)[:, long_enough]
            worst = int(ratios.mean(axis=0).argmax())
            found[line] = ratio_of_means(ratios[:, worst], np.ones(len(ratios)))
        largest = max(found.values(), key=lambda number: number.value)
        note = "; ".join(f"{line}: {number}" for line, number in found.items())
        return Finding(below(largest, 1.1, partly=1.2), largest, "largest ratio at buffers of r samples and more", note)
