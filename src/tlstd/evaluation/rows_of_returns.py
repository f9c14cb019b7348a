"""Rows of mean returns in the table of ``evaluate``: Monte Carlo, importance sampling, doubly robust."""

from __future__ import annotations

from time import perf_counter

from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.krylov_lstd import KrylovLSTD
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.importance import per_decision, start_returns, starts_of
from tlstd.evaluation.run import Run


def add_returns(run: Run, fitted: Fitted) -> None:
    """Monte Carlo, or with ratios importance sampling and doubly robust: only of the start states."""
    log, rhos, values = run.log, fitted.rhos, fitted.values
    if "start states" not in run.starts or run.large or not (log.has_ends or log.n_episodes > 1):
        return
    run.report("returns", 0.95)
    steps = log.transitions(values.features, run.gamma, rhos=rhos)
    starts = starts_of(steps, log.start_rows)
    if not starts.size:
        return

    def make() -> LinearEstimator:
        return KrylovLSTD(values.features.n_features, lambda_=fitted.lambda_, dimension=fitted.dimension)

    name = "Monte Carlo" if rhos is None else "doubly robust"
    if run.wants(name):
        began = perf_counter()
        mean, _, how = start_returns(steps, starts, make)
        run.add(name, began, {"start states": mean}, how)
    if rhos is not None and (run.wants("per-decision IS") or run.wants("weighted IS")):
        began = perf_counter()
        plain, weighted = per_decision(steps, starts, values.model.predict(steps.X_next))
        for kind, value in (("per-decision IS", plain), ("weighted IS", weighted)):
            if run.wants(kind):
                run.add(kind, began, {"start states": value}, f"{starts.size:,} episodes")
