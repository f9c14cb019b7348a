"""Why folds choose a dimension badly on Mountain Car's RBFs: what each fold says, and whether other rules do better.

uv run python -m tlstd_lab.measurements.krylov_folds     # two tables, about 4 minutes of one core
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tlstd import KrylovLSTD, Transitions
from tlstd.core.arrays import FloatArray
from tlstd.data import held_out
from tlstd.krylov.arnoldi import Arnoldi
from tlstd.krylov.choice import FOLDS, patience
from tlstd.krylov.operator import HeldOut
from tlstd_lab.measurements.krylov.topic import CAR_STREAMS, LAMBDA, LONGEST, path_errors, sample
from tlstd_lab.panel import seeds
from tlstd_lab.problems import problem
from tlstd_lab.tables import row, table

SAMPLES = (1_000, 5_000)
CLOSE = 1.05
"""Dimensions count as good if their error is at most so many times the least one."""


class Scores(NamedTuple):
    """Held-out errors of all dimensions."""

    errors: FloatArray
    """(groups, dimensions): sums of squares."""
    fold: FloatArray
    """(groups,): the fold of each group."""


def held_out_scores(model: KrylovLSTD) -> Scores:
    """As ``dimension="auto"`` has them, but for all ``LONGEST`` dimensions."""
    rewards, discounts, trace_discounts, rhos = model.operator().samples.columns()
    folds = held_out.make_folds(discounts, trace_discounts, FOLDS)
    targets = held_out.held_out_targets(rewards, discounts, rhos, folds)
    operator, numbers = model.operator().held_out(HeldOut(folds.fold, folds.cut)), np.arange(folds.n_folds)
    arnoldi = Arnoldi(
        lambda V, columns: operator.matvec(V, systems=numbers[list(columns)]), operator.b(systems=numbers)
    )
    arnoldi.extend(LONGEST)
    errors = np.zeros((folds.n_groups, LONGEST))
    for number, path in enumerate(arnoldi.paths):
        mine = folds.fold == number
        on_basis = operator.values(np.ascontiguousarray(path.Q.T))[0][mine]
        coordinates = [path.coordinates(m) for m in range(1, LONGEST + 1)]
        predictions = np.stack([on_basis[:, : y.size] @ y for y in coordinates], axis=1)
        errors += held_out.group_errors(
            predictions, targets.values[mine, 0], targets.weights[mine], folds.group[mine], folds.n_groups
        )
    of_group = np.zeros(folds.n_groups)
    of_group[folds.group] = folds.fold
    return Scores(errors, of_group)


def search(better: Callable[[FloatArray], bool], errors: FloatArray, *, whole: bool = False) -> int:
    """The dimension that a rule for differences of group errors finds, with the search's usual end or without."""
    best = 1
    for m in range(2, errors.shape[1] + 1):
        if better(errors[:, m - 1] - errors[:, best - 1]):
            best = m
        if not whole and m - best >= patience(best):
            break
    return best


def by_mean(differences: FloatArray) -> bool:
    return bool(differences.sum() < 0.0)


def by_clipped_mean(differences: FloatArray) -> bool:
    """No episode says more than one root mean square."""
    limit = np.sqrt(np.mean(differences**2))
    return bool(np.clip(differences, -limit, limit).sum() < 0.0)


def without_extremes(differences: FloatArray) -> bool:
    """A twentieth of the episodes at both ends says no more than the next ones."""
    k, ordered = differences.size // 20, np.sort(differences)
    return bool(np.clip(differences, ordered[k], ordered[-k - 1]).sum() < 0.0)


def median_of_folds(scores: Scores) -> int:
    return int(np.median([search(by_mean, scores.errors[scores.fold == number]) for number in range(FOLDS)]))


RULES: dict[str, Callable[[Scores], int]] = {
    "least mean (the rule)": lambda s: search(by_mean, s.errors),
    "the same, no end of the search": lambda s: search(by_mean, s.errors, whole=True),
    "episodes clipped at one root mean square": lambda s: search(by_clipped_mean, s.errors),
    "extreme episodes clipped": lambda s: search(without_extremes, s.errors),
    "median over folds of each one's best": median_of_folds,
}


def ranges(good: list[bool]) -> str:
    """Numbers from 1 of what is true, as ranges."""
    edges = np.flatnonzero(np.diff([0, *map(int, good), 0]))
    return ", ".join(f"{a + 1} to {b}" for a, b in zip(edges[::2], edges[1::2], strict=True))


def learned(steps: Transitions, ridge: float = 0.0) -> KrylovLSTD:
    model = KrylovLSTD(steps.n_features, lambda_=LAMBDA, ridge=ridge)
    model.update_many(steps)
    return model


def main() -> None:
    made = problem("car-rbf")
    found: dict[tuple[str, int], list[float]] = {}
    good_ones = f"within {CLOSE - 1:.0%} of the best"
    print(table(["samples", "stream", "chosen", good_ones, "best of each fold alone", "worst episode"], []))
    for n in SAMPLES:
        for seed in seeds(CAR_STREAMS):
            steps = sample(made, n, seed)
            scores, rmse = held_out_scores(learned(steps)), np.array(path_errors(learned(steps), made))
            alone = [search(by_mean, scores.errors[scores.fold == k], whole=True) for k in range(FOLDS)]
            chosen, good = RULES["least mean (the rule)"](scores), rmse <= CLOSE * rmse.min()
            share = scores.errors[:, chosen - 1].max() / scores.errors[:, chosen - 1].sum()
            cells = [ranges(good.tolist()), ", ".join(map(str, alone)), f"{share:.0%}"]
            print(row([f"{n:,}", str(seed), str(chosen), *cells]), flush=True)
            found.setdefault(("best dimension in hindsight", n), []).append(float(rmse.min()))
            for name, rule in RULES.items():
                found.setdefault((name, n), []).append(float(rmse[min(rule(scores), rmse.size) - 1]))
            for ridge in (1e-6, 1e-5):
                values = learned(steps, ridge).predict(made.X)
                found.setdefault((f"the rule, with ridge={ridge:g}", n), []).append(made.rmse(values))
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        means = [np.mean(found[name, n]) for n in SAMPLES]
        best = [np.mean(found["best dimension in hindsight", n]) for n in SAMPLES]
        rows.append([name, *(cell for a, b in zip(means, best, strict=True) for cell in (f"{a:.2f}", f"{a / b:.3f}"))])
    columns = [cell for n in SAMPLES for cell in (f"{n:,} samples", "/ best")]
    print(f"\n{table([f'mean RMSE of {CAR_STREAMS} streams', *columns], rows)}")


if __name__ == "__main__":
    main()
