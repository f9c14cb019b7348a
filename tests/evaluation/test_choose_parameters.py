"""``choose`` for every parameter of every estimator, against the documented score written out sample by sample."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tlstd
from tests.helpers import batch_lstd, random_transitions
from tlstd import (
    ATD,
    ILSTD,
    LSTD,
    TD,
    TLSTD,
    Decay,
    Handover,
    InvalidParameterError,
    KrylovLSTD,
    Replay,
    Transitions,
    TrueOnlineTD,
)
from tlstd.core.arrays import FloatArray
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation import Choice, choose

D = 6
SCALES = np.array([1.0, 0.8, 0.5, 0.3, 0.2, 0.1])
STEPS = [0.003, 0.03, 0.1]
LAMBDAS = [0.0, 0.6, 1.0]
CUTOFFS = [0.5, 0.1, 0.0]
Make = Callable[[Any], LinearEstimator]

PARAMETERS: dict[str, tuple[Make, list[Any]]] = {
    "TLSTD, rank": (lambda v: TLSTD(D, v, lambda_=0.5, buffer_size=16), [1, 3, 6]),
    "TLSTD, rank, projected": (lambda v: TLSTD(D, v, lambda_=0.5, buffer_size=16, reads="projected"), [1, 3, 6]),
    "ATD, rank": (lambda v: ATD(D, v, step_size=Decay(0.1, 10), lambda_=0.5, eta=0.01), [0, 6]),
    "TLSTD, rcond": (lambda v: TLSTD(D, D, lambda_=0.5, rcond=v), CUTOFFS),
    "ATD, rcond": (lambda v: ATD(D, 4, step_size=Decay(0.1, 10), lambda_=0.5, eta=0.01, rcond=v), [0.5, 0.0]),
    "LSTD, rcond": (lambda v: LSTD(D, lambda_=0.5, rcond=v), CUTOFFS),
    "LSTD, tikhonov": (lambda v: LSTD(D, lambda_=0.5, tikhonov=v, rcond=0.0), [1.0, 0.1, 0.0]),
    "LSTD, ridge": (lambda v: LSTD(D, lambda_=0.5, ridge=v), [10.0, 1.0, 0.1]),
    "LSTD, initial_diagonal": (
        lambda v: LSTD(D, lambda_=0.5, solver="recursive", initial_diagonal=v), [100.0, 10.0, 1.0]
    ),
    "KrylovLSTD, ridge": (lambda v: KrylovLSTD(D, lambda_=0.5, dimension=4, ridge=v), [10.0, 1.0, 0.0]),
    "KrylovLSTD, dimension": (lambda v: KrylovLSTD(D, lambda_=0.5, dimension=v), [1, 3, 6]),
    "KrylovLSTD, dimension, stream": (lambda v: KrylovLSTD(D, lambda_=0.5, dimension=v, reads="stream"), [1, 3, 6]),
    "TLSTD, lambda_": (lambda v: TLSTD(D, 4, lambda_=v), LAMBDAS),
    "TLSTD, subspace_lambda": (lambda v: TLSTD(D, 2, lambda_=0.0, subspace_lambda=v, buffer_size=10), LAMBDAS),
    "LSTD, lambda_": (lambda v: LSTD(D, lambda_=v), LAMBDAS),
    "LSTD, lambda_, recursive": (lambda v: LSTD(D, lambda_=v, solver="recursive"), LAMBDAS),
    "KrylovLSTD, lambda_": (lambda v: KrylovLSTD(D, lambda_=v, dimension=4), LAMBDAS),
    "TD, lambda_": (lambda v: TD(D, step_size=0.03, lambda_=v), LAMBDAS),
    "TrueOnlineTD, lambda_": (lambda v: TrueOnlineTD(D, step_size=0.03, lambda_=v), LAMBDAS),
    "ILSTD, lambda_": (lambda v: ILSTD(D, step_size=Decay(0.01, 50), lambda_=v), LAMBDAS),
    "ATD, lambda_": (lambda v: ATD(D, 4, step_size=Decay(0.1, 10), lambda_=v, eta=0.01), [0.0, 1.0]),
    "TD, step_size": (lambda v: TD(D, step_size=v, lambda_=0.5), STEPS),
    "TD, step_size, decay": (lambda v: TD(D, step_size=Decay(0.1, v), lambda_=0.5), [1, 30, 1000]),
    "TrueOnlineTD, step_size": (lambda v: TrueOnlineTD(D, step_size=v, lambda_=0.5), STEPS),
    "ILSTD, step_size": (lambda v: ILSTD(D, step_size=Decay(v, 50), lambda_=0.5), [0.001, 0.003, 0.01]),
    "ATD, step_size": (lambda v: ATD(D, 4, step_size=Decay(v, 10), lambda_=0.5, eta=0.01), STEPS[1:]),
    "ATD, eta": (lambda v: ATD(D, 4, step_size=Decay(0.1, 10), lambda_=0.5, eta=v), STEPS[1:]),
    "Replay, passes": (lambda v: Replay(TD(D, step_size=0.01, lambda_=0.5), passes=v), [1, 3, 9]),
    "Handover, after": (
        lambda v: Handover(TLSTD(D, 4, lambda_=0.5), TD(D, step_size=0.03, lambda_=0.5), after=v), [20, 60, 10_000]
    ),
}  # fmt: skip

STREAMS: dict[str, dict[str, Any]] = {
    "episodes": {"terminate": 0.15, "truncate": 0.0, "sparse": True, "density": 0.6},
    "a continuing stream": {"terminate": 0.0, "truncate": 0.0, "gamma": 0.6},
    "time limits": {"terminate": 0.0, "truncate": 0.2, "gamma": 0.95},
    "off-policy": {"terminate": 0.1, "truncate": 0.1, "sparse": True, "density": 0.6},
}


@cache
def sample(kind: str, n_steps: int = 150, seed: int = 0) -> Transitions:
    """A stream whose rewards depend on its states, so that there is something to learn. The same for all who ask."""
    rng = np.random.default_rng(seed)
    steps = random_transitions(rng, n_features=D, n_steps=n_steps, **STREAMS[kind])
    for store in (steps.store, steps.next_store):
        values, ids = (store, slice(None)) if isinstance(store, np.ndarray) else (store.data, store.indices)
        values *= SCALES[ids]
    steps.rewards = dense(steps.X) @ np.array([2.0, -1.0, 0.5, 0.25, 0.0, 0.0]) + 0.3 * steps.rewards
    if kind == "off-policy":
        steps.rhos = rng.choice([0.8, 1.0, 1.2], n_steps)
    return steps


def dense(X: Any) -> FloatArray:
    return np.asarray(X if isinstance(X, np.ndarray) else X.todense())


REFERENCES: dict[tuple[Transitions, bytes], FloatArray] = {}


def reference(steps: Transitions, kept: bytes, training: Transitions) -> FloatArray:
    """The weights v0 that complete returns; they depend on the samples that are kept, not on what is chosen."""
    if (steps, kept) not in REFERENCES:
        A, b = batch_lstd(training, 0.9 if (steps.rhos == 1.0).all() else 0.0)
        REFERENCES[steps, kept] = np.linalg.pinv(A, rcond=1e-4) @ b[:, 0]
    return REFERENCES[steps, kept]


def written_out(make: Make, values: list[Any], steps: Transitions, made: Choice[Any], beta: float | None) -> FloatArray:
    """The score of each value as the documentation says, sample by sample; only who is in which fold is taken over."""
    n, X, X_next = len(steps), dense(steps.X), dense(steps.X_next)
    fold, group, rho, gamma = made.folds.fold, made.folds.group, steps.rhos, steps.discounts
    begins = np.array([t == 0 or group[t] != group[t - 1] for t in range(n)])
    ends = np.append(begins[1:], True)
    weight = np.array([1.0 if beta is None else (1.0 - beta) ** (n - 1 - t) for t in range(n)])
    tail = np.array(gamma)
    for t in reversed(range(n - 1)):
        tail[t] *= 1.0 if ends[t] else tail[t + 1]
    seen = weight[tail <= 0.02].sum() / weight.sum()
    completed = bool((rho != 1.0).any()) or seen < (0.75 if (gamma == 0.0).any() else 0.5)
    errors, total = np.zeros(len(values)), 0.0
    for held_out in sorted(set(fold.tolist())):
        kept = fold != held_out
        traces = np.where(begins, 0.0, steps.trace_discounts)[kept]
        columns = {"discounts": gamma[kept], "trace_discounts": traces, "rhos": rho[kept]}
        training = Transitions(X[kept], steps.rewards[kept], X_next[kept], **columns)
        v0 = reference(steps, kept.tobytes(), training) if completed else np.zeros(D)
        models = [make(value) for value in values]
        for model in models:
            model.update_many(training)
        predictions = np.array([model.predict(X) for model in models])
        G = 0.0
        for t in reversed(np.flatnonzero(~kept).tolist()):
            if ends[t]:
                G = X_next[t] @ v0 if completed else 0.0
            G = rho[t] * (steps.rewards[t] + gamma[t] * G) + (1.0 - rho[t]) * (X[t] @ v0)
            if completed or tail[t] <= 0.02:
                total += weight[t]
                errors += weight[t] * (predictions[:, t] - G) ** 2
    return errors / total


def assert_as_written(
    make: Make, values: list[Any], steps: Transitions, *, folds: int = 3, beta: float | None = None
) -> Choice[Any]:
    made = choose(make, values, steps, folds)
    assert made.decided
    expected = written_out(make, values, steps, made, beta)
    assert_allclose(made.scores, expected, rtol=1e-7)
    assert made.value == values[int(np.argmin(expected))]
    assert expected.max() > 1.00001 * expected.min()  # there is something to choose
    return made


OF_ATD = [name for name in PARAMETERS if name.startswith("ATD")]
CASES = [(name, kind) for i, name in enumerate(PARAMETERS) for kind in np.roll(list(STREAMS), -i)[:2].tolist()]
CASES = [case for case in CASES if case[0] not in OF_ATD] + list(zip(OF_ATD, [*STREAMS, *STREAMS], strict=False))
"""Each parameter on two kinds of streams, and neighbours in the table on two pairs of kinds that overlap.

Those of ATD, which takes its time, on one each, and together on all kinds.
"""


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_value_chosen_has_the_least_score(name: str, kind: str) -> None:
    make, values = PARAMETERS[name]
    if kind == "off-policy" and name.startswith("TrueOnlineTD"):
        with pytest.raises(InvalidParameterError, match=r"every one of the 3 values failed.*rho"):
            choose(make, values, sample(kind))
        return
    made = assert_as_written(make, values, sample(kind), folds=2 if name.startswith("ATD") else 3)  # ATD takes its time
    assert ("completed by a reference" in made.note) == (kind in ("time limits", "off-policy"))


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda v: LSTD(D, lambda_=0.5, rcond=v, beta=0.01), CUTOFFS),
        (lambda v: TLSTD(D, v, lambda_=0.5, beta=0.01), [1, 3, 6]),
        (lambda v: KrylovLSTD(D, lambda_=0.5, dimension=v, beta=0.01), [1, 3, 6]),
    ],
    ids=["LSTD, rcond", "TLSTD, rank", "KrylovLSTD, dimension"],
)
def test_with_beta_samples_are_scored_by_their_weights(make: Make, values: list[Any], kind: str) -> None:
    assert_as_written(make, values, sample(kind, 200), beta=0.01)


def test_every_estimator_is_tried() -> None:
    """A number that a constructor takes is tried here, or is known not to be one to choose by held-out data."""
    tried = {tuple(name.split(", ")[:2]) for name in PARAMETERS}
    not_to_choose = {
        "n_features",
        "n_targets",
        "memory_limit",
        "beta",
        "buffer_size",
        "max_samples",
        "seed",
        "patience",
    }
    others = {("ILSTD", "coordinates_per_step"), ("Handover", "settled")}  # time and patience, not error
    for name in ("ATD", "Handover", "ILSTD", "KrylovLSTD", "LSTD", "Replay", "TD", "TLSTD", "TrueOnlineTD"):
        signature = inspect.signature(getattr(tlstd, name))
        for argument, parameter in signature.parameters.items():
            words = str(parameter.annotation)
            is_number = "int" in words or "float" in words or "StepSize" in words
            if is_number and argument not in not_to_choose and (name, argument) not in others:
                assert (name, argument) in tried


# --- ties and too little to tell ------------------------------------------------------------------------------------


def test_ties_go_to_the_first() -> None:
    """Cut-offs that leave out nothing, or differ by less than 10⁻⁶ in score, are the same."""
    steps = sample("episodes")
    for values in ([1e-9, 0.0], [0.0, 1e-9]):
        assert choose(lambda v: LSTD(D, lambda_=0.5, rcond=v), values, steps).value == values[0]
    for values in ([1e-12, 0.0], [0.0, 1e-12]):
        made = choose(lambda v: LSTD(D, lambda_=0.5, tikhonov=v, rcond=0.0), values, steps)
        assert made.value == values[0]
        assert made.scores[0] != made.scores[1] or values[0] == 0.0


@pytest.mark.parametrize(
    ("kind", "n_steps", "rhos", "beta", "why"),
    [
        ("episodes", 80, None, None, "80 held-out states count as 80, fewer than 100"),
        ("episodes", 400, [0.01, 20.0], None, "by their importance ratios, fewer than 100"),
        ("episodes", 400, None, 0.2, "held-out states count as 9, fewer than 100"),
        ("a continuing stream", 3, None, None, "returns in only 3 episodes or blocks, fewer than 4"),
    ],
)
def test_too_little_to_tell(kind: str, n_steps: int, rhos: Any, beta: float | None, why: str) -> None:
    steps = sample(kind, n_steps)[:]  # others ask for the same
    if rhos is not None:
        steps.rhos = np.random.default_rng(1).choice(rhos, n_steps)
    for otherwise in (None, 3):
        made = choose(lambda v: TLSTD(D, v, lambda_=0.5, beta=beta), [1, 3, 6], steps, otherwise=otherwise)
        assert (made.value, made.decided) == (otherwise or 1, False)
        assert why in made.note
        assert np.isnan(made.scores).all()
