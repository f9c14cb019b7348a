"""The composite: one estimator first, then another from its weights."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tlstd
from tests.helpers import random_transitions
from tlstd import ATD, ILSTD, LSTD, TD, TLSTD, CapacityError, Decay, Handover, InvalidParameterError, TrueOnlineTD
from tlstd.core import file_format
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector
from tlstd.errors import StateError
from tlstd.estimators.base import LinearEstimator
from tlstd.truncated.pending_vectors import DenseVectors

D = 12
SECOND: dict[str, Callable[[], Any]] = {
    "TD": lambda: TD(D, step_size=0.02, lambda_=0.5),
    "TrueOnlineTD": lambda: TrueOnlineTD(D, step_size=0.02, lambda_=0.5),
    "ATD": lambda: ATD(D, 3, step_size=Decay(1.0, 10), lambda_=0.5, eta=0.01),
    "ILSTD": lambda: ILSTD(D, step_size=0.01, lambda_=0.5),
}
FIRST: dict[str, Callable[[], Any]] = {
    **SECOND,
    "LSTD": lambda: LSTD(D, lambda_=0.9),
    "TLSTD": lambda: TLSTD(D, 5, lambda_=0.9),
}


def stream(n: int = 100, seed: int = 0) -> tlstd.Transitions:
    return random_transitions(np.random.default_rng(seed), n_features=D, n_steps=n)


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", FIRST)
def test_is_one_after_the_other(first: str, second: str) -> None:
    steps = stream()
    a, b = FIRST[first](), SECOND[second]()
    a.update_many(steps[:20])
    a.update_many(steps[20:37])
    b.start_from(a.weights)
    b.update_many(steps[37:])
    model = Handover(FIRST[first](), SECOND[second](), after=37)
    model.update_many(steps[:20])
    handed_over = [model.handed_over]
    model.update_many(steps[20:])
    assert [*handed_over, model.handed_over] == [None, 37]
    assert type(model.active).__name__ == second
    assert model.n_updates == 100
    assert_array_equal(model.weights, b.weights)


def test_settled_is_what_it_says() -> None:
    steps = stream(800)
    lengths = [25 * 2**i for i in range(6)]
    solutions = []
    for n in lengths:
        alone = LSTD(D, lambda_=0.9)
        alone.update_many(steps[:n])
        solutions.append(alone.weights)
    changes = [float(np.linalg.norm(b - a) / np.linalg.norm(b)) for a, b in pairwise(solutions)]
    settled = 1.001 * changes[3]
    expected = lengths[1 + next(i for i, change in enumerate(changes) if change <= settled)]
    model = Handover(LSTD(D, lambda_=0.9), SECOND["TD"](), settled=settled, patience=25)
    model.update_many(steps)
    assert model.handed_over == expected
    never = Handover(LSTD(D, lambda_=0.9), SECOND["TD"](), settled=0.5 * min(changes), patience=25)
    never.update_many(steps)
    assert never.handed_over is None


def test_first_is_dropped() -> None:
    model = Handover(LSTD(700, lambda_=0.0), TD(700, step_size=0.1, lambda_=0.0), after=2)
    x, x_next = np.random.default_rng(0).normal(size=(2, 700))
    step = Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.0)
    model.update(step)
    before = model.nbytes
    model.update(step)
    assert model.nbytes < 0.03 * before


def nothing_is_learned(model: Handover, steps: tlstd.Transitions, error: type[Exception]) -> None:
    model.update_many(steps[:30])
    weights = model.weights.copy()
    with pytest.raises(error):
        model.update_many(steps[30:])
    assert (model.n_updates, model.handed_over) == (30, None)
    assert_array_equal(model.weights, weights)
    model.update_many(steps[30:40])  # still with the first
    alone = FIRST["TLSTD"]()
    alone.update_many(steps[:40])
    assert_allclose(model.weights, alone.weights, rtol=1e-12)


def test_second_without_memory_undoes_all() -> None:
    second = ILSTD(D, step_size=0.1, lambda_=0.5, memory_limit=1)
    nothing_is_learned(Handover(FIRST["TLSTD"](), second, after=50), stream(), CapacityError)


def test_second_with_a_bad_step_size_undoes_all() -> None:
    second = TD(D, step_size=lambda t: 0.1 if t < 20 else -1.0, lambda_=0.5)
    nothing_is_learned(Handover(FIRST["TLSTD"](), second, after=50), stream(), InvalidParameterError)


def test_diverged_weights_are_not_handed_over() -> None:
    model = Handover(TD(D, step_size=1e90, lambda_=0.9), SECOND["TD"](), after=50)
    model.update_many(stream(200))
    assert not np.isfinite(model.weights).all()
    assert model.handed_over is None


@pytest.mark.parametrize("n_targets", [1, 2])
def test_weights_on_their_way_to_infinity_are_not_handed_over(n_targets: int) -> None:
    steps = random_transitions(np.random.default_rng(0), n_features=D, n_steps=200, n_targets=n_targets)
    model = Handover(
        TD(D, step_size=1e10, lambda_=0.9, n_targets=n_targets),
        TD(D, step_size=0.1, lambda_=0.9, n_targets=n_targets),
        after=12,
    )
    for step in steps:
        model.update(step)
    assert model.handed_over is None
    assert model.n_updates == 200


def test_nothing_learned_is_not_settled() -> None:
    steps = stream(400)
    late = tlstd.Transitions(
        steps.X,
        np.where(np.arange(400) < 150, 0.0, steps.rewards),
        steps.X_next,
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
    )
    model = Handover(LSTD(D, lambda_=0.0), SECOND["TD"](), settled=1e9, patience=25)
    model.update_many(late)
    assert model.handed_over == 200  # where there are weights for the first time


def test_what_is_accepted_does_not_depend_on_the_cut() -> None:
    """The first refuses dense features with replacing traces; those come after the handover."""
    rng = np.random.default_rng(0)
    sparse = random_transitions(rng, n_features=D, n_steps=30, density=0.15)
    dense = random_transitions(rng, n_features=D, n_steps=30)
    both = tlstd.Transitions(
        np.vstack([sparse.X, dense.X]),
        np.concatenate([sparse.rewards, dense.rewards]),
        np.vstack([sparse.X_next, dense.X_next]),
        discounts=np.concatenate([sparse.discounts, dense.discounts]),
        trace_discounts=np.concatenate([sparse.trace_discounts, dense.trace_discounts]),
    )
    at_once, cut = (Handover(TLSTD(D, 4, lambda_=0.5, trace="replacing"), SECOND["TD"](), after=30) for _ in range(2))
    at_once.update_many(both)
    cut.update_many(both[:30])
    cut.update_many(both[30:])
    assert at_once.handed_over == cut.handed_over == 30
    assert_allclose(at_once.weights, cut.weights, rtol=1e-12)


def test_huge_sizes() -> None:
    d = 2**40
    model = Handover(TLSTD(d, 2, lambda_=0.5), TD(d, step_size=0.1, lambda_=0.5), after=3)
    for i in range(10):
        x = SparseVector([i, 2**39 + i], [1.0, 2.0], d)
        model.update(Transition(x, 1.0, x, discount=0.5, trace_discount=0.5 if i else 0.0))
    assert model.handed_over == 3
    assert model.sparse_weights.size == d


@pytest.mark.parametrize(
    ("first", "second", "rule", "message"),
    [
        ("TLSTD", "LSTD", {"after": 10}, "second is LSTD"),
        ("TLSTD", "TLSTD", {"after": 10}, "second is TLSTD"),
        ("TLSTD", "TD", {}, "exactly one"),
        ("TLSTD", "TD", {"after": 10, "settled": 0.1}, "exactly one"),
        ("TLSTD", "TD", {"after": 0}, "after is 0"),
        ("TLSTD", "TD", {"settled": 0.0}, "settled is 0"),
        ("TLSTD", "TD", {"settled": 0.1, "patience": 0}, "patience is 0"),
    ],
)
def test_refused(first: str, second: str, rule: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        Handover(FIRST[first](), FIRST[second](), **rule)


def test_refused_pairs() -> None:
    used = FIRST["TLSTD"]()
    used.update_many(stream(5))
    with pytest.raises(InvalidParameterError, match="5 samples"):
        Handover(used, SECOND["TD"](), after=10)
    with pytest.raises(InvalidParameterError, match="12 features"):
        Handover(TLSTD(D, 2, lambda_=0.5), TD(D + 1, step_size=0.1, lambda_=0.5), after=10)
    with pytest.raises(InvalidParameterError, match="n_targets=2"):
        Handover(TLSTD(D, 2, lambda_=0.5, n_targets=2), TD(D, step_size=0.1, lambda_=0.5, n_targets=2), settled=0.1)
    same = SECOND["TD"]()
    with pytest.raises(InvalidParameterError, match="one and the same"):
        Handover(same, same, after=5)
    inner = Handover(FIRST["TLSTD"](), SECOND["TD"](), after=10)
    with pytest.raises(InvalidParameterError, match="first is Handover"):
        Handover(inner, SECOND["TD"](), after=20)
    with pytest.raises(InvalidParameterError, match="second is str"):
        Handover(FIRST["TLSTD"](), "TD", after=10)  # type: ignore[arg-type]


def test_ratios_that_the_second_cannot_use_are_refused_from_the_start() -> None:
    model = Handover(FIRST["TLSTD"](), SECOND["TrueOnlineTD"](), after=10)
    x = np.ones(D)
    with pytest.raises(tlstd.TlstdError, match="rho"):
        model.update(Transition(x, 1.0, x, discount=0.5, trace_discount=0.0, rho=0.5))
    assert model.n_updates == 0


@pytest.mark.parametrize(
    ("role", "made"),
    [
        ("first", ["Handover", {}]),
        ("first", ["os", {}]),
        ("first", [[], {}]),
        ("second", "TD"),
        ("second", ["LSTD", {"n_features": 12, "lambda_": 0.5}]),
        ("second", ["TD", {"n_features": 12, "step_size": 0.02, "lambda_": 0.5, "trace": "accumulating",
                           "n_targets": 2**40}]),
    ],
)  # fmt: skip
def test_hostile_parts_are_refused(role: str, made: Any, tmp_path: Path) -> None:
    model = Handover(FIRST["TLSTD"](), SECOND["TD"](), after=10)
    model.update_many(stream(20))

    parameters = {**model._parameters(), role: made}
    state = {"n_updates": 20, "trace_bound": 0.0, "model": model._state()}
    file_format.write(tmp_path / "model", "Handover", parameters, state)
    with pytest.raises(StateError):
        tlstd.load(tmp_path / "model")


@pytest.mark.parametrize("n", [0, 30, 60])
def test_saved_before_and_after(n: int, tmp_path: Path) -> None:
    model: LinearEstimator = Handover(FIRST["TLSTD"](), SECOND["ATD"](), after=50)
    steps = stream()
    model.update_many(steps[:n])
    model.save(tmp_path / "model")
    loaded = tlstd.load(tmp_path / "model")
    for m in (model, loaded):
        m.update_many(steps[n:])
    assert isinstance(loaded, Handover)
    assert loaded.handed_over == 50
    assert_array_equal(loaded.weights, model.weights)


def test_the_active_part_is_mended_where_it_is_used_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, append = stream(12), DenseVectors.append
    model, undisturbed = (Handover(TLSTD(D, 4, lambda_=0.5, buffer_size=8), SECOND["TD"](), after=30) for _ in range(2))
    for m in (model, undisturbed):
        m.update_many(steps[:5])

    def cut_off(block: DenseVectors, vectors: FloatArray) -> None:
        append(block, vectors)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DenseVectors, "append", cut_off)
        with pytest.raises(KeyboardInterrupt):
            model.update_many(steps[5:])
    assert_array_equal(model.active.weights, undisturbed.active.weights)
    assert_array_equal(model.weights, undisturbed.weights)


@pytest.mark.parametrize("rule", [{"settled": 0.5, "patience": 2**63 - 1}, {"after": 2**63 - 1}])
def test_a_wait_of_the_largest_number_of_samples(rule: dict[str, Any]) -> None:
    model = Handover(LSTD(4, lambda_=0.5), TD(4, step_size=0.1, lambda_=0.5), **rule)
    model.update_many(tlstd.boyan_chain().sample(50, np.random.default_rng(0)))
    assert model.handed_over is None
