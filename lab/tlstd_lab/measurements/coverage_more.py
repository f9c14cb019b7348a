"""Coverage of nominal 95% intervals beyond the large table: very few episodes, and differences of two policies.

uv run python -m tlstd_lab.measurements.coverage_more          # two minutes; writes two tables of docs/least_squares.md
uv run python -m tlstd_lab.measurements.coverage_more few      # one of them
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from tlstd import KrylovLSTD, Transitions
from tlstd.core.threads import one_thread
from tlstd.evaluation import Asked, Influence, influences, interval_of
from tlstd.evaluation.intervals import difference_of
from tlstd_lab.questions.coverage.panel import LEVEL, PROBLEMS
from tlstd_lab.questions.coverage.problems import Decisions, problem
from tlstd_lab.questions.coverage.task import TARGETS, symmetric
from tlstd_lab.tables import DOCS, table, write_tables

SEEDS, SETS = 10, 50
"""Problems, and data sets of each."""
FEW = (10, 20)
"""Episodes."""
SIZES = (50, 200)


def _influences(steps: Transitions, asked: Sequence[Asked], lambda_: float) -> list[Influence]:
    model = KrylovLSTD(steps.n_features, lambda_=lambda_, dimension=1)
    model.update_many(steps)
    return influences(model, asked)


def few() -> str:
    """Closed forms with very few episodes."""
    head = ["problem", "value of", "episodes", "default", "plug-in", "half-width", "degrees"]
    lines = []
    for name in ("walk", "garnet", "garnet-off", "garnet-q"):
        for n in FEW:
            found: list[list[tuple[float, ...]]] = [[], []]
            for seed in range(SEEDS):
                made = problem(name, seed)
                for number in range(SETS):
                    steps, starts = made.draw(n, np.random.default_rng([seed, 0, number]))
                    both = _influences(steps, (starts, Asked(made.state)), made.lambda_)
                    for rows, influence, truth in zip(found, both, (made.start, made.value), strict=True):
                        default = interval_of(influence.found, LEVEL)
                        plug_in = symmetric(influence.plug_in().found, LEVEL, normal=True)
                        rows.append((truth in default, truth in plug_in, default.half_width, default.degrees))
            for target, rows in zip(TARGETS, found, strict=True):
                covered, textbook, width, degrees = np.array(rows).T
                shown = [f"{covered.mean():.3f}", f"{textbook.mean():.3f}"]
                shown += [f"{np.median(width):.2g}", f"{np.median(degrees):.0f}"]
                lines.append([PROBLEMS[name].words, target, f"{n}", *shown])
                print(lines[-1], flush=True)
    return table(head, lines)


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
                (q_steps, q_asked), (steps, asked) = made.of_actions(found), made.of_states(found)
                (a,), (b,) = _influences(q_steps, [q_asked], 0.0), _influences(steps, [asked], 0.9)
                interval = difference_of(a.found, b.found, LEVEL)
                covered += truth in interval
                widths.append(interval.half_width)
                first, second = (interval_of(one.found, LEVEL) for one in (a, b))
                apart.append(np.hypot(first.half_width, second.half_width))
        shown = [f"{np.median(one):.2g}" for one in (widths, apart)]
        lines.append([f"{n:,}", f"{covered / (SEEDS * SETS):.3f}", *shown])
        print(lines[-1], flush=True)
    return table(head, lines)


TABLES = {"few": few, "differences": differences}


def main(words: list[str]) -> None:
    """Write the tables; only some, if they are named."""
    with one_thread():
        write_tables(DOCS / "least_squares.md", {name: TABLES[name]() for name in words or TABLES})


if __name__ == "__main__":
    main(sys.argv[1:])
