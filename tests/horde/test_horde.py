"""Many predictions from one stream: each is that of a model of its own, and all stay together whatever happens."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.faults.reliability import Injector
from tlstd import (
    ATD,
    ILSTD,
    LSTD,
    TD,
    TLSTD,
    Columns,
    Decay,
    Horde,
    KrylovLSTD,
    OneHot,
    Question,
    Steps,
    TileCoder,
    Transitions,
    TrueOnlineTD,
    load,
)
from tlstd.core.arrays import FloatArray
from tlstd.errors import BusyError, InvalidInputError, InvalidParameterError, StateError
from tlstd.estimators.base import LinearEstimator

FEATURES = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=3, tilings=2, bias=True)
D = FEATURES.n_features


def until_dark(steps: Steps) -> Any:
    return 0.95 * (steps.next_observations[:, 0] > 0.3)


def rightwards(steps: Steps) -> Any:
    return np.where(steps.actions == 1, 1.5, 0.5)


ON_POLICY = [
    Question("light", 0.9, name="light"),
    Question(lambda steps: steps.next_observations[:, 1], until_dark, name="until dark"),
    Question(1.0, 0.0),
    Question("both", 0.9, size=2),
    Question("light", until_dark, lambda_=0.2),
    Question(-2.0, "gamma"),
]
QUESTIONS = [*ON_POLICY, Question("light", 0.9, rightwards), Question("both", until_dark, "rho", size=2)]
PLAIN = [question for question in QUESTIONS if not any(map(callable, (question.cumulant, question.discount)))][:4]


def walk(n: int = 60, seed: int = 0, ends: bool = True) -> Steps:
    rng = np.random.default_rng(seed)
    observations, next_observations = rng.random((n, 2)), rng.random((n, 2))
    terminated, truncated = rng.random(n) < 0.05 * ends, rng.random(n) < 0.05 * ends
    going_on = ~(terminated | truncated)[:-1]
    observations[1:][going_on] = next_observations[:-1][going_on]
    columns = {
        "light": rng.standard_normal(n),
        "both": sp.csr_array(rng.standard_normal((n, 2)) * (rng.random((n, 2)) < 0.5)),
        "gamma": rng.random(n),
        "rho": rng.uniform(0.5, 1.5, n),
    }
    return Steps(
        observations,
        next_observations,
        actions=rng.integers(0, 2, n),
        terminated=terminated,
        truncated=truncated,
        columns=columns,
    )


def literal(question: Question, steps: Steps, X: FloatArray, X_next: FloatArray) -> list[Transitions]:
    """What the question says, step by step, for each of its cumulants; the features are given."""
    columns: dict[str, Any] = {**steps.columns, "both": steps.columns["both"].toarray()}
    parts: list[Any] = [
        part if isinstance(part, float) else columns[part] if isinstance(part, str) else np.asarray(part(steps))
        for part in (question.cumulant, question.discount, question.ratio)
    ]
    cumulants, gammas, rhos = (np.broadcast_to(p, (len(steps),)) if np.ndim(p) < 2 else p for p in parts)
    discounts, traces = [], []
    before = 0.0
    for t in range(len(steps)):
        traces.append(before)
        discounts.append(0.0 if steps.terminated[t] else float(gammas[t]))
        before = 0.0 if steps.terminated[t] or steps.truncated[t] else float(gammas[t])
    rewards = cumulants.reshape(len(steps), -1).T
    return [
        Transitions(X, r.copy(), X_next, discounts=discounts, trace_discounts=traces, rhos=rhos.copy()) for r in rewards
    ]


MODELS: dict[str, Callable[[], LinearEstimator]] = {
    "TD": lambda: TD(D, step_size=Decay(0.1, 10), lambda_=0.7),
    "TrueOnlineTD": lambda: TrueOnlineTD(D, step_size=0.05, lambda_=0.7),
    "TLSTD": lambda: TLSTD(D, D, lambda_=0.7),
    "KrylovLSTD": lambda: KrylovLSTD(D, lambda_=0.7, dimension=6),
    "ILSTD": lambda: ILSTD(D, step_size=Decay(0.01, 100), lambda_=0.7),
}


@pytest.mark.parametrize("name", MODELS)
def test_each_prediction_is_that_of_a_model_of_its_own(name: str) -> None:
    questions, steps = ON_POLICY if name == "TrueOnlineTD" else QUESTIONS, walk()
    horde = Horde(FEATURES, questions, MODELS[name]())
    values = horde.update_and_predict(steps[:35])
    horde.update_many(steps[35:])
    X, X_next = FEATURES.encode_many(steps.observations), FEATURES.encode_many(steps.next_observations)
    place = 0
    for question in questions:
        for transitions in literal(question, steps, X, X_next):
            alone = MODELS[name]().clone(lambda_=0.7 if question.lambda_ is None else question.lambda_)
            first = alone.update_and_predict(transitions[:35])
            alone.update_many(transitions[35:])
            scale = max(1.0, np.abs(alone.weights).max())
            assert_allclose(values[:, place], first, rtol=0.0, atol=1e-9 * max(1.0, np.abs(first).max()))
            assert_allclose(horde.weights[:, place], alone.weights, rtol=0.0, atol=1e-9 * scale)
            assert_allclose(horde.predict(steps.observations[:3])[:, place], X[:3] @ alone.weights, atol=1e-9 * scale)
            place += 1
    assert place == horde.n_predictions == values.shape[1]
    expected_groups = {"ILSTD": horde.n_predictions, "TrueOnlineTD": 5}.get(name, 7)
    assert horde.n_groups == expected_groups


def test_a_solution_written_out() -> None:
    """LSTD of every question from the sums of the definition, in dense NumPy."""
    steps = walk(80, seed=1)
    horde = Horde(Columns(2), QUESTIONS, LSTD(3, lambda_=0.7))
    horde.update_many(steps)
    X, X_next = (np.column_stack([o, np.ones(80)]) for o in (steps.observations, steps.next_observations))
    place = 0
    for question in QUESTIONS:
        for t in literal(question, steps, X, X_next):
            lambda_ = 0.7 if question.lambda_ is None else question.lambda_
            A, b, z = np.zeros((3, 3)), np.zeros(3), np.zeros(3)
            for x, x_next, r, gamma, trace, rho in zip(
                X, X_next, t.rewards, t.discounts, t.trace_discounts, t.rhos, strict=True
            ):
                z = rho * (trace * lambda_ * z + x)
                A += np.outer(z, x - gamma * x_next)
                b += z * r
            w = np.linalg.solve(A, b)
            assert_allclose(horde.weights[:, place], w, rtol=0.0, atol=1e-9 * max(1.0, np.abs(w).max()))
            place += 1


def test_successor_features_of_a_ring() -> None:
    """Cumulants that are the features themselves, sparse: with one feature a state, (I - γP)⁻¹."""
    n, gamma = 12, 0.9
    ring = OneHot([0], [n - 1])
    question = Question(lambda steps: ring.encode_many(steps.observations), gamma, size=n)
    horde = Horde(ring, [question], LSTD(n, lambda_=0.0))
    horde.update_many(Steps.along((np.arange(5 * n + 1) % n)[:, None]))
    P = np.roll(np.eye(n), 1, axis=1)
    assert_allclose(horde.weights, np.linalg.inv(np.eye(n) - gamma * P), atol=1e-9)
    assert horde.n_groups == 1


def test_one_by_one() -> None:
    steps = walk(40)
    whole, single = (Horde(FEATURES, QUESTIONS, MODELS["TD"]()) for _ in range(2))
    whole.update_many(steps)
    for t in range(40):
        columns = {name: (v[[t]].toarray()[0] if sp.issparse(v) else v[t]) for name, v in steps.columns.items()}
        assert steps.actions is not None
        single.update(
            steps.observations[t],
            steps.next_observations[t],
            action=steps.actions[t],
            terminated=steps.terminated[t],
            truncated=steps.truncated[t],
            columns=columns,
        )
    assert_array_equal(single.weights, whole.weights)
    assert_array_equal(single.predict([0.5, 0.5]), whole.predict([[0.5, 0.5]])[0])
    assert single.n_updates == 40


def test_a_single_step_ends_nothing_unless_it_says_so() -> None:
    path = np.random.default_rng(0).random((20, 2))
    whole, single = (Horde(FEATURES, [Question(1.0, 0.9)], MODELS["TD"]()) for _ in range(2))
    whole.update_many(Steps(path[:-1], path[1:]))
    for before, after in pairwise(path):
        single.update(before, after)
    assert_array_equal(single.weights, whole.weights)


@pytest.mark.parametrize("name", ["TD", "TLSTD", "KrylovLSTD"])
def test_saved_and_resumed_to_the_bit(name: str, tmp_path: Path) -> None:
    steps = walk(50, ends=False)  # in the middle of an episode
    horde = Horde(FEATURES, QUESTIONS, MODELS[name]())
    horde.update_many(steps[:23])
    horde.save(tmp_path / "horde")
    same = Horde.load(tmp_path / "horde", questions=QUESTIONS)
    assert same.features == FEATURES
    for model in (horde, same):
        model.update_many(steps[23:])
    assert_array_equal(same.weights, horde.weights)
    with pytest.raises(StateError, match=r"cannot be loaded \(its questions have functions .*: pass questions=\)"):
        Horde.load(tmp_path / "horde")
    with pytest.raises(StateError, match="its questions are not the ones that were passed"):
        Horde.load(tmp_path / "horde", questions=QUESTIONS[::-1])


@pytest.mark.parametrize("name", ["TD", "TLSTD", "KrylovLSTD"])
def test_a_gap_ends_the_trace_as_a_truncated_step_does(name: str, tmp_path: Path) -> None:
    """In a running horde, in a loaded one, and in one that is saved after the gap."""
    steps = walk(50, ends=False)
    horde, cut, across = (Horde(FEATURES, QUESTIONS, MODELS[name]()) for _ in range(3))
    horde.gap()  # of a fresh one: changes nothing
    horde.update_many(steps[:23])
    across.update_many(steps)
    horde.save(tmp_path / "before")
    loaded = Horde.load(tmp_path / "before", questions=QUESTIONS)
    horde.gap()
    horde.save(tmp_path / "after")
    loaded.gap()
    saved_after = Horde.load(tmp_path / "after", questions=QUESTIONS)
    steps.truncated[22] = True
    cut.update_many(steps)
    for found in (horde, loaded, saved_after):
        assert found.n_updates == 23
        found.update_many(steps[23:])
        assert_array_equal(found.weights, cut.weights)
    assert np.abs(across.weights - cut.weights).max() > 0.0


def test_a_gap_before_single_steps() -> None:
    horde, cut = (Horde(FEATURES, [Question(1.0, 0.9)], MODELS["TD"]()) for _ in range(2))
    for model, truncated in ((horde, False), (cut, True)):
        model.update([0.1, 0.2], [0.3, 0.4], truncated=truncated)
    horde.gap()
    for model in (horde, cut):
        model.update([0.3, 0.4], [0.8, 0.9])
    assert_array_equal(horde.weights, cut.weights)


class OwnMap:
    """A feature map of somebody's own."""

    n_features = 2

    def encode(self, state: Any) -> FloatArray:
        return np.array(state)

    def encode_many(self, states: Any) -> FloatArray:
        return np.array(states)


def test_files_of_numbers_and_names(tmp_path: Path) -> None:
    horde = Horde(OwnMap(), PLAIN, TD(2, step_size=0.1, lambda_=0.5))
    horde.update_many(walk(9))
    horde.save(tmp_path / "horde")
    same = Horde.load(tmp_path / "horde", features=OwnMap())
    assert same.questions == tuple(PLAIN)
    assert_array_equal(same.weights, horde.weights)
    with pytest.raises(StateError, match="its feature map is not in the file: pass features="):
        Horde.load(tmp_path / "horde")
    with pytest.raises(StateError, match="the features are 19 but the model has n_features=2"):
        Horde.load(tmp_path / "horde", features=FEATURES)
    with pytest.raises(StateError, match=r"use Horde\.load"):
        load(tmp_path / "horde")
    TD(2, step_size=0.1, lambda_=0.5).save(tmp_path / "td")
    with pytest.raises(StateError, match="it is not a horde"):
        Horde.load(tmp_path / "td")
    bits = bytearray((tmp_path / "horde").read_bytes())
    bits[-1] ^= 1
    (tmp_path / "broken").write_bytes(bits)
    with pytest.raises(StateError, match="checksum"):
        Horde.load(tmp_path / "broken", features=OwnMap())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("questions", [[{"function": "f"}, 0.5, 1.0, None, 1, ""]]),
        ("questions", [[1.0, 2.0, 1.0, None, 1, ""]]),
        ("questions", [[1.0]]),
        ("questions", 3),
        ("models", []),
        ("models", None),
        ("models", [{"class": "TD"}]),
        ("more", 1),
    ],
)
def test_crafted_files(key: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tlstd.core import file_format

    horde, write = Horde(OwnMap(), PLAIN[:1], TD(2, step_size=0.1, lambda_=0.5)), file_format.write
    monkeypatch.setattr(
        file_format, "write", lambda path, name, given, state: write(path, name, {**given, key: value}, state)
    )
    horde.save(tmp_path / "horde")
    with pytest.raises(StateError, match="cannot be loaded"):
        Horde.load(tmp_path / "horde", features=OwnMap())


def test_copies_are_independent() -> None:
    horde = Horde(FEATURES, PLAIN, MODELS["TLSTD"]())
    horde.update_many(walk(20))
    before = horde.weights
    for other in (copy.copy(horde), copy.deepcopy(horde), pickle.loads(pickle.dumps(horde))):
        other.update_many(walk(20, seed=1))
        assert np.abs(other.weights - before).max() > 0.0
    assert_array_equal(horde.weights, before)


@pytest.mark.parametrize("name", ["TD", "TLSTD", "KrylovLSTD"])
def test_interrupted_anywhere(name: str) -> None:
    """By Ctrl-C at points all over the call: all groups have learned the same steps, and the horde goes on."""
    first, second, third = walk(20, ends=False), walk(15, seed=1), walk(10, seed=2)
    start = Horde(FEATURES, QUESTIONS, MODELS[name]())
    start.update_many(first)
    after: dict[int, FloatArray] = {}
    for n in (20, 35):
        whole = copy.deepcopy(start)
        whole.update_many(second[: n - 20])
        whole.update_many(third)
        after[n] = whole.weights
    whole, counter = copy.deepcopy(start), Injector(Horde)
    counter.run(partial(whole.update_many, second))
    seen = set()
    for line in np.linspace(1, counter.n_lines, 20).astype(int):
        horde = copy.deepcopy(start)
        assert Injector(Horde, line, KeyboardInterrupt()).run(partial(horde.update_many, second))
        n = horde.n_updates
        seen.add(n)
        assert {group.model.n_updates for group in horde._groups} == {n}
        horde.update_many(third)
        assert_allclose(horde.weights, after[n], rtol=0.0, atol=1e-9 * np.abs(after[n]).max())
    assert seen == {20, 35}


def test_single_steps_interrupted_anywhere() -> None:
    step: dict[str, Any] = {"columns": {"light": 0.5, "gamma": 0.7, "both": [1.0, 2.0]}, "action": 1}
    start = Horde(FEATURES, PLAIN, MODELS["TD"]())
    start.update_many(walk(20, ends=False))
    after = copy.deepcopy(start)
    counter = Injector(Horde)
    counter.run(partial(after.update, [0.1, 0.2], [0.3, 0.4], **step))
    for line in np.linspace(1, counter.n_lines, 20).astype(int):
        horde = copy.deepcopy(start)
        assert Injector(Horde, line, KeyboardInterrupt()).run(partial(horde.update, [0.1, 0.2], [0.3, 0.4], **step))
        assert_array_equal(horde.weights, (after if horde.n_updates == 21 else start).weights)


def test_refusals_change_nothing() -> None:
    questions = [Question(1.0, 0.5), Question(1.0, 0.9, ratio="rho")]
    horde = Horde(FEATURES, questions, MODELS["TrueOnlineTD"]())
    steps = walk(10)
    ones = Steps(steps.observations, steps.next_observations, columns={"rho": np.ones(10)})
    horde.update_many(ones)
    before = horde.weights
    for wrong, why in (
        (steps, "rho"),  # the second group refuses ratios
        (Steps(steps.observations, steps.next_observations), "is the column 'rho', which the steps do not have"),
        (Steps(steps.observations, steps.next_observations, columns={"rho": -np.ones(10)}), r"must lie in \[0, "),
        (Steps(steps.observations[:, :1], steps.next_observations[:, :1], columns={"rho": np.ones(10)}), "shape"),
        ([], "pass Steps"),
    ):
        with pytest.raises(InvalidInputError, match=why):
            horde.update_many(wrong)  # type: ignore[arg-type]
        assert horde.n_updates == 10
        assert_array_equal(horde.weights, before)
    horde.update_many(ones[:0])
    assert horde.n_updates == 10


def test_a_function_may_not_use_the_horde_that_asks_it() -> None:
    questions = [Question(lambda steps: horde.predict(steps.next_observations)[:, 0], 0.5)]
    horde = Horde(FEATURES, questions, MODELS["TD"]())
    with pytest.raises(BusyError, match="predict was asked for in the middle of another call on this Horde"):
        horde.update_many(walk(5))
    assert horde.n_updates == 0


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Question(1.0, 1.5), r"discount is 1.5: it must lie in \[0, 1\], or the name of a column"),
        (lambda: Question(1.0, 0.5, ratio=-1.0), "ratio is -1.0"),
        (lambda: Question(None, 0.5), "cumulant is None"),  # type: ignore[arg-type]
        (lambda: Question(1.0, 0.5, size=0), "size is 0"),
        (lambda: Question(1.0, 0.5, lambda_=2.0), "lambda_ is 2.0"),
        (lambda: Question(1.0, 0.5, name=3), "name is 3"),  # type: ignore[arg-type]
        (lambda: Horde(FEATURES, [], MODELS["TD"]()), "pass a list of one or more Question"),
        (lambda: Horde(FEATURES, PLAIN, TD(3, step_size=0.1, lambda_=0.0)), "the features are 19 but"),
        (lambda: Horde(FEATURES, PLAIN, "TD"), "model is str"),  # type: ignore[arg-type]
        (lambda: Horde(3, PLAIN, MODELS["TD"]()), "has no n_features"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_asked(make: Callable[[], object], why: str) -> None:
    with pytest.raises(InvalidParameterError, match=why):
        make()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Steps([[0.0]], [[0.0, 1.0]]), r"pass \(N, D\) for both"),
        (lambda: Steps([[0.0]], [[1.0]], actions=[1, 2]), "actions have shape"),
        (lambda: Steps([[0.0]], [[1.0]], columns={"light": [1.0, 2.0]}), "the column light has shape"),
        (lambda: Steps.along([]), "observations have shape"),
        (lambda: Question("a", 0.5).cumulants(Steps([[0.0]], [[1.0]], columns={"a": [[1.0, 2.0]]})), "shape"),
        (lambda: Question("a", 0.5, name="q").cumulants(Steps([[0.0]], [[1.0]], columns={"a": [np.nan]})), "'q'"),
    ],
)
def test_steps_that_are_none(make: Callable[[], object], why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        make()


def test_observations_on_a_path_are_encoded_once() -> None:
    steps = Steps.along(np.arange(6.0)[:, None], terminated=True)
    found, rows = steps.distinct()
    assert_array_equal(found.ravel(), np.arange(6.0))
    assert_array_equal(rows, np.arange(1, 6))
    assert steps.terminated.tolist() == [False] * 4 + [True]
    jump = Steps([[0.0], [5.0]], [[1.0], [6.0]])
    assert_array_equal(jump.distinct()[0].ravel(), [0.0, 1.0, 5.0, 6.0])
    assert_array_equal(jump.distinct()[1], [1, 3])
    assert "Horde of 10 predictions by 7 ATD" in repr(
        Horde(FEATURES, QUESTIONS, ATD(D, 3, step_size=1.0, lambda_=0.5, eta=0.1))
    )
