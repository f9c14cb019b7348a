"""Results that were made up, to see what panels and claims make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tlstd_lab.panel import Results, Scale
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Run, Store

Columns = Mapping[str, Any]


class Synthetic(Results):
    """Results whose columns are a function of the spec; nothing is run or stored."""

    def __init__(self, scale: Scale, columns: Callable[[RunSpec], Columns]) -> None:
        super().__init__(Store("nowhere"), scale)
        self.columns = columns
        self.asked: list[RunSpec] = []

    def __getitem__(self, spec: RunSpec) -> Run:
        self.asked.append(spec)
        return Run(spec, {name: np.asarray(values) for name, values in self.columns(spec).items()}, 0.0, {})

    def load(self, specs: Any) -> None:
        """Nothing is read."""
