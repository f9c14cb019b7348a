"""The library's exceptions. Each message names the offending value and the remedy."""

import re

LONGEST = 300
"""Characters of a word that a message shows whole; names of files have at most 255."""


def shortened(text: str) -> str:
    """The text; of longer words, as values of data can be, the beginning and the end.

    >>> shortened("obs_" + "1" * 5000 + " is no number")
    'obs_11111111111111111111111111111111…11111111 (5,004 characters) is no number'
    """
    return re.sub(rf"[^\s,/]{{{LONGEST},}}", lambda word: _ends(word[0]), text)


def _ends(word: str) -> str:
    return f"{word[:36]}…{word[-8:]} ({len(word):,} characters)"


class TlstdError(Exception):
    """Base of every exception that this library raises on purpose."""

    def __str__(self) -> str:
        return shortened(super().__str__())


class InvalidParameterError(TlstdError, ValueError):
    """A constructor or function was given a parameter outside its documented range."""


class InvalidInputError(TlstdError, ValueError):
    """Data (features, rewards, discounts, ratios) that cannot be used. The model is unchanged."""


class CapacityError(TlstdError, MemoryError):
    """The request would need more memory than is sensible. The model is unchanged."""


class StateError(TlstdError, ValueError):
    """A file that is not a whole, sound saved model, or a model that cannot be saved. Nothing has changed."""


class ReadOnlyError(TlstdError, AttributeError):
    """A parameter of a model was assigned to. Nothing has changed."""


class BusyError(TlstdError, RuntimeError):
    """A model was used in the middle of another call of the same thread on it. Nothing has changed."""


class MissingExtraError(TlstdError, ImportError):
    """A package that comes with an extra of this library is not installed."""


class ClusterError(TlstdError, RuntimeError):
    """The workers of a cluster cannot finish a computation. Files are as they were."""
