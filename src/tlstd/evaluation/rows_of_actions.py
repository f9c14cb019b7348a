"""The row of action values in the table of ``evaluate``: LSTDQ."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import scipy.sparse as sp

from tlstd.evaluation.action_values import action_transitions, fit_action_values, joint_transitions
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.policies import Target
from tlstd.evaluation.run import Run
from tlstd.evaluation.value_function import ValueFunction
from tlstd.types import Transitions

FEWEST_VISITS = 20
"""Steps in which a feature of state and action occurs, on average, below which LSTDQ comes with a warning."""


def add_action_values(run: Run, target: Target) -> Fitted:
    """Fit action values of the target, and add their row."""
    log, began = run.log, perf_counter()
    assert log.actions is not None
    run.report("action values", 0.1)
    features = run.feature_map(joint=run.continuous)
    if run.continuous:
        n_actions = log.actions.shape[1]
        steps = joint_transitions(log, features, target, run.gamma)
    else:
        n_actions = target.n_actions(log)
        steps = action_transitions(log, features, target, run.gamma, n_actions)
    run.report("action values: choosing the dimension", 0.3)
    model, choice = fit_action_values(steps)
    kind = "joint" if run.continuous else "actions"
    values = ValueFunction(model, features, run.gamma, kind=kind, n_actions=n_actions)
    dimension = model.chosen_dimension
    assert isinstance(dimension, int)
    note = f"dimension {dimension}"
    if choice is not None:
        note += "" if choice.decided else " (not chosen)"
        run.notes.append(f"LSTDQ: {choice.note}")
    _warn(run, steps)
    fitted = Fitted(values, log, target, None, 0.0, dimension, run.starts)
    run.add("LSTDQ", began, {name: fitted.mean(name) for name in run.starts}, note)
    return fitted


def _warn(run: Run, steps: Transitions) -> None:
    """Say so where a feature occurs in few steps."""
    X = sp.csr_array(steps.X)
    visits = X.nnz / max(1, np.unique(X.indices).size)
    if visits < FEWEST_VISITS:
        run.notes.append(
            f"Warning: a feature of state and action occurs in {visits:.0f} steps on average, fewer than "
            f"{FEWEST_VISITS}: LSTDQ's values may be far too near to 0."
        )
