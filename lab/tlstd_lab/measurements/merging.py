"""What t-LSTD loses when its samples are learned from in parts and the models merged.

uv run python -m tlstd_lab.measurements.merging    # about a minute of one core; writes the table of docs/clusters.md
"""

from __future__ import annotations

from functools import partial
from statistics import fmean

from tlstd import TLSTD, merge
from tlstd.core.threads import one_thread
from tlstd_lab.problems import problem, stream
from tlstd_lab.tables import DOCS, table, write_tables

PROBLEMS = {"energy": 40, "car-tiles": 50, "car-rbf": 50}
"""Problems and ranks."""
SAMPLES, STREAMS = 6_000, 5
PARTS = (2, 8, 32)


def errors(name: str, rank: int, seed: int) -> dict[str, float]:
    """RMSE of one model of all samples, and of models of 2, 8 and 32 parts that were merged, in order and backwards."""
    made, steps = problem(name), stream(name, SAMPLES, seed)
    make = partial(TLSTD, made.features.n_features, rank, lambda_=0.9)
    whole = make()
    whole.update_many(steps)
    found = {"one model": made.rmse(whole.predict(made.X))}
    for parts in PARTS:
        size = SAMPLES // parts
        models = [make() for _ in range(parts)]
        for i, model in enumerate(models):
            model.update_many(steps[i * size : (i + 1) * size])
        for words, order in (("", models), (", backwards", models[::-1])):
            found[f"{parts} parts{words}"] = made.rmse(merge(order).predict(made.X))
    return found


def main() -> None:
    """Print and write the table."""
    rows = []
    with one_thread():
        for name, rank in PROBLEMS.items():
            runs = [errors(name, rank, seed) for seed in range(STREAMS)]
            means = {key: fmean(run[key] for run in runs) for key in runs[0]}
            one = means.pop("one model")
            ratios = [f"{value / one:.2f}" for value in means.values()]
            rows.append([f"{problem(name).title}, rank {rank}", f"{one:.3g}", *ratios])
    made = table(["RMSE", "one model", *means], rows)
    print(made)
    write_tables(DOCS / "clusters.md", {"merging": made})


if __name__ == "__main__":
    main()
