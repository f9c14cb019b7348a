"""Whatever is thrown at an estimator: it learns, or it raises a TlstdError and is unchanged. Nothing else.

Here 60 inputs for every estimator; ``uv run tlstd campaign`` has 20,000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tlstd_lab.campaign import inputs

from tlstd.checks import children
from tlstd.classic.lstd import LSTD
from tlstd.errors import TlstdError
from tlstd.estimators.registry import ESTIMATORS
from tlstd.truncated.tlstd import TLSTD

MODELS: dict[str, Callable[..., Any]] = {
    **ESTIMATORS,
    "LSTD recursive, forgetting": lambda n: LSTD(n, lambda_=0.8, solver="recursive", beta=0.1),
    "TLSTD, short buffer": lambda n: TLSTD(n, 3, lambda_=0.8, buffer_size=4),
    "TLSTD replacing, forgetting": lambda n: TLSTD(n, 3, lambda_=0.8, buffer_size=4, beta=0.1, trace="replacing"),
}


@pytest.mark.parametrize(
    ("names", "tries"),
    [
        pytest.param(["TD"], 3, id="TD"),
        pytest.param([name for name in MODELS if name != "TD"], 3, id="others"),
        *(pytest.param([name], 100, id=f"{name}-100", marks=pytest.mark.long) for name in MODELS),
    ],
)
def test_random_inputs(names: list[str], tries: int) -> None:
    """One child for several models: to make it takes longer than most of them."""
    tasks = {}
    for name in names:
        factory, seed = MODELS[name], sorted(MODELS).index(name)  # other inputs for each model
        tasks[name] = inputs.input_task(factory, finite=isinstance(factory(inputs.D), (LSTD, TLSTD)), seed=seed)
    numbers = [(name, i) for name in names for i in range(tries)]
    outcomes = children.run(lambda n: tasks[numbers[n][0]](numbers[n][1]), range(len(numbers)), seconds=inputs.SECONDS)
    assert [(numbers[outcome.number], outcome.words) for outcome in outcomes if outcome.failed] == []


def test_many_inputs_are_refused_and_many_are_not() -> None:
    rng, refused = np.random.default_rng(0), 0
    for _ in range(500):
        try:
            inputs.throw(LSTD(inputs.D, lambda_=0.8), rng, finite=True)
        except TlstdError:
            refused += 1
    assert 50 < refused < 400
