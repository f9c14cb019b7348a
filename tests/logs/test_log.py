"""Logs from arrays: episodes, ends, next rows and start states, and pieces that are together the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tlstd import LSTD, InvalidInputError, InvalidParameterError, Log, TileCoder, Transitions
from tlstd.core.arrays import FloatArray
from tlstd.logs.joining import concatenate

GAMMA = 0.9


def table(n_episodes: int = 12, seed: int = 0, shortest: int = 1) -> dict[str, Any]:
    """Episodes of up to 9 steps: some terminated, some truncated, each with its next observations."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for episode in range(n_episodes):
        length = int(rng.integers(shortest, 10))
        states = rng.normal(size=(length + 1, 3))
        columns["observations"] += list(states[:-1])
        columns["next_observations"] += list(states[1:])
        columns["rewards"] += rng.normal(size=length).tolist()
        columns["actions"] += rng.integers(0, 3, length).tolist()
        columns["terminated"] += [False] * (length - 1) + [episode % 3 != 0]
        columns["truncated"] += [False] * (length - 1) + [episode % 3 == 0]
        columns["episodes"] += [f"e{episode}"] * length
        columns["steps"] += list(range(length))
        columns["probabilities"] += rng.uniform(0.1, 1.0, length).tolist()
    return {name: np.array(column) for name, column in columns.items()}


COLUMNS = (
    "observations",
    "next_observations",
    "rewards",
    "actions",
    "terminated",
    "truncated",
    "episodes",
    "steps",
    "probabilities",
)


def expected(columns: dict[str, Any], gamma: float) -> Transitions:
    """What the columns mean, by the class for arrays."""
    return Transitions.from_arrays(
        columns["observations"],
        columns["rewards"],
        columns["next_observations"],
        terminated=columns["terminated"],
        truncated=columns["truncated"],
        gamma=gamma,
    )


def dense(X: Any) -> FloatArray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def assert_same(a: Transitions, b: Transitions) -> None:
    """The same steps, to the bit; next rows of terminated steps do not count."""
    for name in ("rewards", "discounts", "trace_discounts", "rhos"):
        assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert_array_equal(dense(a.X), dense(b.X))
    goes_on = a.discounts > 0
    assert_array_equal(dense(a.X_next)[goes_on], dense(b.X_next)[goes_on])


class TestFromArrays:
    def test_transitions_are_those_of_the_columns(self) -> None:
        columns = table()
        log = Log.from_arrays(**columns)
        assert_same(log.transitions(None, GAMMA), expected(columns, GAMMA))
        assert log.notes == ()
        assert (log.n_episodes, len(log), log.ids[:2]) == (12, len(columns["rewards"]), ["e0", "e1"])
        assert log.has_final.all()
        assert_array_equal(log.start_rows, log.episodes[:-1])
        assert_array_equal(log.actions, columns["actions"])
        assert_array_equal(log.probabilities, columns["probabilities"])

    def test_next_rows_are_the_following_rows(self) -> None:
        """Without next observations a truncated last step has none, and is left out."""
        columns = table()
        whole = expected(columns, GAMMA)
        columns.pop("next_observations")
        log = Log.from_arrays(**columns)
        kept = ~columns["truncated"]
        got = log.transitions(None, GAMMA)
        assert_array_equal(got.rewards, whole.rewards[kept])
        assert_array_equal(dense(got.X), dense(whole.X)[kept])
        inner = got.discounts > 0
        assert_array_equal(dense(got.X_next)[inner], dense(whole.X_next)[kept][inner])
        assert "After 4 of 4 cut-off episodes the next observation is not in the log" in log.notes[-1]

    @pytest.mark.parametrize("known", ["episodes", "flags", "steps"])
    def test_episodes_by_name_by_flags_or_by_steps(self, known: str) -> None:
        columns = table(shortest=2)
        whole = Log.from_arrays(**columns)
        if known != "episodes":
            columns.pop("episodes")
        if known != "flags":
            columns.pop("terminated"), columns.pop("truncated")
        if known != "steps":
            columns.pop("steps")
        log = Log.from_arrays(**columns)
        assert_array_equal(log.episodes, whole.episodes)

    def test_final_observations_in_rows_of_their_own(self) -> None:
        """T + 1 observations and T rewards: the last row of an episode has no reward."""
        columns = table()
        log = Log.from_arrays(**columns)
        rows, final = [], []
        for start, end in zip(log.episodes[:-1], log.episodes[1:], strict=True):
            rows += [*range(start, end), end - 1]
            final += [False] * (end - start) + [True]
        longer = {name: column[rows] for name, column in columns.items() if name != "next_observations"}
        is_final = np.array(final)
        longer["observations"][is_final] = columns["next_observations"][np.array(rows)[is_final]]
        longer["rewards"][is_final] = np.nan
        longer["steps"][is_final] += 1
        for flag in ("terminated", "truncated"):  # set in the last row only
            longer[flag] &= is_final
        again = Log.from_arrays(**longer)
        assert_same(again.transitions(None, GAMMA), log.transitions(None, GAMMA))
        assert again.notes == (
            "12 episodes end with a row without a reward: taken for the observation after the last step.",
        )

    def test_features_get_states(self) -> None:
        columns = table()
        tiles = TileCoder([-3.0] * 3, [3.0] * 3, tiles=4, tilings=2)
        got = Log.from_arrays(**columns).transitions(tiles, GAMMA)
        assert_array_equal(dense(got.X), tiles.encode_many(columns["observations"]).toarray())

    def test_discrete_observations(self) -> None:
        log = Log.from_arrays([0, 1, 2, 0, 1], [0.0, 0.0, 1.0, 0.0, 1.0], terminated=[0, 0, 1, 0, 1], n_observations=4)
        assert (log.discrete, log.n_observations, log.observations.dtype.kind) == (True, 4, "i")
        steps = log.transitions(None, GAMMA)
        assert_array_equal(dense(steps.X), np.eye(4)[[0, 1, 2, 0, 1]])
        assert log.states.shape == (5, 1)
        guessed = Log.from_arrays([0, 1, 2, 0, 1], np.ones(5), terminated=[0, 0, 1, 0, 1])
        assert guessed.n_observations == 3
        assert guessed.notes == ("observation has integers from 0 to 2: taken for discrete states.",)
        numbers = Log.from_arrays([0, 1, 2, 0, 1], np.ones(5), terminated=[0, 0, 1, 0, 1], discrete=False)
        assert (numbers.discrete, numbers.observations.shape) == (False, (5, 1))

    def test_rows_are_sorted_and_repeated_ones_left_out(self) -> None:
        columns = table()
        whole = Log.from_arrays(**columns)
        rng = np.random.default_rng(1)
        n = len(whole)
        shuffled = rng.permutation(np.append(np.arange(n), rng.integers(0, n, 5)))
        shuffled = np.append(0, shuffled[shuffled != 0])  # e0 stays the first, so that the order of episodes is known
        log = Log.from_arrays(**{name: column[shuffled] for name, column in columns.items()})
        assert sorted(log.ids) == sorted(whole.ids)
        a, b = (
            {i: log[s:e] for i, s, e in zip(log.ids, log.episodes, log.episodes[1:], strict=False)}
            for log in (log, whole)
        )
        for name in whole.ids:
            assert_same(a[name].transitions(None, GAMMA), b[name].transitions(None, GAMMA))
        assert [note.split(" (")[0] for note in log.notes][:2] == ["5 rows repeated", "Rows are out of order"]

    def test_interleaved_episodes_of_several_environments(self) -> None:
        log = Log.from_arrays(
            [[0.0], [10.0], [1.0], [11.0], [2.0]], [0, 1, 2, 3, 4], episodes=[0, 1, 0, 1, 0], terminated=[0, 0, 0, 1, 1]
        )
        assert_array_equal(log.rewards, [0, 2, 4, 1, 3])
        assert log.notes == ("Rows are out of order (first in row 2): sorted by episode.",)

    def test_names_that_are_used_again(self) -> None:
        log = Log.from_arrays(
            np.arange(6.0)[:, None], np.ones(6), episodes=[0, 0, 1, 1, 0, 0], terminated=[0, 1, 0, 1, 0, 1]
        )
        assert log.ids == [0, 1, 0]
        assert "used again after an end" in log.notes[0]

    def test_a_gap_cuts_and_is_no_start(self) -> None:
        log = Log.from_arrays(
            np.arange(6.0)[:, None],
            np.ones(6),
            episodes=[0] * 6,
            steps=[0, 1, 2, 5, 6, 7],
            terminated=[0, 0, 0, 0, 0, 1],
        )
        assert_array_equal(log.episodes, [0, 3, 6])
        assert_array_equal(log.truncated, [0, 0, 1, 0, 0, 0])
        assert_array_equal(log.start_rows, [0])
        steps = log.transitions(None, GAMMA)
        assert_array_equal(steps.X[:, 0], [0, 1, 3, 4, 5])
        assert_array_equal(steps.trace_discounts, [0, GAMMA, 0, GAMMA, GAMMA])
        assert log.notes[0].startswith("1 gap in step (first after row 2)")

    def test_done_only(self) -> None:
        columns: dict[str, Any] = {"observations": np.arange(10.0)[:, None], "rewards": np.ones(10)}
        done = np.isin(np.arange(10), [3, 5, 9])
        log = Log.from_arrays(**columns, done=done)
        assert_array_equal(log.terminated, done)
        assert log.notes[0].endswith(
            "2 of 3 episodes have exactly 4 steps, the most there are: if that is a time limit, say time_limit=4 "
            "(--time-limit 4)."
        )
        limited = Log.from_arrays(**columns, done=done, time_limit=4)
        assert_array_equal(np.flatnonzero(limited.truncated), [3, 9])
        assert_array_equal(np.flatnonzero(limited.terminated), [5])

    def test_without_flags_nothing_is_taken_for_an_end(self) -> None:
        columns: dict[str, Any] = {
            "observations": np.arange(4.0)[:, None],
            "rewards": np.ones(4),
            "episodes": [0, 0, 1, 1],
        }
        assert_array_equal(Log.from_arrays(**columns).truncated, [0, 1, 0, 1])
        assert_array_equal(Log.from_arrays(**columns, ends="terminated").terminated, [0, 1, 0, 1])

    def test_words_as_actions_and_flags(self) -> None:
        log = Log.from_arrays(np.arange(2.0)[:, None], [1, 2], actions=["up", "down"], terminated=["False", "true"])
        assert_array_equal(log.actions, [1, 0])
        assert log.notes == ("Actions are words: 0 is 'down', 1 is 'up'.",)
        assert log[1:].action_names == log.action_names == ("down", "up")
        assert concatenate([log, log]).action_names == log.action_names
        other = Log.from_arrays([[0.0]], [1.0], actions=["up"], terminated=[True])  # where "up" is 0
        with pytest.raises(InvalidInputError, match="different words for actions"):
            concatenate([log, other])
        assert_array_equal(log.terminated, [False, True])

    def test_next_observations_that_are_not_the_next_rows(self) -> None:
        columns = table()
        before = Log.from_arrays(**columns)
        longest = int(np.argmax(np.diff(before.episodes)))
        row = int(before.episodes[longest]) + 1
        columns["next_observations"][row] += 1.0
        log = Log.from_arrays(**columns)
        assert log.n_episodes == before.n_episodes + 1
        got = log.transitions(None, GAMMA)
        assert_array_equal(dense(got.X_next)[row], columns["next_observations"][row])
        assert got.trace_discounts[row + 1] == 0.0
        assert log.start_rows.size == before.start_rows.size


class TestStarts:
    def test_of_episodes(self) -> None:
        log = Log.from_arrays(**table())
        assert list(log.starts) == ["start states"]
        assert_array_equal(log.starts["start states"], log.episodes[:-1])

    def test_of_a_stream_without_end(self) -> None:
        log = Log.from_arrays(np.arange(5.0)[:, None], np.ones(5))
        assert {name: rows.tolist() for name, rows in log.starts.items()} == {
            "all states": [0, 1, 2, 3, 4],
            "first state": [0],
        }
        assert log.notes[0] == (
            "The log is one stream without an end: the mean over all states and the value of the first state stand for "
            "the start states."
        )

    def test_episodes_without_a_beginning_have_none(self) -> None:
        log = Log.from_arrays(
            np.arange(6.0)[:, None],
            np.ones(6),
            episodes=[0, 0, 1, 1, 2, 2],
            steps=[0, 1, 0, 1, 7, 8],
            ends="terminated",
        )
        assert_array_equal(log.start_rows, [0, 2])
        assert log.notes == ("1 episode begins later than with step 0 (first in row 4): the first row is no start.",)


class TestPieces:
    @pytest.mark.parametrize("rows", [1, 2, 3, 7, 1000])
    def test_together_they_are_the_whole(self, rows: int) -> None:
        log = Log.from_arrays(**table())
        whole = log.transitions(None, GAMMA)
        parts = [piece.transitions(None, GAMMA) for piece in log.pieces(rows)]
        for name in ("rewards", "discounts", "trace_discounts"):
            assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))
        assert_array_equal(np.concatenate([part.X for part in parts]), whole.X)
        goes_on = whole.discounts > 0
        assert_array_equal(np.concatenate([part.X_next for part in parts])[goes_on], whole.X_next[goes_on])
        starts = np.concatenate([piece.start_rows + rows * i for i, piece in enumerate(log.pieces(rows))])
        assert_array_equal(starts, log.start_rows)

    def test_learned_from_in_pieces(self) -> None:
        log = Log.from_arrays(**table(40))
        whole, pieces = LSTD(3, lambda_=0.8), LSTD(3, lambda_=0.8)
        whole.update_many(log.transitions(None, GAMMA))
        for piece in log.pieces(5):
            pieces.update_many(piece.transitions(None, GAMMA))
        np.testing.assert_allclose(pieces.weights, whole.weights, rtol=1e-12)

    def test_empty_and_wrong_slices(self) -> None:
        log = Log.from_arrays(**table())
        assert (len(log[3:3]), log[3:3].n_episodes) == (0, 0)
        assert len(log[3:3].transitions(None, GAMMA)) == 0
        for key in (3, slice(0, 4, 2)):
            with pytest.raises(InvalidParameterError, match="consecutive rows"):
                log[key]  # type: ignore[index]


def test_ratios_one_a_step() -> None:
    log = Log.from_arrays(**table())
    rhos = np.arange(len(log), dtype=float)
    assert_array_equal(log.transitions(None, GAMMA, rhos=rhos).rhos, rhos)
    with pytest.raises(InvalidInputError, match="each needs one"):
        log.transitions(None, GAMMA, rhos=rhos[1:])


def test_arrays_cannot_be_changed_by_way_of_the_log() -> None:
    columns = table()
    log = Log.from_arrays(**columns)
    with pytest.raises(ValueError, match="read-only"):
        log.observations[0] = 0.0
    columns["observations"][0] = 0.0  # the caller's own may


def test_select_is_the_log_of_these_episodes() -> None:
    """Episodes by their places, in any order: each with its own rows, ends and what came after."""
    log = Log.from_arrays(
        np.arange(9.0)[:, None],
        np.arange(9.0),
        actions=np.arange(9),
        terminated=[0, 1, 0, 0, 0, 1, 0, 0, 0],
        episodes=[0, 0, 1, 1, 2, 2, 3, 3, 3],
        next_observations=np.arange(1.0, 10.0)[:, None],
    )
    some = log.select([2, 1, 3])
    assert_array_equal(some.rewards, [4, 5, 2, 3, 6, 7, 8])
    assert_array_equal(some.actions, some.rewards)
    assert_array_equal(some.episodes, [0, 2, 4, 7])
    assert some.ids == [2, 1, 3]
    assert_array_equal(some.final[some.has_final], [[6.0], [4.0], [9.0]])
    assert_array_equal(log.rows_of(np.array([2, 1])), [4, 5, 2, 3])
    assert_array_equal(log.select(np.arange(4)).transitions(None, 0.9).X, log.transitions(None, 0.9).X)
    assert len(log.select(np.zeros(0, dtype=int))) == 0
    for wrong in ([4], [-1], [0.5], [[0]]):
        with pytest.raises(InvalidInputError, match="integers from 0 to 3"):
            log.select(wrong)
