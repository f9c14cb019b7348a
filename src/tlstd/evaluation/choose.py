"""Choosing a parameter by held-out data: which rank, cut-off, λ or step size predicts best what was not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, Matrix
from tlstd.core.units import safe_unit
from tlstd.data import held_out
from tlstd.data.held_out import Folds, Targets
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError, InvalidParameterError, TlstdError
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation.reference import part, reference_values

T = TypeVar("T")

Each = Callable[[Callable[..., Any], tuple[Any, ...], Sequence[Any]], list[Any]]
"""``each(function, common, values)``: ``function(*common, value)`` of each value."""


def one_by_one(function: Callable[..., Any], common: tuple[Any, ...], values: Sequence[Any]) -> list[Any]:
    """``function(*common, value)`` of each value, in this process."""
    return [function(*common, value) for value in values]


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Generic[T]):
    """What :func:`choose` has chosen, and by which scores. ``print`` shows a table."""

    value: T
    """The candidate with the least score; ``otherwise`` if nothing could be chosen."""
    decided: bool
    """False if the data cannot tell; ``note`` says why."""
    values: tuple[T, ...]
    """All candidates."""
    scores: FloatArray
    """(candidates,): mean squared error for held-out states; infinite for those that failed, NaN if undecided.

    With several targets each one's errors are divided by the variance of its returns, and averaged.
    """
    standard_errors: FloatArray
    """(candidates,): of the scores, over episodes or blocks."""
    simplest: T
    """The first candidate within one standard error of the least (of the difference to it): a more careful choice."""
    folds: Folds
    n_scored: int
    """States that were scored."""
    note: str
    """What the scores are made of, which candidates failed, and what else to know."""

    def plot(self, axes: Any) -> None:
        """Draw scores with standard errors against the candidates on matplotlib's ``axes``."""
        finite = np.isfinite(self.scores)
        places = [value for value, kept in zip(self.values, finite, strict=True) if kept]
        axes.errorbar(places, self.scores[finite], self.standard_errors[finite], marker="o", capsize=2)
        if self.decided:
            axes.axvline(self.value, ls=":", c="grey")
        axes.set_xlabel("candidate")
        axes.set_ylabel("squared error, held out")

    def __repr__(self) -> str:
        decided = "" if self.decided else ", decided=False"
        return f"<Choice {self.value!r} of {len(self.values)}{decided}: {self.note}>"

    def __str__(self) -> str:
        names = [str(value) for value in self.values]
        width = max(9, *map(len, names))
        lines = [f"  {'candidate':>{width}} {'score':>12} {'standard error':>15}"]
        for name, value, score, error in zip(names, self.values, self.scores, self.standard_errors, strict=True):
            mark = "*" if self.decided and value is self.value else " "
            lines.append(f"{mark} {name:>{width}} {score:12.6g} {error:15.3g}")
        return "\n".join([*lines, self.note])


def choose(
    factory: Callable[[T], LinearEstimator],
    values: Iterable[T],
    transitions: Transitions,
    folds: int = 5,
    *,
    otherwise: T | None = None,
    reference: Callable[[], LinearEstimator] | None = None,
    each: Each = one_by_one,
) -> Choice[T]:
    """Choose a parameter of an estimator by its errors on held-out data.

    The stream is dealt into folds of whole episodes (of blocks, where an episode is longer than a fold). For each
    candidate a fresh estimator learns from all folds but one, and its predictions for the states of that fold are
    compared with their discounted returns, G_t = r_{t+1} + γ_{t+1} G_{t+1}. The candidate with the least mean squared
    error wins, the first of those within 10⁻⁶ of it: give the simplest first. Nothing is random.

    - A return counts if what is not seen of it weighs at most 2%. Where fewer than half of the states have such a
      return (three quarters, where episodes terminate) all are *bootstrapped*: where the episode or block ends, the
      value there is that of a reference, fitted to the other folds and the same for every candidate: LSTD, or, beyond
      2,000 features seen, Krylov LSTD with the dimension that it has where nothing is chosen.
    - Off-policy G_t = ρ_t (r_{t+1} + γ_{t+1} G_{t+1}) + (1 - ρ_t) v₀(x_t) with the reference's values v₀.
    - If the states, counted by their ratios and weights, are worth fewer than 100 equal ones, or come from fewer than 4
      episodes or blocks, nothing is chosen: ``value`` is ``otherwise``.
    - If the estimators have a ``beta``, errors count by the weights (1 - β)^(age in samples).

    Returns are noisy, so scores are far above the error of the values, by the same amount for each candidate. They are
    errors *where the stream goes*: about states that it never visits they say nothing.

    Parameters
    ----------
    factory : function from a candidate to a fresh estimator
    values : candidates
        A candidate whose estimator raises an error of this library or whose predictions are not finite has an infinite
        score, and the note says so; if all have, :class:`~tlstd.InvalidParameterError` is raised.
    transitions : Transitions
        What the final estimator will learn from. Data on which it will be judged have no place here.
    folds : int >= 2
        Two choose too simple candidates, because each learns from half of the data.
    otherwise : candidate, optional
        What to use if the data cannot tell; the first candidate if left out.
    reference : function that makes a fresh estimator, optional
        The reference, in place of the one above: e.g. a cheaper one.
    each : function, optional
        Who computes the folds: ``each(function, common, values)`` returns ``function(*common, value)`` of each value.

    Returns
    -------
    Choice
        Cost: each candidate learns ``folds`` - 1 times from all samples, and the held-out states are predicted.

    Example
    -------
    A step size, for a random walk of which only the end is rewarded:

    >>> import numpy as np
    >>> from tlstd import TD, random_walk
    >>> walk = random_walk(19)
    >>> steps = walk.sample(3_000, np.random.default_rng(0))
    >>> choice = choose(lambda a: TD(19, step_size=a, lambda_=0.8), [0.01, 0.03, 0.1, 0.3, 1.0, 30.0], steps)
    >>> print(choice)
      candidate        score  standard error
           0.01     0.968427         0.00721
           0.03      0.92435          0.0199
    *       0.1     0.906631          0.0571
            0.3       1.0325           0.102
            1.0      9.52467            3.14
           30.0          inf             inf
    Returns of 2,912 states, 30 episodes in 5 folds. Failed: 30.0 (not finite).
    >>> model = TD(19, step_size=choice.value, lambda_=0.8)
    >>> model.update_many(steps)
    """
    candidates = tuple(values)
    if not candidates:
        raise InvalidParameterError("there are no values to choose from: pass at least one")
    n_folds = parameters.integer("folds", folds, low=2)
    if not isinstance(transitions, Transitions):
        raise InvalidInputError(f"choose() was given {type(transitions).__name__}: pass Transitions")
    weights = _weights(_beta(factory, candidates), len(transitions))
    discounts, rhos = transitions.discounts, transitions.rhos
    dealt = held_out.make_folds(discounts, transitions.trace_discounts, n_folds, weights)
    rewards = transitions.rewards.reshape(len(transitions), -1)
    values_of = None
    if held_out.needs_reference(discounts, rhos, dealt, weights):
        values_of = reference_values(transitions, dealt, reference)
    targets = held_out.held_out_targets(rewards, discounts, rhos, dealt, weights, reference=values_of)
    n_scored = int(np.count_nonzero(targets.weights))
    if targets.why is not None:
        value = candidates[0] if otherwise is None else otherwise
        unknown = np.full(len(candidates), np.nan)
        note = f"Nothing was chosen: {targets.why}. {value!r} is {'the first' if otherwise is None else 'otherwise'}."
        return Choice(value, False, candidates, unknown, unknown, value, dealt, n_scored, note)

    magnitudes = np.array([safe_unit(column) for column in targets.values.T])
    targets = targets._replace(values=targets.values / magnitudes)
    units = _units(targets)
    errors, failures = _errors(factory, candidates, transitions, dealt, targets, magnitudes, units, each)
    if len(failures) == len(candidates):
        raise InvalidParameterError(
            f"every one of the {len(candidates)} values failed, the first ({candidates[0]!r}) with: {failures[0]}"
        )
    sizes: FloatArray = np.bincount(dealt.group, targets.weights, dealt.n_groups).astype(np.float64)
    scores, standard_errors = held_out.scores(errors, sizes)
    square_of_targets = np.average(targets.values**2, axis=0, weights=targets.weights)
    best = held_out.least(scores, float((square_of_targets / units).sum()))
    simplest = candidates[held_out.within_one_standard_error(errors[sizes > 0.0])]
    note = _note(targets.kind, n_scored, dealt, candidates, failures, best)
    square = magnitudes[0] ** 2 if magnitudes.size == 1 else 1.0
    scores, standard_errors = scores * square, standard_errors * square
    return Choice(candidates[best], True, candidates, scores, standard_errors, simplest, dealt, n_scored, note)


# --- parts ----------------------------------------------------------------------------------------------------------


def _note(
    kind: str, n_scored: int, folds: Folds, candidates: tuple[Any, ...], failures: dict[int, str], best: int
) -> str:
    what = "Returns" if kind == "returns" else "Returns, completed by a reference,"
    parts = [f"{what} of {n_scored:,} states, {folds}."]
    if failures:
        parts.append("Failed: " + "; ".join(f"{candidates[i]!r} ({why})" for i, why in sorted(failures.items())) + ".")
    ordered = all(isinstance(value, (int, float, np.number)) for value in candidates)
    if ordered and len(candidates) > 2 and best in (0, len(candidates) - 1):
        parts.append(f"The best is the {'last' if best else 'first'} candidate: others beyond it may be better.")
    return " ".join(parts)


def _units(targets: Targets) -> FloatArray:
    """What the squared errors of each target are divided by: 1 for a single one, so that scores are errors."""
    m = targets.values.shape[1]
    if m == 1:
        return np.ones(1)
    mean = np.average(targets.values, axis=0, weights=targets.weights)
    spread = np.average((targets.values - mean) ** 2, axis=0, weights=targets.weights)
    units: FloatArray = m * np.where(spread > 0.0, spread, 1.0)
    return units


def _errors(
    factory: Callable[[T], LinearEstimator],
    candidates: tuple[T, ...],
    transitions: Transitions,
    folds: Folds,
    targets: Targets,
    magnitudes: FloatArray,
    units: FloatArray,
    each: Each,
) -> tuple[FloatArray, dict[int, str]]:
    """Squared errors (groups, candidates) for held-out states, and why candidates failed, by their place.

    Targets are in units of ``magnitudes`` (n_targets,), and their squared errors are divided by ``units``.
    """
    numbers = np.unique(folds.fold).tolist()
    of_fold = each(_errors_of_fold, (factory, candidates, transitions, folds, targets, magnitudes, units), numbers)
    errors = np.zeros((folds.n_groups, len(candidates)))
    failures: dict[int, str] = {}
    for own, failed in of_fold:
        errors += own
        failures = failed | failures
    errors[:, list(failures)] = np.inf
    return errors, failures


def _errors_of_fold(
    factory: Callable[[T], LinearEstimator],
    candidates: tuple[T, ...],
    transitions: Transitions,
    folds: Folds,
    targets: Targets,
    magnitudes: FloatArray,
    units: FloatArray,
    fold: int,
) -> tuple[FloatArray, dict[int, str]]:
    """The part of one fold."""
    errors = np.zeros((folds.n_groups, len(candidates)))
    failures: dict[int, str] = {}
    mine = folds.fold == fold
    training, X = part(transitions, ~mine, folds.cut), part(transitions, mine, folds.cut).X
    values, weights, group = targets.values[mine], targets.weights[mine], folds.group[mine]
    for i, candidate in enumerate(candidates):
        predictions = _predictions(factory, candidate, training, X)
        if isinstance(predictions, str):
            failures[i] = predictions
            continue
        for c, unit in enumerate(units):
            column = predictions[:, [c]] / magnitudes[c]
            errors[:, [i]] += held_out.group_errors(column, values[:, c], weights / unit, group, folds.n_groups)
    return errors, failures


def _beta(factory: Callable[[T], LinearEstimator], candidates: tuple[T, ...]) -> float | None:
    """The weight of a new sample that the candidates share."""
    betas = set()
    for candidate in candidates:
        try:
            betas.add(getattr(factory(candidate), "beta", None))
        except TlstdError:  # will be a failure
            continue
    if len(betas) > 1:
        raise InvalidParameterError(
            f"the candidates have different beta ({', '.join(map(str, betas))}): they have to be good at different "
            "times, so compare them by predictions of later data, not by folds"
        )
    return betas.pop() if betas else None


def _weights(beta: float | None, n: int) -> FloatArray | None:
    if beta is None:
        return None
    with np.errstate(under="ignore"):
        weights: FloatArray = np.exp(np.log1p(-beta) * np.arange(n - 1, -1, -1, dtype=np.float64))
    return weights


def _predictions(
    factory: Callable[[T], LinearEstimator], candidate: T, training: Transitions, X: Matrix
) -> FloatArray | str:
    """Values (n, n_targets) of the rows of X after learning, or why there are none."""
    try:
        model = factory(candidate)
    except TlstdError as error:
        return str(error)
    if model.n_updates:
        raise InvalidParameterError(
            f"factory({candidate!r}) returned an estimator that has learned from {model.n_updates} samples: it must "
            "return a new one at each call"
        )
    try:
        with np.errstate(all="ignore"):  # what diverges is said by its score
            model.update_many(training)
            values: FloatArray = model.predict(X).reshape(X.shape[0], -1)
    except (TlstdError, np.linalg.LinAlgError) as error:
        return str(error)
    return values if np.isfinite(values).all() else "not finite"
