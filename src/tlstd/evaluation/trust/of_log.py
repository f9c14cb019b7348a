"""Checks of the log: how much there is, whether γ fits it, and whether it changes with time."""

from __future__ import annotations

import numpy as np

from tlstd.core.units import deviation
from tlstd.evaluation.trust.evidence import MEDIUM, Evidence
from tlstd.evaluation.trust.verdict import CERTAIN, LIKELY, Check, chance, graded, not_applicable, percent
from tlstd.logs.log import Log

FEW, ENOUGH = 10, 40
"""Independent pieces below which a standard error cannot be believed, and from which it can."""
TOO_MUCH = 0.2
"""Share of the log that was left out, from which the rest cannot speak for it.

D. L. Sackett, W. S. Richardson, W. Rosenberg, R. B. Haynes, "Evidence-based medicine", 1997: five and twenty per cent.
"""


def pieces(evidence: Evidence) -> tuple[float, str]:
    """How many independent pieces the log has, and what they are: episodes, or horizons of a stream."""
    log, gamma, starts = evidence.log, evidence.case.gamma, evidence.case.sets[0].rows
    n = float(log.n_episodes)
    of_states = log.n_episodes == 1 or starts is None or starts.size > log.n_episodes
    if of_states and gamma < 1.0 and not log.has_ends and len(log) * (1.0 - gamma) > n:
        return len(log) * (1.0 - gamma), "horizons of 1/(1 - γ) steps"
    return n, "episodes"


def counted(n: float, what: str) -> str:
    """So many pieces, in words.

    >>> counted(1.2, "horizons of 1/(1 - γ) steps"), counted(40.0, "episodes")
    ('1 horizon of 1/(1 - γ) steps', '40 episodes')
    """
    first, *rest = what.split(" ")
    shown = f"{n:,.0f}"
    return " ".join([shown, first.removesuffix("s") if shown == "1" else first, *rest])


def episodes(evidence: Evidence) -> Check:
    """Whether there are enough of them."""
    n, what = pieces(evidence)
    state = graded(n < ENOUGH, n < FEW)
    more = ": an average over so few says little about its own error. Collect more" if state != "green" else ""
    return Check(
        "episodes",
        "Number of episodes",
        state,
        n,
        what,
        f"below {ENOUGH}",
        f"below {FEW}",
        "Standard errors over n independent pieces are themselves wrong by about 1/√(2n): by 24% with 10, and the "
        "usual advice for errors clustered by groups is at least 40 of them (Angrist & Pischke, 2009).",
        f"The log has {counted(n, what)}{more}.",
        {},
    )


def left_out(evidence: Evidence) -> Check:
    """The share of the log that could not be used."""
    found = evidence.left_out
    state = graded(found.share > 0.0, found.share > TOO_MUCH)
    parts = [(found.files, found.of_files, "files"), (found.episodes, found.of_episodes, "episodes")]
    what = " and ".join(f"{n:,} of {of:,} {word}" for n, of, word in parts if n)
    sentence = "Nothing of the log was left out"
    if what:
        sentence = (
            f"Left out: {what}. What could not be read may be unlike the rest: find out what was special about it, and "
            "mend it"
        )
    return Check(
        "left_out",
        "Parts of the log left out",
        state,
        found.share,
        "share of files and episodes that were left out",
        "more than none",
        f"more than {percent(TOO_MUCH)}",
        "What is missing is seldom missing by chance. A share s that differs by a standard deviation of returns moves "
        "the answer by s of them; trials that lose more than a fifth of their patients are not believed (Sackett et "
        "al., 1997).",
        f"{sentence}.",
        found._asdict(),
    )


def horizon(evidence: Evidence) -> Check:
    """How much of the discounted future of start states lies within the log, and of the rewards within the horizon."""
    log, gamma = evidence.log, evidence.case.gamma
    lengths = np.diff(log.episodes).astype(np.float64)
    ended = log.terminated[log.episodes[1:] - 1]
    seen = float(np.where(ended, 1.0, 1.0 - gamma**lengths).mean())
    near = _reward_share(log, gamma)
    unseen, late = seen < 0.5, near < 0.1
    state = graded(unseen or late, seen < 0.1 or near < 0.01)
    if late and near <= seen:
        value, measured = near, "reward within the horizon, over that of the same number of average steps"
        sentence = (
            f"With γ = {gamma:g} the start states hardly see the rewards: what comes within {1 / (1 - gamma):,.0f} "
            f"steps is {percent(near)} of an average stretch of the log. Ask with a larger γ, or for later states"
        )
    else:
        value, measured = seen, "share of the discounted future of start states that the log shows"
        sentence = f"{percent(seen)} of the discounted future of the start states lies within the episodes"
        if unseen:
            steps = "∞" if gamma == 1.0 else f"{1.0 / (1.0 - gamma):,.0f}"
            sentence += (
                f": the rest is guessed, because they are cut off long before 1/(1 - γ) = {steps} steps. "
                "Ask with a smaller γ, or log longer episodes"
            )
    return Check(
        "horizon",
        "Discount and length of episodes",
        state,
        value,
        measured,
        "below 50% seen (10% of the reward)",
        "below 10% seen (1% of the reward)",
        "A value is (what is seen)/(share seen): below one half more is guessed than seen, below a tenth nearly "
        "all is.",
        f"{sentence}.",
        {"seen": seen, "reward_within_horizon": near},
    )


def _reward_share(log: Log, gamma: float) -> float:
    """Mean |reward| weighted by γ^t, over the plain mean; 1 without rewards."""
    t = np.arange(len(log)) - np.repeat(log.episodes[:-1], np.diff(log.episodes))
    size, weights = np.abs(log.rewards), gamma ** t.astype(np.float64)
    plain = float(size.mean())
    return float((weights @ size) / weights.sum() / plain) if plain > 0.0 else 1.0


def stationarity(evidence: Evidence) -> Check:
    """Whether the second half of the log is like the first: returns of episodes, or rewards of a stream."""
    name, title = "stationarity", "Change over time"
    steps = evidence.steps
    if steps.n_groups < 8:
        return not_applicable(name, title, "There are too few episodes to compare one half of the log with the other.")
    starts = steps.starts
    if starts.size >= 8 and not steps.n_blocks:
        what, values, scale = "return of episodes", evidence.to_go[starts], evidence.spread
    else:
        sizes = np.maximum(steps.sums(np.ones(len(steps))), 1.0)
        what, values = "reward", steps.sums(steps.rewards) / sizes
        scale = evidence.spread / max(1.0, evidence.horizon)
    half = values.size // 2
    early, late = values[:half], values[half:]
    change = float(late.mean() - early.mean())
    error = float(np.hypot(deviation(early, 1) / np.sqrt(early.size), deviation(late, 1) / np.sqrt(late.size)))
    p, effect = chance(change, error, values.size - 2.0, evidence.size), abs(change) / scale if scale > 0.0 else 0.0
    if abs(change) <= 1e-9 * float(np.abs(values).max(initial=0.0)):
        p = 1.0
    state = graded(p < LIKELY and effect > 1e-3, p < CERTAIN and effect > MEDIUM)
    sentence = f"Between the halves of the log the {what} changes by {change:.3g} ± {2 * error:.2g}"
    if state == "green":
        sentence += ", which chance explains"
    else:
        sentence += (
            f" ({effect:.2g} standard deviations): it is not one policy in one world, and the answer is a mixture. "
            "Evaluate the part that is like the present"
        )
    return Check(
        name,
        title,
        state,
        effect,
        "change between the halves of the log, in standard deviations",
        "by 3 standard errors: half of the change is then more than the half-width of an interval",
        f"by 4 standard errors, and more than {MEDIUM:g}",
        "A value is defined for a policy and a world that stay the same.",
        f"{sentence}.",
        {"difference": change, "standard_error": error},
    )
