"""Slow and obvious computations that the evaluation is tested against: loops over steps, whole matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tlstd import Log
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.steps import Rows, Steps


def random_log(
    seed: int, n_episodes: int = 12, *, discrete: bool = True, n_states: int = 7, longest: int = 9, names: Any = None
) -> Log:
    """Episodes of 1 to 9 steps: terminated, or cut off with and without the observation after the last step."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n_episodes)
    n = int(lengths.sum())
    last = np.cumsum(lengths) - 1
    seen: Any = rng.integers(0, n_states, n) if discrete else rng.standard_normal((n, 3))
    following: Any = np.concatenate([seen[1:], seen[:1]])
    following[last] = rng.integers(0, n_states, n_episodes) if discrete else rng.standard_normal((n_episodes, 3))
    ends = np.zeros(n, dtype=bool)
    ends[last[rng.random(n_episodes) < 0.5]] = True
    cut = np.zeros(n, dtype=bool)
    cut[last] = ~ends[last]
    log = Log.from_arrays(
        seen,
        rng.standard_normal(n),
        actions=rng.integers(0, 3, n),
        terminated=ends,
        truncated=cut,
        episodes=np.repeat(np.arange(n_episodes) if names is None else names, lengths),
        next_observations=following,
        discrete=discrete,
    )
    return replace(log, has_final=log.has_final & (rng.random(n_episodes) < 0.6))


def dense(X: Any) -> FloatArray:
    """A matrix as an array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def dense_rows(rows: Rows) -> FloatArray:
    """All rows of features."""
    return np.concatenate([dense(block) for block in rows.blocks])


class Whole(NamedTuple):
    """A system as whole matrices."""

    X: FloatArray
    """(N, n): x_t."""
    X_next: FloatArray
    """(N, n): x'_t."""
    A: FloatArray
    b: FloatArray
    Z: FloatArray
    """(N, n): traces."""
    D: FloatArray
    """(N, n): x_t - γ_{t+1} x'_t."""


def whole(
    steps: Steps,
    X: FloatArray,
    X_next: FloatArray,
    lambda_: float,
    rhos: FloatArray | None = None,
    fold: int = -1,
    rewards: FloatArray | None = None,
) -> Whole:
    """A = (1/T) Σ z_t d_tᵀ and b = (1/T) Σ z_t r_{t+1}, z_t = ρ_t (γ_t λ z_{t-1} + x_t), in a loop."""
    r = steps.rewards if rewards is None else rewards
    n = X.shape[1]
    A, b, z, Z, T = np.zeros((n, n)), np.zeros(n), np.zeros(n), np.zeros(X.shape), 0
    D = X - steps.discounts[:, None] * X_next
    for t in range(len(steps)):
        first = t == 0 or steps.group[t] != steps.group[t - 1]
        rho = 1.0 if rhos is None else rhos[t]
        z = rho * ((0.0 if first else steps.gamma * lambda_) * z + X[t])
        Z[t] = z
        if steps.fold[t] != fold:
            A += np.outer(z, D[t])
            b += z * r[t]
            T += 1
    return Whole(X, X_next, A / T, b / T, Z, D)


def in_blocks(X: FloatArray, actions: IntArray, n_actions: int) -> FloatArray:
    """φ(s, a): the features of the state in the block of the action."""
    out = np.zeros((len(X), n_actions * X.shape[1]))
    for t, a in enumerate(actions.tolist()):
        out[t, a * X.shape[1] : (a + 1) * X.shape[1]] = X[t]
    return out


def expected_blocks(X: FloatArray, chances: FloatArray) -> FloatArray:
    """Σ_a π(a|s) φ(s, a)."""
    n_actions = chances.shape[1]
    return sum(
        (chances[:, [a]] * in_blocks(X, np.full(len(X), a), n_actions) for a in range(n_actions)),
        np.zeros((len(X), n_actions * X.shape[1])),
    )
