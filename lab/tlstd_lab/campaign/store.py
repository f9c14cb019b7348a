"""What a campaign has done, in its folder: a line for each batch of tries, and a file for each failure.

Lines are only ever appended, and one that was cut off is passed over: whatever is killed, the same command goes on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tlstd
import tlstd_lab.campaign
from tlstd.errors import InvalidParameterError
from tlstd_lab.campaign.faults import CLONE

PROGRESS = "progress.jsonl"
FAILURES = "failures"
LOCK = "lock"


@dataclass
class Done:
    """What was done to one subject of a row."""

    tries: int = 0
    seconds: float = 0.0
    failures: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    ended: bool = False
    """Whether nothing more is to be tried: the process died, or failures are too many."""


def code() -> str:
    """A digest of the library, the rows and the fault injection: what other code has done does not count."""
    digest = hashlib.sha256()
    packages = (Path(str(package.__file__)).parent for package in (tlstd, tlstd_lab.campaign))
    for folder in (*packages, CLONE / "tests" / "faults"):
        for path in sorted(folder.rglob("*.py")):
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def slug(*words: object) -> str:
    """A name for files."""
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "_", str(word)).strip("_") for word in words)


class Folder:
    """The folder of a campaign.

    Parameters
    ----------
    path : Path
        Made if it is not there.
    seed : int
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.seed = path, seed
        self._stamp = {"seed": seed, "code": code()}
        try:  # before hours of work, not after
            (path / FAILURES).mkdir(parents=True, exist_ok=True)
            with (path / PROGRESS).open("a+b") as file:
                file.seek(max(0, file.tell() - 1))
                if file.read() not in (b"", b"\n"):  # a line was cut off
                    file.write(b"\n")
        except OSError as error:
            raise InvalidParameterError(
                f"cannot write to {path} ({error.strerror}): choose another folder with --out"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Have the folder for oneself; raises InvalidParameterError where another process has it."""
        with (self.path / LOCK).open("w") as file:
            if sys.platform != "win32":
                import fcntl

                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise InvalidParameterError(
                        f"another campaign is at work in {self.path}: wait for it, or choose another folder with --out"
                    ) from None
            yield

    def done(self) -> tuple[dict[tuple[str, str], Done], int]:
        """What this code has done with this seed, by row and subject; and how many lines there are of others."""
        found: dict[tuple[str, str], Done] = {}
        others = 0
        for text in (self.path / PROGRESS).read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
                if {key: line[key] for key in self._stamp} != self._stamp:
                    others += 1
                    continue
                add(found.setdefault((line["row"], line["subject"]), Done()), line)
            except (ValueError, KeyError, TypeError):
                continue
        return found, others

    def work(self, name: str, subject: str) -> Path:
        """The folder of a subject of a row, for this code and seed."""
        return self.path / "work" / slug(name, subject, self.seed, self._stamp["code"])

    def append(self, name: str, subject: str, batch: dict[str, Any]) -> dict[str, Any]:
        """Note a batch, and keep its failures; returns the line."""
        line = {**self._stamp, "row": name, "subject": subject, **batch}
        line["failures"] = [self._keep(name, subject, failure) for failure in batch["failures"]]
        with (self.path / PROGRESS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return line

    def _keep(self, name: str, subject: str, failure: dict[str, Any]) -> str:
        path = self.path / FAILURES / f"{slug(name, subject, self.seed, failure['number'])}.json"
        content = {**self._stamp, "row": name, "subject": subject, **failure}
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
        return path.name


def add(done: Done, line: dict[str, Any]) -> None:
    """Count a line."""
    done.tries += int(line["tries"])
    done.seconds += float(line["seconds"])
    done.failures += len(line["failures"])
    done.tally.update(line["tally"])
    done.ended = done.ended or bool(line.get("ended"))


def read_failure(path: Path, folder: Path) -> dict[str, Any]:
    """A failure; its files are put into a folder."""
    try:
        failure = json.loads(path.read_text(encoding="utf-8"))
        found = {key: failure[key] for key in ("row", "subject", "seed", "number", "words")}
        files = {Path(name).name: base64.b64decode(data) for name, data in failure.get("files", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidParameterError(
            f"{path} is no failure of a campaign ({error}): pass a file of {FAILURES}/"
        ) from None
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return found
