"""Task: figure 3c's, with step sizes in units of 1/‖x‖²."""

from __future__ import annotations

from typing import Any

from tlstd.core.arrays import FloatArray, IntArray
from tlstd_lab.problems import problem
from tlstd_lab.questions.contest.methods import scaled
from tlstd_lab.questions.figure_3 import task as figure_3


def rates(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """As :func:`tlstd_lab.questions.figure_3.task.rates`, with step sizes divided by the mean of ‖x‖²."""
    estimator = scaled(settings["estimator"], problem(settings["problem"]).square_length)
    return figure_3.rates(settings | {"estimator": estimator}, seed)
