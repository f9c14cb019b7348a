"""Copies and pickles of the data types are checked and locked like the originals."""

from __future__ import annotations

import copy
import copyreg
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from tests.helpers import random_transitions
from tlstd import TD
from tlstd.core.arrays import locked
from tlstd.data.transitions import _COLUMNS, Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidInputError, TlstdError


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def _pickled_the_old_way(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value, protocol=2))


def _out_of_band(value: Any) -> Any:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytearray(buffer.raw()) for buffer in buffers])


CLONES = [copy.copy, copy.deepcopy, _pickled, _pickled_the_old_way, _out_of_band]
FIELDS = ("rows", "next_rows", "rewards", "discounts", "trace_discounts", "rhos")

clones = pytest.mark.parametrize("clone", CLONES)


@clones
def test_sparse_vectors_stay_locked(clone: Callable[[Any], Any]) -> None:
    x = SparseVector([9, 2], [1.0, -3.0], 2**62)
    twin = clone(x)
    assert_array_equal(twin.indices, x.indices)
    assert_array_equal(twin.values, x.values)
    assert (twin.size, twin.indices.dtype, twin.values.dtype) == (2**62, np.int64, np.float64)
    assert not twin.indices.flags.writeable
    assert not twin.values.flags.writeable


@clones
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("reward", [2.0, [1.0, 2.0]])
def test_transitions_of_one_step_stay_locked(clone: Callable[[Any], Any], sparse: bool, reward: Any) -> None:
    x: Any = SparseVector([0], [1.0], 2) if sparse else [1.0, 0.0]
    x_next: Any = SparseVector([1], [1.0], 2) if sparse else [0.0, 1.0]
    twin = clone(Transition(x, reward, x_next, discount=0.9, trace_discount=0.3, rho=0.5))
    assert (twin.discount, twin.trace_discount, twin.rho, twin.n_features) == (0.9, 0.3, 0.5, 2)
    assert_array_equal(twin.reward, reward)
    assert type(twin.reward) is (float if reward == 2.0 else np.ndarray)
    for vector, given in ((twin.x, x), (twin.x_next, x_next)):
        assert_array_equal(vector.toarray() if sparse else vector, given.toarray() if sparse else given)
    for part in (twin.x, twin.x_next, twin.reward):
        for array in (part.indices, part.values) if isinstance(part, SparseVector) else (part,):
            assert not isinstance(array, np.ndarray) or not array.flags.writeable


def test_what_cannot_change_is_its_own_copy() -> None:
    x = SparseVector([1], [2.0], 3)
    step = Transition(x, 0.0, x, discount=0.9, trace_discount=0.0)
    for value in (x, step):
        assert copy.copy(value) is value
        assert copy.deepcopy(value) is value


@clones
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_columns_of_transitions(clone: Callable[[Any], Any], sparse: bool, n_targets: int) -> None:
    steps = random_transitions(
        np.random.default_rng(0), n_features=4, n_steps=30, sparse=sparse, n_targets=n_targets, off_policy=True
    )
    for given in (steps, steps[3:20:2], steps[:0]):
        twin = clone(given)
        for name in FIELDS:
            assert_array_equal(getattr(twin, name), getattr(given, name))
        assert (twin.n_features, twin.n_targets, len(twin)) == (4, n_targets, len(given))
        for name in ("X", "X_next"):
            now, then = getattr(twin, name), getattr(given, name)
            assert_array_equal(now.toarray() if sparse else now, then.toarray() if sparse else then)
        twin.check()


def _arrays(steps: Transitions) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for name in FIELDS:
        yield name, getattr(steps, name)
    for name in ("store", "next_store"):
        matrix = getattr(steps, name)
        parts = (matrix.data, matrix.indices, matrix.indptr) if sp.issparse(matrix) else (matrix,)
        yield from ((f"{name}{i}", part) for i, part in enumerate(parts))


@clones
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_locked_where_they_were(clone: Callable[[Any], Any], sparse: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        steps = random_transitions(rng, n_features=3, n_steps=8, sparse=sparse)
        for _, array in _arrays(steps):
            if rng.random() < 0.5:
                locked(array)
        expected = {name: array.flags.writeable for name, array in _arrays(steps)}
        assert {name: array.flags.writeable for name, array in _arrays(clone(steps))} == expected


@clones
@pytest.mark.parametrize("sparse", [False, True])
def test_one_store_stays_one(clone: Callable[[Any], Any], sparse: bool) -> None:
    store = sp.csr_array(np.eye(3)) if sparse else np.eye(3)
    discounts = {"discounts": [0.9, 0.9], "trace_discounts": [0.0, 0.9]}
    twin = clone(Transitions.from_rows(store, [0, 1], [1.0, 2.0], [1, 2], **discounts))
    assert twin.store is twin.next_store


@clones
def test_actions_are_copied_too(clone: Callable[[Any], Any]) -> None:
    discounts: dict[str, Any] = {"discounts": [0.9, 0.9], "trace_discounts": [0.0, 0.9]}
    steps = Transitions.from_rows(np.eye(3), [0, 1], [1.0, 2.0], [1, 2], **discounts, actions=np.array([3, 1]))
    twin = clone(steps)
    assert twin.actions.tolist() == [3, 1]
    assert clone(steps[1:]).actions.tolist() == [1]


def test_a_deep_copy_is_apart_from_the_original() -> None:
    steps = random_transitions(np.random.default_rng(0), n_features=3, n_steps=8)
    for twin in (copy.deepcopy(steps), _pickled(steps)):
        for (_, mine), (_, theirs) in zip(_arrays(steps), _arrays(twin), strict=True):
            assert not np.shares_memory(mine, theirs)


class _Tampered:
    """Pickled, it is the value with other contents, as somebody with an editor would write them."""

    def __init__(self, value: Any, **changes: Any) -> None:
        order = _COLUMNS if isinstance(value, Transitions) else type(value).__slots__
        state = list(value.__getstate__())
        for name, change in changes.items():
            state[order.index(name)] = change
        self.reduced = copyreg._reconstructor, (type(value), object, None), tuple(state)  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        return self.reduced


def _tampered(value: Any, **changes: Any) -> bytes:
    return pickle.dumps(_Tampered(value, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.array([10**10])},
        {"indices": np.array([-1])},
        {"indices": np.array([0.5])},
        {"indices": np.array([0, 1])},
        {"indices": [None]},
        {"values": np.array(["a"])},
        {"size": -3},
        {"size": "many"},
        {"size": 1},
    ],
    ids=str,
)
def test_a_tampered_sparse_vector_is_refused(changes: dict[str, Any]) -> None:
    data = _tampered(SparseVector([2], [1.0], 4), **changes)
    with pytest.raises(TlstdError):
        pickle.loads(data)


def test_tampered_entries_are_put_in_order() -> None:
    twin = pickle.loads(_tampered(SparseVector([0, 2], [1.0, 5.0], 4), indices=np.array([2, 0], dtype=np.int32)))
    assert_array_equal(twin.indices, [0, 2])
    assert_array_equal(twin.values, [5.0, 1.0])
    assert twin.indices.dtype == np.int64


@pytest.mark.parametrize(
    "changes", [{"x": np.ones(3)}, {"x": [np.nan, 0.0]}, {"discount": 2.0}, {"rho": -1.0}, {"reward": "a"}], ids=str
)
def test_a_tampered_transition_is_refused(changes: dict[str, Any]) -> None:
    data = _tampered(Transition([1.0, 0.0], 1.0, [0.0, 1.0], discount=0.9, trace_discount=0.0), **changes)
    with pytest.raises(InvalidInputError):
        pickle.loads(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": np.array([0, 10**10])},
        {"next_rows": np.array([0.0, 1.0])},
        {"rewards": np.zeros(3)},
        {"discounts": np.array([0.0, 2.0])},
        {"rhos": np.array([-1.0, 0.0])},
        {"store": np.eye(3)},
        {"store": sp.csr_array(([1.0], ([0], [1])), shape=(2, 9))},
        {"next_store": None},
        {"actions": np.zeros(3)},
        {"actions": np.array(["left", "right"])},
    ],
    ids=str,
)
def test_tampered_columns_are_refused(changes: dict[str, Any]) -> None:
    steps = Transitions(np.eye(2), [0.0, 1.0], np.eye(2), discounts=[0.9, 0.9], trace_discounts=[0.0, 0.9])
    data = _tampered(steps, **changes)
    with pytest.raises(InvalidInputError):
        pickle.loads(data)


def test_a_tampered_sparse_store_is_refused() -> None:
    X = sp.csr_array(np.eye(2))
    steps = Transitions(X, [0.0, 1.0], X, discounts=[0.9, 0.9], trace_discounts=[0.0, 0.9])
    broken = sp.csr_array(np.eye(2))
    broken.indices[0] = 10**8
    with pytest.raises(InvalidInputError, match="column"):
        pickle.loads(_tampered(steps, store=broken))


@pytest.mark.parametrize("state", [None, (), (1, 2), {"indices": [0]}, 3, [[0], [1.0], 2, 4, 5, 6, 7, 8, 9, 10, 11]])
def test_a_state_of_another_kind_is_refused(state: Any) -> None:
    kinds: tuple[Any, ...] = (SparseVector, Transition, Transitions)
    for kind in kinds:
        with pytest.raises(InvalidInputError, match="state"):
            kind.__new__(kind).__setstate__(state)


def test_weights_that_are_not_finite_cannot_be_pickled() -> None:
    """Better than a pickle that cannot be read."""
    model = TD(2, step_size=1e60, lambda_=0.0)
    for _ in range(20):
        model.update(Transition([1.0, 1.0], 1.0, [0.0, 0.0], discount=0.0, trace_discount=0.0))
    with pytest.raises(InvalidInputError, match="values"):
        pickle.dumps(model.sparse_weights)


class _Meddler:
    """An attribute that, when it is copied, lets another thread try to change the model."""

    def __init__(self, change: Callable[[], None]) -> None:
        self.thread = threading.Thread(target=change, daemon=True)
        self.waits = False

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        self.thread.start()
        self.thread.join(0.1)
        self.waits = self.thread.is_alive()


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, _pickled])
def test_nobody_changes_a_model_while_it_is_copied(clone: Callable[[Any], Any]) -> None:
    steps = random_transitions(np.random.default_rng(0), n_features=4, n_steps=20)
    model = TD(4, step_size=0.1, lambda_=0.5)
    model.update_many(steps[:10])
    meddler = model._meddler = _Meddler(lambda: model.update_many(steps[10:]))
    twin = clone(model)
    assert meddler.waits
    meddler.thread.join(60.0)
    assert (twin.n_updates, model.n_updates) == (10, 20)
