"""The processes that make the tries, seen from their parent."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

SILENCE = 900.0
"""Seconds without an answer after which a process counts as hanging: compiling with bounds checks takes long."""


def bounds_checked() -> dict[str, str]:
    """The environment in which kernels check their indices, with a cache of their machine code of its own."""
    from tlstd_lab.cache import cache_folder

    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    folder = cache_folder()
    if folder is not None:
        environment["NUMBA_CACHE_DIR"] = str(folder / "bounds-checked")
    return environment


class Process:
    """A process that runs :mod:`tlstd_lab.campaign.worker`.

    Parameters
    ----------
    checked : bool
        Whether its kernels check their indices.
    """

    def __init__(self, checked: bool) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tlstd_lab.campaign.worker"],
            env=bounds_checked() if checked else dict(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is the parent's
        )
        self._pending = b""

    def batches(self, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What became of the tries of an order; the death of the process is a failure."""
        assert self._process.stdin is not None
        first, begun = order["first"], time.perf_counter()
        with suppress(OSError):  # said below
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        while True:
            line = self._line()
            if line is None:
                failure = {"number": first, "words": self._end(), "files": {}}
                seconds = time.perf_counter() - begun
                yield {"tries": 1, "seconds": seconds, "tally": {}, "failures": [failure], "ended": True}
                return
            batch = json.loads(line)
            if not batch:
                return
            first, begun = first + batch["tries"], time.perf_counter()
            yield batch

    @property
    def alive(self) -> bool:
        """Whether it can be given another order."""
        return self._process.poll() is None

    def _line(self) -> bytes | None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            ready, _, _ = select.select([descriptor], [], [], SILENCE)
            data = os.read(descriptor, 1 << 20) if ready else b""
            if not data:
                return None
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _end(self) -> str:
        """How it ended, and what it said last."""
        try:
            self._process.wait(timeout=5)
            how = f"ended with code {self._process.returncode}"
        except subprocess.TimeoutExpired:
            how = f"did not answer within {SILENCE:g} s"
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines() or ["nothing was said"]
        self.kill()
        return f"the process {how}: {said[-1]}"

    def kill(self) -> None:
        """End it and whatever it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
