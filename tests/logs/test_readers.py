"""Each reader against the arrays that were written, whole and in chunks; presets, guesses and several files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from minari.data_collector import EpisodeBuffer
from numpy.testing import assert_array_equal

from tests.logs.test_log import GAMMA, assert_same, table
from tlstd import LSTD, InvalidInputError, Log, Transitions
from tlstd.logs import read_chunks
from tlstd.logs.columns import Preset

FLAT = {
    "rewards": "reward",
    "actions": "action",
    "terminated": "terminated",
    "truncated": "truncated",
    "episodes": "episode",
    "steps": "step",
    "probabilities": "probability",
}


def flat(columns: dict[str, Any]) -> dict[str, Any]:
    """One column for each number."""
    out = {FLAT[name]: column for name, column in columns.items() if name in FLAT}
    for prefix, name in (("obs", "observations"), ("next_obs", "next_observations")):
        for i in range(3):
            out[f"{prefix}_{i}"] = columns[name][:, i]
    return out


def vectors(columns: dict[str, Any]) -> dict[str, Any]:
    """A column of lists for each vector."""
    out = {FLAT[name]: column for name, column in columns.items() if name in FLAT}
    return out | {"obs": columns["observations"].tolist(), "next_obs": columns["next_observations"].tolist()}


def _file(name: str, write: Callable[[pl.DataFrame, Path], Any]) -> Callable[[dict[str, Any], Path], Any]:
    def make(columns: dict[str, Any], folder: Path) -> Path:
        write(pl.DataFrame(columns), folder / name)
        return folder / name

    return make


def _parts(columns: dict[str, Any], folder: Path) -> Path:
    """Eleven files in a folder: by their names as text, 10 would come before 2."""
    frame = pl.DataFrame(columns)
    for i, rows in enumerate(np.array_split(np.arange(frame.height), 11)):
        frame[rows.tolist()].write_parquet(folder / f"part-{i}.parquet")
    return folder


def _npz(columns: dict[str, Any], folder: Path) -> Path:
    arrays: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
    np.savez(folder / "log.npz", **arrays)
    return folder / "log.npz"


SOURCES: dict[str, Callable[[dict[str, Any], Path], Any]] = {
    "parquet": _file("log.parquet", lambda frame, path: frame.write_parquet(path)),
    "arrow": _file("log.arrow", lambda frame, path: frame.write_ipc(path)),
    "feather": _file("log.feather", lambda frame, path: frame.write_ipc(path, compression="lz4")),
    "npz": _npz,
    "folder": _parts,
    "glob": lambda columns, folder: str(_parts(columns, folder) / "part-*.parquet"),
    "list": lambda columns, folder: (
        [folder / f"part-{i}.parquet" for i in range(11)] if _parts(columns, folder) else []
    ),
    "polars": lambda columns, folder: pl.DataFrame(columns),
    "lazy polars": lambda columns, folder: pl.DataFrame(columns).lazy(),
    "pandas": lambda columns, folder: pd.DataFrame(columns),
    "pyarrow": lambda columns, folder: pyarrow.table(columns),
    "dict": lambda columns, folder: columns,
}


def concatenated(logs: list[Log]) -> Transitions:
    return Transitions.concatenate([log.transitions(None, GAMMA) for log in logs])


Shape = Callable[[dict[str, Any]], dict[str, Any]]
TEXTS = ("csv", "tsv", "semicolons.csv")
CHUNKS = ((1, 40), (7, 10_000))
READ: list[tuple[str, Shape, tuple[int, ...]]] = [
    *((source, flat, (1, 7, 40, 10_000)) for source in TEXTS),
    *(
        (source, shape, CHUNKS[(i + j) % 2])
        for i, source in enumerate(SOURCES)
        for j, shape in enumerate((flat, vectors))
    ),
]
"""Pairwise: every source in both shapes and in chunks of all sizes, every shape in chunks of all sizes."""


@pytest.mark.parametrize(("source", "shape", "sizes"), READ)
def test_read_again_as_written(source: str, shape: Shape, sizes: tuple[int, ...], tmp_path: Path) -> None:
    columns = table(15)
    whole = Log.from_arrays(**columns)
    if source in TEXTS:
        path = tmp_path / f"log.{source}"
        pl.DataFrame(shape(columns)).write_csv(path, separator={"csv": ",", "tsv": "\t"}.get(source, ";"))
        made: Any = path
    else:
        made = SOURCES[source](shape(columns), tmp_path)
    log = Log.from_frame(made)
    assert_same(log.transitions(None, GAMMA), whole.transitions(None, GAMMA))
    for name in ("observations", "actions", "terminated", "truncated", "final", "episodes", "probabilities", "begins"):
        assert_array_equal(getattr(log, name), getattr(whole, name), err_msg=name)
    assert log.ids == whole.ids
    assert [note for note in log.notes[1:] if not note.endswith("go on in the next one: joined.")] == []
    for rows in sizes:
        pieces = list(read_chunks(made, rows=rows))
        assert_same(concatenated(pieces), whole.transitions(None, GAMMA))
        starts = np.cumsum([0, *map(len, pieces)])
        assert_array_equal(
            np.concatenate([piece.start_rows + start for piece, start in zip(pieces, starts, strict=False)]),
            whole.start_rows,
        )
        assert [name for piece in pieces for name in piece.ids[piece.continues :]] == whole.ids


numbers = st.floats(-1e90, 1e90, allow_subnormal=True)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)


@pytest.mark.parametrize("source", ["csv", "tsv", "semicolons.csv", "parquet"])
@given(
    values=st.lists(st.tuples(numbers, numbers), min_size=2, max_size=12),
    names=st.lists(words, min_size=2, max_size=2, unique=True),
)
def test_any_numbers_and_names(
    source: str, values: list[tuple[float, float]], names: list[str], tmp_path: Path
) -> None:
    """Two episodes of any numbers, with any names of episodes: what is read is what was written, to the bit."""
    half = len(values) // 2
    columns = {
        "obs": [x for x, _ in values],
        "reward": [r for _, r in values],
        "terminated": [i in (half - 1, len(values) - 1) for i in range(len(values))],
        "episode": [f"e{names[i >= half]}" for i in range(len(values))],
    }
    path = tmp_path / f"log.{source}"
    if source == "parquet":
        pl.DataFrame(columns).write_parquet(path)
    else:
        pl.DataFrame(columns).write_csv(path, separator={"csv": ",", "tsv": "\t"}.get(source, ";"))
    log = Log.from_frame(path)
    assert_array_equal(log.observations, np.array(columns["obs"])[:, None])
    assert_array_equal(log.rewards, columns["reward"])
    assert log.ids == [f"e{name}" for name in names]


def test_a_model_of_chunks_is_that_of_the_whole_to_the_bit(tmp_path: Path) -> None:
    columns = table(200)
    path = tmp_path / "log.parquet"
    pl.DataFrame(flat(columns)).write_parquet(path)
    whole, pieces = LSTD(3, lambda_=0.8, solver="recursive"), LSTD(3, lambda_=0.8, solver="recursive")
    whole.update_many(Log.from_frame(path).transitions(None, GAMMA))
    pieces.update_many(log.transitions(None, GAMMA) for log in read_chunks(path, rows=37))
    assert pieces.n_updates == whole.n_updates == len(columns["rewards"])
    assert_array_equal(pieces.weights, whole.weights)


@pytest.mark.parametrize("rows", [3, 4, 5, 100])
def test_chunks_mend_what_the_whole_mends(rows: int) -> None:
    """Gaps, repeated rows, final rows, missing beginnings and no names, across every border."""
    columns: dict[str, Any] = {
        "obs": np.arange(12.0),
        "reward": [0, 1, np.nan, 3, 4, 4, 6, 7, 8, 9, np.nan, 11],
        "t": [0, 1, 2, 0, 1, 1, 4, 5, 0, 1, 2, 3],
        "terminated": [0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0],
    }
    columns["obs"][5] = columns["obs"][4]
    names = {"episode": [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 3]}
    whole = Log.from_frame(columns | names)
    pieces = list(read_chunks(columns | names, rows=rows))
    assert_same(concatenated(pieces), whole.transitions(None, GAMMA))
    starts = np.cumsum([0, *map(len, pieces)])
    assert_array_equal(
        np.concatenate([piece.start_rows + start for piece, start in zip(pieces, starts, strict=False)]), [0, 2, 6]
    )
    assert_array_equal(whole.start_rows, [0, 2, 6])


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_time_limits_across_chunks(rows: int) -> None:
    """Episodes of four steps go over two pieces, or over more."""
    columns = {"obs": np.arange(12.0), "reward": np.ones(12), "done": np.isin(np.arange(12), [3, 5, 9, 11])}
    whole = Log.from_frame(columns, time_limit=4)
    pieces = list(read_chunks(columns, rows=rows, time_limit=4))
    assert_array_equal(np.concatenate([piece.truncated for piece in pieces]), whole.truncated)
    assert_array_equal(np.flatnonzero(whole.truncated), [3, 9])


class TestFiles:
    def test_names_of_episodes_that_begin_anew_in_each_file(self, tmp_path: Path) -> None:
        for i in range(3):
            frame = pl.DataFrame(
                {"episode": [0, 0, 1, 1], "obs": [1.0, 2.0, 3.0, 4.0 + i], "reward": [i] * 4, "done": [0, 1, 0, 1]}
            )
            frame.write_parquet(tmp_path / f"{i}.parquet")
        log = Log.from_frame(tmp_path)
        assert log.ids == [0, 1, 0, 1, 0, 1]
        assert any(
            note.startswith("4 episode names are used again in another file (first 0 in ")
            and note.endswith("1.parquet, row 0): taken for other episodes.")
            for note in log.notes
        )

    def test_an_episode_that_goes_on_in_the_next_file(self, tmp_path: Path) -> None:
        for i in range(3):
            frame = pl.DataFrame({"episode": [7, 7], "step": [2 * i, 2 * i + 1], "obs": [0.5, 1.5], "reward": [1, 2]})
            frame.write_parquet(tmp_path / f"{i}.parquet")
        assert Log.from_frame(tmp_path, ends="terminated").n_episodes == 1
        pieces = list(read_chunks(tmp_path, ends="terminated", rows=2))
        assert [piece.continues for piece in pieces] == [False, True, True, True]

    def test_a_file_is_an_episode_where_nothing_else_says_so(self, tmp_path: Path) -> None:
        for i in range(3):
            pl.DataFrame({"obs": [0.5, 1.5, 2.5], "reward": [1, 2, 3]}).write_csv(tmp_path / f"{i}.csv")
        log = Log.from_frame(tmp_path)
        assert log.n_episodes == 3
        assert "each file is taken for an episode" in log.notes[1]

    def test_rows_are_named_with_their_files(self, tmp_path: Path) -> None:
        for i, reward in enumerate(([1.0, 2.0], [None, 1.0])):
            pl.DataFrame({"obs": [0.5, 1.5], "reward": reward, "done": [0, 0], "t": [2 * i, 2 * i + 1]}).write_parquet(
                tmp_path / f"{i}.parquet"
            )
        with pytest.raises(InvalidInputError, match=r"1\.parquet, row 0"):
            Log.from_frame(tmp_path)


def test_a_column_may_have_a_semicolon_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("speed; m/s,reward,done\n1.5,2,0\n2.5,3,1\n")
    log = Log.from_frame(tmp_path / "log.csv", columns={"observation": "speed; m/s"})
    assert_array_equal(log.observations, [[1.5], [2.5]])


def test_numbered_columns_are_in_the_order_of_their_numbers() -> None:
    """10 comes after 2, wherever the columns stand in the table."""
    columns = {f"obs_{i}": [float(i)] for i in (10, 2, 0, 1, 9, 3, 8, 4, 7, 5, 6)}
    log = Log.from_frame(columns | {"reward": [1.0], "terminated": [True]})
    assert_array_equal(log.observations, [np.arange(11.0)])


PRESETS: dict[str, dict[str, Any]] = {
    "lerobot": {
        "observation.state": [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]],
        "action": [[0.5], [0.5], [0.5]],
        "timestamp": [0.0, 0.1, 0.0],
        "episode_index": [0, 0, 1],
        "frame_index": [0, 1, 0],
        "index": [0, 1, 2],
        "task_index": [0, 0, 0],
        "next.reward": [0.0, 1.0, 1.0],
        "next.done": [False, True, True],
    },
    "rllib": {
        "obs": [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]],
        "new_obs": [[1.0, 1.0], [5.0, 1.0], [6.0, 1.0]],
        "actions": [0, 1, 0],
        "rewards": [0.0, 1.0, 1.0],
        "terminateds": [False, True, True],
        "truncateds": [False, False, False],
        "eps_id": [10, 10, 11],
        "t": [0, 1, 0],
        "action_logp": [-0.5, -0.25, 0.0],
    },
    "d4rl": {
        "observations": [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]],
        "actions": [[0.5], [0.5], [0.5]],
        "rewards": [0.0, 1.0, 1.0],
        "terminals": [0, 1, 1],
        "timeouts": [0, 0, 0],
    },
    "minari": {
        "observations": [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]],
        "actions": [0, 1, 0],
        "rewards": [0.0, 1.0, 1.0],
        "terminations": [0, 1, 1],
        "truncations": [0, 0, 0],
        "episode_id": [0, 0, 1],
    },
    "flat": {
        "obs_0": [0.0, 1.0, 2.0],
        "obs_1": [1.0, 1.0, 1.0],
        "action": [0, 1, 0],
        "reward": [0.0, 1.0, 1.0],
        "terminated": [0, 1, 1],
    },
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("named", [True, False])
def test_presets(preset: Preset, named: bool) -> None:
    """By the preset, and by the names alone."""
    log = Log.from_frame(PRESETS[preset], preset=preset if named else None)
    assert_array_equal(log.episodes, [0, 2, 3])
    assert_array_equal(log.terminated, [False, True, True])
    assert_array_equal(log.observations, [[0, 1], [1, 1], [2, 1]])
    assert_array_equal(log.rewards, [0, 1, 1])
    assert log.actions is not None
    assert log.notes[0].startswith(f"Columns, by the preset {preset!r}" if named else "Columns, by their names")
    if preset == "rllib":
        assert_array_equal(log.probabilities, np.exp([-0.5, -0.25, 0.0]))


def record(name: str, dataset: str, n_episodes: int) -> None:
    """A data set by Minari's own writer, of random actions. (Its collector needs JAX.)"""
    env = gymnasium.make(name, max_episode_steps=30)
    env.action_space.seed(1)
    buffers = []
    for episode in range(n_episodes):
        observation, _ = env.reset(seed=episode)
        seen = [observation]
        steps: list[tuple[Any, ...]] = []
        while not steps or not any(steps[-1][2:]):
            action = env.action_space.sample()
            observation, reward, terminated, truncated, _ = env.step(action)
            seen.append(observation)
            steps.append((action, reward, terminated, truncated))
        actions, rewards, terminations, truncations = (list(column) for column in zip(*steps, strict=True))
        buffers.append(EpisodeBuffer(episode, None, None, seen, actions, rewards, terminations, truncations, None))
    minari.create_dataset_from_buffers(dataset, buffers, env=env, eval_env=name, algorithm_name="random")
    env.close()


class TestMinari:
    """Data sets that Minari's own package has recorded."""

    @pytest.mark.filterwarnings("ignore::UserWarning:minari")  # about the author and other things left out
    @pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1"])
    def test_is_what_was_recorded(self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
        record(name, "mine/test-v0", 6)
        dataset = minari.load_dataset("mine/test-v0")
        log = Log.from_minari(dataset)
        episodes = list(dataset.iterate_episodes())
        assert (log.n_episodes, len(log)) == (6, dataset.total_steps)
        assert log.discrete == (name == "FrozenLake-v1")
        assert log.has_final.all()
        assert log.actions is not None
        for i, episode in enumerate(episodes):
            rows = slice(log.episodes[i], log.episodes[i + 1])
            assert_array_equal(log.observations[rows], episode.observations[:-1])
            assert_array_equal(log.final[i], episode.observations[-1])
            assert_array_equal(log.rewards[rows], episode.rewards)
            assert_array_equal(log.terminated[rows], episode.terminations)
            assert_array_equal(log.truncated[rows], episode.truncations & ~episode.terminations)
            assert_array_equal(np.squeeze(log.actions[rows]), np.squeeze(episode.actions))
        assert len(log.transitions(None, GAMMA)) == dataset.total_steps
        for other in ("mine/test-v0", tmp_path / "mine" / "test-v0"):
            assert_same(Log.from_minari(other).transitions(None, GAMMA), log.transitions(None, GAMMA))
        assert repr(log).startswith("<Log of the Minari data set mine/test-v0")

    def test_one_that_is_not_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
        with pytest.raises(InvalidInputError, match=r"no Minari data set 'mine/none-v0' here .*download_dataset"):
            Log.from_minari("mine/none-v0")


def test_rows_are_reported_as_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By rows, not only by files; what is read is the same."""
    monkeypatch.setattr("tlstd.logs.reading.ROWS", 30)
    for i in range(2):
        frame = pl.DataFrame({"episode": [i] * 100, "obs": np.arange(100.0), "reward": np.ones(100)})
        frame.write_parquet(tmp_path / f"{i}.parquet", row_group_size=30)
    told: list[tuple[str, float]] = []
    log = Log.from_frame(tmp_path, report=lambda text, share: told.append((text, share)))
    np.testing.assert_array_equal(log.rewards, Log.from_frame(tmp_path).rewards)
    assert told[-1] == ("reading: 200 rows", 0.5)
    assert len(told) >= 6
    assert [share for _, share in told] == sorted(share for _, share in told)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_reading_loads_no_compiler(ending: str, tmp_path: Path) -> None:
    """Nor does making features; encoding and transitions may."""
    path = tmp_path / f"log.{ending}"
    table = pl.DataFrame({"episode": [0, 0, 1], "obs": [0.5, 1.5, 2.5], "reward": [1.0, 0.0, 1.0], "user": ["a"] * 3})
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)
    code = (
        "import sys; from tlstd import AutoTiles, Log, OneHot\n"
        f"log = Log.from_frame({str(path)!r}, columns={{'cluster': 'user'}}); log[1:].clusters\n"
        "AutoTiles.fit(log.states); OneHot([0], [3])\n"
        "from tlstd.logs import read_chunks\n"
        f"list(read_chunks({str(path)!r}))\n"
        "print({'numba', 'scipy.sparse.csgraph', 'pandas', 'matplotlib'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
