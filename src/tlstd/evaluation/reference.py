"""Values of a fixed reference, by which returns are completed that the data do not show to their end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.data.held_out import BoolArray, Folds, Reference
from tlstd.data.transitions import Transitions
from tlstd.estimators.base import LinearEstimator
from tlstd.krylov.choice import fixed_dimension
from tlstd.krylov.krylov_lstd import KrylovLSTD

MOST_FEATURES = 2_000
"""Features seen up to which the reference is LSTD."""
REFERENCE_LAMBDA = 0.9
"""λ of the reference on-policy; off-policy it is 0, where ratios do not multiply."""


def part(transitions: Transitions, chosen: BoolArray, cut: BoolArray) -> Transitions:
    """The chosen samples, with traces that start empty where they are cut."""
    chosen_part = transitions[:]
    chosen_part.trace_discounts = np.where(cut, 0.0, chosen_part.trace_discounts)
    for name in ("rows", "next_rows", "rewards", "discounts", "trace_discounts", "rhos"):
        setattr(chosen_part, name, getattr(chosen_part, name)[chosen])
    chosen_part.actions = None  # estimators do not look at them
    return chosen_part


def reference_values(
    transitions: Transitions, folds: Folds, make: Callable[[], LinearEstimator] | None = None
) -> Reference:
    """Values by models that have learned from the other folds: those that ``make`` returns, if it is given."""
    shape = len(transitions), transitions.n_targets
    values, next_values = np.zeros(shape), np.zeros(shape)
    last, off_policy = np.append(folds.cut[1:], True), bool((transitions.rhos != 1.0).any())
    for fold in np.unique(folds.fold).tolist():
        mine = folds.fold == fold
        training = part(transitions, ~mine, folds.cut)
        if make is None:
            model = reference_model(training)
        else:
            model = make()
            model.update_many(training)
        if off_policy:
            values[mine] = model.predict(part(transitions, mine, folds.cut).X).reshape(-1, shape[1])
        ends = mine & last
        next_values[ends] = model.predict(part(transitions, ends, folds.cut).X_next).reshape(-1, shape[1])
    return Reference(values, next_values)


def reference_model(training: Transitions) -> LinearEstimator:
    """The fixed estimator whose values complete returns: it has nothing to be tuned."""
    lambda_ = REFERENCE_LAMBDA if (training.rhos == 1.0).all() else 0.0
    n, X = training.n_features, training.X
    seen = n if isinstance(X, np.ndarray) else np.unique(X.indices).size
    model: LinearEstimator
    if seen <= MOST_FEATURES:
        model = LSTD(n, lambda_=lambda_, n_targets=training.n_targets)
    else:
        dimension = fixed_dimension(len(training))
        model = KrylovLSTD(n, lambda_=lambda_, dimension=dimension, n_targets=training.n_targets)
    model.update_many(training)
    return model
