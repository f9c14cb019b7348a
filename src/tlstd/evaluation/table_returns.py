"""Rows of weighted returns in the table of ``evaluate``: importance sampling and doubly robust."""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

from tlstd.data.held_out import Folds, Reference
from tlstd.data.transitions import Transitions
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.importance import effective_episodes, fold_values, per_decision, start_returns, starts_of
from tlstd.evaluation.task import EvaluationTask
from tlstd.features.constant import Constant
from tlstd.krylov.krylov_lstd import KrylovLSTD


def add_weighted_returns(run: EvaluationTask, fitted: Fitted) -> None:
    """With ratios importance sampling and doubly robust: only of the start states."""
    log, rhos = run.log, fitted.rhos
    name = "doubly robust"
    by_ratios = tuple(filter(run.wants, ("per-decision IS", "weighted IS")))
    if "start states" not in run.starts or not (log.has_ends or log.n_episodes > 1):
        return
    if not (run.wants(name) or by_ratios):
        return
    run.report("returns", 0.95)
    steps = log.transitions(Constant() if run.large else fitted.values.features, run.gamma, rhos=rhos)
    starts = starts_of(steps, log.start_rows)
    if not starts.size:
        return
    along = cache(lambda: _along(fitted))
    worth = f", by their ratios worth {effective_episodes(steps, starts):,.0f}"
    began = perf_counter()
    if run.wants(name):
        reference = (lambda folds: along()) if run.large else (lambda folds: _of_others(fitted, steps, folds))
        mean, _, how = start_returns(steps, starts, reference)
        run.add(name, began, {"start states": mean}, how + worth)
    if by_ratios:
        began = perf_counter()
        plain, weighted = per_decision(steps, starts, along().next_values[:, 0])
        for kind in by_ratios:
            value = plain if kind == "per-decision IS" else weighted
            run.add(kind, began, {"start states": value}, f"{starts.size:,} episodes{worth}")


def _of_others(fitted: Fitted, steps: Transitions, folds: Folds) -> Reference:
    """Values by models of other episodes."""
    n, lambda_, dimension = fitted.values.features.n_features, fitted.lambda_, fitted.dimension
    return fold_values(steps, folds, lambda: KrylovLSTD(n, lambda_=lambda_, dimension=dimension))


def _along(fitted: Fitted) -> Reference:
    """The model's values of every step's state and next state, in pieces.

    For a large log they stand for those of models of other episodes: an episode adds little to it.
    """
    pairs = []
    for piece in fitted.pieces():
        values = fitted.values.model.predict(piece.store)
        pairs.append((values[piece.rows], values[piece.next_rows]))
    return Reference(*(np.concatenate(values)[:, None] for values in zip(*pairs, strict=True)))
