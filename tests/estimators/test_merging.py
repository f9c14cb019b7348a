"""Merging models: against models that learned from everything, for every kind of storage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from tlstd import (
    LSTD,
    TD,
    TLSTD,
    InvalidInputError,
    KrylovLSTD,
    ProjectedLSTD,
    SketchedLSTD,
    Transitions,
    load,
    merge,
)
from tlstd.estimators.base import Factory, LinearEstimator

N = 12

EXACT: dict[str, Factory] = {
    "LSTD": lambda n, **o: LSTD(n, lambda_=0.7, **o),
    "LSTD, ridge": lambda n, **o: LSTD(n, lambda_=0.7, ridge=0.1, **o),
    "LSTD, recursive": lambda n, **o: LSTD(n, lambda_=0.7, solver="recursive", **o),
    "LSTD, replacing": lambda n, **o: LSTD(n, lambda_=0.7, trace="replacing", **o),
    "TLSTD": lambda n, **o: TLSTD(n, n, lambda_=0.7, **o),
    "TLSTD, projected": lambda n, **o: TLSTD(n, n, lambda_=0.7, reads="projected", buffer_size=16, **o),
    "TLSTD, replacing": lambda n, **o: TLSTD(n, n, lambda_=0.7, trace="replacing", **o),
    "KrylovLSTD": lambda n, **o: KrylovLSTD(n, lambda_=0.7, dimension=N, **o),
    "ProjectedLSTD": lambda n, **o: ProjectedLSTD(n, 5, lambda_=0.7, **o),
    "SketchedLSTD": lambda n, **o: SketchedLSTD(n, 5, lambda_=0.7, **o),
    "KrylovLSTD, ridge": lambda n, **o: KrylovLSTD(n, lambda_=0.7, ridge=0.1, dimension=N, **o),
}


def steps(n: int, seed: int, *, dense: bool = False, only: slice = slice(0, N), n_targets: int = 1) -> Transitions:
    """Transitions with ratios, ends and cuts; the last feature is a constant. ``only`` says which others occur."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n + 1, N))
    for row in X:
        row[rng.choice(np.arange(N - 1)[only], 2, replace=False)] = rng.uniform(0.5, 1.5, 2)
    X[:, -1] = 1.0
    rewards = rng.standard_normal((n, n_targets))
    made = Transitions.from_arrays(
        X[:-1],
        rewards[:, 0] if n_targets == 1 else rewards,
        X[1:],
        terminated=rng.random(n) < 0.1,
        truncated=rng.random(n) < 0.1,
        rhos=rng.uniform(0.2, 1.5, n) if seed % 2 else None,
        gamma=0.9,
    )
    return made if dense else _sparse(made)


def _sparse(made: Transitions) -> Transitions:
    columns = {"discounts": made.discounts, "trace_discounts": made.trace_discounts, "rhos": made.rhos}
    return Transitions(sp.csr_array(made.X), made.rewards, sp.csr_array(made.X_next), **columns)


PARTS = {
    "sparse": [steps(70, 0), steps(40, 1), steps(90, 2)],
    "features that only one part has": [steps(50, 1, only=slice(0, 5)), steps(50, 2, only=slice(4, 11)), steps(60, 3)],
    "one sample, none, many": [steps(1, 0), steps(0, 1), steps(120, 3)],
}
DENSE = {
    "dense": [steps(150, 0, dense=True), steps(40, 1, dense=True)],
    "dense after sparse": [steps(70, 0, only=slice(0, 4)), steps(140, 1, dense=True)],
    "sparse after dense": [steps(140, 1, dense=True), steps(70, 0, only=slice(3, 7))],
}


@pytest.mark.parametrize(
    ("name", "parts"),
    # replacing traces are for sparse features
    [(name, parts) for name in EXACT for parts in PARTS | ({} if "replacing" in name else DENSE)],
)
def test_parts_make_the_whole(name: str, parts: str, tmp_path: Path) -> None:
    """Also after more samples, and after a copy on the disk."""
    data = (PARTS | DENSE)[parts]
    models, whole = [EXACT[name](N) for _ in data], EXACT[name](N)
    for i, (model, part) in enumerate(zip(models, data, strict=True)):
        model.update_many(part)
        if i:  # a trace does not pass from one model to the next
            part = restarted(part)
        whole.update_many(part)
    merged = merge(models)
    np.testing.assert_allclose(merged.weights, whole.weights, rtol=1e-8, atol=1e-8)
    merged.save(tmp_path / "model")
    merged = load(tmp_path / "model")
    for model in (merged, whole):
        model.update_many(steps(45, 4))
    assert merged.n_updates == whole.n_updates
    np.testing.assert_allclose(merged.weights, whole.weights, rtol=1e-8, atol=1e-8)


def restarted(part: Transitions) -> Transitions:
    """The same with a trace that starts empty."""
    trace_discounts = part.trace_discounts.copy()
    trace_discounts[:1] = 0.0
    columns = {"discounts": part.discounts, "trace_discounts": trace_discounts, "rhos": part.rhos}
    return Transitions(part.X, part.rewards, part.X_next, **columns)


def test_several_targets() -> None:
    """Each target's b adds."""
    data = [steps(80, 0, n_targets=3), steps(90, 1, n_targets=3)]
    for factory in EXACT.values():
        models, whole = [factory(N, n_targets=3) for _ in data], factory(N, n_targets=3)
        for model, part in zip(models, data, strict=True):
            model.update_many(part)
            whole.update_many(restarted(part))
        np.testing.assert_allclose(merge(models).weights, whole.weights, rtol=1e-8, atol=1e-8)


def test_truncated_models_are_the_best_of_their_sum() -> None:
    """Factors of a small rank join into the leading ones of the weighted sum of what the models have."""
    models = [TLSTD(N, 4, lambda_=0.5) for _ in range(2)]
    for seed, model in enumerate(models):
        model.update_many(steps(100 + 50 * seed, seed))
    total = np.zeros((N, N))
    for model in models:
        ids, U, sigma, V = model.factors()
        total[np.ix_(ids, ids)] += model.n_updates / 250 * (U * sigma) @ V.T
    ids, U, sigma, V = merge(models).factors()
    left, values, right = np.linalg.svd(total)
    found = np.zeros((N, N))
    found[np.ix_(ids, ids)] = (U * sigma) @ V.T
    np.testing.assert_allclose(sigma, values[:4], rtol=1e-10)
    np.testing.assert_allclose(found, (left[:, :4] * values[:4]) @ right[:4], atol=1e-12)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (TD(N, step_size=0.1, lambda_=0.5), "depends on the order"),
        (LSTD(N, lambda_=0.5, beta=0.1), "beta=0.1"),
        (TLSTD(N, 3, lambda_=0.5, subspace_lambda=1.0), "subspace_lambda=1.0"),
        (KrylovLSTD(N, lambda_=0.5, reads="stream"), "merge models that keep all"),
        (KrylovLSTD(N, lambda_=0.5, max_samples=10), "merge models that keep all"),
    ],
)
def test_refusals_say_why(model: LinearEstimator, why: str) -> None:
    """What depends on the order of all samples is refused; one model alone is a copy."""
    with pytest.raises(InvalidInputError, match=why):
        merge([model, model])
    assert merge([model]) is not model


def test_bad_arguments() -> None:
    """Named, with the remedy."""
    model = LSTD(N, lambda_=0.5)
    for given, why in (
        ([], "no models to merge"),
        ([model, LSTD(N, lambda_=0.6)], r"model 1 has lambda_=0.6 and the first 0.5"),
        ([model, LSTD(N + 1, lambda_=0.5)], r"n_features=13"),
        ([model, TLSTD(N, 3, lambda_=0.5)], "model 1 is a TLSTD and the first a LSTD"),
        ([model, None], "model 1 is NoneType"),
    ):
        with pytest.raises(InvalidInputError, match=why):
            merge(given)  # type: ignore[type-var]
