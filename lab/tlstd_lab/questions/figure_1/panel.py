"""Figures 1a and 1b: error against rank on Mountain Car, after several numbers of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import DASHED, DOTTED, SOLID, Axis, Chart, Legend, Rule, curve, sequence
from tlstd_lab.claims import Claim, Finding, above, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval, ratio_of_means

LAMBDAS = (0.0, 1.0)
"""The paper does not say which: both ends."""
CUT = 0.01
"""The paper's cut-off, shown in the claims' notes; drawn is the library's, 10⁻⁴."""
LEVEL = 50
"""The rank at which the paper sees errors level off."""
N_FEATURES = 1000


class _Rank(Panel):
    """Shared by tiles and RBFs."""

    problem: ClassVar[str]
    enough: ClassVar[int]
    """The rank from which the paper sees LSTD's error."""
    ranks: ClassVar[dict[str, tuple[int, ...]]]
    size = (3.4, 2.9)

    def scale(self, scale: Scale) -> dict[str, Any]:
        """Return runs, ranks and sample counts of a scale."""
        samples = {"smoke": (100, 300), "quick": (1000, 2000, 5000), "paper": (1000, 2000, 5000)}
        runs = {"smoke": 1, "quick": 4, "paper": 30}
        return {"samples": pick(samples, scale), "runs": pick(runs, scale), "ranks": pick(self.ranks, scale)}

    def rank_runs(self, scale: Scale, lambda_: float, rank: int) -> list[RunSpec]:
        """t-LSTD with k = r, as in the paper."""
        size = self.scale(scale)
        estimator = {"class": "TLSTD", "rank": rank, "lambda_": lambda_, "buffer_size": rank}
        settings = {"problem": self.problem, "estimator": estimator, "samples": size["samples"]}
        return specs("curve", settings, seeds(size["runs"]))

    def cut_runs(self, scale: Scale, lambda_: float, rank: int) -> list[RunSpec]:
        """t-LSTD with the paper's cut-off."""
        size = self.scale(scale)
        estimator = {"class": "TLSTD", "rank": rank, "lambda_": lambda_, "buffer_size": rank, "rcond": CUT}
        settings = {"problem": self.problem, "estimator": estimator, "samples": size["samples"]}
        return specs("curve", settings, seeds(min(size["runs"], 10)))

    def lstd_runs(self, scale: Scale, lambda_: float) -> list[RunSpec]:
        """LSTD on the same streams."""
        size = self.scale(scale)
        estimator = {"class": "LSTD", "lambda_": lambda_}
        settings = {"problem": self.problem, "estimator": estimator, "samples": size["samples"]}
        return specs("curve", settings, seeds(size["runs"]))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return t-LSTD at every rank and LSTD, for both λ."""
        scale = results.scale
        wanted: list[RunSpec] = []
        for lambda_ in LAMBDAS:
            wanted += self.lstd_runs(scale, lambda_)
            ranks = self.scale(scale)["ranks"]
            wanted += self.cut_runs(scale, lambda_, max((r for r in ranks if r <= self.enough), default=ranks[-1]))
            wanted += self.cut_runs(scale, lambda_, ranks[-1])
            for rank in ranks:
                wanted += self.rank_runs(scale, lambda_, rank)
        return wanted

    def chart(self, results: Results) -> Chart:
        """Return one line per sample count and λ, and LSTD's errors as horizontal lines."""
        size, series = self.scale(results.scale), []
        ranks, samples = size["ranks"], size["samples"]
        for lambda_, dash, marker, dots in zip(LAMBDAS, (DASHED, SOLID), "so", ((1.0, 3.0), DOTTED), strict=True):
            errors = np.array([results.column(self.rank_runs(results.scale, lambda_, r), "rmse") for r in ranks])
            lstd = results.column(self.lstd_runs(results.scale, lambda_), "rmse").mean(axis=0)
            for i, count in enumerate(samples):
                label, colour = f"{count:,} samples, λ={lambda_:g}", sequence(i, len(samples) + 1)
                rules = (Rule("y", lstd[i], dash=dots),)
                series.append(curve(ranks, errors[:, :, i].T, label, colour, dash=dash, marker=marker, rules=rules))
        y = Axis("RMSE (dotted: LSTD)", log=True)
        return Chart(series, Axis("rank r", log=True), y, legend=Legend("below", 2, 5.5))

    def claims(self) -> Sequence[Claim]:
        """Return what section 5 and the caption say of this panel."""
        return (
            Claim(
                f"{self.name}-enough",
                f"section 5, figure {self.name}",
                f"From rank {self.enough} on, t-LSTD's error is that of LSTD.",
                self._enough,
            ),
            Claim(
                f"{self.name}-levels",
                f"caption of figure {self.name}",
                f"The error has levelled off at rank {LEVEL}.",
                self._levels,
            ),
            Claim(
                f"{self.name}-graceful",
                f"section 5, figure {self.name}",
                "The error grows gradually, without a jump, as the rank is reduced.",
                self._graceful,
            ),
            Claim(
                f"{self.name}-overfit",
                f"caption of figure {self.name}",
                "With few samples the error rises slightly again at high ranks.",
                self._overfit,
            ),
            Claim(
                f"{self.name}-cause",
                f"caption of figure {self.name}",
                "Very small singular values are what makes the error rise at high ranks with few samples.",
                self._cause,
            ),
        )

    def _final(self, results: Results, lambda_: float, rank: int, sample: int = -1) -> Any:
        return results.column(self.rank_runs(results.scale, lambda_, rank), "rmse")[:, sample]

    def _lstd(self, results: Results, lambda_: float, sample: int = -1) -> FloatArray:
        return results.column(self.lstd_runs(results.scale, lambda_), "rmse")[:, sample]

    def _enough(self, results: Results) -> Finding:
        ranks = self.scale(results.scale)["ranks"]
        rank = max((r for r in ranks if r <= self.enough), default=ranks[-1])
        best_lstd = min((self._lstd(results, lambda_) for lambda_ in LAMBDAS), key=lambda errors: float(errors.mean()))
        number, lambda_ = min((ratio_of_means(self._final(results, x, rank), best_lstd), x) for x in LAMBDAS)
        same = {x: ratio_of_means(self._final(results, x, rank), self._lstd(results, x)) for x in LAMBDAS}
        cut = {x: results.column(self.cut_runs(results.scale, x, rank), "rmse")[:, -1] for x in LAMBDAS}
        note = (
            "against LSTD with the same λ: "
            + ", ".join(f"λ={x:g} {ratio}" for x, ratio in same.items())
            + f"; with the paper's cut-off {CUT}: "
            + ", ".join(f"λ={x:g} RMSE {errors.mean():.3g}" for x, errors in cut.items())
            + f" (LSTD's best {best_lstd.mean():.3g})"
        )
        what = f"RMSE at rank {rank} (λ={lambda_:g}) over that of LSTD, both with the better λ"
        return Finding(below(number, 1.1, partly=1.5), number, what, note)

    def _levels(self, results: Results) -> Finding:
        ranks = self.scale(results.scale)["ranks"]
        middle = max((r for r in ranks if r <= LEVEL), default=ranks[0])
        found = {
            x: ratio_of_means(self._final(results, x, middle), self._final(results, x, ranks[-1])) for x in LAMBDAS
        }
        number = min(found.values())
        note = "; ".join(f"λ={x:g}: {ratio}" for x, ratio in found.items())
        what = f"RMSE at rank {middle} over that at rank {ranks[-1]}, λ where it is smaller"
        return Finding(below(number, 1.1, partly=1.25), number, what, note)

    def _graceful(self, results: Results) -> Finding:
        ranks = [*self.scale(results.scale)["ranks"], N_FEATURES]
        found: dict[float, OverRuns] = {}
        for lambda_ in LAMBDAS:
            errors = [*(self._final(results, lambda_, r) for r in ranks[:-1]), self._lstd(results, lambda_)]
            pairs = zip(errors[:-1], errors[1:], ranks[:-1], ranks[1:], strict=True)
            found[lambda_] = max(interval(_exponent(low, high), a, b) for a, b, low, high in pairs)
        number = max(found.values())
        note = "; ".join(f"λ={lambda_:g}: {exponent}" for lambda_, exponent in found.items())
        what = "steepest exponent p of RMSE ~ r^-p between neighbouring ranks, full rank included, worse λ"
        return Finding(below(number, 1.0, partly=2.0), number, what, note)

    def _overfit(self, results: Results) -> Finding:
        size = self.scale(results.scale)
        ranks, samples = size["ranks"], size["samples"]
        rank = max((r for r in ranks if r <= self.enough), default=ranks[0])
        rank = rank if rank < ranks[-1] else ranks[-2]
        found = {
            (lambda_, count): ratio_of_means(
                self._final(results, lambda_, ranks[-1], i), self._final(results, lambda_, rank, i)
            )
            for lambda_ in LAMBDAS
            for i, count in enumerate(samples[:-1])
        }
        number = max(found.values())
        note = "; ".join(f"λ={lambda_:g}, {count:,} samples: {ratio}" for (lambda_, count), ratio in found.items())
        what = f"RMSE at rank {ranks[-1]} over that at rank {rank}, largest over λ and fewer than all samples"
        return Finding(above(number, 1.01), number, what, note)

    def _cause(self, results: Results) -> Finding:
        """Small singular values do no harm if they are cut off: at the highest rank, is the error then lower?"""
        size = self.scale(results.scale)
        top, few = size["ranks"][-1], min(size["runs"], 10)
        found = {
            (lambda_, count): ratio_of_means(
                results.column(self.cut_runs(results.scale, lambda_, top), "rmse")[:, i],
                self._final(results, lambda_, top, i)[:few],
            )
            for lambda_ in LAMBDAS
            for i, count in enumerate(size["samples"][:-1])
        }
        number = min(found.values())
        note = "; ".join(f"λ={lambda_:g}, {count:,} samples: {ratio}" for (lambda_, count), ratio in found.items())
        what = (
            f"RMSE at rank {top} with the cut-off {CUT} over that with 10⁻⁴, smallest over λ and fewer than all samples"
        )
        return Finding(below(number, 1.0), number, what, note)


def _exponent(low: int, high: int) -> Callable[[FloatArray, FloatArray], float]:
    """p of RMSE ~ r^-p between two ranks."""
    return lambda a, b: float(np.log(a.mean() / b.mean()) / np.log(high / low))


class RankTiles(_Rank):
    """Figure 1a."""

    name = "1a"
    title = "RMSE against rank, Mountain Car, tiles"
    caption = "t-LSTD with k=r on 1,000 tile features; γ=0.99, 20×20 grid of true values, λ=0 and λ=1, cut-off 10⁻⁴."
    problem = "car-tiles"
    enough = 300
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {
        "smoke": (5, 20, 50),
        "quick": (5, 20, 50, 100, 200, 300),
        "paper": (5, 10, 20, 50, 100, 200, 300, 400),
    }


class RankRBF(_Rank):
    """Figure 1b."""

    name = "1b"
    title = "RMSE against rank, Mountain Car, RBFs"
    caption = (
        "t-LSTD with k=r on 1,024 RBFs of width 0.12; γ=0.99, 20×20 grid of true values, λ=0 and λ=1, cut-off 10⁻⁴."
    )
    problem = "car-rbf"
    enough = 50
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {
        "smoke": (5, 20, 50),
        "quick": (5, 10, 20, 50, 100, 200),
        "paper": (5, 10, 20, 30, 50, 100, 200, 300),
    }
