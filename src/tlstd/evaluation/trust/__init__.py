"""How far to trust an answer: checks with numbers, thresholds and remedies, and a light over all of them.

Each check is a function from :class:`~tlstd.evaluation.trust.evidence.Evidence` to a
:class:`~tlstd.evaluation.trust.verdict.Check`. ``docs/trust.md`` has all of them with their reasons.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.trust import ends, predictions, sensitivity, support, weights
from tlstd.evaluation.trust.evidence import Evidence, gather
from tlstd.evaluation.trust.verdict import Check, Trust

CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    ends.episodes,
    ends.horizon,
    ends.ends,
    support.starts,
    support.actions,
    weights.ratios,
    weights.effective,
    weights.influence,
    weights.regularisation,
    predictions.score,
    predictions.calibration,
    predictions.features,
    predictions.stationarity,
    sensitivity.sensitivity,
)


def assess(fitted: Fitted) -> Trust:
    """All checks of an answer.

    Cost: about 40 fits of Krylov LSTD to the sample, at most ``MOST_STEPS`` steps of the log whatever its length, and
    searches among its states.
    """
    evidence = gather(fitted)
    log, whole = evidence.log, evidence.whole
    note = "Checked on all steps of the log."
    if len(log) < len(whole):
        note = (
            f"Checked on {len(log):,} of {len(whole):,} steps, {log.n_episodes:,} evenly spaced episodes; counts and "
            "standard errors are those of all."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return Trust(tuple(check(evidence) for check in CHECKS), note)


__all__ = ["CHECKS", "Check", "Trust", "assess"]
