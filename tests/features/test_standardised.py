"""Maps that are fitted to observations: what a column with one value is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tlstd.features import Polynomial, RandomFourier


@pytest.mark.parametrize("value", [0.0, 3.0, -1e17, 1.7e18, 1e90, 1e-300])
@pytest.mark.parametrize("fit", [Polynomial.fit, RandomFourier.fit])
def test_a_column_with_one_value_says_nothing(fit: Any, value: float) -> None:
    """Values that were never seen there count as the one that was; adding 1 to a large one does not change it."""
    seen = np.random.default_rng(0).standard_normal((100, 2))
    seen[:, 1] = value
    features = fit(seen)
    other = seen.copy()
    other[:, 1] += 1.0 + abs(value)
    assert_allclose(features.encode_many(other), features.encode_many(seen), atol=1e-12)


@pytest.mark.parametrize("fit", [Polynomial.fit, RandomFourier.fit])
def test_the_order_of_observations_does_not_matter(fit: Any) -> None:
    rng = np.random.default_rng(0)
    seen = rng.standard_normal((500, 3))
    assert_allclose(fit(seen).encode_many(seen), fit(rng.permutation(seen)).encode_many(seen), atol=1e-12)
