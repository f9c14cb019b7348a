from __future__ import annotations

import array
import contextlib
import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.helpers import dense, random_transitions
from tests.strategies import cuts, pieces
from tlstd.core.arrays import as_matrix
from tlstd.data.transitions import Transition, TransitionBuilder, Transitions
from tlstd.data.vectors import SparseVector, as_vector
from tlstd.errors import CapacityError, InvalidInputError, InvalidParameterError, TlstdError


class HasArray:
    """What torch tensors and pandas columns are to NumPy: an owner of memory that it hands out."""

    def __init__(self, values: list[float]) -> None:
        self.memory = np.array(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.memory


class TestSparseVector:
    def test_sorts_adds_and_drops(self) -> None:
        x = SparseVector([7, 2, 7, 5, 0, 0], [1.0, 3.0, 0.5, 0.0, 2.0, -2.0], size=10)
        assert_array_equal(x.indices, [2, 7])
        assert_array_equal(x.values, [3.0, 1.5])
        assert (x.size, len(x), x.nnz) == (10, 10, 2)
        assert_array_equal(x.toarray(), [0, 0, 3, 0, 0, 0, 0, 1.5, 0, 0])
        assert repr(x) == "SparseVector(nnz=2, size=10)"

    @given(st.lists(st.tuples(st.integers(0, 29), st.integers(-2, 2)), max_size=40))
    def test_entries_in_any_order(self, entries: list[tuple[int, int]]) -> None:
        expected = [0.0] * 30
        for i, v in entries:
            expected[i] += v
        x = SparseVector([i for i, _ in entries], [float(v) for _, v in entries], 30)
        assert_array_equal(x.toarray(), expected)
        assert (x.values != 0.0).all()
        assert (np.diff(x.indices) > 0).all()

    @pytest.mark.parametrize(
        ("indices", "values"),
        [
            ([1, 2], [1, 2]),
            ((1, 2), (1.0, 2.0)),
            (np.array([1, 2], dtype=np.uint8), np.array([1, 2], dtype=np.float32)),
            (np.array([1, 2], dtype=np.int16), np.array([1, 2], dtype=np.int8)),
            (np.array([1, 2], dtype=np.uint64), np.array([1, 2], dtype=np.float16)),
            (np.array([1, 9, 2, 9])[::2], np.array([1.0, 9.0, 2.0, 9.0])[::2]),
            (array.array("l", [1, 2]), array.array("d", [1.0, 2.0])),
        ],
    )
    def test_number_types(self, indices: Any, values: Any) -> None:
        x = SparseVector(indices, values, np.int32(4))  # type: ignore[arg-type]
        assert_array_equal(x.toarray(), [0, 1, 2, 0])
        assert x.indices.dtype == np.int64
        assert x.values.dtype == np.float64
        assert type(x.size) is int

    def test_float32_is_widened_not_rounded_again(self) -> None:
        x = SparseVector([0], np.array([0.1], dtype=np.float32), 1)
        assert x.values[0] == float(np.float32(0.1))

    def test_booleans_are_values_but_not_indices(self) -> None:
        assert_array_equal(SparseVector([0, 1], [True, False], 2).values, [1.0])
        with pytest.raises(InvalidInputError, match="integers"):
            SparseVector([True, False], [1.0, 1.0], 2)

    @pytest.mark.parametrize("size", [2**31, 2**62, 2**63 - 1])
    def test_huge_size(self, size: int) -> None:
        x = SparseVector([size - 1, 0], [2.0, 1.0], size)
        assert_array_equal(x.indices, [0, size - 1])
        assert len(x) == size
        with pytest.raises(InvalidInputError, match=str(size)):
            SparseVector([size], [1.0], size)

    def test_dense_form_of_a_huge_vector_is_refused(self) -> None:
        with pytest.raises(CapacityError, match="indices and values"):
            SparseVector([1], [1.0], 2**62).toarray()

    def test_subnormal_values_are_kept(self) -> None:
        assert SparseVector([0], [5e-324], 1).nnz == 1
        assert SparseVector([0, 0], [5e-324, -5e-324], 1).nnz == 0
        assert SparseVector([0], [-0.0], 1).nnz == 0

    def test_empty(self) -> None:
        nothing: tuple[Any, ...] = ([], (), np.zeros(0), np.zeros(0, dtype=np.int64))
        for empty in nothing:
            x = SparseVector(empty, [], 3)
            assert x.nnz == 0
            assert x.indices.dtype == np.int64
            assert_array_equal(x.toarray(), np.zeros(3))

    @pytest.mark.parametrize(
        ("indices", "values"),
        [
            ([-1], [1.0]),
            ([4], [1.0]),
            ([0, 2**40], [1.0, 1.0]),
            (np.array([2**63 + 1], dtype=np.uint64), [1.0]),
            ([2**63], [1.0]),
            ([2**70], [1.0]),
            ([0.0], [1.0]),
            ([1.5], [1.0]),
            ([np.nan], [1.0]),
            (["0"], [1.0]),
            ([None], [1.0]),
            ([1j], [1.0]),
            (0, [1.0]),
            ([[0]], [1.0]),
            (np.zeros((1, 0), dtype=np.int64), []),
            ([[0], [0, 1]], [1.0]),
            (np.array([0], dtype=object), [1.0]),
            (np.array([0], dtype="datetime64[s]"), [1.0]),
            (np.ma.masked_array([0, 1], mask=[False, True]), [1.0, 1.0]),
        ],
    )
    def test_bad_indices(self, indices: Any, values: Any) -> None:
        with pytest.raises(InvalidInputError):
            SparseVector(indices, values, 4)

    @pytest.mark.parametrize(
        "values",
        [
            [np.nan, 0.0],
            [np.inf, 0.0],
            [0.0, -np.inf],
            [1e300, 0.0],
            [0.0, -1.1e100],
            [1.0],
            [1.0, 2.0, 3.0],
            1.0,
            [[1.0, 2.0]],
            [[1.0], [1.0, 2.0]],
            [1j, 0j],
            ["1.0", "2.0"],
            [b"1", b"2"],
            [None, 1.0],
            np.array([1.0, 2.0], dtype=object),
            np.array(["1e4000", "1"], dtype=np.longdouble),
            [10**400, 1],
            np.array([0, 1], dtype="timedelta64[s]"),
            np.ma.masked_array([1.0, 1.0], mask=[False, True]),
        ],
    )
    def test_bad_values(self, values: Any) -> None:
        with pytest.raises(InvalidInputError):
            SparseVector([0, 1], values, 4)

    def test_sums_of_repeated_entries_are_checked_too(self) -> None:
        SparseVector([0, 0], [0.5e100, 0.5e100], 1)
        with pytest.raises(InvalidInputError, match="1e\\+100"):
            SparseVector([0, 0], [0.9e100, 0.9e100], 1)

    @pytest.mark.parametrize("size", [0, -1, True, np.True_, 3.0, "3", None, [3], 2**63, 2**70, np.nan])
    def test_bad_size(self, size: Any) -> None:
        with pytest.raises(InvalidParameterError, match="size is"):
            SparseVector([0], [1.0], size)

    @pytest.mark.parametrize("order", [[0, 2], [2, 0]])
    @pytest.mark.parametrize("kind", [np.array, array.array, HasArray])
    def test_inputs_are_neither_aliased_nor_changed(self, order: list[int], kind: Any) -> None:
        indices = array.array("q", order) if kind is array.array else np.array(order)
        values = array.array("d", [1.0, 2.0]) if kind is array.array else kind([1.0, 2.0])
        x = SparseVector(indices, values, 3)
        expected = x.toarray()
        memory = values.memory if isinstance(values, HasArray) else values
        assert list(indices) == order
        assert list(memory) == [1.0, 2.0]
        indices[0] = 1
        memory[0] = 9.0
        assert_array_equal(x.toarray(), expected)

    def test_read_only_inputs(self) -> None:
        indices, values = np.array([1, 1, 0]), np.ones(3)
        indices.flags.writeable = values.flags.writeable = False
        assert_array_equal(SparseVector(indices, values, 2).toarray(), [1, 2])

    def test_cannot_be_changed(self) -> None:
        x = SparseVector([0], [1.0], 2)
        for stored in (x.indices, x.values):
            with pytest.raises(ValueError, match="read-only"):
                stored[0] = 1
        with pytest.raises(AttributeError):
            x.size = 3  # type: ignore[misc]

    def test_from_dense(self) -> None:
        values = np.array([0.0, 2.0, -0.0, 5e-324])
        x = SparseVector.from_dense(values)
        assert_array_equal(x.indices, [1, 3])
        assert_array_equal(x.toarray(), values)
        values[1] = 7.0
        assert x.values[0] == 2.0
        for bad in ([np.nan], [[1.0]], 1.0, ["a"]):
            with pytest.raises(InvalidInputError):
                SparseVector.from_dense(bad)
        with pytest.raises(InvalidParameterError, match="size is 0"):
            SparseVector.from_dense([])

    @pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
    def test_copies(self, clone: Callable[[SparseVector], SparseVector]) -> None:
        x = SparseVector([1], [2.0], 3)
        assert_array_equal(clone(x).toarray(), x.toarray())


class TestVectorsAndMatrices:
    def test_dense_vectors_are_copied(self) -> None:
        for values in (np.array([1.0, 2.0]), np.array([[1.0, 0.0], [2.0, 0.0]])[:, 0], np.array([1, 2])):
            x = as_vector(values)
            values[0] = 9
            assert_array_equal(dense(x), [1.0, 2.0])
            assert values.flags.writeable

    @pytest.mark.parametrize("make", [HasArray, lambda values: array.array("d", values), memoryview])
    def test_other_owners_of_memory_are_copied(self, make: Callable[[Any], Any]) -> None:
        values = make(np.array([1.0, 2.0]) if make is memoryview else [1.0, 2.0])
        x = as_vector(values)
        (values.memory if isinstance(values, HasArray) else values)[0] = 9.0
        assert_array_equal(dense(x), [1.0, 2.0])

    def test_dense_vectors_are_locked(self) -> None:
        for values in ([1.0, 2.0], (1.0, 2.0), np.array([1.0, 2.0]), np.array([1, 2])):
            assert not dense(as_vector(values)).flags.writeable

    def test_sparse_vectors_pass_through(self) -> None:
        x = SparseVector([0], [1.0], 1)
        assert as_vector(x) is x

    @pytest.mark.parametrize("x", [1.0, [[1.0]], [np.nan], ["a"], None, sp.csr_array([[1.0]]), sp.coo_array([1.0])])
    def test_bad_vectors(self, x: Any) -> None:
        with pytest.raises(InvalidInputError):
            as_vector(x)

    def test_dense_matrices_are_not_copied_unless_they_must_be(self) -> None:
        X = np.ones((3, 2))
        assert as_matrix(X) is X
        assert np.shares_memory(as_matrix(X[1:]), X)
        for other in (np.asfortranarray(np.ones((3, 2))), np.ones((3, 4))[:, ::2], np.ones((3, 2), dtype=np.int8)):
            result = as_matrix(other)
            assert isinstance(result, np.ndarray)
            assert result.flags.c_contiguous
            assert result.dtype == np.float64

    @pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.bool_])
    @pytest.mark.parametrize("kind", ["array", "matrix"])
    def test_every_sparse_format(self, layout: str, dtype: Any, kind: str) -> None:
        rng = np.random.default_rng(0)
        expected = rng.integers(0, 2, (5, 4)).astype(dtype)
        X = getattr(sp, f"{layout}_{kind}")(expected)
        csr = as_matrix(X)
        assert isinstance(csr, sp.csr_array)
        assert_array_equal(csr.toarray(), expected)
        assert_array_equal(X.toarray(), expected)
        assert csr.indices.dtype == csr.indptr.dtype == np.int64
        assert csr.data.dtype == np.float64

    def test_canonical_csr_is_shared(self) -> None:
        X = sp.csr_array(np.eye(3))
        assert np.shares_memory(as_matrix(X).data, X.data)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
    @pytest.mark.parametrize("index", [np.int32, np.int64])
    @pytest.mark.parametrize("entries", [[2, 0, 1], [1, 1, 0], [0, 1, 2]], ids=["unsorted", "repeated", "zeros"])
    def test_other_csr_is_copied(self, entries: list[int], index: Any, dtype: Any) -> None:
        data = np.array([1, 0 if entries[0] == 0 else 2, 3], dtype=dtype)
        X = sp.csr_array((data, np.array(entries, dtype=index), np.array([0, 2, 3], dtype=index)), shape=(2, 3))
        before = [a.copy() for a in (X.data, X.indices, X.indptr)]
        expected = np.zeros((2, 3))
        for row, column, value in zip([0, 0, 1], entries, data, strict=True):
            expected[row, column] += value
        csr: Any = as_matrix(X)
        assert_array_equal(csr.toarray(), expected)
        assert csr.has_canonical_format
        assert (csr.data != 0.0).all()
        for now, then in zip((X.data, X.indices, X.indptr), before, strict=True):
            assert_array_equal(now, then)

    def test_stale_flags_are_not_believed(self) -> None:
        X = sp.csr_array(np.array([[1.0, 2.0, 0.0]]))
        assert X.has_canonical_format  # computed here, and remembered by SciPy
        X.indices[:] = [1, 0]
        csr: Any = as_matrix(X)
        assert_array_equal(csr.indices, [0, 1])
        assert_array_equal(csr.data, [2.0, 1.0])

    def test_huge_width(self) -> None:
        for width in (2**31, 2**62):
            X = sp.csr_array((np.array([1.0, 2.0]), np.array([width - 1, 5]), np.array([0, 2])), shape=(1, width))
            csr: Any = as_matrix(X)
            assert_array_equal(csr.indices, [5, width - 1])

    @staticmethod
    def broken(layout: str, change: Callable[[Any], None]) -> Any:
        X = getattr(sp, f"{layout}_array")(np.arange(1.0, 13.0).reshape(4, 3))
        change(X)
        return X

    @pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda X: X.indices.__setitem__(0, 100),
            lambda X: X.indices.__setitem__(0, -1),
            lambda X: X.indptr.__setitem__(0, 1),
            lambda X: X.indptr.__setitem__(1, 100),
            lambda X: X.indptr.__setitem__(-1, 10**6),
            lambda X: setattr(X, "indptr", X.indptr[:-1]),
            lambda X: setattr(X, "indices", X.indices[:-1]),
            lambda X: setattr(X, "data", X.data[:-1]),
        ],
    )
    def test_hand_broken_compressed(self, layout: str, change: Callable[[Any], None]) -> None:
        with pytest.raises(InvalidInputError):
            as_matrix(self.broken(layout, change))

    @pytest.mark.parametrize(
        "change",
        [
            lambda X: X.row.__setitem__(0, 4),
            lambda X: X.col.__setitem__(0, 3),
            lambda X: X.col.__setitem__(0, -1),
            lambda X: setattr(X, "data", X.data[:-1]),
        ],
    )
    def test_hand_broken_coordinates(self, change: Callable[[Any], None]) -> None:
        with pytest.raises(InvalidInputError):
            as_matrix(self.broken("coo", change))

    @pytest.mark.parametrize(
        "X",
        [
            [1.0, 2.0],
            1.0,
            np.ones((1, 1, 1)),
            [[1.0], [1.0, 2.0]],
            [["a"]],
            [[np.inf]],
            [[1e300]],
            [[1j]],
            None,
            sp.csr_array([[1j]]),
            sp.csr_array([[np.nan]]),
            sp.coo_array([[1e101]]),
            sp.coo_array([1.0, 2.0]),
            sp.csr_array([1.0, 2.0]),
            np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]]),
        ],
        ids=str,
    )
    def test_bad_matrices(self, X: Any) -> None:
        with pytest.raises(InvalidInputError):
            as_matrix(X)


def make(**changes: Any) -> Transition:
    values: dict[str, Any] = {"x": [1.0, 0.0], "reward": 1.0, "x_next": [0.0, 1.0], "discount": 0.9}
    values |= {"trace_discount": 0.5} | changes
    return Transition(values.pop("x"), values.pop("reward"), values.pop("x_next"), **values)


class TestTransition:
    def test_fields(self) -> None:
        t = make()
        assert (t.reward, t.discount, t.trace_discount, t.rho) == (1.0, 0.9, 0.5, 1.0)
        assert (t.n_features, t.n_targets) == (2, 1)
        with pytest.raises(AttributeError):
            t.rho = 2.0  # type: ignore[misc]

    def test_features_are_copied_and_locked(self) -> None:
        x, x_next, reward = np.ones(2), np.ones(2), np.ones(3)
        t = make(x=x, x_next=x_next, reward=reward)
        x[:] = x_next[:] = 5.0
        reward[:] = 5.0
        for stored in (t.x, t.x_next, t.reward):
            assert isinstance(stored, np.ndarray)
            assert (stored == 1.0).all()
            assert not stored.flags.writeable

    @pytest.mark.parametrize(
        ("reward", "n_targets"),
        [(1, 1), (np.float32(1), 1), (np.array(1.0), 1), ([1.0], 1), (True, 1), ([1, 2], 2), (np.ones(5), 5)],
    )
    def test_rewards(self, reward: Any, n_targets: int) -> None:
        t = make(reward=reward)
        assert t.n_targets == n_targets
        assert isinstance(t.reward, float) == (n_targets == 1)

    @pytest.mark.parametrize("reward", [np.nan, np.inf, 1e101, [], [[1.0]], "1", None, [np.nan, 1.0], 1j])
    def test_bad_rewards(self, reward: Any) -> None:
        with pytest.raises(InvalidInputError, match="reward"):
            make(reward=reward)

    @pytest.mark.parametrize("name", ["discount", "trace_discount"])
    @pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9, np.nan, np.inf, -np.inf, "0.9", None, [0.9], 1j, 10**400])
    def test_bad_discounts(self, name: str, value: Any) -> None:
        with pytest.raises(InvalidInputError, match=name):
            make(**{name: value})

    @pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, True, np.float32(0.5), np.int8(1), np.array(0.5), 5e-324])
    def test_good_discounts(self, value: Any) -> None:
        t = make(discount=value, trace_discount=value)
        assert type(t.discount) is type(t.trace_discount) is float
        assert t.discount == float(value)

    @pytest.mark.parametrize("rho", [-1e-300, -1, np.nan, np.inf, 1e101, "1", None, [1.0], 10**400, -(10**400)])
    def test_bad_rho(self, rho: Any) -> None:
        with pytest.raises(InvalidInputError, match="rho"):
            make(rho=rho)

    @pytest.mark.parametrize("rho", [0, 1, 1e100, np.float32(2), np.array(3)])
    def test_good_rho(self, rho: Any) -> None:
        assert make(rho=rho).rho == float(rho)

    def test_sizes_must_agree(self) -> None:
        with pytest.raises(InvalidInputError, match="x has 2 features but x_next has 3"):
            make(x_next=[0.0, 0.0, 1.0])
        with pytest.raises(InvalidInputError, match="x_next has 3"):
            make(x_next=SparseVector([0], [1.0], 3))

    def test_dense_and_sparse_may_mix(self) -> None:
        t = make(x_next=SparseVector([1], [1.0], 2))
        assert_array_equal(dense(t.x_next), [0.0, 1.0])

    @pytest.mark.parametrize("name", ["x", "x_next"])
    @pytest.mark.parametrize("value", [1.0, [[1.0, 0.0]], [np.nan, 0.0], sp.csr_array([[1.0, 0.0]]), "ab"])
    def test_bad_features(self, name: str, value: Any) -> None:
        with pytest.raises(InvalidInputError, match=name):
            make(**{name: value})


class TestTransitionBuilder:
    def test_needs_reset(self) -> None:
        build = TransitionBuilder(0.9)
        with pytest.raises(InvalidInputError, match="reset"):
            build.step(0.0, [1.0])
        for end in ({"terminated": True}, {"truncated": True}, {"terminated": True, "truncated": True}):
            build.reset([1.0])
            build.step(0.0, [1.0], **end)
            with pytest.raises(InvalidInputError, match="reset"):
                build.step(0.0, [1.0])

    def test_discounts_of_an_episode(self) -> None:
        build = TransitionBuilder(0.9)
        build.reset([1.0])
        steps = [build.step(float(i), [float(i)]) for i in range(3)]
        steps.append(build.step(3.0, [3.0], terminated=True))
        assert [t.discount for t in steps] == [0.9, 0.9, 0.9, 0.0]
        assert [t.trace_discount for t in steps] == [0.0, 0.9, 0.9, 0.9]
        assert [dense(t.x)[0] for t in steps] == [1.0, 0.0, 1.0, 2.0]

    @pytest.mark.parametrize(
        ("terminated", "truncated", "discount"), [(True, False, 0.0), (False, True, 0.9), (True, True, 0.0)]
    )
    def test_ends(self, terminated: bool, truncated: bool, discount: float) -> None:
        build = TransitionBuilder(0.9)
        build.reset([1.0])
        build.step(0.0, [2.0])
        last = build.step(0.0, [3.0], terminated=terminated, truncated=truncated)
        assert (last.discount, last.trace_discount) == (discount, 0.9)
        build.reset([5.0])
        first = build.step(0.0, [6.0])
        assert (first.discount, first.trace_discount) == (0.9, 0.0)
        assert_array_equal(dense(first.x), [5.0])

    def test_state_dependent_discount_decays_the_next_trace(self) -> None:
        build = TransitionBuilder(0.9)
        build.reset([1.0])
        a = build.step(0.0, [1.0], discount=0.25)
        b = build.step(0.0, [1.0])
        c = build.step(0.0, [1.0], discount=0.5, terminated=True)
        assert (a.discount, b.trace_discount, b.discount, c.trace_discount, c.discount) == (0.25, 0.25, 0.9, 0.9, 0.0)

    def test_reset_in_mid_episode_empties_the_trace(self) -> None:
        build = TransitionBuilder(0.9)
        build.reset([1.0])
        build.step(0.0, [2.0])
        build.reset([3.0])
        assert build.step(0.0, [4.0]).trace_discount == 0.0

    @pytest.mark.parametrize(
        ("arguments", "options"),
        [
            ((np.nan, [1.0]), {}),
            ((0.0, [np.nan]), {}),
            ((0.0, [1.0, 2.0]), {}),
            ((0.0, [1.0]), {"rho": -1.0}),
            ((0.0, [1.0]), {"discount": 1.5}),
            ((0.0, [np.inf]), {"terminated": True}),
        ],
    )
    def test_a_refused_step_can_be_repeated(self, arguments: Any, options: Any) -> None:
        build = TransitionBuilder(0.9)
        build.reset([1.0])
        build.step(0.0, [2.0])
        with pytest.raises(InvalidInputError):
            build.step(*arguments, **options)
        t = build.step(0.0, [3.0])
        assert_array_equal(dense(t.x), [2.0])
        assert t.trace_discount == 0.9

    def test_what_the_environment_reuses_does_not_matter(self) -> None:
        observation = np.array([1.0])
        build = TransitionBuilder(0.9)
        build.reset(observation)
        observation[0] = 2.0
        first = build.step(0.0, observation)
        observation[0] = 3.0
        second = build.step(0.0, observation)
        assert [dense(v)[0] for v in (first.x, first.x_next, second.x, second.x_next)] == [1.0, 2.0, 2.0, 3.0]

    @pytest.mark.parametrize("gamma", [-0.1, 1.1, np.nan, None, "1"])
    def test_bad_gamma(self, gamma: Any) -> None:
        with pytest.raises(InvalidInputError, match="gamma"):
            TransitionBuilder(gamma)


def columns(n: int = 3) -> dict[str, Any]:
    return {"discounts": np.full(n, 0.9), "trace_discounts": np.full(n, 0.5)}


def to_dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


def assert_same(a: Transitions, b: Transitions) -> None:
    assert len(a) == len(b)
    assert (a.n_features, a.n_targets) == (b.n_features, b.n_targets)
    for s, t in zip(a, b, strict=True):
        assert_same_step(s, t)


def assert_same_step(s: Transition, t: Transition) -> None:
    assert_array_equal(dense(s.x), dense(t.x))
    assert_array_equal(dense(s.x_next), dense(t.x_next))
    assert_array_equal(s.reward, t.reward)
    assert (s.discount, s.trace_discount, s.rho) == (t.discount, t.trace_discount, t.rho)


class TestTransitions:
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize(
        ("column", "value"),
        [
            *((name, np.nan) for name in ("store", "next_store", "rewards", "discounts", "trace_discounts", "rhos")),
            *(("store", 1e101), ("next_store", -1e101), ("rewards", 1e101), ("discounts", 1.1)),
            *(("trace_discounts", -0.1), ("rhos", -1.0)),
        ],
    )
    def test_one_step_of_columns_that_were_spoilt_is_refused(self, column: str, value: float, sparse: bool) -> None:
        X = np.ones((4, 3))
        features = [sp.csr_array(X), sp.csr_array(X)] if sparse else [X, X.copy()]
        steps = Transitions(features[0], np.ones(4), features[1], discounts=np.ones(4), trace_discounts=np.ones(4))
        store: Any = getattr(steps, column)
        (store.data if sparse and "store" in column else store)[-1:] = value
        steps[2]
        with pytest.raises(InvalidInputError):
            steps[3]

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("n_targets", [1, 3])
    def test_iteration_is_the_columns(self, sparse: bool, n_targets: int) -> None:
        rng = np.random.default_rng(1)
        steps = random_transitions(
            rng, n_features=5, n_steps=40, density=0.4, sparse=sparse, n_targets=n_targets, off_policy=True
        )
        assert steps.is_sparse == sparse
        X, X_next = to_dense(steps.X), to_dense(steps.X_next)
        listed = list(steps)
        assert len(listed) == len(steps) == 40
        for i, t in enumerate(listed):
            assert isinstance(t.x, SparseVector) == sparse
            assert_array_equal(dense(t.x), X[i])
            assert_array_equal(dense(t.x_next), X_next[i])
            assert_array_equal(t.reward, steps.rewards[i])
            assert t.discount == steps.discounts[i]
            assert t.trace_discount == steps.trace_discounts[i]
            assert t.rho == steps.rhos[i]
        assert_same_step(steps[-1], listed[-1])
        assert_same_step(steps[np.int64(3)], listed[3])  # type: ignore[call-overload]
        for outside in (40, -41):
            with pytest.raises(IndexError):
                steps[outside]

    @pytest.mark.parametrize("sparse", [False, True])
    @given(key=st.slices(20))
    def test_slices(self, sparse: bool, key: slice) -> None:
        steps = random_transitions(np.random.default_rng(2), n_features=4, n_steps=20, sparse=sparse, off_policy=True)
        listed, part = list(steps)[key], steps[key]
        assert len(part) == len(listed)
        for s, t in zip(part, listed, strict=True):
            assert_same_step(s, t)
        assert_array_equal(to_dense(part.X), np.array([dense(t.x) for t in listed]).reshape(-1, 4))
        part.check()

    def test_slices_beyond_the_ends(self) -> None:
        steps = random_transitions(np.random.default_rng(2), n_features=4, n_steps=20)
        assert len(steps[-30:30]) == len(steps[30:-30:-1]) == 20

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("own_next", [False, True])
    @given(at=cuts(20))
    def test_concatenated_pieces_are_the_whole(self, sparse: bool, own_next: bool, at: list[int]) -> None:
        steps = random_transitions(np.random.default_rng(2), n_features=4, n_steps=20, sparse=sparse, off_policy=True)
        if not own_next:
            n = len(steps)
            both = sp.vstack([steps.X, steps.X_next]) if sparse else np.concatenate([steps.X, steps.X_next])
            names = ("discounts", "trace_discounts", "rhos")
            others = {name: getattr(steps, name) for name in names}
            steps = Transitions.from_rows(both, np.arange(n), steps.rewards, np.arange(n, 2 * n), **others)
        whole = Transitions.concatenate(iter(pieces(steps, at)))
        assert len(whole) == 20
        for s, t in zip(whole, steps, strict=True):
            assert_same_step(s, t)

    def test_pieces_that_do_not_fit(self) -> None:
        steps = random_transitions(np.random.default_rng(2), n_features=4, n_steps=20)
        wider = random_transitions(np.random.default_rng(2), n_features=5, n_steps=20)
        with pytest.raises(
            InvalidInputError, match=r"piece 1 is Transitions\(20 steps, 5 .* after Transitions\(20 steps, 4"
        ):
            Transitions.concatenate([steps, wider])
        with pytest.raises(InvalidInputError, match="piece 1 is ndarray: pass Transitions"):
            Transitions.concatenate([steps, np.eye(3)])  # type: ignore[list-item]
        with pytest.raises(InvalidInputError, match="there are no pieces"):
            Transitions.concatenate([])

    def test_a_piece_that_continues(self) -> None:
        rng = np.random.default_rng(0)
        X, ends = rng.normal(size=(9, 2)), np.array([0, 0, 1, 0, 0, 0, 1, 0])
        flags = {"terminated": ends, "truncated": np.zeros(8, dtype=int)}

        def made(rows: slice, gamma: Any, **options: Any) -> Transitions:
            some: dict[str, Any] = {name: flag[rows] for name, flag in flags.items()}
            return Transitions.from_arrays(X[:-1][rows], ends[rows], X[1:][rows], **some, gamma=gamma, **options)

        whole = made(slice(0, 8), 0.9)
        for cut in range(1, 8):
            inside = not ends[cut - 1]
            pieces = [made(slice(0, cut), 0.9), made(slice(cut, 8), 0.9, continues=bool(inside))]
            for s, t in zip(Transitions.concatenate(pieces), whole, strict=True):
                assert_same_step(s, t)
        gammas = np.linspace(0.1, 0.8, 8)
        assert made(slice(2, 8), gammas[2:], continues=0.2).trace_discounts[0] == 0.2
        with pytest.raises(InvalidInputError, match="continues is True, but each step has its own gamma"):
            made(slice(2, 8), gammas[2:], continues=True)
        with pytest.raises(InvalidInputError, match=r"continues is 1\.5: discounts lie in"):
            made(slice(2, 8), 0.9, continues=1.5)

    def test_slices_are_views(self) -> None:
        steps = random_transitions(np.random.default_rng(2), n_features=4, n_steps=20)
        part = steps[5:15][::2]
        assert part.store is steps.store
        assert np.shares_memory(part.rewards, steps.rewards)

    def test_arrays_are_shared_not_copied(self) -> None:
        X, rewards, rhos = np.eye(3), np.zeros(3), np.ones(3)
        steps = Transitions(X, rewards, X, **columns(), rhos=rhos)
        assert steps.store is X
        assert steps.rewards is rewards
        assert steps.rhos is rhos
        assert np.shares_memory(steps.X, X)

    def test_a_trajectory_is_stored_once(self) -> None:
        trajectory = np.random.default_rng(0).standard_normal((1001, 50))
        flags: dict[str, Any] = {"terminated": np.zeros(1000, dtype=bool), "truncated": np.zeros(1000, dtype=bool)}
        views = Transitions.from_arrays(trajectory[:-1], np.zeros(1000), trajectory[1:], **flags, gamma=0.9)
        assert np.shares_memory(views.store, trajectory)
        assert np.shares_memory(views.next_store, trajectory)
        for features in (trajectory, sp.csr_array(trajectory)):
            steps = Transitions.from_episodes([(features, np.zeros(1000), False)], gamma=0.9)
            assert steps.store is steps.next_store
            assert steps.store.shape == (1001, 50)
            rows = np.arange(1000)
            again = Transitions.from_rows(features, rows, np.zeros(1000), rows + 1, **columns(1000))
            assert again.store is again.next_store
            data = (again.store, features) if isinstance(features, np.ndarray) else (again.store.data, features.data)
            assert np.shares_memory(*data)

    @pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
    def test_sparse_formats(self, layout: str) -> None:
        reference = random_transitions(np.random.default_rng(3), n_features=6, n_steps=12, density=0.3)
        steps = Transitions(
            getattr(sp, f"{layout}_array")(reference.X),
            reference.rewards,
            getattr(sp, f"{layout}_array")(reference.X_next),
            discounts=reference.discounts,
            trace_discounts=reference.trace_discounts,
        )
        assert steps.is_sparse
        assert_same(steps, reference)

    def test_dense_and_sparse_may_mix(self) -> None:
        X = np.eye(3)
        both_dense = Transitions(X, np.zeros(3), X, **columns())
        assert_same(Transitions(X, np.zeros(3), sp.csr_array(X), **columns()), both_dense)
        assert_same(Transitions(sp.csr_array(X), np.zeros(3), X, **columns()), both_dense)

    def test_unsorted_repeated_and_zero_entries(self) -> None:
        X = sp.csr_array((np.array([1.0, 2.0, 3.0, 0.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
        steps = Transitions(X, [0.0, 0.0], X, **columns(2))
        assert_array_equal(dense(steps[0].x), [2.0, 0.0, 4.0])
        first, second = steps[0].x, steps[1].x
        assert isinstance(first, SparseVector)
        assert isinstance(second, SparseVector)
        assert (first.nnz, second.nnz) == (2, 0)
        assert X.nnz == 4

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("n_targets", [1, 2])
    def test_all_constructions_agree(self, sparse: bool, n_targets: int) -> None:
        rng = np.random.default_rng(4)
        lengths, ends = [3, 0, 1, 5, 0, 2], [True, False, False, True, True, False]
        episodes: list[tuple[Any, Any, bool]] = []
        build = TransitionBuilder(0.8)
        built: list[Transition] = []
        rows: list[int] = []
        offset = 0
        for length, terminated in zip(lengths, ends, strict=True):
            X = rng.standard_normal((length + 1, 4)) * (rng.random((length + 1, 4)) < 0.6)
            rewards = rng.standard_normal(length if n_targets == 1 else (length, n_targets))
            episodes.append((sp.csr_array(X) if sparse else X, rewards, terminated))
            build.reset(X[0])
            for i in range(length):
                last = i == length - 1
                built.append(
                    build.step(rewards[i], X[i + 1], terminated=last and terminated, truncated=last and not terminated)
                )
            rows += range(offset, offset + length)
            offset += length + 1
        steps = Transitions.from_episodes(episodes, gamma=0.8)
        assert len(steps) == len(built) == sum(lengths)
        assert (steps.is_sparse, steps.n_targets) == (sparse, n_targets)
        for s, t in zip(steps, built, strict=True):
            assert_same_step(s, t)

        store = np.vstack([X.toarray() if sparse else X for X, _, _ in episodes])
        rewards = np.array([t.reward for t in built])
        ended = np.array([t.discount == 0.0 for t in built])
        starts = np.array([t.trace_discount == 0.0 for t in built])
        flags: dict[str, Any] = {"terminated": ended, "truncated": np.append(starts[1:], True) & ~ended}
        as_stored: Any = sp.csc_array if sparse else np.array
        at = np.array(rows)
        assert_same(
            Transitions.from_rows(
                as_stored(store),
                rows,
                rewards,
                at + 1,
                discounts=steps.discounts,
                trace_discounts=steps.trace_discounts,
            ),
            steps,
        )
        for gamma in (0.8, np.full(len(rows), 0.8)):
            assert_same(
                Transitions.from_arrays(as_stored(store[at]), rewards, as_stored(store[at + 1]), **flags, gamma=gamma),
                steps,
            )

    def test_discounts_of_logged_flags(self) -> None:
        steps = Transitions.from_arrays(
            np.eye(6),
            np.zeros(6),
            np.eye(6),
            terminated=[0, 1, 0, 0, 1, 0],
            truncated=[0, 0, 0, 1, 1, 0],
            gamma=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        )
        assert_array_equal(steps.discounts, [0.1, 0.0, 0.3, 0.4, 0.0, 0.6])
        assert_array_equal(steps.trace_discounts, [0.0, 0.1, 0.0, 0.3, 0.0, 0.0])

    @pytest.mark.parametrize("empty", [np.zeros((0, 3)), sp.csr_array((0, 3)), sp.lil_array((0, 3))])
    def test_no_transitions(self, empty: Any) -> None:
        steps = Transitions(empty, [], empty, discounts=[], trace_discounts=[])
        logged = Transitions.from_arrays(empty, [], empty, terminated=[], truncated=[], gamma=0.9)
        for none in (steps, logged, steps[:0], steps[::-1]):
            assert len(none) == 0
            assert list(none) == []
            assert none.X.shape == none.X_next.shape == (0, 3)
            none.check()
        with pytest.raises(IndexError):
            steps[0]

    def test_only_empty_episodes(self) -> None:
        steps = Transitions.from_episodes([(np.ones((1, 3)), [], True), (np.ones((1, 3)), [], False)], gamma=0.9)
        assert (len(steps), steps.n_features) == (0, 3)

    def test_one_target_in_a_column(self) -> None:
        steps = Transitions(np.eye(3), np.ones((3, 1)), np.eye(3), **columns())
        assert steps.n_targets == 1
        assert steps[0].reward == 1.0

    def test_repr(self) -> None:
        assert repr(Transitions(np.eye(3), np.ones((3, 2)), np.eye(3), **columns())) == (
            "Transitions(3 steps, 3 dense features, 2 target(s))"
        )

    @pytest.mark.parametrize(
        "changes",
        [
            {"rewards": np.zeros(2)},
            {"rewards": np.zeros(4)},
            {"rewards": 0.0},
            {"rewards": np.zeros((3, 1, 1))},
            {"rewards": np.zeros((3, 0))},
            {"rewards": [[1.0], [1.0, 2.0], [1.0]]},
            {"rewards": [np.nan, 0.0, 0.0]},
            {"rewards": [np.inf, 0.0, 0.0]},
            {"rewards": [1e101, 0.0, 0.0]},
            {"rewards": ["a", "b", "c"]},
            {"discounts": np.zeros(2)},
            {"discounts": 0.9},
            {"discounts": [0.9, 0.9, 1.1]},
            {"discounts": [0.9, -0.1, 0.9]},
            {"discounts": [0.9, np.nan, 0.9]},
            {"discounts": np.zeros((3, 1))},
            {"trace_discounts": [0.9, 0.9, 1.1]},
            {"trace_discounts": [np.nan, 0.9, 0.9]},
            {"trace_discounts": np.zeros(4)},
            {"rhos": [1.0, 1.0]},
            {"rhos": [1.0, 1.0, -0.1]},
            {"rhos": [1.0, 1.0, np.nan]},
            {"rhos": [1.0, np.inf, 1.0]},
            {"rhos": 1.0},
            {"X": np.eye(4)},
            {"X_next": np.eye(3)[:2]},
            {"X_next": np.ones((3, 4))},
            {"X_next": sp.csr_array(np.ones((3, 4)))},
            {"X": np.ones(3)},
            {"X": [[np.nan, 0.0, 0.0]] * 3},
        ],
        ids=str,
    )
    def test_bad_columns(self, changes: dict[str, Any]) -> None:
        """As they are values, and as arrays of floats, which are looked at in one pass first."""
        (name, value), messages = next(iter(changes.items())), set()
        with contextlib.suppress(ValueError, TypeError):
            changes = {name: np.asarray(value, dtype=np.float64)}
        for change in ({name: value}, changes):
            values: dict[str, Any] = {"X": np.eye(3), "rewards": np.zeros(3), "X_next": np.eye(3), **columns()} | change
            with pytest.raises(InvalidInputError) as error:
                Transitions(values.pop("X"), values.pop("rewards"), values.pop("X_next"), **values)
            messages.add(str(error.value))
        assert len(messages) == 1

    @pytest.mark.parametrize(
        "changes",
        [
            {"gamma": 1.5},
            {"gamma": -0.1},
            {"gamma": np.nan},
            {"gamma": [0.9, 0.9]},
            {"gamma": [0.9]},
            {"gamma": [[0.9, 0.9, 0.9]]},
            {"gamma": [0.9, 0.9, 2.0]},  # although the last step terminates
            {"gamma": "0.9"},
            {"terminated": [False, False]},
            {"terminated": False},
            {"terminated": [0.0, 0.0, 1.0]},
            {"terminated": [[False], [False], [False, True]]},
            {"truncated": ["no", "no", "yes"]},
            {"truncated": [None, None, True]},
        ],
        ids=str,
    )
    def test_bad_logs(self, changes: dict[str, Any]) -> None:
        flags = {"terminated": [False, False, True], "truncated": [False, False, False]}
        values: dict[str, Any] = {**flags, "gamma": 0.9} | changes
        with pytest.raises(InvalidInputError):
            Transitions.from_arrays(np.eye(3), np.zeros(3), np.eye(3), **values)

    @pytest.mark.parametrize(
        "episodes",
        [
            [],
            [(np.eye(3), [1.0, 1.0, 1.0], True)],
            [(np.eye(3), [1.0], True)],
            [(np.eye(3), 1.0, True)],
            [(np.zeros((0, 3)), [], True)],
            [(np.eye(3), [[1.0], [1.0, 2.0]], True)],
            [(np.eye(3), [1.0, np.nan], True)],
            [(np.eye(3), [1.0, "a"], True)],
            [(np.eye(2), [1.0], True), (np.eye(3), [1.0, 1.0], True)],
            [(np.eye(2), [1.0], True), (np.eye(2), [[1.0]], True)],
            [(np.eye(2), [[1.0, 2.0]], True), (np.eye(2), [[1.0, 2.0, 3.0]], True)],
            [(np.eye(2), np.ones((1, 1, 1)), True)],
            [(np.eye(3), [1.0, 1.0], [False, True])],
            [(np.eye(3), [1.0, 1.0], None)],
            [([[1.0, 2.0], [3.0]], [1.0], True)],
        ],
        ids=str,
    )
    def test_bad_episodes(self, episodes: Any) -> None:
        with pytest.raises(InvalidInputError):
            Transitions.from_episodes(episodes, gamma=0.9)

    @pytest.mark.parametrize("rows", [[0, 3], [-1, 0], [0.0, 1.0], [[0, 1]], [True, False], [0], "ab"])
    def test_bad_rows(self, rows: Any) -> None:
        for values in ((rows, [0, 1]), ([0, 1], rows)):
            with pytest.raises(InvalidInputError):
                Transitions.from_rows(np.eye(3), values[0], [0.0, 0.0], values[1], **columns(2))

    @pytest.mark.parametrize("key", [1.0, "1", [0, 1], None, (0, 1)])
    def test_bad_keys(self, key: Any) -> None:
        with pytest.raises(TypeError):
            Transitions(np.eye(3), np.zeros(3), np.eye(3), **columns())[key]


class TestCheck:
    """``check`` finds what was written into the shared arrays after construction."""

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
    def test_features(self, sparse: bool, bad: float) -> None:
        as_stored: Any = sp.csr_array if sparse else np.array
        X, X_next = as_stored(np.ones((3, 3))), as_stored(np.ones((3, 3)))
        steps = Transitions(X, np.zeros(3), X_next, **columns())
        for matrix in (X, X_next):
            data = matrix.data if sparse else matrix.ravel()
            data[4] = bad
            with pytest.raises(InvalidInputError):
                steps.check()
            with pytest.raises(InvalidInputError):
                steps[1]
            steps[:1].check()  # what is not used does not matter
            data[4] = 1.0
            steps.check()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("rewards", np.nan),
            ("rewards", 1e101),
            ("discounts", 1.5),
            ("discounts", np.nan),
            ("trace_discounts", -0.5),
            ("rhos", -1.0),
            ("rhos", np.inf),
        ],
    )
    def test_columns(self, name: str, value: float) -> None:
        steps = random_transitions(np.random.default_rng(0), n_features=2, n_steps=5)
        getattr(steps, name)[3] = value
        with pytest.raises(InvalidInputError, match=name):
            steps.check()
        steps[:3].check()

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("row", [-1, 3, 10**9])
    def test_rows(self, sparse: bool, row: int) -> None:
        store = sp.csr_array(np.eye(3)) if sparse else np.eye(3)
        for at in (0, 1):
            rows = np.array([0, 1]), np.array([1, 2])
            steps = Transitions.from_rows(store, rows[0], np.zeros(2), rows[1], **columns(2))
            rows[at][1] = row
            with pytest.raises(InvalidInputError):
                steps.check()

    @pytest.mark.parametrize(
        "change",
        [
            lambda X: X.indices.__setitem__(1, 99),
            lambda X: X.indices.__setitem__(1, -5),
            lambda X: X.indices.__setitem__(slice(0, 2), [1, 0]),
            lambda X: X.indices.__setitem__(slice(0, 2), [1, 1]),
            lambda X: X.indptr.__setitem__(1, 10**9),
            lambda X: X.indptr.__setitem__(0, -3),
            lambda X: X.indptr.__setitem__(3, 10**9),
            lambda X: X.indptr.__setitem__(2, 0),
        ],
    )
    def test_structure(self, change: Callable[[Any], None]) -> None:
        X = sp.csr_array(np.ones((3, 3)))
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        steps = Transitions(X, np.zeros(3), X, **columns())
        steps.check()
        assert isinstance(steps.store, sp.csr_array)
        change(steps.store)
        with pytest.raises(InvalidInputError):
            steps.check()

    @pytest.mark.parametrize("sparse", [False, True])
    def test_rows_far_apart_are_checked_alone(self, sparse: bool) -> None:
        """A few rows picked from a long store cost no look at all of it."""
        store = np.ones((100, 3))
        store[[3, 97]] = 0.0
        matrix = sp.csr_array(store) if sparse else store
        rows = np.array([98, 3, 97, 1])
        steps = Transitions.from_rows(matrix, rows, np.zeros(4), rows[::-1].copy(), **columns(4))
        kept: Any = steps.store
        values = kept.data[kept.indptr[50] : kept.indptr[51]] if sparse else kept[50]
        values[0] = np.nan
        steps.check()
        values = kept.data[kept.indptr[98] : kept.indptr[99]] if sparse else kept[98]
        values[2] = np.nan
        with pytest.raises(InvalidInputError):
            steps.check()
        values[2] = 1.0
        if sparse:
            for change, where in ((99, kept.indptr[98]), (2, kept.indptr[1])):
                before = kept.indices[where]
                kept.indices[where] = change
                with pytest.raises(InvalidInputError):
                    steps.check()
                kept.indices[where] = before
        steps.check()

    def test_empty_rows_do_not_confuse_the_order(self) -> None:
        rng = np.random.default_rng(0)
        for _ in range(30):
            X = sp.csr_array(rng.random((8, 5)) * (rng.random((8, 5)) < 0.25))
            Transitions(X, np.zeros(8), X[::-1], **columns(8)).check()


def test_every_refusal_is_one_of_ours() -> None:
    for error in (InvalidInputError, InvalidParameterError):
        assert issubclass(error, TlstdError)
        assert issubclass(error, ValueError)
