"""Checks by the influence of steps and episodes: what the answer rests on, and whether it is the data's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincc

from tlstd.core.arrays import FloatArray
from tlstd.core.units import power_of_two
from tlstd.evaluation.trust.ends import ENOUGH, FEW, counted, pieces
from tlstd.evaluation.trust.evidence import CERTAIN, LIKELY, MEDIUM, PRACTICAL, SMALL, TRIFLE, Evidence, clustered
from tlstd.evaluation.trust.verdict import Check, graded, percent, short

LARGE, DOMINANT = 0.25, 0.5
"""Shares of the variance of the answer that come from one episode."""
RARE = 0.01
"""A chance: of ten blocks one has a quarter of the variance more often than not."""
LISTED = 5
"""Episodes that are listed."""
WRONG, VERY_WRONG = 0.05, 0.1
"""Differences of the mean ratio from 1."""
WHOLE = 1.0
"""Standard deviations of returns: a correction as large as all that tells one return from another."""
MULTIPLE = 0.5
"""Of the larger of two values: from here on one is at least twice the other, or has another sign."""


def effective(evidence: Evidence) -> Check:
    """How many equally important episodes would say as much."""
    influence, returned = evidence.influence, evidence.by_returns
    n, what = pieces(evidence)
    groups, worth = influence.groups.n_groups, influence.effective_groups
    if returned is not None and not evidence.on_policy:
        groups, worth = returned.episodes.size, returned.found.effective
    worth = min(worth, n) if groups > n else worth / max(1, groups) * n  # with γ = 0 every step is a group
    state = graded(worth < ENOUGH, worth < FEW)
    here, ones = counted(n, what), "one" if f"{worth:.0f}" == "1" else "ones"
    verb = "is" if here.startswith("1 ") else "are"
    sentence = f"The {here} {verb} worth {worth:,.0f} equally important {ones}"
    if state != "green":
        sentence += (
            ": few steps are where the policy would be. Log a policy that is closer to it, or more of this one"
            if not evidence.on_policy
            else ": most steps say little about what is asked. Log more"
        )
    ratios = influence.density_ratios
    return Check(
        "effective",
        "Enough that counts",
        state,
        worth,
        f"{what}, counted by what each adds to the variance of the answer",
        f"below {ENOUGH}",
        f"below {FEW}",
        "What is asked may rest on a small part of the log. Counted like that, the thresholds are those of the number "
        "of episodes.",
        f"{sentence}.",
        {
            "effective_steps": influence.effective_steps,
            "steps": ratios.size,
            "density_ratios": {f"{q:g}": v for q, v in _quantiles(ratios).items()},
        },
    )


def _quantiles(values: FloatArray) -> dict[float, float]:
    levels = (0.0, 0.05, 0.5, 0.95, 0.99, 1.0)
    return dict(zip(levels, np.quantile(values, levels).tolist(), strict=True)) if values.size else {}


def influence(evidence: Evidence) -> Check:
    """The share of the answer's variance that comes from one episode, and the answer without it."""
    returned = evidence.by_returns
    if returned is None:
        found = evidence.influence
        whole = not found.groups.n_blocks  # blocks of a stream are no repetitions: states of one may occur in no other
        names, moves = found.names or tuple(range(found.groups.n_groups)), found.contributions
        answer, what, error = found.value, "the answer", found.standard_error
        by_returns = _returns_of_starts(evidence) if whole else None
        if by_returns is not None and _largest_share(by_returns.moves) > _largest_share(moves):
            names, moves = tuple(evidence.log.ids), by_returns.moves
            answer, what = by_returns.mean, "the mean of start returns"
    else:
        names, whole, what = tuple(evidence.whole.ids[e] for e in returned.episodes.tolist()), True, "the answer"
        answer, moves, error = returned.found.value, returned.found.contributions, returned.found.standard_error
    share = _largest_share(moves)
    matters = moves.size > 1 and float(np.abs(moves).max()) > TRIFLE * evidence.size
    notable = matters and (whole or _chance(share, moves.size) < RARE)
    state = graded(share > LARGE and notable, share > DOMINANT and matters and whole)
    order = np.argsort(-np.abs(moves), kind="stable")[:LISTED].tolist()
    relative = moves / power_of_two(moves)
    total = max(float(relative @ relative), 1e-300)
    listed: list[dict[str, Any]] = [
        {"episode": str(names[g]), "moves_the_value_by": float(moves[g]), "share": float(relative[g] ** 2 / total)}
        for g in order
    ]
    data: dict[str, Any] = {"episodes": listed, "blocks": not whole, "standard_error": error}
    word = "episode" if whole else "block"
    first = f"episode {names[order[0]]}" if whole else f"block ({names[order[0]]})"
    sentence = f"The most influential {first} has {percent(share)} of the answer's variance"
    if state != "green":
        data |= {"with": answer, "without": answer - float(moves[order[0]])}
        sentence += f"; without it {what} is {data['without']:.4g} and not {data['with']:.4g}"
        sentence += f". Look at that {word}, and collect more: what happens once cannot be averaged"
    elif share > LARGE and not matters:
        sentence += f", but moves the answer by {abs(moves[order[0]]):.2g} only, less than 0.1% of a usual return"
    return Check(
        "influence",
        "No episode decides alone",
        state,
        share,
        "share of the variance of the answer, or of the mean start return, that comes from one episode",
        f"more than {percent(LARGE)}, of blocks of a stream also more than chance gives",
        f"more than {percent(DOMINANT)}, not of blocks",
        "An average is near to normal, and an interval what it says, if no single term has much of the variance "
        "(Lindeberg's condition). From one half on one episode outweighs all others.",
        f"{sentence}.",
        data,
    )


def _largest_share(moves: FloatArray) -> float:
    squares = (moves / power_of_two(moves)) ** 2
    return float(squares.max(initial=0.0) / max(float(squares.sum()), 1e-300))


def _chance(share: float, n: int) -> float:
    """At most how likely the largest of n squared normal numbers has such a share of their sum, if all are alike.

    Each share is distributed as Beta(1/2, (n - 1)/2).

    >>> [round(_chance(share, 10), 3) for share in (0.3, 0.75)]
    [0.811, 0.006]
    """
    return min(1.0, n * float(betaincc(0.5, (n - 1) / 2.0, min(share, 1.0)))) if n > 1 else 1.0


class _Moves(NamedTuple):
    """A mean, and what each episode moves it by."""

    mean: float
    moves: FloatArray


def _returns_of_starts(evidence: Evidence) -> _Moves | None:
    """The mean return of the start states, episode by episode; None where that is not what is asked."""
    rows, first = evidence.starts.rows, evidence.first_steps
    if not evidence.on_policy or rows is None or rows.size != evidence.log.n_episodes or first.size < 4:
        return None
    moves = np.zeros(evidence.log.n_episodes)
    episode = np.searchsorted(evidence.log.episodes, evidence.steps.rows[first], side="right") - 1
    returns = evidence.returns[first]
    moves[episode] = (returns - returns.mean()) / (first.size - 1)  # the mean with it, less that without it
    return _Moves(float(returns.mean()), moves)


def ratios(evidence: Evidence) -> Check:
    """Whether the importance ratios average to 1, as they must."""
    rhos = evidence.sample.rhos
    name, title = "ratios", "Probabilities are right"
    if rhos is None:
        why = "The answer does not rest on probabilities of the logged actions."
        return Check(name, title, "unchecked", None, "", "", "", "", why, {})
    log = evidence.log
    group = np.repeat(np.arange(log.n_episodes), np.diff(log.episodes))
    mean = clustered(rhos, np.ones(rhos.size), group)
    off, chance = abs(mean.value - 1.0), mean.chance(1.0)
    state = graded(off > WRONG and chance < LIKELY, off > VERY_WRONG and chance < CERTAIN)
    worth = float(rhos.sum() ** 2 / max(float(rhos @ rhos), 1e-300) / max(1, rhos.size))
    sentence = f"The ratios are {mean.value:.3f} on average, where 1 is right"
    if state != "green":
        sentence += (
            ": the logged probabilities are not those of the policy that acted, or the policy asked for does what was "
            "never done. Check the column of probabilities"
        )
    return Check(
        name,
        title,
        state,
        mean.value,
        "mean importance ratio",
        f"off by {WRONG:g}, and by 3 standard errors",
        f"off by {VERY_WRONG:g}, and by 4 standard errors",
        "Over actions of the policy that acted, the mean of π(a|s)/b(a|s) is 1 in every state.",
        f"{sentence}.",
        {"standard_error": mean.error, "effective_share_of_steps": worth, "largest": float(rhos.max(initial=0.0))},
    )


class Correction(NamedTuple):
    """The answer, and the mean of the model's values that it was debiased from."""

    answer: float
    error: float
    model: float
    effect: float
    """Their distance in standard deviations of returns, which count as at least a tenth of the answer."""

    @property
    def moved(self) -> float:
        """Their distance."""
        return abs(self.answer - self.model)

    @property
    def state(self) -> str:
        """How far the model is from being the answer."""
        multiple = self.moved > MULTIPLE * max(abs(self.answer), abs(self.model)) and self.effect > SMALL / 2.0
        likely, certain = self.moved > 2.0 * self.error, self.moved > 4.0 * self.error
        return graded(
            (likely and (self.effect > SMALL or multiple)) or self.effect > MEDIUM,
            (certain and (self.effect > MEDIUM or multiple)) or self.effect > WHOLE,
        )


def _correction(evidence: Evidence) -> Correction:
    interval, model = evidence.answer.interval, evidence.answer.plain
    if interval is None or model is None:
        answer, error = evidence.influence.value, evidence.influence.standard_error
        model = evidence.value_of_sample()
    else:
        answer, error = interval.value, interval.standard_error
    silence = evidence.answer.silence
    if silence is not None:  # the nearest of what the answer may be: the rest is not regularisation
        ends = silence.lower.value, silence.upper.value
        answer = min(max(model, min(ends)), max(ends))
    unit = max(evidence.spread, PRACTICAL * abs(answer))
    return Correction(answer, error, model, abs(answer - model) / unit if unit > 0.0 else 0.0)


def regularisation(evidence: Evidence) -> Check:
    """Whether the answer is what the model says that it came from, or mostly what was added to it."""
    name, title = "regularisation", "Regularisation does not decide"
    found = _correction(evidence)
    if not (np.isfinite(found.error) and np.isfinite(found.answer)):
        return Check(name, title, "unchecked", None, "", "", "", "", "There is one episode only.", {})
    state, which = found.state, evidence.model_s
    if evidence.answer.silence is not None:
        which = "The nearest of the values that the answer may have"
    sentence = (
        f"{which}, {found.answer:.4g} ± {short(2 * found.error)}, was debiased from {found.model:.4g}, the "
        "mean of the values of single states"
    )
    if state != "green":
        sentence += f", by {found.effect:.2g} standard deviations of returns"
        sentence += (
            ": these values, and figures of them, are not what the data say"
            if found.moved > 2.0 * found.error
            else ": that is within its error, and the log does not say which of the two is nearer"
        )
        sentence += ". Do not use values one by one; use fewer features, or more data"
    return Check(
        name,
        title,
        state,
        found.effect,
        "distance of the answer from the mean of regularised values, in standard deviations of returns",
        f"more than {SMALL:g} (or {SMALL / 2:g}, and one twice the other) and than 2 standard errors; or {MEDIUM:g}",
        f"more than {MEDIUM:g} (or {SMALL / 2:g}, and one twice the other) and than 4 standard errors; or {WHOLE:g}",
        "Regularisation makes predictions better and moves averages towards 0. Where it moves them by more than chance "
        "does, the values of single states are not what the data say. Where the correction is as large as all that "
        "tells one return from another, model or correction is wrong, whatever the error.",
        f"{sentence}.",
        {
            "answer": found.answer,
            "standard_error": found.error,
            "model": found.model,
            "settled": evidence.influence.settled,
        },
    )
