"""The ladder of assumptions: which way of having a value an answer stands on, and what that way assumes.

Which rung a log can carry is decided by ends, actions, probabilities and weights, never by rewards.
"""

from __future__ import annotations

from typing import NamedTuple


class Rung(NamedTuple):
    """A way of having a value."""

    name: str
    assumption: str
    """What it assumes, in one sentence."""


MEAN_OF_RETURNS = Rung(
    "mean of returns", "Every episode was seen to its end, and episodes do not depend on each other."
)
OF_BLOCKS = Rung("mean of returns", "Stretches of the stream that are this long hardly depend on each other.")
RETURNS_WITH_TAILS = Rung(
    "returns with tails",
    "Where episodes were cut off, the model's values are right on average; before that, returns count as they are.",
)
LEAST_SQUARES = Rung("least squares", "The features can represent the values of states.")
WITH_RATIOS = Rung(
    "least squares with ratios",
    "The probabilities of the logged actions are right, and the features can represent the values of states.",
)
ACTION_VALUES = Rung(
    "action values",
    "The features can represent the values of states and actions, and actions that the log does not have are worth "
    "what the range of returns allows.",
)
DOUBLY_ROBUST = Rung(
    "doubly robust", "The probabilities of the logged actions are right; the action values need not be."
)
REFUSAL = Rung("refusal", "Nothing: the log does not have enough of the policy's actions for a value.")
SAMPLING = Rung("importance sampling", "The probabilities of the logged actions are right.")
FITTED = Rung("fitted evaluation", "Boosted trees can represent the values, and have settled.")
