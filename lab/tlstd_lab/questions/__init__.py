"""All questions: the one line to add for a new one, whose folder has its settings, tasks, panels and claims."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tlstd.errors import InvalidParameterError
from tlstd_lab.question import Question

if TYPE_CHECKING:
    from tlstd_lab.panel import Panel

QUESTIONS: tuple[str, ...] = (
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_a",
    "figure_b",
    "theorem",
    "open_settings",
    "reorientation",
    "printed",
    "subspace",
    "buffer",
    "switching",
    "tracking",
    "cutoff",
    "smoothness",
    "directions",
    "contest",
    "smooth",
    "comparison",
    "dimension",
    "chosen",
    "instances",
    "planning",
    "selection",
    "sketches",
    "memory",
    "coverage",
    "divergence",
    "swift",
    "control",
    "explorer",
)
"""The folders in the paper's order, then what goes beyond it."""


def question(folder: str) -> Question:
    """What the folder of this name offers."""
    found: Question = import_module(f"tlstd_lab.questions.{folder}").QUESTION
    return found


PANELS: dict[str, str] = {
    name: f"tlstd_lab.questions.{folder}.{where}"
    for folder in QUESTIONS
    for name, where in question(folder).panels.items()
}
"""Where each panel stands."""

PARTS: dict[str, str] = {
    name: part for folder in QUESTIONS if (part := question(folder).part) for name in question(folder).panels
}
"""The part of the paper that has this panel, if it is not one beyond it."""


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
