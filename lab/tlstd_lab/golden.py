"""What the library and its experiments compute, recorded, and compared bit for bit with what other code computes.

uv run python -m tlstd_lab.golden record FOLDER       # less than three minutes
uv run python -m tlstd_lab.golden compare FOLDER      # compute it again; exit code 1 if a bit is different

``golden_cases.py`` says what is recorded. With ``PYTHONPATH=<another working tree>/src:<the same>/lab`` before it, a
command runs that tree's code. ``compare FOLDER OTHER`` compares two records; ``--only 'estimators/TD/*'`` takes the
cases of such names. A record (``arrays.npz``, ``values.json``) is good for one machine and one set of packages, which
it names. It has no times in it, and nothing that was in the user's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

import tlstd
from tlstd_lab.golden_cases import cases

KINDS = ("missing", "new", "different", "different by at most 1e-12 of the largest number")
Difference = tuple[str, str, str]
"""One of these kinds, the name of the entry, and how it differs."""


def computed(only: str = "*") -> dict[str, Any]:
    """Arrays and single values of the cases whose names fit, made on one thread and without the user's cache."""
    entries: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TLSTD_CACHE=folder), threadpool_limits(1):
        for name, case in cases():
            if fnmatchcase(name, only):
                entries.update(flat(name, case()))
    if not entries:
        raise SystemExit(f"no case fits {only!r}: the first is {next(cases())[0]!r}")
    return entries


def flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Arrays and single values by the way to them."""
    parts: Any = None
    if is_dataclass(value):
        parts = ((field.name, getattr(value, field.name)) for field in fields(value))
    elif sp.issparse(value):
        parts = ((part, getattr(value, part)) for part in ("data", "indices", "indptr", "shape"))
    elif isinstance(value, Mapping) or hasattr(value, "_asdict"):
        parts = (value if isinstance(value, Mapping) else value._asdict()).items()
    elif isinstance(value, (list, tuple)) or (isinstance(value, str) and "\n" in value):
        parts = enumerate(value.splitlines() if isinstance(value, str) else value)
    if parts is None:
        yield name, value.item() if isinstance(value, np.generic) else value
    else:
        for part, inner in parts:
            yield from flat(f"{name}/{part}", inner)


def write(folder: Path, entries: Mapping[str, Any]) -> None:
    """Store entries, and what they were made with."""
    arrays = {name: value for name, value in entries.items() if isinstance(value, np.ndarray)}
    values = {name: value for name, value in entries.items() if name not in arrays}
    packages = {package: version(package) for package in ("numpy", "scipy", "numba", "matplotlib", "polars")}
    blas = sorted(f"{pool['internal_api']} {pool.get('architecture')}" for pool in threadpool_info())
    made_with = {"python": platform.python_version(), "platform": platform.platform(), "threads": blas} | packages
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "arrays.npz", **cast(Any, arrays))
    text = json.dumps({"made_with": made_with, "values": values}, indent=0, ensure_ascii=False)
    (folder / "values.json").write_text(text, encoding="utf-8")


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Entries, and what they were made with."""
    text = json.loads((folder / "values.json").read_text(encoding="utf-8"))
    with np.load(folder / "arrays.npz") as arrays:
        return text["values"] | {name: arrays[name] for name in arrays.files}, text["made_with"]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """All entries that are not the same bit for bit; the digest of a file only if its contents do not tell."""
    found = [(KINDS[0], name, "") for name in before if name not in after]
    found += [(KINDS[1], name, "") for name in after if name not in before]
    other = [d for name in before if name in after for d in difference(name, before[name], after[name])]
    told = {name.partition("/file/")[0] for _, name, _ in found + other if "/file/" in name and name[-7:] != "/sha256"}
    return found + [d for d in other if d[1][-7:] != "/sha256" or d[1].partition("/file/")[0] not in told]


def difference(name: str, old: Any, new: Any) -> Iterator[Difference]:
    """How two entries differ, if they do. Relative differences are to the largest number of the old one."""
    a, b = np.ascontiguousarray(old), np.ascontiguousarray(new)
    if (a.dtype != b.dtype and not a.dtype.kind == b.dtype.kind == "U") or a.shape != b.shape:
        both = [f"{x.shape} {x.dtype}" if isinstance(x, np.ndarray) else f"{x!r:.70}" for x in (old, new)]
        yield KINDS[2], name, " became ".join(both)
    elif a.dtype.kind not in "biuf":
        if not np.array_equal(a, b):
            first, second = (str(x.tolist() if isinstance(x, np.ndarray) else x) for x in (old, new))
            at = max(0, len(os.path.commonprefix([first, second])) - 20)  # noqa: RUF071 - of letters
            yield KINDS[2], name, f"{first[at : at + 70]!r} became {second[at : at + 70]!r}"
    elif a.tobytes() != b.tobytes():
        n_other = (a.reshape(-1, 1).view(np.uint8) != b.reshape(-1, 1).view(np.uint8)).any(axis=1).sum()
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            gaps = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
            gap = np.where(np.isnan(gaps), np.inf, gaps).max()  # a number and none
            relative = gap / np.abs(x[np.isfinite(x)]).max(initial=0.0) if gap else 0.0
        words = f"{a.shape} {a.dtype}: {n_other} of {a.size} entries, by at most {gap:.3g}, relative {relative:.3g}"
        yield KINDS[2 + int(relative <= 1e-12)], name, words


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["record", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("other", type=Path, nargs="?", help="compare with this record, compute nothing")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases whose names fit; default: all")
    parser.add_argument("--most", type=int, default=40, help="differences of a kind that are listed; default: 40")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        target = given.folder if given.command == "record" else given.other or Path(temporary)
        if given.command == "record" or given.other is None:
            write(target, computed(given.only))
        after, made_with = read(target)
    print(f"{len(after):,} entries of {given.other or Path(tlstd.__file__).parent}")
    if given.command == "record":
        return 0
    before, recorded_with = read(given.folder)
    if given.only != "*":
        before, after = ({n: x[n] for n in x if fnmatchcase(n, f"{given.only}/*")} for x in (before, after))
    if recorded_with != made_with:
        print(f"recorded with {recorded_with}\nnow with      {made_with}")
    found = differences(before, after)
    for kind in KINDS:
        lines = [f"  {name}  {words}".rstrip() for of, name, words in found if of == kind]
        if lines:
            rest = [f"  and {len(lines) - given.most:,} more"] if len(lines) > given.most else []
            print("\n".join([f"\n{kind}: {len(lines):,}", *lines[: given.most], *rest]))
    print(f"\n{len(found):,} differences from the {len(before):,} entries of {given.folder}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
