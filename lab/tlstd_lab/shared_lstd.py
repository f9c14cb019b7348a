"""LSTD for sweeps: candidates that learn from the same transitions share A and its SVD."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.svd import inverse_factors, svd
from tlstd.data.transitions import Transitions
from tlstd.estimators.base import LinearEstimator


class Family:
    """What the last member has learned from, its system, and that system's SVD once it was needed."""

    def __init__(self) -> None:
        self.learned: Transitions | None = None
        self.system: Any = None
        self.factors: tuple[FloatArray, FloatArray, FloatArray] | None = None


class Member(LSTD):
    """LSTD that takes over A and its SVD if a fresh member learns from what the member before it has learned from.

    The same numbers as :class:`~tlstd.LSTD` to the bit. Members differ in the cut-off, or in the ridge, and in nothing
    else; one that shares its system must learn nothing more.
    """

    def __init__(self, family: Family, n_features: int, **options: Any) -> None:
        super().__init__(n_features, **options)
        self._family = family

    def update_many(self, transitions: Transitions | Iterable[Transitions]) -> None:
        """Learn, or take over the system of the member that has learned from the same object."""
        family = self._family
        if self.n_updates == 0 and family.learned is transitions:
            self._system = family.system
            return
        super().update_many(transitions)
        assert isinstance(transitions, Transitions)
        family.learned, family.system, family.factors = transitions, self._system, None

    def _solve(self) -> tuple[IntArray, FloatArray]:
        family = self._family
        if self.ridge > 0.0 or self._system is not family.system or not self._system.n:
            return super()._solve()
        A, b = self._system.averaged()
        if family.factors is None:
            family.factors = svd(A)
        U, sigma, Vt = family.factors
        return self._system.seen.ids.copy(), Vt.T @ (inverse_factors(sigma, rcond=self.rcond)[:, None] * (U.T @ b))


def sharing(estimator: dict[str, Any], n_features: int) -> Callable[..., LinearEstimator]:
    """A function that makes members of one family from further options of ``LSTD``.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import LSTD, random_walk
    >>> steps = random_walk(5, gamma=0.9).sample(300, np.random.default_rng(0))
    >>> make = sharing({"class": "LSTD", "lambda_": 0.9}, 5)
    >>> for rcond in (0.1, 1e-3):
    ...     member, alone = make(rcond=rcond), LSTD(5, lambda_=0.9, rcond=rcond)
    ...     for model in (member, alone):
    ...         model.update_many(steps)
    ...     print(bool((member.weights == alone.weights).all()))
    True
    True
    """
    options = {name: value for name, value in estimator.items() if name != "class"}
    family = Family()
    return lambda **more: Member(family, n_features, **options | more)
