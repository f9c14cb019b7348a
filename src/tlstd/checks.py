"""The contract that every estimator keeps, as a public test suite.

``check_estimator(factory)`` runs all of it on your own estimator; the library's tests run it on every entry of
``tlstd.estimators.registry``. ``CHECKS`` has the single checks, for use with ``pytest.mark.parametrize``.
"""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from tlstd.errors import StateError, TlstdError
from tlstd.estimators.base import Estimator, LinearEstimator
from tlstd.state import load
from tlstd.types import FloatArray, SparseVector, Transition, Transitions

Factory: TypeAlias = Callable[..., Any]
"""``factory(n_features)`` makes a fresh estimator; ``factory(n_features, n_targets=m)`` too if it can do several."""

N_FEATURES = 12
N_ACTIVE = 3


def check_estimator(factory: Factory) -> None:
    """Raise AssertionError with an explanation if what ``factory`` makes breaks the contract.

    Parameters
    ----------
    factory : callable
        ``factory(n_features)`` returns a fresh estimator with fixed parameters.

    Example
    -------
    >>> from tlstd import TLSTD
    >>> from tlstd.checks import check_estimator
    >>> check_estimator(lambda n_features, **options: TLSTD(n_features, 4, lambda_=0.5, **options))
    """
    for check in CHECKS:
        check(factory)


# --- the checks -----------------------------------------------------------------------------------------------------


def check_starts_finite(factory: Factory) -> None:
    """Before any data the weights are finite, predictions too, and nothing has been counted."""
    model = factory(N_FEATURES)
    assert isinstance(model, Estimator), f"{type(model).__name__} lacks a method of tlstd.Estimator"
    assert model.n_features == N_FEATURES, f"n_features is {model.n_features}, not {N_FEATURES}"
    assert model.n_updates == 0, f"n_updates is {model.n_updates} before any update"
    assert model.weights.shape == (N_FEATURES,), f"weights have shape {model.weights.shape}"
    assert np.isfinite(model.weights).all(), "weights are not finite before any data"
    assert np.isfinite(model.predict(np.ones(N_FEATURES))), "predict is not finite before any data"


def check_update_many_is_repeated_update(factory: Factory) -> None:
    """``update_many`` gives the model that ``update`` gives, however the stream is cut."""
    steps = _stream(150)
    one_by_one, at_once, in_pieces = factory(N_FEATURES), factory(N_FEATURES), factory(N_FEATURES)
    for t in steps:
        one_by_one.update(t)
    at_once.update_many(steps)
    for cut in (steps[:1], steps[1:64], steps[64:64], steps[64:149], steps[149:]):
        in_pieces.update_many(cut)
    for other, how in ((at_once, "one update_many"), (in_pieces, "several update_many")):
        assert other.n_updates == one_by_one.n_updates == 150, f"n_updates after {how}: {other.n_updates}"
        _assert_close(other.weights, one_by_one.weights, 1e-10, f"{how} differs from repeated update")


def check_reading_does_not_learn(factory: Factory) -> None:
    """Weights read in mid-stream leave no trace: the model ends the same as without reading."""
    steps = _stream(90)
    silent, read = factory(N_FEATURES), factory(N_FEATURES)
    for t in steps:
        silent.update(t)
        read.update(t)
        read.predict(t.x)
    _assert_close(read.weights, silent.weights, 1e-10, "reading after every step changed the model")


def check_dense_equals_sparse(factory: Factory) -> None:
    """The same numbers as dense arrays and as sparse ones give the same model."""
    dense = _stream(120)
    sparse = _as_sparse(dense)
    models = [factory(N_FEATURES) for _ in range(4)]
    models[0].update_many(dense)
    models[1].update_many(sparse)
    for a, b in zip(dense, sparse, strict=True):
        models[2].update(a)
        models[3].update(b)
    for model in models[1:]:
        _assert_close(model.weights, models[0].weights, 1e-10, "dense and sparse input give different models")


def check_predict_is_pure_and_linear(factory: Factory) -> None:
    """``predict`` equals weights·x in every form of x and changes nothing."""
    model = factory(N_FEATURES)
    steps = _stream(77)
    model.update_many(steps)
    before, count = model.weights.copy(), model.n_updates
    X = np.asarray(steps.X)
    expected = X @ before
    scale = max(1.0, np.abs(expected).max())
    forms = {
        "a dense matrix": model.predict(X),
        "a CSR array": model.predict(sp.csr_array(X)),
        "dense vectors": np.array([model.predict(x) for x in X]),
        "sparse vectors": np.array([model.predict(SparseVector.from_dense(x)) for x in X]),
    }
    for form, values in forms.items():
        assert values.shape == expected.shape, f"predict of {form} has shape {values.shape}"
        _assert_close(values / scale, expected / scale, 1e-10, f"predict of {form} is not weights·x")
    assert isinstance(model.predict(X[0]), float), "predict of one vector is not a float"
    assert np.array_equal(model.weights, before), "predict changed the weights"
    assert model.n_updates == count, "predict changed n_updates"
    empty = model.predict(np.zeros((0, N_FEATURES)))
    assert empty.shape == (0,), f"predict of no rows has shape {empty.shape}"


def check_sparse_weights(factory: Factory) -> None:
    """``sparse_weights`` are the weights; neither can be written to."""
    model = factory(N_FEATURES)
    model.update_many(_stream(50))
    _assert_close(model.sparse_weights.toarray(), model.weights, 0.0, "sparse_weights differ from weights")
    assert not model.weights.flags.writeable, "weights can be written to"


def check_inputs_stay_the_callers(factory: Factory) -> None:
    """Nothing that is passed in is changed, and changing it later does not reach the model."""
    model, twin = factory(N_FEATURES), factory(N_FEATURES)
    first, second = _stream(40), _stream(40)
    originals = [np.array(a) for a in _arrays(first)]
    model.update_many(first)
    twin.update_many(second)
    for array, original in zip(_arrays(first), originals, strict=True):
        assert np.array_equal(array, original), "update_many changed its input"
    for array in _arrays(first):
        array[...] = 0.25
    x, x_next, reward = np.eye(N_FEATURES)[0], np.eye(N_FEATURES)[1], np.array(1.0)
    t = Transition(x, reward, x_next, discount=0.9, trace_discount=0.5)
    twin.update(Transition(x.copy(), 1.0, x_next.copy(), discount=0.9, trace_discount=0.5))
    model.update(t)
    x[:] = x_next[:] = reward[...] = 7.0
    probe = np.eye(N_FEATURES)[2]
    model.predict(probe)
    probe[:] = 3.0
    for m in (model, twin):
        m.update_many(_stream(20, seed=5))
    assert np.array_equal(model.weights, twin.weights), "the model shares memory with its inputs"


def check_trace_is_forgotten(factory: Factory) -> None:
    """After ``trace_discount=0`` it does not matter what was on the trace; before, it does (unless λ=0)."""
    finals = {}
    for trace_discount in (0.0, 1.0):
        for start in (0, 1):
            model = factory(N_FEATURES)
            x = np.eye(N_FEATURES)[start]
            # a step that teaches nothing (no reward, x to itself undiscounted) but leaves x on the trace
            model.update(Transition(x, 0.0, x, discount=1.0, trace_discount=0.0))
            for i, t in enumerate(_stream(30)):
                decay = trace_discount if i == 0 else t.trace_discount
                model.update(Transition(t.x, t.reward, t.x_next, discount=t.discount, trace_discount=decay, rho=t.rho))
            finals[trace_discount, start] = model.weights.copy()
    _assert_close(finals[0.0, 0], finals[0.0, 1], 1e-9, "a zero trace_discount does not empty the trace")
    if getattr(factory(N_FEATURES), "lambda_", 0.0) > 0.0:
        assert not np.allclose(finals[1.0, 0], finals[1.0, 1], rtol=1e-6), "the trace has no effect although λ > 0"


def check_truncation_is_not_termination(factory: Factory) -> None:
    """A terminated step does not bootstrap, a truncated one does."""
    weights = []
    for terminated in (True, False):
        model = factory(N_FEATURES)
        X = np.eye(N_FEATURES)[[0, 1, 2, 3]]
        for _ in range(20):
            model.update_many(Transitions.from_episodes([(X, [1.0, 1.0, 1.0], terminated)], gamma=0.9))
            # the state after the cut has a value of its own
            model.update_many(Transitions.from_episodes([(np.eye(N_FEATURES)[[3, 4]], [10.0], True)], gamma=0.9))
        weights.append(model.weights.copy())
    assert not np.allclose(weights[0], weights[1], rtol=1e-3), "termination and truncation give the same model"


def check_is_deterministic(factory: Factory) -> None:
    """The same data give the same model, bit for bit."""
    a, b = factory(N_FEATURES), factory(N_FEATURES)
    a.update_many(_stream(100))
    b.update_many(_stream(100))
    assert np.array_equal(a.weights, b.weights), "two runs on the same data differ"


def check_memory_is_constant(factory: Factory) -> None:
    """After warm-up the model (as pickled: everything that it holds) does not grow with the number of samples."""
    model = factory(N_FEATURES)
    steps = _as_sparse(_stream(99))
    t = steps[0]

    def most_held(rounds: int) -> int:
        held = 0
        for _ in range(rounds):
            model.predict(t.x)
            model.update_many(steps)
            model.update(t)  # whatever was cached for reading is gone again
            held = max(held, len(pickle.dumps(model)))
        return held

    most_held(4)
    before = most_held(4)
    after = most_held(10)
    assert after - before < 4_000, f"1,000 further samples made the model {after - before} bytes larger"


def check_empty_update_is_a_no_op(factory: Factory) -> None:
    """``update_many`` of nothing changes nothing."""
    model = factory(N_FEATURES)
    model.update_many(_stream(30))
    before = model.weights.copy()
    model.update_many(_stream(30)[:0])
    assert model.n_updates == 30, "an empty update_many changed n_updates"
    assert np.array_equal(model.weights, before), "an empty update_many changed the weights"


def check_unusual_but_valid_input(factory: Factory) -> None:
    """Unsorted or repeated indices, float32, integers, read-only arrays and subnormal numbers are used correctly."""
    plain = np.zeros(N_FEATURES)
    plain[[1, 4, 7]] = 1.0, 2.0, 3.0
    locked = plain.copy()
    locked.flags.writeable = False
    spellings: dict[str, Any] = {
        "unsorted indices": SparseVector([7, 1, 4], [3.0, 1.0, 2.0], N_FEATURES),
        "repeated indices": SparseVector([7, 4, 7, 1, 4], [1.0, 1.5, 2.0, 1.0, 0.5], N_FEATURES),
        "float32": plain.astype(np.float32),
        "integers": plain.astype(np.int16),
        "a list": plain.tolist(),
        "a read-only array": locked,
        "a strided view": np.repeat(plain, 2)[::2],
    }
    expected = factory(N_FEATURES)
    expected.update_many(_stream(10))
    expected.update(Transition(plain, 1.0, plain, discount=0.5, trace_discount=0.5))
    for name, x in spellings.items():
        model = factory(N_FEATURES)
        model.update_many(_stream(10))
        model.update(Transition(x, 1.0, x, discount=0.5, trace_discount=0.5))
        _assert_close(model.weights, expected.weights, 1e-10, f"{name}: another model than plain float64")
        _assert_close(model.predict(x), expected.predict(plain), 1e-10, f"{name}: another prediction")
    tiny = factory(N_FEATURES)
    tiny.update(Transition(plain * 1e-310, 1e-310, plain * 5e-324, discount=0.5, trace_discount=0.5))
    assert np.isfinite(tiny.weights).all(), "subnormal features give weights that are not finite"
    tiny.update_many(_stream(40))
    reference = factory(N_FEATURES)
    reference.update(Transition(plain * 1e-200, 0.0, plain * 1e-200, discount=0.5, trace_discount=0.5))
    reference.update_many(_stream(40))
    _assert_close(tiny.weights, reference.weights, 1e-8, "subnormal features do not act like zeros")


def check_bad_input_changes_nothing(factory: Factory) -> None:
    """Bad input raises a TlstdError, and the model goes on as if it had not been tried."""
    model = factory(N_FEATURES)
    model.update_many(_stream(35))
    for name, attempt in _bad_inputs():
        twin = copy.deepcopy(model)
        before = model.weights.copy()
        _assert_refused(name, attempt, model)
        assert model.n_updates == twin.n_updates, f"{name}: changed n_updates"
        assert np.array_equal(model.weights, before), f"{name}: changed the weights"
        twin.update_many(_stream(9, seed=3))
        model.update_many(_stream(9, seed=3))
        assert np.array_equal(model.weights, twin.weights), f"{name}: left something behind"


def check_update_and_predict(factory: Factory) -> None:
    """``update_and_predict`` learns as ``update`` does and returns what ``predict(x_next)`` says after each step.

    (Passed over if there is no such method.)
    """
    if not hasattr(factory(N_FEATURES), "update_and_predict"):
        return
    for n_targets in (1, 3):
        options = {"n_targets": n_targets} if n_targets > 1 else {}
        try:
            factory(N_FEATURES, **options)
        except (TypeError, TlstdError):
            continue
        dense = _stream(70, n_targets=n_targets)
        in_turn = factory(N_FEATURES, **options)
        expected = np.array([_updated(in_turn, t).predict(t.x_next) for t in dense])
        for steps, form in ((dense, "dense"), (_as_sparse(dense), "sparse")):
            for cuts in ((0, 70), (0, 1, 16, 47, 47, 48, 70)):
                model = factory(N_FEATURES, **options)
                pieces = [model.update_and_predict(steps[a:b]) for a, b in pairwise(cuts)]
                how = f"update_and_predict of {form} steps in {len(pieces)} call(s)"
                values = np.concatenate(pieces)
                assert values.shape == expected.shape, f"{how} has shape {values.shape}, not {expected.shape}"
                assert model.n_updates == 70, f"n_updates after {how}: {model.n_updates}"
                _assert_close(values, expected, 1e-10, f"{how} differs from update and predict in turn")
                _assert_close(model.weights, in_turn.weights, 1e-10, f"{how} leaves another model than update")
    _check_refusals_of_update_and_predict(factory)


def _updated(model: Any, transition: Transition) -> Any:
    model.update(transition)
    return model


def _check_refusals_of_update_and_predict(factory: Factory) -> None:
    model = factory(N_FEATURES)
    model.update_many(_stream(35))
    before = model.weights.copy()
    attempts: list[tuple[str, Callable[[Any], None]]] = [
        ("something else than Transitions", lambda model: model.update_and_predict([1, 2])),
        ("too many rewards", lambda model: model.update_and_predict(_stream(5, n_targets=2))),
    ]
    for column in ("store", "next_store", "rewards", "discounts", "trace_discounts", "rhos"):
        late = partial(_update_late, column, np.nan, method="update_and_predict")
        attempts.append((f"NaN in the last of {column}", late))
    for name, attempt in attempts:
        _assert_refused(f"update_and_predict of {name}", attempt, model)
        assert model.n_updates == 35, f"update_and_predict of {name}: changed n_updates"
        assert np.array_equal(model.weights, before), f"update_and_predict of {name}: changed the weights"
    twin = factory(N_FEATURES)
    twin.update_many(_stream(35))
    for m in (model, twin):
        m.update_many(_stream(9, seed=3))
    _assert_close(model.weights, twin.weights, 1e-10, "a refused update_and_predict left something behind")


def check_targets_are_independent(factory: Factory) -> None:
    """With several targets each column is the model of that reward alone. (Passed over if the factory takes none.)"""
    try:
        model = factory(N_FEATURES, n_targets=3)
    except (TypeError, TlstdError):
        return
    steps = _stream(80, n_targets=3)
    model.update_many(steps)
    for t in _stream(11, seed=2, n_targets=3):
        model.update(t)
    assert model.weights.shape == (N_FEATURES, 3), f"weights have shape {model.weights.shape}"
    _assert_close(model.sparse_weights.toarray(), model.weights, 0.0, "sparse_weights differ from weights")
    X = np.asarray(steps.X)
    assert model.predict(X).shape == (80, 3), f"predict has shape {model.predict(X).shape}"
    _assert_close(model.predict(X[0]), X[0] @ model.weights, 1e-10, "predict of a vector is not weightsᵀx")
    for target in range(3):
        single = factory(N_FEATURES)
        for part in (steps, _stream(11, seed=2, n_targets=3)):
            single.update_many(
                Transitions(
                    part.X,
                    part.rewards[:, target],
                    part.X_next,
                    discounts=part.discounts,
                    trace_discounts=part.trace_discounts,
                    rhos=part.rhos,
                )
            )
        _assert_close(
            model.weights[:, target], single.weights, 1e-8, f"target {target} differs from a model of its own"
        )


def check_start_from(factory: Factory) -> None:
    """Learning from weights w is learning, from 0, what w leaves unexplained. (Passed over without ``start_from``.)"""
    steps, w = _stream(60), np.linspace(-1.0, 2.0, N_FEATURES)
    moved, plain = factory(N_FEATURES), factory(N_FEATURES)
    if not hasattr(moved, "start_from"):
        return
    moved.start_from(np.ones(N_FEATURES))
    moved.start_from(np.zeros(N_FEATURES))
    _assert_close(moved.weights, np.zeros(N_FEATURES), 0.0, "start_from(0) does not make the weights 0")
    moved.start_from(SparseVector.from_dense(w))
    _assert_close(moved.weights, w, 1e-15, "start_from(w) does not make the weights w")
    X, X_next = np.asarray(steps.X), np.asarray(steps.X_next)
    rewards = steps.rewards + steps.discounts * (X_next @ w) - X @ w
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts, "rhos": steps.rhos}
    moved.update_many(steps)
    plain.update_many(Transitions(X, rewards, X_next, **columns))
    _assert_close(moved.weights, w + plain.weights, 1e-9, "learning from w is not learning what w leaves unexplained")
    _assert_refused("start_from() after updates", lambda model: model.start_from(w), moved)


def check_save_and_load(factory: Factory) -> None:
    """A model saved in mid-stream goes on as if never stopped, bit for bit. (Passed over if it has no ``save``.)"""
    for n_steps in (0, 1, 37, 90):
        model = factory(N_FEATURES)
        if not hasattr(model, "save"):
            return
        model.update_many(_stream(n_steps))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            try:
                model.save(path)
                twin = load(path, classes=[type(model)] if isinstance(model, LinearEstimator) else ())
            except StateError as error:
                raise AssertionError(f"after {n_steps} steps it cannot be saved and loaded: {error}") from error
        for more in (_stream(0), _stream(30, seed=1), _stream(200, seed=2)):
            for m in (model, twin):
                for t in more[:30]:
                    m.update(t)
                m.update_many(more[30:])
            assert twin.n_updates == model.n_updates, f"n_updates is {twin.n_updates}, not {model.n_updates}"
            x = np.asarray(_stream(1, seed=3).X)[0]
            assert twin.predict(x) == model.predict(x), f"saved after {n_steps} steps and loaded, it predicts otherwise"
            assert np.array_equal(twin.weights, model.weights), f"saved after {n_steps} steps, it has other weights"


CHECKS: tuple[Callable[[Factory], None], ...] = (
    check_starts_finite,
    check_update_many_is_repeated_update,
    check_reading_does_not_learn,
    check_dense_equals_sparse,
    check_predict_is_pure_and_linear,
    check_sparse_weights,
    check_inputs_stay_the_callers,
    check_trace_is_forgotten,
    check_truncation_is_not_termination,
    check_is_deterministic,
    check_memory_is_constant,
    check_empty_update_is_a_no_op,
    check_unusual_but_valid_input,
    check_bad_input_changes_nothing,
    check_update_and_predict,
    check_targets_are_independent,
    check_start_from,
    check_save_and_load,
)


# --- their data -----------------------------------------------------------------------------------------------------


def _stream(n_steps: int, *, seed: int = 0, n_targets: int = 1) -> Transitions:
    """Tile-like features (a quarter active) with terminations, truncations and rewards that depend on them."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_steps + 1, N_FEATURES))
    for row in X:
        row[rng.choice(N_FEATURES, N_ACTIVE, replace=False)] = rng.uniform(0.5, 1.5, N_ACTIVE)
    W = rng.standard_normal((N_FEATURES, n_targets))
    rewards = X[:-1] @ W + 0.1 * rng.standard_normal((n_steps, n_targets))
    return Transitions.from_arrays(
        X[:-1].copy(),
        rewards[:, 0].copy() if n_targets == 1 else rewards,
        X[1:].copy(),
        terminated=rng.random(n_steps) < 0.1,
        truncated=rng.random(n_steps) < 0.1,
        gamma=0.9,
    )


def _as_sparse(steps: Transitions) -> Transitions:
    return Transitions(
        sp.csr_array(steps.X),
        steps.rewards,
        sp.csr_array(steps.X_next),
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
        rhos=steps.rhos,
    )


def _arrays(steps: Transitions) -> list[FloatArray]:
    return [np.asarray(steps.store), np.asarray(steps.next_store), steps.rewards, steps.discounts]


def _bad_inputs() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """What no estimator may accept, by name: functions that try it on a model."""
    yield from _bad_values()
    yield "features of the wrong size", partial(_update, x=np.ones(13), x_next=np.ones(13))
    yield "x and x_next of different sizes", partial(_update, x_next=np.ones(13))
    yield "a matrix as x", partial(_update, x=np.ones((1, N_FEATURES)))
    yield "an object array", partial(_update, x=np.array([None] * N_FEATURES))
    yield "strings", partial(_update, x=["a"] * N_FEATURES)
    yield "complex numbers", partial(_update, x=np.full(N_FEATURES, 1j))
    yield "a ragged list", partial(_update, x=[[1.0], [1.0, 2.0]])
    for index in (-1, N_FEATURES, 2**40, 1.5):
        yield f"index {index}", partial(_update_sparse, [index], [1.0])
    yield "more values than indices", partial(_update_sparse, [1], [1.0, 2.0])
    yield "too many rewards", partial(_update, reward=[1.0, 2.0])
    yield "something else than a Transition", lambda model: model.update((np.ones(N_FEATURES), 1.0))
    yield "something else than Transitions", lambda model: model.update_many([1, 2])
    yield "ragged columns", partial(_update_many, N_FEATURES, n_rewards=3)
    yield "update_many of the wrong width", partial(_update_many, 5, n_rewards=5)
    yield "predict of the wrong width", lambda model: model.predict(np.ones(N_FEATURES + 1))
    yield "predict of a matrix of the wrong width", lambda model: model.predict(np.ones((2, N_FEATURES + 1)))


def _bad_values() -> Iterator[tuple[str, Callable[[Any], None]]]:
    for value in (np.nan, np.inf, -np.inf, 1e300):
        bad = np.zeros(N_FEATURES)
        bad[7] = value
        yield f"x with {value}", partial(_update, x=bad)
        yield f"x_next with {value}", partial(_update, x_next=bad)
        yield f"reward {value}", partial(_update, reward=value)
        yield f"sparse x with {value}", partial(_update_sparse, [3], [value])
        yield f"predict of {value}", partial(_predict, bad)
        for column in ("store", "next_store", "rewards", "discounts", "trace_discounts", "rhos"):
            yield f"update_many with {value} in the last of {column}", partial(_update_late, column, value)
    for value in (-0.1, 1.1, np.nan):
        yield f"discount {value}", partial(_update, discount=value)
        yield f"trace_discount {value}", partial(_update, trace_discount=value)
    for value in (-1.0, np.nan, np.inf):
        yield f"rho {value}", partial(_update, rho=value)


def _update(model: Any, **changes: Any) -> None:
    x = np.zeros(N_FEATURES)
    x[6:9] = 0.1
    good: dict[str, Any] = {"x": x, "reward": 1.0, "x_next": x, "discount": 0.9, "trace_discount": 0.9, "rho": 1.0}
    model.update(Transition(**{**good, **changes}))


def _update_sparse(indices: Any, values: Any, model: Any) -> None:
    _update(model, x=SparseVector(indices, values, N_FEATURES))


def _update_many(size: int, model: Any, *, n_rewards: int) -> None:
    ones = np.ones(size)
    model.update_many(Transitions(np.eye(size), np.ones(n_rewards), np.eye(size), discounts=ones, trace_discounts=ones))


def _update_late(column: str, value: float, model: Any, *, method: str = "update_many") -> None:
    """Put a bad value into the last row *after* the columns were checked, then learn from them."""
    steps = _stream(20, seed=4)
    np.asarray(getattr(steps, column))[-1] = value
    getattr(model, method)(steps)


def _predict(x: Any, model: Any) -> None:
    model.predict(x)


def _assert_refused(name: str, attempt: Callable[[Any], None], model: Any) -> None:
    try:
        attempt(model)
    except TlstdError:
        return
    except Exception as error:
        raise AssertionError(f"{name}: raised {type(error).__name__} ({error}), not a TlstdError") from error
    raise AssertionError(f"{name}: was accepted")


def _assert_close(actual: Any, expected: Any, tolerance: float, message: str) -> None:
    """Compare relative to the largest expected entry."""
    difference = float(np.abs(np.asarray(actual) - np.asarray(expected)).max(initial=0.0))
    scale = max(float(np.abs(np.asarray(expected)).max(initial=0.0)), 1e-300)
    assert difference <= tolerance * scale, f"{message}: off by {difference / scale:.1e} (allowed {tolerance:g})"
