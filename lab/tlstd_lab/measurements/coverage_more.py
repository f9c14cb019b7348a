"""Coverage of nominal 95% intervals beyond the large table: very few episodes, and differences of two policies.

uv run python -m tlstd_lab.measurements.coverage_more          # three minutes; writes two tables of docs/intervals.md
"""

from __future__ import annotations

import numpy as np

from tlstd import KrylovLSTD, Transitions
from tlstd.evaluation import Asked, Influence, difference_interval, influences, interval_of
from tlstd.linalg.threads import one_thread
from tlstd_lab.questions.coverage.panel import LEVEL, PROBLEMS
from tlstd_lab.questions.coverage.problems import Decisions
from tlstd_lab.questions.coverage.task import KINDS, TARGETS, coverage
from tlstd_lab.tables import DOCS, table, write_tables

SEEDS, SETS = 10, 50
"""Problems, and data sets of each."""
FEW = (10, 20)
"""Episodes."""
SIZES = (50, 200)


def few() -> str:
    """Closed forms with very few episodes."""
    head = ["problem", "value of", "episodes", "default", "plug-in", "half-width", "degrees"]
    lines = []
    for name in ("walk", "garnet", "garnet-off", "garnet-q"):
        for n in FEW:
            settings = {"problem": name, "n_episodes": n, "n_sets": SETS, "n_bootstrapped": 0, "level": LEVEL}
            runs = [coverage(settings, seed) for seed in range(SEEDS)]
            for target, words in enumerate(TARGETS):
                of_kind = {}
                for kind in ("sandwich", "plug-in"):
                    (row,) = np.flatnonzero((runs[0]["target"] == target) & (runs[0]["kind"] == KINDS.index(kind)))
                    of_kind[kind] = {column: np.array([run[column][row] for run in runs]) for column in runs[0]}
                default = of_kind["sandwich"]
                shares = [f"{each['covered'].sum() / each['sets'].sum():.3f}" for each in of_kind.values()]
                middle = [f"{default['width'].mean():.2g}", f"{default['degrees'].mean():.0f}"]
                lines.append([PROBLEMS[name].words, words, f"{n}", *shares, *middle])
                print(lines[-1], flush=True)
    return table(head, lines)


def _influence(steps: Transitions, asked: Asked, lambda_: float) -> Influence:
    model = KrylovLSTD(steps.n_features, lambda_=lambda_, dimension=1)
    model.update_many(steps)
    return influences(model, [asked])[0]


def differences() -> str:
    """A policy by LSTDQ, less the one that acted, on Garnets."""
    head = ["episodes", "covered", "half-width", "of the two intervals together"]
    lines = []
    for n in SIZES:
        covered, widths, apart = 0, [], []
        for seed in range(SEEDS):
            made = Decisions(seed)
            truth = float(made.values(made.target).mean() - made.values(made.acted).mean())
            for number in range(SETS):
                found = made.play(n, np.random.default_rng([seed, 0, number]))
                a, b = _influence(*made.of_actions(found), 0.0), _influence(*made.of_states(found), 0.9)
                interval = difference_interval(a, b, LEVEL)
                covered += truth in interval
                widths.append(interval.half_width)
                apart.append(np.hypot(interval_of(a, LEVEL).half_width, interval_of(b, LEVEL).half_width))
        shown = [f"{np.median(one):.2g}" for one in (widths, apart)]
        lines.append([f"{n:,}", f"{covered / (SEEDS * SETS):.3f}", *shown])
        print(lines[-1], flush=True)
    return table(head, lines)


def main() -> None:
    """Write the tables."""
    with one_thread():
        write_tables(DOCS / "intervals.md", {"few": few(), "differences": differences()})


if __name__ == "__main__":
    main()
