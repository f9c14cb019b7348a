"""What the paper leaves open (λ, cut-off, traces, start states), and how much its claims on the rank depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, Series, cases, points
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, mean_band, ratio_of_means

LAMBDAS = (1.0, 0.9, 0.0)
SAMPLES = {"smoke": 300, "quick": 5000, "paper": 5000}
RUNS = {"smoke": 1, "quick": 2, "paper": 10}


class Setting(NamedTuple):
    """Something the paper leaves open, otherwise than in figure 1."""

    words: str
    estimator: dict[str, Any]
    starts: str = ""
    """What the problem's name ends with."""


AS_DRAWN = Setting("as in figure 1", {})
CUT = Setting("cut-off 0.01", {"rcond": 0.01})
REPLACING = Setting("replacing traces", {"trace": "replacing"})
AT_REST = Setting("starts at rest", {}, "-valley")


class _Open(Panel):
    """Shared by tiles and RBFs: LSTD and t-LSTD of two ranks under every setting."""

    problem: ClassVar[str]
    ranks: ClassVar[dict[str, tuple[int, int]]]
    """The smaller one, and the one that the paper calls enough."""
    settings: ClassVar[tuple[Setting, ...]]
    size = (3.4, 3.6)

    def method_runs(self, scale: Scale, setting: Setting, lambda_: float, rank: int | None) -> list[RunSpec]:
        """LSTD, or t-LSTD of a rank with k = r."""
        estimator: dict[str, Any] = {"class": "LSTD"}
        if rank is not None:
            estimator = {"class": "TLSTD", "rank": rank, "buffer_size": rank}
        estimator |= {"lambda_": lambda_} | setting.estimator
        problem = self.problem + setting.starts
        wanted = {"problem": problem, "estimator": estimator, "samples": [pick(SAMPLES, scale)]}
        return specs("curve", wanted, seeds(pick(RUNS, scale)))

    def methods(self, scale: Scale) -> tuple[int | None, ...]:
        """Return LSTD (None) and the ranks."""
        return (None, *pick(self.ranks, scale))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return everything, one seed after the other."""
        wanted = [
            spec
            for setting in self.settings
            for lambda_ in LAMBDAS
            for rank in self.methods(results.scale)
            for spec in self.method_runs(results.scale, setting, lambda_, rank)
        ]
        return sorted(wanted, key=lambda spec: spec.seed)

    def errors(self, results: Results, setting: Setting, lambda_: float, rank: int | None) -> FloatArray:
        """Return the last error of each run."""
        return results.column(self.method_runs(results.scale, setting, lambda_, rank), "rmse")[:, -1]

    def chart(self, results: Results) -> Chart:
        """Return a row per setting and λ, a marker per method with its interval."""
        rows = [(setting, lambda_) for setting in self.settings for lambda_ in LAMBDAS]
        places = [number + 0.6 * (number // len(LAMBDAS)) for number in range(len(rows))]
        colours, series = (COLOURS["LSTD"], "#F0A56E", COLOURS["t-LSTD"]), []
        for rank, colour, marker in zip(self.methods(results.scale), colours, ("D", "^", "s"), strict=True):
            bands = [mean_band(self.errors(results, s, x, rank)[:, None]) for s, x in rows]
            middle, low, high = np.array([[part[0] for part in band] for band in bands]).T
            label = "LSTD" if rank is None else f"t-LSTD r={rank}"
            found = points(middle, places, x_low=low, x_high=high)
            series.append(Series(label, colour, found, marker=marker, size=4.0, joined=False, width=1.0))
        alone = [f"{s.words}, λ={x:g}" for s, x in rows]
        words = [name if x == LAMBDAS[0] else f"λ={x:g}" for name, (_, x) in zip(alone, rows, strict=True)]
        x = Axis(f"RMSE after {pick(SAMPLES, results.scale):,} samples", log=True)
        return Chart(series, x, cases(places, words, alone), legend=Legend("below", 3))

    def claims(self) -> Sequence[Claim]:
        """Return whether the paper's statements on the rank hold under every setting, and under any."""
        small, enough = self.ranks["paper"]
        return (
            Claim(
                f"{self.name}-always",
                BEYOND,
                f"Rank {enough} has LSTD's error whatever λ, the cut-off, the traces and the start states are.",
                self._always,
            ),
            Claim(
                f"{self.name}-levels",
                BEYOND,
                f"There are settings under which rank {small} is as good as rank {enough}.",
                self._levels,
            ),
        )

    def _ratios(self, results: Results, rank: int, over: int | None) -> dict[str, OverRuns]:
        return {
            f"{setting.words}, λ={lambda_:g}": ratio_of_means(
                self.errors(results, setting, lambda_, rank), self.errors(results, setting, lambda_, over)
            )
            for setting in self.settings
            for lambda_ in LAMBDAS
        }

    def _always(self, results: Results) -> Finding:
        enough = pick(self.ranks, results.scale)[1]
        found = self._ratios(results, enough, None)
        number = max(found.values())
        verdict = below(number, 1.1)
        if verdict == "not" and any(ratio.high < 1.1 for ratio in found.values()):
            verdict = "partly"
        what = f"RMSE at rank {enough} over LSTD's with the same settings, largest (reproduced below 1.1)"
        return Finding(verdict, number, what, _listed(found))

    def _levels(self, results: Results) -> Finding:
        small, enough = pick(self.ranks, results.scale)
        found = self._ratios(results, small, enough)
        number = min(found.values())
        what = f"RMSE at rank {small} over that at rank {enough}, smallest (reproduced below 1.1)"
        return Finding(below(number, 1.1), number, what, _listed(found))


def _listed(found: dict[str, OverRuns]) -> str:
    return "; ".join(f"{words}: {ratio}" for words, ratio in found.items())


CAPTION = (
    "Error of LSTD and of t-LSTD (k=r) under settings that the paper does not give: λ, the cut-off (10⁻⁴ in figure 1), "
    "{more}the start states (uniform over the box in figure 1; at rest near the bottom, as Gymnasium's car). Errors "
    "are over the same 20×20 grid: with starts at rest most of it is never visited."
)


class OpenTiles(_Open):
    """Tiles."""

    name = "open-tiles"
    title = "Left open: Mountain Car, tiles"
    caption = CAPTION.format(more="the traces, ")
    problem = "car-tiles"
    ranks: ClassVar[dict[str, tuple[int, int]]] = {"smoke": (5, 20), "quick": (50, 300), "paper": (50, 300)}
    settings = (AS_DRAWN, CUT, REPLACING, AT_REST)


class OpenRBF(_Open):
    """RBFs; replacing traces are for sparse features."""

    name = "open-rbf"
    title = "Left open: Mountain Car, RBFs"
    caption = CAPTION.format(more="")
    problem = "car-rbf"
    ranks: ClassVar[dict[str, tuple[int, int]]] = {"smoke": (5, 20), "quick": (20, 50), "paper": (20, 50)}
    settings = (AS_DRAWN, CUT, AT_REST)
