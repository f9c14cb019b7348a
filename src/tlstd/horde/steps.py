"""What was observed and done, before anything is encoded or asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.core.arrays import FloatArray, IntArray, as_array, as_flags, as_real
from tlstd.errors import InvalidInputError


class Steps:
    """Consecutive steps of one stream, in columns: from an observation, by an action, to the next one.

    Parameters
    ----------
    observations, next_observations : (N, D)
    actions : (N,) or (N, A), optional
    terminated, truncated : (N,) flags, optional
        After either the next row begins another episode; after a terminated step nothing follows.
    columns : dict of (N,) or (N, k) arrays, optional
        Anything else that questions ask for by name; a scipy.sparse array (N, k) too.

    Example
    -------
    >>> steps = Steps.along([[0.0], [0.1], [0.3]], columns={"light": [5.0, 4.0]})
    >>> len(steps), steps.next_observations.ravel()
    (2, array([0.1, 0.3]))
    """

    __slots__ = ("actions", "columns", "next_observations", "observations", "terminated", "truncated")

    def __init__(
        self,
        observations: ArrayLike,
        next_observations: ArrayLike,
        *,
        actions: ArrayLike | None = None,
        terminated: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        self.observations = as_real(observations, "observations")
        self.next_observations = as_real(next_observations, "next_observations")
        if self.observations.ndim != 2 or self.observations.shape != self.next_observations.shape:
            raise InvalidInputError(
                f"observations have shape {self.observations.shape} and next_observations "
                f"{self.next_observations.shape}: pass (N, D) for both"
            )
        n = len(self.observations)
        self.actions: NDArray[Any] | None = None if actions is None else as_array(actions, "actions")
        if self.actions is not None and self.actions.shape[:1] != (n,):
            raise InvalidInputError(f"actions have shape {self.actions.shape}: pass one for each of {n} steps")
        none = np.zeros(n, dtype=np.bool_)
        self.terminated = none if terminated is None else as_flags(terminated, "terminated", n)
        self.truncated = none if truncated is None else as_flags(truncated, "truncated", n)
        self.columns = {name: _column(name, values, n) for name, values in (columns or {}).items()}

    @classmethod
    def along(
        cls,
        observations: ArrayLike,
        *,
        actions: ArrayLike | None = None,
        terminated: bool = False,
        columns: Mapping[str, Any] | None = None,
    ) -> Steps:
        """The N steps between N + 1 observations; ``terminated`` says that nothing follows after the last one."""
        path = as_real(observations, "observations")
        if path.ndim != 2 or not len(path):
            raise InvalidInputError(f"observations have shape {path.shape}: pass (N + 1, D)")
        ends = np.zeros(len(path) - 1, dtype=np.bool_)
        ends[-1:] = terminated
        return cls(path[:-1], path[1:], actions=actions, terminated=ends, columns=columns)

    @property
    def ends(self) -> NDArray[np.bool_]:
        """(N,): whether an episode ends with the step."""
        return self.terminated | self.truncated

    def __len__(self) -> int:
        return len(self.observations)

    def __getitem__(self, key: slice) -> Steps:
        part = object.__new__(Steps)
        for name in ("observations", "next_observations", "terminated", "truncated"):
            setattr(part, name, getattr(self, name)[key])
        part.actions = None if self.actions is None else self.actions[key]
        part.columns = {name: values[key] for name, values in self.columns.items()}
        return part

    def distinct(self) -> tuple[FloatArray, IntArray]:
        """Observations in order, each step's next one at ``rows`` (N,) and its first one in the row before.

        One that is the next observation of the step before is there once.
        """
        first = np.ones(len(self), dtype=np.bool_)
        first[1:] = (self.observations[1:] != self.next_observations[:-1]).any(axis=1)
        rows = np.cumsum(first) + np.arange(len(self))
        found = np.empty((len(self) + int(first.sum()), self.observations.shape[1]))
        found[rows] = self.next_observations
        found[rows[first] - 1] = self.observations[first]
        return found, rows


def _column(name: str, values: Any, n: int) -> Any:
    column = values.tocsr() if sp.issparse(values) else as_array(values, f"the column {name}")
    if column.shape[:1] != (n,):
        raise InvalidInputError(
            f"the column {name} has shape {column.shape}: pass one number or row for each of {n} steps"
        )
    return column
