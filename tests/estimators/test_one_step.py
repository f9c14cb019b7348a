"""``update`` and ``predict`` in one compiled call each: the same model, to the bit, and the same refusals."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from tests.faults import reliability
from tlstd import TD, TLSTD, Decay, KrylovLSTD, TrueOnlineTD
from tlstd.checks.data import as_sparse, stream
from tlstd.data.transitions import Transition, TransitionBuilder
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidInputError, TlstdError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import ESTIMATORS

D = 60

COMPILED: dict[str, Callable[[int], LinearEstimator]] = {
    "TD": lambda d: TD(d, step_size=0.1, lambda_=0.9),
    "TD (hashed rows)": lambda d: TD(d + 10**6, step_size=0.1, lambda_=0.9),
    "TD (64-bit ids)": lambda d: TD(d + 2**40, step_size=0.1, lambda_=0.9),
    "TD (replacing)": lambda d: TD(d, step_size=Decay(0.3, 10), lambda_=0.9, trace="replacing"),
    "TD (λ = 0)": lambda d: TD(d, step_size=0.1, lambda_=0.0),
    "TrueOnlineTD": lambda d: TrueOnlineTD(d, step_size=Decay(0.1, 100), lambda_=0.9),
    "TLSTD": lambda d: TLSTD(d, 5, lambda_=0.9, buffer_size=40),
    "TLSTD (hashed rows, forgets)": lambda d: TLSTD(d + 10**6, 5, lambda_=0.9, buffer_size=40, beta=0.01),
    "KrylovLSTD (stream)": lambda d: KrylovLSTD(d, lambda_=0.9, dimension=8, reads="stream"),
    "KrylovLSTD (chooses)": lambda d: KrylovLSTD(d, lambda_=0.9, reads="stream"),
    "KrylovLSTD (folds)": lambda d: KrylovLSTD(d, lambda_=0.9, dimension=4, reads="stream", max_samples=90),
    "KrylovLSTD (forgets)": lambda d: KrylovLSTD(d, lambda_=0.9, dimension=4, reads="stream", beta=0.05),
}
"""Estimators that learn from an everyday transition in one compiled call."""

QUICK_WAYS = ("_learn_one", "_value", "_is_solved")
MODELS = {
    name: make
    for name, make in {**ESTIMATORS, **COMPILED}.items()
    if any(getattr(type(make(D)), way) is not getattr(LinearEstimator, way) for way in QUICK_WAYS)
}
"""All that have a quick way of their own."""


def slow(model: LinearEstimator) -> LinearEstimator:
    """The model without its quick ways."""
    model._learn_one = lambda t: False  # type: ignore[method-assign]
    model._value = lambda x: None  # type: ignore[method-assign]
    return model


def flat(state: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(state, dict):
        for key, value in state.items():
            yield from flat(value, f"{name}.{key}")
    else:
        yield name, state


def assert_same(quick: LinearEstimator, slow: LinearEstimator) -> None:
    assert quick.n_updates == slow.n_updates
    assert quick._bound == slow._bound
    expected = dict(flat(slow._state()))
    for name, value in flat(quick._state()):
        np.testing.assert_array_equal(value, expected.pop(name), name)
    assert not expected


def vector(rng: np.random.Generator, size: int, nasty: bool) -> SparseVector:
    """Few of the first D features, mostly ones as of tiles; ``nasty``: none at all, all at once, of any size."""
    n = int(rng.choice([0, 1, 4, 4, 4, 4, 40])) if nasty else 4
    ids = rng.choice(min(D, size), min(n, size), replace=False)
    values = np.ones(ids.size) if not nasty or rng.random() < 0.5 else rng.standard_normal(ids.size)
    if nasty and rng.random() < 0.1:
        values *= 10.0 ** rng.integers(-80, 80)
    return SparseVector(ids, values, size)


def steps(seed: int, size: int, n: int, *, nasty: bool) -> list[Transition]:
    """The first n of many, the same for all who ask: models do not change what they are given."""
    return drawn(seed, size, nasty)[:n]


@cache
def drawn(seed: int, size: int, nasty: bool) -> list[Transition]:
    rng = np.random.default_rng(seed)
    build = TransitionBuilder(gamma=0.9)
    build.reset(vector(rng, size, nasty))
    made = []
    for _ in range(400):
        x_next = vector(rng, size, nasty)
        ends = rng.random() < (0.2 if nasty else 0.02)
        rho = float(rng.choice([1.0, 1.0, 1.0, 0.0, 0.4, 3.0, 1e60])) if nasty else 1.0
        discount = float(rng.choice([0.0, 1.0, 0.5])) if nasty and rng.random() < 0.2 else None
        reward = float(rng.standard_normal()) * (10.0 ** rng.integers(-20, 20) if nasty and rng.random() < 0.1 else 1.0)
        cut = ends and rng.random() < 0.5
        ended = {"terminated": ends and not cut, "truncated": cut}
        made.append(build.step(reward, x_next, **ended, rho=rho, discount=discount))
        if ends:
            build.reset(vector(rng, size, nasty))
    return made


def outcome(action: Callable[[Any], Any], given: object) -> Any:
    """What it returns, or what it refuses by."""
    try:
        return action(given)
    except TlstdError as error:
        return type(error), str(error)


@pytest.mark.parametrize("nasty", [False, True], ids=["plain", "nasty"])
@pytest.mark.parametrize("name", MODELS)
def test_the_same_to_the_bit(name: str, nasty: bool) -> None:
    quick, other = MODELS[name](D), slow(MODELS[name](D))
    rng = np.random.default_rng(1)
    n_steps, reads = (150, 0.5) if name in COMPILED else (100, 0.15)  # where each solves a system
    given = steps(0, quick.n_features, n_steps, nasty=nasty)
    for t in given:
        assert outcome(quick.update, t) == outcome(other.update, t)
        if rng.random() < reads:
            for x in (t.x_next, given[rng.integers(n_steps)].x):
                a, b = quick.predict(x), other.predict(x)
                assert np.array_equal(a, b, equal_nan=True), (a, b)
    assert quick.n_updates > n_steps // 3
    assert_same(quick, other)


@pytest.mark.parametrize("name", COMPILED)
def test_everyday_steps_are_one_compiled_call(name: str) -> None:
    model = COMPILED[name](D)
    for t in steps(0, model.n_features, 300, nasty=False):
        model.update(t)
        model.predict(t.x)
    taken = 0
    for t in steps(1, model.n_features, 50, nasty=False):
        if model._learn_one(t):
            taken += 1
        else:
            model._learn_any(t)
    assert taken >= (25 if "Krylov" in name else 45)  # the others make room or new bases
    assert model.n_updates == 350
    assert "TLSTD" in name or isinstance(model._value(SparseVector([3], [1.0], model.n_features)), float)


@pytest.mark.parametrize("name", COMPILED)
def test_refusals_name_the_value_and_change_nothing(name: str) -> None:
    model, other = COMPILED[name](D), slow(COMPILED[name](D))
    size = model.n_features
    for t in steps(0, size, 200, nasty=False):
        model.update(t)
        other.update(t)
    x = SparseVector([1, 2], [1.0, 1.0], size)
    narrow = SparseVector([1, 2], [1.0, 1.0], size - 1)
    large = SparseVector([1], [1e60], size)
    arguments = {"discount": 0.9, "trace_discount": 0.9}
    refused: list[tuple[Callable[[Any], Any], str]] = [
        (lambda m: m.update(Transition(narrow, 1.0, narrow, **arguments)), f"size {size - 1} .* n_features={size}"),
        (lambda m: m.update(Transition(x, [1.0, 2.0], x, **arguments)), "2 reward"),
        (lambda m: m.update(Transition(large, 1.0, x, rho=1e60, **arguments)), "eligibility trace could reach"),
        (lambda m: m.update([x, 1.0, x]), "was given list: pass a Transition"),
        (lambda m: m.predict(narrow), f"x has {size - 1} features .* n_features={size}"),
    ]
    if name == "TrueOnlineTD":
        refused += [(lambda m: m.update(Transition(x, 1.0, x, rho=0.5, **arguments)), "rho is 0.5 .* on-policy")]
    if name == "TD (replacing)":
        half = SparseVector(np.arange(D // 2 + 1), np.ones(D // 2 + 1), D)
        refused += [(lambda m: m.update(Transition(half, 1.0, x, **arguments)), "31 of 60 entries non-zero")]
    for action, message in refused:
        with pytest.raises(InvalidInputError, match=message):
            action(model)
        assert outcome(action, model) == outcome(action, other)
        assert_same(model, other)


@pytest.mark.parametrize("name", COMPILED)
def test_interrupted_at_any_line_it_is_before_or_after_the_step(name: str) -> None:
    model, reference = COMPILED[name](D), COMPILED[name](D)
    everyday = steps(0, model.n_features, 400, nasty=False)
    for t in everyday[:300]:
        model.update(t)
        reference.update(t)
    interrupted = 0
    for n, t in enumerate(everyday[300:]):
        n_before = model.n_updates
        injector = reliability.Injector(type(model), n % 40, KeyboardInterrupt())
        interrupted += injector.run(partial(model.update, t))
        model.predict(t.x)  # mends
        assert model.n_updates in (n_before, n_before + 1)
        if model.n_updates == n_before:
            model.update(t)
        reference.update(t)
        reference.predict(t.x)
        assert model._bound >= reference._bound
    assert interrupted > 20
    np.testing.assert_allclose(model.sparse_weights.values, reference.sparse_weights.values, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["TD", "TrueOnlineTD", "TLSTD", "KrylovLSTD (stream)"])
def test_a_refused_step_leaves_the_solution_that_was_read(name: str) -> None:
    model: Any = ESTIMATORS[name](40)
    for t in as_sparse(stream(30, seed=2, n_features=40)):
        model.update(t)
    solution = model.weights
    vector = SparseVector(np.array([1, 3]), np.array([1e80, 1.0]), 40)
    with pytest.raises(InvalidInputError, match="eligibility trace"):
        model.update(Transition(vector, 1.0, vector, discount=0.9, trace_discount=0.9, rho=1e50))
    assert model._solved is not None
    assert model.weights is solution or np.array_equal(model.weights, solution)
