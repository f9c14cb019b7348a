"""What an answer was computed from, kept for those who ask how sure it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError
from tlstd.evaluation.action_values import PIECE
from tlstd.evaluation.policies import Target
from tlstd.evaluation.value_function import Encoded, ValueFunction
from tlstd.logs.log import Log


@dataclass(frozen=True, eq=False)
class Starts:
    """A set of states whose mean value is asked for."""

    observations: NDArray[Any]
    """(M, D), or (M,) numbers of states."""
    rows: IntArray | None
    """(M,): their rows in the log; None if the states were given."""
    probabilities: FloatArray | None = None
    """(M, n_actions): of the policy, where it is a table."""


class LeftOut(NamedTuple):
    """What of a log an answer does not rest on: files that could not be used, and episodes in which numbers miss."""

    files: int = 0
    of_files: int = 0
    episodes: int = 0
    of_episodes: int = 0

    @property
    def share(self) -> float:
        """Of the log, as far as it can be told: files count alike, and so do episodes."""
        kept = (1.0 - self.files / max(1, self.of_files)) * (1.0 - self.episodes / max(1, self.of_episodes))
        return 1.0 - kept


@dataclass(frozen=True, eq=False)
class Fitted:
    """A value function with the log, the ratios and the start states that it was fitted to and asked for."""

    values: ValueFunction
    """The model, its feature map, γ and whether it has values of states or of actions."""
    log: Log
    """What the model has learned from: where ``rhos`` is None it may be a sample of the log asked about."""
    target: Target | None
    """The policy asked for, in the states of this log; None: the one that acted."""
    rhos: FloatArray | None
    """(N,): importance ratios of the steps of the log; None without."""
    lambda_: float
    dimension: int
    """Of the Krylov space."""
    starts: dict[str, Starts]
    """Sets of start states by name, the first of which is the answer's."""

    def pieces(self, rows: int = PIECE) -> Iterator[Transitions]:
        """What the model has learned from, encoded, in pieces of at most ``rows`` steps of the log."""
        return self.values.pieces(self.log, target=self.target, rhos=self.rhos, rows=rows)

    def transitions(self) -> Transitions:
        """The same in one: every step's features in memory."""
        return next(self.pieces(max(1, len(self.log))))

    def start_features(self, name: str) -> Encoded:
        """Features (M, n) and offsets (M,) of a set of start states; of action values Σ_a π(a|s) φ(s, a)."""
        return self.encode(self.starts[name])

    def encode(self, starts: Starts) -> Encoded:
        """Features and offsets of states under the policy asked for."""
        if self.values.kind == "states":
            return self.values.encode(starts.observations)
        target = self.target
        assert target is not None
        if target.function is not None and target.support is None:
            return self.values.encode(starts.observations, policy=target.function)
        if target.function is not None:
            chances = target.probabilities(starts.observations, self.values.n_actions)
            return self.values.encode(starts.observations, probabilities=chances, target=target)
        if starts.probabilities is None:
            raise InvalidInputError("start are states, but the policy is a table of the log's states: pass a function")
        return self.values.encode(starts.observations, probabilities=starts.probabilities, target=target)

    def mean(self, name: str) -> float:
        """The mean value of a set of start states."""
        return float(np.mean(self.values.values_of(self.start_features(name))))
