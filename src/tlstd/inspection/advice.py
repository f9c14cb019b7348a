"""What a spectrum says about a rank."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.svd import inverse_factors

TOLERATED = 2.0
"""How far above the cut-off the smallest kept singular value may lie before a larger rank is worth a try."""
SLACK = 1.1
"""Rank that is kept per singular value inverted when a smaller one is advised: truncation needs a little room."""
WORTHWHILE = 0.8
"""A smaller rank is advised if it is at most this part of the present one."""
SAMPLES_PER_RANK = 10
"""Samples per singular value before which a spectrum that is still filling up says nothing."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about the rank.

    ``verdict`` is "lower", "keep" or "undecided"; ``rank`` the one to use, None if undecided. No spectrum says "raise":
    whether more directions help or fit noise is decided by data (:func:`tlstd.evaluation.choose`).
    """

    verdict: str
    rank: int | None
    reason: str


def advise(
    singular_values: FloatArray, *, rank: int, rcond: float, n_seen: int, n_updates: int, subspace: bool = False
) -> Advice:
    """Say what the spectrum says about the rank; ``docs/state.md`` has the rule with what it was measured on.

    The solution inverts the singular values above ``rcond`` times the largest. If many are at or below that, a smaller
    rank gives the same solution. If the smallest one that the rank keeps is far above it, the rank leaves out some that
    LSTD would use; whether these carry values or noise the spectrum cannot tell, so nothing is advised. The *weight* of
    the singular values takes no part: those with little of it matter (the measurements say how much).

    Example
    -------
    >>> falling = 0.5 ** np.arange(40.0)
    >>> advise(falling, rank=40, rcond=1e-3, n_seen=1000, n_updates=9000).rank
    11
    >>> advise(falling[:5], rank=5, rcond=1e-3, n_seen=1000, n_updates=9000).verdict
    'undecided'
    >>> advise(falling[:10], rank=10, rcond=1e-3, n_seen=1000, n_updates=9000).verdict
    'keep'
    """
    if rank == 0:
        return Advice("undecided", None, "With rank 0 there are no factors: this is TD.")
    if singular_values.size == 0 or not singular_values[0] > 0.0:
        return Advice("undecided", None, "Nothing has been learned yet.")
    kept = int(singular_values.size)
    if kept < rank and n_updates < SAMPLES_PER_RANK * rank:
        return Advice(
            "undecided",
            None,
            f"{n_updates} samples have filled {kept} of {rank} singular values: look again after "
            f"{SAMPLES_PER_RANK * rank}.",
        )
    used = kept if subspace else int(np.count_nonzero(inverse_factors(singular_values, rcond=rcond)))
    enough = math.ceil(SLACK * used)
    if used < rank and enough <= WORTHWHILE * rank:
        return Advice(
            "lower",
            enough,
            f"{used} of {rank} singular values are used, the others are at or below the cut-off (rcond = {rcond:g} "
            f"times the largest): rank {enough} gives nearly the same values in less memory and time.",
        )
    if subspace:
        return Advice(
            "undecided",
            None,
            "These are the singular values of subspace_lambda, and the cut-off is for the equations of lambda_: "
            "compare ranks by their predictions.",
        )
    if used == rank and rank < n_seen:
        ratio = float(singular_values[-1] / singular_values[0])
        if ratio > TOLERATED * rcond:
            return Advice(
                "undecided",
                None,
                f"The smallest singular value kept is {ratio:.1e} of the largest, above the cut-off (rcond = "
                f"{rcond:g}): the rank leaves out others that LSTD would use. The spectrum cannot tell whether they "
                f"help or fit noise: compare ranks such as {max(1, rank // 2)}, {rank} and {min(2 * rank, n_seen)} by "
                "tlstd.evaluation.choose.",
            )
        return Advice("keep", rank, "The singular values reach the cut-off where the rank ends.")
    if used == rank:
        return Advice("keep", rank, "The rank covers every feature seen: nothing is cut off.")
    return Advice("keep", rank, f"{used} of {rank} singular values are used and nothing above the cut-off is left out.")
