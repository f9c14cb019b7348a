"""Figures without a window or global state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tlstd.core.extras import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float, *, dpi: float | None = None) -> Figure:
    """Return an empty figure of this size in inches; matplotlib is loaded here."""
    with needs("matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write the figure to a PNG file that says who made it, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": "tlstd"})
