"""Compiled loops to compare with: only what cannot be left out, and iLSTD with A as a full array."""

from __future__ import annotations

from tlstd.core.arrays import FloatArray
from tlstd.core.jit import kernel
from tlstd.data.batch import CSRArrays


@kernel
def touch(
    x: CSRArrays, x_next: CSRArrays, rewards: FloatArray, step: float, discount: float, w: FloatArray, z: FloatArray
) -> None:
    """Read w at both vectors and z at the first, add to both there, in place: a step of TD that forgets its trace."""
    for t in range(rewards.size):
        start, stop = x[0][t], x[0][t + 1]
        error = rewards[t]
        for e in range(start, stop):
            error -= x[2][e] * w[x[1][e]]
        for e in range(x_next[0][t], x_next[0][t + 1]):
            error += discount * x_next[2][e] * w[x_next[1][e]]
        for e in range(start, stop):
            z[x[1][e]] += x[2][e]
            w[x[1][e]] += step * error


@kernel
def ilstd_dense(
    x: CSRArrays,
    x_next: CSRArrays,
    columns: FloatArray,
    alphas: FloatArray,
    n_coordinates: int,
    At: FloatArray,
    z: FloatArray,
    d: FloatArray,
    w: FloatArray,
    mu: FloatArray,
) -> None:
    """iLSTD(λ) with full vectors and Aᵀ as a full array (row j is A's column j), in place.

    ``columns`` has a row each of the rewards, γ_{t+1} and γ_t λ; ``d`` is zero before and after. Of A only the columns
    where d is not zero are touched: O(n nnz(d)) per step, and O(n) for each coordinate.
    """
    for t in range(alphas.size):
        reward, discount, decay = columns[0, t], columns[1, t], columns[2, t]
        start, stop, n_start, n_stop = x[0][t], x[0][t + 1], x_next[0][t], x_next[0][t + 1]
        for i in range(z.size):
            z[i] *= decay
            if abs(z[i]) < 1e-300:  # subnormal numbers are slow
                z[i] = 0.0
        for e in range(start, stop):
            z[x[1][e]] += x[2][e]
            d[x[1][e]] += x[2][e]
        for e in range(n_start, n_stop):
            d[x_next[1][e]] -= discount * x_next[2][e]
        error = reward
        for indices, first, last in ((x[1], start, stop), (x_next[1], n_start, n_stop)):
            for e in range(first, last):
                j = indices[e]
                if d[j] != 0.0:
                    error -= d[j] * w[j]
                    for i in range(z.size):
                        At[j, i] += d[j] * z[i]
                    d[j] = 0.0
        for i in range(z.size):
            mu[i] += error * z[i]
        for _ in range(n_coordinates):
            j = 0
            for i in range(z.size):
                if abs(mu[i]) > abs(mu[j]):
                    j = i
            change = alphas[t] * mu[j]
            w[j] += change
            for i in range(z.size):
                mu[i] -= change * At[j, i]
