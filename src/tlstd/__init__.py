"""Value functions from streams and logs of experience: the sample efficiency of least squares, with intervals.

Start with :func:`evaluate` (a log of steps), :class:`KrylovLSTD` (a stream or arrays), :class:`TransitionBuilder`
(stepping an environment) or :class:`Transitions` (arrays).
"""

from tlstd.core.public import lazy
from tlstd.moved import keep_old_names

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy(__name__)

keep_old_names()
