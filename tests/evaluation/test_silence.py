"""Actions that the log does not have: bounds against dense linear algebra, coverage, refusals and options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import tlstd
from tests.evaluation.logs import random_decisions, simulated
from tlstd import InvalidParameterError, Log, TileCoder
from tlstd.cli.app import app
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import Report, difference
from tlstd.evaluation.intervals import interval_of

N, N_ACTIONS, GAMMA = 10, 3, 0.9


def partly_logged(seed: int, n_steps: int = 1_500) -> tuple[Log, FloatArray]:
    """A log that lacks action 2 in state 3, all but one action in state 7 and nothing else; and a policy."""
    rng = np.random.default_rng(seed)
    behaviour = np.full((N, N_ACTIONS), 1.0 / N_ACTIONS)
    behaviour[3], behaviour[7] = [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]
    log = simulated(random_decisions(rng, N, N_ACTIONS, 3, 0.05), behaviour, rng, n_steps, 25)
    return log, 0.7 * behaviour + 0.3 * rng.dirichlet(np.ones(N_ACTIONS), size=N)


def unheard() -> FloatArray:
    """A policy that takes what those logs do not have."""
    policy = np.eye(N_ACTIONS)[np.zeros(N, dtype=int)]
    policy[3], policy[7] = [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]
    return policy


def fully_logged(seed: int) -> tuple[Log, FloatArray]:
    rng = np.random.default_rng(seed)
    behaviour = np.full((N, N_ACTIONS), 1.0 / N_ACTIONS)
    log = simulated(random_decisions(rng, N, N_ACTIONS, 3, 0.05), behaviour, rng, 1_500, 25)
    return log, rng.dirichlet(np.ones(N_ACTIONS), size=N)


def counted(log: Log, policy: FloatArray, with_finals: bool) -> tuple[float, float]:
    """V₀ and M of the process that the log shows, by counting and a dense solution."""
    size = N * N_ACTIONS
    states, actions = np.asarray(log.observations), np.asarray(log.actions, dtype=np.int64)
    pair = states * N_ACTIONS + actions
    following = np.append(states[1:], 0)
    following[log.episodes[1:] - 1] = log.final
    used = np.ones(len(log), dtype=bool) if with_finals else ~log.truncated
    counts, P, r = np.zeros(size), np.zeros((size, N)), np.zeros(size)
    np.add.at(counts, pair[used], 1.0)
    np.add.at(r, pair[used], log.rewards[used])
    go_on = used & ~log.terminated
    np.add.at(P, (pair[go_on], following[go_on]), 1.0)
    visited = counts.reshape(N, N_ACTIONS) > 0
    known, unknown = policy * visited, policy * ~visited
    seen = np.flatnonzero(counts)
    P, r = P[seen] / counts[seen, None], r[seen] / counts[seen]
    to_pairs = np.einsum("it,tb->itb", P, known).reshape(len(seen), -1)[:, seen]
    A = np.eye(len(seen)) - GAMMA * to_pairs
    starts = np.bincount(states[log.episodes[:-1]], minlength=N) / log.n_episodes
    first = (starts[:, None] * known).ravel()[seen]
    values, masses = np.linalg.solve(A, r), np.linalg.solve(A, GAMMA * P @ unknown.sum(axis=1))
    return float(first @ values), float(first @ masses + starts @ unknown.sum(axis=1))


@pytest.mark.parametrize("as_table", [False, True])
def test_both_ends_are_those_of_the_counted_process(as_table: bool) -> None:
    log, policy = partly_logged(0)
    asked: Any = policy[log.observations] if as_table else lambda states: policy[states]
    found = tlstd.evaluate(log, gamma=GAMMA, policy=asked, returns=(-3.0, 8.0))
    silence, (without, mass) = found.silence, counted(log, policy, with_finals=not as_table)
    assert silence is not None
    assert 0.02 < mass < 0.5
    assert_allclose(silence.mass, mass, rtol=1e-8)
    assert_allclose(silence.interval.lower.value, without - 3.0 * mass, atol=1e-8)
    assert_allclose(silence.interval.upper.value, without + 8.0 * mass, atol=1e-8)
    assert_allclose(found.value, without + 2.5 * mass, atol=1e-8)
    assert silence.is_bound
    assert {(one.state, one.action) for one in silence.missing} == {
        ("state 3", "2"),
        ("state 7", "0"),
        ("state 7", "1"),
    }
    assert_allclose(sum(one.mass for one in silence.missing), mass, rtol=0.02)  # by factors that have a ridge


def test_the_interval_has_both_parts_at_every_level() -> None:
    log, policy = partly_logged(1)
    found = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], returns=(-10.0, 10.0))
    interval, silence = found.interval(), found.silence
    assert silence is not None
    assert interval.low == silence.interval.lower.low
    assert interval.high == silence.interval.upper.high
    assert_allclose(silence.interval.silence, 10.0 * silence.mass, rtol=1e-8)
    narrow = found.interval(level=0.5)
    assert narrow.half_width > silence.interval.silence
    assert narrow.half_width - silence.interval.silence < 0.5 * silence.interval.sampling
    shown = json.loads(found.to_json())
    assert_allclose(shown["interval"]["half_widths"]["silence"], silence.interval.silence)
    assert shown["silence"]["returns"] == {"low": -10.0, "high": 10.0, "given": True}
    assert "is chance" in str(found)
    # what a policy is worth by its middle is what episodes say of it
    assert_allclose(found.influence().value, found.value)


def test_sparse_logs_are_covered_with_it_and_not_without() -> None:
    """60 logs with about a half of the pairs that the policy takes; nominal 95%."""
    with_it = without = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, n_actions = 30, 4
        process = random_decisions(rng, n, n_actions, 3, 0.1)
        behaviour, other = (rng.dirichlet(np.full(n_actions, 0.5), size=n) for _ in range(2))
        policy = (behaviour + other) / 2.0
        log, Q = simulated(process, behaviour, rng, 500, 30), process.action_values(policy, GAMMA)
        truth = float((policy * Q).sum(axis=1).mean())
        limits = (float(Q.min()), float(Q.max()))
        found = tlstd.evaluate(
            log, gamma=GAMMA, policy=lambda states, policy=policy: policy[states], returns=limits, estimators=["LSTDQ"]
        )
        with_it += truth in found.interval()
        middle = found.rows[0].middle
        assert middle is not None
        without += truth in interval_of(middle)
    assert with_it >= 0.93 * 60
    assert without <= 0.9 * 60


def test_nothing_changes_where_the_log_has_all_actions() -> None:
    log, policy = fully_logged(2)
    plain = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states])
    told = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], returns=(-50.0, 50.0))
    assert plain.silence is told.silence is None
    assert plain.interval() == told.interval()
    assert plain.trust["silence"].state == "green"


def test_the_range_seen_is_an_assumption_and_never_green() -> None:
    log, policy = partly_logged(3)
    seen = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states])
    assert seen.silence is not None
    assert not seen.silence.limits.given
    assert seen.trust["silence"].state in ("amber", "red")
    assert "an assumption" in str(seen)
    told = tlstd.evaluate(
        log, gamma=GAMMA, policy=lambda states: policy[states], returns=tuple(seen.silence.limits[:2])
    )
    assert told.rows[0].interval == seen.rows[0].interval
    assert told.trust["silence"].state == "green"


def test_rewards_are_summed_over_the_horizon() -> None:
    log, policy = partly_logged(4)
    by_rewards = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], rewards=(-1.0, 0.5))
    assert by_rewards.silence is not None
    assert_allclose(by_rewards.silence.limits[:2], (-10.0, 5.0))
    positive = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], rewards=(0.2, 0.5))
    assert positive.silence is not None
    assert_allclose(positive.silence.limits[:2], (0.2, 5.0))  # an episode may end at once


def test_an_answer_outside_of_the_given_range_is_red() -> None:
    log, policy = fully_logged(5)
    for asked in (None, lambda states: policy[states]):
        value = tlstd.evaluate(log, gamma=GAMMA, policy=asked).value
        found = tlstd.evaluate(log, gamma=GAMMA, policy=asked, returns=(value + 1.0, value + 2.0))
        assert found.trust["inside"].state == "red"
        assert found.light == "red"


def test_a_refusal_names_what_is_missing(tmp_path: Path) -> None:
    log, policy = partly_logged(6)
    missed = unheard()
    found = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: missed[states], returns=(-5.0, 5.0))
    assert found.rung == "refusal"
    assert np.isnan(found.value)
    assert found.light == "red"
    assert found.interval().half_width > 2.5
    assert "action 2 in state 3" in found.trust["silence"].sentence
    shown = json.loads(found.to_json())
    assert (shown["value"], shown["rung"], shown["silence"]["refusal"]) == (None, "refusal", True)
    assert {one["state"] for one in shown["silence"]["missing"]} == {"state 3", "state 7"}
    from tlstd.page import write_page  # here: the other tests do without

    write_page(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "No value" in page
    assert "nan" not in page.lower().replace("finance", "")
    beside = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], returns=(-5.0, 5.0))
    assert "whose value is not known" in str(beside.compared(found))


def test_a_difference_has_room_for_both_silences() -> None:
    log, policy = partly_logged(7)
    other = np.full((N, N_ACTIONS), 1.0 / N_ACTIONS)
    ask: dict[str, Any] = {"gamma": GAMMA, "returns": (-4.0, 4.0)}
    a, b = (tlstd.evaluate(log, policy=lambda states, p=p: p[states], **ask) for p in (policy, other))
    logged = tlstd.evaluate(log, **ask)
    for one, two in ((a, b), (a, logged), (logged, a)):
        found = difference(one, two)
        low, high = ends(one)[0] - ends(two)[1], ends(one)[1] - ends(two)[0]
        assert found.low < low < high < found.high


def ends(evaluation: Report) -> tuple[float, float]:
    """L and U."""
    if evaluation.silence is None:
        return evaluation.value, evaluation.value
    return evaluation.silence.interval.lower.value, evaluation.silence.interval.upper.value


def line(seed: int, low: float) -> Log:
    """Points in [0, 1] that drift; action 1 is only logged above ``low``."""
    rng = np.random.default_rng(seed)
    states = rng.random(4_000)
    actions = ((states > low) & (rng.random(4_000) < 0.5)).astype(int)
    rewards = states + 0.2 * actions + 0.1 * rng.standard_normal(4_000)
    ended = np.arange(4_000) % 4 == 3
    return Log.from_arrays(states[:, None], rewards, actions=actions, terminated=ended, episodes=np.arange(4_000) // 4)


def test_with_overlapping_features_it_is_a_sensitivity() -> None:
    coder = TileCoder([0.0], [1.0], tiles=10, tilings=4)
    always = lambda states: np.ones(len(states), dtype=int)  # noqa: E731
    ask: dict[str, Any] = {"gamma": 0.5, "policy": always, "features": coder, "returns": (0.0, 4.0)}
    everywhere, above = tlstd.evaluate(line(0, -1.0), **ask), tlstd.evaluate(line(0, 0.5), **ask)
    assert everywhere.silence is None
    silence = above.silence
    assert silence is not None
    assert not silence.is_bound
    below = 0.42  # down to where at least half of a state's tiles reach beyond 0.5
    assert_allclose(silence.mass, below * sum((0.5 * (1.0 - below)) ** k for k in range(4)), rtol=0.1)
    assert silence.missing[0].state.startswith("states like (0.")
    assert silence.missing[0].action == "1"


def test_an_answer_by_weights_does_not_rest_on_missing_actions() -> None:
    rng = np.random.default_rng(12)
    behaviour = np.tile([0.6, 0.3, 0.1], (N, 1))
    behaviour[3] = [0.5, 0.5, 0.0]
    log = simulated(random_decisions(rng, N, N_ACTIONS, 3, 0.3), behaviour, rng, 1_500, 25, known=True)
    policy = 0.9 * behaviour + 0.1 / N_ACTIONS
    ask: dict[str, Any] = {"gamma": GAMMA, "policy": lambda states: policy[states], "returns": (-5.0, 5.0)}
    found = tlstd.evaluate(log, **ask)
    beside = next(row for row in found.rows if row.name == "LSTDQ")
    assert found.rung != "action values"
    assert found.silence is None
    assert found.trust["silence"].state == "not applicable"
    assert beside.interval is not None
    alone = tlstd.evaluate(log, estimators=["LSTDQ"], **ask)
    assert alone.silence is not None
    assert alone.rows[0].interval == beside.interval
    weighted = tlstd.evaluate(log, estimators=["doubly robust", "LSTDQ"], **ask)
    assert (weighted.rung == "action values") == (weighted.trust["silence"].state != "not applicable")


def test_single_decisions() -> None:
    """Without a future only the first action counts."""
    rng = np.random.default_rng(11)
    contexts, actions = rng.integers(0, 4, 800), rng.integers(0, 2, 800)
    log = Log.from_arrays(contexts, contexts + actions + 0.0, actions=actions, discrete=True)
    policy = np.tile([0.5, 0.3, 0.2], (4, 1))
    found = tlstd.evaluate(log, gamma=0.0, policy=lambda states: policy[states], rewards=(0.0, 10.0))
    assert found.silence is not None
    assert_allclose(found.silence.mass, 0.2, rtol=1e-8)
    assert_allclose(found.silence.interval.lower.value, 0.8 * contexts.mean() + 0.3, atol=1e-6)
    assert {one.action for one in found.silence.missing} == {"2"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"returns": (1.0, 0.0)}, "the lower number first"),
        ({"returns": (0.0, float("inf"))}, "two finite numbers"),
        ({"rewards": (0.0,)}, "two finite numbers"),
        ({"returns": (0.0, 1.0), "rewards": (0.0, 1.0)}, "pass one"),
        ({"rewards": (0.0, 1.0), "gamma": 1.0}, r"pass returns=\(LOW, HIGH\)"),
    ],
)
def test_ranges_that_are_refused(given: dict[str, Any], words: str) -> None:
    log, _ = partly_logged(8)
    with pytest.raises(InvalidParameterError, match=words):
        tlstd.evaluate(log, **({"gamma": GAMMA} | given))


def test_options_of_the_command(tmp_path: Path) -> None:
    log, policy = partly_logged(9)[0], unheard()
    episode = np.repeat(np.arange(log.n_episodes), np.diff(log.episodes))
    pl.DataFrame(
        {
            "episode": episode,
            "observation": np.asarray(log.observations),
            "action": np.asarray(log.actions),
            "reward": log.rewards,
            "terminated": log.terminated,
            "truncated": log.truncated,
            **{f"p{a}": policy[log.observations, a] for a in range(N_ACTIONS)},
        }
    ).write_parquet(tmp_path / "log.parquet")
    asked = ["evaluate", str(tmp_path / "log.parquet"), "--gamma", "0.9", "--policy", "column:p0,p1,p2", "--json"]
    run = CliRunner().invoke
    told = run(app, [*asked, "--returns", "-100", "100"])
    assert told.exit_code == 0, told.output
    shown = json.loads(told.stdout)
    assert shown["silence"]["returns"] == {"low": -100.0, "high": 100.0, "given": True}
    assert (shown["rung"], shown["light"], shown["value"]) == ("refusal", "red", None)
    by_rewards = json.loads(run(app, [*asked, "--rewards", "-1", "2"]).stdout)
    assert_allclose(by_rewards["silence"]["returns"]["high"], 20.0)
    both = run(app, [*asked, "--returns", "0", "1", "--rewards", "0", "1"])
    assert both.exit_code == 1
