"""Questions about a stream: what is summed up, how far ahead, and for which policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import MAX_MAGNITUDE, FloatArray, IntArray, as_floats, as_real
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.horde.steps import Steps

Part: TypeAlias = float | str | Callable[[Steps], ArrayLike]
"""The same number at every step, the name of a column of the steps, or a function from N steps to N numbers."""


@dataclass(frozen=True, slots=True)
class Question:
    """A general value function: the expected Σ_k γ_{t+1} ⋯ γ_{t+k} c_{t+k+1}, if a policy acts from now on.

    Each of the three parts is a number, the name of a column (``Steps.columns``), or a function that is given
    :class:`Steps` and returns one number for each of them.

    Parameters
    ----------
    cumulant : number, name or function
        c_{t+1}: what is summed up. With ``size`` k the column or function has k numbers for each step, also as a
        scipy.sparse array.
    discount : number in [0, 1], name or function
        γ_{t+1}, of the next observation: 0 where the question's own story ends (a *termination*), whatever the stream
        does. Where the stream terminates it is 0.
    ratio : number >= 0, name or function
        ρ_t: probability of the action taken under the policy asked about, over that under the one that acts.
    lambda_ : float in [0, 1], optional
        Trace parameter of this question; left out, it is that of the model.
    size : int
        How many cumulants there are, with one prediction each.
    name : str

    Example
    -------
    >>> def bump(steps):
    ...     return steps.next_observations[:, 0] > 0.9
    >>> soon = Question(bump, discount=0.9)
    >>> light_until_bump = Question("light", discount=lambda steps: 0.99 * ~bump(steps))
    """

    cumulant: Part
    discount: Part
    ratio: Part = 1.0
    lambda_: float | None = None
    size: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        for what, low, high in (
            ("cumulant", -MAX_MAGNITUDE, MAX_MAGNITUDE),
            ("discount", 0.0, 1.0),
            ("ratio", 0.0, MAX_MAGNITUDE),
        ):
            part = getattr(self, what)
            if isinstance(part, str) or (callable(part) and not isinstance(part, type)):
                continue
            why = ", or the name of a column or a function of steps"
            object.__setattr__(self, what, parameters.real(what, part, low=low, high=high, why=why))
        if self.lambda_ is not None:
            object.__setattr__(self, "lambda_", parameters.real("lambda_", self.lambda_, low=0.0, high=1.0))
        object.__setattr__(self, "size", parameters.integer("size", self.size))
        if not isinstance(self.name, str):
            raise InvalidParameterError(f"name is {self.name!r}: pass text")

    def shares_with(self, other: Question) -> bool:
        """Whether both have the same discount, ratio and λ at every step, so that one factorisation serves both."""
        return (self.discount, self.ratio, self.lambda_) == (other.discount, other.ratio, other.lambda_)

    def cumulants(self, steps: Steps) -> FloatArray:
        """(N, size)."""
        return _numbers(self.cumulant, steps, self._called("cumulant"), self.size, -MAX_MAGNITUDE, MAX_MAGNITUDE)

    def discounts(self, steps: Steps) -> FloatArray:
        """(N,), before the stream's own terminations."""
        return _numbers(self.discount, steps, self._called("discount"), 1, 0.0, 1.0)[:, 0]

    def ratios(self, steps: Steps) -> FloatArray:
        """(N,)."""
        return _numbers(self.ratio, steps, self._called("ratio"), 1, 0.0, MAX_MAGNITUDE)[:, 0]

    def _called(self, what: str) -> str:
        return f"the {what} of question {self.name!r}" if self.name else f"the {what} of a question"

    def described(self) -> list[Any]:
        """What JSON can hold of it: of a function only its name."""
        parts = [_description(part) for part in (self.cumulant, self.discount, self.ratio)]
        return [*parts, self.lambda_, self.size, self.name]


def _description(part: Part) -> Any:
    return {"function": getattr(part, "__qualname__", type(part).__name__)} if callable(part) else part


def all_cumulants(asked: list[tuple[Question, IntArray]], steps: Steps, n_predictions: int) -> FloatArray:
    """(N, n_predictions): of each question at all its places; what several questions share is listed once."""
    found = np.empty((len(steps), n_predictions))
    for question, places in asked:
        values = _raw(question.cumulant, steps, question._called("cumulant"), question.size)
        found[:, places] = values if question.size == 1 else np.tile(values, places.size // question.size)
    if not np.abs(found).max(initial=0.0) <= MAX_MAGNITUDE:
        for question, _ in asked:
            question.cumulants(steps)  # says which
    return found


def _numbers(part: Part, steps: Steps, called: str, size: int, low: float, high: float) -> FloatArray:
    """(N, size), a copy, checked."""
    if isinstance(part, float):
        return np.full((len(steps), size), part)
    array = as_floats(_raw(part, steps, called, size), called, 2).copy()
    bad = (array < low) | (array > high)
    if bad.any():
        raise InvalidInputError(f"{called} is {array[bad][0]}: it must lie in [{low:g}, {high:g}]")
    return array


def _raw(part: Part, steps: Steps, called: str, size: int) -> FloatArray:
    """(N, size), of any numbers."""
    n = len(steps)
    if isinstance(part, float):
        return np.full((n, size), part)
    found: Any
    if isinstance(part, str):
        if part not in steps.columns:
            raise InvalidInputError(f"{called} is the column {part!r}, which the steps do not have: pass columns=")
        found = steps.columns[part]
    else:
        found = part(steps)
    array = as_real(found.toarray() if sp.issparse(found) else found, called)
    if array.shape != (n, size) and (size > 1 or array.shape != (n,)):
        wanted = f"({n},)" if size == 1 else f"({n}, {size})"
        raise InvalidInputError(f"{called} has shape {array.shape} for {n} steps: make it {wanted}")
    return array.reshape(n, size)
