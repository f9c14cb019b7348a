"""The LSTD system of transitions written out, sum by sum, and random transitions with everything in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions


def literal_system(
    steps: Transitions,
    lambda_: float,
    *,
    beta: float | None = None,
    fold: NDArray[np.int16] | None = None,
    number: int = -1,
    cut: NDArray[np.bool_] | None = None,
    first: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """A = Σ ω z dᵀ and b = Σ ω z r over all features, from sample ``first`` on, without those of fold ``number``."""
    X, X_next = dense_rows(steps.X), dense_rows(steps.X_next)
    T, d = X.shape
    rewards = steps.rewards.reshape(T, -1)
    A, b, z = np.zeros((d, d)), np.zeros((d, rewards.shape[1])), np.zeros(d)
    total = kept = 0.0
    for t in range(T):
        carried = 0.0 if cut is not None and cut[t] else steps.trace_discounts[t] * lambda_
        z = steps.rhos[t] * (carried * z + X[t])
        omega = 1.0 / T if beta is None else beta * (1.0 - beta) ** (T - 1 - t)
        if t < first:
            continue
        total += omega
        if fold is not None and fold[t] == number:
            continue
        kept += omega
        A += omega * np.outer(z, X[t] - steps.discounts[t] * X_next[t])
        b += omega * np.outer(z, rewards[t])
    scale = total / kept if kept else 1.0
    return A * scale, b * scale


def seen_features(steps: Transitions) -> IntArray:
    """Features of all x, and of x_next where the discount is not 0."""
    X, X_next = dense_rows(steps.X), dense_rows(steps.X_next)
    return np.flatnonzero((X != 0).any(axis=0) | (X_next[steps.discounts != 0.0] != 0).any(axis=0))


def random_steps(
    rng: np.random.Generator,
    n_steps: int,
    *,
    n_features: int = 30,
    kind: str = "binary",
    ratios: bool = False,
    n_targets: int = 1,
    separate: bool = False,
    ends: float = 0.1,
) -> Transitions:
    """Episodes with terminations, truncations and discounts of their own; ``kind`` is binary, valued or dense.

    ``separate``: next rows have nothing to do with the following rows.
    """
    X = rng.standard_normal((n_steps + 1, n_features))
    if kind != "dense":
        active = rng.random(X.shape) < 0.12
        X = np.where(active, 1.0 if kind == "binary" else X, 0.0)
    X_next = rng.permutation(X)[1:] if separate else X[1:].copy()
    terminated, truncated = rng.random(n_steps) < ends, rng.random(n_steps) < ends
    jump = np.flatnonzero(terminated | truncated)
    X_next[jump] = rng.permutation(X)[jump]  # where an episode ends, the next one begins elsewhere
    discounts = np.where(terminated, 0.0, rng.uniform(0.5, 1.0, n_steps))
    trace_discounts = np.concatenate([[0.0], np.where(terminated | truncated, 0.0, discounts)[:-1]])
    rewards = rng.standard_normal((n_steps, n_targets))
    form: Any = np.asarray if kind == "dense" else sp.csr_array
    return Transitions(
        form(X[:-1]),
        rewards[:, 0] if n_targets == 1 else rewards,
        form(X_next),
        discounts=discounts,
        trace_discounts=trace_discounts,
        rhos=rng.exponential(1.0, n_steps) * (rng.random(n_steps) < 0.9) if ratios else None,
    )


def dense_rows(X: Any) -> FloatArray:
    """A matrix as a new dense array."""
    return np.array(X.toarray() if sp.issparse(X) else X)
