"""What commands print has no raw escapes, whatever files and columns are called and whatever is in them."""

from __future__ import annotations

import io
import json
import random
import re
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from typer.testing import CliRunner

from tlstd import LSTD
from tlstd.checks.children import Task
from tlstd.checks.data import explained, stream, temporary_folder
from tlstd.cli.app import app
from tlstd_lab.campaign import files, values
from tlstd_lab.campaign.hostile import raw, word
from tlstd_lab.campaign.row import Row

Made = tuple[list[str], bool]
"""The words of a command, and whether it prints JSON."""


def _name(choices: random.Random, suffix: str) -> str:
    """A name that a file can have."""
    text = word(choices).replace("/", "_").replace("\0", "")[:60]
    return f"{text.encode('utf-8', 'surrogateescape')[:120].decode('utf-8', 'ignore')}{suffix}"


def _log(choices: random.Random, folder: Path) -> Path:
    """A log with hostile names of columns, episodes and actions; half of the time something is wrong with it."""
    n = 24
    one, two = (word(choices, surrogates=False) + str(i) for i in range(2))
    frame = pl.DataFrame(
        {
            "episode": [f"{word(random.Random(i // 4), surrogates=False)} {i // 4}" for i in range(n)],
            "step": [i % 4 for i in range(n)],
            "obs_0": np.linspace(0.0, 1.0, n),
            "obs_1": np.cos(np.arange(n)),
            "action": [f"{one}" if i % 3 else two for i in range(n)],
            "reward": np.sin(np.arange(n)),
            "terminated": [i % 4 == 3 for i in range(n)],
            word(choices, surrogates=False): [word(choices, surrogates=False)] * n,
        }
    )
    wrong: list[Callable[[], pl.DataFrame]] = [
        lambda: frame.with_columns(pl.Series("reward", [word(choices, surrogates=False)] * n)),
        lambda: frame.with_columns(pl.Series("terminated", [word(choices, surrogates=False)] * n)),
        lambda: frame.with_columns(pl.Series("obs_0", [word(choices, surrogates=False)] * n)),
        lambda: frame.with_columns(pl.Series("step", [0] * n)),
        lambda: frame.drop("reward"),
        lambda: frame.with_columns(terminated=pl.col("step") == 1),
        lambda: frame.with_columns(pl.lit(None).alias("obs_0")),
    ]
    if choices.random() < 0.5:
        frame = choices.choice(wrong)()
    path = folder / _name(choices, choice := choices.choice([".parquet", ".csv", ".arrow"]))
    if choice == ".csv":
        frame.write_csv(path)
    elif choice == ".arrow":
        frame.write_ipc(path)
    else:
        frame.write_parquet(path)
    return path


def _evaluate(choices: random.Random, folder: Path) -> Made:
    path = _log(choices, folder)
    arguments = ["evaluate", str(path), "--gamma", "0.9"]
    options: list[list[str]] = [
        ["--map", f"reward={word(choices)}"],
        ["--map", word(choices)],
        ["--preset", word(choices)],
        ["--policy", word(choices)],
        ["--policy", f"column:{word(choices)}"],
        ["--start", word(choices)],
        ["--features", word(choices)],
        ["--ends", word(choices)],
        ["--plan"],
        [],
        [],
        [],
    ]
    if choices.random() < 0.2:
        arguments[1] = str(folder / _name(choices, ".csv"))  # not there
    as_json = choices.random() < 0.3
    return [*arguments, *choices.choice(options), *["--json"] * as_json], as_json


def _model(choices: random.Random, folder: Path) -> Path:
    """A saved model whose header has hostile words, behind a valid checksum."""
    path = folder / _name(choices, ".tlstd")
    model = LSTD(12, lambda_=0.5)
    model.update_many(stream(20))
    model.save(path)
    header, arrays = files.unpack(path.read_bytes())
    place: Any = choices.choice([header, header["parameters"], header["counters"], None])
    if place is not None:
        name = choices.choice(list(place))
        if choices.random() < 0.5 and not isinstance(place[name], (list, dict)):
            place[name] = word(choices, surrogates=False)
        else:
            place[word(choices, surrogates=False)] = place.pop(name) if name not in ("parameters", "counters") else 1
    header.setdefault("arrays", [])
    path.write_bytes(files.pack(header, arrays))
    return path


def _inspect(choices: random.Random, folder: Path) -> Made:
    path = _model(choices, folder) if choices.random() < 0.8 else folder / _name(choices, ".tlstd")
    as_json = choices.random() < 0.4
    return ["inspect", str(path), *["--json"] * as_json], as_json


def _predict(choices: random.Random, folder: Path) -> Made:
    """States in a file of which something is wrong, mostly, for values of each kind."""
    model = folder / _name(choices, ".values")
    model.write_bytes(choices.choice(_values()))
    states = folder / _name(choices, choices.choice([".csv", ".npy", ".npy", ".parquet", ".npz"]))
    text = f"{word(choices, surrogates=False)}\n1,2\n{word(choices, surrogates=False)},3\n".encode()
    buffer = io.BytesIO()
    np.save(buffer, choices.choice(_STATES))
    array = bytearray(buffer.getvalue())
    array[choices.randrange(len(array))] ^= 1 << choices.randrange(8)
    whole = buffer.getvalue()
    states.write_bytes(
        choices.choice([text, b"1,2\n3,4\n", b"", whole, bytes(array), whole[: choices.randrange(len(whole))]])
    )
    as_json = choices.random() < 0.3
    return ["predict", str(model), str(states), *["--json"] * as_json], as_json


_values = cache(values.sound_files)
_STATES: tuple[Any, ...] = (
    np.ones((3, 2)),
    np.arange(3),
    np.ones((0, 2)),
    np.ones((2, 0)),
    np.ones((2, 2, 2)),
    np.array(["a"]),
    np.full((1, 2), np.nan),
    np.zeros(2, dtype=[("a", "f8")]),
    np.ones((2, 2), dtype=bool),
    np.ones((2, 2)) * 1j,
)


def _options(choices: random.Random, folder: Path) -> Made:
    """Mistakes on the command line itself."""
    text = word(choices)
    return choices.choice(
        [
            [text],
            ["inspect", text, text],
            ["bench", text],
            ["reproduce", text],
            ["demo", "--seed", text],
            ["campaign", "--only", text],
        ]
    ), False


COMMANDS: dict[str, Callable[[random.Random, Path], Made]] = {
    "evaluate": _evaluate,
    "inspect": _inspect,
    "predict": _predict,
    "options": _options,
}


def _task(subject: str, seed: int, folder: Path) -> Task:
    def task(number: int) -> str:
        choices = random.Random(f"{seed} {number} {subject}")
        with temporary_folder() as place:
            arguments, as_json = COMMANDS[subject](choices, Path(place))
            with explained(" ".join(map(repr, arguments))):
                return check(arguments, as_json)

    return task


def check(arguments: list[str], as_json: bool) -> str:
    """Run a command, and raise if it prints raw escapes, raises anything, or prints what is no JSON."""
    result = CliRunner().invoke(app, arguments, color=True)  # else escapes are taken out on the way
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        place = traceback.extract_tb(sys.exc_info()[2] or error.__traceback__)[-1]
        raise AssertionError(
            f"it raises {type(error).__name__} ({error}) at {Path(place.filename).name}:{place.lineno}"
        )
    for name, text in (("standard output", result.stdout), ("standard error", result.stderr)):
        found = raw(text)
        assert not found, f"{name} has {found[:20]!r}: {re.sub(r's+', ' ', text)[:300]!r}"
    if as_json and result.exit_code == 0:
        json.loads(result.stdout)
    return "answered" if result.exit_code == 0 else "refused"


ROW = Row(
    promise="no command prints raw escapes from names, columns or contents",
    unit="commands",
    target=4_000,
    shared=True,
    subjects=lambda: list(COMMANDS),
    task=_task,
    seconds=60.0,
    checked=False,
    fresh=True,
)
