"""Write the tables of every estimator on every problem from the committed runs of the comparison.

uv run python -m tlstd_lab.report.comparison_table     # computes no run
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.panel import Results
from tlstd_lab.questions.comparison.methods import CANNOT, ENTRIES, OFF_POLICY, UNTUNED, reason
from tlstd_lab.questions.comparison.panel import GROUPS, SAMPLES, Field, Tuned, field, geometric_mean, weights
from tlstd_lab.report import claims_page
from tlstd_lab.report.contest_table import duration
from tlstd_lab.statistics import ratio_of_means
from tlstd_lab.tables import DOCS, table, write_tables

TABLES: dict[str, tuple[str, ...]] = {
    "large": GROUPS["Mountain Car"] + GROUPS["Pendulum"],
    "energy": GROUPS["energy"],
    "small": GROUPS["small processes"] + GROUPS["off-policy"],
}
"""Problems of each table of errors."""
BUDGETS = (0.001, 0.01, 0.1, 1.0)
"""CPU seconds within which errors are compared."""
TIE = 1e-3
"""Errors that differ by less are as good."""
TIMES_OF = ("car-tiles", "car-rbf", "energy", "walk")
"""Problems whose CPU times are in the table of all."""


class Found:
    """What the runs say of one problem: errors and times by method and number of samples."""

    def __init__(self, results: Results, problem: str) -> None:
        here: Field = field(problem)
        self.problem, self.results, self.field = problem, results, here
        self.errors: dict[str, dict[int, FloatArray]] = {}
        self.seconds: dict[str, dict[int, float]] = {}
        for name in here.methods(results.scale):
            samples = here.samples(results.scale, name)
            seconds = here.column(results, name, "seconds")
            self.errors[name] = {n: here.errors(results, name, n) for n in samples}
            self.seconds[name] = {n: float(seconds[:, i].mean()) for i, n in enumerate(samples)}

    def best(self, n: int) -> FloatArray:
        """The errors of whoever has the least mean."""
        return min((by_n[n] for by_n in self.errors.values() if n in by_n), key=lambda errors: float(errors.mean()))

    def ratio(self, name: str, n: int) -> str:
        """The error over the best one, bold if it is not known to be worse."""
        over = ratio_of_means(self.errors[name][n], self.best(n))
        words = f"{over.value:.3g}" if over.value < 99.5 else f"{over.value:.0f}"
        return f"**{words}**" if over.low <= 1.0 else words

    def cell(self, name: str, n: int) -> str:
        """Tuned and usual; a dash where it was not run, and "slow" where it was given fewer samples."""
        if reason(name, self.problem) is not None:
            return "–"
        return " · ".join(self.ratio(m, n) for m in (name, name + UNTUNED)) if n in self.errors[name] else "slow"

    def within(self, seconds: float, ending: str) -> str:
        """Who has the least error of what can be learned in a time, from as many samples as that allows, and ties."""
        reached = {}
        for name in ENTRIES:
            times = self.seconds.get(name + ending, {})
            fits = [n for n, taken in times.items() if taken <= seconds]
            if fits:
                reached[name] = float(self.errors[name + ending][max(fits)].mean())
        if not reached:
            return "–"
        name = min(reached, key=lambda name: reached[name])
        ties = sum(error <= reached[name] * (1.0 + TIE) for error in reached.values()) - 1
        return f"{name}{f' and {ties} more' if ties else ''} ({reached[name]:.3g})"


def mean_ratio(all_found: Iterable[Found], name: str, n: int) -> str:
    """Geometric mean over the kinds of on-policy problems where it was run of its error over the best, and how many."""
    some = [f for f in all_found if f.problem not in OFF_POLICY and n in f.errors.get(name, {})]
    mine, best = (
        np.array([e]) for e in zip(*((f.errors[name][n].mean(), f.best(n).mean()) for f in some), strict=True)
    )
    return f"{geometric_mean(mine, best, weights([f.problem for f in some])):.2f} ({len(some)})"


def among_best(all_found: Iterable[Found], name: str, n: int) -> int:
    """On how many problems it is the best or not known to be worse."""
    return sum(f.ratio(name, n).startswith("**") for f in all_found if n in f.errors.get(name, {}))


def inside(all_found: Iterable[Found], name: str) -> str:
    """Of how many sweeps, of all, the best setting has no neighbour that could be better."""
    sweeps = [f.results[f.field.sweep(f.results.scale, name)].columns["inside"] for f in all_found if name in f.errors]
    return f"{sum(int(found.sum()) for found in sweeps)} of {sum(len(found) for found in sweeps)}"


def overview(all_found: Sequence[Found], counts: Sequence[int]) -> str:
    """One row per estimator: mean ratios, how often among the best, CPU times."""
    by_problem, rows = {found.problem: found for found in all_found}, []
    for name in ENTRIES:
        row = [f"`{name}`"]
        for n in counts:
            row += [" · ".join(mean_ratio(all_found, m, n) for m in (name, name + UNTUNED))]
            row += [" · ".join(str(among_best(all_found, m, n)) for m in (name, name + UNTUNED))]
        for problem in TIMES_OF:
            times = by_problem[problem].seconds.get(name + UNTUNED, {})
            row.append(duration(times[counts[0]]) if times else "–")
        rows.append([*row, inside(all_found, name)])
    heads = [h for n in counts for h in (f"error over the best, {n:,} samples", f"among the best, {n:,}")]
    return table(["", *heads, *(f"CPU, {problem}" for problem in TIMES_OF), "sweeps settled"], rows)


def errors(all_found: Sequence[Found], problems: Sequence[str], n: int) -> str:
    """Ratios to the best error of some problems, tuned and usual."""
    some = [found for found in all_found if found.problem in problems]
    rows = [[f"`{name}`", *(found.cell(name, n) for found in some)] for name in ENTRIES]
    rows.append(["RMSE of the best", *(f"{found.best(n).mean():.3g}" for found in some)])
    rows.append(["of zero", *(f"{found.field.zero(found.results):.3g}" for found in some)])
    return table([f"{n:,} samples", *(found.problem for found in some)], rows)


def budgets(all_found: Sequence[Found]) -> str:
    """Who has the least error within a CPU time."""
    rows = [
        [found.problem, *(f"{found.within(s, '')} · {found.within(s, UNTUNED)}" for s in BUDGETS)]
        for found in all_found
    ]
    return table(["", *(duration(seconds) for seconds in BUDGETS)], rows)


def left_out() -> str:
    """Who was not run where, and why."""
    return "\n".join(
        f"- {', '.join(f'`{name}`' for name in names)} on {', '.join(problems)}: {why}."
        for names, (problems, why) in CANNOT.items()
    )


def main() -> None:
    """Write everything."""
    (shown,) = claims_page.committed(["comparison"])
    assert isinstance(shown.panel, Tuned)
    results, compared = shown.results, shown.panel.problems(shown.results.scale)
    first, second = [n for n in SAMPLES[results.scale] if n >= 1_000][:2]
    all_found = [Found(results, problem) for problem in compared]
    made = {"comparison": overview(all_found, (first, second)), "comparison-time": budgets(all_found)}
    for key, problems in TABLES.items():
        made[f"comparison-{key}"] = errors(all_found, problems, first)
        made[f"comparison-{key}-more"] = errors(all_found, problems, second)
    write_tables(DOCS / "which_estimator.md", made | {"comparison-left-out": left_out()})


if __name__ == "__main__":
    main()
