"""Scores of predictions of held-out states, and choices by them: pure functions of arrays."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray

TIE = 1e-6
"""Scores within this share of the least one are ties."""
EXACT = 1e-12
"""Scores below this share of the targets' mean square are ties: such predictions are exact but for rounding."""


def group_errors(
    predictions: FloatArray, targets: FloatArray, weights: FloatArray, group: IntArray, n_groups: int
) -> FloatArray:
    """Weighted sum of squared errors in each group, (n_groups, candidates); infinite where a prediction is no number.

    Parameters
    ----------
    predictions : (n, candidates)
        Of some of the samples, e.g. one fold; errors of several calls may be added.
    targets, weights, group : (n,)

    Example
    -------
    >>> group_errors(np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([1.0, 1.0]), np.ones(2), np.array([0, 1]), 2)
    array([[0., 1.],
           [1., 1.]])
    """
    errors = np.empty((n_groups, predictions.shape[1]))
    used = weights > 0.0
    for c in range(predictions.shape[1]):
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.where(used, weights * (predictions[:, c] - targets) ** 2, 0.0)
        squares[np.isnan(squares)] = np.inf
        errors[:, c] = np.bincount(group, squares, n_groups)
    return errors


def scores(errors: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean squared error of each candidate, and its standard error over groups: (candidates,) each.

    States of a group are far from independent, so that groups, not states, are what the standard error counts: it is
    that of a ratio of sums over groups.

    Parameters
    ----------
    errors : (groups, candidates)
        Of :func:`group_errors`.
    sizes : (groups,)
        Sum of the weights in each group.

    Example
    -------
    >>> scores(np.array([[1.0, np.inf], [3.0, 1.0]]), np.array([1.0, 1.0]))
    (array([ 2., inf]), array([ 1., inf]))
    """
    used = sizes > 0.0
    errors, sizes = errors[used], sizes[used]
    n, total = sizes.size, sizes.sum()
    if n == 0:
        return np.full(errors.shape[1], np.inf), np.full(errors.shape[1], np.inf)
    means = errors.sum(axis=0) / total
    finite = np.isfinite(means)
    spread = np.full(means.size, np.inf)
    if n > 1:
        with np.errstate(over="ignore"):
            squares = ((errors[:, finite] - means[finite] * sizes[:, None]) ** 2).sum(axis=0)
        spread[finite] = np.sqrt(squares * n / (n - 1)) / total
    return means, spread


def least(means: FloatArray, scale: float = 0.0) -> int:
    """The first candidate whose score is within ``TIE`` of the least, or not worse than exact.

    ``scale`` is the mean square of the targets: scores below ``EXACT`` of it are rounding.

    Example
    -------
    >>> least(np.array([3.0, 1.0000001, 1.0, 2.0]))
    1
    """
    smallest = float(means.min())
    return int(np.flatnonzero(means <= max(smallest * (1.0 + TIE), EXACT * scale))[0])


def within_one_standard_error(errors: FloatArray) -> int:
    """The first candidate whose error is within one standard error of the least; with fewer than two groups the least.

    The standard error is that of the difference to the best candidate, group by group. Breiman, Friedman, Olshen,
    Stone: Classification and Regression Trees, 1984, section 3.4.3.

    Parameters
    ----------
    errors : (groups, candidates)
        Of :func:`group_errors`, the simplest candidate first.

    Example
    -------
    >>> within_one_standard_error(np.array([[9.0, 2.0, 1.0], [9.0, 0.5, 1.0], [9.0, 1.0, 1.0]]))
    1
    """
    total = errors.sum(axis=0)
    best = int(np.argmin(total))
    if len(errors) < 2 or not np.isfinite(total[best]):
        return best
    finite = np.isfinite(total)
    margin = np.zeros(total.size)
    with np.errstate(over="ignore"):  # of what has nearly diverged; its margin is infinite, and so is its distance
        margin[finite] = (errors[:, finite] - errors[:, [best]]).std(axis=0, ddof=1) * np.sqrt(len(errors))
    margin[~np.isfinite(margin)] = 0.0
    return int(np.flatnonzero(total <= total[best] + margin)[0])
