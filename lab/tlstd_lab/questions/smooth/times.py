"""Error against CPU time with smooth features."""

from __future__ import annotations

from collections.abc import Sequence

from tlstd_lab.claims import BEYOND, Claim
from tlstd_lab.panel import Scale
from tlstd_lab.questions.contest.panel import Time
from tlstd_lab.questions.figure_3.settings import RANKS
from tlstd_lab.questions.smooth.panel_b import SHOWN, Methods
from tlstd_lab.questions.smooth.settings import OURS, Smooth, name_of


class Times(Smooth, Time):
    """Against CPU time."""

    name = "smooth-time"
    title = "Random Fourier features, CPU time"
    caption = (
        Methods.caption.partition(" Paper scale")[0]
        + " CPU time of learning, choosing and solving once, of runs that are timed alone. Paper scale: 30 runs (LSTD "
        "with a chosen ridge 10), 3 of them timed."
    )
    size = Methods.size

    def methods(self, scale: Scale) -> list[str]:
        """Return those that are drawn."""
        return SHOWN

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        when = "With smooth features, at every CPU time from twice that of TD for 1,000 samples on, "
        text = when + "{} has a lower error than {}."
        tlstd = [name_of(rank, OURS) for rank in RANKS]
        return (
            Claim(
                f"{self.name}-tlstd",
                BEYOND,
                text.format("t-LSTD (any rank, cut-off 10⁻⁴)", "TD"),
                lambda results: self.race(results, tlstd, ["TD", "true-online TD"], "t-LSTD", "TD's"),
            ),
            Claim(
                f"{self.name}-krylov",
                BEYOND,
                text.format("Krylov LSTD", "all others"),
                lambda results: self.race(
                    results,
                    ["Krylov LSTD"],
                    [n for n in SHOWN if n != "Krylov LSTD"],
                    "Krylov LSTD",
                    "the best other's",
                ),
            ),
        )
