"""Figure 3a with smooth features: error against samples, by rank and cut-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import DASHED, LIGHT_GREY, SOLID, Axis, Chart, Legend, curve, sequence
from tlstd_lab.claims import BEYOND, Claim, Finding
from tlstd_lab.panel import Results, Scale
from tlstd_lab.problems import problem
from tlstd_lab.questions.figure_3 import rules
from tlstd_lab.questions.figure_3.settings import RANKS, SMALL_RANKS, floor
from tlstd_lab.questions.smooth.settings import EVERY, OURS, PAPERS, PROBLEM, SIDE, Smooth, name_of
from tlstd_lab.statistics import ratio_of_means


class Ranks(Smooth):
    """Figure 3a."""

    name = "smooth-3a"
    title = "Figure 3a with random Fourier features"
    caption = (
        "t-LSTD, λ=1, on 500 random Fourier features of the four observations instead of 40,001 tiles, otherwise as in "
        "figure 3a. One map for all runs, fitted to 1,000 observations of a stream that no run has. Solid: the "
        "library's cut-off 10⁻⁴; dashed: the paper's 0.01; grey: r=1, 2, 3 with the latter. The library's default "
        "buffer; truncation after every sample is in the remarks. Paper scale: 30 runs; r<5 and truncation after "
        "every sample: 5."
    )

    def methods(self, scale: Scale) -> list[str]:
        """Return t-LSTD of all ranks and cut-offs, and the side questions."""
        return [name_of(rank, cutoff) for cutoff in (PAPERS, OURS) for rank in RANKS] + SIDE

    def chart(self, results: Results) -> Chart:
        """Return a line per rank and cut-off, and the floor."""
        samples, series = self.every(results.scale), []
        for rank in SMALL_RANKS:
            errors = self.column(results, name_of(rank), "rmse")
            series.append(curve(samples, errors, f"r={rank}", LIGHT_GREY, dash=DASHED, marker="", width=0.8))
        for cutoff, dash in ((OURS, SOLID), (PAPERS, DASHED)):
            for number, rank in enumerate(RANKS):
                look = {"kind": f"cut-off {cutoff}", "dash": dash, "marker": ""}
                colour = sequence(number, len(RANKS) + 1)
                series.append(
                    curve(samples, self.column(results, name_of(rank, cutoff), "rmse"), f"r={rank}", colour, **look)
                )
        return self.with_floor(series, Axis("samples"), Legend("below", 3, 5.6))

    def claims(self) -> Sequence[Claim]:
        """Return the claims of figure 3a's caption, with either cut-off."""
        made = []
        for cutoff, suffix, words in ((PAPERS, "", "the paper's cut-off"), (OURS, "-cutoff", "the cut-off 10⁻⁴")):
            made += [
                Claim(
                    f"{self.name}-rank{suffix}",
                    BEYOND,
                    f"With smooth features and {words} t-LSTD's error falls as the rank rises (3a-rank).",
                    self._rank(cutoff),
                ),
                Claim(
                    f"{self.name}-five{suffix}",
                    BEYOND,
                    f"With smooth features and {words} t-LSTD converges at rank 5, with some bias (3a-five).",
                    self._five(cutoff),
                ),
            ]
        statement = "With smooth features the error is significantly larger below rank 5 (3a-less)."
        return (*made, Claim(f"{self.name}-less", BEYOND, statement, self._less))

    def _final(self, results: Results, rank: int, cutoff: str = PAPERS) -> FloatArray:
        return self.column(results, name_of(rank, cutoff), "rmse")[:, -1]

    def _rank(self, cutoff: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            errors = {rank: self._final(results, rank, cutoff) for rank in RANKS}
            ruling = rules.falls_with_rank(errors)
            note = "RMSE " + ", ".join(f"{errors[rank].mean():.0f} at r={rank}" for rank in RANKS)
            if cutoff == PAPERS:
                every = {rank: self.column(results, name_of(rank) + EVERY, "rmse")[:, -1] for rank in (5, 40)}
                few = len(every[5])
                note += "; truncated after every sample: " + ", ".join(
                    f"{every[rank].mean():.0f} at r={rank} (default buffer {errors[rank][:few].mean():.0f})"
                    for rank in (5, 40)
                )
            return Finding(*ruling, f"final RMSE at r={RANKS[-1]} over that at r={RANKS[0]}", note)

        return judge

    def _five(self, cutoff: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            errors = self.column(results, name_of(5, cutoff), "rmse")
            constant = float(problem(PROBLEM).truth.std())
            ruling, change = rules.settles(errors[:, -1], errors[:, -2], constant)
            samples = self.every(results.scale)
            note = (
                f"from {samples[-2]:,} to {samples[-1]:,} samples it changes by a factor of {change}; at 1 it is no "
                f"better than the best constant (sd of the values {constant:.0f}); the floor is {floor():.0f}"
            )
            return Finding(*ruling, "final RMSE at r=5 over that of the best constant", note)

        return judge

    def _less(self, results: Results) -> Finding:
        five = self._final(results, 5)
        ratios = {}
        for rank in SMALL_RANKS:
            errors = self._final(results, rank)
            ratios[rank] = ratio_of_means(errors, five[: len(errors)])
        note = ", ".join(f"r={rank}: {ratio}" for rank, ratio in ratios.items())
        return Finding(
            *rules.larger_below_five(ratios), "final RMSE at r=3 over that at r=5 (reproduced above 1.1)", note
        )
