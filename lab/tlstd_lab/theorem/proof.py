"""The inequalities in the proof of Theorem 1, one by one, as numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlstd_lab.theorem.bounds import Comparison


class Step(NamedTuple):
    """One inequality left <= right, which rounding may break by ``slack``."""

    name: str
    left: float
    right: float
    slack: float

    @property
    def holds(self) -> bool:
        """Whether it holds up to rounding."""
        return self.left <= self.right * (1.0 + 1e-9) + self.slack


def proof_steps(
    comparison: Comparison, rank: int, *, p: float, constant: float = 1.0, squared: bool = False
) -> list[Step]:
    """Both sides of each inequality that the proof chains together, in its order.

    Parameters
    ----------
    comparison : Comparison
    rank : int
    p, constant : float
        Of the Picard condition.
    squared : bool
        Read the proof's undefined norm as a squared norm, of numbers too.

    Returns
    -------
    list of Step
        "last line" is the proof's last display as printed, whose left side is squared while the theorem uses it
        unsquared; the others are what the theorem needs.

    Example
    -------
    >>> from tlstd_lab.theorem import compare
    >>> A = np.diag([1.0, 0.5])
    >>> steps = proof_steps(compare(A, [0.5, 0.1], A + 0.01, [0.5, 0.1]), 1, p=1.5)
    >>> [step.name for step in steps if not step.holds]
    []
    """
    c, k, r = comparison, comparison.rank, rank
    d, C, q = c.n_features, constant, p - 1.0
    power = 2.0 if squared else 1.0
    result = c.bound(r, p=p, constant=constant)
    reading = result.squared if squared else result.norm
    kept = np.abs(c.V_t[:, r:].T @ c.V[:, :k])  # |v̂ᵢᵀvⱼ|, i > r
    weighted = c.sigma[:k] ** q
    apart = c.V[:, :k] * weighted - c.V_t[:, :k] * c.sigma_t[:k] ** q
    bias = result.bias_part**power
    roots = (np.abs(c.V_t[:, r:].T @ c.weights) ** power).sum()
    terms = ((kept * np.abs(c.coefficients)) ** power).sum()
    smooth = ((C * kept * weighted) ** power).sum()
    differences = ((C * np.abs(c.V_t[:, r:].T @ apart)) ** power).sum()
    rest = ((C * c.sigma_t[r:k] ** q) ** power).sum()
    lengths = ((C * np.linalg.norm(apart, axis=0)) ** power).sum()
    largest = C * c.sigma_t[r - 1] ** q
    steps = [
        ("split: error <= noise part + bias", result.error, result.noise_part + bias),
        ("noise part <= residual / smallest kept", result.noise_part, result.noise),
        ("bias <= sum of its coordinates", bias, roots),
        ("first bound of the coordinates", roots, (d - r) * (C * _last(c, r) ** q + reading.cap)),
        ("triangle inequality over j", roots, terms),
        ("Picard condition", terms, smooth),
        ("add and subtract", smooth, differences + rest),
        ("unit vectors", differences, (d - r) * lengths),
        ("rest <= (d - r) largest", rest, (d - r) * largest),
        ("second bound of the bias", bias, reading.drift + reading.bias),
        ("last line", result.bias_part**2, reading.drift + reading.bias),
    ]
    slack = max(1e-12, result.tolerance)
    return [Step(name, float(left), float(right), slack) for name, left, right in steps]


def _last(c: Comparison, rank: int) -> float:
    return float(c.sigma[rank - 1]) if rank <= c.rank else 0.0
