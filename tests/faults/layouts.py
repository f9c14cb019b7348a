"""Arrays of every make that NumPy knows: the numbers count, not where they lie."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tests.faults.children import explained
from tlstd.checks.data import N_FEATURES, Check, Factory, assert_close, stream
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector


class Tagged(np.ndarray[Any, Any]):
    """An array of a class of its own, whose sums are not those of its numbers."""

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Something else than the sum."""
        return "a tag"


def _memory_map(array: NDArray[Any], folder: str) -> NDArray[Any]:
    path = os.path.join(folder, f"{len(os.listdir(folder))}.bin")
    array.tofile(path)
    mapped: NDArray[Any] = np.memmap(path, dtype=array.dtype, mode="r", shape=array.shape)
    return mapped


Layout: TypeAlias = Callable[[NDArray[Any], str], NDArray[Any]]

LAYOUTS: dict[str, Layout] = {
    "negative strides": lambda array, folder: np.flip(np.flip(array).copy()),
    "Fortran order": lambda array, folder: np.asfortranarray(array),
    "every second entry": lambda array, folder: np.repeat(array, 2, axis=-1)[..., ::2],
    "big-endian": lambda array, folder: array.astype(array.dtype.newbyteorder(">")),
    "a memory map": _memory_map,
    "a masked array without masked entries": lambda array, folder: np.ma.MaskedArray(array, mask=False),
    "a subclass": lambda array, folder: array.copy().view(Tagged),
}
"""Ways to hold an array, by name: functions of the array and of a folder for files."""


def check_layouts(factory: Factory) -> None:
    """Negative strides, Fortran order, big-endian, memory maps, masked arrays, subclasses: the numbers count.

    For features, rewards and discounts, for the indices, pointers and values of sparse arrays and vectors, in updates
    and predictions.
    """
    steps = stream(18)
    X, X_next = np.asarray(steps.X), np.asarray(steps.X_next)
    last = steps[17]
    expected = factory(N_FEATURES)
    expected.update_many(steps)
    expected.update(last)
    values = X @ expected.weights
    columns = (steps.rewards, steps.discounts, steps.trace_discounts)
    one = {"discount": last.discount, "trace_discount": last.trace_discount}
    for name, layout in LAYOUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            held: list[Any] = [layout(np.asarray(array), folder) for array in (X, X_next, last.x, last.x_next)]
            sparse = [_csr(X, layout, folder), _csr(X_next, layout, folder)]
            sparse += [_vector(np.asarray(x), layout, folder) for x in (last.x, last.x_next)]
            rewards, discounts, trace_discounts = (layout(column, folder) for column in columns)
            for kind, (A, A_next, x, x_next) in (("dense", held), ("sparse", sparse)):
                model = factory(N_FEATURES)
                with explained(f"{kind} features as {name}"):
                    model.update_many(
                        Transitions(A, rewards, A_next, discounts=discounts, trace_discounts=trace_discounts)
                    )
                    model.update(Transition(x, last.reward, x_next, **one))
                    assert_close(model.weights, expected.weights, 1e-10, "another model")
                    assert_close(model.predict(A), values, 1e-10, "other predictions")
                    assert_close(model.predict(x), values[-1], 1e-10, "another prediction")


def _csr(X: NDArray[Any], layout: Layout, folder: str) -> Any:
    """A CSR array whose three arrays are held in some way. (The constructor would make them plain.)"""
    csr, held = sp.csr_array(X), sp.csr_array(X.shape)
    held.data, held.indices, held.indptr = (layout(a, folder) for a in (csr.data, csr.indices, csr.indptr))
    return held


def _vector(x: NDArray[Any], layout: Layout, folder: str) -> SparseVector:
    indices = np.flatnonzero(x)
    return SparseVector(layout(indices, folder), layout(x[indices], folder), x.size)


CHECKS: tuple[Check, ...] = (check_layouts,)
