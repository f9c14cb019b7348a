"""Which number is the answer: the mean of regularised values of start states, or the middle of the interval.

uv run python -m tlstd_lab.measurements.answer    # half a minute; writes the table of docs/trust.md
"""

from __future__ import annotations

import numpy as np

from tlstd import KrylovLSTD
from tlstd.core.arrays import FloatArray
from tlstd.core.threads import one_thread
from tlstd.evaluation import influences
from tlstd_lab.questions.coverage.problems import problem
from tlstd_lab.tables import DOCS, table, write_tables

PROBLEMS = {
    "walk": "random walk",
    "boyan": "Boyan's chain",
    "garnet-on": "Garnets",
    "garnet-cut": "Garnets, cut off",
    "car": "Mountain Car",
    "pole-tiles": "CartPole",
    "garnet-off": "Garnets, another policy, ratios",
    "garnet-q": "Garnets, another policy, LSTDQ",
    "pole-off": "CartPole, another policy, ratios",
}
EPISODES = (50, 200)
SETS = 36
"""Data sets; of Garnets three from each of twelve."""
FIRST = 500
"""Number of the first Garnet: others than those of the coverage question."""


def errors(name: str, n_episodes: int) -> FloatArray:
    """(sets, 2): errors of the mean regularised value of the start states, and of the middle."""
    found = []
    for number in range(SETS):
        made = problem(name, FIRST + (number // 3 if name.startswith("garnet") else 0))
        steps, starts = made.draw(n_episodes, np.random.default_rng([FIRST, number]))
        model = KrylovLSTD(steps.n_features, lambda_=made.lambda_)
        model.update_many(steps)
        (influence,) = influences(model, [starts])
        found.append((float(np.mean(model.predict(starts.X))) - made.start, influence.value - made.start))
    return np.array(found)


def main() -> None:
    """Print and write the table."""
    rows = []
    with one_thread():
        for name, words in PROBLEMS.items():
            cells = [words]
            for n in EPISODES:
                regularised, middle = np.sqrt((errors(name, n) ** 2).mean(axis=0))
                cells += [f"{regularised:.3g}", f"{middle:.3g}"]
            rows.append(cells)
    head = [f"{n} episodes, {what}" for n in EPISODES for what in ("regularised", "middle")]
    made = table(["RMSE of the start value", *head], rows)
    print(made)
    write_tables(DOCS / "trust.md", {"answer": made})


if __name__ == "__main__":
    main()
