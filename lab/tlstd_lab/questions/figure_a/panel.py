"""Figures A.1 to A.8: the singular values of A on Mountain Car and Pendulum, and how many of them hold its weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.diagnostics import effective_rank
from tlstd_lab.chart import DASHED, SOLID, Axis, Chart, Legend, Rule, curve
from tlstd_lab.claims import Claim, Finding, Verdict, above, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval

LAMBDAS = (0.0, 0.9)
"""The paper does not say which."""
WEIGHT = 0.95
"""The share of the weight that the paper counts singular values for."""
COLOURS = ("#0072B2", "#D55E00")
"""By λ."""
TILES: dict[str, Any] = {"tilings": 10}
RBFS: dict[str, Any] = {"width": 0.2}
"""Of the panels with the singular values themselves."""
CAPTION = "{what} γ=0.99, λ=0 and 0.9, random starts, {episodes} episodes at paper scale; mean and 95% band over seeds."


def counts(sigma: FloatArray, power: int = 1) -> FloatArray:
    """How many singular values hold 95% of the sum of their powers, for each row (run)."""
    return np.array([effective_rank(row**power, WEIGHT) for row in sigma], dtype=np.float64)


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Reproduced if all are, not if none is at least partly so, else partly."""
    if set(verdicts) == {"reproduced"}:
        return "reproduced"
    return "not" if set(verdicts) == {"not"} else "partly"


class _Figure(Panel):
    """Shared by all panels: how much is simulated at which scale."""

    domain: ClassVar[str]

    def spectra(self, scale: Scale, features: Mapping[str, Any], lambda_: float) -> list[RunSpec]:
        """Return the runs that find the singular values of A with these features."""
        episodes = pick({"smoke": 30, "quick": 500, "paper": 10_000}, scale)
        runs = pick({"smoke": 1, "quick": 2, "paper": 3}, scale)
        settings = {"domain": self.domain, "features": features, "episodes": episodes, "lambda_": lambda_}
        return specs("spectrum", settings, seeds(runs))

    def sigma(self, results: Results, features: Mapping[str, Any], lambda_: float) -> FloatArray:
        """Singular values, (runs, features)."""
        return results.column(self.spectra(results.scale, features, lambda_), "sigma")


class _Values(_Figure):
    """The singular values in order."""

    features: ClassVar[dict[str, Any]]

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the spectra of these features, and of the others if a claim compares the two."""
        wanted: list[dict[str, Any]] = [TILES, RBFS] if self.features == TILES else [self.features]
        return [spec for f in wanted for lambda_ in LAMBDAS for spec in self.spectra(results.scale, f, lambda_)]

    def chart(self, results: Results) -> Chart:
        """Return σ_i/σ_1, the paper's cut-off, and the number that holds 95% of the weight."""
        series = []
        for lambda_, colour, dash in zip(LAMBDAS, COLOURS, (SOLID, DASHED), strict=True):
            sigma = self.sigma(results, self.features, lambda_)
            number = float(counts(sigma).mean())
            index = np.arange(1, sigma.shape[1] + 1)
            with np.errstate(divide="ignore"):
                share = np.where(sigma > 0.0, sigma / sigma[:, :1], np.nan)
            drawn = np.isfinite(share).all(axis=0)
            look: dict[str, Any] = {"dash": dash, "marker": "", "rules": (Rule("x", number, dash=dash, width=0.7),)}
            label = f"λ={lambda_:g}: 95% in the first {number:.0f}"
            series.append(curve(index[drawn], share[:, drawn], label, colour, **look))
        y = Axis("σᵢ/σ₁ (dotted: 0.01)", log=True, low=1e-7, high=2.0)
        return Chart(series, Axis("i"), y, (Rule("y", 0.01),), legend=Legend("upper right"))

    def claims(self) -> Sequence[Claim]:
        """Return what section 5 and the appendices say of this panel."""
        kind = "tiles" if self.features == TILES else "RBFs"
        found = [
            Claim(
                f"{self.name}-few",
                f"section 5, figure {self.name}",
                f"With {kind}, A has a few large singular values and the rest are small.",
                self._few,
            )
        ]
        if self.features == TILES:
            found.append(
                Claim(
                    f"{self.name}-slower",
                    "appendix B",
                    "With tiles the singular values fall less quickly than with RBFs.",
                    self._slower,
                )
            )
        return tuple(found)

    def _few(self, results: Results) -> Finding:
        """Few: less than a tenth hold 95% of the sum; partly: less than a fifth. The sum of squares is in the note."""
        shares: dict[tuple[float, int], OverRuns] = {}
        for lambda_ in LAMBDAS:
            sigma = self.sigma(results, self.features, lambda_)
            for power in (1, 2):
                shares[lambda_, power] = interval(lambda c: float(c.mean()), counts(sigma, power) / sigma.shape[1])
        worst = max((shares[lambda_, 1] for lambda_ in LAMBDAS), key=lambda share: share.value)
        verdict = below(worst, 0.1, partly=0.2)
        note = "; ".join(
            f"λ={lambda_:g}: {shares[lambda_, 1]} of the sum, {shares[lambda_, 2]} of the sum of squares"
            for lambda_ in LAMBDAS
        )
        return Finding(verdict, worst, "share of singular values that hold 95% of the weight, worse λ", note)

    def _slower(self, results: Results) -> Finding:
        ratios = {}
        for lambda_ in LAMBDAS:
            shares = []
            for features in (TILES, RBFS):
                sigma = self.sigma(results, features, lambda_)
                shares.append(counts(sigma) / sigma.shape[1])
            ratios[lambda_] = interval(lambda tiles, rbfs: float(tiles.mean() / rbfs.mean()), *shares)
        smallest = min(ratios.values(), key=lambda ratio: ratio.value)
        verdict = together([above(ratio, 1.0) for ratio in ratios.values()])
        note = "; ".join(f"λ={lambda_:g}: {ratio}" for lambda_, ratio in ratios.items())
        what = "share of singular values for 95% of the weight, tiles over RBFs, smaller λ"
        return Finding(verdict, smallest, what, note)


class _Counts(_Figure):
    """How many singular values hold 95% of the weight, against one quantity of the features."""

    quantity: ClassVar[str]
    range_of: ClassVar[str]
    """The quantity in words."""
    label: ClassVar[str]
    """Of the lower axis."""
    all_ticks: ClassVar[bool] = False
    """Whether every value has a tick."""
    values: ClassVar[dict[str, tuple[float, ...]]]

    def counted(self, results: Results, lambda_: float) -> FloatArray:
        """Numbers of singular values, (runs, values)."""
        columns = [counts(self.sigma(results, {self.quantity: v}, lambda_)) for v in pick(self.values, results.scale)]
        return np.column_stack(columns)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the spectra for all values of the quantity."""
        return [
            spec
            for value in pick(self.values, results.scale)
            for lambda_ in LAMBDAS
            for spec in self.spectra(results.scale, {self.quantity: value}, lambda_)
        ]

    def chart(self, results: Results) -> Chart:
        """Return the numbers against the quantity."""
        values = pick(self.values, results.scale)
        series = [
            curve(values, self.counted(results, lambda_), f"λ={lambda_:g}", colour, dash=dash)
            for lambda_, colour, dash in zip(LAMBDAS, COLOURS, (SOLID, DASHED), strict=True)
        ]
        ticks = [(value, f"{value:g}") for value in values] if self.all_ticks else []
        x = Axis(self.label, low=0.0, ticks=ticks)
        return Chart(series, x, Axis("singular values for 95%", low=0.0))

    def judged(
        self, results: Results, statistic: Callable[[FloatArray], float], decide: Callable[[OverRuns], Verdict]
    ) -> tuple[Verdict, OverRuns, str]:
        """The verdict over both λ, the larger number, and both numbers as a note."""
        found = {}
        for lambda_ in LAMBDAS:
            found[lambda_] = interval(lambda c: statistic(c.mean(axis=0)), self.counted(results, lambda_))
        verdict = together([decide(number) for number in found.values()])
        note = "; ".join(f"λ={lambda_:g}: {number}" for lambda_, number in found.items())
        return verdict, max(found.values(), key=lambda number: number.value), note

    def wide(self) -> tuple[Claim, ...]:
        """Return what section 5 says of Mountain Car with other features than those of figures A.1 and A.2."""
        if self.domain != "car":
            return ()
        statement = f"A has a few large singular values over a wide range of {self.range_of}."
        return (Claim(f"{self.name}-wide", f"section 5, figure {self.name}", statement, self._wide),)

    def _wide(self, results: Results) -> Finding:
        """Few: as in figure A.1, whatever the features."""
        shares = {}
        for value in pick(self.values, results.scale):
            for lambda_ in LAMBDAS:
                sigma = self.sigma(results, {self.quantity: value}, lambda_)
                shares[value, lambda_] = interval(lambda c: float(c.mean()), counts(sigma) / sigma.shape[1])
        worst = max(shares.values())
        verdict = below(worst, 0.1, partly=0.2)
        if verdict == "not" and any(share.high < 0.2 for share in shares.values()):
            verdict = "partly"
        note = f"{self.quantity}, λ: " + "; ".join(f"{v:g}, {x:g}: {s.value:.2g}" for (v, x), s in shares.items())
        what = "share of singular values that hold 95% of the weight, largest (reproduced below a tenth)"
        return Finding(verdict, worst, what, note)


class _Tilings(_Counts):
    quantity = "tilings"
    range_of = "numbers of tilings"
    label = "tilings of 10×10 tiles"
    all_ticks = True
    values: ClassVar[dict[str, tuple[float, ...]]] = {
        "smoke": (1, 2, 4),
        "quick": (1, 2, 5, 10, 15, 20),
        "paper": (1, 2, 5, 10, 15, 20, 30),
    }

    def claims(self) -> Sequence[Claim]:
        """Return what appendix A says of this panel."""
        statement = "As tilings are added, the number of singular values needed for 95% of the weight levels off."
        plateau = Claim(f"{self.name}-plateau", f"appendix A, figure {self.name}", statement, self._plateau)
        return (plateau, *self.wide())

    def _plateau(self, results: Results) -> Finding:
        tilings = np.array(pick(self.values, results.scale))
        half = int(np.flatnonzero(tilings <= tilings[-1] / 2)[-1])

        def exponent(counted: FloatArray) -> float:
            return float(np.log(counted[-1] / counted[half]) / np.log(tilings[-1] / tilings[half]))

        verdict, number, note = self.judged(results, exponent, lambda found: below(found, 0.25, partly=0.5))
        what = f"p in number ~ tilings^p from {tilings[half]:g} to {tilings[-1]:g} tilings (1: in proportion), worse λ"
        return Finding(verdict, number, what, note)


class _Widths(_Counts):
    quantity = "width"
    range_of = "widths of RBFs"
    label = "width of the RBFs (fraction of the range)"
    values: ClassVar[dict[str, tuple[float, ...]]] = {
        "smoke": (0.05, 0.1, 0.2, 0.4),
        "quick": (0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4),
        "paper": (0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5),
    }

    def claims(self) -> Sequence[Claim]:
        """Return what appendix A says of this panel."""
        statement = "The number of singular values needed for 95% of the weight falls quickly as RBFs get wider."
        drop = Claim(f"{self.name}-drop", f"appendix A, figure {self.name}", statement, self._drop)
        return (drop, *self.wide())

    def _drop(self, results: Results) -> Finding:
        widths = list(pick(self.values, results.scale))
        narrow, wide = widths.index(0.05), widths.index(0.2)
        verdict, number, note = self.judged(
            results, lambda counted: float(counted[wide] / counted[narrow]), lambda found: below(found, 0.5, partly=0.8)
        )
        return Finding(verdict, number, "number at width 0.2 over that at 0.05, worse λ", note)


class CarTiles(_Values):
    """Figure A.1."""

    name = "A.1"
    title = "singular values, Mountain Car, tiles"
    caption = CAPTION.format(what="A with 10 tilings of 10×10 tiles.", episodes="10,000")
    domain, features = "car", TILES


class CarRBF(_Values):
    """Figure A.2."""

    name = "A.2"
    title = "singular values, Mountain Car, RBFs"
    caption = CAPTION.format(what="A with 10×10 RBFs of width 0.2.", episodes="10,000")
    domain, features = "car", RBFS


class CarTilings(_Tilings):
    """Figure A.3."""

    name = "A.3"
    title = "weight against tilings, Mountain Car"
    caption = CAPTION.format(what="Singular values that hold 95% of their sum, tilings of 10×10.", episodes="10,000")
    domain = "car"


class CarWidths(_Widths):
    """Figure A.4."""

    name = "A.4"
    title = "weight against RBF width, Mountain Car"
    caption = CAPTION.format(what="Singular values that hold 95% of their sum, 10×10 RBFs.", episodes="10,000")
    domain = "car"


class PendulumTiles(_Values):
    """Figure A.5."""

    name = "A.5"
    title = "singular values, Pendulum, tiles"
    caption = CarTiles.caption
    domain, features = "pendulum", TILES


class PendulumRBF(_Values):
    """Figure A.6."""

    name = "A.6"
    title = "singular values, Pendulum, RBFs"
    caption = CarRBF.caption
    domain, features = "pendulum", RBFS


class PendulumTilings(_Tilings):
    """Figure A.7."""

    name = "A.7"
    title = "weight against tilings, Pendulum"
    caption = CarTilings.caption
    domain = "pendulum"


class PendulumWidths(_Widths):
    """Figure A.8."""

    name = "A.8"
    title = "weight against RBF width, Pendulum"
    caption = CarWidths.caption
    domain = "pendulum"
