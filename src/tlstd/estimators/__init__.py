"""What all estimators share: the base class, calls, step sizes, loading and merging; and the list of their names."""

from tlstd.core.public import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
