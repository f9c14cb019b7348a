from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import random_transitions
from tlstd.classic.lstd import LSTD
from tlstd.diagnostics import effective_rank, singular_values, spectrum
from tlstd.errors import CapacityError, InvalidInputError, InvalidParameterError
from tlstd.truncated.tlstd import TLSTD


def test_spectrum_is_the_root_of_the_eigenvalues_of_the_square() -> None:
    A = np.random.default_rng(0).standard_normal((5, 8))
    assert_allclose(spectrum(A) ** 2, np.linalg.eigvalsh(A @ A.T)[::-1], rtol=1e-12)


def test_spectrum_of_a_sparse_matrix() -> None:
    rng = np.random.default_rng(1)
    dense = np.zeros((60, 50))
    dense[np.ix_([3, 7, 40], [0, 9, 49, 20])] = rng.standard_normal((3, 4))
    for make in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        assert_allclose(spectrum(make(dense)), spectrum(dense), atol=1e-14)
    assert_array_equal(spectrum(sp.csr_array((3, 2))), [0.0, 0.0])


def test_spectrum_of_a_wide_sparse_matrix_takes_no_room() -> None:
    sigma = spectrum(sp.csr_array(([3.0, -4.0], ([0, 999_999], [999_999, 5])), shape=(1_000_000, 1_000_000)))
    assert_array_equal(sigma[:3], [4.0, 3.0, 0.0])


def test_spectrum_of_a_model() -> None:
    stream = random_transitions(np.random.default_rng(2), n_features=6, n_steps=200)
    model, full = TLSTD(6, 4, lambda_=0.5, buffer_size=200), LSTD(6, lambda_=0.5)
    assert spectrum(model).size == 0
    model.update_many(stream)
    full.update_many(stream)
    assert_allclose(spectrum(model), spectrum(full.system()[1])[:4], rtol=1e-10)


def test_effective_rank_by_counting() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        sigma = rng.random(20) ** 4
        weight = float(rng.uniform(0.05, 1.0))
        falling = sorted(sigma, reverse=True)
        n, total = 0, 0.0
        while total < weight * sum(falling) - 1e-12:
            total += falling[n]
            n += 1
        assert effective_rank(sigma, weight) == n


def test_effective_rank_of_a_geometric_spectrum() -> None:
    assert effective_rank(0.5 ** np.arange(60)) == 5  # 1 − 2⁻⁵ = 0.97, 1 − 2⁻⁴ = 0.94
    assert effective_rank(0.25 ** np.arange(60)) == 3  # squares: 1 − 4⁻³ = 0.98, 1 − 4⁻² = 0.94
    assert effective_rank(np.ones(100)) == 95
    assert effective_rank([]) == effective_rank([0.0, 0.0]) == 0


@pytest.mark.parametrize("weight", [0.0, -0.1, 1.1, np.nan, "half"])
def test_bad_weight(weight: Any) -> None:
    with pytest.raises(InvalidParameterError, match="weight is"):
        effective_rank([1.0], weight)


def test_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match=r"singular_values contain -1\.0.*spectrum"):
        effective_rank([1.0, -1.0])
    with pytest.raises(InvalidInputError, match=r"A contains nan"):
        spectrum([[np.nan]])
    with pytest.raises(InvalidInputError, match=r"A has shape \(3,\)"):
        spectrum([1.0, 2.0, 3.0])
    monkeypatch.setattr(singular_values, "LARGEST", 3)
    with pytest.raises(CapacityError, match="A has 4 rows and 4 columns"):
        spectrum(np.eye(4))
    with pytest.raises(CapacityError, match="singular_values of a TLSTD model"):
        spectrum(sp.eye_array(5, format="csr"))
