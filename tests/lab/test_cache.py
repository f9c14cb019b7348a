from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from tlstd_lab.cache import cache_folder, cached_arrays

from tlstd.errors import InvalidParameterError, StateError

KEY = {"n": 5, "rate": 0.1, "range": [1, 2], "version": 1}
WORKER = """
import sys, time
from pathlib import Path
import numpy as np
from tlstd_lab.cache import cached_arrays

def compute():
    (folder / f"{sys.argv[2]}.ready").touch()
    while len(list(folder.glob("*.ready"))) < 2:  # both are computing at the same time
        time.sleep(0.001)
    return {"squares": np.arange(200_000) ** 2}

folder = Path(sys.argv[1])
for _ in range(5):
    assert cached_arrays("squares", {"n": 1}, compute, folder=folder)["squares"][-1] == 199_999**2
print(cached_arrays("squares", {"n": 1}, compute, folder=folder)["squares"].sum())
"""


class Counting:
    """A computation that counts how often it runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self) -> dict[str, NDArray[Any]]:
        self.runs += 1
        return {"table": np.arange(24, dtype=np.int8).reshape(2, 3, 4), "values": np.linspace(0.0, 1.0, 1000)}


def same(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.dtype == second[name].dtype
        assert_array_equal(array, second[name])


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_computes_once(tmp_path: Path) -> None:
    compute, folder = Counting(), tmp_path / "not" / "there" / "yet"
    first = cached_arrays("things", KEY, compute, folder=folder)
    again = cached_arrays("things", dict(reversed(KEY.items())), compute, folder=folder)  # order does not matter
    assert compute.runs == 1
    same(first, again)
    assert [path.suffix for path in files(folder)] == [".cache"]  # no temporary file is left


@pytest.mark.parametrize(
    "other", [{**KEY, "n": 6}, {**KEY, "rate": 0.2}, {**KEY, "version": 2}, {**KEY, "more": None}, {"n": 5}]
)
def test_other_parameters_are_another_file(tmp_path: Path, other: dict[str, Any]) -> None:
    compute = Counting()
    cached_arrays("things", KEY, compute, folder=tmp_path)
    cached_arrays("things", other, compute, folder=tmp_path)
    assert compute.runs == 2
    assert len(files(tmp_path)) == 2


def test_another_name_is_another_file(tmp_path: Path) -> None:
    compute = Counting()
    cached_arrays("things", KEY, compute, folder=tmp_path)
    cached_arrays("others", KEY, compute, folder=tmp_path)
    assert compute.runs == 2


def test_a_file_under_another_name_is_not_used(tmp_path: Path) -> None:
    compute = Counting()
    cached_arrays("things", KEY, compute, folder=tmp_path)
    [first] = files(tmp_path)
    cached_arrays("things", {**KEY, "n": 6}, compute, folder=tmp_path)
    [second] = [path for path in files(tmp_path) if path != first]
    os.replace(first, second)
    cached_arrays("things", {**KEY, "n": 6}, compute, folder=tmp_path)
    assert compute.runs == 3


def truncate(data: bytes, where: float) -> bytes:
    return data[: int(where * len(data))]


def flip(data: bytes, where: float) -> bytes:
    position = min(int(where * len(data)), len(data) - 1)
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize("damage", [truncate, flip])
@pytest.mark.parametrize("where", [0.0, 0.001, 0.003, 0.05, 0.3, 0.5, 0.9, 0.9999])
def test_a_damaged_file_is_replaced(tmp_path: Path, damage: Callable[[bytes, float], bytes], where: float) -> None:
    compute = Counting()
    first = cached_arrays("things", KEY, compute, folder=tmp_path)
    [path] = files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(damage(whole, where))
    same(first, cached_arrays("things", KEY, compute, folder=tmp_path))
    assert compute.runs == 2
    same(first, cached_arrays("things", KEY, compute, folder=tmp_path))
    assert compute.runs == 2


def test_a_flipped_bit_is_noticed_anywhere(tmp_path: Path) -> None:
    compute = Counting()
    arrays = cached_arrays("small", KEY, lambda: {"x": np.arange(3)}, folder=tmp_path)
    [path] = files(tmp_path)
    whole = path.read_bytes()
    positions = range(0, len(whole), 5)
    for position in positions:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x40]) + whole[position + 1 :])
        cached_arrays("small", KEY, compute, folder=tmp_path)
    assert compute.runs == len(positions)
    assert_array_equal(arrays["x"], [0, 1, 2])


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    """A file with a right checksum around an array of objects is not opened as one."""
    import hashlib
    import io

    from tlstd_lab import cache

    compute = Counting()
    cached_arrays("things", KEY, compute, folder=tmp_path)
    [path] = files(tmp_path)
    start = len(cache.MAGIC) + 32
    with np.load(io.BytesIO(path.read_bytes()[start:])) as archive:
        key = archive["__key__"]
    buffer = io.BytesIO()
    np.savez(buffer, __key__=key, table=np.array([{}], dtype=object))
    payload = buffer.getvalue()
    path.write_bytes(cache.MAGIC + hashlib.sha256(payload).digest() + payload)
    cached_arrays("things", KEY, compute, folder=tmp_path)
    assert compute.runs == 2
    garbage = b"not an archive"
    path.write_bytes(cache.MAGIC + hashlib.sha256(garbage).digest() + garbage)
    cached_arrays("things", KEY, compute, folder=tmp_path)
    assert compute.runs == 3
    assert zipfile.is_zipfile(io.BytesIO(path.read_bytes()))


def test_two_processes_at_once(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), name], stdout=subprocess.PIPE, text=True)
        for name in ("first", "second")
    ]
    answers = [worker.communicate(timeout=60)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert [int(answer) for answer in answers] == [int((np.arange(200_000) ** 2).sum())] * 2
    assert sorted(path.suffix for path in files(tmp_path)) == [".cache", ".ready", ".ready"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Below a file there can be no folder, not even for root."""
    (tmp_path / "file").write_text("in the way")
    compute = Counting()
    first = cached_arrays("things", KEY, compute, folder=tmp_path / "file" / "folder")
    same(first, cached_arrays("things", KEY, compute, folder=tmp_path / "file" / "folder"))
    assert compute.runs == 2


def test_a_folder_without_permission(tmp_path: Path) -> None:
    compute = Counting()
    tmp_path.chmod(0o500)
    try:
        same(compute(), cached_arrays("things", KEY, compute, folder=tmp_path))
    finally:
        tmp_path.chmod(0o700)


def test_no_room_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    compute = Counting()
    same(compute(), cached_arrays("things", KEY, compute, folder=tmp_path))
    assert files(tmp_path) == []


def test_something_else_in_its_place(tmp_path: Path) -> None:
    compute = Counting()
    cached_arrays("things", KEY, compute, folder=tmp_path)
    [path] = files(tmp_path)
    path.unlink()
    path.mkdir()
    same(compute(), cached_arrays("things", KEY, compute, folder=tmp_path))
    assert files(tmp_path) == [path]


def test_a_failing_computation_keeps_nothing(tmp_path: Path) -> None:
    def fail() -> dict[str, NDArray[Any]]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached_arrays("things", KEY, fail, folder=tmp_path)
    assert files(tmp_path) == []


def test_where_the_folder_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for variable in ("TLSTD_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    for platform, folder in (
        ("linux", tmp_path / ".cache" / "tlstd"),
        ("darwin", tmp_path / "Library" / "Caches" / "tlstd"),
        ("win32", tmp_path / "AppData" / "Local" / "tlstd"),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder() == folder
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "tlstd"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "tlstd"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "tlstd"
    monkeypatch.setenv("TLSTD_CACHE", "")
    assert cache_folder() == tmp_path / "xdg" / "tlstd"
    monkeypatch.setenv("TLSTD_CACHE", str(tmp_path / "chosen"))
    assert cache_folder() == tmp_path / "chosen"


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("TLSTD_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() is None
    compute = Counting()
    same(compute(), cached_arrays("things", KEY, compute))


def test_the_chosen_folder_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TLSTD_CACHE", str(tmp_path))
    cached_arrays("things", KEY, Counting())
    assert len(files(tmp_path)) == 1


def test_misuse(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="letters"):
        cached_arrays("../up", KEY, Counting(), folder=tmp_path)
    with pytest.raises(StateError, match="plain numbers"):
        cached_arrays("things", {"array": np.zeros(2)}, Counting(), folder=tmp_path)
    with pytest.raises(InvalidParameterError, match="plain numbers"):
        cached_arrays("things", KEY, lambda: {"objects": np.array([None])}, folder=tmp_path)
