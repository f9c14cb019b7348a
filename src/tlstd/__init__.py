"""Incremental truncated LSTD: value functions from a stream or a log of experience.

The sample efficiency of least squares in O(features x rank) memory. Start with :class:`TLSTD` and
:class:`TransitionBuilder` (stepping an environment) or :class:`Transitions` (arrays and logs).
"""

from tlstd.core.public import lazy

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy(__name__)
