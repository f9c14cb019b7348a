"""Krylov LSTD in bounded memory: error against ``max_samples``, over that of all samples.

uv run python -m tlstd_lab.measurements.krylov_memory            # accuracy, with docs/figures/krylov_memory.png
uv run python -m tlstd_lab.measurements.krylov_memory long       # a million steps: memory and time

Both write their table into ``docs/krylov.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tlstd import KrylovLSTD, Transitions
from tlstd.core.figures import new_figure, save
from tlstd.core.svd import svd
from tlstd.data.batch import Batch
from tlstd.krylov.folding import Folding
from tlstd.krylov.krylov_lstd import Auto
from tlstd.krylov.operator import SampleOperator
from tlstd.krylov.samples import FoldedSamples, Samples, SampleStore
from tlstd_lab.bench.timing import timed
from tlstd_lab.problems import Problem, problem, stream
from tlstd_lab.tables import DOCS, row, table, write_tables

PAGE = DOCS / "krylov.md"
LAMBDA = 0.9
SEEDS = (10, 11)
"""Not those on which the form of folding was chosen, which were 0 and 1."""
KEPT = (500, 1_000, 2_000)
PROBLEMS: dict[str, tuple[int, tuple[int | Auto, ...]]] = {
    "energy": (10_000, (8, 20, "auto")),
    "car-tiles": (5_000, (20, 40, "auto")),
    "car-rbf": (5_000, (20, 40, "auto")),
}


def error(made: Problem, steps: Transitions, dimension: int | Auto, max_samples: int | None) -> float:
    model = KrylovLSTD(steps.n_features, lambda_=LAMBDA, dimension=dimension, max_samples=max_samples)
    model.update_many(steps)
    return made.rmse(model.predict(made.X))


def error_of_last(made: Problem, steps: Transitions, dimension: int | Auto, n: int) -> float:
    return error(made, steps[-n:], dimension, None)


# --- other ways to fold ---------------------------------------------------------------------------------------------


class OnBasisOnly(Folding):
    """A_old ≈ (A_old Q) Qᵀ: nothing outside of the basis."""

    def __call__(self, samples: Samples, n_chunks: int) -> FoldedSamples:
        return super().__call__(samples, n_chunks)._replace(beyond=0.0)


class LargestSingularValues(Folding):
    """A_old by its truncated singular value decomposition of the same rank; for few features."""

    def __call__(self, samples: Samples, n_chunks: int) -> FoldedSamples:
        n_samples = samples.n_left + n_chunks * samples.chunk_size
        leaving = samples._replace(chunks=samples.chunks[:n_chunks], n_samples=n_samples)
        operator, k = SampleOperator(leaving, lambda_=LAMBDA), self.dimension
        U, sigma, Vt = svd(operator.toarray())
        left, right = U[:, :k] * sigma[:k], np.ascontiguousarray(Vt[:k].T)
        return FoldedSamples(left, right, 0.0, operator.b(), 0.0, np.zeros(operator.n))


def error_by(made: Problem, steps: Transitions, dimension: int, max_samples: int, folding: type[Folding]) -> float:
    def operator(samples: Samples) -> SampleOperator:
        return SampleOperator(samples, lambda_=LAMBDA)

    fold = folding(operator, max(32, 2 * dimension))
    store = SampleStore(steps.n_features, lambda_=LAMBDA, max_samples=max_samples, fold=fold)
    store.append(Batch.from_transitions(steps))
    system = operator(store.samples)
    arnoldi = system.arnoldi()
    arnoldi.extend(dimension)
    w = np.zeros(steps.n_features)
    w[store.ids] = arnoldi.paths[0].solution(dimension)
    return made.rmse(made.X @ w)


# --- tables and figure ----------------------------------------------------------------------------------------------


def mean(name: str, measure: Callable[..., float], *arguments: Any) -> float:
    """Mean over the streams of ``measure(problem, stream, *arguments)``."""
    n, _ = PROBLEMS[name]
    return float(np.mean([measure(problem(name), stream(name, n, seed), *arguments) for seed in SEEDS]))


def measured(name: str, dimension: int | Auto) -> dict[str, float]:
    """Mean RMSE by what is kept."""
    found = {"all": mean(name, error, dimension, None)}
    for kept in KEPT:
        found[f"{kept}"] = mean(name, error, dimension, kept)
        found[f"last {kept}"] = mean(name, error_of_last, dimension, kept)
    if isinstance(dimension, int):
        found["no τ"] = mean(name, error_by, dimension, 1_000, OnBasisOnly)
        if name != "energy":
            found["SVD"] = mean(name, error_by, dimension, 1_000, LargestSingularValues)
    return found


def draw(results: dict[tuple[str, int | Auto], dict[str, float]]) -> Figure:
    figure = new_figure(10.0, 3.4)
    panels = figure.subplots(1, len(PROBLEMS), sharey=True)
    for axes, name in zip(panels, PROBLEMS, strict=True):
        for i, dimension in enumerate(PROBLEMS[name][1]):
            found = results[name, dimension]
            for prefix, line in (("", "o-"), ("last ", "x:")):
                ratios = [found[f"{prefix}{kept}"] / found["all"] for kept in KEPT]
                label = f"dimension {dimension}" if not prefix else None
                axes.plot(KEPT, ratios, line, color=f"C{i}", label=label, lw=1.5, ms=5)
        axes.axhline(1.0, color="0.6", lw=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(KEPT, [f"{kept:,}" for kept in KEPT])
        axes.set_yticks([1.0, 1.2, 1.5, 2.0, 3.0], ["1", "1.2", "1.5", "2", "3"])
        axes.minorticks_off()
        axes.set_title(f"{problem(name).title}, {PROBLEMS[name][0]:,} samples", fontsize=10)
        axes.set_xlabel("samples kept")
        axes.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("RMSE over that of all samples")
    return figure


def main() -> None:
    results: dict[tuple[str, int | Auto], dict[str, float]] = {}
    columns = ["all", *(str(kept) for kept in KEPT), *(f"last {kept}" for kept in KEPT), "no τ", "SVD"]
    rows = []
    for name, (_, dimensions) in PROBLEMS.items():
        for dimension in dimensions:
            found = results[name, dimension] = measured(name, dimension)
            cells = [f"{found[column]:.3g}" if column in found else "" for column in columns]
            rows.append([f"{problem(name).title}, {dimension}", *cells, f"{found['1000'] / found['all']:.3f}"])
            print(row(rows[-1]), flush=True)
    head = [f"RMSE, mean of {len(SEEDS)} streams; dimension", *columns, "1,000 over all"]
    write_tables(PAGE, {"accuracy": table(head, rows)})
    save(draw(results), DOCS / "figures" / "krylov_memory.png")


def long(n_rounds: int = 100) -> None:
    """The same 10,000 samples of energy storage again and again: only the memory and the time are of interest."""
    steps, rows = stream("energy", 10_000, 0), []
    options: dict[str, dict[str, Any]] = {
        "`max_samples=16_384`, read never": {"max_samples": 16_384},
        '`reads="stream"`': {"reads": "stream"},
    }
    for words, arguments in options.items():
        model = KrylovLSTD(steps.n_features, lambda_=LAMBDA, dimension=8, **arguments)
        used, sizes = 0.0, []
        for _ in range(n_rounds):
            used += timed(lambda m=model: m.update_many(steps))[0]  # type: ignore[misc]
            sizes.append(model.nbytes)
        early, late = max(sizes[1 : n_rounds // 10]), max(sizes[n_rounds // 2 :])
        rows.append([words, f"{1e6 * used / model.n_updates:.0f}", f"{1e-6 * early:.1f}", f"{1e-6 * late:.1f}"])
        print(row(rows[-1]), flush=True)
    head = ["one million steps, dimension 8", "µs a step", "MB in the first tenth", "MB in the second half"]
    write_tables(PAGE, {"million": table(head, rows)})


if __name__ == "__main__":
    long() if sys.argv[1:] == ["long"] else main()
