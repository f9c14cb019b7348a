"""Checks of values of states: by held-out returns of the logged policy, and by residuals of the policy asked about."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import deviation, power_of_two
from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.least_squares import LeastSquares, units
from tlstd.evaluation.selection import FEWEST_GROUPS
from tlstd.evaluation.steps import BLOCK
from tlstd.evaluation.trust.evidence import MEDIUM, PRACTICAL, SMALL, Evidence, thinned
from tlstd.evaluation.trust.verdict import CERTAIN, LIKELY, Check, chance, graded, not_applicable, percent, short

PARTS = 10
"""Of the predictions, in the picture of calibration."""
TOO_LITTLE = "There are too few episodes with returns to hold some of them out."
WAVES = 100
"""Random Fourier features of a step by which its residual is predicted."""
MOST_ROWS = 20_000
"""Steps that this is learned from."""
WHOLE, MULTIPLE = 1.0, 0.5
"""Standard deviations of returns; and of the larger of two values: from here on one is at least twice the other."""


def _about(evidence: Evidence) -> str:
    return "answer" if evidence.single else "state values"


def _few(evidence: Evidence) -> bool:
    groups = np.unique(evidence.steps.group[evidence.usable])
    return evidence.steps.folds.size < 2 or groups.size < FEWEST_GROUPS


def score(evidence: Evidence) -> Check:
    """Whether held-out returns are predicted better than by their mean."""
    name, title = "score", "Prediction of single states"
    if not evidence.on_policy:
        return not_applicable(name, title, "There are no returns of the target policy to predict.")
    if _few(evidence):
        return not_applicable(name, title, TOO_LITTLE)
    returns, scale = evidence.returns, evidence.size or 1.0
    constant = _constant(evidence)
    squares = [((returns - values) / scale) ** 2 for values in (constant, evidence.held_out[0])]
    gain, whole = evidence.mean(squares[0] - squares[1]), evidence.mean(squares[0]).value
    skill = gain.value / whole if whole > 0.0 else 0.0
    p = chance(gain.value, gain.standard_error, gain.degrees)
    nothing = whole <= 1e-12
    worse, better = gain.value < 0.0 and p < CERTAIN and skill < -0.05, gain.value > 0.0 and p < 0.05
    state = graded(not (better or nothing), worse and evidence.single)
    sentence = f"Held-out returns are predicted with {percent(abs(skill))} less squared error than by their mean"
    if nothing:
        sentence = "All returns are the same: there is nothing to predict"
    elif worse:
        sentence = (
            f"Held-out returns are predicted with {percent(-skill)} more squared error than by their mean: the model "
            "has learned noise. Use fewer features, or collect more data"
        )
    elif not better:
        sentence = (
            "Held-out returns are not predicted better than by their mean: values of single states say nothing. Use "
            "features that matter, or collect more data"
        )
    return Check(
        name,
        title,
        state,
        skill,
        "share of the squared error of a constant that is saved on held-out returns",
        "not better than the constant (5% level, over episodes)",
        "worse than it, by 4 standard errors and 5%, where the value of given states is asked for",
        "A model that predicts held-out returns worse than their mean cannot be right about states.",
        f"{sentence}.",
        {"standard_error": gain.standard_error / whole if whole > 0.0 else None, "episodes": gain.contributions.size},
        _about(evidence),
    )


def _constant(evidence: Evidence) -> FloatArray:
    """(N,): the mean return in the other folds."""
    fold, used = evidence.steps.fold, evidence.usable
    sizes, sums = np.bincount(fold, used), np.bincount(fold, np.where(used, evidence.returns, 0.0))
    means: FloatArray = (sums.sum() - sums) / np.maximum(sizes.sum() - sizes, 1.0)
    return means[fold]


def calibration(evidence: Evidence) -> Check:
    """Whether returns are what was predicted, on average and along the predictions."""
    name, title = "calibration", "Predictions and returns"
    if not evidence.on_policy:
        return not_applicable(name, title, "There are no returns of the target policy to compare with.")
    if _few(evidence):
        return not_applicable(name, title, TOO_LITTLE)
    found, returns, spread = evidence.held_out[0], evidence.returns, evidence.spread
    error = evidence.mean(returns - found)
    slope = _slope(evidence, found)
    moved = abs(slope.value - 1.0) * deviation(found[evidence.usable]) / spread if spread > 0.0 else 0.0
    p = chance(slope.value - 1.0, slope.standard_error, slope.degrees)
    q = chance(error.value, error.standard_error, error.degrees, evidence.size)
    off = abs(error.value) / spread if spread > 0.0 else 0.0
    amber = (p < LIKELY and not 0.8 < slope.value < 1.25 and moved > SMALL) or (q < LIKELY and off > SMALL)
    red = (p < CERTAIN and not 0.5 < slope.value < 2.0 and moved > SMALL and evidence.single) or (
        q < CERTAIN and off > MEDIUM
    )
    state = graded(amber, red)
    sentence = (
        f"Where 1 more was predicted for held-out states, the return was {slope.value:.2f} ± "
        f"{2 * slope.standard_error:.2f} more; on average it was {error.value:+.3g} over the prediction"
    )
    if state != "green":
        sentence += ". Check end flags and γ, and try other features"
    return Check(
        name,
        title,
        state,
        slope.value,
        "slope of held-out returns over predictions; 1 is right",
        "outside 0.8 to 1.25 and off by 0.2 standard deviations, or so much off on average; by 3 standard errors",
        "off by 0.5 standard deviations on average (for given states also: outside 0.5 to 2); by 4 standard errors",
        "Returns are the values and noise of mean zero: they lie around the predictions with slope 1 and intercept 0, "
        "whatever the noise. The errors are over episodes.",
        f"{sentence}.",
        {
            "slope_error": slope.standard_error,
            "mean_error": error.value,
            "mean_error_error": error.standard_error,
            "parts": _parts(evidence, found),
        },
        _about(evidence),
    )


def _slope(evidence: Evidence, found: FloatArray) -> EpisodeValue:
    """Slope of returns over predictions, with what each group moves it by."""
    scale = evidence.size or 1.0
    returns, found = evidence.returns / scale, found / scale
    centre, level = evidence.mean(found).value, evidence.mean(returns).value
    x = found - centre
    square = evidence.mean(x * x).value
    if not square > 1e-12 * max(1.0, centre * centre):  # the same prediction everywhere
        return EpisodeValue(1.0, np.zeros(0), 1.0)
    slope = evidence.mean(x * (returns - level)).value / square
    residual = evidence.mean((returns - level - slope * x) * x / square)
    return EpisodeValue(slope, residual.contributions, residual.effective)


def _parts(evidence: Evidence, found: FloatArray) -> list[dict[str, float]]:
    """Tenths of the predictions, with the mean of predictions and returns in each."""
    used = np.flatnonzero(evidence.usable)
    order = used[np.argsort(found[used], kind="stable")]
    made = []
    for some in np.array_split(order, PARTS):
        if some.size:
            inside = np.zeros(found.size, dtype=np.bool_)
            inside[some] = True
            mean = evidence.mean(evidence.returns, inside)
            made.append(
                {
                    "predicted": float(found[some].mean()),
                    "realised": mean.value,
                    "standard_error": mean.standard_error,
                    "steps": float(some.size),
                }
            )
    return made


# --- residuals ------------------------------------------------------------------------------------------------------


def residuals(evidence: Evidence) -> Check:
    """Whether held-out Bellman residuals of the policy asked about can be predicted, and what that would move.

    With action values r + γ v(s') - q(s, a) has mean zero in every state for every action, whoever acted. With ratios
    it is ρ (r + γ v(s') - v(s)) that has mean zero, over all actions of a state. What a step's state, action and past
    say about it is what the features miss: weighted by how often the policy is there, it is an error of the answer.
    """
    name, title = "residuals", "What the features miss"
    about = "answer" if evidence.by_model else "state values"
    model = _model(evidence)
    steps = evidence.steps
    if model is None or steps.folds.size < 2 or len(steps) < 10 * FEWEST_GROUPS or not np.isfinite(evidence.half_width):
        return not_applicable(name, title, "There are too few steps to predict residuals of held-out ones.")
    scale, rhos, factors = power_of_two(model.errors), evidence.fit.system.rhos, model.factors
    errors = model.errors / scale
    if rhos is not None:  # they are in the factors too
        errors, factors = rhos * errors, np.divide(factors, rhos, out=np.zeros(rhos.size), where=rhos > 0.0)
    of_returns = _errors_of_returns(evidence)
    both = _predicted(evidence, np.column_stack([errors, *([] if of_returns is None else of_returns[:1])]))
    predicted = both[:, 0]
    unit, n = units(steps)
    T = max(1, len(steps))
    moved = scale * np.bincount(unit, factors * predicted / T, n)
    own = scale * np.bincount(unit, factors * (errors - predicted) / T, n)
    value, error = float(moved.sum()), EpisodeValue(0.0, own - own.mean(), float(n)).standard_error
    row = evidence.of_model
    half = evidence.half_width if row is None or row.interval is None else row.interval.half_width
    effect = abs(value) / half if half > 0.0 else 0.0
    size, left = float(np.mean(errors**2)), float(np.mean((errors - predicted) ** 2))
    share = 1.0 - left / size if size > 0.0 else 0.0
    gain = evidence.mean(errors**2 - (errors - predicted) ** 2, np.ones(len(steps), dtype=np.bool_))
    p = chance(gain.value, gain.standard_error, gain.degrees) if gain.value > 0.0 else 1.0
    missed, q = (0.0, 1.0) if of_returns is None else _missed(evidence, *of_returns, both[:, 1])
    state = graded(
        (p < LIKELY and (effect > 0.5 or share > 0.2)) or (q < LIKELY and missed > 0.2),
        (p < CERTAIN and (effect > 1.0 or share > 0.5)) or (q < CERTAIN and missed > 0.5),
    )
    sentence = (
        f"State, action and past predict {percent(max(0.0, share))} of the held-out residuals; weighted as the policy "
        f"moves, that is {value:.2g} in the answer, {effect:.2g} half-widths"
    )
    if missed > 0.0:
        sentence += f". Of what can be predicted of held-out returns the features miss {percent(missed)}"
    if state != "green":
        sentence += (
            ": the features miss something. Add what is hidden to the observations (a speed, a mode, earlier "
            "observations), or use finer features"
        )
    return Check(
        name,
        title,
        state,
        effect,
        "what predictable residuals move the answer by, in half-widths of its interval",
        "more than half, or a fifth of the residuals or of what can be predicted of returns, by 3 standard errors of "
        "the prediction's gain",
        "more than one, or half of the residuals or of what can be predicted of returns, by 4 standard errors",
        "If the features tell apart what matters, residuals of held-out steps have mean zero whatever is known of the "
        "step and of what came before it.",
        f"{sentence}.",
        {"moves_the_value_by": value, "standard_error": error, "share": share, "missed_of_returns": missed},
        about,
    )


def _errors_of_returns(evidence: Evidence) -> tuple[FloatArray, FloatArray] | None:
    """Errors (N,) of held-out returns by the model, and by a constant; only of the logged policy, whose are known."""
    if not evidence.on_policy or _few(evidence):
        return None
    scale = evidence.size or 1.0
    return (evidence.returns - evidence.held_out[0]) / scale, (evidence.returns - _constant(evidence)) / scale


def _missed(evidence: Evidence, errors: FloatArray, constant: FloatArray, predicted: FloatArray) -> tuple[float, float]:
    """Of what can be predicted of held-out returns, the share that the features miss, and its chance if it is none.

    Residuals of single steps are mostly noise, and with λ near 1 their errors cancel in the answer: what is missing
    adds up along an episode.
    """
    left = errors - predicted
    gain, known = evidence.mean(errors**2 - left**2), evidence.mean(constant**2 - errors**2)
    if not gain.value > 0.0:
        return 0.0, 1.0
    share = gain.value / (gain.value + max(0.0, known.value))
    return share, chance(gain.value, gain.standard_error, gain.degrees)


def _model(evidence: Evidence) -> LeastSquares | None:
    case = evidence.case
    if evidence.fit is case.actions:
        return next(iter(case.by_action), None)
    return case.by_state


def _predicted(evidence: Evidence, errors: FloatArray) -> FloatArray:
    """Errors (N, k) by ridge regression on random waves of state, action and past, by models of other folds.

    The sums of each fold are taken once; those without a fold are the differences.
    """
    Z, steps, rng = _inputs(evidence), evidence.steps, np.random.default_rng(0)
    W = rng.standard_normal((Z.shape[1], WAVES)) / np.sqrt(max(1.0, Z.shape[1] / 2.0))
    shift = rng.uniform(0.0, 2.0 * np.pi, WAVES)

    def waves(rows: IntArray) -> FloatArray:
        return np.column_stack([np.ones(rows.size), Z[rows], np.cos(Z[rows] @ W + shift)])

    every = thinned(len(errors), MOST_ROWS)
    grams, sides, counts = [], [], []
    for fold in steps.folds:
        mine = every[steps.fold[every] == fold]
        F = waves(mine)
        grams.append(F.T @ F)
        sides.append(F.T @ errors[mine])
        counts.append(mine.size)
    out = np.zeros(errors.shape)
    for fold, gram, side, count in zip(steps.folds, grams, sides, counts, strict=True):
        G = sum(grams, np.zeros(gram.shape)) - gram
        G[np.diag_indices(G.shape[0])] += 1e-2 * np.sqrt(sum(counts) - count) + 1e-9 * np.trace(G)
        beta = np.linalg.solve(G, sum(sides, np.zeros(side.shape)) - side)
        mine = np.flatnonzero(steps.fold == fold)
        for some in np.array_split(mine, max(1, mine.size // BLOCK)):
            out[some] = waves(some) @ beta
    return out


def _inputs(evidence: Evidence) -> FloatArray:
    """(N, columns), standardised: observation, its last change, action (of action values), last reward, time."""
    steps, log = evidence.steps, evidence.log
    rows = steps.kept
    first = np.zeros(len(log), dtype=np.bool_)
    first[log.episodes[:-1]] = True
    before = np.where(first, np.arange(len(log)), np.arange(len(log)) - 1)
    reward = np.where(first, 0.0, log.rewards[before])[rows]
    time = (np.arange(len(log)) - np.repeat(log.episodes[:-1], np.diff(log.episodes)))[rows].astype(np.float64)
    columns: list[Any] = [reward, np.log1p(time)]
    if not log.discrete:
        seen = log.states
        columns += [seen[rows], (seen - seen[before])[rows]]
    if log.actions is not None and evidence.fit.kind != "states":
        if log.actions.ndim == 2:
            columns.append(log.actions[rows])
        else:
            n = int(log.actions.max(initial=0)) + 1
            columns.append(np.eye(min(n, 20))[np.minimum(log.actions[rows].astype(np.int64), min(n, 20) - 1)])
    Z = np.column_stack(columns).astype(np.float64)
    Z /= np.array([power_of_two(column) for column in Z.T])
    spread = Z.std(axis=0)
    kept = spread > 1e-12 * np.abs(Z).max(axis=0, initial=0.0)
    found: FloatArray = np.clip((Z[:, kept] - Z[:, kept].mean(axis=0)) / spread[kept], -6.0, 6.0)
    return found


# --- regularisation -------------------------------------------------------------------------------------------------


def regularisation(evidence: Evidence) -> Check:
    """Whether the answer is what the model says that it came from, or mostly what was added to it."""
    name, title, row = "regularisation", "Regularisation", evidence.of_model
    if row is None or row.plain is None or row.interval is None or not np.isfinite(row.interval.half_width):
        return not_applicable(name, title, "There is no value by least squares with an interval.")
    answer, error, model = row.value, row.interval.standard_error, row.plain
    if evidence.case.silence is not None:  # the nearest of what the answer may be: the rest is not regularisation
        ends = [each.found.value for each in evidence.case.by_action]
        answer = min(max(model, min(ends)), max(ends))
    unit = max(evidence.spread, PRACTICAL * abs(answer))
    moved = abs(answer - model)
    effect = moved / unit if unit > 0.0 else 0.0
    multiple = moved > MULTIPLE * max(abs(answer), abs(model)) and effect > SMALL / 2.0
    state = graded(
        (moved > 2.0 * error and (effect > SMALL or multiple)) or effect > MEDIUM,
        (moved > 4.0 * error and (effect > MEDIUM or multiple)) or effect > WHOLE,
    )
    sentence = (
        f"The value by least squares, {answer:.4g} ± {short(2 * error)}, was debiased from {model:.4g}, the mean of "
        "the values of single states"
    )
    if state != "green":
        sentence += f", by {effect:.2g} standard deviations of returns. Do not use values one by one; use fewer "
        sentence += "features, or more data"
    return Check(
        name,
        title,
        state,
        effect,
        "distance of the value by least squares from the mean of regularised values, in standard deviations of returns",
        f"more than {SMALL:g} (or {SMALL / 2:g}, and one twice the other) and than 2 standard errors; or {MEDIUM:g}",
        f"more than {MEDIUM:g} (or {SMALL / 2:g}, and one twice the other) and than 4 standard errors; or {WHOLE:g}",
        "Regularisation makes predictions better and moves averages towards 0. Where it moves them by more than chance "
        "does, the values of single states are not what the data say.",
        f"{sentence}.",
        {"answer": answer, "standard_error": error, "model": model},
        "answer" if evidence.by_model else "state values",
    )
