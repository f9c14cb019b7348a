"""How far to trust an answer: checks with numbers, thresholds and remedies, and a light over all of them.

Each check is a function from :class:`~tlstd.evaluation.trust.evidence.Evidence` to a
:class:`~tlstd.evaluation.trust.verdict.Check`. ``docs/trust.md`` has all of them with their reasons.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlstd.evaluation.trust import ends, of_answer, of_features, of_log, of_values, support
from tlstd.evaluation.trust.evidence import Evidence, LeftOut
from tlstd.evaluation.trust.verdict import Check, Trust

CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    of_log.left_out,
    of_log.episodes,
    of_log.horizon,
    ends.ends,
    of_log.stationarity,
    support.starts,
    support.actions,
    of_answer.silence,
    of_answer.ratios,
    of_answer.effective,
    of_answer.influence,
    of_answer.inside,
    of_answer.tails,
    of_answer.agreement,
    of_features.families,
    of_values.residuals,
    of_values.regularisation,
    of_values.score,
    of_values.calibration,
)


def assess(evidence: Evidence) -> Trust:
    """All checks of an answer.

    Cost: a regression of residuals on 100 waves of at most 20,000 steps, and searches for similar states among at most
    20,000 steps.
    """
    log, sample = evidence.log, evidence.sample
    note = "Checked on all steps of the log."
    if len(sample) < len(log):
        part = "the first ones" if sample.goes_on else f"{sample.n_episodes:,} evenly spaced episodes"
        note = f"Checked on all steps of the log; similar states were looked for among {len(sample):,}, {part}."
    with np.errstate(over="ignore", invalid="ignore"):
        return Trust(tuple(check(evidence) for check in CHECKS), note)


__all__ = ["CHECKS", "Check", "Evidence", "LeftOut", "Trust", "assess"]
