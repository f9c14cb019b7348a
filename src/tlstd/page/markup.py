"""HTML from functions: text is escaped because of its type, not because somebody thought of it."""

from __future__ import annotations

from html import escape

from tlstd.core.file_format import printable

EMPTY = frozenset({"circle", "input", "line", "path", "rect", "stop"})
"""Elements without content; within SVG they must be closed."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a value as escaped text; markup stays as it is.

    Example
    -------
    >>> text("<b>"), text(Html("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return value if isinstance(value, Html) else Html(_escaped(value))


def _escaped(value: object) -> str:
    """Markup as text, and what is no text, such as a change of its direction or half a character, by its number."""
    return escape("\n".join(map(printable, str(value).split("\n"))), quote=True)


def join(*parts: object, by: str = "") -> Html:
    """Parts one after the other, escaped where they are text."""
    return Html(by.join(text(part) for part in parts))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """Return an element. Underscores of attributes become hyphens, one at the end is dropped; None and False leave out.

    Example
    -------
    >>> element("a", "x < y", href='#"', class_="wide", aria_hidden="true", hidden=False)
    '<a href="#&quot;" class="wide" aria-hidden="true">x &lt; y</a>'
    """
    words = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.removesuffix("_").replace("_", "-")
        words.append(name if value is True else f'{name}="{_escaped(value)}"')
    opening = " ".join(words)
    return Html(f"<{opening}/>" if tag in EMPTY else f"<{opening}>{join(*children)}</{tag}>")
