"""A report whose every name is hostile, its page, and a browser to look at it with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.browser import chrome
from tests.evaluation.trust_logs import regulator
from tlstd import Log
from tlstd.evaluation import Report, evaluate
from tlstd.page import write_page

__all__ = ["chrome", "page", "report"]

NASTY = "</title></style><script>alert('x')</script>\"'><img src=x onerror=alert(1)>&amp;{{style}}"


@pytest.fixture(scope="session")
def report() -> Report:
    """Of a log with three columns, whose ends are time limits: red."""
    log = regulator(0, n_episodes=60)
    names = np.repeat([f"{i} {NASTY}" for i in range(60)], np.diff(log.episodes))
    rng = np.random.default_rng(0)
    assert log.actions is not None
    hostile = Log.from_arrays(
        np.hstack([log.observations, rng.standard_normal((len(log), 1))]),
        log.rewards,
        actions=log.actions,
        terminated=log.truncated,
        episodes=names,
        columns=[f"{c} {NASTY}" for c in "abc"],
    )
    return evaluate(
        replace(hostile, source=f"{NASTY}.parquet"), gamma=0.97, estimators=["KrylovLSTD", "mean of returns"]
    )


@pytest.fixture(scope="session")
def page(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as a file."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(report, path)
    return path
