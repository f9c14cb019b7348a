"""Drawing states of domains as arrays of pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlstd.core.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def canvas(width: int, height: int, **subplots: Any) -> tuple[Figure, Any]:
    """Return an empty figure of ``width`` × ``height`` pixels, and its axes as by ``Figure.subplots(**subplots)``."""
    figure = new_figure(width / 100, height / 100, dpi=100)
    axes: Axes = figure.subplots(**subplots)
    return figure, axes


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """Return the figure as an image (height, width, 3)."""
    agg: Any = figure.canvas
    agg.draw()
    return np.array(agg.buffer_rgba(), dtype=np.uint8)[:, :, :3].copy()
