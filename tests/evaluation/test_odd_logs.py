"""Whatever log and question come: an answer, or an error of the library. Warnings are errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tlstd import Log
from tlstd.errors import TlstdError
from tlstd.evaluation import Report, difference, evaluate
from tlstd.evaluation.question import ESTIMATORS

POLICIES = ("logged", "uniform", "last", "new", "table", "zero", "probabilities")


@st.composite
def odd_logs(draw: st.DrawFn) -> tuple[Log, NDArray[Any]]:
    """Up to 60 steps: equal observations, one action, cuts without a final observation, tiny or huge rewards."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([1, 2, 3, 5, 8, 20, 60]))
    seen: NDArray[Any] = {
        "numbers": rng.integers(0, draw(st.sampled_from([1, 3, 40])), n),
        "vectors": rng.standard_normal((n, 2)),
        "steps": np.round(rng.random((n, 1)), 1),
        "equal": np.full((n, 3), 2.5),
    }[draw(st.sampled_from(["numbers", "vectors", "steps", "equal"]))]
    scale = draw(st.sampled_from([0.0, 1.0, 1e-300, 1e90]))
    rewards = scale * [rng.standard_normal(n), np.ones(n), 1e3 * (np.arange(n) == n // 2)][draw(st.integers(0, 2))]
    columns: dict[str, Any] = {"discrete": seen.ndim == 1}
    kind = draw(st.sampled_from(["stream", "ones", "fours", "random", "two"]))
    if kind != "stream":
        by = {"ones": np.arange(n), "fours": np.arange(n) // 4, "random": np.cumsum(rng.random(n) < 0.3)}
        episodes = by.get(kind, np.arange(n) * 2 // max(n, 2))
        last = np.append(np.diff(episodes) != 0, True)
        ended = last & (rng.random(n) < draw(st.sampled_from([0.0, 0.5, 1.0])))
        columns |= {"episodes": episodes, "terminated": ended, "truncated": last & ~ended}
        if draw(st.booleans()):
            columns["clusters"] = episodes // 2
        if draw(st.booleans()):
            columns["next_observations"] = np.concatenate([seen[1:], seen[:1]])
    acted = draw(st.sampled_from(["none", "two", "one", "words", "numbers"]))
    if acted != "none":
        words = rng.choice(["down", "up"], n)
        made = {"two": rng.integers(0, 2, n), "one": np.zeros(n, dtype=int), "words": words}
        columns["actions"] = made.get(acted, rng.standard_normal((n, 2)))
        if draw(st.booleans()):
            columns["probabilities"] = rng.uniform(0.2, 0.9, n)
    try:
        return Log.from_arrays(seen, rewards, **columns), seen
    except TlstdError:
        return Log.from_arrays(seen, rewards, discrete=seen.ndim == 1, terminated=np.ones(n, dtype=np.bool_)), seen


def policy_of(name: str, log: Log) -> Any:
    if name == "logged" or log.actions is None:
        return "logged"
    n, continuous = len(log), log.actions.ndim == 2
    if name == "zero":
        return np.zeros(n)
    if name == "probabilities":
        return np.full(n, 0.5)
    if continuous:
        return lambda states: np.full((len(states), 2), 1e3 if name == "new" else 0.0)
    k = int(log.actions.max()) + 1
    every = {"uniform": np.full(k, 1.0 / k), "last": np.eye(k)[-1], "new": np.eye(k + 1)[-1]}
    if name == "table":
        return np.tile(every["uniform"], (n, 1))
    return lambda states: np.tile(every[name], (len(states), 1))


@given(
    odd=odd_logs(),
    policy=st.sampled_from(POLICIES),
    gamma=st.sampled_from([0.0, 0.5, 0.999, 1.0]),
    start=st.sampled_from([None, "first", "all", "given", "far"]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "features": st.just("columns"),
            "probabilities": st.just("estimate"),
            "returns": st.just((-1.0, 1.0)),
            "cost": st.just(True),
            "estimators": st.sampled_from(
                [name for name in ESTIMATORS if name != "t-LSTD"] + [["KrylovLSTD", "fitted trees"]]
            ),
        },
    ),
)
@pytest.mark.filterwarnings("error")
def test_an_answer_or_an_error_with_a_remedy(
    odd: tuple[Log, NDArray[Any]], policy: str, gamma: float, start: str | None, options: dict[str, Any]
) -> None:
    log, seen = odd
    states: dict[str | None, Any] = {"given": seen[:1], "far": seen[:1] + 1_000}
    ask = options | {"start": states.get(start, start), "policy": policy_of(policy, log)}
    try:
        found = evaluate(log, gamma=gamma, **ask)
    except TlstdError as error:
        assert len(str(error)) > 30  # noqa: PT017
        return
    assert np.isfinite(found.rows[0].value)
    assert str(found) == str(found)
    assert found.to_json() == found.to_json()
    asked_again(found, seen)


def asked_again(found: Report, seen: NDArray[Any]) -> None:
    """Further questions."""
    for ask in (
        lambda: found.predict(seen[:1]),
        lambda: found.interval(seen[:1]),
        lambda: found.interval(level=0.5),
        lambda: found.most_influential(),
        lambda: found.influence(seen[:1]),
        lambda: difference(found, found),
        lambda: found.compared(found),
    ):
        try:
            ask()
        except TlstdError as error:
            assert len(str(error)) > 30  # noqa: PT017
