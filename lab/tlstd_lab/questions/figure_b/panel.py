"""Figures B.1 to B.6: learning curves on both domains with both kinds of features, and the rank panels again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tlstd.core.arrays import FloatArray
from tlstd_lab.claims import Claim, Finding, Verdict, above, below
from tlstd_lab.panel import Results, Scale, pick
from tlstd_lab.questions.figure_1.panel import RankRBF, RankTiles
from tlstd_lab.questions.figure_2.curves import (
    LARGE,
    LSTD,
    SIZES,
    SMALL,
    TD,
    Curves,
    Method,
    apart,
    by_seed,
    curve_ratio,
)
from tlstd_lab.questions.figure_2.panel_a import CarRBFSamples
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval, ratio_of_means

LINES = (
    "Dashed, and TD: λ, cut-off and α with the lowest mean RMSE over the points shown, chosen on other seeds. Solid: "
    "t-LSTD with λ=0 and the cut-off 0.01 as figure 2 has it; dotted: LSTD with the same."
)
"""Of the captions."""


def together(printed: Verdict, tuned: Verdict) -> Verdict:
    """Reproduced if it is so for both settings of t-LSTD, not if for neither, else partly.

    The text says that λ was optimised for each algorithm, the caption of figure 2 that t-LSTD had λ=0.

    Example
    -------
    >>> together("not", "reproduced")
    'partly'
    """
    return printed if printed == tuned else "partly"


class _Learning(Curves):
    """Shared by the four panels: early gains with a rank that is too small."""

    def claims(self) -> Sequence[Claim]:
        """Return what appendix B says of this panel."""
        return (
            Claim(
                f"{self.name}-early",
                f"appendix B, figure {self.name}",
                "Even with a rank that is too small (r=30), t-LSTD has a lower error than TD early on.",
                self._early,
            ),
        )

    def _early(self, results: Results) -> Finding:
        samples = pick(SIZES, results.scale).samples
        few = max(1, sum(count <= samples[-1] / 10 for count in samples))
        td = self.errors(results, TD)

        def gain(method: Method, *, printed: bool) -> OverRuns:
            return curve_ratio(self.errors(results, method, printed=printed)[:, :few], td[:, :few])

        printed, tuned = gain(SMALL, printed=True), gain(SMALL, printed=False)
        last = ratio_of_means(self.errors(results, SMALL)[:, -1], td[:, -1])
        note = (
            f"as printed: {printed}; r={LARGE.rank} as printed: {gain(LARGE, printed=True)}, at its best: "
            f"{gain(LARGE, printed=False)}; r={SMALL.rank} at its best, last point: {last}. TD has "
            f"{self.chosen(results, TD)}, r={SMALL.rank} {self.chosen(results, SMALL)}"
        )
        what = f"mean RMSE of r={SMALL.rank} at its best over TD's, up to {samples[few - 1]:,} samples"
        return Finding(together(below(printed, 1.0), below(tuned, 1.0)), tuned, what, note)


class _Tiles(_Learning):
    """With tiles: how t-LSTD fares against LSTD, and against the same with RBFs, whose runs are made too."""

    caption = f"1,000 tile features (10 tilings of 10×10), γ=0.99, k=r. {LINES}"
    beside: ClassVar[Curves]

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps of both kinds of features."""
        return [*super().tuning(scale), *self.beside.tuning(scale)]

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs with tiles, and those with RBFs that they are compared with."""
        wanted = []
        for method in (LSTD, LARGE):
            wanted += self.beside.tuned(results, method) + self.beside.printed(results.scale, method)
        return [*super().runs(results), *by_seed(wanted)]

    def claims(self) -> Sequence[Claim]:
        """Return what appendix B says of this panel."""
        return (
            *super().claims(),
            Claim(
                f"{self.name}-tiles",
                f"appendix B, figure {self.name}",
                "With tiles, whose singular values fall less quickly, t-LSTD does worse against LSTD than with RBFs.",
                self._tiles,
            ),
            Claim(
                f"{self.name}-too-small",
                f"appendix B, figure {self.name}",
                "t-LSTD does not do well where A has more than r large singular values (r=30).",
                self._too_small,
            ),
        )

    def _tiles(self, results: Results) -> Finding:
        found: dict[bool, OverRuns] = {}
        for printed in (True, False):
            columns = []
            for panel in (self, self.beside):
                columns += [panel.errors(results, LARGE, printed=printed)[:, -1], panel.errors(results, LSTD)[:, -1]]
            found[printed] = interval(_double_ratio, *columns)
        verdict = together(*(above(found[printed], 1.05, partly=1.0) for printed in (True, False)))
        note = f"as printed: {found[True]}; last point, r={LARGE.rank} at its best {self.chosen(results, LARGE)}"
        what = f"RMSE of r={LARGE.rank} at its best over LSTD's, with tiles, over the same with RBFs"
        return Finding(verdict, found[False], what, note)

    def _too_small(self, results: Results) -> Finding:
        lstd = self.errors(results, LSTD)[:, -1]
        printed = ratio_of_means(self.errors(results, SMALL, printed=True)[:, -1], lstd)
        tuned = ratio_of_means(self.errors(results, SMALL)[:, -1], lstd)
        verdict = together(above(printed, 1.1), above(tuned, 1.1))
        large = ratio_of_means(self.errors(results, LARGE)[:, -1], lstd)
        note = f"as printed: {printed}; r={LARGE.rank} at its best: {large}"
        return Finding(verdict, tuned, f"last RMSE of r={SMALL.rank} at its best over LSTD's", note)


def _double_ratio(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> float:
    return float(a.mean() / b.mean() / (c.mean() / d.mean()))


class PendulumRBF(_Learning):
    """Figure B.4."""

    name = "B.4"
    title = "RMSE against samples, Pendulum, RBFs"
    caption = f"1,024 RBFs of width 0.12, γ=0.99, k=r. {LINES}"
    problem = "pendulum-rbf"

    def claims(self) -> Sequence[Claim]:
        """Return what appendix B says of this panel."""
        statement = "Where r holds most of the large singular values (RBFs, r=100), t-LSTD does as well as LSTD."
        return (
            *super().claims(),
            Claim(f"{self.name}-large-enough", f"appendix B, figure {self.name}", statement, self._large_enough),
        )

    def _large_enough(self, results: Results) -> Finding:
        lstd = self.errors(results, LSTD)
        printed = curve_ratio(self.errors(results, LARGE, printed=True), lstd)
        tuned = curve_ratio(self.errors(results, LARGE), lstd)
        same = apart(self.errors(results, LARGE, printed=True), self.errors(results, LSTD, printed=True))
        worst = max(printed, tuned, key=lambda ratio: ratio.value)
        verdict = together(below(printed, 1.1), below(tuned, 1.1))
        note = (
            f"as printed: {printed}, at its best ({self.chosen(results, LARGE)}): {tuned}; LSTD has "
            f"{self.chosen(results, LSTD)}; largest factor at one λ=0 and cut-off 0.01: {same}"
        )
        return Finding(verdict, worst, f"mean RMSE of r={LARGE.rank} over LSTD's, worse setting", note)


class CarRBF(_Learning):
    """Figure B.3: the runs of figure 2a."""

    name = "B.3"
    title = CarRBFSamples.title
    caption = CarRBFSamples.caption
    problem = CarRBFSamples.problem


class CarTiles(_Tiles):
    """Figure B.1."""

    name = "B.1"
    title = "RMSE against samples, Mountain Car, tiles"
    problem = "car-tiles"
    beside = CarRBF()


class PendulumTiles(_Tiles):
    """Figure B.2."""

    name = "B.2"
    title = "RMSE against samples, Pendulum, tiles"
    problem = "pendulum-tiles"
    beside = PendulumRBF()


class RankTilesAgain(RankTiles):
    """Figure B.5: figure 1a, whose claims stand there."""

    name = "B.5"

    def claims(self) -> Sequence[Claim]:
        """Return none."""
        return ()


class RankRBFAgain(RankRBF):
    """Figure B.6: figure 1b, whose claims stand there."""

    name = "B.6"

    def claims(self) -> Sequence[Claim]:
        """Return none."""
        return ()
