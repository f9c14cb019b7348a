"""The library's exceptions. Each message names the offending value and the remedy."""


class TlstdError(Exception):
    """Base of every exception that this library raises on purpose."""


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
