"""Importance ratios of the steps of a log: the target's probability of what was done over that of who acted."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation.policies import Target, fitted_probabilities, of_logged_actions
from tlstd.evaluation.task import EvaluationTask
from tlstd.logs.log import Log


def importance_ratios(run: EvaluationTask, target: Target) -> FloatArray | None:
    """(N,), or None where there are no probabilities of the behaviour, logged or estimated."""
    log = run.log
    if run.continuous or log.actions is None:
        if run.probabilities == "estimate":
            raise InvalidInputError("probabilities of continuous actions are not estimated: use LSTDQ's value")
        return None
    if log.probabilities is not None:
        behaviour = log.probabilities
    elif run.probabilities == "estimate":
        X = log.transitions(run.feature_map(), run.gamma).store
        taken = log.actions.astype(np.int64)
        behaviour = fitted_probabilities(X[: len(log)], taken, int(taken.max()) + 1)
        run.notes.append(
            "Warning: the log has no probabilities of its actions. They were estimated by softmax regression on "
            "the features; if that is wrong, so are all rows with ratios."
        )
    else:
        run.notes.append("The log has no probabilities of its actions: there are no rows with importance ratios.")
        return None
    return ratios_of(log, target, behaviour)


def ratios_of(log: Log, target: Target, behaviour: FloatArray) -> FloatArray:
    """(N,) from the probabilities (N,) of the logged actions under the logged policy: a log has none of 0."""
    return of_logged_actions(target, log, target.n_actions(log)) / behaviour
