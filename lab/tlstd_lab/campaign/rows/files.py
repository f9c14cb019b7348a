"""Files that were damaged are refused; files that were crafted, with a valid checksum, are refused or can be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tlstd.checks.children import Task
from tlstd.checks.data import explained
from tlstd_lab.campaign import files
from tlstd_lab.campaign.row import Row
from tlstd_lab.campaign.saved import kinds, sound, user

# --- crafted --------------------------------------------------------------------------------------------------------


def _crafted(subject: str, seed: int, folder: Path) -> Task:
    return files.crafting(sound(subject), user(subject), seed)


def _crafted_file(subject: str, seed: int, number: int) -> dict[str, bytes]:
    return {"crafted.tlstd": files.crafted(sound(subject), seed, number)[1]}


CRAFTED = Row(
    promise="a crafted file is refused, or makes what can be used",
    unit="files",
    target=100_000,
    shared=True,
    subjects=kinds,
    task=_crafted,
    seconds=files.SECONDS,
    megabytes=files.MEGABYTES,
    evidence=_crafted_file,
)


# --- damaged --------------------------------------------------------------------------------------------------------


def damaged(files: list[bytes], seed: int, number: int) -> tuple[str, bytes]:
    """A file with bits turned over, bytes cut out, put in or written over, or another file's end; and what was done."""
    rng = np.random.default_rng([seed, number, 1])
    data = bytearray(files[rng.integers(len(files))])
    at, length = int(rng.integers(len(data))), int(rng.integers(1, 64))
    noise = rng.bytes(length)
    other = files[rng.integers(len(files))]
    ways: list[tuple[str, bytes]] = [
        (
            "a bit turned over",
            bytes(data[:at]) + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + bytes(data[at + 1 :]),
        ),
        ("cut off", bytes(data[:at])),
        ("cut out", bytes(data[:at] + data[at + length :])),
        ("put in", bytes(data[:at]) + noise + bytes(data[at:])),
        ("written over", bytes(data[:at]) + noise + bytes(data[at + length :])),
        ("zeroed to the end", bytes(data[:at]) + bytes(len(data) - at)),
        ("a block of zeros", bytes(data[:at]) + bytes(min(512, len(data) - at)) + bytes(data[at + 512 :])),
        ("another's end", bytes(data[:at]) + other[at:]),
        ("more at the end", bytes(data) + noise),
    ]
    what, made = ways[rng.integers(len(ways))]
    return f"{what} at byte {at}", made


def _damaged(subject: str, seed: int, folder: Path) -> Task:
    whole, use = sound(subject), user(subject)

    def task(number: int) -> str:
        what, data = damaged(whole, seed, number)
        with explained(what):
            if data in whole:
                return "unchanged"
            assert use(data) == "refused", "it is accepted"
        return "refused"

    return task


DAMAGED = Row(
    promise="a damaged file is refused",
    unit="files",
    target=100_000,
    shared=True,
    subjects=kinds,
    task=_damaged,
    seconds=files.SECONDS,
    megabytes=files.MEGABYTES,
    evidence=lambda subject, seed, number: {"damaged.tlstd": damaged(sound(subject), seed, number)[1]},
)
