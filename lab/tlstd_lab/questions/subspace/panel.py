"""Beyond the paper: the rank-r subspace from one λ, the equations from another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import DASHED, SOLID, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

PAIRS: tuple[tuple[float, float | None], ...] = ((0.0, None), (0.0, 1.0), (0.9, None), (0.9, 1.0), (1.0, None))
"""λ of the equations and of the subspace; None if they are the same."""


class _Subspace(Panel):
    """Shared by all problems."""

    problem: ClassVar[str]
    words: ClassVar[str]
    """What the problem is called."""
    size = (3.4, 3.0)
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {
        "smoke": (10, 30),
        "quick": (10, 20, 50, 100),
        "paper": (10, 20, 50, 100, 200),
    }
    samples: ClassVar[dict[str, int]] = {"smoke": 400, "quick": 5000, "paper": 5000}
    number: ClassVar[dict[str, int]] = {"smoke": 1, "quick": 3, "paper": 6}
    caption = (
        "t-LSTD's RMSE against its rank when the subspaces are those of its own λ, and when they are those of λ=1 "
        "(`subspace_lambda=1`) and only the equations are of the smaller λ."
    )

    def __init_subclass__(cls) -> None:
        """Name it by its problem."""
        cls.name, cls.title = f"subspace-{cls.problem}", f"Subspace of λ=1, {cls.words}"

    def errors(self, results: Results, pair: tuple[float, float | None], rank: int) -> FloatArray:
        """Return the last error of each run."""
        return results.column(self.pair_runs(results.scale, pair, rank), "rmse")[:, -1]

    def pair_runs(self, scale: Scale, pair: tuple[float, float | None], rank: int) -> list[RunSpec]:
        """Return the runs of one line at one rank."""
        estimator = {"class": "TLSTD", "rank": rank, "lambda_": pair[0]}
        if pair[1] is not None:
            estimator |= {"subspace_lambda": pair[1]}
        settings = {"problem": self.problem, "estimator": estimator, "samples": [pick(self.samples, scale)]}
        return specs("curve", settings, seeds(pick(self.number, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all lines at all ranks, one seed after the other."""
        ranks = pick(self.ranks, results.scale)
        wanted = [spec for pair in PAIRS for rank in ranks for spec in self.pair_runs(results.scale, pair, rank)]
        return sorted(wanted, key=lambda spec: spec.seed)

    def chart(self, results: Results) -> Chart:
        """Return error against rank: one colour per λ, dashed with its own subspaces."""
        ranks, series = pick(self.ranks, results.scale), []
        for pair in PAIRS:
            lambda_, subspace = pair
            errors = np.array([self.errors(results, pair, rank) for rank in ranks]).T
            own = subspace is None and lambda_ < 1.0
            label = f"λ={lambda_:g}" + (", own subspace" if own else "" if subspace is None else ", subspace of λ=1")
            colour = {0.0: "#0072B2", 0.9: "#D55E00", 1.0: "#000000"}[lambda_]
            look = {"dash": DASHED if own else SOLID, "marker": "s" if own else "o"}
            series.append(curve(ranks, errors, label, colour, **look))
        return Chart(series, Axis("rank r", log=True), Axis("RMSE", log=True), legend=Legend("below", 2))

    def claims(self) -> Sequence[Claim]:
        """Return whether the subspace of λ=1 helps."""
        return (
            Claim(
                f"{self.name}-helps",
                BEYOND,
                "With the subspaces of λ=1, t-LSTD of a smaller λ has a smaller error at a middling rank.",
                self._helps,
            ),
        )

    def _helps(self, results: Results) -> Finding:
        ranks = pick(self.ranks, results.scale)
        rank = ranks[len(ranks) // 2]
        found = {
            lambda_: ratio_of_means(
                self.errors(results, (lambda_, 1.0), rank), self.errors(results, (lambda_, None), rank)
            )
            for lambda_ in (0.0, 0.9)
        }
        note = "; ".join(f"λ={lambda_:g}: {number}" for lambda_, number in found.items())
        plain = self.errors(results, (1.0, None), rank)
        note += "; over plain λ=1: " + ", ".join(
            f"λ={x:g} {ratio_of_means(self.errors(results, (x, 1.0), rank), plain)}" for x in (0.0, 0.9)
        )
        worst = max(found.values(), key=lambda number: number.value)
        what = f"RMSE at rank {rank} with the subspace of λ=1 over that with the own subspace, worse of both λ"
        return Finding(below(worst, 1.0), worst, what, note)


class CarTiles(_Subspace):
    """Mountain Car, tiles."""

    problem, words = "car-tiles", "Mountain Car, tiles"


class CarRBF(_Subspace):
    """Mountain Car, RBFs."""

    problem, words = "car-rbf", "Mountain Car, RBFs"


class PendulumTiles(_Subspace):
    """Pendulum, tiles."""

    problem, words = "pendulum-tiles", "Pendulum, tiles"


class PendulumRBF(_Subspace):
    """Pendulum, RBFs."""

    problem, words = "pendulum-rbf", "Pendulum, RBFs"


class Energy(_Subspace):
    """Energy storage."""

    problem, words = "energy", "energy storage"
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {
        "smoke": (5, 10),
        "quick": (5, 20, 60),
        "paper": (5, 20, 40, 60, 100),
    }
    samples: ClassVar[dict[str, int]] = {"smoke": 200, "quick": 3000, "paper": 5000}
    number: ClassVar[dict[str, int]] = {"smoke": 1, "quick": 2, "paper": 4}
