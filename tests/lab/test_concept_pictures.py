"""The pictures of docs/concepts.md can be drawn again."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tlstd_lab.pictures import concepts as concept_pictures
from tlstd_lab.pictures.concepts import PICTURES, errors_by_rank, rows

from tests.helpers import batch_lstd
from tlstd.domains.mountain_car import MountainCar
from tlstd.features.rbf import RBF
from tlstd.streams import record

PAGE = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text(encoding="utf-8")


def test_the_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["concept_pictures", "--out", str(tmp_path)])
    few = {name: draw for name, draw in PICTURES.items() if name != "concept_truncation.png"}
    monkeypatch.setattr(concept_pictures, "PICTURES", few)  # what that one draws is tested below
    said: list[str] = []
    concept_pictures.main(said.append)
    assert said == [str(tmp_path / name) for name in few]
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in few)
    assert all(f"](figures/{name})" in PAGE for name in PICTURES)


def test_the_system_is_that_of_lstd() -> None:
    car = MountainCar()
    steps = record(car, None, RBF(car.low, car.high, grid=3, width=0.4), n_steps=300, seed=0)
    Z, D = rows(steps, lambda_=0.7)
    A, b = batch_lstd(steps, 0.7)
    np.testing.assert_allclose(Z.T @ D / len(Z), A, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(Z.T @ steps.rewards / len(Z), b[:, 0], rtol=1e-12, atol=1e-14)


def test_few_samples_want_a_smaller_rank() -> None:
    few, _, many = (np.median(errors, axis=0) for errors in errors_by_rank(3).values())
    assert few.argmin() < 60
    assert few[-1] > 3 * few.min()
    assert many[-1] < 1.5 * many.min()
