"""Figures 1a and 1b: error against rank on Mountain Car, after several numbers of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tlstd.experiments import drawing
from tlstd.experiments.claims import Claim, Finding, above, below
from tlstd.experiments.panel import Panel, Results, pick, seeds, specs
from tlstd.experiments.spec import RunSpec
from tlstd.experiments.statistics import interval, ratio_of_means

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAMBDAS = (0.0, 1.0)
"""The paper does not say which: both ends."""


class _Rank(Panel):
    """Shared by tiles and RBFs."""

    problem: ClassVar[str]
    enough: ClassVar[int]
    """The rank from which the paper sees LSTD's error."""
    ranks: ClassVar[dict[str, tuple[int, ...]]]
    size = (3.4, 2.9)

    def scale(self, scale: str) -> dict[str, Any]:
        """Return runs, ranks and sample counts of a scale."""
        samples = {"smoke": (100, 300), "quick": (1000, 2000, 5000), "paper": (1000, 2000, 5000)}
        runs = {"smoke": 1, "quick": 4, "paper": 30}
        return {"samples": pick(samples, scale), "runs": pick(runs, scale), "ranks": pick(self.ranks, scale)}

    def rank_runs(self, scale: str, lambda_: float, rank: int) -> list[RunSpec]:
        """t-LSTD with k = r, as in the paper."""
        size = self.scale(scale)
        estimator = {"class": "TLSTD", "rank": rank, "lambda_": lambda_, "buffer_size": rank}
        settings = {"problem": self.problem, "estimator": estimator, "samples": size["samples"]}
        return specs("curve", settings, seeds(size["runs"]))

    def lstd_runs(self, scale: str, lambda_: float) -> list[RunSpec]:
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
            for rank in self.scale(scale)["ranks"]:
                wanted += self.rank_runs(scale, lambda_, rank)
        return wanted

    def draw(self, axes: Axes, results: Results) -> None:
        """Draw one line per sample count and λ, and LSTD's errors as horizontal lines."""
        size = self.scale(results.scale)
        ranks, samples = size["ranks"], size["samples"]
        for lambda_, dashes, marker in zip(LAMBDAS, ("--", "-"), ("s", "o"), strict=True):
            errors = np.array([results.column(self.rank_runs(results.scale, lambda_, r), "rmse") for r in ranks])
            lstd = results.column(self.lstd_runs(results.scale, lambda_), "rmse").mean(axis=0)
            for i, count in enumerate(samples):
                colour = drawing.sequence(i, len(samples) + 1)
                label = f"{count:,} samples, λ={lambda_:g}"
                drawing.curve(axes, ranks, errors[:, :, i].T, label, color=colour, ls=dashes, marker=marker)
                axes.axhline(lstd[i], color=colour, ls=":" if lambda_ else (0, (1, 3)), lw=0.8)
        drawing.logarithmic(axes, "xy")
        axes.set_xlabel("rank r")
        axes.set_ylabel("RMSE (dotted: LSTD)")
        axes.legend(ncols=2, fontsize=5.5, loc="upper center", bbox_to_anchor=(0.5, -0.2))

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
        )

    def _final(self, results: Results, lambda_: float, rank: int, sample: int = -1) -> Any:
        return results.column(self.rank_runs(results.scale, lambda_, rank), "rmse")[:, sample]

    def _enough(self, results: Results) -> Finding:
        ranks = self.scale(results.scale)["ranks"]
        rank = max((r for r in ranks if r <= self.enough), default=ranks[-1])
        found = {}
        for lambda_ in LAMBDAS:
            lstd = results.column(self.lstd_runs(results.scale, lambda_), "rmse")[:, -1]
            found[lambda_] = ratio_of_means(self._final(results, lambda_, rank), lstd)
        closest = min(LAMBDAS, key=lambda lambda_: found[lambda_].value)
        note = "; ".join(f"λ={lambda_:g}: {found[lambda_]}" for lambda_ in LAMBDAS)
        verdict = below(found[closest], 1.1, partly=1.5)
        if verdict == "reproduced" and max(found[lambda_].high for lambda_ in LAMBDAS) >= 1.1:
            verdict = "partly"
        return Finding(verdict, found[closest], f"RMSE at rank {rank} over LSTD's, better λ", note)

    def _graceful(self, results: Results) -> Finding:
        ranks = self.scale(results.scale)["ranks"]
        jumps = {}
        for lambda_ in LAMBDAS:
            errors = [self._final(results, lambda_, r) for r in ranks]
            steps = [
                (float(a.mean() / b.mean()), np.log(high / low), a, b)
                for a, b, low, high in zip(errors[:-1], errors[1:], ranks[:-1], ranks[1:], strict=True)
            ]
            _, _, a, b = max(steps, key=lambda step: np.log(step[0]) / step[1])
            jumps[lambda_] = ratio_of_means(a, b)
        worst = max(jumps.values(), key=lambda jump: jump.value)
        note = "; ".join(f"λ={lambda_:g}: {jumps[lambda_]}" for lambda_ in LAMBDAS)
        return Finding(below(worst, 3.0, partly=5.0), worst, "steepest growth of RMSE between neighbouring ranks", note)

    def _overfit(self, results: Results) -> Finding:
        ranks = self.scale(results.scale)["ranks"]
        rises = {}
        for lambda_ in LAMBDAS:
            errors = np.array([self._final(results, lambda_, r, sample=0) for r in ranks])  # (ranks, runs)
            rises[lambda_] = interval(lambda e: float(e.mean(axis=0)[-1] / e.mean(axis=0).min()), errors.T)
        largest = max(rises.values(), key=lambda rise: rise.value)
        note = "; ".join(f"λ={lambda_:g}: {rises[lambda_]}" for lambda_ in LAMBDAS)
        what = f"RMSE at rank {ranks[-1]} over that of the best rank, fewest samples"
        return Finding(above(largest, 1.01), largest, what, note)


class RankTiles(_Rank):
    """Figure 1a."""

    name = "1a"
    title = "RMSE against rank, Mountain Car, tiles"
    caption = "t-LSTD with k=r on 1,000 tile features; γ=0.99, 20×20 grid of true values, λ=0 and λ=1."
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
    caption = "t-LSTD with k=r on 1,024 RBFs of width 0.12; γ=0.99, 20×20 grid of true values, λ=0 and λ=1."
    problem = "car-rbf"
    enough = 50
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {
        "smoke": (5, 20, 50),
        "quick": (5, 10, 20, 50, 100, 200),
        "paper": (5, 10, 20, 30, 50, 100, 200, 300),
    }
