"""Models saved by an earlier version (``tests/saved``, made from each entry of the registry) load and go on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tlstd
from tests.helpers import random_transitions

FOLDER = Path(__file__).parents[1] / "saved"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_models_of_before_load_and_go_on(name: str) -> None:
    model = tlstd.load(FOLDER / name)
    sparse = name.endswith("sparse")
    steps = random_transitions(
        np.random.default_rng(0),
        n_features=model.n_features,
        n_steps=97,
        density=0.1 if sparse else 1.0,
        sparse=sparse,
    )
    assert model.n_updates == 37
    np.testing.assert_allclose(model.weights, EXPECTED[name]["weights"], rtol=1e-9, atol=1e-12)
    model.update_many(steps[37:])
    np.testing.assert_allclose(model.weights, EXPECTED[name]["weights_after_60_more"], rtol=1e-9, atol=1e-12)
