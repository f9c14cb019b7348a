"""Saved models whose entries are finite but near the largest number: their answers are data, never a foreign error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tlstd_lab.campaign.files import pack, unpack

import tlstd
from tests.estimators.test_saving import accepts, make, stream
from tlstd.checks.data import temporary_folder
from tlstd.data.transitions import Transitions
from tlstd.errors import TlstdError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import ESTIMATORS


def use(model: LinearEstimator, steps: Transitions, path: Path) -> None:
    """Everything that reads or changes a model; the library's own errors are fine, and warnings are not."""
    for read in (
        lambda: model.weights,
        lambda: model.sparse_weights,
        lambda: model.predict(steps[0].x),
        lambda: model.predict(steps.X),
        lambda: getattr(model, "singular_values", None),
        lambda: model.update(steps[0]),
        lambda: model.weights,
        lambda: model.update_many(steps[:20]),
        lambda: model.update_and_predict(steps[:3]),
        lambda: model.weights,
        lambda: model.save(path),
    ):
        with suppress(TlstdError):
            read()


@pytest.fixture
def folder() -> Iterator[Path]:
    with temporary_folder() as path:
        yield Path(path)


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind in ("dense", "sparse") for name in ESTIMATORS if accepts(name, kind)]
)
def test_reads_of_huge_numbers_are_data(name: str, kind: str, folder: Path) -> None:
    steps = stream(1, 40, sparse=kind == "sparse")
    model, path, n_loaded = make(name), folder / "model", 0
    model.update_many(steps)
    model.save(path)
    data = path.read_bytes()
    floats = [key for key, array in unpack(data)[1].items() if array.dtype.kind == "f" and array.size]
    sizes = (1e99, 1e300, -1.7e308)
    for i, keys in enumerate((*([key] for key in floats), floats)):
        for largest in sizes if keys == floats else (sizes[i % 2], sizes[2]):
            header, arrays = unpack(data)
            for key in keys:
                size = np.abs(arrays[key]).max()
                arrays[key] = np.full_like(arrays[key], largest) if size == 0.0 else arrays[key] / size * largest
            path.write_bytes(pack(header, arrays))
            try:
                loaded = tlstd.load(path)
            except TlstdError:
                continue
            n_loaded += 1
            use(loaded, steps, folder / "again")
    assert n_loaded
