"""What a file may and may not replace."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tlstd
from tlstd.core import file_format
from tlstd.errors import StateError

unix = pytest.mark.skipif(os.name != "posix", reason="permissions and pipes of Unix")
NOBODY = 65534


def save(path: Any) -> None:
    file_format.write(path, "TD", {"n_features": 1}, {"w": np.zeros(3)})


def refused(path: Path, match: str) -> None:
    """Saving is refused, and neither the file nor its folder is touched."""
    before, names = os.lstat(path), os.listdir(path.parent)
    with pytest.raises(StateError, match=match):
        save(path)
    after = os.lstat(path)
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
    assert os.listdir(path.parent) == names


@unix
def test_pipes_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "pipe.*regular file.*another name")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    refused(tmp_path / "link", "pipe")


@unix
def test_sockets_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        refused(tmp_path / "socket", "regular file")


@unix
def test_devices_stay(tmp_path: Path) -> None:
    """A device of the test's own, not one that others need."""
    try:
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root may make devices")
    refused(tmp_path / "null", "device.*regular file")


def test_folders_stay(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "folder.*regular file")


@unix
@pytest.mark.parametrize("mode", [0o444, 0o400, 0o555, 0o000])
def test_read_only_files_stay(mode: int, tmp_path: Path) -> None:
    """Also for root, who may write anything."""
    path = tmp_path / "model"
    save(path)
    path.chmod(mode)
    refused(path, "read-only.*writable")
    path.chmod(0o600)
    save(path)


@pytest.mark.parametrize("path", [3, 0, True, None, 1.5, ["model"], "", b"", "a\0b"])
def test_what_is_no_name(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StateError, match="name of a file"):
        save(path)
    with pytest.raises(StateError, match="name of a file"):
        tlstd.load(path)
    assert os.listdir(tmp_path) == []


def test_names_of_bytes(tmp_path: Path) -> None:
    model = tlstd.TD(2, step_size=0.1, lambda_=0.0)
    model.save(os.fsencode(tmp_path / "model"))  # type: ignore[arg-type]
    assert tlstd.load(os.fsencode(tmp_path / "model")).n_features == 2  # type: ignore[arg-type]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to open everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@unix
def test_folders_that_may_not_be_listed() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are root's alone
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        folder.chmod(0o300)
        with as_nobody():
            with pytest.raises(PermissionError):
                os.listdir(folder)
            save(folder / "model")
            save(folder / "model")
            assert file_format.read(folder / "model").class_name == "TD"
        folder.chmod(0o700)
        assert os.listdir(folder) == ["model"]
    finally:
        shutil.rmtree(folder)
