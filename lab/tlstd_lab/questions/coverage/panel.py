"""Beyond the paper: how often nominal 95% intervals cover the true value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, Rule, Series, cases, points
from tlstd_lab.claims import BEYOND, Claim, Finding, Verdict, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.questions.coverage.task import KINDS, TARGETS
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns

LEVEL = 0.95
LOW, HIGH = 0.92, 0.98
"""Between which the coverage of the default has to be, where its assumptions hold."""


class About(NamedTuple):
    """A problem in words, and for which targets its features can represent the values."""

    words: str
    holds: tuple[str, ...] = TARGETS
    rollouts: bool = False
    """No closed form: it takes longer, and has fewer sizes."""


PROBLEMS = {
    "walk": About("random walk, one feature a state"),
    "boyan": About("Boyan's chain, 4 features"),
    "garnet": About("Garnet, full features"),
    "garnet-cut": About("Garnet, cut off after 10 steps"),
    "garnet-stream": About("Garnet, one stream without end"),
    "garnet-off": About("Garnet, ratios"),
    "garnet-q": About("Garnet, action values"),
    "pole": About("CartPole, tiles", rollouts=True),
    "pole-off": About("CartPole, monomials, ratios", rollouts=True),
    "car": About("Mountain Car, tiles", holds=(TARGETS[0],), rollouts=True),
    "pole-coarse": About("CartPole, tiles, ratios", holds=(), rollouts=True),
    "garnet-few": About("Garnet, too few features", holds=()),
}
SIZES = {"smoke": (20,), "quick": (50, 200), "paper": (50, 200, 2_000)}
"""Numbers of episodes."""
RUNS = {"smoke": 1, "quick": 4, "paper": 10}
SETS = {"smoke": 2, "quick": 25, "paper": 50}
"""Data sets of a run; of these bootstrapped:"""
BOOTSTRAPPED = {"smoke": 1, "quick": 5, "paper": 10}
LARGE = 2_000
"""Episodes from which on a data set without closed form takes seconds. Runs of such cells:"""
LARGE_RUNS, LARGE_BOOTSTRAPPED = 10, 2
"""The first of them bootstrap all their data sets, the others none."""
LARGE_ROLLOUTS = 400_000
"""Episodes behind the true value of one state, which has to be known better there."""


class Cell(NamedTuple):
    """A problem, what is asked, and the number of episodes."""

    problem: str
    target: str
    n_episodes: int

    @property
    def holds(self) -> bool:
        """Whether the features can represent what is asked."""
        return self.target in PROBLEMS[self.problem].holds

    def __str__(self) -> str:
        return f"{PROBLEMS[self.problem].words}, {self.target}, {self.n_episodes:,} episodes"


class Measured(NamedTuple):
    """One kind of interval in one cell."""

    covered: int
    sets: int
    width: float
    """Mean over runs of the median half-width."""
    degrees: float

    @property
    def share(self) -> OverRuns:
        """Coverage with Wilson's 95% interval."""
        n, p, z = self.sets, self.covered / self.sets, 1.959964
        middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return OverRuns(p, float(middle - half) / (1 + z * z / n), float(middle + half) / (1 + z * z / n), n)


class Coverage(Panel):
    """All problems, sizes and kinds."""

    name = "coverage"
    title = "Coverage of nominal 95% intervals"
    caption = (
        "Share of data sets whose interval has the true value inside, filled for the mean of the start states, hollow "
        "for one state. Green: the default. Black: as in textbooks, with the errors of the fitted weights and normal "
        "quantiles. Dotted: 0.95, and the range from 0.92 to 0.98. The last rows have features that cannot represent "
        "the values; there no interval covers them. Paper scale: 500 data sets a point."
    )
    size = (4.6, 7.0)

    def cells(self, scale: Scale) -> list[tuple[str, int]]:
        """Return problem and number of episodes of each line."""
        return [(name, n) for name in PROBLEMS for n in pick(SIZES, scale)]

    def cell_runs(self, scale: Scale, problem: str, n_episodes: int) -> list[RunSpec]:
        """Return the runs of one line."""
        settings: dict[str, Any] = {
            "problem": problem,
            "n_episodes": n_episodes,
            "n_sets": pick(SETS, scale),
            "n_bootstrapped": pick(BOOTSTRAPPED, scale),
            "level": LEVEL,
        }
        if not PROBLEMS[problem].rollouts or n_episodes < LARGE:
            return specs("coverage", settings, seeds(pick(RUNS, scale)))
        settings["rollouts"] = LARGE_ROLLOUTS
        bootstrapped, others = settings | {"n_bootstrapped": settings["n_sets"]}, settings | {"n_bootstrapped": 0}
        return [
            *specs("coverage", bootstrapped, range(LARGE_BOOTSTRAPPED)),
            *specs("coverage", others, range(LARGE_BOOTSTRAPPED, LARGE_RUNS)),
        ]

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs of all lines, the small ones first, and then by seeds."""
        wanted = [(n, spec) for name, n in self.cells(results.scale) for spec in self.cell_runs(results.scale, name, n)]
        return [spec for _, spec in sorted(wanted, key=lambda pair: (pair[0], pair[1].seed))]

    def measured(self, results: Results) -> dict[Cell, dict[str, Measured]]:
        """Return what was found in every cell, by kind."""
        found: dict[Cell, dict[str, Measured]] = {}
        for problem, n in self.cells(results.scale):
            runs = [results[spec].columns for spec in self.cell_runs(results.scale, problem, n)]
            columns = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
            for target, kind in sorted(set(zip(columns["target"], columns["kind"], strict=True))):
                here = (columns["target"] == target) & (columns["kind"] == kind)
                covered, sets = (int(columns[name][here].sum()) for name in ("covered", "sets"))
                width, degrees = (float(columns[name][here].mean()) for name in ("width", "degrees"))
                cell = Cell(problem, TARGETS[int(target)], n)
                found.setdefault(cell, {})[KINDS[int(kind)]] = Measured(covered, sets, width, degrees)
        return found

    def chart(self, results: Results) -> Chart:
        """Return a line of points per problem and size."""
        lines, measured, series = self.cells(results.scale), self.measured(results), []
        looks = {"sandwich": ("default", COLOURS["Krylov LSTD"], -0.12), "plug-in": ("textbook", COLOURS["LSTD"], 0.12)}
        for kind, (words, colour, shift) in looks.items():
            for target, hollow in zip(TARGETS, (False, True), strict=True):
                shares = [measured[Cell(problem, target, n)][kind].share for problem, n in lines]
                value, low, high = (
                    list(part) for part in zip(*((s.value, s.low, s.high) for s in shares), strict=True)
                )
                at = [i + shift + (0.12 if hollow else -0.12) for i in range(len(lines))]
                drawn = points(value, at, x_low=low, x_high=high)
                label = f"{words}, {target}"
                series.append(Series(label, colour, drawn, marker="o", hollow=hollow, joined=False))
        names = [f"{PROBLEMS[problem].words}, {n:,}" for problem, n in lines]
        rules = (Rule("x", LOW), Rule("x", LEVEL), Rule("x", HIGH))
        return Chart(series, Axis("coverage"), cases(range(len(lines)), names), rules, legend=Legend("below", 2, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        where = "wherever features can represent the values"
        return (
            Claim(
                "coverage-low", BEYOND, f"The default interval covers at least {LOW} of the time {where}.", self._low
            ),
            Claim(
                "coverage-high", BEYOND, f"The default interval covers at most {HIGH} of the time {where}.", self._high
            ),
            Claim(
                "coverage-textbook",
                BEYOND,
                f"The textbook interval covers less than {LOW} of the time somewhere among these.",
                self._textbook,
            ),
            Claim(
                "coverage-features",
                BEYOND,
                "Where features cannot represent the values, the default interval covers less than 0.8 of the time.",
                self._features,
            ),
        )

    def shares(self, results: Results, kind: str, keep: Callable[[Cell], bool]) -> dict[Cell, OverRuns]:
        """Return the coverage of one kind in some cells."""
        return {cell: kinds[kind].share for cell, kinds in self.measured(results).items() if keep(cell)}

    def _low(self, results: Results) -> Finding:
        shares = self.shares(results, "sandwich", lambda cell: cell.holds)
        worst = min(shares, key=lambda cell: shares[cell].value)
        out = {cell: share for cell, share in shares.items() if share.value < LOW}
        verdict: Verdict = "not" if any(share.high < LOW for share in out.values()) else "partly"
        return self._finding(shares, worst, out, verdict, "lowest")

    def _high(self, results: Results) -> Finding:
        shares = self.shares(results, "sandwich", lambda cell: cell.holds)
        worst = max(shares, key=lambda cell: shares[cell].value)
        out = {cell: share for cell, share in shares.items() if share.value > HIGH}
        verdict: Verdict = "not" if any(share.low > HIGH for share in out.values()) else "partly"
        return self._finding(shares, worst, out, verdict, "highest")

    def _finding(
        self, shares: dict[Cell, OverRuns], worst: Cell, out: dict[Cell, OverRuns], verdict: Verdict, what: str
    ) -> Finding:
        """All cells have to be within the range; partly, if those beyond it could be there by chance."""
        note = f"{len(shares) - len(out)} of {len(shares)} cells. " + "; ".join(f"{c}: {s}" for c, s in out.items())
        return Finding(verdict if out else "reproduced", shares[worst], f"{what} coverage ({worst})", note.strip())

    def _textbook(self, results: Results) -> Finding:
        shares = self.shares(results, "plug-in", lambda cell: cell.holds)
        worst = min(shares, key=lambda cell: shares[cell].value)
        return Finding(below(shares[worst], LOW), shares[worst], f"lowest coverage ({worst})")

    def _features(self, results: Results) -> Finding:
        shares = self.shares(results, "sandwich", lambda cell: cell.problem == "garnet-few")
        worst = max(shares, key=lambda cell: shares[cell].value)
        return Finding(below(shares[worst], 0.8), shares[worst], f"highest coverage ({worst})")
