"""The page on Krylov LSTD has the tables that follow from the stored measurements."""

import json
from pathlib import Path

import numpy as np
import pytest
from tlstd_lab.measurements.krylov.__main__ import TOPICS, main, tables
from tlstd_lab.measurements.krylov.growth import refresh_from
from tlstd_lab.tables import with_tables

from tlstd import KrylovLSTD, random_walk

ROOT = Path(__file__).parents[3]


def test_the_page_says_what_was_measured() -> None:
    page = (ROOT / "docs" / "krylov.md").read_text(encoding="utf-8")
    stored = json.loads((ROOT / "docs" / "figures" / "krylov.json").read_text(encoding="utf-8"))
    assert set(stored) == set(TOPICS)
    assert with_tables(page, tables(stored)) == page
    assert all(f"](figures/{topic.picture.file})" in page for topic in TOPICS.values() if topic.picture)


def test_unknown_measurements_are_refused() -> None:
    with pytest.raises(SystemExit, match="there is no measurement nonsense: choose from energy, car, time"):
        main("time", "nonsense")


def test_a_stream_refreshes_where_the_benchmark_says() -> None:
    n = refresh_from(100)
    model = KrylovLSTD(19, lambda_=0.5, dimension=3, reads="stream")
    model.update_many(random_walk(19).sample(n, np.random.default_rng(0)))
    assert model._stream is not None
    assert model._stream.refreshed == n >= 100
