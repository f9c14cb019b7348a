"""Packages that come with an extra (``pip install 'tlstd[cli]'``), and what is said where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tlstd.errors import MissingExtraError

EXTRAS = {
    "distributed": "cluster",
    "gymnasium": "gymnasium",
    "matplotlib": "cli",
    "minari": "minari",
    "polars": "logs",
    "rich": "cli",
    "typer": "cli",
}
"""The extra that brings a package."""


@contextmanager
def needs(*packages: str) -> Iterator[None]:
    """Import what is in the block; if one of these packages is not there, say how to install it.

    Example
    -------
    >>> with needs("gymnasium"):
    ...     raise ModuleNotFoundError("No module named 'gymnasium'", name="gymnasium")
    Traceback (most recent call last):
        ...
    tlstd.errors.MissingExtraError: gymnasium is not installed: pip install 'tlstd[gymnasium]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in packages:
            raise
        raise MissingExtraError(f"{missing} is not installed: pip install 'tlstd[{EXTRAS[missing]}]'") from error
