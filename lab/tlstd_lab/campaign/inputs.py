"""Random inputs, valid and not: a model learns from them, or raises a TlstdError and is unchanged."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import scipy.sparse as sp

from tlstd.checks import children
from tlstd.checks.data import Factory
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import TlstdError

D = 8
"""Number of features."""

INPUTS = 20
"""Inputs that one model is given."""

SECONDS = 20.0
"""After which a model that is given its inputs counts as hanging."""

_EXTREMES = (0.0, -0.0, 1e-320, 5e-324, 1e-160, 1e-100, 1e99, -1e100)
_TOO_LARGE = (1.1e100, 1e155, -1e300, np.nan, np.inf, -np.inf)
_ODD: tuple[Any, ...] = (
    None,
    "abc",
    3.0,
    [],
    [[1.0] * D],
    [[1.0], [1.0, 2.0]],
    np.array([1j] * D),
    {"a": 1},
    np.array([object()] * D),
)


class Draw:
    """Random numbers and vectors, one in twelve of each kind not as it should be."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def bad(self) -> bool:
        """True one time in twelve."""
        return bool(self.rng.integers(12) == 0)

    def of(self, choices: Any) -> Any:
        """One of some things."""
        return choices[self.rng.integers(len(choices))]

    def number(self) -> float:
        """An ordinary number, a rare one, or one that is too large."""
        if self.bad():
            return float(self.of(_TOO_LARGE if self.bad() else _EXTREMES))
        return float(self.rng.integers(-3, 4) if self.rng.random() < 0.5 else self.rng.uniform(-10.0, 10.0))

    def unit(self) -> Any:
        """A discount."""
        if self.rng.random() < 0.02:
            return self.of((-0.1, 1.5, "x"))
        return self.of((0.0, 1.0, 0.9, 0.5, float(self.rng.random())))

    def ratio(self) -> Any:
        """An importance ratio."""
        if self.bad():
            return self.of((0.0, 5e-324, 1e-310, 1e30, 1e120, -1.0, np.nan, np.inf, None))
        return self.of((1.0, float(self.rng.uniform(0.0, 3.0))))

    def vector(self) -> Any:
        """A feature vector in some form. (Building it may raise.)"""
        if self.rng.random() < 0.04:
            return self.of(_ODD)
        size = self.of((D - 1, D + 1)) if self.rng.random() < 0.04 else D
        kind = self.of(("list", "array", "sparse", "sparse", "float32", "int"))
        if kind == "sparse":
            indices = [int(i) for i in self.rng.integers(0, size, self.rng.integers(0, 6))]
            if self.bad():
                indices.append(self.of((-1, D, 2**40, 2**63)))
            return SparseVector(indices, [self.number() for _ in indices], size)
        if kind == "int":
            return self.rng.integers(-5, 6, size).astype(np.int32)
        values = [self.number() if self.rng.random() < 0.4 else 0.0 for _ in range(size)]
        with np.errstate(over="ignore"):
            return values if kind == "list" else np.array(values, dtype=np.float32 if kind == "float32" else np.float64)

    def columns(self) -> Transitions:
        """Up to six transitions. (Building them may raise.)"""
        n, d = int(self.rng.integers(0, 7)), D - 1 if self.bad() else D
        X = np.array([self.number() if self.rng.random() < 0.4 else 0.0 for _ in range(n * d)]).reshape(n, d)
        columns = [[draw() for _ in range(n)] for draw in (self.number, self.unit, self.unit, self.ratio)]
        if self.bad():
            self.of(columns).append(1.0)
        matrix = sp.csr_array(X) if self.rng.random() < 0.5 else X
        rewards, discounts, trace_discounts, rhos = columns
        return Transitions(
            matrix, rewards, matrix[::-1], discounts=discounts, trace_discounts=trace_discounts, rhos=rhos
        )


def throw(model: Any, rng: np.random.Generator, *, finite: bool) -> None:
    """Give a model one random input; raises TlstdError where that is refused."""
    draw = Draw(rng)
    what = draw.of(("update", "update", "update", "update_many", "predict"))
    if what == "update":
        columns = {"discount": draw.unit(), "trace_discount": draw.unit(), "rho": draw.ratio()}
        model.update(Transition(draw.vector(), draw.number(), draw.vector(), **columns))
    elif what == "update_many":
        model.update_many(draw.columns())
    else:
        value = model.predict(draw.vector())
        assert not finite or np.isfinite(value).all(), f"predict is {value}"


def throw_many(factory: Factory, rng: np.random.Generator, *, finite: bool) -> str:
    """Give a fresh model ``INPUTS`` inputs; raises if one that is refused changed it, or if anything else is wrong.

    Parameters
    ----------
    factory : callable
    rng : numpy.random.Generator
    finite : bool
        Whether predictions are finite whatever comes. (Those of estimators with a step size may diverge.)
    """
    model, n_refused = factory(D), 0
    before: bytes | None = None
    for _ in range(INPUTS):
        before, count = before or fingerprint(model), model.n_updates
        try:
            throw(model, rng, finite=finite)
        except TlstdError:
            n_refused += 1
            assert model.n_updates == count, "a refused input changed n_updates"
            assert fingerprint(model) == before, "a refused input changed the model"
        else:
            before = None
    assert not finite or np.isfinite(model.weights).all(), "the weights are not finite"
    return f"{n_refused} refused"


class _Whole(pickle.Pickler):
    """Pickles models as they are: without the copy that they make to be pickled, and without their locks."""

    def reducer_override(self, obj: Any) -> Any:
        attributes = {} if isinstance(obj, type) else getattr(obj, "__dict__", {})
        if "_lock" not in attributes:
            return NotImplemented
        return type(obj).__new__, (type(obj),), {name: attributes[name] for name in attributes if name != "_lock"}


def fingerprint(model: Any) -> bytes:
    """The whole state, buffers and caches of the solution included."""
    file = io.BytesIO()
    _Whole(file).dump(model)
    return file.getvalue()


def input_task(factory: Factory, *, finite: bool, seed: int = 0) -> children.Task:
    """Give fresh models ``INPUTS`` random inputs each."""
    throw_many(factory, np.random.default_rng(0), finite=False)  # compiled
    return lambda i: throw_many(factory, np.random.default_rng([seed, i]), finite=finite)
