"""What the size of the constant feature does: figure 3b's methods on the library's own random Fourier features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, Series, cases, points
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Results, Scale, pick
from tlstd_lab.questions.contest.methods import Effort
from tlstd_lab.questions.smooth.settings import OURS, PAPERS, Smooth, name_of
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import interval, ratio_of_means

METHODS = ("TD", name_of(40, PAPERS), name_of(40, OURS), "LSTD", "Krylov LSTD")
EFFORTS: Mapping[Scale, Effort] = {
    "smoke": Effort(1, 0, 1, 2),
    "quick": Effort(3, 0, 1, 30),
    "paper": Effort(10, 0, 2, 200),
}


class Unit(Smooth):
    """The problem with the library's features."""

    name = title = caption = "unit"
    problem = "energy-fourier-unit"

    def methods(self, scale: Scale) -> list[str]:
        """Return who takes part."""
        return list(METHODS)

    def every(self, scale: Scale) -> tuple[int, ...]:
        """Return the numbers of samples."""
        return pick({"smoke": (100, 200), "quick": (500, 1_000), "paper": (1_000, 10_000)}, scale)

    def effort(self, scale: Scale, name: str) -> Effort:
        """Return how many runs a method is given."""
        return EFFORTS[scale]


class Plain(Unit):
    """The problem of the other panels, at the same numbers of samples."""

    problem = Smooth.problem


class Constant(Unit):
    """Both."""

    name = "smooth-constant"
    title = "The size of the constant feature"
    caption = (
        "RMSE on energy storage with the cosines of the other panels (between −1 and 1, and a constant 1; left) and as "
        "`tlstd.features.RandomFourier` has them (all cosines together as large as the constant; right), after 10,000 "
        "samples (filled) and 1,000 (hollow). TD is tuned on other seeds for each. Paper scale: 10 runs."
    )
    size = (3.8, 3.2)

    def parts(self) -> dict[str, Unit]:
        """Return both problems."""
        return {"plain": Plain(), "unit": Unit()}

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return all sweeps."""
        return [spec for part in self.parts().values() for spec in part.tuning(scale)]

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs of both."""
        return [spec for part in self.parts().values() for spec in part.runs(results)]

    def chart(self, results: Results) -> Chart:
        """Return the errors by method and size."""
        series, parts = [], self.parts()
        colours = {"plain": COLOURS["TD"], "unit": COLOURS["t-LSTD"]}
        for shift, (word, part) in zip((-0.15, 0.15), parts.items(), strict=True):
            samples = part.every(results.scale)
            for at, n in enumerate(samples):
                found = [
                    interval(lambda e: float(e.mean()), part.column(results, name, "rmse")[:, at]) for name in METHODS
                ]
                value, low, high = zip(*((r.value, r.low, r.high) for r in found), strict=True)
                places = [i + shift for i in range(len(METHODS))]
                label = f"{'cosines' if word == 'plain' else 'RandomFourier'}, {n:,} samples"
                look = {"marker": "o", "joined": False, "hollow": at == 0}
                series.append(Series(label, colours[word], points(value, places, x_low=low, x_high=high), **look))  # type: ignore[arg-type]
        y = cases(range(len(METHODS)), [self.roster[name].label for name in METHODS])
        return Chart(series, Axis("RMSE", log=True), y, legend=Legend("below", 1, 5.6))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        return (
            Claim(
                f"{self.name}-td",
                BEYOND,
                "With the library's random Fourier features too, t-LSTD of rank 40 (cut-off 10⁻⁴) has a lower error "
                "than tuned TD after 1,000 and after 10,000 samples.",
                self._td,
            ),
            Claim(
                f"{self.name}-cutoff",
                BEYOND,
                "The larger the constant feature, the more t-LSTD loses with the cut-off 0.01.",
                self._cutoff,
            ),
        )

    def _td(self, results: Results) -> Finding:
        unit, notes, ratios = self.parts()["unit"], [], []
        for at, n in enumerate(unit.every(results.scale)):
            td = unit.column(results, "TD", "rmse")[:, at]
            ratios.append(ratio_of_means(unit.column(results, name_of(40, OURS), "rmse")[:, at], td))
            errors = {name: unit.column(results, name, "rmse")[:, at].mean() for name in METHODS}
            notes.append(f"{n:,}: {ratios[-1]} (" + ", ".join(f"{name} {e:.0f}" for name, e in errors.items()) + ")")
        worst = max(ratios, key=lambda ratio: ratio.value)
        return Finding(below(worst, 1.0), worst, "RMSE of t-LSTD over TD's, worst number of samples", "; ".join(notes))

    def _cutoff(self, results: Results) -> Finding:
        by_part = {}
        for word, part in self.parts().items():
            errors = [part.column(results, name_of(40, cutoff), "rmse")[:, -1] for cutoff in (PAPERS, OURS)]
            by_part[word] = errors
        loss = {word: ratio_of_means(*errors) for word, errors in by_part.items()}
        both = [*by_part["plain"], *by_part["unit"]]
        number = interval(lambda a, b, c, d: float(a.mean() / b.mean() / (c.mean() / d.mean())), *map(np.asarray, both))
        note = f"0.01 over 10⁻⁴: cosines {loss['plain']}, RandomFourier {loss['unit']}"
        what = "loss by the cut-off 0.01 with cosines over that with RandomFourier"
        return Finding(below(number, 1.0), number, what, note)
