"""Broken logs, each with what is said about it: mended and said, or refused with the rows and the remedy."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.exceptions import PanicException

from tlstd import CapacityError, InvalidInputError, InvalidParameterError, Log, TlstdError, Transitions
from tlstd.logs import read_chunks

Columns = dict[str, Any]


def sound() -> Columns:
    """Three episodes of 4, 3 and 3 steps that nothing has to be said about."""
    return {
        "episode": [0, 0, 0, 0, 1, 1, 1, 2, 2, 2],
        "step": [0, 1, 2, 3, 0, 1, 2, 0, 1, 2],
        "obs_0": [0.0, 0.1, 0.2, 0.3, 1.0, 1.1, 1.2, 2.0, 2.1, 2.2],
        "obs_1": [5.0, 4.0, 3.0, 2.0, 5.0, 4.0, 3.0, 5.0, 4.0, 3.0],
        "action": [0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
        "reward": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
        "terminated": [False, False, False, True, False, False, True, False, False, True],
        "truncated": [False] * 10,
        "probability": [0.5] * 10,
    }


def put(role: str, row: int, value: Any) -> Callable[[Columns], Columns]:
    """Another value in one place."""

    def change(columns: Columns) -> Columns:
        columns[role][row] = value
        return columns

    return change


def take(*rows: int) -> Callable[[Columns], Columns]:
    """These rows in this order."""
    return lambda columns: {name: [column[i] for i in rows] for name, column in columns.items()}


def without(*names: str, **others: Any) -> Callable[[Columns], Columns]:
    return lambda columns: {name: column for name, column in columns.items() if name not in names} | others


def then(*changes: Callable[[Columns], Columns]) -> Callable[[Columns], Columns]:
    def change(columns: Columns) -> Columns:
        for one in changes:
            columns = one(columns)
        return columns

    return change


FLAGS = ("terminated", "truncated")
TEN = range(10)

REFUSED: dict[str, tuple[Callable[[Columns], Columns], dict[str, Any], type[Exception], str]] = {
    "missing number": (
        put("obs_1", 5, float("nan")),
        {},
        InvalidInputError,
        "obs_1 is missing in row 5: clean the log, or drop these episodes (on_nan='drop', --drop-nan)",
    ),
    "infinite number": (
        put("obs_0", 2, float("inf")),
        {},
        InvalidInputError,
        "obs_0 is inf in row 2: clean the log, or drop these episodes (on_nan='drop', --drop-nan)",
    ),
    "many missing numbers": (
        without("obs_0", obs_0=[0.0, 0.1] + [float("nan")] * 8),
        {},
        InvalidInputError,
        "obs_0 is missing in rows 2, 3, 4, 5, 6, … (8 in all): clean the log, or drop these episodes (on_nan='drop', "
        "--drop-nan)",
    ),
    "missing reward within an episode": (
        put("reward", 1, float("nan")),
        {},
        InvalidInputError,
        "reward is missing in row 1: every step needs a reward (only the last row of an episode may be without, if it "
        "is the observation after the last step); on_nan='drop' (--drop-nan) drops these episodes",
    ),
    "rewards as text": (
        without("reward", reward=["low"] * 10),
        {},
        InvalidInputError,
        "reward has values of type text, the first 'low': pass numbers",
    ),
    "flag that is none": (
        without("terminated", terminated=[0, 0, 0, 2, 0, 0, 1, 0, 0, 1]),
        {},
        InvalidInputError,
        "terminated is 2 in row 3: pass True or False, or 1 or 0",
    ),
    "flag within an episode": (
        put("terminated", 1, True),
        {},
        InvalidInputError,
        "terminated is set in row 1, but episode 0 goes on in row 2: mend the flags, or leave the names of episodes "
        "out, so that the flags alone say where one ends",
    ),
    "missing name of an episode": (
        put("episode", 4, None),
        {},
        InvalidInputError,
        "episode is missing in row 4: every row needs a name",
    ),
    "infinite step": (
        put("step", 4, float("inf")),
        {},
        InvalidInputError,
        "step is inf in row 4: every row needs its time",
    ),
    "missing step": (
        put("step", 4, float("nan")),
        {},
        InvalidInputError,
        "step is missing in row 4: every row needs its time",
    ),
    "two different rows for one step": (
        put("step", 5, 0),
        {},
        InvalidInputError,
        "episode 1 has step 0 twice with different obs_0…obs_1, in row 4 and row 5: leave one out, or, if "
        "names of episodes are used anew, leave the names out (columns={'episode': None}, --map episode=)",
    ),
    "impossible probability": (
        put("probability", 7, 0.0),
        {},
        InvalidInputError,
        "probability is 0 in row 7: what was done had a probability in (0, 1]; log-probabilities have "
        "to be exponentiated",
    ),
    "log-probability by mistake": (
        without("probability", probability=[-0.7] * 10),
        {},
        InvalidInputError,
        "probability is -0.7 in rows 0, 1, 2, 3, 4, … (10 in all): what was done had a probability in (0, 1]; "
        "log-probabilities have to be exponentiated",
    ),
    "column of another length": (
        without("reward", reward=[1.0] * 9),
        {},
        InvalidInputError,
        "reward has 9 rows and obs_0…obs_1 10: each step needs one",
    ),
    "no rows": (take(), {}, InvalidInputError, "the log has no rows: pass at least one step"),
    "no reward": (
        without("reward"),
        {},
        InvalidInputError,
        "the table has no column for the reward (looked for reward, rewards, next.reward); it has episode, step, "
        "obs_0, obs_1, action, terminated, truncated, probability: say which it is, columns={'reward': ...} "
        "(--map reward=...)",
    ),
    "no observation": (
        without("obs_0", "obs_1", x=[0.0] * 10),
        {},
        InvalidInputError,
        "the table has no column for the observation (looked for observation, observations, obs, state, states, "
        "observation.state); it has episode, step, action, reward, terminated, truncated, probability, x: say which it "
        "is, columns={'observation': ...} "
        "(--map observation=...)",
    ),
    "two rewards": (
        without(rewards=[1.0] * 10),
        {},
        InvalidInputError,
        "the table has several columns that can be the reward: reward or rewards; say which, "
        "columns={'reward': 'reward'} (--map reward=reward)",
    ),
    "a number of obs is missing": (
        without("obs_1", obs_2=[1.0] * 10),
        {},
        InvalidInputError,
        "the table has obs_0, obs_2 for the observation, but not number 1: mend the table, or name the columns, "
        "columns={'observation': [...]} (--map observation=...)",
    ),
    "a column that is not there": (
        without(),
        {"columns": {"reward": "rew"}},
        InvalidInputError,
        "the table has no column 'rew' for the reward: it has episode, step, obs_0, obs_1, action, reward, terminated, "
        "truncated, probability",
    ),
    "something that no column can be": (
        without(),
        {"columns": {"rewrad": "reward"}},
        InvalidParameterError,
        "a key of columns is 'rewrad': it must be one of 'observation', 'action', 'reward', 'terminated', 'truncated', "
        "'done', 'episode', 'step', 'next_observation', 'probability', 'log_probability', 'policy', 'cluster'",
    ),
    "images": (
        without("obs_0", "obs_1", obs=np.zeros((10, 8, 8))),
        {},
        InvalidInputError,
        "obs has observations of shape (8, 8): images are not read; encode them first and pass at most "
        "1000 numbers a step",
    ),
    "long vectors": (
        without("obs_0", "obs_1", obs=np.zeros((10, 3072))),
        {},
        InvalidInputError,
        "obs has observations of shape (3072,): images are not read; encode them first and pass at "
        "most 1000 numbers a step",
    ),
    "vectors of different lengths": (
        without("obs_0", "obs_1", obs=[[0.0, 1.0]] * 6 + [[0.0]] + [[0.0, 1.0]] * 3),
        {},
        InvalidInputError,
        "obs cannot be read",
    ),
    "vectors as text": (
        without("obs_0", "obs_1", obs=["[0.1, 0.2]"] * 10),
        {},
        InvalidInputError,
        "obs has values of type text, the first '[0.1, 0.2]': pass numbers, one column for each (or a column of lists, "
        "in parquet)",
    ),
    "discrete states that are not whole": (
        without("obs_0", "obs_1", obs=[0.0, 1.0, 1.5, 2.0] + [0.0] * 6),
        {"n_observations": 4},
        InvalidInputError,
        "obs is 1.5 in row 2: discrete observations are integers from 0 below n_observations=4",
    ),
    "more discrete states than there are": (
        without("obs_0", "obs_1", obs=list(TEN)),
        {"n_observations": 8},
        InvalidInputError,
        "obs is 8 in row 8: discrete observations are integers from 0 below n_observations=8",
    ),
    "next observations of shuffled steps": (
        then(
            without("episode", "step", *FLAGS, "obs_1", obs_0=[float(i * 7 % 10) for i in TEN]),
            without(next_obs_0=[float((i * 7 + 1) % 10) for i in TEN]),
        ),
        {},
        InvalidInputError,
        "next_obs_0 is not the obs_0 of the next row in 9 of 9 steps (rows 0, 1, 2, 3, 4, … (9 in all)): rows are not "
        "in the order of their episodes; name the columns of episode and step",
    ),
    "next observations of another size": (
        without(next_obs_0=[0.0] * 10),
        {},
        InvalidInputError,
        "obs_0…obs_1 has shape (10, 2) and next_obs_0 (10, 1): observations before and after a step are alike",
    ),
    "rows out of order that need too much memory": (
        take(*TEN[::-1]),
        {"memory": 100},
        CapacityError,
        "rows are out of order from row 1 on, and sorting them takes 0 MB where memory=100 allows 0: sort the log, or "
        "allow more",
    ),
    "episodes of one row without anything after it": (
        then(without("step", *FLAGS, "episode"), without(episode=list(TEN))),
        {},
        InvalidInputError,
        "none of the 10 steps has a next observation: every episode is one row that was cut off; pass next "
        "observations, or name the episodes that rows belong to",
    ),
    "done and terminated, both asked for": (
        without(done=[False] * 10),
        {"columns": {"done": "done"}},
        InvalidParameterError,
        "there are both done and terminated or truncated: done says less, so leave it out",
    ),
    "time limit without done": (
        without(),
        {"time_limit": 4},
        InvalidParameterError,
        "time_limit=4 is for logs with done only: leave it out",
    ),
    "unknown preset": (
        without(),
        {"preset": "atari"},
        InvalidParameterError,
        "preset is 'atari': it must be one of 'minari', 'lerobot', 'rllib', 'd4rl', 'flat'",
    ),
}

SAID: dict[str, tuple[Callable[[Columns], Columns], dict[str, Any], list[str]]] = {
    "constant column": (
        without("obs_1", obs_1=[7.0] * 10),
        {},
        ["Columns that say nothing: obs_1 is always 7."],
    ),
    "rows out of order": (
        take(1, 0, *range(2, 10)),
        {},
        ["Rows are out of order (first in row 1): sorted by episode and step."],
    ),
    "repeated rows": (take(0, 1, 1, *range(2, 10), 9), {}, ["2 rows repeated (first row 2): left out."]),
    "a gap": (
        take(0, 1, 3, *range(4, 10)),
        {},
        [
            "1 gap in step (first after row 1): the episode is cut off there, and what follows is no start.",
            "After 1 of 1 cut-off episode the next observation is not in the log: its last step is left "
            "out of transitions.",
        ],
    ),
    "an episode without a beginning": (
        take(0, 1, 2, 3, 5, 6, 7, 8, 9),
        {},
        ["1 episode begins later than with step 0 (first in row 4): the first row is no start."],
    ),
    "an episode without an end": (
        put("terminated", 6, False),
        {},
        [
            "1 of 3 episodes has no end flag in its last row (1): taken for cut off, not for ended.",
            "After 1 of 1 cut-off episode the next observation is not in the log: its last step is left "
            "out of transitions.",
        ],
    ),
    "no flags": (
        without(*FLAGS),
        {},
        [
            "There are no end flags: all 3 episodes are taken for cut off, not for ended "
            "(ends='terminated' says otherwise).",
            "After 3 of 3 cut-off episodes the next observation is not in the log: their last steps are left out of "
            "transitions.",
        ],
    ),
    "done only": (
        without(*FLAGS, done=[0, 0, 0, 1, 0, 0, 1, 0, 0, 1]),
        {},
        ["done is the only end flag: taken for termination, not for a time limit."],
    ),
    "both flags at once": (
        put("truncated", 9, True),
        {},
        ["1 step both terminated and truncated: taken for terminated."],
    ),
    "a stream without an end": (
        without("episode", "step", *FLAGS),
        {},
        [
            "The log is one stream without an end: the mean over all states and the value of the first state stand for "
            "the start states.",
            "After 1 of 1 cut-off episode the next observation is not in the log: its last step is left "
            "out of transitions.",
        ],
    ),
    "steps begin anew without names": (
        without("episode", *FLAGS),
        {"ends": "terminated"},
        ["There are no episode names: 2 episodes begin where step goes back without an end flag (first in row 4)."],
    ),
    "every fourth step": (
        without("step", step=[0, 4, 8, 12, 0, 4, 8, 0, 4, 8]),
        {},
        ["step goes up by 4 from row to row: taken for one step."],
    ),
    "words as actions": (
        without("action", action=["left", "right"] * 5),
        {},
        ["Actions are words: 0 is 'left', 1 is 'right'."],
    ),
    "large integers": (
        without("obs_0", "obs_1", obs=[10_000 + i for i in TEN]),
        {},
        ["obs has integers from 10000 to 10009: taken for a number, not for discrete states."],
    ),
}


def test_the_sound_log_has_nothing_to_be_said() -> None:
    assert len(Log.from_frame(sound()).notes) == 1


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    change, options, error, message = REFUSED[what]
    with pytest.raises(error) as caught:
        Log.from_frame(change(sound()), **options)
    assert str(caught.value) == message or (
        what == "vectors of different lengths" and str(caught.value).startswith(message)
    )


@pytest.mark.parametrize("what", SAID)
def test_mended_and_said(what: str) -> None:
    change, options, notes = SAID[what]
    log = Log.from_frame(change(sound()), **options)
    assert list(log.notes[1:]) == notes
    assert len(log.transitions(None, 0.9)) >= 7


class TestFiles:
    """What is wrong with files, each with its name."""

    def test_that_are_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match=r"there is no file .*none\.csv: check the name or the pattern"):
            Log.from_frame(tmp_path / "none.csv")
        with pytest.raises(InvalidInputError, match=r"has no file that ends with \.parquet"):
            Log.from_frame(tmp_path)
        with pytest.raises(InvalidInputError, match="there are no files to read"):
            Log.from_frame([])

    @pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz", "csv"])
    def test_that_are_damaged(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"log.{suffix}"
        path.write_bytes(b"\x93PARQ" + bytes(range(256)))
        with pytest.raises(InvalidInputError, match=rf"log\.{suffix} (cannot be read|has (no|the) column)"):
            Log.from_frame(path)

    def test_at_which_polars_panics(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A panic of polars is no ``Exception``; Ctrl-C is none either, and stays what it is."""
        pl.DataFrame(sound()).write_parquet(tmp_path / "a.parquet")
        for error, expected in ((PanicException("out of range"), InvalidInputError), (KeyboardInterrupt(), None)):

            def scan(*given: Any, error: BaseException = error, **named: Any) -> None:
                raise error

            monkeypatch.setattr(pl, "scan_parquet", scan)
            with pytest.raises(expected or KeyboardInterrupt) as raised:
                Log.from_frame(tmp_path / "a.parquet")
            if expected is not None:
                assert "a.parquet cannot be read (out of range): is it whole" in str(raised.value)

    def test_are_closed(self, tmp_path: Path) -> None:
        """Also damaged ones: Python warns of a file that is left open, and warnings are errors here."""
        np.savez(tmp_path / "log.npz", obs=np.ones(3), reward=np.ones(3))
        assert len(Log.from_frame(tmp_path / "log.npz")) == 3
        (tmp_path / "cut.npz").write_bytes((tmp_path / "log.npz").read_bytes()[:-30])
        with pytest.raises(InvalidInputError, match=r"cut\.npz cannot be read"):
            Log.from_frame(tmp_path / "cut.npz")
        gc.collect()

    @pytest.mark.parametrize(
        ("header", "message"),
        [
            (b"obs_0,obs_0,reward", "has the column obs_0 twice: give columns different names"),
            (b"obs_0,obs_1\0,reward", r"has the column 'obs_1\\x00': is it whole, and text"),
        ],
    )
    def test_of_which_a_column_would_be_left_out(self, header: bytes, message: str, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes(header + b"\n1.5,2.5,1.0\n2.5,3.5,2.0\n")
        with pytest.raises(InvalidInputError, match=message):
            Log.from_frame(tmp_path / "a.csv")

    def test_that_are_empty(self, tmp_path: Path) -> None:
        (tmp_path / "log.csv").touch()
        with pytest.raises(InvalidInputError, match=r"log\.csv is empty: there is nothing to read"):
            Log.from_frame(tmp_path / "log.csv")

    def test_of_another_kind(self, tmp_path: Path) -> None:
        (tmp_path / "log.hdf5").touch()
        with pytest.raises(InvalidInputError, match=r"log\.hdf5 ends with \.hdf5: .* for HDF5 use minari"):
            Log.from_frame(tmp_path / "log.hdf5")

    def test_with_different_columns(self, tmp_path: Path) -> None:
        pl.DataFrame(sound()).write_parquet(tmp_path / "a.parquet")
        pl.DataFrame(sound()).drop("reward").write_parquet(tmp_path / "b.parquet")
        with pytest.raises(InvalidInputError, match=r"b\.parquet has no column reward, which .*a\.parquet has"):
            Log.from_frame(tmp_path)

    def test_with_images_in_structures(self, tmp_path: Path) -> None:
        frame = pl.DataFrame({"observation.state": [{"bytes": b"1", "path": "a.png"}], "reward": [1.0]})
        frame.write_parquet(tmp_path / "a.parquet")
        with pytest.raises(
            InvalidInputError, match=r"observation\.state has values of type Struct.*a\.parquet: images"
        ):
            Log.from_frame(tmp_path / "a.parquet")

    def test_with_lists_of_different_lengths(self, tmp_path: Path) -> None:
        pl.DataFrame({"obs": [[1.0, 2.0], [1.0]], "reward": [1.0, 2.0]}).write_parquet(tmp_path / "a.parquet")
        with pytest.raises(InvalidInputError, match=r"obs has 2 values at first and 1 values in .*a\.parquet, row 1"):
            Log.from_frame(tmp_path / "a.parquet")

    def test_rows_are_counted_in_their_file(self, tmp_path: Path) -> None:
        for i in range(2):
            columns = put("obs_0", 4, None)(sound()) if i else sound()
            pl.DataFrame(columns).with_columns(pl.col("episode") + 3 * i).write_csv(tmp_path / f"{i}.csv")
        for read in (Log.from_frame, lambda path: list(read_chunks(path, rows=3))):
            with pytest.raises(InvalidInputError, match=r"obs_0 is missing in .*1\.csv, row 4: clean the log"):
                read(tmp_path)


class TestChunks:
    """What cannot be mended without reading everything."""

    def test_rows_out_of_order(self) -> None:
        columns = take(0, 1, 4, 5, 6, 2, 3, 7, 8, 9)(sound())
        Log.from_frame(columns)
        for rows in (3, 4, 20):
            with pytest.raises(InvalidInputError, match="sort it by episode and step, or read it whole"):
                list(read_chunks(columns, rows=rows))

    def test_discrete_states_of_unknown_number(self) -> None:
        columns = without("obs_0", "obs_1", obs=list(TEN))(sound())
        with pytest.raises(InvalidInputError, match="say n_observations, or discrete=False"):
            list(read_chunks(columns, rows=4))
        assert len(list(read_chunks(columns, rows=4, n_observations=10))) > 1

    def test_words_as_actions(self) -> None:
        columns = without("action", action=["left", "right"] * 5)(sound())
        with pytest.raises(InvalidInputError, match="action has words: in a log that is read in chunks"):
            list(read_chunks(columns, rows=4))


def test_at_least_thirty() -> None:
    assert len(REFUSED) + len(SAID) >= 30


def mangled(rng: np.random.Generator) -> Columns:
    """A log of a few episodes with some things wrong with it, at random."""
    columns = sound()
    if rng.random() < 0.3:
        columns = take(*sorted(rng.choice(10, rng.integers(1, 11), replace=False).tolist()))(columns)
    if rng.random() < 0.3:
        n = len(columns["reward"])
        columns = take(*rng.integers(0, n, rng.integers(1, 2 * n)).tolist())(columns)
    for name in rng.choice(list(columns), rng.integers(0, 5), replace=False).tolist():
        columns.pop(name)
    for name in rng.choice(list(columns), rng.integers(0, 2)).tolist():
        values = [float("nan"), None, -1, 3, 0.5, "x", True, float("inf"), [1.0], 10**30]
        columns[name][rng.integers(len(columns[name]))] = values[rng.integers(len(values))]
    if rng.random() < 0.2:
        columns["next_obs"] = rng.random((len(next(iter(columns.values()))), 2)).round().tolist()
    if rng.random() < 0.2:
        columns["done"] = rng.integers(0, 2, len(next(iter(columns.values())))).tolist()
    return columns


def test_whatever_is_wrong_is_said_in_our_words() -> None:
    """Either a log whose transitions are sound, in chunks the same as whole, or one of our errors."""
    accepted = 0
    for seed in range(250):
        columns = mangled(np.random.default_rng(seed))
        try:
            log = Log.from_frame(columns)
        except TlstdError:
            with suppress(TlstdError):
                list(read_chunks(columns, rows=4))
            continue
        accepted += 1
        steps = log.transitions(None, 0.9)
        steps.check()
        assert log.episodes[0] == 0
        assert log.episodes[-1] == len(log)
        assert (np.diff(log.episodes) > 0).all()
        ends = log.terminated | log.truncated
        assert (np.flatnonzero(ends) == log.episodes[1:] - 1).all()
        if any("gap" in note or "goes up by" in note or "usual distance" in note for note in log.notes):
            continue  # four rows may not say what one step is
        try:
            pieces = list(read_chunks(columns, rows=4))
        except TlstdError as error:
            message = str(error)
            assert "chunks" in message or "n_observations" in message or "first step" in message, seed
            continue
        again = Transitions.concatenate([piece.transitions(None, 0.9) for piece in pieces])
        assert len(again) == len(steps), seed
        for name in ("rewards", "discounts", "trace_discounts"):
            np.testing.assert_array_equal(getattr(again, name), getattr(steps, name), err_msg=f"{name}, {seed}")
    assert accepted > 50


BAD_NUMBERS: dict[str, tuple[Callable[[Columns], Columns], list[int], str]] = {
    "observation": (
        put("obs_0", 5, np.nan),
        [0, 2],
        "1 episode of 3 dropped, because numbers are missing or infinite in row 5.",
    ),
    "reward": (
        put("reward", 1, np.nan),
        [1, 2],
        "1 episode of 3 dropped, because numbers are missing or infinite in row 1.",
    ),
    "infinite reward": (put("reward", 9, np.inf), [0, 1], "in row 9."),
    "two episodes": (
        then(put("obs_1", 0, np.nan), put("probability", 8, np.nan)),
        [1],
        "2 episodes of 3 dropped, because numbers are missing or infinite in rows 0, 8.",
    ),
}


@pytest.mark.parametrize("case", BAD_NUMBERS)
def test_episodes_with_missing_numbers_can_be_dropped(case: str) -> None:
    """Refused, with the remedy in the message; with it the other episodes are as they would be alone."""
    change, kept, message = BAD_NUMBERS[case]
    if case != "two episodes":
        with pytest.raises(InvalidInputError, match="on_nan='drop'"):
            Log.from_frame(change(sound()))
    log = Log.from_frame(change(sound()), on_nan="drop")
    assert message in " ".join(log.notes)
    alone = Log.from_frame(sound()).select(kept)
    assert log.ids == kept
    for name in ("observations", "rewards", "actions", "terminated", "episodes", "probabilities"):
        np.testing.assert_array_equal(getattr(log, name), getattr(alone, name))


def test_what_is_after_the_last_step_is_no_reason_to_drop() -> None:
    """A last row without a reward has the observation after the last step, or not even that."""
    columns = sound()
    rows = {name: [*column, column[-1]] for name, column in columns.items()}
    rows |= {
        "reward": [*columns["reward"], np.nan],
        "obs_0": [*columns["obs_0"], np.nan],
        "step": [*columns["step"], 3],
    }
    log = Log.from_frame(rows, on_nan="drop")
    assert (len(log), log.n_episodes) == (10, 3)
    with pytest.raises(InvalidInputError, match="in all 3 episodes"):
        Log.from_frame(sound() | {"obs_0": [np.nan] * 10}, on_nan="drop")
    with pytest.raises(InvalidParameterError, match="on_nan is 'ignore'"):
        Log.from_frame(sound(), on_nan="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0.5] * 9 + [1.5], r"policy is \[1.5\] in row 9: pass probabilities"),
        ([0.5] * 9 + [np.nan], "policy is missing in row 9"),
        ([[0.5, 0.5]] * 9 + [[0.5, 0.6]], r"policy is \[0.5, 0.6\] in row 9: pass probabilities that add up to 1"),
        ([0.5] * 9, "policy has 9 rows"),
    ],
)
def test_policies_in_columns_are_checked(policy: Any, message: str) -> None:
    columns = sound()
    with pytest.raises(InvalidInputError, match=message):
        Log.from_arrays(columns["obs_0"], columns["reward"], policy=policy)
