"""Who takes part, what of each is tuned or chosen, and how many runs it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tlstd_lab.chart import COLOURS, DASHED, DOTTED, SOLID, Dash
from tlstd_lab.panel import Scale

ALPHAS = tuple(2.0**e for e in range(-14, 9))
"""Step sizes, to be divided by the mean of ‖x‖²; so many that the best is never at an end."""
LAMBDAS = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
DECAYS = (10, 100, 1_000, 10_000, 100_000, 0)
"""N₀; 0 stands for a constant step, the far end of it."""
PASSES = (2, 4, 8, 16, 32)
CUTOFFS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
RIDGES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
RANKS = (20, 40, 80, 160)


@dataclass(frozen=True)
class Effort:
    """How many runs a method is given at a scale."""

    runs: int
    timed: int
    streams: int
    """That its parameters are tuned on."""
    tries: int
    """Settings that a sweep may try."""


EFFORTS: dict[Scale, tuple[Effort, ...]] = {
    "smoke": (Effort(1, 1, 1, 2),) * 4,
    "quick": (Effort(4, 1, 2, 40), Effort(4, 1, 2, 20), Effort(2, 1, 1, 8), Effort(1, 1, 1, 4)),
    "paper": (Effort(30, 3, 3, 200), Effort(30, 3, 3, 70), Effort(10, 3, 2, 25), Effort(5, 1, 1, 8)),
}
"""By scale, for methods that are cheap, that go through the samples several times, slow and slowest."""
CHEAP, REPEATED, SLOW, SLOWEST = 0, 1, 2, 3


@dataclass(frozen=True)
class Method:
    """A method: its estimator's settings, with what is tuned on other seeds, or chosen from the samples themselves."""

    label: str
    colour: str
    estimator: Mapping[str, Any]
    axes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Values that :mod:`tuning` looks for the best among, by name."""
    start: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Values of the grid with which it begins."""
    choose: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """One parameter, chosen by held-out data from these values; that takes part of the method's time."""
    effort: int = CHEAP
    dash: Dash = SOLID
    marker: str = ""
    samples: tuple[int, ...] | None = None
    """Numbers of samples that it is given, if not all."""

    def effort_at(self, scale: Scale) -> Effort:
        """Return how many runs it is given."""
        return EFFORTS[scale][self.effort]


def td_axes(**more: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    """What is tuned of TD, and more."""
    return {"alpha": ALPHAS, "lambda_": LAMBDAS, "n0": DECAYS, **more}


TD_START = {"alpha": (2.0**-4, 0.25, 1.0), "lambda_": (0.4, 0.9), "n0": (1_000, 0)}
REPLAY_START = {"alpha": (2.0**-5, 0.125), "lambda_": (0.4, 0.9), "n0": (0,), "passes": (8,)}
FEW = (1_000, 4_000, 10_000)
UP_TO_4000 = (250, 500, 1_000, 2_000, 4_000)
"""Of methods that take milliseconds a sample; the paper gives iLSTD 5,000."""

METHODS: dict[str, Method] = {
    "TD": Method("TD, tuned", COLOURS["TD"], {"class": "TD"}, td_axes(), TD_START, marker="s"),
    "true-online TD": Method(
        "true-online TD, tuned", COLOURS["true-online TD"], {"class": "TrueOnlineTD"}, td_axes(), TD_START, dash=DASHED
    ),
    "replay TD": Method(
        "replay TD, tuned",
        COLOURS["replay TD"],
        {"class": "Replay", "learner": {"class": "TD"}},
        td_axes(passes=PASSES),
        REPLAY_START,
        effort=REPEATED,
        marker="D",
    ),
    "iLSTD": Method(
        "iLSTD, tuned",
        COLOURS["iLSTD"],
        {"class": "ILSTD", "coordinates_per_step": 50, "lambda_": 0.9},
        {"alpha": ALPHAS, "n0": DECAYS},
        {"alpha": (2.0**-4, 0.25), "n0": (100, 1_000)},
        effort=SLOW,
        marker="^",
        samples=UP_TO_4000,
    ),
    "ATD": Method(
        "ATD, r=40, tuned",
        COLOURS["ATD"],
        {"class": "ATD", "rank": 40, "lambda_": 0.9, "step_size": [1.0, 0.0]},
        {"eta": ALPHAS},
        {"eta": (2.0**-4, 0.25)},
        effort=SLOWEST,
        marker="v",
        samples=UP_TO_4000,
    ),
    "t-LSTD, r=40": Method(
        "t-LSTD, r=40",
        COLOURS["t-LSTD"],
        {"class": "TLSTD", "rank": 40, "lambda_": 1.0, "rcond": 0.01},
        marker="o",
    ),
    "t-LSTD, r=200": Method(
        "t-LSTD, r=200",
        COLOURS["t-LSTD"],
        {"class": "TLSTD", "rank": 200, "lambda_": 1.0, "rcond": 0.01},
        effort=SLOW,
        dash=DASHED,
    ),
    "t-LSTD, chosen": Method(
        "t-LSTD, rank chosen",
        COLOURS["t-LSTD"],
        {"class": "TLSTD", "lambda_": 1.0, "rcond": 0.01},
        choose={"rank": RANKS},
        effort=SLOWEST,
        dash=DOTTED,
        samples=FEW[:2],
    ),
    "LSTD, cut-off": Method(
        "LSTD, cut-off chosen",
        COLOURS["LSTD"],
        {"class": "LSTD", "lambda_": 0.9},
        choose={"rcond": CUTOFFS},
        effort=SLOWEST,
        samples=FEW,
    ),
    "LSTD, ridge": Method(
        "LSTD, ridge chosen",
        COLOURS["LSTD"],
        {"class": "LSTD", "lambda_": 0.9},
        choose={"ridge": RIDGES},
        effort=SLOW,
        dash=DASHED,
        samples=FEW,
    ),
    "Krylov LSTD": Method(
        'Krylov LSTD, "auto"', COLOURS["Krylov LSTD"], {"class": "KrylovLSTD", "lambda_": 0.9}, marker="P"
    ),
    "Krylov LSTD, stream": Method(
        "Krylov LSTD, stream",
        COLOURS["Krylov LSTD"],
        {"class": "KrylovLSTD", "lambda_": 0.9, "reads": "stream"},
        dash=DASHED,
    ),
}
"""By name. t-LSTD has the λ and the cut-off that the paper has on energy storage."""

OURS = ("Krylov LSTD", "Krylov LSTD, stream")
NEEDS_THE_MATRIX = ("LSTD, cut-off", "LSTD, ridge")
"""Not on energy storage: A over the features seen there has gigabytes, and a solution takes a minute and more."""


WHOLE = ("passes", "rank", "dimension", "planning_steps", "coordinates_per_step", "after")
"""Parameters that are whole numbers; a dimension of 0 stands for "auto"."""


def filled(template: Mapping[str, Any], point: Mapping[str, float]) -> dict[str, Any]:
    """An estimator's settings with these values of what is tuned.

    ``alpha`` with ``n0`` is a step size, ``rate`` one that is also ``beta``; step sizes, λ and decay of an estimator
    with parts are those of the learner or of the second one.

    Example
    -------
    >>> filled({"class": "TD"}, {"alpha": 0.5, "lambda_": 0.9, "n0": 100})
    {'class': 'TD', 'step_size': [0.5, 100], 'lambda_': 0.9}
    >>> filled({"class": "Replay", "learner": {"class": "TD"}}, {"alpha": 0.5, "lambda_": 0.9, "n0": 0, "passes": 4.0})
    {'class': 'Replay', 'learner': {'class': 'TD', 'step_size': 0.5, 'lambda_': 0.9}, 'passes': 4}
    """
    made, values = dict(template), dict(point)
    whole = {name: int(values.pop(name)) for name in WHOLE if name in values}
    if whole.get("dimension") == 0:
        whole["dimension"] = "auto"  # type: ignore[assignment]
    for part in ("learner", "second"):
        if part in made:
            return made | {part: filled(made[part], values)} | whole
    if "alpha" in values:
        alpha, n0 = values.pop("alpha"), values.pop("n0", 0)
        made["step_size"] = [alpha, n0] if n0 else alpha
    if "rate" in values:
        made["step_size"] = made["beta"] = values.pop("rate")
    return made | values | whole


def scaled(estimator: Mapping[str, Any], square_length: float, n_features: int | None = None) -> dict[str, Any]:
    """The settings with step sizes (and β of methods that have both) divided by ‖x‖², and ranks of at most d.

    Example
    -------
    >>> scaled({"class": "TD", "lambda_": 0.9, "step_size": [1.0, 100]}, 10.0)
    {'class': 'TD', 'lambda_': 0.9, 'step_size': [0.1, 100]}
    """
    made: dict[str, Any] = dict(estimator)
    for part in ("learner", "first", "second"):
        if part in made:
            made[part] = scaled(made[part], square_length, n_features)
    if n_features is not None and "rank" in made:
        made["rank"] = min(made["rank"], n_features)
    if "eta" in made:  # the other step size is that of a Newton step
        return made | {"eta": made["eta"] / square_length}
    step = made.get("step_size")
    if step is None:
        return made
    if "beta" in made:
        made["beta"] /= square_length
    if isinstance(step, (list, tuple)):
        return made | {"step_size": [step[0] / square_length, step[1]]}
    return made | {"step_size": step / square_length}
