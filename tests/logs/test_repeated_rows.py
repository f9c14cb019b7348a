"""Steps count once: whatever names a file has, and however often a row with an id is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import tlstd
from tests.cluster.logs import SHORT
from tests.logs.test_broken import put, sound
from tlstd import InvalidInputError, Log
from tlstd.cluster.evaluate import evaluate_files
from tlstd.evaluation import Question
from tlstd.logs import read_chunks

FEW = ("KrylovLSTD",)
ASKED = Question(gammas=(0.9,), estimators=FEW)
ENDED = SHORT.with_columns(terminated=pl.col("step") == pl.col("step").max().over("episode"))
"""Every episode is seen to its end."""


def same_log(a: Log, b: Log) -> None:
    assert a.ids == b.ids
    for column in ("observations", "rewards", "actions", "terminated", "truncated", "episodes", "begins"):
        assert_array_equal(getattr(a, column), getattr(b, column))


class TestNamesOfFiles:
    """One file is read once, and a note names its second name."""

    def other_name(self, kind: str, file: Path) -> Any:
        link = file.parent / "again.csv"
        if kind == "same name":
            return file
        if kind == "relative path":
            return os.path.relpath(file)
        if kind == "detour":
            return file.parent / ".." / file.parent.name / file.name
        if kind == "pattern":
            return str(file.parent / "*.csv")
        if kind == "folder":
            return file.parent
        if kind == "symbolic link":
            link.symlink_to(file)
        else:
            os.link(file, link)
        return link

    @pytest.mark.parametrize(
        "kind", ["same name", "relative path", "detour", "pattern", "folder", "symbolic link", "hard link"]
    )
    def test_one_file_by_two_names(self, kind: str, tmp_path: Path) -> None:
        file = tmp_path / "log.csv"
        columns = {name: column for name, column in sound().items() if name != "step"}
        pl.DataFrame(columns).write_csv(file)
        names = [str(file), self.other_name(kind, file)]
        same_log(log := Log.from_frame(names), Log.from_frame(file))
        assert sum("read once" in note for note in log.notes) == 1
        assert sum(map(len, read_chunks(names, rows=4))) == 10

    def test_a_link_in_a_folder(self, tmp_path: Path) -> None:
        pl.DataFrame(sound()).write_csv(tmp_path / "day1.csv")
        (tmp_path / "latest.csv").symlink_to(tmp_path / "day1.csv")
        log = Log.from_frame(tmp_path)
        assert len(log) == 10
        assert f"{tmp_path / 'latest.csv'} is the same file as {tmp_path / 'day1.csv'}: it is read once." in log.notes

    def test_with_workers(self, tmp_path: Path) -> None:
        SHORT.drop("step").write_parquet(tmp_path / "log.parquet")
        (tmp_path / "same.parquet").symlink_to(tmp_path / "log.parquet")
        whole = evaluate_files(tmp_path / "log.parquet", question=ASKED)
        found = evaluate_files(tmp_path, question=ASKED)
        assert str(found.interval()) == str(whole.interval())
        assert any("read once" in note for note in found.notes)


class TestRows:
    """A row with the ids and the contents of another counts once."""

    @pytest.mark.parametrize("flags", [True, False])
    def test_a_table_appended_to_itself(self, flags: bool) -> None:
        frame = pl.DataFrame(sound())
        if not flags:
            frame = frame.drop("terminated", "truncated")
        once, twice = Log.from_frame(frame), Log.from_frame(pl.concat([frame, frame]))
        same_log(once, twice)
        assert "10 rows repeated (first row 10): left out." in twice.notes

    def test_the_interval_does_not_shrink(self) -> None:
        once = tlstd.evaluate(ENDED, gamma=0.9, estimators=FEW)
        twice = tlstd.evaluate(pl.concat([ENDED, ENDED]), gamma=0.9, estimators=FEW)
        assert str(twice.interval()) == str(once.interval())

    def test_a_copy_of_a_file(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            SHORT.write_parquet(tmp_path / f"{name}.parquet")
        log = Log.from_frame(tmp_path)
        same_log(log, Log.from_frame(SHORT))
        assert any(f"{SHORT.height} rows repeated" in note for note in log.notes)

    def test_files_that_overlap(self, tmp_path: Path) -> None:
        frame = pl.DataFrame(sound())
        frame[:6].write_parquet(tmp_path / "a.parquet")
        frame[2:].write_parquet(tmp_path / "b.parquet")
        log = Log.from_frame(tmp_path)
        same_log(log, Log.from_frame(frame))
        assert f"4 rows repeated (first {tmp_path / 'b.parquet'}, row 0): left out." in log.notes

    def test_another_content_is_a_question(self, tmp_path: Path) -> None:
        pl.DataFrame(sound()).write_csv(tmp_path / "a.csv")
        pl.DataFrame(put("reward", 8, 5.0)(sound())).write_csv(tmp_path / "b.csv")
        message = r"episode 2 has step 1 twice with different reward, in .*a\.csv, row 8 and .*b\.csv, row 8: leave one"
        with pytest.raises(InvalidInputError, match=message):
            Log.from_frame(tmp_path)
        both = pl.concat([pl.DataFrame(sound()), pl.DataFrame(put("reward", 8, 5.0)(sound()))])
        with pytest.raises(InvalidInputError, match="episode 2 has step 1 twice with different reward, in row 8 and"):
            Log.from_frame(both)

    def test_the_answer_to_the_question(self, tmp_path: Path) -> None:
        """Names that are used anew are left out, and every episode counts."""
        for i in range(3):
            pl.DataFrame(sound()).with_columns(pl.col("reward") + i).write_csv(tmp_path / f"{i}.csv")
        with pytest.raises(InvalidInputError, match="--map episode="):
            Log.from_frame(tmp_path)
        log = Log.from_frame(tmp_path, columns={"episode": None})
        assert (log.n_episodes, len(log), int(log.begins.sum())) == (9, 30, 9)

    def test_names_that_are_used_anew_with_other_steps(self) -> None:
        frame = pl.DataFrame(sound()).with_columns(step=pl.int_range(10))
        later = frame.with_columns(pl.col("step") + 10)
        assert Log.from_frame(pl.concat([frame, later])).n_episodes == 6

    def test_without_ids_nothing_is_left_out(self) -> None:
        """Equal rows are usual where rows are decisions."""
        decisions = {"obs": [1.0, 1.0, 1.0, 2.0], "action": [0, 0, 0, 1], "reward": [1.0, 1.0, 1.0, 0.0]}
        for more in ({}, {"step": [0, 0, 0, 0]}, {"episode": [3, 3, 3, 3]}, {"terminated": [True] * 4}):
            log = Log.from_frame(decisions | more)
            assert len(log) == 4
            assert not any("repeated" in note for note in log.notes)

    def test_in_chunks(self) -> None:
        frame = pl.DataFrame(sound())
        with pytest.raises(InvalidInputError, match="episode 0 comes again with steps 0 to 0: a log that is read in"):
            list(read_chunks(pl.concat([frame, frame]), rows=4))


class TestWorkers:
    """Files that workers read, each by itself."""

    def test_a_copy_of_a_file(self, tmp_path: Path) -> None:
        for i, rows in enumerate(np.array_split(np.arange(SHORT.height), 3)):
            SHORT[rows.tolist()].write_parquet(tmp_path / f"{i}.parquet")
        whole = evaluate_files(tmp_path, question=ASKED)
        copy = tmp_path / "3.parquet"
        copy.write_bytes((tmp_path / "1.parquet").read_bytes())
        found = evaluate_files(tmp_path, question=ASKED)
        assert (found.value, str(found.interval())) == (whole.value, str(whole.interval()))
        n_rows = pl.read_parquet(copy).height
        assert f"{copy} repeats other files: its {n_rows} rows are left out." in found.notes

    def test_a_table_appended_to_itself(self, tmp_path: Path) -> None:
        ENDED.write_parquet(tmp_path / "a.parquet")
        once = evaluate_files(tmp_path, question=ASKED)
        pl.concat([ENDED, ENDED]).write_parquet(tmp_path / "a.parquet")
        twice = evaluate_files(tmp_path, question=ASKED)
        assert (once.value, once.n_steps) == (twice.value, twice.n_steps)

    @pytest.mark.parametrize("change", ["contents", "part"])
    def test_what_cannot_be_compared_is_a_question(self, change: str, tmp_path: Path) -> None:
        SHORT.write_parquet(tmp_path / "a.parquet")
        other = SHORT.with_columns(pl.col("reward") + 1.0) if change == "contents" else SHORT[5:]
        other.write_parquet(tmp_path / "b.parquet")
        with pytest.raises(InvalidInputError, match=r"b\.parquet has steps of episodes that .*a\.parquet has"):
            evaluate_files(tmp_path, question=ASKED)
        if change == "contents":
            found = evaluate_files(tmp_path, question=ASKED, columns={"episode": None})
            assert found.n_steps == 2 * SHORT.height

    @pytest.mark.parametrize("change", [0.0, 1.0])
    def test_a_file_that_is_left_out_is_not_repeated(self, change: float, tmp_path: Path) -> None:
        """What only it has is read from a later file."""
        thirds = np.array_split(ENDED["episode"].unique().sort(), 3)
        early, middle, late = (pl.col("episode").is_in(names) for names in thirds)
        other = pl.col("reward") + pl.when(middle).then(change).otherwise(0.0)
        ENDED.filter(early | middle).write_parquet(tmp_path / "1.parquet")
        ENDED.with_columns(reward=other).filter(middle | late).write_parquet(tmp_path / "2.parquet")
        ENDED.filter(late).write_parquet(tmp_path / "3.parquet")
        found = evaluate_files(tmp_path, question=ASKED, on_error="skip")
        assert found.n_steps == ENDED.height
        assert sum(note.startswith(f"Left out: {tmp_path / '2.parquet'}") for note in found.notes) == 1


class TestContentsWithWorkers:
    """Files are compared by the rules for the rows of one table."""

    def test_the_observation_after_the_last_step_counts(self, tmp_path: Path) -> None:
        last = pl.col("step") == pl.col("step").max().over("episode")
        after = {f"next_{name}": pl.col(name).shift(-1).over("episode").fill_null(0.5) for name in ("obs_0", "obs_1")}
        steps = SHORT.with_columns(truncated=last, **after)
        steps.write_parquet(tmp_path / "1.parquet")
        other = steps.with_columns(next_obs_0=pl.when(last).then(9.0).otherwise("next_obs_0"))
        other.write_parquet(tmp_path / "2.parquet")
        with pytest.raises(InvalidInputError, match="with different next_obs"):
            Log.from_frame(tmp_path)
        with pytest.raises(InvalidInputError, match="with other contents"):
            evaluate_files(tmp_path, question=ASKED)

    def test_zero_has_no_sign(self, tmp_path: Path) -> None:
        for name, zero in (("1.parquet", 0.0), ("2.parquet", -0.0)):
            first = pl.col("step") == pl.col("step").min().over("episode")
            ENDED.with_columns(reward=pl.when(first).then(zero).otherwise("reward")).write_parquet(tmp_path / name)
        assert evaluate_files(tmp_path, question=ASKED).n_steps == len(SHORT)

    def test_names_that_are_words_in_one_file(self, tmp_path: Path) -> None:
        """A name of 22 digits makes words of a column of numbers."""
        names = ENDED["episode"].rank("dense").cast(pl.Int64)
        numbered = ENDED.with_columns(episode=names)
        more = numbered.filter(pl.col("episode") == 1).with_columns(episode=pl.lit("1" + "0" * 21))
        numbered.with_columns(episode=names.cast(pl.String)).vstack(more).write_csv(tmp_path / "1.csv")
        numbered.write_csv(tmp_path / "2.csv")
        once = len(ENDED) + len(more)
        assert len(Log.from_frame(tmp_path)) == once
        assert evaluate_files(tmp_path, question=ASKED).n_steps == once
