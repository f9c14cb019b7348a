"""Colours of the figures on a light and on a dark page, and colour maps for pictures."""

from __future__ import annotations

import base64

import numpy as np

LIGHT, DARK = "#ffffff", "#16191d"
"""The grounds on which figures stand; as in page.css."""

CONTRAST = 3.0
"""What a line needs against its ground to be seen (WCAG 1.4.11)."""


def rgb(colour: str) -> tuple[float, float, float]:
    """Red, green and blue from 0 to 255 of ``#rrggbb``."""
    red, green, blue = (float(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
    return red, green, blue


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it.

    Example
    -------
    >>> luminance("#ffffff"), luminance("#000000")
    (1.0, 0.0)
    """
    parts = [c / 255.0 for c in rgb(colour)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return round(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], 9)


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21.

    Example
    -------
    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def visible(colour: str, ground: str) -> str:
    """The colour, or the nearest mixture of it with black or white that stands out from the ground.

    Example
    -------
    >>> visible("#0072B2", LIGHT), visible("#000000", DARK)
    ('#0072b2', '#666666')
    """
    end = 0.0 if luminance(ground) > 0.5 else 255.0
    for share in np.linspace(0.0, 1.0, 51):
        mixed = "#" + "".join(f"{round((1.0 - share) * c + share * end):02x}" for c in rgb(colour))
        if contrast(mixed, ground) >= CONTRAST:
            return mixed
    return mixed


def on_dark(colour: str) -> str:
    """The colour for the dark page: black and greys turned around, others made bright enough.

    Example
    -------
    >>> on_dark("#000000")
    '#f0f0f0'
    """
    if len(set(rgb(colour))) == 1:
        grey = round(min(255.0 - rgb(colour)[0], 240.0))
        return visible(f"#{grey:02x}{grey:02x}{grey:02x}", DARK)
    return visible(colour, DARK)


class Palette:
    """The colours that a page uses, each a class of the style sheet."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}

    def __call__(self, colour: str) -> str:
        """Return the class of a colour."""
        return self._classes.setdefault(colour.lower(), f"k{len(self._classes)}")

    def css(self) -> str:
        """Return the rules of the classes."""
        return "\n".join(
            f".{name} {{ color: light-dark({visible(colour, LIGHT)}, {on_dark(colour)}); }}"
            for colour, name in self._classes.items()
        )


def colour_map(name: str) -> str:
    """Return 256 colours of matplotlib's map of this name as base64 of red, green, blue bytes."""
    import matplotlib as mpl

    colours = mpl.colormaps[name](np.arange(256), bytes=True)[:, :3]
    return base64.b64encode(np.ascontiguousarray(colours, dtype=np.uint8).tobytes()).decode()
