"""Figure 3a: error against samples on the energy domain, by rank."""

from __future__ import annotations

from collections.abc import Sequence

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import DASH_DOT, DASHED, DOTTED, LIGHT_GREY, SOLID, Axis, Chart, Legend, curve, sequence
from tlstd_lab.claims import Claim, Finding
from tlstd_lab.panel import Results, Scale, pick, seeds
from tlstd_lab.problems import problem
from tlstd_lab.questions.figure_3 import rules
from tlstd_lab.questions.figure_3.settings import (
    RANKS,
    SHORT_RANKS,
    SIZES,
    SMALL_RANKS,
    Energy,
    by_seed,
    floor,
    learn,
    tlstd,
)
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means


class Ranks(Energy):
    """Figure 3a."""

    name = "3a"
    title = "RMSE against samples by rank, energy"
    caption = (
        "t-LSTD, λ=1, on 40,001 tile features (32 tilings and a bias) of the energy domain, γ=0.8, cut-off 0.01. "
        "The domain's parameters are ours. Samples are folded in by the library's default buffer: truncation after "
        "every sample takes n·r² operations each (it is stricter than the paper's k=1), and is compared in shorter "
        "runs (claims' notes). Paper scale: 30 runs; r<5: 5."
    )

    def rank_runs(self, scale: Scale, rank: int) -> list[RunSpec]:
        """t-LSTD of this rank."""
        size = pick(SIZES, scale)
        return learn(tlstd(rank), size.samples, seeds(size.runs if rank in RANKS else size.few))

    def short_runs(self, scale: Scale, rank: int, buffer_size: int | None = None) -> list[RunSpec]:
        """Return few samples, with truncation after each or (None) the default buffer."""
        size = pick(SIZES, scale)
        estimator = tlstd(rank) if buffer_size is None else tlstd(rank, buffer_size=buffer_size)
        return learn(estimator, (size.short // 2, size.short), seeds(size.few))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all ranks, and the short runs."""
        wanted = [spec for rank in RANKS + SMALL_RANKS for spec in self.rank_runs(results.scale, rank)]
        for rank in SHORT_RANKS:
            wanted += self.short_runs(results.scale, rank, 1) + self.short_runs(results.scale, rank)
        return by_seed(wanted)

    def chart(self, results: Results) -> Chart:
        """Return a line per rank, and the floor."""
        samples, series = pick(SIZES, results.scale).samples, []
        for rank, dash in zip(SMALL_RANKS, (DOTTED, DASHED, DASH_DOT), strict=True):
            errors = results.column(self.rank_runs(results.scale, rank), "rmse")
            series.append(curve(samples, errors, f"r={rank}", LIGHT_GREY, dash=dash, marker=""))
        for number, rank in enumerate(RANKS):
            errors = results.column(self.rank_runs(results.scale, rank), "rmse")
            series.append(curve(samples, errors, f"r={rank}", sequence(number, len(RANKS) + 1), dash=SOLID, marker=""))
        return self.with_floor(series, Axis("samples"), Legend("lower left", 2, lift=0.15))

    def claims(self) -> Sequence[Claim]:
        """Return what the caption says of this panel."""
        where = "caption of figure 3a"
        return (
            Claim("3a-rank", where, "t-LSTD's error falls as the rank rises.", self._rank),
            Claim(
                "3a-five",
                where,
                "With rank 5 t-LSTD still converges, to a solution that is somewhat biased.",
                self._five,
            ),
            Claim("3a-less", where, "Below rank 5 the error is significantly larger.", self._less),
        )

    def _final(self, results: Results, rank: int) -> FloatArray:
        return results.column(self.rank_runs(results.scale, rank), "rmse")[:, -1]

    def _short(self, results: Results, rank: int, buffer_size: int | None) -> FloatArray:
        return results.column(self.short_runs(results.scale, rank, buffer_size), "rmse")[:, -1]

    def _rank(self, results: Results) -> Finding:
        errors = {rank: self._final(results, rank) for rank in RANKS}
        verdict, number = rules.falls_with_rank(errors)
        short = {k: ratio_of_means(self._short(results, 40, k), self._short(results, 5, k)) for k in (1, None)}
        note = (
            "RMSE "
            + ", ".join(f"{errors[rank].mean():.0f} at r={rank}" for rank in RANKS)
            + f"; r=40 over r=5 after {pick(SIZES, results.scale).short:,} samples: {short[1]} truncated after every "
            f"sample, {short[None]} with the default buffer"
        )
        return Finding(verdict, number, f"final RMSE at r={RANKS[-1]} over that at r={RANKS[0]}", note)

    def _five(self, results: Results) -> Finding:
        errors = results.column(self.rank_runs(results.scale, 5), "rmse")
        constant = float(problem("energy").truth.std())
        quarter = max(1, errors.shape[1] // 4)
        (verdict, number), change = rules.settles(errors[:, -1], errors[:, -1 - quarter], constant)
        note = (
            f"the last quarter of the samples changes it by a factor of {change}; at 1 it is no better than the best "
            f"constant (sd of the values {constant:.0f}); the floor is {floor():.0f}"
        )
        return Finding(verdict, number, "final RMSE at r=5 over that of the best constant", note)

    def _less(self, results: Results) -> Finding:
        five = self._final(results, 5)
        few = pick(SIZES, results.scale).few
        ratios = {rank: ratio_of_means(self._final(results, rank), five[:few]) for rank in SMALL_RANKS}
        verdict, number = rules.larger_below_five(ratios)
        short = {
            (rank, k): ratio_of_means(self._short(results, rank, k), self._short(results, 5, k))
            for rank in (2, 3)
            for k in (1, None)
        }
        note = (
            ", ".join(f"r={rank}: {ratio}" for rank, ratio in ratios.items())
            + f"; after {pick(SIZES, results.scale).short:,} samples: "
            + ", ".join(
                f"r={r}, {'every sample' if k else 'default buffer'}: {ratio}" for (r, k), ratio in short.items()
            )
        )
        return Finding(verdict, number, "final RMSE at r=3 over that at r=5 (reproduced above 1.1)", note)
