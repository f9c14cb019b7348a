"""How far to trust an answer: checks with numbers, thresholds and remedies, and a light over all of them.

Each check is a function from :class:`~tlstd.evaluation.trust.evidence.Evidence` to a
:class:`~tlstd.evaluation.trust.verdict.Check`. ``docs/trust.md`` has all of them with their reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.trust import agreement, calibration, ends, predictions, sensitivity, support, weights
from tlstd.evaluation.trust.evidence import Answer, Evidence, gather
from tlstd.evaluation.trust.neighbours import MOST_QUERIES
from tlstd.evaluation.trust.verdict import Check, Trust

CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    ends.left_out,
    ends.episodes,
    ends.horizon,
    ends.ends,
    support.starts,
    support.actions,
    support.silence,
    weights.ratios,
    weights.effective,
    weights.influence,
    agreement.inside,
    agreement.agreement,
    weights.regularisation,
    predictions.score,
    calibration.calibration,
    predictions.features,
    predictions.stationarity,
    sensitivity.sensitivity,
)


OF_LOG = frozenset({"left_out", "episodes", "horizon", "ends", "influence", "inside", "stationarity"})
"""Checks of the log and of its returns: an answer from returns rests on nothing else, unless what lies behind cuts
matters."""
OF_WEIGHTS = frozenset({"ratios", "effective", "actions"})
"""Checks of what weights returns, where another policy's value rests on it."""
OF_ALL = ("left_out", "regularisation", "inside", "silence")
"""Checks of the log and the answer, whatever the model has learned from."""
COUNTS = ("episodes", "horizon")
"""Checks that look at all that the model has learned from."""
OF_RETURNS = ("influence", "agreement", "effective")
"""Checks that look at all returns, where there are any."""
THINNED = ("starts", "actions")
"""Checks that look for what is like some of the states, ``MOST_QUERIES`` at most."""


def assess(fitted: Fitted, answer: Answer | None = None) -> Trust:
    """All checks of an answer.

    Cost: about 40 fits of Krylov LSTD to the sample, at most ``MOST_STEPS`` steps of the log whatever its length, and
    searches among its states.
    """
    evidence = gather(fitted, answer)
    log, n_steps = evidence.log, evidence.n_steps
    note = "Checked on all steps of the log."
    if len(log) < n_steps:
        part = "the first ones" if log.goes_on else f"{log.n_episodes:,} evenly spaced episodes"
        note = f"Checked on {len(log):,} of {n_steps:,} steps, {part}"
        note += "; counts are those of all." if len(evidence.whole) == n_steps else "."
    with np.errstate(over="ignore", invalid="ignore"):
        return Trust(tuple(_told(check(evidence), evidence) for check in CHECKS), note)


def _told(check: Check, evidence: Evidence) -> Check:
    """A check with what it is about, and what its numbers are of."""
    returned = evidence.by_returns
    own = OF_LOG if evidence.on_policy else OF_LOG | OF_WEIGHTS
    if returned is not None and not returned.rests_on_model and check.name not in own:
        check = replace(check, about="state values")
    return _with_sample(check, evidence)


def _with_sample(check: Check, evidence: Evidence) -> Check:
    """A check whose sentence says how many steps its numbers are of, where it has looked at some of them only."""
    if check.state == "unchecked" or check.name in OF_ALL or not any(letter.isdigit() for letter in check.sentence):
        return check
    if evidence.by_returns is not None and check.name in OF_RETURNS:
        return check
    n = len(evidence.whole if check.name in COUNTS else evidence.log)
    n = min(n, MOST_QUERIES) if check.name in THINNED else n
    if n == evidence.n_steps:
        return check
    return replace(check, sentence=f"By a sample of {n:,} steps: {check.sentence[0].lower()}{check.sentence[1:]}")


__all__ = ["CHECKS", "Answer", "Check", "Trust", "assess"]
