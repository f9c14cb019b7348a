"""A small system followed sample by sample against one that is summed and solved anew."""

from __future__ import annotations

import numpy as np
import pytest

from tlstd.core.arrays import FloatArray
from tlstd.krylov.kernels import projected_stream as kernels


def followed(
    rng: np.random.Generator, n: int, k: int, m: int, *, first: int = 0, growth: float = 1.0, at_once: bool = True
) -> tuple[list[FloatArray], list[FloatArray], FloatArray]:
    """Solutions after each sample by the kernel and by ``np.linalg.solve``, and the values that it writes."""
    G, left = rng.standard_normal((n + 3, k)), rng.standard_normal((k, m))
    row, next_row = np.arange(n, dtype=np.int32), np.arange(1, n + 1, dtype=np.int32)
    next_row[[4, 9]] = -1  # the last two rows of G are theirs
    discounts = np.where(next_row < 0, 0.0, rng.uniform(0.5, 1.0, n))
    traces, rhos, rewards = rng.uniform(0.0, 1.0, n), rng.exponential(1.0, n), rng.standard_normal(n)
    M, c, trace = 5.0 * np.eye(m), rng.standard_normal(m), rng.standard_normal(k)
    system = M.copy(), np.zeros((m, m)), c.copy(), np.zeros(m)
    state = trace.copy(), np.array([1.0, 0.0, 0.0, 7.0])
    kernels.begin(system, state)
    np.testing.assert_allclose(system[3], np.linalg.solve(M, c))
    columns, bases, values = (row, next_row, discounts, traces, rewards[:, None]), (left, first), np.zeros(n)
    ends = iter((n + 1, n + 2))
    ours, expected, weight = [], [], 1.0
    for t in range(n):
        stop = n if at_once else t + 1
        if t == 0 or not at_once:
            rows = (
                G
                if at_once
                else np.concatenate([G[: n + 1], G[[n + 1 if t == 4 else n + 2]]])[: n + 1 + (next_row[t] < 0)]
            )
            kernels.follow(rows, 0, columns, rhos, 0, t, stop, 0.8, growth, bases, system, state, values[t:])
        trace = rhos[t] * (0.8 * traces[t] * trace + G[t])
        d = G[t, first : first + m] - (discounts[t] * G[t + 1, first : first + m] if next_row[t] >= 0 else 0.0)
        M = M + weight * np.outer(left.T @ trace, d)
        c = c + weight * (left.T @ trace) * rewards[t]
        weight *= growth
        y = np.linalg.solve(M, c)
        following = G[next(ends) if next_row[t] < 0 else t + 1, first : first + m]
        expected.append(np.array([following @ y]))
        ours.append(values[t : t + 1])
    np.testing.assert_allclose(system[0], M, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(system[3], y, rtol=1e-6)
    assert state[1][3] == 7.0 + n
    return ours, expected, values


@pytest.mark.parametrize(("k", "m", "first"), [(5, 4, 0), (8, 4, 4), (1, 1, 0)])
@pytest.mark.parametrize("growth", [1.0, 1.02])
def test_values_at_every_step_are_those_of_the_sums(k: int, m: int, first: int, growth: float) -> None:
    ours, expected, values = followed(np.random.default_rng(0), 200, k, m, first=first, growth=growth)
    np.testing.assert_allclose(np.concatenate(ours), np.concatenate(expected), rtol=1e-6, atol=1e-8)
    _, _, stepwise = followed(np.random.default_rng(0), 200, k, m, first=first, growth=growth, at_once=False)
    np.testing.assert_array_equal(stepwise, values)


def test_an_inverse_is_an_inverse() -> None:
    rng = np.random.default_rng(1)
    for m in (0, 1, 2, 7, 20):
        M = rng.standard_normal((m, m))
        inverse = np.zeros((m, m))
        assert kernels.invert(M, inverse, np.zeros((m, m)))
        np.testing.assert_allclose(inverse @ M, np.eye(m), atol=1e-10)
    swap = np.array([[0.0, 2.0], [1.0, 0.0]])
    inverse = np.zeros((2, 2))
    assert kernels.invert(swap, inverse, np.zeros((2, 2)))
    np.testing.assert_array_equal(inverse, [[0.0, 1.0], [0.5, 0.0]])
    assert not kernels.invert(np.ones((3, 3)), np.zeros((3, 3)), np.zeros((3, 3)))


def test_a_system_that_becomes_singular_keeps_its_solution_and_goes_on() -> None:
    """M = 2, then 2 + 1·(-2) = 0, then 0 + 1·4: the second sample has no solution."""
    system = np.array([[2.0]]), np.zeros((1, 1)), np.array([6.0]), np.zeros(1)
    state = np.zeros(1), np.array([1.0, 0.0, 0.0, 0.0])
    kernels.begin(system, state)
    G, ones = np.array([[1.0], [3.0], [1.0], [-3.0]]), np.ones(4)
    columns = np.array([0, 2], dtype=np.int32), np.array([1, 3], dtype=np.int32), ones, np.zeros(4), ones[:, None]
    bases, values, none = (np.eye(1), 0), np.zeros(2), np.zeros(0)
    kernels.follow(G, 0, columns, none, 0, 0, 1, 0.5, 1.0, bases, system, state, values)
    assert system[0][0, 0] == 0.0
    assert system[3][0] == 3.0
    assert values[0] == 9.0
    kernels.follow(G, 0, columns, none, 0, 1, 2, 0.5, 1.0, bases, system, state, values[1:])
    np.testing.assert_allclose(system[3], [8.0 / 4.0])
    np.testing.assert_allclose(values[1], -6.0)
