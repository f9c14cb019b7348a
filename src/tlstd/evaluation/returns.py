"""Returns of recorded steps, and how far predictions are from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import safe_unit
from tlstd.data import held_out
from tlstd.data.held_out import BoolArray, Folds
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import Estimator
from tlstd.evaluation.reference import reference_values

FOLDS = 5
"""Folds by which a reference is fitted that has not seen what it completes."""


@dataclass(frozen=True, eq=False, repr=False)
class Returns:
    """Discounted returns of recorded steps, by :func:`tlstd.evaluation.returns`."""

    values: FloatArray
    """(N,), or (N, n_targets): from each step on. Where ``usable`` is false, what is seen of it."""
    usable: BoolArray
    """(N,): whether the return can stand for the value of the state, on average."""
    group: IntArray
    """(N,): the number of the episode (or of the block of a long one), whose returns depend on each other."""
    kind: str
    """"returns", or "bootstrapped": completed by a reference."""
    note: str
    """What they are made of."""

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Returns of {len(self):,} steps: {self.note}>"


@dataclass(frozen=True, eq=False, repr=False)
class Score:
    """How far predictions are from held-out returns, by :func:`score`."""

    rmse: float
    """Root of the mean squared error. Returns are noisy: even true values have one."""
    mse: float
    standard_error: float
    """Of ``mse``, over episodes or blocks."""
    spread: float
    """Standard deviation of the returns: the ``rmse`` of their mean."""
    n_scored: int
    note: str

    def __repr__(self) -> str:
        found = f"rmse {self.rmse:.4g} where returns spread by {self.spread:.4g}"
        return f"<Score: {found}, {self.n_scored:,} steps. {self.note}>"


def returns(transitions: Transitions) -> Returns:
    """The discounted return of each step, G_t = r_{t+1} + γ_{t+1} G_{t+1}, with what is not seen never taken for 0.

    An episode that was cut off, by a time limit or by the end of the data, has returns of which the rest is not known.
    To leave such *episodes* out would favour those that end soon. Here it is done as in :func:`choose`:

    - A return counts if what is not seen of it weighs at most 2%.
    - Where fewer than half of the steps have such a return (three quarters, where episodes terminate) all are
      completed: where the data end, the value there is that of a reference, LSTD (or, beyond 2,000 features seen,
      Krylov LSTD) fitted to other episodes.
    - Off-policy G_t = ρ_t (r_{t+1} + γ_{t+1} G_{t+1}) + (1 - ρ_t) v₀(x_t) with the reference's values v₀.

    Parameters
    ----------
    transitions : Transitions
        Steps in order. Those that a model was fitted to flatter it: keep others for its score.

    Returns
    -------
    Returns
        O(N), and the cost of five fits of the reference where it is needed.

    Example
    -------
    An episode that ended and one that was cut off; of the latter no return is seen well enough at γ = 0.9:

    >>> steps = Transitions.from_episodes(
    ...     [(np.eye(4), [0.0, 0.0, 1.0], True)] * 9 + [(np.eye(4)[:2], [0.0], False)], gamma=0.9)
    >>> seen = returns(steps)
    >>> seen.values[:3].round(2), seen.usable[-2:]
    (array([0.81, 0.9 , 1.  ]), array([ True, False]))
    >>> print(seen.note)
    Returns of 27 of 28 steps in 10 episodes; of the others more than 2% is not seen.
    """
    if not isinstance(transitions, Transitions):
        raise InvalidInputError(f"returns() was given {type(transitions).__name__}: pass Transitions")
    n = len(transitions)
    rewards = transitions.rewards.reshape(n, -1) if n else transitions.rewards.reshape(0, transitions.n_targets)
    discounts, rhos = transitions.discounts, transitions.rhos
    episodes = _episodes(transitions)
    groups, reason, targets = episodes, "", None
    if n and held_out.needs_reference(discounts, rhos, episodes):
        dealt = held_out.make_folds(discounts, transitions.trace_discounts, FOLDS)
        reference = reference_values(transitions, dealt)
        completed = held_out.held_out_targets(rewards, discounts, rhos, dealt, reference=reference)
        if completed.why is None:
            groups, targets = dealt, completed
        elif (rhos != 1.0).any():
            raise InvalidInputError(
                f"the {n:,} steps have importance ratios, but {completed.why}: returns of another policy are completed "
                "by a reference that is fitted to other episodes; pass more of them"
            )
        else:
            reason = f" (and {completed.why}, so that none is completed)"
    if targets is None:
        targets = held_out.held_out_targets(rewards, discounts, rhos, episodes)
    kind = targets.kind
    usable = targets.weights > 0.0
    note = _note(usable, kind, groups, reason)
    values = targets.values[:, 0] if transitions.rewards.ndim == 1 else targets.values
    return Returns(values, usable, groups.group, kind, note)


def score(model: Estimator, transitions: Transitions) -> Score:
    """How far predictions are from the :func:`tlstd.evaluation.returns` of steps that a model has not learned from.

    Parameters
    ----------
    model : Estimator
    transitions : Transitions
        Held out, and encoded as the model's were. Of several targets the errors are averaged.

    Example
    -------
    >>> from tlstd import LSTD, random_walk
    >>> walk, rng = random_walk(9, gamma=0.95), np.random.default_rng(0)
    >>> model = LSTD(9, lambda_=0.5)
    >>> model.update_many(walk.sample(2_000, rng))
    >>> result = score(model, walk.sample(2_000, rng))
    >>> 0.2 < result.rmse < result.spread
    True
    """
    seen = returns(transitions)
    n_scored = int(np.count_nonzero(seen.usable))
    if not n_scored:
        raise InvalidInputError(
            f"none of the {len(transitions):,} steps has a return that is seen to its end: hold out more episodes, or "
            "longer ones"
        )
    values = seen.values.reshape(len(seen), -1)
    predictions = np.asarray(model.predict(transitions.X)).reshape(len(seen), -1)
    unit = safe_unit(values)
    values, predictions = values / unit, predictions / unit
    weights, n_groups, m = seen.usable.astype(np.float64), int(seen.group.max()) + 1, values.shape[1]
    errors = sum(
        (held_out.group_errors(predictions[:, [c]], values[:, c], weights / m, seen.group, n_groups) for c in range(m)),
        np.zeros((n_groups, 1)),
    )
    sizes: FloatArray = np.bincount(seen.group, weights, n_groups).astype(np.float64)
    means, spreads = held_out.scores(errors, sizes)
    spread = unit * float(np.sqrt(values[seen.usable].var(axis=0).mean()))
    rmse, square = unit * float(np.sqrt(means[0])), unit**2
    return Score(rmse, square * float(means[0]), square * float(spreads[0]), spread, n_scored, seen.note)


def _episodes(transitions: Transitions) -> Folds:
    """Whole episodes as groups."""
    cut = transitions.trace_discounts == 0.0
    cut[:1] = True
    group = np.cumsum(cut) - 1
    n_groups = int(cut.sum())
    return Folds(np.zeros(group.size, dtype=np.int64), group, cut, 1, n_groups, 0)


def _note(usable: BoolArray, kind: str, groups: Folds, reason: str) -> str:
    n, count = usable.size, int(np.count_nonzero(usable))
    where = str(groups).rpartition(" in ")[0]
    if kind == "bootstrapped":
        return f"Returns of {n:,} steps in {where}, completed by a reference where they are not seen to their end."
    if count == n:
        return f"Returns of {n:,} steps in {where}."
    return f"Returns of {count:,} of {n:,} steps in {where}; of the others more than 2% is not seen{reason}."
