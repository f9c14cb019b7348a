from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tlstd import parameters
from tlstd.errors import InvalidParameterError


def test_integers() -> None:
    for value in (2, np.int8(2), np.uint64(2)):
        found = parameters.integer("n", value, low=2, high=2)
        assert (found, type(found)) == (2, int)
    assert parameters.integer("n", 10**30) == 10**30


@pytest.mark.parametrize("value", [1, 5, np.int64(1), 3.0, True, np.True_, "3", None, np.array(3)], ids=repr)
def test_what_is_no_integer_in_the_range(value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"^n is .*: it must be an integer from 2 to 4, because$") as error:
        parameters.integer("n", value, low=2, high=4, why=", because")
    assert f"n is {value!r}:" in str(error.value)


def test_reals() -> None:
    for value in (1, 1.0, np.float32(1.0), np.uint8(1)):
        found = parameters.real("x", value, low=1.0, high=1.0)
        assert (found, type(found)) == (1.0, float)
    assert parameters.real("x", math.inf) == math.inf
    assert parameters.positive("x", 5e-324) == 5e-324


@pytest.mark.parametrize(
    ("options", "inside", "outside", "interval"),
    [
        ({"low": 0.0, "high": 1.0}, [0.0, 1.0], [-5e-324, 1.0 + 1e-15], r"\[0, 1\]"),
        ({"low": 0.0, "high": 1.0, "open_low": True}, [5e-324, 1.0], [0.0, 2.0], r"\(0, 1\]"),
        ({"low": 0.0, "high": 1.0, "open_high": True}, [0.0, 1.0 - 1e-15], [-1.0, 1.0], r"\[0, 1\)"),
        ({"low": 0.0, "open_high": True}, [0.0, 1e308], [-1.0, math.inf, 10**400], r"\[0, inf\)"),
        ({"high": 0.5}, [-math.inf, 0.5, -(10**400)], [0.6], r"\[-inf, 0\.5\]"),
    ],
)
def test_intervals(options: dict[str, Any], inside: list[float], outside: list[float], interval: str) -> None:
    for value in inside:
        parameters.real("x", value, **options)
    for value in [*outside, math.nan]:
        with pytest.raises(InvalidParameterError, match=rf"^x is .*: it must lie in {interval}, because$"):
            parameters.real("x", value, **options, why=", because")
    for odd in (True, "0.5", None, np.array(0.5), 0.5j):
        with pytest.raises(InvalidParameterError, match=r"^x is .*: it must be a number, because$"):
            parameters.real("x", odd, **options, why=", because")


def test_positive() -> None:
    for value in (0.0, 2.0, math.nan):
        with pytest.raises(InvalidParameterError, match=rf"^x is {value}: it must lie in \(0, 2\)"):
            parameters.positive("x", value, high=2.0)


def test_choices() -> None:
    assert parameters.choice("kind", "b", ("a", "b")) == "b"
    for value in ("c", "", None, ["a"], np.array(["a", "b"])):
        with pytest.raises(InvalidParameterError, match=r"^kind is .*: it must be one of 'a', 'b', or c$"):
            parameters.choice("kind", value, ("a", "b"), why=", or c")
