"""The command, its cases, and that ``docs/experiments.md`` says what was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.testing import assert_allclose
from tlstd_lab.executors import InProcess
from tlstd_lab.measurements.theorem import __main__ as theorem
from tlstd_lab.questions.theorem.systems import FAMILIES, cases, sampled, smooth_walk
from tlstd_lab.questions.theorem.tikhonov import against_tikhonov, tikhonov_of
from tlstd_lab.store import Store
from tlstd_lab.theorem import compare

from tlstd.domains import boyan_chain

DOCS = Path(__file__).parents[2] / "docs"
FIGURES = [f"theorem_{name}.png" for name in ("trade_off", "picard", "shares", "tikhonov")]


@pytest.mark.long
def test_smoke(tmp_path: Path) -> None:
    lines: list[str] = []
    theorem.main(["--scale", "smoke", "--out", str(tmp_path / "new")], lines.append)
    page = (DOCS / "experiments.md").read_text()
    for name in FIGURES:
        assert imread(tmp_path / "new" / name).shape == imread(DOCS / "figures" / name).shape
        assert f"](figures/{name})" in page
    results = json.loads((tmp_path / "new" / "theorem.json").read_text())
    assert set(results["families"]) == set(FAMILIES)
    fails = results["all"]["fails with the smallest C"]
    assert (fails["norm"], fails["ours"], fails["ours, Picard"], fails["unaligned"]) == (0, 0, 0, 0)
    assert any("fails" in line for line in lines)


def test_what_is_stored_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = theorem.Study("smoke")
    study.families = {"cycle": study.families["cycle"]}
    study.trade_offs, study.tikhonov = {}, {}
    first = study.run(Store(tmp_path))
    monkeypatch.setattr(InProcess, "run", lambda *_: pytest.fail("a stored run was computed again"))
    again = study.run(Store(tmp_path))
    spec = study.families["cycle"]
    np.testing.assert_array_equal(first[spec].columns["norm"], again[spec].columns["norm"])


def test_page_says_what_was_measured() -> None:
    page = (DOCS / "experiments.md").read_text()
    results = json.loads((DOCS / "figures" / "theorem.json").read_text())
    assert results["scale"] == "paper"
    everything = results["all"]
    fails = everything["fails with the smallest C"]
    steps = everything["steps that fail"]
    assert (fails["norm"], fails["ours"], fails["ours, Picard"]) == (0, 0, 0)
    numbers = [
        everything["cases × ranks"],
        everything["assumption holds as stated"],
        everything["void"],
        everything["squared fails with ε < 0"],
        everything["fails with C=1 where the assumption does not"]["norm"],
        fails["squared"],
        fails["other basis"],
        steps["last line"],
        steps["² triangle inequality over j"],
        steps["² add and subtract"],
        steps["² split: error <= noise part + bias"],
    ]
    for number in numbers:
        assert re.search(rf"(?<![\d,]){number:,}(?![\d,]\d)", page), number
    for name, family in results["families"].items():
        row = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
        n = family["cases × ranks"]
        assert f"| {100 * family['assumption holds as stated'] / n:.0f}% |" in row
        assert f"| {family['fails with the smallest C']['squared']} of {n:,} | {family['void']} |" in row


def test_cases_do_not_depend_on_their_number() -> None:
    few = {(family, i): case for i, (family, case, _) in enumerate(cases(1))}
    many = [case for family, case, _ in cases(2)][::2]
    for first, second in zip(few.values(), many, strict=True):
        for a, b in zip(first, second, strict=True):
            assert_allclose(a, b, rtol=0.0, atol=0.0)


def test_samples_converge_to_the_system() -> None:
    chain = boyan_chain()
    A, b = chain.system(0.5)
    A_t, b_t = sampled(chain, 0.5, 200_000, np.random.default_rng(0))
    assert np.abs(A_t - A).max() < 0.01
    assert np.abs(b_t - b).max() < 0.05


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_equal_variance(rank: int) -> None:
    """The same trace of (regularised inverse)(regularised inverse)ᵀ, with matrices."""
    process = smooth_walk()
    A, b = process.system(1.0)
    comparison = compare(A, b, *sampled(process, 1.0, 2000, np.random.default_rng(1)))
    A_t = (comparison.U_t * comparison.sigma_t) @ comparison.V_t.T
    eta = tikhonov_of(comparison.sigma_t, rank)
    smooth = np.linalg.solve(A_t.T @ A_t + eta * np.eye(b.size), A_t.T)
    cut = np.linalg.pinv(
        (comparison.U_t[:, :rank] * comparison.sigma_t[:rank]) @ comparison.V_t[:, :rank].T, rcond=1e-9
    )
    assert_allclose((smooth**2).sum(), (cut**2).sum(), rtol=1e-6)
    w, values = comparison.weights, against_tikhonov(comparison, rank)
    expected = [inverse @ right - w for inverse in (cut, smooth) for right in (A_t @ w, comparison.right)]
    assert_allclose(values, np.linalg.norm(expected, axis=1), rtol=1e-6)


def test_nothing_to_regularise() -> None:
    assert tikhonov_of(np.array([2.0, 1.0]), 2) == 0.0
    assert tikhonov_of(np.array([2.0, 1.0, 0.0]), 2) == 0.0
