"""Rows of weighted returns in the table of ``evaluate``: importance sampling."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from tlstd.data.held_out import Reference
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.importance import effective_episodes, per_decision, starts_of
from tlstd.evaluation.task import EvaluationTask
from tlstd.features.constant import Constant


def add_weighted_returns(run: EvaluationTask, fitted: Fitted) -> None:
    """Importance sampling by decision, plain and weighted: only of the start states."""
    log = run.log
    by_ratios = tuple(filter(run.wants, ("per-decision IS", "weighted IS")))
    if "start states" not in run.starts or not (log.has_ends or log.n_episodes > 1) or not by_ratios:
        return
    run.report("returns", 0.95)
    began = perf_counter()
    steps = log.transitions(Constant() if run.large else fitted.values.features, run.gamma, rhos=fitted.rhos)
    starts = starts_of(steps, log.start_rows)
    if not starts.size:
        return
    worth = f"{starts.size:,} episodes, by their ratios worth {effective_episodes(steps, starts):,.0f}"
    plain, weighted = per_decision(steps, starts, _along(fitted).next_values[:, 0])
    for kind in by_ratios:
        value = plain if kind == "per-decision IS" else weighted
        run.add(kind, began, {"start states": value}, worth)


def _along(fitted: Fitted) -> Reference:
    """The model's values of every step's state and next state, in pieces.

    For a large log they stand for those of models of other episodes: an episode adds little to it.
    """
    pairs = []
    for piece in fitted.pieces():
        values = fitted.values.model.predict(piece.store)
        pairs.append((values[piece.rows], values[piece.next_rows]))
    return Reference(*(np.concatenate(values)[:, None] for values in zip(*pairs, strict=True)))
