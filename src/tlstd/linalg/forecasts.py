"""How well the solutions of each dimension have predicted samples that came after them, summed up as samples leave.

When samples are folded, the Krylov space of everything known is there, and with it the solutions of all its dimensions.
At the next folding they are compared with the returns of the samples that have come since, of which they know nothing.
Only sums over these errors are kept, so that a dimension can be chosen by far more samples than are stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlstd.linalg import held_out
from tlstd.linalg.krylov import KrylovPath
from tlstd.linalg.old_part import Forecasts
from tlstd.linalg.sample_operator import SampleOperator
from tlstd.linalg.threads import one_thread
from tlstd.types import FloatArray

GROUPS = 5
"""Folds by whose number the length of blocks is set, where samples have no episodes: as in the choice by folds."""

_LARGEST = 1e140  # of an error that is added up: its square, and the sum of many, are finite


def in_basis(Q: FloatArray, paths: Sequence[KrylovPath], n_dimensions: int) -> FloatArray:
    """The solutions of dimension 1, …, M of each path in a basis Q (n, k) of a space that has them, (k, paths, M)."""
    out = np.zeros((Q.shape[1], len(paths), n_dimensions))
    with one_thread():
        for i, path in enumerate(paths):
            Y = np.zeros((path.Q.shape[0], n_dimensions))
            for m in range(n_dimensions):
                y = path.coordinates(m + 1)
                Y[: y.size, m] = y
            out[:, i] = (Q.T @ path.Q.T) @ Y
    return out


def compared(
    forecasts: Forecasts, Q: FloatArray, operator: SampleOperator, known: int, reference: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Errors, sizes and squares with the samples of ``operator`` added, none of which the solutions know.

    Parameters
    ----------
    Q : (n₀, k)
        The basis of the solutions, over the features that were seen then.
    known : int
        Samples that they were made of.
    reference : int
        Dimension of the solution that completes returns which are not seen to their end.
    """
    samples, beta = operator.samples, operator.beta
    rewards, discounts, trace_discounts, rhos = samples.columns()
    n_targets, n_dimensions = forecasts.errors.shape[1:]
    weights, forgotten = np.full(samples.n_kept, float(known)), 1.0
    if beta is not None:
        weights = (1.0 - beta) ** np.arange(samples.n_kept - 1.0, -1.0, -1.0)
        forgotten = (1.0 - beta) ** samples.n_kept
    V = np.zeros((operator.n, Q.shape[1]))
    V[: Q.shape[0]] = Q
    on_x, on_next = operator.values(V)
    folds = held_out.make_folds(discounts, trace_discounts, GROUPS, weights)
    with one_thread():
        v0 = None
        if held_out.needs_reference(discounts, rhos, folds, weights):
            y = forecasts.solutions[:, :, min(reference, n_dimensions) - 1]
            v0 = held_out.Reference(on_x @ y, on_next @ y)
        predictions = np.tensordot(on_x, forecasts.solutions, axes=1)
    targets = held_out.held_out_targets(rewards, discounts, rhos, folds, weights, reference=v0)
    s = np.bincount(folds.group, targets.weights, folds.n_groups)
    used = s > 0.0
    n_states = np.count_nonzero(targets.weights)
    sizes = np.array([s.sum(), (s**2).sum(), targets.n_effective, np.count_nonzero(used), n_states])
    errors = np.zeros(forecasts.errors.shape)
    for target in range(n_targets):
        e = held_out.group_errors(
            predictions[:, target], targets.values[:, target], targets.weights, folds.group, folds.n_groups
        )
        e = np.minimum(e[used], _LARGEST)
        errors[:, target] = e.sum(axis=0), (e**2).sum(axis=0), (e * s[used, None]).sum(axis=0)
    squares = targets.weights @ np.minimum(targets.values**2, _LARGEST)
    once, twice = forgotten, forgotten**2  # squares of sums are forgotten twice as fast
    return (
        np.array([once, twice, twice])[:, None, None] * forecasts.errors + errors,
        np.array([once, twice, once, once, once]) * forecasts.sizes + sizes,
        once * forecasts.squares + squares,
    )
