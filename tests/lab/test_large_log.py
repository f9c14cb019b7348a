"""The true value of the large log's start states."""

from __future__ import annotations

import numpy as np
from tlstd_lab.measurements.large_log import episodes, true_start_value


def test_true_value_is_the_mean_return() -> None:
    """By quadrature and by simulation, within four standard errors."""
    gamma = 0.9
    columns = episodes(1_000, np.random.default_rng(3))
    returns = np.bincount(columns["episode"], gamma ** columns["step"] * columns["reward"])
    error = returns.std() / np.sqrt(returns.size)
    assert abs(returns.mean() - true_start_value(gamma, 200)) < 4.0 * error < 0.6
