"""Runs of tests in private copies of a tree, unmutated and with one mutant each."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tlstd_lab.mutants.drawing import Mutant
from tlstd_lab.mutants.selection import Imports, imports

DECIDING = ("src", "tests", "pyproject.toml")
"""What the outcome of a mutant depends on."""
MEMORY = 6 << 30
HANGS = "Timeout ("
"""What pytest prints when a test takes longer than it may."""


@dataclass
class Times:
    """What unmutated tests do: seconds of each file and of its slowest test, and the tests that fail."""

    seconds: dict[str, float] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)
    failing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ended:
    """A run of tests: pytest's exit code (negative: a signal's), its last lines, and what it took."""

    code: int
    output: str
    seconds: float
    cpu: float


def digest(root: Path) -> str:
    """A name for the contents of the library and its tests."""
    sha = hashlib.sha256()
    for part in DECIDING:
        for path in sorted([root / part, *(root / part).rglob("*")]):
            if path.is_file() and "__pycache__" not in path.parts:
                sha.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return sha.hexdigest()[:16]


class Trials:
    """Copies of the tree at ``root`` as it is now, below the folder ``out``, which one process at a time may use."""

    def __init__(self, root: Path, out: Path, workers: int, budget: float) -> None:
        self.out, self.workers, self.budget = out, workers, budget
        self.limit = 3 * (budget + 20.0)
        self.digest = digest(root)
        self.tree = out / f"tree-{self.digest}"
        self.stopped = False
        for left in out.glob("copy*"):
            shutil.rmtree(left)
        if not self.tree.exists():
            made = Path(tempfile.mkdtemp(dir=out, prefix="copy"))
            for path in root.iterdir():
                if path.is_dir() and not path.name.startswith(".") and path not in (out, *out.parents):
                    shutil.copytree(path, made / path.name, symlinks=True)
                elif path.is_file():
                    shutil.copy2(path, made)
            made.rename(self.tree)
        self.imports: Imports = imports(self.tree)
        self.times_file = out / f"times-{self.digest}.json"
        self.times = Times(**json.loads(self.times_file.read_text())) if self.times_file.exists() else Times()
        self._check_that_the_copy_is_used()

    def _check_that_the_copy_is_used(self) -> None:
        package = next(path.parent.name for path in sorted((self.tree / "src").glob("*/__init__.py")))
        with self.copied() as copy:
            command = [sys.executable, "-c", f"import {package}; print({package}.__file__)"]
            told = subprocess.run(command, cwd=copy, env=_environment(copy), capture_output=True, text=True, check=True)
        if not told.stdout.startswith(str(copy)):
            raise SystemExit(f"tests would import {told.stdout.strip()}, not a mutated copy: unset PYTHONPATH")

    @contextmanager
    def copied(self) -> Iterator[Path]:
        """A copy with the caches of the tree, removed afterwards."""
        with tempfile.TemporaryDirectory(dir=self.out, prefix="copy", ignore_cleanup_errors=True) as folder:
            yield Path(shutil.copytree(self.tree, Path(folder).resolve() / "t", symlinks=True))

    # --- unmutated tests ----------------------------------------------------------------------------------------------

    def measure(self, mutants: Sequence[Mutant]) -> None:
        """Run all tests unmutated that these mutants need, in the tree itself, so that copies have compiled kernels."""
        while missing := sorted({file for one in mutants for file in self._unknown(one)[:8]}):
            print(f"unmutated: {len(missing)} files with tests", flush=True)
            with tempfile.TemporaryDirectory(dir=self.out, prefix="copy") as folder:
                report = Path(folder) / "report.xml"
                options = ["-n", str(self.workers), "-q", "--continue-on-collection-errors"]
                options += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
                ended = self.pytest(self.tree, [*options, *missing], 3_600.0)
                if not report.exists():
                    raise SystemExit(f"the unmutated tests cannot be run:\n{ended.output[-3000:]}")
                self._read(report, missing)
            self.times_file.write_text(json.dumps(vars(self.times)))

    def _read(self, report: Path, files: Sequence[str]) -> None:
        for file in files:
            self.times.seconds[file] = self.times.slowest[file] = 0.0
        for case in ET.parse(report).getroot().iter("testcase"):
            file = case.get("file", "")
            seconds = float(case.get("time", "0"))
            if file in self.times.seconds:
                self.times.seconds[file] += seconds
                self.times.slowest[file] = max(self.times.slowest[file], seconds)
            if case.find("failure") is None and case.find("error") is None:
                continue
            module, name = file.removesuffix(".py").replace("/", "."), case.get("name", "")
            if name == module:  # it cannot be imported
                self.times.seconds[file] = float("inf")
                self.times.failing.append(file)
            else:
                classes = case.get("classname", "").removeprefix(module).strip(".").split(".")
                self.times.failing.append("::".join([file, *filter(None, classes), name]))

    def selected(self, mutant: Mutant) -> list[str]:
        """The nearest tests that together take no longer than the budget; where a file is too long, those after it."""
        found, left = [], self.budget
        for file in self.imports.nearest_tests(mutant.file):
            seconds = self.times.seconds.get(file)
            if seconds is not None and seconds <= left:
                found.append(file)
                left -= seconds
        return found

    def _unknown(self, mutant: Mutant) -> list[str]:
        """Files that would be selected and are not measured yet."""
        if sum(self.times.seconds[file] for file in self.selected(mutant)) > 0.9 * self.budget:
            return []
        return [file for file in self.imports.nearest_tests(mutant.file) if file not in self.times.seconds]

    # --- mutants ------------------------------------------------------------------------------------------------------

    def outcome(self, mutant: Mutant) -> dict[str, object]:
        """Run the selected tests on a copy with this mutant, until one fails."""
        assert mutant.change is not None
        files = self.selected(mutant)
        limit = 3 * max((self.times.slowest[file] for file in files), default=0.0) + self.budget / 4
        with self.copied() as copy:
            path = copy / mutant.file
            path.write_bytes(mutant.change.apply(path.read_bytes()))
            for file in self.imports.distances(mutant.file):  # numba does not notice changes of other files
                for cache in (copy / file).parent.glob(f"__pycache__/{Path(file).stem}.*.nb?"):
                    cache.unlink()
            ended = self.tests(copy, files, limit) if files else Ended(5, "", 0.0, 0.0)
        result = {0: "survived", 5: "survived"}.get(ended.code, "crashed" if ended.code < 0 else "killed")
        by = None if result == "survived" else _last_test(ended.output)
        hangs = HANGS in ended.output
        if hangs or ended.seconds > self.limit:
            result = "timeout"
            with self.copied() as copy:
                again = self.tests(copy, [by] if hangs and by else files, limit / 3)
            if again.code != 0 or again.seconds > self.limit / 3:
                result, by = "survived", None  # the machine may have been busy
        return {"result": result, "by": by, "files": len(files), "seconds": ended.seconds, "cpu": ended.cpu}

    def tests(self, copy: Path, names: Sequence[str], limit: float) -> Ended:
        """Run tests until the first failure; a test that takes longer than ``limit`` seconds ends the run."""
        options = ["-n", "0", "-x", "-v", "-p", "no:cacheprovider", "--tb=line", "--color=no"]
        options += ["-o", f"faulthandler_timeout={limit:.2f}", "-o", "faulthandler_exit_on_timeout=true"]
        options += [f"--deselect={name}" for name in self.times.failing]
        return self.pytest(copy, [*options, *names], self.limit)

    def pytest(self, copy: Path, arguments: Sequence[str], limit: float) -> Ended:
        """Run pytest in its own process group, and end all that is left of it."""
        begin = time.monotonic()
        folder = tempfile.TemporaryDirectory(dir=self.out, prefix="copy", ignore_cleanup_errors=True)
        with tempfile.TemporaryFile() as output, folder as cache:
            command = [sys.executable, "-m", "pytest", *arguments]
            environment = {**_environment(copy), "TLSTD_CACHE": cache, "TMPDIR": cache, "PYTEST_DEBUG_TEMPROOT": cache}
            process = subprocess.Popen(
                command, cwd=copy, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
                while not ended:
                    if self.stopped or time.monotonic() - begin > limit:
                        _kill(process.pid)
                    time.sleep(0.05)
                    ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            finally:
                _kill(process.pid)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace")
        return Ended(process.returncode, text, time.monotonic() - begin, usage.ru_utime + usage.ru_stime)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _environment(copy: Path) -> dict[str, str]:
    """The environment in which the copy's code is imported, and its own caches are used."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTEST_", "TLSTD_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, "PYTHONPATH": f"{copy / 'src'}:{copy / 'lab'}", "PYTHONUNBUFFERED": "1"}


def _last_test(output: str) -> str | None:
    """The test that failed, or was running at the end."""
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+\.py.*?)(?: - |$)", output, re.MULTILINE)
    begun = re.findall(r"^(\S+\.py::.*?)(?: (?:PASSED|SKIPPED|XFAIL)| *Timeout| *Fatal| *$)", output, re.MULTILINE)
    return next(iter(failed[-1:] or begun[-1:]), None)
