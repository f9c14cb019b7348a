"""Sparse arrays of every format, sound and put together by hand, and flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from tlstd import TD
from tlstd.core.arrays import as_matrix
from tlstd.errors import InvalidInputError

FORMATS = ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"]
kinds = pytest.mark.parametrize("kind", ["array", "matrix"])


def _object_rows(*rows: Any) -> Any:
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


class TestSparseFormats:
    @kinds
    @pytest.mark.parametrize("layout", FORMATS)
    def test_random_ones_against_dense(self, layout: str, kind: str) -> None:
        rng = np.random.default_rng(0)
        for shape in ((1, 1), (3, 5), (5, 3), (4, 4), (0, 3), (3, 0), (2, 40)):
            for density in (0.0, 0.3, 1.0):
                dense = rng.standard_normal(shape) * (rng.random(shape) < density)
                X = getattr(sp, f"{layout}_{kind}")(dense)
                csr: Any = as_matrix(X)
                assert_array_equal(csr.toarray(), dense)
                assert csr.has_canonical_format
                assert csr.indices.dtype == csr.indptr.dtype == np.int64

    @kinds
    @pytest.mark.parametrize("layout", FORMATS)
    @pytest.mark.parametrize("dtype", [np.float16, np.longdouble, np.uint8, ">f8"])
    def test_number_types_that_scipy_cannot_convert(self, layout: str, kind: str, dtype: Any) -> None:
        dense = np.array([[0, 1, 0], [2, 0, 3]], dtype=np.float64)
        X = getattr(sp, f"{layout}_{kind}")(dense)
        if layout not in ("lil", "dok"):
            X.data = X.data.astype(dtype)
        csr: Any = as_matrix(X)
        assert_array_equal(csr.toarray(), dense)
        assert csr.data.dtype == np.dtype("=f8")

    @pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint32, np.uint64, ">i8"])
    @pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
    def test_index_types_that_scipy_does_not_use(self, layout: str, dtype: Any) -> None:
        dense = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
        X = getattr(sp, f"{layout}_array")(dense)
        X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
        assert_array_equal(as_matrix(X).toarray(), dense)  # type: ignore[union-attr]

    def test_diagonals_against_dense(self) -> None:
        rng = np.random.default_rng(0)
        for _ in range(60):
            shape = tuple(int(n) for n in rng.integers(1, 6, 2))
            offsets = rng.permutation(np.arange(-8, 9))[: rng.integers(0, 8)]
            X = sp.dia_array((rng.standard_normal((offsets.size, rng.integers(1, 9))), offsets), shape=shape)
            expected = np.zeros(shape)
            for offset, diagonal in zip(offsets, X.data, strict=True):
                for j, value in enumerate(diagonal):
                    if j < shape[1] and 0 <= j - offset < shape[0]:
                        expected[j - offset, j] = value
            assert_array_equal(as_matrix(X).toarray(), expected)  # type: ignore[union-attr]

    def test_repeated_entries_add_up_and_are_checked_again(self) -> None:
        coo = sp.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
        assert_array_equal(as_matrix(coo).toarray(), [[0.0, 3.0], [4.0, 0.0]])  # type: ignore[union-attr]
        for layout in ("coo", "csr"):
            X = getattr(sp, f"{layout}_array")(np.array([[1.0, 2.0]]))
            (X.col if layout == "coo" else X.indices)[:] = 0
            X.data[:] = 0.9e100
            with pytest.raises(InvalidInputError, match=r"1\.8e\+100"):
                as_matrix(X)


class TestBrokenByHand:
    """Each of these once crashed, was read past its end, or was believed."""

    @staticmethod
    def refuse(layout: str, kind: str, change: Callable[[Any], None], match: str = "X") -> None:
        X = getattr(sp, f"{layout}_{kind}")(np.arange(1.0, 13.0).reshape(4, 3))
        change(X)
        with pytest.raises(InvalidInputError, match=match):
            as_matrix(X)
        with pytest.raises(InvalidInputError):
            TD(3, step_size=0.1, lambda_=0.0).predict(X)

    @kinds
    @pytest.mark.parametrize(
        "change",
        [
            lambda X: X.rows[0].append(1),
            lambda X: X.data[0].append(1.0),
            lambda X: X.data[0].clear(),
            lambda X: X.rows[0].__setitem__(0, 10**8),
            lambda X: X.rows[0].__setitem__(0, -1),
            lambda X: X.rows[0].__setitem__(0, 0.5),
            lambda X: X.rows[0].__setitem__(0, None),
            lambda X: X.rows[0].__setitem__(0, "0"),
            lambda X: X.rows[0].__setitem__(0, [0, 1]),
            lambda X: X.rows[0].__setitem__(0, 2**70),
            lambda X: X.data[0].__setitem__(0, None),
            lambda X: X.data[0].__setitem__(0, "1"),
            lambda X: X.data[0].__setitem__(0, 1j),
            lambda X: X.data[0].__setitem__(0, np.nan),
            lambda X: X.data[0].__setitem__(0, [1.0]),
            lambda X: X.rows.__setitem__(0, None),
            lambda X: X.rows.__setitem__(0, (0, 1, 2)),
            lambda X: X.data.__setitem__(0, np.ones(3)),
            lambda X: setattr(X, "rows", X.rows[:-1]),
            lambda X: setattr(X, "data", X.data[:-1]),
            lambda X: setattr(X, "rows", _object_rows([0], [0], [0], [0], [0])),
            lambda X: setattr(X, "rows", np.zeros((4, 3))),
            lambda X: setattr(X, "rows", None),
        ],
    )
    def test_lists_of_rows(self, kind: str, change: Callable[[Any], None]) -> None:
        self.refuse("lil", kind, change)

    @kinds
    @pytest.mark.parametrize(
        "key",
        [(0, 3), (4, 0), (-1, 0), (0, -1), (0, 10**8), (0, 0.5), ("0", "1"), (0,), (0, 1, 2), 0, "01", (0, 2**70)],
    )
    def test_dictionaries_of_keys(self, kind: str, key: Any) -> None:
        self.refuse("dok", kind, lambda X: X._dict.__setitem__(key, 1.0))

    @kinds
    @pytest.mark.parametrize("value", [None, "1", 1j, np.nan, [1.0], 1e200])
    def test_values_of_dictionaries(self, kind: str, value: Any) -> None:
        self.refuse("dok", kind, lambda X: X._dict.__setitem__((0, 0), value))

    @kinds
    @pytest.mark.parametrize(
        "change",
        [
            lambda X: setattr(X, "offsets", X.offsets[:-1]),
            lambda X: setattr(X, "offsets", X.offsets + 0.5),
            lambda X: setattr(X, "offsets", np.zeros_like(X.offsets)),
            lambda X: setattr(X, "offsets", X.offsets[:, None]),
            lambda X: setattr(X, "offsets", X.offsets[0]),
            lambda X: setattr(X, "offsets", None),
            lambda X: setattr(X, "offsets", [2**70] * 6),
            lambda X: setattr(X, "data", X.data[0]),
            lambda X: setattr(X, "data", X.data[:-1]),
            lambda X: setattr(X, "data", X.data[:, :, None]),
            lambda X: setattr(X, "data", X.data.astype(complex)),
            lambda X: X.data.fill(np.nan),
        ],
    )
    def test_diagonals(self, kind: str, change: Callable[[Any], None]) -> None:
        self.refuse("dia", kind, change)

    @kinds
    def test_diagonals_far_outside_are_empty(self, kind: str) -> None:
        for offset in (2**32 + 1, -(2**32) - 1, 2**62, -(2**63)):  # 1 and -1 when cut to 32 bits
            X = getattr(sp, f"dia_{kind}")(np.eye(3))
            X.offsets = np.array([offset])
            assert as_matrix(X).nnz == 0  # type: ignore[union-attr]

    @kinds
    @pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda X: setattr(X, "indices", X.indices.astype(float)),
            lambda X: setattr(X, "indptr", X.indptr.astype(float)),
            lambda X: setattr(X, "indices", X.indices.astype(bool)),
            lambda X: setattr(X, "indices", X.indices.astype(object)),
            lambda X: setattr(X, "indices", X.indices.astype(str)),
            lambda X: setattr(X, "indices", X.indices[:, None]),
            lambda X: setattr(X, "indices", None),
            lambda X: setattr(X, "indptr", X.indptr[None]),
            lambda X: setattr(X, "indptr", None),
            lambda X: setattr(X, "indptr", X.indptr[::-1].astype(np.uint64)),
            lambda X: setattr(X, "data", X.data.astype(str)),
            lambda X: setattr(X, "data", X.data[..., None]),
            lambda X: setattr(X, "data", None),
        ],
    )
    def test_compressed(self, layout: str, kind: str, change: Callable[[Any], None]) -> None:
        self.refuse(layout, kind, change)

    def test_float_indices_are_named(self) -> None:
        def floats(X: Any) -> None:
            X.indices = X.indices + 0.0

        self.refuse("csr", "array", floats, "column indices of X have type float64 .* integers")

    @kinds
    @pytest.mark.parametrize("shape", [(12, 0, 1), (12, 1, 0), (4, 3, 2), (2, 3, 2)])
    def test_blocks(self, kind: str, shape: tuple[int, ...]) -> None:
        self.refuse("bsr", kind, lambda X: setattr(X, "data", np.ones(shape)))

    @kinds
    def test_coordinates(self, kind: str) -> None:
        def change(X: Any) -> None:
            X.coords = (X.row, X.col + 0.0)

        self.refuse("coo", kind, change, "column indices of X have type float64")

    @pytest.mark.parametrize("make", [sp.coo_array, sp.csr_array, sp.dok_array])
    def test_one_dimension(self, make: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"x is a sparse array of shape \(3,\): .*SparseVector"):
            TD(3, step_size=0.1, lambda_=0.0).predict(make(np.array([1.0, 0.0, 2.0])))


@pytest.mark.parametrize("x", [3.0, 3, True, np.float64(3.0), np.array(3.0)])
def test_one_number_is_not_said_to_need_two_dimensions(x: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"x is .*, a single number: pass") as caught:
        TD(3, step_size=0.1, lambda_=0.0).predict(x)
    assert "dimension" not in str(caught.value)
