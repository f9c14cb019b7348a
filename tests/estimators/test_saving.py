"""Saved models: round trips to the bit, damaged and hostile files, killed saves."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tlstd_lab.campaign.files import pack, sealed, text, unpack

import tlstd
from tests.helpers import random_transitions
from tlstd import LSTD, TLSTD, InvalidInputError, InvalidParameterError, StateError
from tlstd.checks.data import temporary_folder
from tlstd.classic.td import TD
from tlstd.classic.true_online_td import TrueOnlineTD
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import CLASSES, ESTIMATORS
from tlstd.estimators.step_sizes import Decay
from tlstd.zoo.atd import ATD
from tlstd.zoo.ilstd import ILSTD

D = 12
MODELS: dict[str, Callable[..., LinearEstimator]] = {
    **ESTIMATORS,
    "TD with decay": lambda n, **more: TD(n, step_size=Decay(0.05, 10), lambda_=0.7, **more),
    "TD replacing": lambda n, **more: TD(n, step_size=0.01, lambda_=0.7, trace="replacing", **more),
    "iLSTD": lambda n, **more: ILSTD(n, step_size=Decay(0.02, 10), lambda_=0.7, coordinates_per_step=2, **more),
    "true-online": lambda n, **more: TrueOnlineTD(n, step_size=0.01, lambda_=0.7, **more),
    "ATD": lambda n, **more: ATD(n, 4, step_size=Decay(1.0, 10), lambda_=0.7, eta=1e-3, **more),
    "ATD of rank 0": lambda n, **more: ATD(n, 0, step_size=0.1, lambda_=0.7, eta=1e-3, buffer_size=9, **more),
}
Edit = Callable[[np.random.Generator, dict[str, Any], dict[str, Any]], bool]


@cache
def stream(seed: int, n_steps: int, *, sparse: bool, n_targets: int = 1, off_policy: bool = False) -> Transitions:
    """The same for all who ask: models do not change what they are given."""
    return random_transitions(
        np.random.default_rng(seed),
        n_features=D,
        n_steps=n_steps,
        density=0.15 if sparse else 1.0,
        sparse=sparse,
        n_targets=n_targets,
        off_policy=off_policy,
    )


def make(name: str, n_targets: int = 1) -> LinearEstimator:
    return MODELS[name](D, n_targets=n_targets) if n_targets > 1 else MODELS[name](D)


REFUSED = {
    "dense": {"TD replacing", "TD (replacing)", "TLSTD (replacing)"},
    "off-policy": {"SwiftTD", "TrueOnlineTD", "true-online"},
    "several targets": {"ILSTD", "iLSTD", "Handover (settled)", "SwiftTD"},
}
"""Who does not take which kind of data. All others have to: nobody is asked."""


def accepts(name: str, kind: str, n_targets: int = 1) -> bool:
    """Whether a model of this name takes streams of this kind (dense, sparse, off-policy)."""
    return name not in REFUSED.get(kind, ()) and (n_targets == 1 or name not in REFUSED["several targets"])


def takers(*kinds: tuple[str, int]) -> list[tuple[str, str, int]]:
    """All (name, kind, number of targets) that are taken."""
    return [(name, kind, n_targets) for kind, n_targets in kinds for name in MODELS if accepts(name, kind, n_targets)]


def assert_same(a: LinearEstimator, b: LinearEstimator, steps: Transitions) -> None:
    assert type(a) is type(b)
    assert a.n_updates == b.n_updates
    assert np.array_equal(a.predict(steps[0].x), b.predict(steps[0].x))
    assert np.array_equal(a.weights, b.weights)
    assert np.array_equal(a.predict(steps.X), b.predict(steps.X))
    if isinstance(a, TLSTD) and isinstance(b, TLSTD):
        assert np.array_equal(a.singular_values, b.singular_values)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is such a place: many small files are quicker there."""
    with temporary_folder() as path:
        yield Path(path)


# --- round trips ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("name", MODELS)
def test_who_refuses_what(name: str, kind: str) -> None:
    n_targets = 3 if kind == "several targets" else 1
    steps = stream(1, 20, sparse=kind != "dense", n_targets=n_targets, off_policy=kind == "off-policy")
    if name in REFUSED[kind]:
        with pytest.raises((InvalidInputError, InvalidParameterError, TypeError)):
            make(name, n_targets).update_many(steps)
    else:
        make(name, n_targets).update_many(steps)


CUTS = {
    ("dense", 1): (0, 67),
    ("dense", 3): (24,),
    ("sparse", 1): (23,),
    ("sparse", 3): (1, 67),
    ("off-policy", 1): (23, 67),
    ("off-policy", 3): (1,),
}
"""After how many samples a model is saved: early, in its first buffer, late, each with each kind of data."""


@pytest.mark.parametrize(("name", "kind", "n_targets"), takers(*CUTS))
def test_saved_and_continued_is_never_stopped(name: str, kind: str, n_targets: int, folder: Path) -> None:
    slow = name.startswith("ATD")  # it reads its factors at every step
    steps = stream(1, 60 if slow else 96, sparse=kind != "dense", n_targets=n_targets, off_policy=kind == "off-policy")
    path = folder / "model"
    for cut in (30,) if slow else CUTS[kind, n_targets]:
        model, silent = make(name, n_targets), make(name, n_targets)
        model.update_many(steps[:cut])
        silent.update_many(steps[:cut])
        model.save(path)
        loaded = tlstd.load(path)
        silent.save(folder / "again")
        assert (folder / "again").read_bytes() == path.read_bytes(), "a save depends on more than the state"
        loaded.save(folder / "again")
        assert (folder / "again").read_bytes() == path.read_bytes(), "something was lost"
        assert_same(loaded, model, steps)
        for t in steps[cut : cut + 9]:
            for m in (loaded, model, silent):
                m.update(t)
        assert_same(loaded, model, steps)
        for m in (loaded, model, silent):
            m.update_many(steps[cut + 9 :])
        assert_same(loaded, model, steps)
        if name != "LSTD (recursive)":  # which mends its inverse when it is read
            assert np.array_equal(loaded.weights, silent.weights)


@pytest.mark.parametrize(
    "model",
    [
        TLSTD(2**31, 5, lambda_=0.9, buffer_size=7),
        ATD(2**31, 5, step_size=0.1, lambda_=0.9, eta=1e-3),
        TD(2**31, step_size=0.1, lambda_=0.9, trace="replacing"),
        TrueOnlineTD(2**31, step_size=0.1, lambda_=0.9),
        TLSTD(2**31, 5, lambda_=0.9, trace="replacing", beta=0.01),
        TLSTD(2**31, 2**31, lambda_=0.9, buffer_size=200),
        LSTD(2**31, lambda_=0.9, beta=0.1),
        LSTD(2**31, lambda_=0.9, solver="recursive"),
    ],
)
def test_hashed_features(model: LinearEstimator, tmp_path: Path) -> None:
    """d = 2**31: files and memory go with the features seen. (At rank 2**31 only while the first buffer fills.)"""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 2**31, 40)
    xs = [SparseVector(rng.choice(ids, 4, replace=False), rng.uniform(0.5, 1.0, 4), 2**31) for _ in range(101)]
    steps = [
        Transition(x, float(i % 3), xs[i + 1], discount=0.9, trace_discount=0.9 if i % 10 else 0.0)
        for i, x in enumerate(xs[:-1])
    ]
    for t in steps[:39]:
        model.update(t)
    model.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 100_000
    tracemalloc.start()
    try:
        loaded = tlstd.load(tmp_path / "model")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    for t in steps[39:]:
        model.update(t)
        loaded.update(t)
    assert loaded.n_updates == model.n_updates
    for a, b in ((loaded.sparse_weights, model.sparse_weights),):
        assert np.array_equal(a.indices, b.indices)
        assert np.array_equal(a.values, b.values)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 31, 60])
def test_while_matrices_grow(cut: int, tmp_path: Path) -> None:
    """The order in which BLAS adds up depends on how far apart rows lie in memory: that has to be kept, too."""
    steps = random_transitions(np.random.default_rng(cut), n_features=900, n_steps=cut + 60, density=0.01, sparse=True)
    for model in (
        TLSTD(900, 5, lambda_=0.9, buffer_size=1),
        TLSTD(900, 40, lambda_=0.9, buffer_size=3),
        LSTD(900, lambda_=0.9),
        LSTD(900, lambda_=0.9, solver="recursive"),
    ):
        model.update_many(steps[:cut])
        model.save(tmp_path / "model")
        loaded = tlstd.load(tmp_path / "model")
        assert_same(loaded, model, steps)
        for m in (loaded, model):
            m.update_many(steps[cut:])
        assert_same(loaded, model, steps)


def test_suspended_recursion_is_kept(tmp_path: Path) -> None:
    model = LSTD(2, lambda_=0.0, solver="recursive", initial_diagonal=1.0)
    x = np.array([1.0, 0.0])
    model.update(Transition(x, 1.0, 2.0 * x, discount=1.0, trace_discount=0.0))  # 1 + x·(x - 2x) = 0
    model.save(tmp_path / "model")
    assert b'"model.system.inverse.healthy":false' in (tmp_path / "model").read_bytes()
    loaded = tlstd.load(tmp_path / "model")
    for m in (model, loaded):
        m.update(Transition(np.array([1.0, 1.0]), 1.0, x, discount=0.5, trace_discount=0.0))
    assert np.array_equal(loaded.weights, model.weights)


def test_every_estimator_can_be_loaded() -> None:
    assert {type(make(name)).__name__ for name in MODELS} <= set(CLASSES)
    assert all(name == cls.__name__ for name, cls in CLASSES.items())


# --- writing --------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    model = TLSTD(D, 4, lambda_=0.5)
    model.update_many(stream(0, 50, sparse=True))
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_failed_save_leaves_the_old_file(call: str, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()
    model = tlstd.load(saved)
    model.update_many(stream(1, 30, sparse=True))

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="no space"):
        model.save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["model"]


def test_what_could_not_be_loaded_is_not_saved(saved: Path) -> None:
    before = saved.read_bytes()
    model = tlstd.load(saved)
    assert isinstance(model, TLSTD)
    model._system.b[0] = np.nan
    with pytest.raises(StateError, match="diverged"):
        model.save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["model"]


def nearly_dependent(seed: int) -> Transitions:
    """Few vectors, sums of two of them, and both with small entries added: what one read finds out helps the next."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, D, (6, 3))
    X = np.zeros((61, D))
    for row in X:
        first, second = rng.integers(0, 6, 2)
        row[groups[first]] += 1.0
        row[groups[second]] += 0.7 * (rng.random() < 0.5)
        row[rng.integers(0, D)] += 10.0 ** -rng.integers(2, 7) * (rng.random() < 0.3)
    return Transitions.from_episodes([(sp.csr_array(X), rng.standard_normal(60), False)], gamma=0.9)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["TLSTD", "ATD"])
def test_reads_before_saving_leave_nothing_behind(name: str, seed: int, folder: Path) -> None:
    """A model that was read at every step, its saved copy and one that was never read go on alike, to the bit."""
    steps = nearly_dependent(seed)
    makers: dict[str, Callable[[], LinearEstimator]] = {
        "TLSTD": lambda: TLSTD(D, 4, lambda_=0.8, buffer_size=25),
        "ATD": lambda: ATD(D, 4, step_size=Decay(1.0, 0), lambda_=0.8, eta=0.01, buffer_size=25),
    }
    read, silent = makers[name](), makers[name]()
    for step in steps[:18]:
        read.update(step)
        read.predict(step.x)
        silent.update(step)
    read.save(folder / "model")
    loaded = tlstd.load(folder / "model")
    for step in steps[18:]:
        for model in (read, loaded, silent):
            model.update(step)
        assert read.predict(step.x) == loaded.predict(step.x)
    assert np.array_equal(read.weights, loaded.weights)
    assert np.array_equal(read.weights, silent.weights)


def test_functions_are_not_saved(tmp_path: Path) -> None:
    model = TD(D, step_size=lambda t: 1.0 / t, lambda_=0.5)
    with pytest.raises(StateError, match="Decay"):
        model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_weights_to_start_from_are_saved(tmp_path: Path) -> None:
    for steps in (stream(0, 50, sparse=True), stream(0, 50, sparse=False)):
        model = TD(D, step_size=0.01, lambda_=0.5)
        model.start_from(np.arange(float(D)))
        model.save(tmp_path / "model")
        loaded = tlstd.load(tmp_path / "model")
        for m in (model, loaded):
            m.update_many(steps)
        assert_same(model, loaded, steps)


def test_links_and_permissions_stay(saved: Path) -> None:
    saved.chmod(0o640)
    link = saved.with_name("link")
    link.symlink_to(saved)
    tlstd.load(link).save(link)
    assert link.is_symlink()
    assert saved.stat().st_mode & 0o777 == 0o640


def test_missing_files_and_folders(saved: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tlstd.load(saved.with_name("none"))
    with pytest.raises(StateError, match="regular file"):
        tlstd.load(saved.parent)
    with pytest.raises(FileNotFoundError):
        tlstd.load(saved).save(saved.parent / "none" / "model")


KILLED = """
import os, random, signal, sys, time
import numpy as np
import tlstd

path, random_ = sys.argv[1], random.Random(0)
chain = tlstd.random_walk(n_states=151, gamma=0.9)
steps = chain.sample(600, np.random.default_rng(0))
model = tlstd.TLSTD(151, 30, lambda_=0.5, buffer_size=60)
model.update_many(steps)
model.save(path)
loaded = 0
for _ in range(25):
    child = os.fork()
    if child == 0:
        while True:
            model._system.n_compressed += 60
            model.save(path)
    time.sleep(random_.uniform(0.0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    model = tlstd.load(path)
    loaded += model.weights.size == 151
print(loaded, model.n_updates, sum(name.endswith(".tmp") for name in os.listdir(os.path.dirname(path))))
"""


def test_killed_saves() -> None:
    """25 processes that save in a loop are killed with -9 at random moments: the file always loads."""
    with tempfile.TemporaryDirectory() as folder:  # on a disk if there is one: most of a save is waiting for it
        command = [sys.executable, "-c", KILLED, os.path.join(folder, "model")]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    loaded, n_updates, interrupted = map(int, result.stdout.split())
    assert loaded == 25
    assert n_updates > 600, "no save was completed"
    assert interrupted > 0, "no save was interrupted"


# --- damaged and hostile files --------------------------------------------------------------------------------------


def pick(rng: np.random.Generator, arrays: dict[str, Any], kind: str, ends: tuple[str, ...] = ("",)) -> Any:
    """A random array that is not empty, of floats or ints, whose name has one of some endings; or None."""
    names = [n for n, a in arrays.items() if a.size and a.dtype.kind in kind and n.endswith(ends)]
    return arrays[names[rng.integers(len(names))]] if names else None


def not_finite(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    array = pick(rng, arrays, "f")
    if array is not None:
        array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf])
    return array is not None


def out_of_range(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    array = pick(rng, arrays, "i")
    if array is not None:
        array.flat[rng.integers(array.size)] = rng.choice([-1, -(2**62), 2**40, 2**62])
    return array is not None


def repeated(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    array = pick(rng, arrays, "i", ("ids", "active"))
    if array is None or array.size < 2:
        return False
    i, j = rng.choice(array.size, 2, replace=False)
    array[i] = array[j]
    return True


def off_by_one(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    """A row just past the features seen; an indptr that falls, or points just past the entries."""
    array = pick(rng, arrays, "i", ("rows", "active", "indptr"))
    if array is None:
        return False
    array[-1] = pick(rng, arrays, "i", ("seen.ids",)).size
    for name, other in arrays.items():
        if name.endswith("indptr") and other is array:
            array[-1] = arrays[name.replace("indptr", "rows")].size + 1
    return True


def not_orthogonal(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    array = pick(rng, arrays, "f", ("factors.U", "factors.V"))
    if array is None:
        return False
    array[:, rng.integers(array.shape[1])] *= 1.0 + 1e-8
    return True


def not_unit(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    array = pick(rng, arrays, "f", ("vals", "matrix"))
    if array is None or not array.any():
        return False
    array *= 1.0 + 1e-6
    return True


def not_falling(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    sigma = arrays.get("model.system.factors.sigma", np.zeros(0))
    if sigma.size < 2 or sigma[0] == sigma[-1]:
        return False
    sigma[:] = sigma[::-1].copy() if rng.random() < 0.5 else -sigma
    return True


def negative(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    array = pick(rng, arrays, "f", ("norms", "decays", "rhos"))
    if array is not None:
        array[rng.integers(array.size)] = -0.5
    return array is not None


def missing(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    part = (arrays, header["counters"], header["parameters"])[rng.integers(3)]
    del part[list(part)[rng.integers(len(part))]]
    return True


def unknown(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    name = str(rng.choice(["extra", "model.extra", "model.system.seen.keys", "weights"]))
    (arrays, header["counters"], header["parameters"])[rng.integers(3)][name] = np.zeros(2)
    if not isinstance(arrays.get(name), np.ndarray):
        for part in (header["counters"], header["parameters"]):
            if name in part:
                part[name] = 1
    return True


def reshaped(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    name = list(arrays)[rng.integers(len(arrays))]
    arrays[name] = np.zeros((arrays[name].shape[0] + 1, *(length + 3 for length in arrays[name].shape[1:])))
    return True


def wrong_counter(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    counters = header["counters"]
    names = [n for n, value in counters.items() if type(value) in (int, bool, str) and not n.endswith("capacity")]
    name = names[rng.integers(len(names))]
    wrong = [-1, 10**400, 2**63, 0.5, "x", None, [], {}, [1] * 50]
    if type(counters[name]) is int:
        wrong += [float(counters[name]), str(counters[name]), True]
    if type(counters[name]) is int and len(names) > 2:  # where it is counted twice
        wrong += [counters[name] + 1, counters[name] - 1]
    counters[name] = wrong[rng.integers(len(wrong))]
    return True


def wrong_parameter(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    parameters = header["parameters"]
    name = list(parameters)[rng.integers(len(parameters))]
    wrong: list[Any] = ["x", -1, [], {}, [[]], "__import__('os')", 1e300, True]
    parameters[name] = wrong[rng.integers(len(wrong))]
    return True


def contradicting_parameter(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    """Another size than the arrays have."""
    parameters = header["parameters"]
    ids = pick(rng, arrays, "i", ("seen.ids",))
    if "n_targets" in parameters and rng.random() < 0.3:
        parameters["n_targets"] = int(rng.choice([parameters["n_targets"] + 1, 10**6, 2**40, 2**62]))
    else:
        parameters["n_features"] = parameters["n_features"] + 1 if ids is None else int(ids.max())
    return True


SAME_FORM = {"GTD2", "TDC"}
"""Classes whose files differ in the name alone: with the other's name such a file is a sound one."""


def wrong_class(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
    own = header["class"]
    others = sorted(set(CLASSES) - (SAME_FORM if own in SAME_FORM else {own}))
    names = ["", "object", "os.system", "LinearEstimator", "tlstd.LSTD", "lstd", *others]
    header["class"] = names[rng.integers(len(names))]
    return True


CONTENT: tuple[Edit, ...] = (
    not_finite,
    out_of_range,
    repeated,
    off_by_one,
    not_orthogonal,
    not_unit,
    not_falling,
    negative,
    missing,
    unknown,
    reshaped,
    wrong_counter,
    wrong_parameter,
    contradicting_parameter,
    wrong_class,
)


def hostile_table(rng: np.random.Generator, data: bytes) -> bytes:
    """A list of arrays that lies, with a valid checksum."""
    header, _ = unpack(data)
    payload = data[60 + len(text(header)) :]
    entry = header["arrays"][rng.integers(len(header["arrays"]))]
    lies: dict[str, list[Any]] = {
        "shape": [
            [2**40],
            [2**62, 2**62],
            [10**30],
            [-1],
            [-1, -8],
            [1.0],
            [True, 7],
            "5",
            5,
            None,
            [],
            [[3]],
            [0, 2**60],
        ],
        "dtype": ["<f4", ">f8", "|O", "<c16", "<U1", "", 5, None, ["<f8"], "<i8" if entry["dtype"] == "<f8" else "<f8"],
        "offset": [-8, 10**30, entry["offset"] + 8, 1.5, None, "0"],
        "name": ["", "x", 5, None, ["model"], entry["name"] + "_"],
    }
    key = list(lies)[rng.integers(4)]
    entry[key] = lies[key][rng.integers(len(lies[key]))]
    if rng.random() < 0.1:
        header["arrays"].append(dict(header["arrays"][0]))
    return sealed(text(header), payload)


def hostile_header(rng: np.random.Generator, data: bytes) -> bytes:
    """A header that is not one, with a valid checksum."""
    header, _ = unpack(data)
    sound = text(header)
    payload = data[60 + len(sound) :]
    small = {**header, "arrays": [], "counters": {}}
    choices: list[bytes] = [
        sound + b" ",
        sound.replace(b":", b": ", 1),
        sound[:-1] + b',"class":"LSTD"}',
        sound.replace(b'"library"', b'"Library"'),
        sound.replace(b'"n_updates":', b'"n_updates":NaN,"x":', 1),
        b"",
        b"{",
        b"[" * 50_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b"[]",
        b"null",
        b"\xff\xfe" + sound,
        sound + b" " * (1 << 17),
        b"[" + b"[]," * 20_000 + b"[]]",
        b"9" * 60_000,
        text({**header, "parameters": [1]}),
        text({**header, "arrays": {"a": 1}}),
        text({**header, "extra": 1}),
        text(small),
        b"import os; os.system('true')",
    ]
    return sealed(choices[rng.integers(len(choices))], payload)


def damaged(rng: np.random.Generator, files: list[bytes], i: int) -> tuple[str, bytes]:
    """One of the damages, in turn, to one of the sound files."""
    data = files[rng.integers(len(files))]
    kind = i % 10
    if kind < 3:
        broken = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(data) if rng.random() < 0.7 else 70))
            broken[at] ^= 1 << int(rng.integers(8))
        return "flipped bits", bytes(broken)
    if kind == 3:
        return "cut", data[: rng.integers(len(data))]
    if kind == 4:
        other = files[rng.integers(len(files))]
        at = int(rng.integers(1, min(len(data), len(other)) - 1))
        return "spliced", data[:at] + other[at:] if rng.random() < 0.8 else data + other
    if kind == 5:
        return "hostile header", hostile_header(rng, data)
    if kind == 6:
        return "hostile list of arrays", hostile_table(rng, data)
    if i % 50 == 7:
        header, _ = unpack(data)
        return "another version", sealed(text(header), data[60 + len(text(header)) :], version=int(rng.integers(2, 99)))
    while True:
        header, arrays = unpack(files[rng.integers(len(files))])
        edit = CONTENT[rng.integers(len(CONTENT))]
        if edit(rng, header, arrays):
            return edit.__name__, pack(header, arrays)


def sound_files(folder: Path) -> list[bytes]:
    """A model of every kind, in mid-buffer, dense and sparse, with one or two targets."""
    files = []
    for name, kind, n_targets in takers(*itertools.product(("sparse", "dense"), (1, 2))):
        model = make(name, n_targets)
        model.update_many(stream(3, 37 if n_targets == 1 else 90, sparse=kind == "sparse", n_targets=n_targets))
        model.save(folder / "model")
        files.append((folder / "model").read_bytes())
        assert pack(*unpack(files[-1])) == files[-1], "the format is not as described"
    return files


def refusal(path: Path) -> str:
    """With what words a file is refused; empty if it is accepted. Any other exception gets through."""
    try:
        tlstd.load(path)
    except StateError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("model", [LSTD(D, lambda_=0.9), TD(D, step_size=0.01, lambda_=0.9)], ids=["LSTD", "TD"])
def test_a_row_twice_on_the_trace_is_refused(model: LinearEstimator, tmp_path: Path) -> None:
    """A loop that goes through the list and adds to it would write past its end."""
    path = tmp_path / "model"
    model.update_many(stream(0, 30, sparse=True))
    model.save(path)
    header, arrays = unpack(path.read_bytes())
    (key,) = (key for key in arrays if key.endswith("active"))
    assert arrays[key].size > 1
    arrays[key][0] = arrays[key][1]
    path.write_bytes(pack(header, arrays))
    assert "different rows" in refusal(path)


class Mine(TLSTD):
    """A class that the library does not know."""


def test_classes_of_ones_own(tmp_path: Path) -> None:
    model = Mine(4, rank=2, lambda_=0.5)
    model.update_many(tlstd.boyan_chain().sample(50, np.random.default_rng(0)))
    model.save(tmp_path / "model")
    with pytest.raises(StateError, match=r"its class 'Mine' is none of the library: name it in classes="):
        tlstd.load(tmp_path / "model")
    same = tlstd.load(tmp_path / "model", classes=[Mine])
    assert type(same) is Mine
    assert np.array_equal(same.weights, model.weights)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such folder.*missing'"):
        TLSTD(4, rank=2, lambda_=0.5).save(tmp_path / "missing" / "model")


@pytest.mark.parametrize("number", [600, pytest.param(2000, marks=pytest.mark.long)])
def test_damaged_files_are_refused(number: int, tmp_path: Path) -> None:
    """None is accepted, all raise StateError, none takes 2 MB."""
    files = sound_files(tmp_path)
    rng, path = np.random.default_rng(0), tmp_path / "damaged"
    path.write_bytes(files[0])
    tlstd.load(path)  # compiled before memory is measured
    sound, tried = set(files), 0
    tracemalloc.start()
    try:
        for i in range(number):
            how, data = damaged(rng, files, i)
            if data in sound:  # two flips of one bit, or a splice of two equal halves
                continue
            tried += 1
            path.write_bytes(data)
            del data
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            message = refusal(path)
            assert message, f"damage {i} ({how}) was accepted"
            assert "cannot be loaded" in message
            assert len(message) < 600, message
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < 2_000_000, f"damage {i} ({how}) took {peak} bytes"
    finally:
        tracemalloc.stop()
    assert tried >= number - 10


# --- any order of things --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind", "n_targets"), takers(("dense", 1), ("sparse", 1)))
def test_saved_at_any_time(name: str, kind: str, n_targets: int, tmp_path: Path) -> None:
    """A model that is saved and loaded between whatever else is done with it, against a twin that never is."""
    rng = np.random.default_rng(sum(name.encode()))
    steps = stream(5, 300, sparse=kind == "sparse", n_targets=n_targets)
    model, twin, path = make(name), make(name), tmp_path / "model"
    done: list[str] = []
    while len(done) < 20:
        done.append(rng.choice(["update", "update_many", "predict", "read", "save and load"]))
        at, count, stride = int(rng.integers(240)), int(rng.integers(61)), int(rng.choice([1, 2, 7]))
        for m in (model, twin):
            if done[-1] == "update":
                m.update(steps[at])
            elif done[-1] == "update_many":
                m.update_many(steps[at : at + count : stride])
        if done[-1] == "predict":
            assert model.predict(steps[at].x) == twin.predict(steps[at].x), done
        elif done[-1] == "read":
            assert np.array_equal(model.weights, twin.weights), done
        elif done[-1] == "save and load":
            model.save(path)
            before = path.read_bytes()
            twin.save(path)
            assert path.read_bytes() == before, done
            model = tlstd.load(path)
        assert model.n_updates == twin.n_updates, done
    assert np.array_equal(model.weights, twin.weights), done
