"""What several test modules share: random streams, and LSTD's system by a literal loop."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.data.vectors import SparseVector, Vector

if TYPE_CHECKING:
    from tlstd.estimators.base import LinearEstimator

Model = TypeVar("Model", bound="LinearEstimator")


def random_transitions(
    rng: np.random.Generator,
    *,
    n_features: int,
    n_steps: int,
    density: float = 1.0,
    n_targets: int = 1,
    off_policy: bool = False,
    sparse: bool = False,
    terminate: float = 0.05,
    truncate: float = 0.03,
    gamma: float = 0.9,
) -> Transitions:
    """A stream of episodes over independent standard normal features and rewards.

    Parameters
    ----------
    density : float in [0, 1]
        Probability that a feature is non-zero.
    off_policy : bool
        Importance ratios between 0.3 and 1.7, one in twenty of them 0, instead of all one.
    sparse : bool
        Store the features as CSR.
    terminate, truncate : float in [0, 1]
        Probabilities that a step terminates its episode and that it is cut off; both may happen in one step. The
        next features are then those of a final observation, not zero, and what follows starts a new episode.
    gamma : float
    """
    observations = rng.standard_normal((2 * n_steps, n_features))
    observations[rng.random(observations.shape) >= density] = 0.0
    X, X_next = observations[:n_steps], observations[n_steps:]
    terminated, truncated = rng.random(n_steps) < terminate, rng.random(n_steps) < truncate
    goes_on = np.flatnonzero(~(terminated | truncated)[:-1]) if n_steps else np.zeros(0, dtype=np.int64)
    X_next[goes_on] = X[goes_on + 1]
    rewards = rng.standard_normal(n_steps if n_targets == 1 else (n_steps, n_targets))
    rhos = None
    if off_policy:
        rhos = rng.uniform(0.3, 1.7, n_steps)
        rhos[rng.random(n_steps) < 0.05] = 0.0
    return Transitions.from_arrays(
        sp.csr_array(X) if sparse else X,
        rewards,
        sp.csr_array(X_next) if sparse else X_next,
        terminated=terminated,
        truncated=truncated,
        gamma=gamma,
        rhos=rhos,
    )


def batch_lstd(
    transitions: Transitions, lambda_: float, *, beta: float | None = None, replacing: bool = False
) -> tuple[FloatArray, FloatArray]:
    """LSTD's A (d, d) and b (d, m) by a dense loop over the transitions, one line per equation.

    z ← ρ (γ_t λ z + x), or with replacing traces ρ x where x is non-zero; d = x - γ_{t+1} x_next. The averages of z dᵀ
    and z rᵀ, or, with ``beta``, A ← (1 - β) A + β z dᵀ from A = 0.
    """
    n, m = transitions.n_features, transitions.n_targets
    systems = lstd_systems(transitions, lambda_, beta=beta, replacing=replacing)
    return deque(systems, maxlen=1).pop() if len(transitions) else (np.zeros((n, n)), np.zeros((n, m)))


def lstd_systems(
    transitions: Transitions, lambda_: float, *, beta: float | None = None, replacing: bool = False
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The A and b of :func:`batch_lstd` after every transition."""
    n, m = transitions.n_features, transitions.n_targets
    A, b, z = np.zeros((n, n)), np.zeros((n, m)), np.zeros(n)
    for count, t in enumerate(transitions, 1):
        x, x_next = dense(t.x), dense(t.x_next)
        z = t.trace_discount * lambda_ * z
        if replacing:
            z[x != 0.0] = 0.0
        z = t.rho * (z + x)
        d = x - t.discount * x_next
        A_t, b_t = np.outer(z, d), np.outer(z, t.reward)
        if beta is None:
            A, b = A + A_t, b + b_t
        else:
            A, b = (1.0 - beta) * A + beta * A_t, (1.0 - beta) * b + beta * b_t
        yield (A / count, b / count) if beta is None else (A, b)


def lstd_by_products(
    transitions: Transitions, lambda_: float, *, beta: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """A and b as in :func:`batch_lstd`, by one matrix product over all traces."""
    stores: list[Any] = [transitions.X, transitions.X_next]
    X, X_next = (np.asarray(store.toarray() if sp.issparse(store) else store) for store in stores)
    n, Z, z = len(transitions), np.empty_like(X), np.zeros(X.shape[1])
    for t in range(n):
        Z[t] = z = transitions.rhos[t] * (transitions.trace_discounts[t] * lambda_ * z + X[t])
    Z *= 1.0 / n if beta is None else (beta * (1.0 - beta) ** np.arange(n - 1, -1, -1))[:, None]
    D = X - transitions.discounts[:, None] * X_next
    return Z.T @ D, Z.T @ transitions.rewards.reshape(n, -1)


def dense(x: Vector) -> FloatArray:
    """A vector as a dense array."""
    return x.toarray() if isinstance(x, SparseVector) else x


def interrupted_everywhere(
    make: Callable[[], Model], before: Transitions, steps: Transitions, *, every: int = 1
) -> Iterator[Model]:
    """Models that have learned ``before`` and were interrupted while they learned ``steps``, at one line after another.

    KeyboardInterrupt is raised before the first line of the library's code that runs, before the one ``every`` lines
    later, and so on; the last model was not interrupted.
    """
    from tests.faults.reliability import Injector  # the workers of clusters, which import this file, do without

    at, came = 1, True
    while came:
        model = make()
        model.update_many(before)
        injector = Injector(type(model), at, KeyboardInterrupt())
        came = injector.run(partial(model.update_many, steps))
        yield model
        at += every


def pairwise(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Combinations of one value of each axis in which every pair of values of two axes occurs, not all combinations.

    Always the same ones: the next is the one, of all, with the most pairs that have not been there yet.

    >>> len(pairwise("abcd", range(3), (True, False)))
    12
    """
    combinations = list(itertools.product(*map(list, axes)))
    pairs = [set(itertools.combinations(enumerate(c), 2)) for c in combinations]
    missing: set[Any] = set().union(*pairs)
    chosen = []
    while missing:
        best = max(range(len(combinations)), key=lambda i: len(pairs[i] & missing))
        chosen.append(combinations[best])
        missing -= pairs[best]
    return chosen
