"""An estimator that keeps the whole contract in the plainest way: a state that is replaced, never changed.

Its broken relatives in ``test_contract`` each break one thing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tlstd.core import file_format
from tlstd.core.arrays import FloatArray, as_matrix
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector, as_vector
from tlstd.errors import InvalidInputError, InvalidParameterError, StateError, TlstdError


class State(NamedTuple):
    n: int
    w: FloatArray
    z: FloatArray


class ReadOnlyError(TlstdError, AttributeError):
    pass


class Plain:
    """TD(0.7) with dense arrays, one target and a step size of 0.05."""

    n_features: int

    def __init__(self, n_features: int, *, n_targets: int = 1) -> None:
        if n_targets != 1:
            raise InvalidParameterError("n_targets must be 1")
        self.__dict__["n_features"] = n_features
        self.state = State(0, np.zeros(n_features), np.zeros(n_features))

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("n_features", "n_updates"):
            raise ReadOnlyError(f"{name} is read-only: make a new model")
        super().__setattr__(name, value)

    lambda_ = 0.7

    @property
    def n_updates(self) -> int:
        return self.state.n

    @property
    def weights(self) -> FloatArray:
        weights = self.state.w.copy()
        weights.flags.writeable = False
        return weights

    @property
    def sparse_weights(self) -> SparseVector:
        return SparseVector.from_dense(self.state.w)

    def predict(self, x: Any) -> Any:
        if isinstance(x, SparseVector) or (not hasattr(x, "tocsr") and np.ndim(x) == 1):
            with np.errstate(over="ignore", invalid="ignore"):
                return float(self.dense(as_vector(x)) @ self.state.w)
        matrix = as_matrix(x, "x")
        if matrix.shape[1] != self.n_features:
            raise InvalidInputError(f"x has {matrix.shape[1]} features")
        return matrix @ self.state.w

    def update(self, transition: Transition) -> None:
        if not isinstance(transition, Transition):
            raise InvalidInputError("not a Transition")
        self.learn([transition])

    def update_many(self, transitions: Transitions) -> None:
        if not isinstance(transitions, Transitions):
            raise InvalidInputError("not Transitions")
        transitions.check()
        self.learn(list(transitions))

    def learn(self, steps: list[Transition]) -> None:
        state = self.state
        for t in steps:
            state = self.after(state, t)
        self.state = state

    def after(self, state: State, t: Transition) -> State:
        x, x_next = self.dense(t.x), self.dense(t.x_next)
        if not isinstance(t.reward, float):
            raise InvalidInputError("there are several rewards")
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is data
            z = t.rho * (t.trace_discount * self.lambda_ * state.z + x)
            delta = t.reward + t.discount * (x_next @ state.w) - x @ state.w
            return State(state.n + 1, state.w + 0.05 * delta * z, z)

    def dense(self, x: Any) -> FloatArray:
        if isinstance(x, SparseVector):
            x = x.toarray() if x.size == self.n_features else np.zeros(x.size)
        if x.size != self.n_features:
            raise InvalidInputError(f"x has {x.size} features")
        return np.asarray(x)

    def save(self, path: str | os.PathLike[str]) -> None:
        n, w, z = self.state
        file_format.write(path, type(self).__name__, {"n_features": self.n_features}, {"n": n, "w": w, "z": z})

    @classmethod
    def _loaded(cls, contents: file_format.Contents, classes: Mapping[str, type]) -> Plain:
        model = cls(contents.parameters["n_features"])
        saved, d = contents.saved, model.n_features
        model.state = State(saved.integer("n"), saved.floats("w", d), saved.floats("z", d))
        if model.state.n == 0 and model.state.w.any():
            raise StateError("it has weights and no samples")
        saved.finish()
        return model
