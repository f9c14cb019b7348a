"""Whatever is thrown at an estimator: it learns, or it raises a TlstdError and is unchanged. Nothing else.

20 inputs in each of 10 examples for each of the four estimators, 800 inputs; with ``-m long`` 10,000. Not shrunk:
that takes minutes.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tlstd.errors import TlstdError
from tlstd.estimators.lstd import LSTD
from tlstd.estimators.tlstd import TLSTD
from tlstd.types import SparseVector, Transition, Transitions

D = 8
MODELS: dict[str, Any] = {
    "LSTD": lambda: LSTD(D, lambda_=0.8),
    "LSTD recursive": lambda: LSTD(D, lambda_=0.8, solver="recursive", beta=0.1),
    "TLSTD": lambda: TLSTD(D, 3, lambda_=0.8, buffer_size=4),
    "TLSTD replacing": lambda: TLSTD(D, 3, lambda_=0.8, buffer_size=4, beta=0.1, trace="replacing"),
}

ordinary = st.one_of(st.integers(-3, 3).map(float), st.floats(-10.0, 10.0))
too_large = st.sampled_from([1.1e100, 1e155, -1e300, np.nan, np.inf, -np.inf])


def mostly(good: st.SearchStrategy[Any], bad: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One in twelve is bad, so that about half of all inputs are accepted as a whole."""
    return st.integers(0, 11).flatmap(lambda i: bad if i == 0 else good)


number = mostly(ordinary, mostly(st.sampled_from([0.0, -0.0, 1e-320, 5e-324, 1e-160, 1e-100, 1e99, -1e100]), too_large))
unit = mostly(st.one_of(st.sampled_from([0.0, 1.0, 0.9, 0.5]), st.floats(0.0, 1.0)), st.sampled_from([-0.1, 1.5, "x"]))
ratio = mostly(
    st.one_of(st.just(1.0), st.floats(0.0, 3.0)),
    st.sampled_from([0.0, 5e-324, 1e-310, 1e30, 1e120, -1.0, np.nan, np.inf, None]),
)


@st.composite
def vectors(draw: st.DrawFn) -> Any:
    """A feature vector in some form: mostly valid, sometimes of the wrong size, type or content."""
    kind = draw(mostly(st.sampled_from(["list", "array", "sparse", "sparse", "float32", "int"]), st.just("odd")))
    size = draw(mostly(st.just(D), st.sampled_from([D - 1, D + 1])))
    if kind == "sparse":
        indices = draw(st.lists(st.integers(0, size - 1), max_size=5))
        if draw(st.integers(0, 9)) == 0:
            indices = [*indices, draw(st.sampled_from([-1, D, 2**40, 2**63]))]
        values = draw(st.lists(number, min_size=len(indices), max_size=len(indices)))
        return SparseVector(indices, values, size)
    if kind == "odd":
        odd: list[Any] = [None, "abc", 3.0, [], [[1.0] * D], [[1.0], [1.0, 2.0]], np.array([1j] * D), {"a": 1}]
        odd.append(np.array([object()] * D))
        return draw(st.sampled_from(odd))
    if kind == "int":
        return np.array(draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size)), dtype=np.int32)
    values = draw(st.lists(number, min_size=size, max_size=size))
    with np.errstate(over="ignore"):
        return values if kind == "list" else np.array(values, dtype=np.float32 if kind == "float32" else np.float64)


@st.composite
def recipes(draw: st.DrawFn) -> tuple[str, Any]:
    """One thing to try on a model: (what, with what). Building the data may itself raise."""
    what = draw(st.sampled_from(["update", "update", "update", "update_many", "predict"]))
    if what == "update_many":
        n = draw(st.integers(0, 6))
        shape = (n, draw(mostly(st.just(D), st.just(D - 1))))
        X = np.array(draw(st.lists(number, min_size=n * shape[1], max_size=n * shape[1]))).reshape(shape)
        columns = [draw(st.lists(u, min_size=n, max_size=n)) for u in (number, unit, unit, ratio)]
        if draw(st.integers(0, 9)) == 0:
            columns[draw(st.integers(0, 3))].append(1.0)
        return what, (X, draw(st.booleans()), columns)
    return what, draw(st.integers(0, 2**32 - 1)) if what == "predict" else (draw(unit), draw(unit), draw(ratio))


def fingerprint(model: Any) -> bytes:
    """The whole state, buffers and caches of the solution included."""
    return pickle.dumps(model)


def attempt(model: Any, data: st.DataObject) -> None:
    """Draw one input and throw it at the model. Raises TlstdError where the input is refused."""
    what, detail = data.draw(recipes())
    if what == "update":
        discount, trace_discount, rho = detail
        x, x_next, reward = data.draw(vectors()), data.draw(vectors()), data.draw(number)
        model.update(Transition(x, reward, x_next, discount=discount, trace_discount=trace_discount, rho=rho))
    elif what == "update_many":
        X, sparse, (rewards, discounts, trace_discounts, rhos) = detail
        matrix = sp.csr_array(X) if sparse else X
        model.update_many(
            Transitions(matrix, rewards, matrix[::-1], discounts=discounts, trace_discounts=trace_discounts, rhos=rhos)
        )
    else:
        assert np.isfinite(model.predict(data.draw(vectors()))).all()


def run(name: str, data: st.DataObject) -> None:
    """Throw 20 inputs at a fresh model."""
    model = MODELS[name]()
    for _ in range(20):
        before, count = fingerprint(copy.deepcopy(model)), model.n_updates
        try:
            attempt(model, data)
        except TlstdError:
            assert fingerprint(copy.deepcopy(model)) == before, "a refused input changed the model"
            assert model.n_updates == count
    assert np.isfinite(model.weights).all()


@pytest.mark.parametrize("examples", [10, pytest.param(125, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", MODELS)
def test_fuzzed_inputs(name: str, examples: int) -> None:
    @seed(sorted(MODELS).index(name))  # other inputs for each model
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(data=st.data())
    def inputs(data: st.DataObject) -> None:
        run(name, data)

    inputs()
