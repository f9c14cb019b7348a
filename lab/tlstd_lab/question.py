"""What a question of the laboratory is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Task(NamedTuple):
    """Where a task's function stands, as ``"module:function"``, and the version of what it computes.

    Raise the version when it is to give other numbers: what is stored of the older one is then left alone.
    """

    where: str
    version: int = 1


@dataclass(frozen=True)
class Question:
    """What a folder of :mod:`tlstd_lab.questions` has to offer: panels and tasks by name.

    A panel is ``"module:Class"`` and a task's place ``"module:function"``, both within the folder; they are imported
    when they are used.
    """

    part: str | None = None
    """Of the paper, that its panels are shown under; None if they go beyond it."""
    panels: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[str, Task] = field(default_factory=dict)
