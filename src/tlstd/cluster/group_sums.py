"""What the episodes of a shard have moved a value by, as sums: enough for a standard error, however many there are.

Of every group (an episode, or a block of a long one) three numbers matter: c, what it has moved the value by; q, the
sum of its squared factors u_t = hᵀz_t; and k, its number of states asked for. A shard says their sums and sums of
products, and the three numbers themselves of the groups at its borders, which may go on in another shard.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray


class GroupSums(NamedTuple):
    """Of one shard. c, errors and values are in units of a power of two, so that their squares are floats."""

    continues: bool
    """Whether the first group began in a shard before this one."""
    head: FloatArray
    """(3,): c, q and k of that group's part here."""
    tail: FloatArray | None
    """(3,): of the last group that begins here, which may go on; None if none does."""
    inner: FloatArray
    """(3, 3) sums of products of (c, q, k) over the other groups that begin here."""
    sums: FloatArray
    """(3,): sums of c, q and k over these."""
    n_groups: int
    """Number of these."""
    squared_errors: float
    """Σ δ_t²."""
    squared_values: float
    """Σ (v - their mean)² over the states asked for."""


class Stretches(NamedTuple):
    """Where episodes begin in a shard."""

    n_samples: int
    first: int
    """The first sample with which an episode begins; ``n_samples`` if none does."""
    last: int
    """The last one."""
    long: list[tuple[int, int]]
    """First sample and length of episodes that begin and end here and are longer than asked."""
    log_discount: float
    """Sum of the logarithms of the discounts, each at least the tail that does not count."""


def summed(
    starts: IntArray, c: FloatArray, q: FloatArray, k: FloatArray, errors: FloatArray, squared_values: float
) -> GroupSums:
    """The sums of a shard from numbers of its samples (N,), given the samples with which groups begin."""
    columns = np.column_stack([c, q, k])
    before = int(starts[0]) if starts.size else len(columns)
    head = columns[:before].sum(axis=0)
    groups = np.add.reduceat(columns, starts, axis=0) if starts.size else np.zeros((0, 3))
    inner, tail = groups[:-1], groups[-1] if starts.size else None
    # einsum, not BLAS: the same order of summation everywhere
    products = np.einsum("gi,gj->ij", inner, inner)
    square = float((errors * errors).sum())
    return GroupSums(before > 0, head, tail, products, inner.sum(axis=0), len(inner), square, squared_values)


class Spread(NamedTuple):
    """What all groups say about the value."""

    n_groups: int
    standard_error: float
    degrees: float


def spread(parts: Iterable[GroupSums], n_samples: int, n_asked: int, unit: float = 1.0) -> Spread:
    """The standard error and its degrees of freedom, as in :class:`~tlstd.evaluation.influence.Influence`.

    Parameters
    ----------
    parts : GroupSums
        Of all shards, in their order.
    n_samples, n_asked : int
        Samples in all, and states asked for in all; 0 if these were given.
    unit : float
        That of the parts.
    """
    products, sums, n = np.zeros((3, 3)), np.zeros(3), 0
    squared_errors = squared_values = 0.0
    open_: FloatArray | None = None

    def close() -> None:
        nonlocal products, sums, n
        if open_ is not None:
            products, sums, n = products + np.outer(open_, open_), sums + open_, n + 1

    for part in parts:
        if part.continues:
            open_ = part.head if open_ is None else open_ + part.head
        if part.tail is not None:
            close()
            open_ = part.tail
        products, sums, n = products + part.inner, sums + part.sums, n + part.n_groups
        squared_errors += part.squared_errors
        squared_values += part.squared_values
    close()
    if n < 2:
        return Spread(n, float("inf"), 1.0)
    error = unit * float(np.sqrt(max(0.0, n / (n - 1) * (products[0, 0] - sums[0] ** 2 / n))))
    # the variance of a group if all errors, and all values, are equally noisy: of_error q + of_value k
    of_error = squared_errors / n_samples**3
    of_value = squared_values / n_asked**3 if n_asked else 0.0
    both = np.array([of_error, of_value])
    total, squares = both @ sums[1:], both @ products[1:, 1:] @ both
    return Spread(n, error, max(1.0, total**2 / squares - 1.0) if squares > 0.0 else n - 1.0)
