"""An open question of the paper: does an SVD that throws directions away re-orient itself?"""

from __future__ import annotations

from collections.abc import Sequence

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import DASHED, DOTTED, SOLID, Axis, Chart, Legend, Rule, curve
from tlstd_lab.claims import Claim, Finding, Verdict, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval

RANK = 50
BETA = 1e-3
KINDS = {"tiles": ("car-tiles", "#0072B2"), "RBFs": ("car-rbf", "#D55E00")}


class Reorientation(Panel):
    """Distance to A over the least possible at this rank, on streams that change."""

    name = "reorientation"
    title = f"Re-orientation, Mountain Car, rank {RANK}"
    caption = (
        "‖A − UΣVᵀ‖ of t-LSTD (λ=0) over the least possible at its rank. The stream comes from the left half of the "
        "states and, from the vertical line on, from the right half, which shares hardly any feature with it. Thin and "
        "dotted: a stream that does not change."
    )
    size = (3.4, 2.9)

    def kind_runs(self, scale: Scale, kind: str, beta: float | None, *, changes: bool = True) -> list[RunSpec]:
        """Return the runs of a line."""
        steps = pick({"smoke": 600, "quick": 20_000, "paper": 20_000}, scale)
        settings = {
            "problem": KINDS[kind][0],
            "rank": RANK,
            "beta": beta,
            "steps": steps if changes else steps // 2,
            "points": pick({"smoke": 2, "quick": 8, "paper": 20}, scale),
            "change_at": steps // 4 if changes else None,
        }
        return specs("reorientation", settings, seeds(pick({"smoke": 1, "quick": 2, "paper": 5}, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all lines."""
        scale = results.scale
        wanted = [spec for kind in KINDS for beta in (None, BETA) for spec in self.kind_runs(scale, kind, beta)]
        return wanted + [spec for kind in KINDS for spec in self.kind_runs(scale, kind, None, changes=False)]

    def ratios(self, results: Results, kind: str, beta: float | None, *, changes: bool = True) -> FloatArray:
        """Distance over the least possible, (runs, points)."""
        return results.column(self.kind_runs(results.scale, kind, beta, changes=changes), "ratio")

    def chart(self, results: Results) -> Chart:
        """Return a line per features and β."""
        lines = (
            ("1/t", None, True, SOLID, 1.2),
            (f"β={BETA:g}", BETA, True, DASHED, 1.2),
            ("1/t, no change", None, False, DOTTED, 0.9),
        )
        series = []
        for kind, (_, colour) in KINDS.items():
            for words, beta, changes, dash, width in lines:
                runs = self.kind_runs(results.scale, kind, beta, changes=changes)
                samples, ratios = results[runs[0]].columns["samples"], results.column(runs, "ratio")
                look = {"dash": dash, "marker": "", "width": width}
                series.append(curve(samples, ratios, f"{kind}, {words}", colour, **look))
        change = self.kind_runs(results.scale, "tiles", None)[0].settings["change_at"]
        y = Axis("distance over the least possible", low=0.98)
        return Chart(series, Axis("samples"), y, (Rule("x", change, "#777777", SOLID),), legend=Legend("below", 2))

    def claims(self) -> Sequence[Claim]:
        """Return what section 6 supposes."""
        where = "section 6, supposed"
        return (
            Claim(
                "reorientation-one-stream",
                where,
                "On one stream the truncated SVD stays close to the best of its rank.",
                self._one_stream,
            ),
            Claim(
                "reorientation-changes",
                where,
                "Even under truncation the SVD re-orients itself when the leading directions change.",
                self._changes,
            ),
        )

    def _one_stream(self, results: Results) -> Finding:
        found = {
            kind: interval(lambda r: float(r.mean(axis=0).max()), self.ratios(results, kind, None, changes=False))
            for kind in KINDS
        }
        number = max(found.values())
        note = "; ".join(f"{kind}: {ratio}" for kind, ratio in found.items())
        what = "distance over the least possible, largest along the stream (reproduced below 1.25)"
        return Finding(below(number, 1.25, partly=1.5), number, what, note)

    def _changes(self, results: Results) -> Finding:
        found: dict[tuple[str, float | None], OverRuns] = {
            (kind, beta): interval(lambda r: float(r[:, -1].mean()), self.ratios(results, kind, beta))
            for kind in KINDS
            for beta in (None, BETA)
        }
        number = max(found.values())
        verdict: Verdict = below(number, 1.1)
        if verdict == "not" and all(found[kind, BETA].high < 1.1 for kind in KINDS):
            verdict = "partly"
        note = "; ".join(
            f"{kind}, {'1/t' if beta is None else f'β={beta:g}'}: {r}" for (kind, beta), r in found.items()
        )
        what = "distance over the least possible at the end, largest (reproduced below 1.1)"
        return Finding(verdict, number, what, note)
