"""What an estimator does with good and bad data, in one thread and undisturbed."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import scipy.sparse as sp

from tlstd.checks.data import (
    N_FEATURES,
    Check,
    Factory,
    as_sparse,
    assert_close,
    assert_refused,
    bad_inputs,
    loaded,
    stream,
    update_late,
    why_unsaved,
)
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidInputError, StateError, TlstdError
from tlstd.estimators.base import Estimator, LinearEstimator
from tlstd.estimators.merging import merge


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
    steps = stream(150)
    one_by_one, at_once, in_pieces = factory(N_FEATURES), factory(N_FEATURES), factory(N_FEATURES)
    for t in steps:
        one_by_one.update(t)
    at_once.update_many(steps)
    for cut in (steps[:1], steps[1:64], steps[64:64], steps[64:149], steps[149:]):
        in_pieces.update_many(cut)
    for other, how in ((at_once, "one update_many"), (in_pieces, "several update_many")):
        assert other.n_updates == one_by_one.n_updates == 150, f"n_updates after {how}: {other.n_updates}"
        assert_close(other.weights, one_by_one.weights, 1e-10, f"{how} differs from repeated update")


def check_reading_does_not_learn(factory: Factory) -> None:
    """Weights read in mid-stream leave no trace: the model ends the same as without reading.

    After every step at first, in any state of a buffer; later now and then, where there are samples enough to choose
    a dimension by.
    """
    silent, read = factory(N_FEATURES), factory(N_FEATURES)
    for number, t in enumerate(stream(130)):
        silent.update(t)
        read.update(t)
        if number < 60 or number % 7 == 0:
            read.predict(t.x)
    assert_close(read.weights, silent.weights, 1e-10, "reading after every step changed the model")


def check_dense_equals_sparse(factory: Factory) -> None:
    """The same numbers as dense arrays and as sparse ones give the same model."""
    dense = stream(120)
    sparse = as_sparse(dense)
    models = [factory(N_FEATURES) for _ in range(4)]
    models[0].update_many(dense)
    models[1].update_many(sparse)
    for a, b in zip(dense, sparse, strict=True):
        models[2].update(a)
        models[3].update(b)
    for model in models[1:]:
        assert_close(model.weights, models[0].weights, 1e-10, "dense and sparse input give different models")


def check_predict_is_pure_and_linear(factory: Factory) -> None:
    """``predict`` is weights·x in every form of x, the same to the bit whatever was read before; it changes nothing."""
    model = factory(N_FEATURES)
    steps = stream(77)
    model.update_many(steps)
    X = np.asarray(steps.X)
    first = [[model.predict(form(x)) for x in X] for form in (np.array, SparseVector.from_dense)]
    before, count = model.weights.copy(), model.n_updates
    expected = X @ before
    scale = max(1.0, np.abs(expected).max())
    forms = {
        "a dense matrix": model.predict(X),
        "a CSR array": model.predict(sp.csr_array(X)),
        "dense vectors": np.array([model.predict(x) for x in X]),
        "sparse vectors": np.array([model.predict(SparseVector.from_dense(x)) for x in X]),
    }
    assert np.array_equal(first, [forms["dense vectors"], forms["sparse vectors"]]), "reading weights changes predict"
    for form, values in forms.items():
        assert values.shape == expected.shape, f"predict of {form} has shape {values.shape}"
        assert_close(values / scale, expected / scale, 1e-10, f"predict of {form} is not weights·x")
    assert isinstance(model.predict(X[0]), float), "predict of one vector is not a float"
    assert np.array_equal(model.weights, before), "predict changed the weights"
    assert model.n_updates == count, "predict changed n_updates"
    empty = model.predict(np.zeros((0, N_FEATURES)))
    assert empty.shape == (0,), f"predict of no rows has shape {empty.shape}"


def check_sparse_weights(factory: Factory) -> None:
    """``sparse_weights`` are the weights; neither can be written to."""
    model = factory(N_FEATURES)
    model.update_many(stream(50))
    assert_close(model.sparse_weights.toarray(), model.weights, 0.0, "sparse_weights differ from weights")
    assert not model.weights.flags.writeable, "weights can be written to"


def check_inputs_stay_the_callers(factory: Factory) -> None:
    """Nothing that is passed in is changed, and changing it later does not reach the model."""
    model, twin = factory(N_FEATURES), factory(N_FEATURES)
    first, second = stream(40), stream(40)
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
        m.update_many(stream(20, seed=5))
    assert np.array_equal(model.weights, twin.weights), "the model shares memory with its inputs"


def check_trace_is_forgotten(factory: Factory) -> None:
    """After ``trace_discount=0`` it does not matter what was on the trace; before, it does (unless λ=0)."""
    finals = {}
    for trace_discount in (0.0, 1.0):
        for start in (0, 1):
            model = factory(N_FEATURES)
            # two steps in either order, which teach the same (no reward, x to itself undiscounted: nothing, or a model
            # of what follows on x), of which the last leaves its x on the trace
            for x in np.eye(N_FEATURES)[[1 - start, start]]:
                model.update(Transition(x, 0.0, x, discount=1.0, trace_discount=0.0))
            for i, t in enumerate(stream(30)):
                decay = trace_discount if i == 0 else t.trace_discount
                model.update(Transition(t.x, t.reward, t.x_next, discount=t.discount, trace_discount=decay, rho=t.rho))
            finals[trace_discount, start] = model.weights.copy()
    assert_close(finals[0.0, 0], finals[0.0, 1], 1e-9, "a zero trace_discount does not empty the trace")
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
    a.update_many(stream(100))
    b.update_many(stream(100))
    assert np.array_equal(a.weights, b.weights), "two runs on the same data differ"


def check_memory_is_bounded(factory: Factory) -> None:
    """After warm-up the model (as pickled: everything that it holds) does not grow with the number of samples.

    An estimator that keeps samples says by ``bytes_per_sample`` how much each may take.
    """
    model = factory(N_FEATURES)
    steps = as_sparse(stream(99))
    t = steps[0]

    def most_held(rounds: int) -> int:
        held = 0
        for _ in range(rounds):
            model.predict(t.x)
            model.update_many(steps)
            model.update(t)  # whatever was cached for reading is gone again
            held = max(held, len(pickle.dumps(model)))
        return held

    most_held(3)
    before, n_before = most_held(2), model.n_updates
    growth, n_new = most_held(5) - before, model.n_updates - n_before
    allowed = 2_000 + n_new * getattr(model, "bytes_per_sample", 0)
    assert growth < allowed, f"{n_new:,} further samples made the model {growth} bytes larger (allowed {allowed})"


def check_empty_update_is_a_no_op(factory: Factory) -> None:
    """``update_many`` of nothing changes nothing."""
    model = factory(N_FEATURES)
    model.update_many(stream(30))
    before = model.weights.copy()
    model.update_many(stream(30)[:0])
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
    expected.update_many(stream(10))
    expected.update(Transition(plain, 1.0, plain, discount=0.5, trace_discount=0.5))
    for name, x in spellings.items():
        model = factory(N_FEATURES)
        model.update_many(stream(10))
        model.update(Transition(x, 1.0, x, discount=0.5, trace_discount=0.5))
        assert_close(model.weights, expected.weights, 1e-10, f"{name}: another model than plain float64")
        assert_close(model.predict(x), expected.predict(plain), 1e-10, f"{name}: another prediction")
    tiny = factory(N_FEATURES)
    tiny.update(Transition(plain * 1e-310, 1e-310, plain * 5e-324, discount=0.5, trace_discount=0.5))
    assert np.isfinite(tiny.weights).all(), "subnormal features give weights that are not finite"
    tiny.update_many(stream(40))
    reference = factory(N_FEATURES)
    reference.update(Transition(plain * 1e-200, 0.0, plain * 1e-200, discount=0.5, trace_discount=0.5))
    reference.update_many(stream(40))
    assert_close(tiny.weights, reference.weights, 1e-8, "subnormal features do not act like zeros")


def check_bad_input_changes_nothing(factory: Factory) -> None:
    """Bad input raises a TlstdError, and the model goes on as if it had not been tried."""
    model, twin = factory(N_FEATURES), factory(N_FEATURES)  # of which one is never given anything bad
    for m in (model, twin):
        m.update_many(stream(35))
    more = stream(24, seed=3)
    for number, (name, attempt) in enumerate(bad_inputs()):
        before = model.weights.copy()
        assert_refused(name, attempt, model)
        assert model.n_updates == twin.n_updates, f"{name}: changed n_updates"
        assert np.array_equal(model.weights, before), f"{name}: changed the weights"
        at = 2 * number % len(more)
        for m in (model, twin):
            m.update_many(more[at : at + 1 + number % 2])
        assert np.array_equal(model.weights, twin.weights), f"{name}: left something behind"


def check_update_and_predict(factory: Factory) -> str | None:
    """``update_and_predict`` learns as ``update`` does and returns what ``predict(x_next)`` says after each step.

    (Passed over if there is no such method, and with importance ratios or several targets if these are refused.)
    """
    if not hasattr(factory(N_FEATURES), "update_and_predict"):
        return "it has no method update_and_predict"
    steps = stream(44)
    off_policy = stream(44)
    off_policy.rhos = np.random.default_rng(1).choice([0.0, 0.6, 1.0, 1.3], 44, p=[0.05, 0.25, 0.4, 0.3])
    try:
        factory(N_FEATURES).update_many(off_policy)
    except TlstdError:
        pass
    else:
        steps = off_policy
    _check_in_turn(partial(factory, N_FEATURES), steps, in_pieces="sparse")
    try:
        factory(N_FEATURES, n_targets=3)
    except (TypeError, TlstdError):
        pass
    else:
        make = partial(factory, N_FEATURES, n_targets=3)
        _check_in_turn(make, stream(30, n_targets=3), in_pieces="dense")
    _check_refusals_of_update_and_predict(factory)
    return None


def _check_in_turn(make: Callable[[], Any], dense: Transitions, *, in_pieces: str) -> None:
    in_turn, n = make(), len(dense)
    expected = np.array([_updated(in_turn, t).predict(t.x_next) for t in dense])
    for steps, form in ((dense, "dense"), (as_sparse(dense), "sparse")):
        cuts = (0, 1, 11, n - 6, n - 6, n - 5, n) if form == in_pieces else (0, n)
        model = make()
        pieces = [model.update_and_predict(steps[a:b]) for a, b in pairwise(cuts)]
        how = f"update_and_predict of {form} steps in {len(pieces)} call(s)"
        values = np.concatenate(pieces)
        assert values.shape == expected.shape, f"{how} has shape {values.shape}, not {expected.shape}"
        assert model.n_updates == n, f"n_updates after {how}: {model.n_updates}"
        assert_close(values, expected, 1e-10, f"{how} differs from update and predict in turn")
        assert_close(model.weights, in_turn.weights, 1e-10, f"{how} leaves another model than update")


def _updated(model: Any, transition: Transition) -> Any:
    model.update(transition)
    return model


def _check_refusals_of_update_and_predict(factory: Factory) -> None:
    model = factory(N_FEATURES)
    model.update_many(stream(35))
    before = model.weights.copy()
    attempts: list[tuple[str, Callable[[Any], None]]] = [
        ("something else than Transitions", lambda model: model.update_and_predict([1, 2])),
        ("too many rewards", lambda model: model.update_and_predict(stream(5, n_targets=2))),
    ]
    for column in ("store", "next_store", "rewards", "discounts", "trace_discounts", "rhos"):
        late = partial(update_late, column, np.nan, method="update_and_predict")
        attempts.append((f"NaN in the last of {column}", late))
    for name, attempt in attempts:
        assert_refused(f"update_and_predict of {name}", attempt, model)
        assert model.n_updates == 35, f"update_and_predict of {name}: changed n_updates"
        assert np.array_equal(model.weights, before), f"update_and_predict of {name}: changed the weights"
    twin = factory(N_FEATURES)
    twin.update_many(stream(35))
    for m in (model, twin):
        m.update_many(stream(9, seed=3))
    assert_close(model.weights, twin.weights, 1e-10, "a refused update_and_predict left something behind")


def check_targets_are_independent(factory: Factory) -> str | None:
    """With several targets each column is the model of that reward alone. (Passed over if the factory takes none.)"""
    try:
        model = factory(N_FEATURES, n_targets=3)
    except (TypeError, TlstdError):
        return "the factory does not take n_targets"
    steps = stream(80, n_targets=3)
    model.update_many(steps)
    for t in stream(11, seed=2, n_targets=3):
        model.update(t)
    assert model.weights.shape == (N_FEATURES, 3), f"weights have shape {model.weights.shape}"
    assert_close(model.sparse_weights.toarray(), model.weights, 0.0, "sparse_weights differ from weights")
    X = np.asarray(steps.X)
    assert model.predict(X).shape == (80, 3), f"predict has shape {model.predict(X).shape}"
    assert_close(model.predict(X[0]), X[0] @ model.weights, 1e-10, "predict of a vector is not weightsᵀx")
    for target in range(3):
        single = factory(N_FEATURES)
        for part in (steps, stream(11, seed=2, n_targets=3)):
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
        assert_close(model.weights[:, target], single.weights, 1e-8, f"target {target} differs from a model of its own")
    return None


def check_start_from(factory: Factory) -> str | None:
    """Learning from weights w is learning, from 0, what w leaves unexplained. (Passed over without ``start_from``.)"""
    steps, w = stream(60), np.linspace(-1.0, 2.0, N_FEATURES)
    moved, plain = factory(N_FEATURES), factory(N_FEATURES)
    if not hasattr(moved, "start_from"):
        return "it has no method start_from"
    moved.start_from(np.ones(N_FEATURES))
    moved.start_from(np.zeros(N_FEATURES))
    assert_close(moved.weights, np.zeros(N_FEATURES), 0.0, "start_from(0) does not make the weights 0")
    moved.start_from(SparseVector.from_dense(w))
    assert_close(moved.weights, w, 1e-15, "start_from(w) does not make the weights w")
    X, X_next = np.asarray(steps.X), np.asarray(steps.X_next)
    rewards = steps.rewards + steps.discounts * (X_next @ w) - X @ w
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts, "rhos": steps.rhos}
    moved.update_many(steps)
    plain.update_many(Transitions(X, rewards, X_next, **columns))
    assert_close(moved.weights, w + plain.weights, 1e-9, "learning from w is not learning what w leaves unexplained")
    assert_refused("start_from() after updates", lambda model: model.start_from(w), moved)
    return None


def check_merge(factory: Factory) -> str | None:
    """Models of two halves merge into the model of the whole, which can learn on, or are refused; they do not change.

    Where a rank below the number of features cuts things off, the merged model is not that of the whole.
    """
    halves = [stream(60), stream(90, seed=1)]
    models, whole = [factory(N_FEATURES), factory(N_FEATURES)], factory(N_FEATURES)
    if not isinstance(whole, LinearEstimator):
        return "it is no LinearEstimator, so that models cannot be merged"
    for model, half in zip(models, halves, strict=True):
        model.update_many(half)
        whole.update_many(half)
    before = [model.weights.copy() for model in models]
    try:
        merged = merge(models)
    except InvalidInputError:
        merged = None
    for model, weights in zip(models, before, strict=True):
        assert (model.weights == weights).all(), "merging changed a model that was merged"
    if merged is None:
        return "its models refuse to be merged"
    assert merged.n_updates == 150, f"n_updates after merging models of 60 and 90 samples: {merged.n_updates}"
    for model in (merged, whole):
        model.update_many(stream(30, seed=2))
    if why_unsaved(merged) is None:
        with tempfile.TemporaryDirectory() as folder:
            merged.save(os.path.join(folder, "model"))
    if getattr(merged, "rank", N_FEATURES) >= N_FEATURES:
        assert_close(merged.weights, whole.weights, 1e-8, "models of two halves merge into another model")
    return None


def check_save_and_load(factory: Factory) -> str | None:
    """A model saved in mid-stream goes on as if never stopped, bit for bit.

    (Passed over if it has no ``save``, and for a LinearEstimator without ``_state``.)
    """
    why = why_unsaved(factory(N_FEATURES))
    if why is not None:
        return why
    for n_steps in (0, 1, 37, 90):
        model = factory(N_FEATURES)
        model.update_many(stream(n_steps))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            try:
                model.save(path)
                twin = loaded(path, type(model))
            except StateError as error:
                raise AssertionError(f"after {n_steps} steps it cannot be saved and loaded: {error}") from error
        for more in (stream(0), stream(70, seed=2)):
            for m in (model, twin):
                for t in more[:30]:
                    m.update(t)
                m.update_many(more[30:])
            assert twin.n_updates == model.n_updates, f"n_updates is {twin.n_updates}, not {model.n_updates}"
            x = np.asarray(stream(1, seed=3).X)[0]
            assert twin.predict(x) == model.predict(x), f"saved after {n_steps} steps and loaded, it predicts otherwise"
            assert np.array_equal(twin.weights, model.weights), f"saved after {n_steps} steps, it has other weights"
    return None


def check_copies_are_independent(factory: Factory) -> None:
    """A copy (``copy``, ``deepcopy``, ``pickle``) is equal; what one of the two learns does not reach the other."""
    steps, other = stream(60, seed=6), stream(20, seed=9)
    x = np.asarray(steps.X)[0]
    early, whole, branch = factory(N_FEATURES), factory(N_FEATURES), factory(N_FEATURES)
    early.update_many(steps[:40])
    whole.update_many(steps)
    branch.update_many(steps[:50])
    branch.update_many(other)
    for (name, how), read in product(_COPIES.items(), (False, True)):
        model = factory(N_FEATURES)
        model.update_many(steps[:40])
        if read:
            model.predict(x)
        twin = how(model)
        assert type(twin) is type(model), f"{name} makes a {type(twin).__name__}"
        _assert_equal_models(twin, early, f"a copy ({name}) is another model")
        twin.update_many(steps[40:50])
        twin.update_many(other)
        _assert_equal_models(model, early, f"after its copy ({name}) has learned, it is another model")
        model.update_many(steps[40:])
        _assert_equal_models(model, whole, f"going on beside its copy ({name}), it is another model")
        _assert_equal_models(twin, branch, f"a copy ({name}) changes when the original learns")
        if read and why_unsaved(model) is None:
            _assert_equal_models(_saved_and_loaded(model), whole, f"saved after it was copied ({name}), it is another")
            _assert_equal_models(_saved_and_loaded(twin), branch, f"a copy ({name}) is saved as another model")


_COPIES: dict[str, Callable[[Any], Any]] = {
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


def _assert_equal_models(model: Any, expected: Any, message: str) -> None:
    x = np.asarray(stream(1, seed=6).X)[0]
    assert model.n_updates == expected.n_updates, f"{message}: n_updates is {model.n_updates}"
    assert_close(model.weights, expected.weights, 1e-8, message)
    assert_close(model.predict(x), x @ expected.weights, 1e-8, f"{message} (predict)")


def _saved_and_loaded(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        model.save(path)
        return loaded(path, type(model))


def check_parameters_are_read_only(factory: Factory) -> None:
    """Constructor arguments and ``n_updates`` cannot be set: a TlstdError that is an AttributeError, and no change."""
    model = factory(N_FEATURES)
    names = [name for name in inspect.signature(type(model)).parameters if hasattr(model, name)]
    for name in dict.fromkeys([*names, "n_features", "n_updates"]):
        before = getattr(model, name)
        for value in (before, 3, None):
            try:
                setattr(model, name, value)
            except AttributeError as error:
                kind = type(error)
            else:
                raise AssertionError(f"{name} can be set to {value!r}")
            assert issubclass(kind, TlstdError), f"setting {name} raises {kind.__name__}, not a TlstdError"
            assert getattr(model, name) is before or getattr(model, name) == before, f"setting {name} changed it"


CHECKS: tuple[Check, ...] = (
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
    check_memory_is_bounded,
    check_empty_update_is_a_no_op,
    check_unusual_but_valid_input,
    check_bad_input_changes_nothing,
    check_update_and_predict,
    check_targets_are_independent,
    check_start_from,
    check_merge,
    check_save_and_load,
    check_copies_are_independent,
    check_parameters_are_read_only,
)


def _arrays(steps: Transitions) -> list[FloatArray]:
    return [np.asarray(steps.store), np.asarray(steps.next_store), steps.rewards, steps.discounts]
