"""The row of action values in the table of ``evaluate``: LSTDQ."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import scipy.sparse as sp

from tlstd.data.transitions import Transitions
from tlstd.evaluation.action_values import choose_dimension, constants
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.policies import Target
from tlstd.evaluation.silence import Silence, seen_limits, silence_of
from tlstd.evaluation.task import EvaluationTask
from tlstd.evaluation.value_function import Kind, ValueFunction
from tlstd.krylov.krylov_lstd import KrylovLSTD

FEWEST_VISITS = 20
"""Steps in which a feature of state and action occurs, on average, below which LSTDQ comes with a warning."""
MOST_STEPS = 1_000_000
"""Steps that LSTDQ learns from unless everything is asked for: with two actions and 30 active features each takes about
1,100 bytes, because the rows x′ are means over actions."""


def add_action_values(run: EvaluationTask, target: Target) -> Fitted:
    """Fit action values of the target, and add their row where it is asked for."""
    log, began = run.log, perf_counter()
    assert log.actions is not None
    run.report("action values", 0.1)
    features = run.feature_map(joint=run.continuous)
    kind: Kind
    kind, n_actions = ("joint", log.actions.shape[1]) if run.continuous else ("actions", target.n_actions(log))
    offsets = constants(log, target, run.gamma, n_actions)

    def made(dimension: int) -> ValueFunction:
        model = KrylovLSTD(features.n_features * (1 if run.continuous else n_actions), lambda_=0.0, dimension=dimension)
        return ValueFunction(model, features, run.gamma, kind=kind, n_actions=n_actions, offsets=offsets)

    sample = run.sample
    steps = Fitted(made(1), sample.log, target.select(sample.rows), None, 0.0, 1, run.starts).transitions()
    run.report("action values: choosing the dimension", 0.15)
    choice = choose_dimension(steps)
    run.notes.append(f"LSTDQ: {choice.note}")
    _warn(run, steps)
    run.report("action values: learning", 0.3)
    used = run.sampled(len(log) if run.everything else max(MOST_STEPS, len(sample.log)))
    if used.rows is not None:
        run.notes.append(f"LSTDQ learned from {used.name} (all of them: all=True, --all).")
    values, policy = made(choice.dimension), target.select(used.rows)
    values.update(used.log, policy=policy, report=lambda share: run.report("LSTDQ: learning", 0.3 + 0.05 * share))
    run.report("LSTDQ: solving", 0.35)
    fitted = Fitted(values, used.log, policy, None, 0.0, choice.dimension, used.starts(run.starts))
    if not run.wants("LSTDQ"):
        return fitted
    means = {name: float(np.mean(values.values_of(fitted.encode(starts)))) for name, starts in run.starts.items()}
    run.add("LSTDQ", began, means, f"dimension {choice.dimension}" + " (not chosen)" * (not choice.decided))
    return fitted


def add_silence(run: EvaluationTask, fitted: Fitted) -> Silence | None:
    """Find what the log does not have of the target's actions; None if it has all."""
    run.report("LSTDQ: actions that the log does not have", 0.4)
    run.silence = silence_of(fitted, lambda: run.limits or seen_limits(run.log, run.gamma), run.level)
    if run.silence is not None:
        run.notes.append(f"LSTDQ: {run.silence.note}")
    return run.silence


def _warn(run: EvaluationTask, steps: Transitions) -> None:
    """Say so where a feature occurs in few steps."""
    X = sp.csr_array(steps.X)
    visits = X.nnz / max(1, np.unique(X.indices).size) * len(run.log) / len(run.sample.log)
    if visits < FEWEST_VISITS:
        run.notes.append(
            f"Warning: a feature of state and action occurs in {visits:.0f} steps on average, fewer than "
            f"{FEWEST_VISITS}: LSTDQ's values may be too near to one constant for each action."
        )
