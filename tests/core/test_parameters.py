from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from tlstd_lab.processes import garnet, garnet_off_policy

import tlstd
from tlstd import TLSTD, Log, SparseVector, Transition, load
from tlstd.control import policy_iteration, sigma_point_policy_iteration
from tlstd.core import parameters
from tlstd.errors import InvalidParameterError
from tlstd.estimators.registry import ESTIMATORS
from tlstd.evaluation import ValueFunction, evaluate, influences
from tlstd.logs import read_chunks


def test_integers() -> None:
    for value in (2, np.int8(2), np.uint64(2)):
        found = parameters.integer("n", value, low=2, high=2)
        assert (found, type(found)) == (2, int)
    assert parameters.integer("n", 2**63 - 1) == 2**63 - 1
    assert parameters.integer("n", 10**30, high=None) == 10**30


@pytest.mark.parametrize("value", [2**63, 2**70, np.uint64(2**64 - 1)])
def test_integers_that_no_array_holds(value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=rf"^n is .*: it must be an integer from 1 to {2**63 - 1}$"):
        parameters.integer("n", value)


def test_flags() -> None:
    value: Any
    for value in (True, 1, np.True_, np.int8(1), np.uint64(1), np.array(True), np.array(1)):
        assert parameters.flag("flag", value) is True
    for value in (False, 0, np.False_, np.int64(0), np.array(False), np.array(0)):
        assert parameters.flag("flag", value) is False


@pytest.mark.parametrize(
    "value",
    [
        "False",
        "",
        None,
        math.nan,
        0.5,
        1.0,
        0.0,
        2,
        -1,
        [False],
        [],
        (),
        {},
        np.float64(1.0),
        np.array([True]),
        1j,
        np.array(2),
        np.str_("1"),
        np.ma.masked,
        np.ma.array(True, mask=True),
        b"1",
        np.timedelta64(1),
    ],
    ids=repr,
)
def test_what_is_no_flag(value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)^flag is .*: pass True or False$"):
        parameters.flag("flag", value)


def test_generators() -> None:
    rng = np.random.default_rng(0)
    assert parameters.generator("rng", rng) is rng
    for value in (None, 3, np.random, np.random.SeedSequence(0), "rng"):
        with pytest.raises(InvalidParameterError, match=r"(?s)^rng is .*: pass a generator"):
            parameters.generator("rng", value)


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


@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are Linux's")
@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("TLSTD(10**9, rank=10**8, lambda_=0.9)", "rank is 100000000: the buffer"),
        ("ATD(10**9, rank=10**8, lambda_=0.9, step_size=0.1, eta=0.1)", "rank is 100000000: the buffer"),
        ("LSTD(4, lambda_=0.9, n_targets=10**13)", "n_targets is 10000000000000: one value"),
        ("KrylovLSTD(4, lambda_=0.9, dimension=2, n_targets=10**13)", "n_targets is 10000000000000: one value"),
        ("ProjectedLSTD(10**9, dimension=10**8, lambda_=0.9)", "dimension is 100000000: its system"),
        ("SketchedLSTD(10**9, dimension=10**7, n_targets=10**3, lambda_=0.9)", "dimension is 10000000 with n_targets"),
        ("TD(10**9, step_size=0.1, lambda_=0.9, n_targets=10**8)", "n_targets is 100000000: what"),
        ("TrueOnlineTD(10**9, step_size=0.1, lambda_=0.9, n_targets=10**8)", "n_targets is 100000000: what"),
        ("TDC(10**9, step_size=0.1, lambda_=0.9, n_targets=10**8)", "n_targets is 100000000: what"),
    ],
)
def test_parameters_that_no_memory_holds(made: str, words: str) -> None:
    """They are refused, with sizes and remedy, before memory is taken: by a process of its own that says its peak."""
    small = re.sub(r"10\*\*(\d+)", lambda power: "9" if power[1] == "9" else "2", made)
    code = (
        "import resource\nimport tlstd\nfrom tlstd import *\nTLSTD(9, rank=2, lambda_=0.9)\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        f"tlstd.{small}\n"
        f"before = peak()\ntry:\n    tlstd.{made}\nexcept CapacityError as error:\n    print(error)\n"
        "print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    said, grown = done.stdout.splitlines() if done.returncode == 0 else (done.stderr, "0")
    assert said.startswith(words)
    assert "use " in said
    assert int(grown) < 50


def test_a_large_rank_with_few_features_is_saved_and_loaded(tmp_path: Path) -> None:
    """Factors are as large as the features that were seen: a file whose rank is never reached is sound."""
    x = SparseVector([3], [1.0], 10**9)
    step = Transition(x, 1.0, x, discount=0.9, trace_discount=0.9)
    model = TLSTD(10**9, rank=10**6, lambda_=0.9)
    model.update(step)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    again.update(step)
    assert again.predict(x) == pytest.approx(10.0)


def options(function: Callable[..., Any]) -> dict[str, tuple[str, ...]]:
    """The words that each parameter takes, by its annotation; of one that takes any text, none."""
    found: dict[str, tuple[str, ...]] = {}
    for name, hint in get_type_hints(function).items():
        kinds = [hint, *get_args(hint)]
        words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
        if name != "return" and (words or str in kinds):
            found[name] = () if str in kinds else tuple(words)
    return found


@pytest.mark.parametrize("name", ESTIMATORS)
def test_words_that_estimators_take_are_in_their_types(name: str) -> None:
    """And no others are taken: the error names the words of the annotation."""
    model = ESTIMATORS[name](8)
    for parameter, words in options(type(model).__init__).items():
        assert words, f"{parameter} takes any text by its type"
        with pytest.raises(InvalidParameterError, match=f"{parameter} is 'no word': .* {', '.join(map(repr, words))}"):
            type(model)(**(model.get_params() | {parameter: "no word"}))


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (evaluate, ["features", "start", "probabilities"]),
        (ValueFunction.__init__, ["kind"]),
        (influences, ["kind"]),
        (Log.from_arrays, ["ends", "on_nan"]),
        (Log.from_frame, ["ends", "on_nan", "preset"]),
        (read_chunks, ["ends", "preset"]),
        (policy_iteration, ["judge"]),
        (sigma_point_policy_iteration, ["about"]),
        (tlstd.RBF.__init__, ["convention"]),
        (tlstd.random_walk, ["features"]),
        (garnet, ["policy", "features"]),
        (garnet_off_policy, ["target", "behaviour", "features"]),
    ],
)
def test_words_that_functions_take_are_in_their_types(function: Callable[..., Any], names: list[str]) -> None:
    hints = get_type_hints(function)
    for name in names:
        assert any(get_origin(kind) is Literal for kind in [hints[name], *get_args(hints[name])]), name


@pytest.mark.parametrize("preset", get_args(get_args(get_type_hints(Log.from_frame)["preset"])[0]))
def test_every_preset_of_the_type_is_known(preset: Any) -> None:
    with pytest.raises(tlstd.InvalidInputError, match="observation"):
        Log.from_frame({"nothing": [1.0]}, preset=preset)
