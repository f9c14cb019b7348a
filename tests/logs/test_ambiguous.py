"""What has two meanings is a question; units, ids and types are the same in all files."""

from __future__ import annotations

import datetime
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from tests.logs.test_broken import sound
from tlstd import InvalidInputError, Log
from tlstd.cluster.evaluate import evaluate_files
from tlstd.evaluation import Question
from tlstd.logs import read_chunks
from tlstd.logs.columns import Preset

EPOCH = datetime.datetime(2024, 1, 1)


class TestColumns:
    """Two columns that can be meant."""

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"Reward": [1.0] * 10}, "can be the reward: reward or Reward; say which"),
            ({"obs_01": [1.0] * 10}, "has obs_1 and obs_01 for number 1 of the observation: name the columns"),
            ({"obs.0": [1.0] * 10}, r"has obs_0 and obs\.0 for number 0 of the observation"),
            ({"obs": [1.0] * 10}, "can be the observation: obs or obs_0, obs_1; say which"),
            ({"DONE": [0] * 10, "done": [0] * 10}, "can be the done: DONE or done; say which"),
        ],
    )
    @pytest.mark.parametrize("preset", [None, "flat"])
    def test_are_a_question(self, columns: dict[str, Any], message: str, preset: Preset | None) -> None:
        with pytest.raises(InvalidInputError, match=message):
            Log.from_frame(sound() | columns, preset=preset)

    def test_the_answer(self) -> None:
        table = sound() | {"Reward": [7.0] * 10}
        assert_array_equal(Log.from_frame(table, columns={"reward": "Reward"}).rewards, 7.0)


def timed(unit: str, first: int = 0) -> pl.DataFrame:
    """Two episodes of three steps; duration, time of the step and reward in a unit of time."""
    steps = [EPOCH + datetime.timedelta(milliseconds=20 * t) for t in range(3)] * 2
    waits = [datetime.timedelta(milliseconds=w) for w in (1500, 250, 1000, 2000, 3000, 500)]
    return pl.DataFrame(
        {
            "episode": [first, first, first, first + 1, first + 1, first + 1],
            "t": pl.Series(steps).cast(pl.Datetime(unit)),  # type: ignore[arg-type]
            "obs_0": pl.Series(waits).cast(pl.Duration(unit)),  # type: ignore[arg-type]
            "obs_1": [0.5] * 6,
            "reward": pl.Series(waits).cast(pl.Duration(unit)),  # type: ignore[arg-type]
            "done": [0, 0, 1, 0, 0, 1],
        }
    )


class TestTimes:
    """Times are in seconds, whatever their unit."""

    waits = (1.5, 0.25, 1.0, 2.0, 3.0, 0.5)

    @pytest.mark.parametrize("unit", ["ms", "us", "ns"])
    @pytest.mark.parametrize("frame", ["polars", "pandas", "parquet"])
    def test_in_one_table(self, unit: str, frame: str, tmp_path: Path) -> None:
        source: Any = timed(unit)
        if frame == "pandas":
            source = source.to_pandas()
        elif frame == "parquet":
            source.write_parquet(tmp_path / "log.parquet")
            source = tmp_path / "log.parquet"
        log = Log.from_frame(source)
        assert_array_equal(log.rewards, self.waits)
        assert_array_equal(log.observations[:, 0], self.waits)
        notes = " ".join(log.notes)
        assert "Times are in seconds: " in notes
        assert "obs_0 (durations)" in notes
        assert "t (timestamps, since 1970 UTC)" in notes
        assert "t goes up by 0.02 s from row to row" in notes

    @pytest.mark.parametrize("read", ["whole", "chunks"])
    def test_of_different_units_in_different_files(self, read: str, tmp_path: Path) -> None:
        for i, unit in enumerate(("ms", "us", "ns")):
            timed(unit, 2 * i).write_parquet(tmp_path / f"{i}.parquet")
        pieces = [Log.from_frame(tmp_path)] if read == "whole" else list(read_chunks(tmp_path, rows=4))
        assert_array_equal(np.concatenate([piece.rewards for piece in pieces]), self.waits * 3)
        assert_array_equal(np.concatenate([piece.observations[:, 0] for piece in pieces]), self.waits * 3)

    def test_workers_give_the_same(self, tmp_path: Path) -> None:
        for i, unit in enumerate(("ms", "us", "ns")):
            for k in range(4):
                timed(unit, 8 * i + 2 * k).write_parquet(tmp_path / f"{i}-{k}.parquet")
        found = evaluate_files(tmp_path, question=Question(gammas=(0.5,), estimators=("KrylovLSTD", "mean of returns")))
        mean = np.mean([1.5 + 0.5 * 0.25 + 0.25 * 1.0, 2.0 + 0.5 * 3.0 + 0.25 * 0.5])
        assert found.rows[0].value == pytest.approx(mean, rel=1e-12)

    def test_steps_of_different_units_are_in_order(self, tmp_path: Path) -> None:
        """One episode whose later steps are in a coarser unit, with the smaller numbers."""
        first, second = timed("ns")[:3], timed("ms")[:3]
        second = second.with_columns(pl.col("t") + datetime.timedelta(seconds=1))
        for name, part in (("b", first), ("a", second)):
            part.drop("done").write_parquet(tmp_path / f"{name}.parquet")
        log = Log.from_frame([tmp_path / "a.parquet", tmp_path / "b.parquet"], ends="terminated")
        whole = Log.from_frame(
            pl.concat([first, second.with_columns(pl.col("t").cast(pl.Datetime("ns")))], how="vertical_relaxed").drop(
                "done"
            ),
            ends="terminated",
        )
        assert_array_equal(log.rewards, whole.rewards)

    def test_a_time_zone_and_a_date(self) -> None:
        stamps = pl.Series([EPOCH, EPOCH]).dt.replace_time_zone("Europe/Berlin")
        seconds = EPOCH.replace(tzinfo=datetime.UTC).timestamp()
        table = pl.DataFrame({"obs_0": stamps, "obs_1": [EPOCH.date()] * 2, "reward": [1.0, 2.0], "done": [0, 1]})
        for source in (table, table.with_columns(pl.col("obs_1").cast(pl.Datetime("ms"))).to_pandas()):
            assert_array_equal(Log.from_frame(source).observations, [[seconds - 3600.0, seconds]] * 2)

    def test_a_missing_time_is_refused(self) -> None:
        frame = timed("ms").with_columns(reward=pl.when(pl.int_range(6) == 1).then(None).otherwise("reward"))
        for source in (frame, frame.to_pandas()):
            with pytest.raises(InvalidInputError, match="reward is missing in row 1"):
                Log.from_frame(source)

    def test_times_beside_numbers_are_refused(self, tmp_path: Path) -> None:
        timed("ms").write_parquet(tmp_path / "a.parquet")
        timed("ms", 2).with_columns(pl.col("reward").to_physical()).write_parquet(tmp_path / "b.parquet")
        with pytest.raises(InvalidInputError, match=r"reward has values of types .* in different files"):
            Log.from_frame(tmp_path)
        with pytest.raises(InvalidInputError, match=r"b\.parquet has other columns, shapes"):
            evaluate_files(tmp_path, question=Question(gammas=(0.9,)))


class TestNumbersOfEpisodes:
    """Ids stay exact."""

    base = 2**53

    def write(self, folder: Path, ids: list[Any], dtypes: list[Any]) -> None:
        for i, (name, dtype) in enumerate(zip(ids, dtypes, strict=True)):
            pl.DataFrame(
                {"episode": pl.Series([name, name], dtype=dtype), "obs": [0.5, 1.5], "reward": [1.0, 2.0]}
            ).write_parquet(folder / f"{i}.parquet")

    @pytest.mark.parametrize("other", [pl.UInt64, pl.Float64])
    def test_of_mixed_types(self, other: Any, tmp_path: Path) -> None:
        ids = [self.base, self.base + 1, 3]
        self.write(tmp_path, ids, [pl.Int64, pl.Int64, other])
        log = Log.from_frame(tmp_path, ends="terminated")
        assert log.ids == ids
        assert (
            sum(piece.n_episodes - piece.continues for piece in read_chunks(tmp_path, ends="terminated", rows=2)) == 3
        )

    def test_beyond_int64(self, tmp_path: Path) -> None:
        ids = [2**63 + 1, 2**63 + 2, -5]
        self.write(tmp_path, ids, [pl.UInt64, pl.UInt64, pl.Int64])
        assert Log.from_frame(tmp_path, ends="terminated").ids == ids
        table = {"episode": [name for name in ids for _ in range(2)], "obs": [0.5] * 6, "reward": [1.0] * 6}
        assert Log.from_frame(table, ends="terminated").ids == ids

    def test_floating_point_ids_that_may_have_merged_are_refused(self, tmp_path: Path) -> None:
        self.write(tmp_path, [1.0, float(self.base)], [pl.Float64, pl.Float64])
        with pytest.raises(InvalidInputError, match=r"episode is 9007199254740992 in .*: beyond 2.53 different names"):
            Log.from_frame(tmp_path, ends="terminated")


class TestCsv:
    """Types follow from all rows."""

    def test_whole_numbers_and_then_a_fraction(self, tmp_path: Path) -> None:
        rows = [f"{i // 10},{i % 10},{i % 10},1,{int(i % 10 == 9)}" for i in range(12_000)]
        rows[-1] = "1199,9,9,1.5,1"
        (tmp_path / "log.csv").write_text("\n".join(["episode,step,obs,reward,done", *rows]))
        log = Log.from_frame(tmp_path / "log.csv")
        assert log.rewards[-1] == 1.5
        pieces = list(read_chunks(tmp_path / "log.csv", rows=5_000, n_observations=10))
        assert_array_equal(np.concatenate([piece.rewards for piece in pieces]), log.rewards)

    def test_ids_of_twenty_digits_and_a_reward_beyond_int64(self, tmp_path: Path) -> None:
        ids = ["12345678901234567890", "12345678901234567891", "1" * 60]
        lines = [f"{name},{t},0.5,{2**63},{t}" for name in ids for t in (0, 1)]
        (tmp_path / "log.csv").write_text("\n".join(["episode,step,obs,reward,done", *lines]))
        log = Log.from_frame(tmp_path / "log.csv")
        assert log.ids == ids
        assert_array_equal(log.rewards, 2.0**63)

    def test_numbers_of_128_bits_in_a_frame(self) -> None:
        ids = pl.Series(["12345678901234567890", "12345678901234567891"]).cast(pl.Int128)
        frame = pl.DataFrame({"episode": ids, "obs": [0.5, 1.5], "reward": [1.0, 2.0], "done": [1, 1]})
        assert Log.from_frame(frame).n_episodes == 2


class TestNamesAndSizes:
    """What used to end in a traceback."""

    def test_a_name_with_a_digit_that_is_no_number(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        pl.DataFrame(sound()).write_csv(tmp_path / "²1.csv")
        pl.DataFrame(sound()).with_columns(pl.col("episode") + 3).write_csv(tmp_path / "٣2.csv")
        assert len(Log.from_frame(["²1.csv", "٣2.csv"])) == 20

    def test_a_home_folder_that_is_not_there(self) -> None:
        with pytest.raises(InvalidInputError, match=r"'~nosuchuser/x.csv' names no home folder of this machine"):
            Log.from_frame("~nosuchuser/x.csv")

    def test_empty_lists(self, tmp_path: Path) -> None:
        frame = pl.DataFrame({"obs": pl.Series([[], []], dtype=pl.List(pl.Float64)), "reward": [1.0, 2.0]})
        frame.write_parquet(tmp_path / "log.parquet")
        with pytest.raises(InvalidInputError, match=r"obs has empty lists in .*: pass at least one number"):
            Log.from_frame(tmp_path / "log.parquet")
        with pytest.raises(InvalidInputError, match="obs has observations of no numbers"):
            Log.from_frame({"obs": np.zeros((2, 0)), "reward": [1.0, 2.0]})

    def test_a_number_of_five_thousand_digits(self) -> None:
        name = "obs_" + "1" * 5_000
        with pytest.raises(InvalidInputError, match=r"1…1+ \(5,004 characters\) .*, but not number 2: ") as found:
            Log.from_frame(sound() | {name: [1.0] * 10})
        assert len(str(found.value)) < 400
        log = Log.from_frame(sound() | {name: [1.0] * 10}, columns={"observation": ["obs_0", "obs_1"]})
        assert len(log.notes[0]) < 400

    def test_arrays_that_are_not_there(self, tmp_path: Path) -> None:
        path = tmp_path / "log.npz"
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("obs", "reward"):
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array_header_1_0(member, header)
        with pytest.raises(InvalidInputError, match=r"declares 10,000,000,000,000 numbers in obs\.npy and holds"):
            Log.from_frame(path)


class TestAddresses:
    """Secrets are never shown."""

    @pytest.mark.parametrize(
        "address",
        [
            "s3://user:pass-word@bucket/log.parquet",
            "s3://bucket/log.parquet?sig=pass-word",
            "s3://user:pass-word@bucket/log.xls",
            "https://user:pass-word@127.0.0.1:9/log.parquet",
            "http://127.0.0.1:9/log.csv?sig=pass-word&v=1",
            "hf://user:pass-word@127.0.0.1:9/log.csv",
            "ftp://user:pass-word@host/log.csv?sig=pass-word",
            "file:///user:pass-word@host/log.csv",
            "s3:/user:pass-word@bucket/log.csv",
            "s3:///user:pass-word@bucket/log.csv#sig=pass-word",
            "bucket/log.csv?sig=pass-word",
        ],
    )
    def test_in_errors(self, address: str) -> None:
        storage = {
            "aws_endpoint_url": "http://127.0.0.1:9",
            "aws_access_key_id": "k",
            "aws_secret_access_key": "hidden",
        }
        for read in (
            Log.from_frame,
            lambda name, storage: evaluate_files(name, question=Question(gammas=(0.9,)), storage=storage),
        ):
            with pytest.raises(InvalidInputError) as caught:
                read(address, storage={**storage, "max_retries": "0"})
            assert "pass-word" not in str(caught.value)
            assert "hidden" not in str(caught.value)

    def test_the_web_is_not_read(self) -> None:
        with pytest.raises(InvalidInputError, match=r"https://host/a\.csv is an address of the web, .* download"):
            Log.from_frame("https://host/a.csv")

    def test_other_kinds_are_not_read(self) -> None:
        with pytest.raises(InvalidInputError, match=r"ftp://host/a\.csv begins with none of s3://, .* copy the file"):
            Log.from_frame("ftp://host/a.csv")


def test_nothing_is_left_open(tmp_path: Path) -> None:
    """Files that were refused can be removed."""
    (tmp_path / "log.npz").write_bytes(b"PK")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(InvalidInputError):
        Log.from_frame(tmp_path / "log.npz")
    assert len(os.listdir("/proc/self/fd")) == before


def test_pandas_integers_of_any_size() -> None:
    ids = [2**53, 2**53 + 1]
    frame = pd.DataFrame({"episode": pd.array(ids, dtype="Int64"), "obs": [0.5, 1.5], "reward": [1.0, 2.0]})
    assert Log.from_frame(frame, ends="terminated").ids == ids


def test_a_reward_beyond_64_bits_beside_fractions(tmp_path: Path) -> None:
    rewards = [str(2**63), "1", "1.5", "-2e3", ".5"]
    rows = "\n".join(f"0.{i},{reward}" for i, reward in enumerate(rewards))
    (tmp_path / "log.csv").write_text(f"obs,reward\n{rows}\n")
    assert Log.from_frame(tmp_path / "log.csv", ends="terminated").rewards.tolist() == [2.0**63, 1.0, 1.5, -2e3, 0.5]
    (tmp_path / "text.csv").write_text(f"obs,reward\n{rows}\n0.9,abc\n")
    with pytest.raises(InvalidInputError, match="reward has values of type str"):
        Log.from_frame(tmp_path / "text.csv")
