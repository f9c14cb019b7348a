"""The tasks by name: the one line to add for a new one.

A task is a function ``(settings, seed) -> columns``: ``settings`` a dict of its own, ``seed`` an int, ``columns`` 1-D
arrays of equal length by name. The same settings and seed must give the same columns (times excepted), in any process.
A task is imported only where it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from tlstd.errors import InvalidParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TaskFunction = Callable[[dict[str, Any], int], "Mapping[str, ArrayLike]"]


class Task(NamedTuple):
    """Where a task's function stands, as ``"module:function"``, and the version of what it computes."""

    where: str
    version: int = 1


TASKS: dict[str, Task] = {
    "budget": Task("tlstd.experiments.tasks.budget:anew"),
    "curve": Task("tlstd.experiments.tasks.learn:curve"),
    "explore": Task("tlstd.experiments.tasks.explore:explore"),
    "explore-truth": Task("tlstd.experiments.tasks.explore:truth"),
    "cut-once": Task("tlstd.experiments.tasks.learn:cut_once"),
    "printed": Task("tlstd.experiments.tasks.printed:curve"),
    "rates": Task("tlstd.experiments.tasks.rates:rates"),
    "runtime": Task("tlstd.experiments.tasks.rates:runtime"),
    "spectrum": Task("tlstd.experiments.tasks.spectrum:singular_values"),
    "reorientation": Task("tlstd.experiments.tasks.reorientation:distance"),
    "theorem": Task("tlstd.experiments.tasks.theorem:cases"),
    "trade-off": Task("tlstd.experiments.tasks.theorem:trade_off"),
    "vanishing": Task("tlstd.experiments.tasks.theorem:vanishing"),
    "tracking": Task("tlstd.experiments.tasks.tracking:tracking"),
    "cutoff": Task("tlstd.experiments.tasks.cutoff:cutoffs"),
    "smoothness": Task("tlstd.experiments.tasks.smoothness:smoothness"),
}
"""Raise a task's version when it is to give other numbers: what is stored of the older version is then left alone."""


def version(name: str) -> int:
    """Return the present version of a task; 1 for a function named by its place.

    Example
    -------
    >>> version("package.module:function")
    1
    """
    return _task(name).version


def load(name: str, version: int) -> TaskFunction:
    """Import a task's function.

    Example
    -------
    >>> load("collections:Counter", version=1)
    <class 'collections.Counter'>
    """
    task = _task(name)
    if task.version != version:
        raise InvalidParameterError(
            f"the run is of version {version} of {name!r}, which is at version {task.version}: make the specs anew, "
            "or run them with the code that made them"
        )
    module, _, function = task.where.partition(":")
    try:
        found: TaskFunction = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InvalidParameterError(f"the task {name!r} cannot be imported ({error}): correct its place") from error
    return found


def _task(name: str) -> Task:
    """The task of this name or at this place."""
    if name in TASKS:
        return TASKS[name]
    module, _, function = name.partition(":")
    if module and function:
        return Task(name)
    known = ", ".join(sorted(TASKS)) or "none"
    raise InvalidParameterError(f"there is no task {name!r}: name one of these ({known}), or a place 'module:function'")
