"""All panels by name: the one line to add for a new one."""

from __future__ import annotations

from importlib import import_module

from tlstd.errors import InvalidParameterError
from tlstd.experiments.panel import Panel

PANELS: dict[str, str] = {
    "1a": "tlstd.experiments.panels.figure_1:RankTiles",
    "1b": "tlstd.experiments.panels.figure_1:RankRBF",
    "2a": "tlstd.experiments.panels.figure_2:CarRBFSamples",
    "2b": "tlstd.experiments.panels.figure_2:CarRBFTime",
    "3a": "tlstd.experiments.panels.figure_3a:Ranks",
    "3b": "tlstd.experiments.panels.figure_3b:Methods",
    "3c": "tlstd.experiments.panels.figure_3c:Times",
    "A.1": "tlstd.experiments.panels.figure_a:CarTiles",
    "A.2": "tlstd.experiments.panels.figure_a:CarRBF",
    "A.3": "tlstd.experiments.panels.figure_a:CarTilings",
    "A.4": "tlstd.experiments.panels.figure_a:CarWidths",
    "A.5": "tlstd.experiments.panels.figure_a:PendulumTiles",
    "A.6": "tlstd.experiments.panels.figure_a:PendulumRBF",
    "A.7": "tlstd.experiments.panels.figure_a:PendulumTilings",
    "A.8": "tlstd.experiments.panels.figure_a:PendulumWidths",
    "B.1": "tlstd.experiments.panels.figure_b:CarTiles",
    "B.2": "tlstd.experiments.panels.figure_b:PendulumTiles",
    "B.3": "tlstd.experiments.panels.figure_b:CarRBF",
    "B.4": "tlstd.experiments.panels.figure_b:PendulumRBF",
    "B.5": "tlstd.experiments.panels.figure_b:RankTilesAgain",
    "B.6": "tlstd.experiments.panels.figure_b:RankRBFAgain",
    "B.7": "tlstd.experiments.panels.figure_b7:RunTimes",
    "theorem-bound": "tlstd.experiments.panels.theorem:Bound",
    "theorem-trade-off": "tlstd.experiments.panels.theorem:TradeOff",
    "open-tiles": "tlstd.experiments.panels.open_settings:OpenTiles",
    "open-rbf": "tlstd.experiments.panels.open_settings:OpenRBF",
    "reorientation": "tlstd.experiments.panels.reorientation:Reorientation",
    "printed": "tlstd.experiments.panels.printed:Printed",
    "subspace-car-tiles": "tlstd.experiments.panels.subspace:CarTiles",
    "subspace-car-rbf": "tlstd.experiments.panels.subspace:CarRBF",
    "subspace-pendulum-tiles": "tlstd.experiments.panels.subspace:PendulumTiles",
    "subspace-pendulum-rbf": "tlstd.experiments.panels.subspace:PendulumRBF",
    "subspace-energy": "tlstd.experiments.panels.subspace:Energy",
    "buffer": "tlstd.experiments.panels.buffer:Buffer",
    "bias": "tlstd.experiments.panels.switching:Bias",
    "switch": "tlstd.experiments.panels.switching:Switch",
    "tracking-rewards": "tlstd.experiments.panels.tracking:Rewards",
    "tracking-dynamics": "tlstd.experiments.panels.tracking:Dynamics",
    "cutoff-tiles": "tlstd.experiments.panels.cutoff:CutoffTiles",
    "cutoff-rbf": "tlstd.experiments.panels.cutoff:CutoffRBF",
    "smoothness-car": "tlstd.experiments.panels.smoothness:SmoothnessCar",
    "smoothness-energy": "tlstd.experiments.panels.smoothness:SmoothnessEnergy",
}
"""Where each panel stands, in the paper's order, then what goes beyond it."""


def panel(name: str) -> Panel:
    """The panel of this name.

    Example
    -------
    >>> panel("1b").title
    'RMSE against rank, Mountain Car, RBFs'
    """
    if name not in PANELS:
        raise InvalidParameterError(f"there is no figure {name!r}: choose from {', '.join(PANELS)}")
    module, _, cls = PANELS[name].partition(":")
    made: Panel = getattr(import_module(module), cls)()
    return made


def names(wanted: list[str]) -> list[str]:
    """The panels meant: all if none are named; "A" or "3" stands for all whose names begin so and go on otherwise.

    Example
    -------
    >>> names(["1"])
    ['1a', '1b']
    """
    chosen: list[str] = []
    for word in wanted or list(PANELS):
        matches = [word] if word in PANELS else [name for name in PANELS if name.startswith(word)]
        if not matches:
            raise InvalidParameterError(f"there is no figure {word!r}: `tlstd reproduce --list` names them all")
        chosen += [name for name in matches if name not in chosen]
    return chosen
