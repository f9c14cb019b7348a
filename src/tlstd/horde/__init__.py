"""Many predictions from one stream, each with its own cumulant, discount and policy (``docs/many_predictions.md``)."""

from tlstd.horde.horde import Group, Horde
from tlstd.horde.questions import Question
from tlstd.horde.steps import Steps

__all__ = ["Group", "Horde", "Question", "Steps"]
