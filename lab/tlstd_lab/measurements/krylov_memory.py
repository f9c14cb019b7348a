"""Krylov LSTD in bounded memory: error against ``max_samples``, over that of all samples.

uv run python -m tlstd_lab.measurements.krylov_memory            # tables, and docs/figures/krylov_memory.png
uv run python -m tlstd_lab.measurements.krylov_memory long       # a million steps: memory and time
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tlstd import KrylovLSTD, Transitions
from tlstd.linalg.batch import Batch
from tlstd.linalg.folding import Folding
from tlstd.linalg.krylov import Arnoldi
from tlstd.linalg.old_part import OldPart
from tlstd.linalg.sample_operator import SampleOperator
from tlstd.linalg.sample_store import SampleStore
from tlstd.linalg.samples import Samples
from tlstd_lab.problems import Problem, problem, stream

LAMBDA = 0.9
SEEDS = (10, 11)
"""Not those on which the form of folding was chosen, which were 0 and 1."""
KEPT = (500, 1_000, 2_000)
PROBLEMS: dict[str, tuple[int, tuple[int | str, ...]]] = {
    "energy": (10_000, (8, 20, "auto")),
    "car-tiles": (5_000, (20, 40, "auto")),
    "car-rbf": (5_000, (20, 40, "auto")),
}


def error(made: Problem, steps: Transitions, dimension: int | str, max_samples: int | None) -> float:
    model = KrylovLSTD(steps.n_features, lambda_=LAMBDA, dimension=dimension, max_samples=max_samples)
    model.update_many(steps)
    return made.rmse(model.predict(made.X))


def error_of_last(made: Problem, steps: Transitions, dimension: int | str, n: int) -> float:
    return error(made, steps[-n:], dimension, None)


# --- other ways to fold ---------------------------------------------------------------------------------------------


class OnBasisOnly(Folding):
    """A_old ≈ (A_old Q) Qᵀ: nothing outside of the basis."""

    def __call__(self, samples: Samples, n_chunks: int) -> OldPart:
        return super().__call__(samples, n_chunks)._replace(beyond=0.0)


class LargestSingularValues(Folding):
    """A_old by its truncated singular value decomposition of the same rank; for few features."""

    def __call__(self, samples: Samples, n_chunks: int) -> OldPart:
        n_samples = samples.n_left + n_chunks * samples.chunk_size
        leaving = samples._replace(chunks=samples.chunks[:n_chunks], n_samples=n_samples)
        operator, k = SampleOperator(leaving, lambda_=LAMBDA), self.dimension
        U, sigma, Vt = np.linalg.svd(operator.toarray())
        left, right = U[:, :k] * sigma[:k], np.ascontiguousarray(Vt[:k].T)
        return OldPart(left, right, 0.0, operator.b(), 0.0, np.zeros(operator.n))


def error_by(made: Problem, steps: Transitions, dimension: int, max_samples: int, folding: type[Folding]) -> float:
    def operator(samples: Samples) -> SampleOperator:
        return SampleOperator(samples, lambda_=LAMBDA)

    fold = folding(operator, max(32, 2 * dimension))
    store = SampleStore(steps.n_features, lambda_=LAMBDA, max_samples=max_samples, fold=fold)
    store.append(Batch.from_transitions(steps))
    system = operator(store.samples)
    arnoldi = Arnoldi(lambda V, columns: system.matvec(V), system.b())
    arnoldi.extend(dimension)
    w = np.zeros(steps.n_features)
    w[store.ids] = arnoldi.paths[0].solution(dimension)
    return made.rmse(made.X @ w)


# --- tables and figure ----------------------------------------------------------------------------------------------


def mean(name: str, measure: Callable[..., float], *arguments: Any) -> float:
    """Mean over the streams of ``measure(problem, stream, *arguments)``."""
    n, _ = PROBLEMS[name]
    return float(np.mean([measure(problem(name), stream(name, n, seed), *arguments) for seed in SEEDS]))


def measured(name: str, dimension: int | str) -> dict[str, float]:
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


def draw(results: dict[tuple[str, int | str], dict[str, float]]) -> Figure:
    figure = Figure(figsize=(10.0, 3.4), layout="constrained")
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
    results: dict[tuple[str, int | str], dict[str, float]] = {}
    columns = ["all", *(str(kept) for kept in KEPT), *(f"last {kept}" for kept in KEPT), "no τ", "SVD"]
    print(f"| RMSE, mean of {len(SEEDS)} streams | {' | '.join(columns)} | 1,000 over all |")
    print("|---" * (len(columns) + 2) + "|")
    for name, (_, dimensions) in PROBLEMS.items():
        for dimension in dimensions:
            found = results[name, dimension] = measured(name, dimension)
            cells = [f"{found[column]:.3g}" if column in found else "" for column in columns]
            ratio = found["1000"] / found["all"]
            print(f"| {problem(name).title}, {dimension} | {' | '.join(cells)} | {ratio:.3f} |", flush=True)
    draw(results).savefig("docs/figures/krylov_memory.png", dpi=150)


def long(n_rounds: int = 100) -> None:
    """The same 10,000 samples of energy storage again and again: only the memory and the time are of interest."""
    steps = stream("energy", 10_000, 0)
    for options in ({"max_samples": 8_192}, {"reads": "stream"}):
        settings: dict[str, Any] = {"dimension": 8, **options}
        model = KrylovLSTD(steps.n_features, lambda_=LAMBDA, **settings)
        start, sizes = time.process_time(), []
        for _ in range(n_rounds):
            model.update_many(steps)
            sizes.append(model.nbytes)
        used = (time.process_time() - start) / model.n_updates
        early, late = max(sizes[1 : n_rounds // 10]), max(sizes[n_rounds // 2 :])
        print(
            f"{settings}: {model.n_updates:,} steps of {used * 1e6:.1f} µs, {model.n_seen:,} features seen, "
            f"{early / 1e6:.1f} MB in the first tenth, {late / 1e6:.1f} MB in the second half",
            flush=True,
        )


if __name__ == "__main__":
    long() if sys.argv[1:] == ["long"] else main()
