"""Whatever is thrown at an estimator: it learns, or it raises a TlstdError and is unchanged. Nothing else.

Here 60 inputs for every estimator; ``uv run tlstd campaign`` has 20,000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tlstd.checks import inputs
from tlstd.errors import TlstdError
from tlstd.estimators.lstd import LSTD
from tlstd.estimators.registry import ESTIMATORS
from tlstd.estimators.tlstd import TLSTD

MODELS: dict[str, Callable[..., Any]] = {
    **ESTIMATORS,
    "LSTD recursive, forgetting": lambda n: LSTD(n, lambda_=0.8, solver="recursive", beta=0.1),
    "TLSTD, short buffer": lambda n: TLSTD(n, 3, lambda_=0.8, buffer_size=4),
    "TLSTD replacing, forgetting": lambda n: TLSTD(n, 3, lambda_=0.8, buffer_size=4, beta=0.1, trace="replacing"),
}


@pytest.mark.parametrize("tries", [3, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", MODELS)
def test_random_inputs(name: str, tries: int) -> None:
    factory, seed = MODELS[name], sorted(MODELS).index(name)  # other inputs for each model
    finite = isinstance(factory(inputs.D), (LSTD, TLSTD))
    outcomes = inputs.try_inputs(factory, tries, finite=finite, seed=seed)
    assert [outcome for outcome in outcomes if outcome.failed] == []


def test_many_inputs_are_refused_and_many_are_not() -> None:
    rng, refused = np.random.default_rng(0), 0
    for _ in range(500):
        try:
            inputs.throw(LSTD(inputs.D, lambda_=0.8), rng, finite=True)
        except TlstdError:
            refused += 1
    assert 50 < refused < 400
