"""Mutated logs: the answer of the log that was not mutated, or another one that is said to be, or a refusal.

Each mutation declares which of these it may lead to; in what is left over nothing but a traceback is wrong.
"""

from __future__ import annotations

import gzip
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tlstd import Log
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.errors import TlstdError
from tlstd.logs import read_chunks
from tlstd_lab.campaign.faults import Task, explained
from tlstd_lab.campaign.row import Row

GAMMA = 0.9
CHUNK = 7
"""Rows of a piece, where the log is read in pieces."""
EQUAL, SAID, REFUSED, DIFFERENT = "equal", "said", "refused", "different"
ANY = frozenset({EQUAL, SAID, REFUSED, DIFFERENT})
"""Where nobody can tell: a digit turned into another one."""

Rng = np.random.Generator
Source = Any


class Mutation(NamedTuple):
    """What is done, and what may come of it."""

    may: frozenset[str]
    change: Callable[[Rng, Any], Any]


def _may(*words: str) -> Callable[[Callable[[Rng, Any], Any]], Mutation]:
    return lambda change: Mutation(frozenset(words), change)


# --- the log ----------------------------------------------------------------------------------------------------------


def sound(next_observations: bool) -> pl.DataFrame:
    """Eight episodes of three to nine steps, a third of them cut off; all numbers are multiples of 1/64."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for episode in range(8):
        length = int(rng.integers(3, 10))
        seen = rng.integers(-200, 200, (length + 1, 2)) / 64
        for step in range(length):
            last = step == length - 1
            row = {"episode": f"e{episode}", "step": step, "obs_0": seen[step, 0], "obs_1": seen[step, 1]}
            row |= {"action": int(rng.integers(3)), "reward": float(rng.integers(-99, 99) / 64)}
            row |= {"terminated": last and episode % 3 != 0, "truncated": last and episode % 3 == 0}
            row |= {"probability": float(rng.integers(8, 60) / 64)}
            if next_observations:
                row |= {"next_obs_0": seen[step + 1, 0], "next_obs_1": seen[step + 1, 1]}
            rows.append(row)
    return pl.DataFrame(rows)


def answer(source: Source, chunk: int | None = None) -> tuple[FloatArray, set[str]]:
    """All transitions of a log, in an order of their own, and what is said about it."""
    if chunk is None:
        log = Log.from_frame(source)
        logs = [log]
    else:
        logs = list(read_chunks(source, rows=chunk))
    steps = Transitions.concatenate([log.transitions(None, GAMMA) for log in logs])
    columns = [steps.rewards, steps.discounts, steps.trace_discounts, steps.rhos]
    rows = np.column_stack([np.asarray(steps.X), np.asarray(steps.X_next) * steps.discounts[:, None], *columns])
    notes = {note for log in logs for note in log.notes if not note.startswith("Columns, by")}
    return rows[np.lexsort(rows.T)], notes


# --- tables -----------------------------------------------------------------------------------------------------------


def _cell(names: tuple[str, ...], values: tuple[Any, ...], *, last: bool | None = None) -> Callable[..., pl.DataFrame]:
    """Another value in one row; in a last one of an episode, in another one, or in any."""

    def change(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
        name, value = names[rng.integers(len(names))], values[rng.integers(len(values))]
        ends = (frame["terminated"] | frame["truncated"]).to_numpy()
        rows = np.flatnonzero(ends == last) if last is not None else np.arange(frame.height)
        column: list[Any] = frame[name].to_list()
        if isinstance(value, str):
            column = [str(each).lower() if isinstance(each, bool) else str(each) for each in column]
        elif isinstance(value, float) or value is None:
            column = [float(each) if isinstance(each, int) else each for each in column]
        column[int(rng.choice(rows))] = value
        return frame.with_columns(pl.Series(name, column, strict=False))

    return change


def _types(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    """Other types of the same values."""
    floats: list[Any] = [pl.Float32, pl.Float64, pl.Decimal(12, 6)]
    integers: list[Any] = [pl.Int8, pl.Int16, pl.UInt16, pl.Int32, pl.UInt64, pl.Float32, pl.Float64]
    for name, kinds in (("obs_0", floats), ("obs_1", floats), ("reward", floats), ("step", integers)):
        frame = frame.with_columns(pl.col(name).cast(kinds[rng.integers(len(kinds))]))
    whole: list[Any] = [pl.Int8, pl.UInt8, pl.Int32, pl.UInt64]
    return frame.with_columns(pl.col("action").cast(whole[rng.integers(len(whole))]))


def _flags(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    words = [("true", "false"), ("True", "False"), ("T", "F"), ("yes", "no"), ("1", "0"), (" TRUE ", "False")]
    for name in ("terminated", "truncated"):
        kind = rng.integers(4)
        yes, no = words[rng.integers(len(words))]
        column = frame[name]
        if kind == 3:
            column = pl.Series(name, [yes if flag else no for flag in column])
        else:
            column = column.cast([pl.Int8, pl.Float64, pl.UInt64][kind])
        frame = frame.with_columns(column)
    return frame


_NAMES = {
    "episode": ("episode_id", "EPISODE", "eps_id", "traj_id", "trajectory"),
    "step": ("t", "Step", "frame_index", "timestep"),
    "reward": ("rewards", "Reward", "next.reward"),
    "action": ("actions", "act"),
    "terminated": ("terminals", "termination", "is_terminal"),
    "truncated": ("timeouts", "truncation"),
    "probability": ("action_prob", "propensity"),
}


def _names(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    return frame.rename(
        {name: others[rng.integers(len(others))] for name, others in _NAMES.items() if rng.random() < 0.5}
    )


def _more(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    n = frame.height
    others: list[Any] = [["x"] * n, [None] * n, list(range(n)), [float("nan")] * n, [True] * n]
    chosen = [others[i] for i in rng.permutation(len(others))[:2]]
    return frame.with_columns(pl.Series(name, values) for name, values in zip(("note", "wind ü"), chosen, strict=True))


def _shuffled(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    rows: list[int] = rng.permutation(frame.height).tolist()
    return frame[rows]


def _repeated(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    rows: list[int] = np.sort([*range(frame.height), *rng.integers(0, frame.height, 3)]).tolist()
    return frame[rows]


def _columns_permuted(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    names = [name for name in frame.columns if "obs" not in name]
    kept = [name for name in frame.columns if "obs" in name]
    return frame.select([*(names[i] for i in rng.permutation(len(names))), *kept])


def _episodes(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    ways: list[Callable[[int], Any]] = [
        lambda i: i,
        lambda i: 1000 - i,
        lambda i: f"名前 {i}",
        lambda i: f'"{i}, "',
        lambda i: float(i) / 2,
        lambda i: -i,
    ]
    way = ways[rng.integers(len(ways))]
    return frame.with_columns(pl.Series("episode", [way(int(name[1:])) for name in frame["episode"]]))


def _vectors(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    for name in ("obs", "next_obs"):
        if f"{name}_0" in frame.columns:
            column = pl.concat_list(f"{name}_0", f"{name}_1")
            if rng.random() < 0.5:
                column = column.list.to_array(2)
            frame = frame.with_columns(column.alias(name)).drop(f"{name}_0", f"{name}_1")
    return frame


def _drop(*names: str) -> Callable[[Rng, pl.DataFrame], pl.DataFrame]:
    return lambda rng, frame: frame.drop(names)


def _without_rows(first: bool = False, last: bool = False) -> Callable[[Rng, pl.DataFrame], pl.DataFrame]:
    def change(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
        ends = (frame["terminated"] | frame["truncated"]).to_numpy()
        starts = (frame["step"] == 0).to_numpy()
        rows = np.flatnonzero(starts if first else ends if last else ~(starts | ends))
        return frame.filter(pl.Series(np.arange(frame.height) != rng.choice(rows)))

    return change


def _conflict(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    at = int(rng.integers(frame.height))
    return pl.concat([frame[:at], frame[at].with_columns(pl.col("obs_0") + 1.0), frame[at:]])


def _done(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    done = frame["terminated"] | frame["truncated"]
    return frame.drop("terminated", "truncated").with_columns(done.alias("done"))


def _time(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    factor, shift = int(rng.choice([1, 2, 10])), int(rng.choice([0, 1, -5, 10**6, 2**40]))
    return frame.with_columns(pl.col("step").cast(pl.Int64) * factor + shift)


def _dates(rng: Rng, frame: pl.DataFrame) -> pl.DataFrame:
    kinds: list[Any] = [pl.Duration("ms"), pl.Datetime("us"), pl.Date, pl.Duration("ns")]
    return frame.with_columns(pl.col("step").cast(kinds[rng.integers(len(kinds))]))


BAD = (float("nan"), float("inf"), -float("inf"), None, 1e300)
NUMBERS = ("obs_0", "obs_1")
FLAGS = ("terminated", "truncated")

TABLES: dict[str, Mutation] = {
    "as it is": _may(EQUAL)(lambda rng, frame: frame),
    "other types": _may(EQUAL, REFUSED)(_types),
    "other flags": _may(EQUAL)(_flags),
    "other names": _may(EQUAL)(_names),
    "more columns": _may(EQUAL)(_more),
    "shuffled": _may(EQUAL)(_shuffled),
    "rows repeated": _may(EQUAL)(_repeated),
    "columns permuted": _may(EQUAL)(_columns_permuted),
    "episodes by other names": _may(EQUAL)(_episodes),
    "words as categories": _may(EQUAL)(lambda rng, frame: frame.with_columns(pl.col("episode").cast(pl.Categorical))),
    "vectors": _may(EQUAL)(_vectors),
    "no steps": _may(EQUAL)(_drop("step")),
    "no actions": _may(EQUAL)(_drop("action", "probability")),
    "no names of episodes": _may(EQUAL)(_drop("episode")),
    "not truncated": _may(EQUAL, SAID)(_drop("truncated")),
    "not terminated": _may(SAID)(_drop("terminated")),
    "no flags": _may(SAID)(_drop("terminated", "truncated")),
    "done only": _may(SAID)(_done),
    "other steps": _may(EQUAL, SAID)(_time),
    "steps as times": _may(EQUAL, SAID, REFUSED)(_dates),
    "a gap": _may(SAID)(_without_rows()),
    "no last row": _may(SAID)(_without_rows(last=True)),
    "no first row": _may(SAID)(_without_rows(first=True)),
    "both flags": _may(SAID)(
        lambda rng, frame: frame.with_columns(terminated=pl.col("terminated") | pl.col("truncated"))
    ),
    "no number": _may(REFUSED)(_cell((*NUMBERS, "probability"), BAD)),
    "no reward": _may(REFUSED)(_cell(("reward",), BAD, last=False)),
    "no reward at the end": _may(SAID, REFUSED)(_cell(("reward",), (float("nan"), None), last=True)),
    "an infinite reward at the end": _may(REFUSED)(_cell(("reward",), (float("inf"), -1e200), last=True)),
    "a word for a number": _may(REFUSED)(_cell((*NUMBERS, "reward"), ("low", "1,5", "--", "0x10", "١٢"))),
    "a flag that is none": _may(REFUSED)(_cell(FLAGS, ("maybe", "2", "", "nan", 2.0, 0.5, -1.0, None))),
    "an end in the middle": _may(REFUSED)(_cell(FLAGS, (True,), last=False)),
    "no name": _may(REFUSED)(_cell(("episode",), (None,))),
    "no step": _may(REFUSED)(_cell(("step",), (None, float("nan"), float("inf")))),
    "an impossible probability": _may(REFUSED)(_cell(("probability",), (0.0, -0.5, 1.5, 1e9))),
    "two rows for one step": _may(REFUSED)(_conflict),
    "no rewards": _may(REFUSED)(_drop("reward")),
    "no observations": _may(REFUSED)(lambda rng, frame: frame.drop("obs_0", "obs_1")),
    "no rows": _may(REFUSED)(lambda rng, frame: frame.head(0)),
}


# --- files ------------------------------------------------------------------------------------------------------------


def _npz(frame: pl.DataFrame, path: Path, compressed: bool) -> None:
    arrays: dict[str, Any] = {name: frame[name].to_numpy() for name in frame.columns}
    arrays = {name: array.astype(str) if array.dtype == object else array for name, array in arrays.items()}
    (np.savez_compressed if compressed else np.savez)(path, **arrays)


_PARQUET: tuple[Any, ...] = ("uncompressed", "snappy", "gzip", "lz4", "zstd", "brotli")
_IPC: tuple[Any, ...] = ("uncompressed", "lz4", "zstd")


def written(rng: Rng, frame: pl.DataFrame, folder: Path) -> tuple[str, Source]:
    """The table as a file of some kind; the kind, and what to read."""
    plain = not any(isinstance(kind, (pl.List, pl.Array, pl.Duration)) for kind in frame.schema.values())
    whole = not any(column.null_count() for column in frame) and plain
    kinds = (
        ["parquet", "ipc", "frame", "parts"] + ["csv", "csv", "tsv", "semicolons", "csv.gz"] * plain + ["npz"] * whole
    )
    kind = kinds[rng.integers(len(kinds))]
    path = folder / f"log.{ {'semicolons': 'csv', 'ipc': 'arrow'}.get(kind, kind) }"
    if kind == "frame":
        return kind, frame
    if kind == "parquet":
        groups = int(rng.integers(1, 60))
        frame.write_parquet(path, compression=_PARQUET[rng.integers(len(_PARQUET))], row_group_size=groups)
    elif kind == "ipc":
        frame.write_ipc(path, compression=_IPC[rng.integers(len(_IPC))])
    elif kind == "npz":
        _npz(frame, path, bool(rng.integers(2)))
    elif kind == "parts":
        for i, (a, b) in enumerate(
            itertools.pairwise([0, *sorted(rng.integers(0, frame.height + 1, 3).tolist()), frame.height])
        ):
            if b > a or frame.height == 0:
                frame[a:b].write_parquet(folder / f"part-{i}.parquet")
        path = folder
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    else:
        frame.write_csv(path, separator={"csv": ",", "tsv": "\t"}.get(kind, ";"))
    return kind, path


def _bytes(change: Callable[[Rng, bytes], bytes]) -> Callable[[Rng, Path], Path]:
    def apply(rng: Rng, path: Path) -> Path:
        path.write_bytes(change(rng, path.read_bytes()))
        return path

    return apply


def _renamed(suffix: str) -> Callable[[Rng, Path], Path]:
    return lambda rng, path: path.rename(path.parent / f"other.{suffix}")


def _cut(rng: Rng, data: bytes) -> bytes:
    return data[: int(rng.integers(len(data)))]


def _cut_in_a_row(rng: Rng, data: bytes) -> bytes:
    """Within one of the last rows, so that what is left has an end."""
    at = int(rng.integers(len(data) // 2, len(data) - 1))
    return data[: at + 1] if data[at : at + 1] != b"\n" else data[:at]


def _turned(rng: Rng, data: bytes) -> bytes:
    at = int(rng.integers(len(data)))
    return data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :]


def _noise(rng: Rng, data: bytes) -> bytes:
    at = int(rng.integers(len(data)))
    return data[:at] + rng.bytes(int(rng.integers(1, 30))) + data[at:]


def _lines(change: Callable[[Rng, list[bytes]], list[bytes]]) -> Callable[[Rng, Path], Path]:
    return _bytes(lambda rng, data: b"\n".join(change(rng, data.split(b"\n"))))


def _quoted(rng: Rng, lines: list[bytes]) -> list[bytes]:
    return [
        b",".join(b'"' + field.strip(b'"') + b'"' for field in line.split(b",")) if line else line for line in lines
    ]


TEXT: dict[str, Mutation] = {
    "CRLF": _may(EQUAL)(_bytes(lambda rng, data: data.replace(b"\n", b"\r\n"))),
    "a byte-order mark": _may(EQUAL)(_bytes(lambda rng, data: b"\xef\xbb\xbf" + data)),
    "no end of the last line": _may(EQUAL)(_bytes(lambda rng, data: data.rstrip(b"\n"))),
    "empty lines at the end": _may(EQUAL, REFUSED)(_bytes(lambda rng, data: data + b"\n\n")),
    "quoted": _may(EQUAL, REFUSED)(_lines(_quoted)),
    "spaces after commas": _may(EQUAL, REFUSED)(_bytes(lambda rng, data: data.replace(b",", b", "))),
    "UTF-16": _may(REFUSED)(_bytes(lambda rng, data: data.decode().encode("utf-16"))),
    "UTF-32": _may(REFUSED)(_bytes(lambda rng, data: data.decode().encode("utf-32"))),
    "Latin-1": _may(EQUAL, REFUSED)(_bytes(lambda rng, data: data.replace(b"e1", b"\xfc1"))),
    "no names of columns": _may(REFUSED)(_lines(lambda rng, lines: lines[1:])),
    "a remark above": _may(REFUSED)(_bytes(lambda rng, data: b"# made by hand\n" + data)),
    "names of columns again": _may(REFUSED)(_lines(lambda rng, lines: [*lines[:9], lines[0], *lines[9:]])),
    "a column too many": _may(EQUAL, REFUSED)(_lines(lambda rng, lines: [*lines[:7], lines[7] + b",1", *lines[8:]])),
    "a column too few": _may(EQUAL, REFUSED)(
        _lines(lambda rng, lines: [*lines[:7], lines[7].rpartition(b",")[0], *lines[8:]])
    ),
    "a name of a column twice": _may(REFUSED)(_bytes(lambda rng, data: data.replace(b"obs_1", b"obs_0", 1))),
    "NUL": _may(EQUAL, REFUSED)(_bytes(lambda rng, data: data.replace(b"\n", b"\0\n", 3))),
    "tabs": _may(REFUSED)(_bytes(lambda rng, data: data.replace(b",", b"\t"))),
    "decimal commas": _may(REFUSED)(_bytes(lambda rng, data: data.replace(b",", b";").replace(b".", b","))),
    "cut within a row": _may(REFUSED, SAID)(_bytes(_cut_in_a_row)),
    "as Parquet": _may(REFUSED)(_renamed("parquet")),
    "as Arrow": _may(REFUSED)(_renamed("arrow")),
    "as npz": _may(REFUSED)(_renamed("npz")),
    "gzip without the name": _may(EQUAL, REFUSED)(_bytes(lambda rng, data: gzip.compress(data))),
    "a bit turned over": Mutation(ANY, _bytes(_turned)),
    "noise": Mutation(ANY, _bytes(_noise)),
}
BINARY: dict[str, Mutation] = {
    "cut off": _may(REFUSED)(_bytes(_cut)),
    "a bit turned over": Mutation(ANY, _bytes(_turned)),
    "noise": Mutation(ANY, _bytes(_noise)),
    "as CSV": _may(REFUSED)(_renamed("csv")),
    "empty": _may(REFUSED)(_bytes(lambda rng, data: b"")),
}


class Made(NamedTuple):
    """A mutated log."""

    what: str
    may: frozenset[str]
    frame: pl.DataFrame
    """The log to whose answer its own is compared."""
    source: Source


def made(seed: int, number: int, folder: Path) -> Made:
    """A log with another table, or, four times in ten, with the same one in a file that is written otherwise."""
    rng = np.random.default_rng([seed, number])
    before = sound(bool(rng.integers(2)))
    with_bytes = rng.random() < 0.4
    names = [name for name, mutation in TABLES.items() if not with_bytes or mutation.may == {EQUAL}]
    name = names[rng.integers(len(names))]
    if name in _NEXT_ROWS:
        before = before.drop("next_obs_0", "next_obs_1", strict=False)
    frame, may = TABLES[name].change(rng, before), TABLES[name].may
    kind, source = written(rng, frame, folder)
    what = f"{name}, as {kind}"
    if kind == "parts" and name in _ONE_FILE:
        may = frozenset({EQUAL, SAID, REFUSED})
    if with_bytes and kind in ("csv", "csv.gz", "parquet", "ipc", "npz"):
        changes = TEXT if kind == "csv" else BINARY
        other = list(changes)[rng.integers(len(changes))]
        source, may, what, before = changes[other].change(rng, source), changes[other].may, f"{what}, {other}", frame
        if kind == "csv.gz" and other == "as CSV":  # polars sees what it is
            may = may | {EQUAL}
    return Made(what, may, before, source)


_ONE_FILE = ("shuffled", "rows repeated", "two rows for one step", "no names of episodes")
"""What would be mended, or refused, in one file: a name that comes again in another file is another episode's."""
_NEXT_ROWS = ("a gap", "no last row", "no first row", "not terminated", "no flags", "done only", "both flags")
"""What is only to be seen in the next rows: what follows is known otherwise."""


def judged(source: Source, expected: tuple[FloatArray, set[str]], chunk: int | None) -> str:
    """What comes of a log."""
    try:
        rows, notes = answer(source, chunk)
    except TlstdError:
        return REFUSED
    if rows.shape == expected[0].shape and np.allclose(rows, expected[0], rtol=1e-12, atol=0.0):
        return EQUAL
    return SAID if notes - expected[1] else DIFFERENT


def _task(subject: str, seed: int, folder: Path) -> Task:
    chunk = CHUNK if subject == "in chunks" else None

    def task(number: int) -> str:
        with tempfile.TemporaryDirectory() as place:
            log = made(seed, number, Path(place))
            with explained(log.what):
                found = judged(log.source, answer(log.frame), chunk)
                allowed = (
                    log.may | ({EQUAL} if SAID in log.may else set()) | ({REFUSED} if chunk is not None else set())
                )
                assert found in allowed, f"the answer is {found}, where it may be {' or '.join(sorted(allowed))}"
        return found

    return task


def _evidence(subject: str, seed: int, number: int) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        made(seed, number, Path(place))
        return {path.name: path.read_bytes() for path in Path(place).iterdir()}


ROW = Row(
    promise="a mutated log has the same answer, another that is said to be, or none",
    unit="logs",
    target=10_000,
    shared=True,
    subjects=lambda: ["whole", "in chunks"],
    task=_task,
    checked=False,
    fresh=True,
    evidence=_evidence,
)
