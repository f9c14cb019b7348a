"""The kinds of random streams that several estimators are tested on, and how what they learn is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.estimators.base import LinearEstimator

Model = TypeVar("Model", bound=LinearEstimator)

STREAMS: dict[str, dict[str, Any]] = {
    "dense": {},
    "dense, sparse storage": {"sparse": True},
    "sparse": {"sparse": True, "density": 0.2},
    "sparse, dense storage": {"density": 0.2},
    "off-policy": {"off_policy": True},
    "off-policy, sparse": {"off_policy": True, "sparse": True, "density": 0.2},
    "short episodes": {"terminate": 0.4, "truncate": 0.3, "density": 0.2},
    "all terminate": {"terminate": 1.0, "sparse": True, "density": 0.2},
    "all truncated": {"truncate": 1.0},
    "one long episode": {"terminate": 0.0, "truncate": 0.0, "gamma": 1.0, "density": 0.2},
    "undiscounted": {"gamma": 1.0, "terminate": 0.1, "sparse": True, "density": 0.2},
    "several targets": {"n_targets": 4, "off_policy": True, "sparse": True, "density": 0.2},
    "several targets, dense": {"n_targets": 4, "off_policy": True},
}
"""Options of :func:`tests.helpers.random_transitions`."""

ON_POLICY: dict[str, dict[str, Any]] = {
    kind: {name: value for name, value in options.items() if name != "off_policy"}
    for kind, options in STREAMS.items()
    if not kind.startswith("off-policy")
}
"""The same without importance ratios."""

LAMBDAS = pytest.mark.parametrize("lambda_", [0.0, 0.5, 1.0])


def assert_weights(model: LinearEstimator, expected: FloatArray, tolerance: float = 1e-11) -> None:
    """Relative to the largest weight, which is neither tiny nor that of a run that diverges."""
    size = np.abs(expected).max()
    assert 1e-3 < size < 1e3
    assert_allclose(model.weights.reshape(expected.shape), expected, rtol=0.0, atol=tolerance * size)


def learned_in_pieces(make: Callable[[], Model], steps: Transitions) -> list[Model]:
    """Models that have learned from the same steps in one call, one by one, and in a few calls (one of them empty)."""
    whole, single, cut = make(), make(), make()
    whole.update_many(steps)
    for t in steps:
        single.update(t)
    for part in (steps[:1], steps[1:40], steps[40:40], steps[40:]):
        cut.update_many(part)
    return [whole, single, cut]
