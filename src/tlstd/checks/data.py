"""The streams and the misuse that the checks try, and how they compare."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import TlstdError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.loading import load

Factory: TypeAlias = Callable[..., Any]
"""``factory(n_features)`` makes a fresh estimator; ``factory(n_features, n_targets=m)`` too if it can do several."""

Check: TypeAlias = Callable[[Factory], str | None]
"""Raises AssertionError with an explanation if what a factory makes does not keep one part of the contract.

Returns None, or why the check was passed over: what the estimator does not offer.
"""

N_FEATURES = 12
N_ACTIVE = 3


def stream(n_steps: int, *, seed: int = 0, n_targets: int = 1, n_features: int = N_FEATURES) -> Transitions:
    """Tile-like features (three active) with terminations, truncations and rewards that depend on them."""
    X, rewards, terminated, truncated = _drawn(n_steps, seed, n_targets, n_features)
    return Transitions.from_arrays(
        X[:-1].copy(),
        rewards[:, 0].copy() if n_targets == 1 else rewards.copy(),
        X[1:].copy(),
        terminated=terminated,
        truncated=truncated,
        gamma=0.9,
    )


@lru_cache(64)  # every check has a copy of its own: an estimator may spoil it
def _drawn(n_steps: int, seed: int, n_targets: int, n_features: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(seed)
    X = np.zeros((n_steps + 1, n_features))
    for row in X:
        row[rng.choice(n_features, N_ACTIVE, replace=False)] = rng.uniform(0.5, 1.5, N_ACTIVE)
    W = rng.standard_normal((n_features, n_targets))
    rewards = X[:-1] @ W + 0.1 * rng.standard_normal((n_steps, n_targets))
    return X, rewards, rng.random(n_steps) < 0.1, rng.random(n_steps) < 0.1


def as_sparse(steps: Transitions) -> Transitions:
    """The same transitions with CSR arrays."""
    return Transitions(
        sp.csr_array(steps.X),
        steps.rewards,
        sp.csr_array(steps.X_next),
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
        rhos=steps.rhos,
    )


def bad_inputs() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """What no estimator may accept, by name: functions that try it on a model."""
    yield from _bad_values()
    yield "features of the wrong size", partial(_update, x=np.ones(13), x_next=np.ones(13))
    yield "x and x_next of different sizes", partial(_update, x_next=np.ones(13))
    yield "a matrix as x", partial(_update, x=np.ones((1, N_FEATURES)))
    yield "an object array", partial(_update, x=np.array([None] * N_FEATURES))
    yield "strings", partial(_update, x=["a"] * N_FEATURES)
    yield "complex numbers", partial(_update, x=np.full(N_FEATURES, 1j))
    yield "a ragged list", partial(_update, x=[[1.0], [1.0, 2.0]])
    for index in (-1, N_FEATURES, 2**40, 1.5):
        yield f"index {index}", partial(_update_sparse, [index], [1.0])
    yield "more values than indices", partial(_update_sparse, [1], [1.0, 2.0])
    yield "too many rewards", partial(_update, reward=[1.0, 2.0])
    yield "something else than a Transition", lambda model: model.update((np.ones(N_FEATURES), 1.0))
    yield "something else than Transitions", lambda model: model.update_many([1, 2])
    yield "ragged columns", partial(_update_many, N_FEATURES, n_rewards=3)
    yield "update_many of the wrong width", partial(_update_many, 5, n_rewards=5)
    yield "predict of the wrong width", lambda model: model.predict(np.ones(N_FEATURES + 1))
    yield "predict of a matrix of the wrong width", lambda model: model.predict(np.ones((2, N_FEATURES + 1)))


def _bad_values() -> Iterator[tuple[str, Callable[[Any], None]]]:
    for value in (np.nan, np.inf, -np.inf, 1e300):
        bad = np.zeros(N_FEATURES)
        bad[7] = value
        yield f"x with {value}", partial(_update, x=bad)
        yield f"x_next with {value}", partial(_update, x_next=bad)
        yield f"reward {value}", partial(_update, reward=value)
        yield f"sparse x with {value}", partial(_update_sparse, [3], [value])
        yield f"predict of {value}", partial(_predict, bad)
        for column in ("store", "next_store", "rewards", "discounts", "trace_discounts", "rhos"):
            yield f"update_many with {value} in the last of {column}", partial(update_late, column, value)
    for value in (-0.1, 1.1, np.nan):
        yield f"discount {value}", partial(_update, discount=value)
        yield f"trace_discount {value}", partial(_update, trace_discount=value)
    for value in (-1.0, np.nan, np.inf):
        yield f"rho {value}", partial(_update, rho=value)


def _update(model: Any, **changes: Any) -> None:
    x = np.zeros(N_FEATURES)
    x[6:9] = 0.1
    good: dict[str, Any] = {"x": x, "reward": 1.0, "x_next": x, "discount": 0.9, "trace_discount": 0.9, "rho": 1.0}
    model.update(Transition(**{**good, **changes}))


def _update_sparse(indices: Any, values: Any, model: Any) -> None:
    _update(model, x=SparseVector(indices, values, N_FEATURES))


def _update_many(size: int, model: Any, *, n_rewards: int) -> None:
    ones = np.ones(size)
    model.update_many(Transitions(np.eye(size), np.ones(n_rewards), np.eye(size), discounts=ones, trace_discounts=ones))


def update_late(column: str, value: float, model: Any, *, method: str = "update_many") -> None:
    """Put a bad value into the last row *after* the columns were checked, then learn from them."""
    steps = stream(20, seed=4)
    np.asarray(getattr(steps, column))[-1] = value
    getattr(model, method)(steps)


def _predict(x: Any, model: Any) -> None:
    model.predict(x)


def why_unsaved(model: Any) -> str | None:
    """Why a model cannot be saved, as far as its class says; None if it can."""
    if not hasattr(model, "save"):
        return "it has no method save"
    if isinstance(model, LinearEstimator) and type(model)._state is LinearEstimator._state:
        return "it has no method _state, so that it cannot be saved"
    return None


def assert_refused(name: str, attempt: Callable[[Any], None], model: Any) -> None:
    """Raise unless what is tried on a model raises a TlstdError."""
    try:
        attempt(model)
    except TlstdError:
        return
    except Exception as error:
        raise AssertionError(f"{name}: raised {type(error).__name__} ({error}), not a TlstdError") from error
    raise AssertionError(f"{name}: was accepted")


def assert_close(actual: Any, expected: Any, tolerance: float, message: str) -> None:
    """Compare relative to the largest expected entry."""
    difference = float(np.abs(np.asarray(actual) - np.asarray(expected)).max(initial=0.0))
    scale = max(float(np.abs(np.asarray(expected)).max(initial=0.0)), 1e-300)
    assert difference <= tolerance * scale, f"{message}: off by {difference / scale:.1e} (allowed {tolerance:g})"


def loaded(path: str | os.PathLike[str], cls: type) -> Any:
    """The model in a file that one of class ``cls`` has saved."""
    return load(path, classes=[cls] if hasattr(cls, "_loaded") else ())


def reason(error: BaseException) -> str:
    """What an exception says: an assertion its message, any other its type, message and place."""
    if isinstance(error, AssertionError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} ({error}) at {os.path.basename(place.filename)}:{place.lineno}"
