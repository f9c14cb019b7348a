"""The tasks by name.

A task is a function ``(settings, seed) -> columns``: ``settings`` a dict of its own, ``seed`` an int, ``columns`` 1-D
arrays of equal length by name. The same settings and seed must give the same columns (times excepted), in any process.
A task is imported only where it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tlstd.errors import InvalidParameterError
from tlstd_lab.question import Task
from tlstd_lab.questions import QUESTIONS, question

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TaskFunction = Callable[[dict[str, Any], int], "Mapping[str, ArrayLike]"]


SHARED = {"curve": Task("tlstd_lab.learning:curve"), "cut-once": Task("tlstd_lab.learning:cut_once")}
"""Tasks of several questions."""

TASKS: dict[str, Task] = SHARED | {
    name: task._replace(where=f"tlstd_lab.questions.{folder}.{task.where}")
    for folder in QUESTIONS
    for name, task in question(folder).tasks.items()
}


def version(name: str) -> int:
    """Return the present version of a task; 1 for a function named by its place.

    Example
    -------
    >>> version("package.module:function")
    1
    """
    return _find(name).version


def load(name: str, version: int) -> TaskFunction:
    """Import a task's function.

    Example
    -------
    >>> load("collections:Counter", version=1)
    <class 'collections.Counter'>
    """
    task = _find(name)
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


def _find(name: str) -> Task:
    """The task of this name or at this place."""
    if name in TASKS:
        return TASKS[name]
    module, _, function = name.partition(":")
    if module and function:
        return Task(name)
    known = ", ".join(sorted(TASKS)) or "none"
    raise InvalidParameterError(f"there is no task {name!r}: name one of these ({known}), or a place 'module:function'")
