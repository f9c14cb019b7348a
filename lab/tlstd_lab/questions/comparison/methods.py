"""Every estimator: its usual setting, what of it is swept, and where it cannot be run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tlstd_lab.chart import GREY
from tlstd_lab.questions.contest.methods import CHEAP, REPEATED, SLOW, SLOWEST, Method, filled

Axes = dict[str, tuple[float, ...]]

RATES = tuple(float(f"{0.1 * 4.0**e:.3g}") for e in range(-6, 4))
"""Step sizes, to be divided by the mean of ‖x‖²."""
ILSTD_RATES = tuple(float(f"{1e-3 * 4.0**e:.3g}") for e in range(-4, 6))
"""Its A is a sum, so that steps are smaller by the number of samples."""
LAMBDAS = (0.0, 0.5, 0.9, 1.0)
DECAYS = (10, 100, 1_000, 0)
SIZES = (10, 20, 40, 80, 160)
"""Ranks, of at most the number of features, and dimensions."""

RIDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Of LSTD; 0 is its usual cut-off."""

STEP: Axes = {"alpha": RATES, "lambda_": LAMBDAS, "n0": DECAYS}
USUAL_STEP = {"alpha": 0.1, "lambda_": 0.9, "n0": 0}


class Tries(NamedTuple):
    """Settings that a sweep may try at scale quick: the fewer, the longer a try takes."""

    small: int = 64
    tiles: int = 64
    energy: int = 64
    rbf: int = 64

    def of(self, problem: str) -> int:
        """Return their number on a problem.

        Example
        -------
        >>> Tries(1, 2, 3, 4).of("energy-small"), Tries(1, 2, 3, 4).of("car-tiles"), Tries(1, 2, 3, 4).of("walk")
        (3, 2, 1)
        """
        by_kind = {"tiles": self.tiles, "energy": self.energy, "rbf": self.rbf}
        return next((tries for kind, tries in by_kind.items() if kind in problem), self.small)


class Entry(NamedTuple):
    """An estimator: what is fixed of it, axes of its sweep, usual values on them, how expensive it is, and settings."""

    template: Mapping[str, Any]
    axes: Axes
    usual: Mapping[str, float]
    effort: int = CHEAP
    tries: Tries = Tries()


SEVERAL, SOME, FEW = Tries(64, 48, 24, 24), Tries(64, 24, 12, 12), Tries(64, 12, 6, 6)

ENTRIES: dict[str, Entry] = {
    "TD": Entry({"class": "TD"}, STEP, USUAL_STEP),
    "TrueOnlineTD": Entry({"class": "TrueOnlineTD"}, STEP, USUAL_STEP),
    "SwiftTD": Entry(
        {"class": "SwiftTD"},
        {
            "meta_step_size": (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
            "initial_step_size": (1e-4, 1e-3, 1e-2, 1e-1),
            "lambda_": LAMBDAS,
        },
        {"meta_step_size": 1e-3, "initial_step_size": 1e-2, "lambda_": 0.9},
    ),
    "TDC": Entry({"class": "TDC"}, STEP, USUAL_STEP),
    "GTD2": Entry({"class": "GTD2"}, STEP, USUAL_STEP),
    "TDRC": Entry({"class": "TDRC"}, STEP, USUAL_STEP),
    "EmphaticTD": Entry({"class": "EmphaticTD"}, STEP, USUAL_STEP),
    "Replay": Entry(
        {"class": "Replay", "learner": {"class": "TD"}},
        STEP | {"passes": (2, 8, 32, 128)},
        USUAL_STEP | {"passes": 8},
        CHEAP,
        SEVERAL,
    ),
    "LSTDSA": Entry(
        {"class": "LSTDSA"},
        {"alpha": RATES, "n0": DECAYS, "passes": (3, 10, 30, 100)},
        {"alpha": 0.1, "n0": 0, "passes": 10},
        CHEAP,
        SEVERAL,
    ),
    "LinearDyna": Entry(
        {"class": "LinearDyna"},
        {"rate": RATES, "planning_steps": (1, 10, 100)},
        {"rate": 0.1, "planning_steps": 1},
        SLOW,
        Tries(64, 16, 8, 4),
    ),
    "ForgetfulLSTD": Entry(
        {"class": "ForgetfulLSTD"},
        {"rate": RATES, "lambda_": LAMBDAS, "planning_steps": (1, 4)},
        {"rate": 0.1, "lambda_": 0.9, "planning_steps": 1},
        SLOWEST,
        Tries(64, 12, 6, 3),
    ),
    "ILSTD": Entry(
        {"class": "ILSTD", "lambda_": 0.9},
        {"alpha": ILSTD_RATES, "coordinates_per_step": (1, 10, 50), "n0": (10, 100, 1_000)},
        {"alpha": 1e-3, "coordinates_per_step": 1, "n0": 100},
        SLOW,
        Tries(64, 16, 8, 4),
    ),
    "ATD": Entry(
        {"class": "ATD", "rank": 40, "step_size": [1.0, 0.0]},
        {"eta": RATES, "lambda_": LAMBDAS},
        {"eta": 0.1, "lambda_": 0.9},
        SLOWEST,
        Tries(6, 6, 3, 3),
    ),
    "TLSTD": Entry(
        {"class": "TLSTD"},
        {"rank": SIZES, "lambda_": LAMBDAS, "rcond": (1e-4, 1e-2)},
        {"rank": 40, "lambda_": 0.9, "rcond": 1e-4},
        REPEATED,
        FEW,
    ),
    "Handover": Entry(
        {"class": "Handover", "first": {"class": "TLSTD", "rank": 40, "lambda_": 0.9}, "second": {"class": "TD"}},
        STEP | {"after": (250, 500, 1_000)},
        USUAL_STEP | {"after": 500},
        CHEAP,
        SEVERAL,
    ),
    "ProjectedLSTD": Entry(
        {"class": "ProjectedLSTD"},
        {"dimension": SIZES, "lambda_": LAMBDAS, "rcond": (1e-4, 1e-2)},
        {"dimension": 40, "lambda_": 0.9, "rcond": 1e-4},
        REPEATED,
        SEVERAL,
    ),
    "SketchedLSTD": Entry(
        {"class": "SketchedLSTD"},
        {"dimension": SIZES, "lambda_": LAMBDAS, "rcond": (1e-4, 1e-2)},
        {"dimension": 40, "lambda_": 0.9, "rcond": 1e-4},
        REPEATED,
        FEW,
    ),
    "LARSTD": Entry(
        {"class": "LARSTD"},
        {"penalty": (1e-4, 1e-3, 1e-2, 1e-1), "lambda_": LAMBDAS},
        {"penalty": 1e-2, "lambda_": 0.9},
        SLOW,
        Tries(64, 8, 4, 4),
    ),
    "LSTD": Entry(
        {"class": "LSTD"},
        {"ridge": RIDGES, "lambda_": LAMBDAS},
        {"ridge": 0.0, "lambda_": 0.9},
        REPEATED,
        SOME,
    ),
    "KrylovLSTD": Entry(
        {"class": "KrylovLSTD"},
        {"dimension": (0, 5, 10, 20, 40, 80), "lambda_": LAMBDAS},
        {"dimension": 0, "lambda_": 0.9},
        REPEATED,
        SOME,
    ),
    "KrylovLSTD, stream": Entry(
        {"class": "KrylovLSTD", "reads": "stream"}, {"lambda_": LAMBDAS}, {"lambda_": 0.9}, REPEATED, FEW
    ),
}
"""By name. The usual values are the constructor's where it has them. What it asks for has one rule for all problems:
step sizes of 0.1/‖x‖², λ of 0.9, ranks and dimensions of 40, eight passes, iLSTD's step by the rule of its
documentation. A ridge of 0 is LSTD with its usual cut-off, a dimension of 0 is "auto".
"""

UNTUNED = ", usual"
"""What the name of a method ends with that has its usual values."""


def _starts(axes: Axes, usual: Mapping[str, float]) -> dict[str, tuple[float, ...]]:
    """Where a sweep begins: at the usual values, and with rates 4 times as large (iLSTD's 16 times) or some ridge."""
    starts: dict[str, tuple[float, ...]] = {name: (usual[name],) for name in axes}
    for name, values in axes.items():
        if values in (RATES, ILSTD_RATES, RIDGES):
            further = {RATES: 1, ILSTD_RATES: 2, RIDGES: 3}[values]
            starts[name] = (usual[name], values[values.index(usual[name]) + further])
    return starts


def _roster() -> dict[str, Method]:
    found = {}
    for name, (template, axes, usual, effort, _) in ENTRIES.items():
        found[name] = Method(name, GREY, template, axes, _starts(axes, usual), effort=effort)
        found[name + UNTUNED] = Method(name + UNTUNED, GREY, filled(template, usual), effort=effort)
    return found


ROSTER: dict[str, Method] = _roster()
"""Each of them twice: tuned, and as it usually is."""

ENERGY = ("energy", "energy-flat", "energy-day", "energy-calm", "energy-jumps", "energy-small")
OFF_POLICY = ("walk-dependent", "baird")
CANNOT: dict[tuple[str, ...], tuple[tuple[str, ...], str]] = {
    ("LSTD", "LinearDyna", "ForgetfulLSTD"): (
        ENERGY,
        "n² numbers: after 1,000 samples 13,900 features are seen, and a matrix has 1.5 GB",
    ),
    ("TrueOnlineTD", "SwiftTD"): (OFF_POLICY, "takes no importance ratios"),
}
"""Who is not run where, and why."""


def reason(name: str, problem: str) -> str | None:
    """Why an estimator is not run on a problem, or None if it is.

    Example
    -------
    >>> reason("SwiftTD", "baird")
    'takes no importance ratios'
    """
    for names, (problems, why) in CANNOT.items():
        if name.removesuffix(UNTUNED) in names and problem in problems:
            return why
    return None
