"""Feature maps from states to vectors: one per file, each of them a line in this package's ``__init__.pyi``."""

from tlstd.core.public import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
