"""What is saved in files of the library: sound files of each kind, and how one is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tlstd.estimators.registry import ESTIMATORS
from tlstd.zoo.ilstd import ILSTD
from tlstd_lab.campaign import files, hordes, values
from tlstd_lab.campaign.row import estimators

OTHERS: dict[str, Any] = {"ValueFunction": values, "Horde": hordes}


def kinds() -> list[str]:
    """Estimators, value functions and hordes."""
    return [*estimators(), *OTHERS]


@cache
def sound(kind: str) -> list[bytes]:
    """Sound files of a kind."""
    if kind in OTHERS:
        found: list[bytes] = OTHERS[kind].sound_files()
        return found
    factory = ESTIMATORS[kind]
    return files.sound_files(factory, wide=isinstance(factory(12), ILSTD))


def user(kind: str) -> Callable[[bytes], str]:
    """What loads a file of a kind and uses what is in it; it returns "refused" or "used"."""
    if kind in OTHERS:
        use: Callable[[bytes], str] = OTHERS[kind].use
        return use
    cls = type(ESTIMATORS[kind](12))
    return lambda data: files.use(data, cls)
