"""Rows that only stand beside the answer: LSTD, t-LSTD and TD on the same features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.classic.td import TD
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation.choose import choose
from tlstd.evaluation.ladder import Case, Row
from tlstd.evaluation.rungs import LEAST_SQUARES, WITH_RATIOS
from tlstd.evaluation.value_function import ValueFunction
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.truncated.tlstd import TLSTD

RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
STEP_SIZES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Of TD, divided by the mean ‖x‖²."""
RANKS = (10, 20, 40, 80)
"""Of t-LSTD, that are compared."""
RANK_STEPS, RANK_WORK = 2_000, 400_000
"""Steps on which they are, about, and steps times features seen up to which they are compared on more."""
MOST_FOR_LSTD = 1_000
"""Features seen up to which LSTD is in the table."""
MOST_STEPS = 100_000
"""Steps on which parameters are chosen: of a longer log the first ones."""


def add_compared(case: Case) -> None:
    """Add the rows that the question asks for."""
    fit = case.states
    if fit is None or case.sample is not None:
        case.notes.append("LSTD, t-LSTD and TD are compared for values of states, in one process.")
        return
    n, lambda_ = fit.features.n_features, fit.lambda_
    log = case.log
    steps = log.transitions(fit.features, case.gamma, rhos=case.ratios)
    some = steps[: min(len(steps), MOST_STEPS)]
    seen = fit.system.ids.size
    chosen = fit.selection.whole

    def best(make: Callable[[Any], LinearEstimator], values: Sequence[Any], otherwise: Any, part: Any = some) -> Any:
        def reference() -> LinearEstimator:
            return KrylovLSTD(n, lambda_=lambda_, dimension=chosen.dimension)

        return choose(make, values, part, otherwise=otherwise, reference=reference).value

    def add(name: str, share: float, make: Callable[[Any], LinearEstimator], value: Any, note: str) -> None:
        case.report(name, share)
        began, model = perf_counter(), make(value)
        values = ValueFunction(model, fit.features, case.gamma)
        model.update_many(steps)
        means = {own.name: float(np.mean(values.predict(own.observations))) for own in case.sets}
        rung = LEAST_SQUARES if case.ratios is None else WITH_RATIOS
        full = name + " with ratios" * (case.ratios is not None)
        case.add(Row(full, rung, means, perf_counter() - began, f"λ={lambda_:g}, {note}"))

    if case.question.wants("LSTD"):
        if seen > MOST_FOR_LSTD:
            case.notes.append(f"LSTD was left out: {seen:,} features were seen, more than {MOST_FOR_LSTD:,}.")
        else:
            ridge = best(lambda r: LSTD(n, lambda_=lambda_, ridge=r), RIDGES, 1e-4)
            add("LSTD", 0.86, lambda r: LSTD(n, lambda_=lambda_, ridge=r), ridge, f"ridge {ridge:g}")
    if case.question.wants("t-LSTD"):
        ranks = sorted({min(rank, seen) for rank in RANKS})
        few = steps[: min(len(steps), max(RANK_STEPS, RANK_WORK // seen))]
        rank = best(lambda r: TLSTD(n, r, lambda_=lambda_), ranks, ranks[-1], few)
        add("t-LSTD", 0.9, lambda r: TLSTD(n, r, lambda_=lambda_), rank, f"rank {rank}")
    if case.question.wants("TD"):
        sizes = [size / fit.system.square for size in STEP_SIZES]
        size = best(lambda a: TD(n, step_size=a, lambda_=lambda_), sizes, sizes[1])
        add("TD", 0.95, lambda a: TD(n, step_size=a, lambda_=lambda_), size, f"step size {size:.2g}")
