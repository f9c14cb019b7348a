"""Tasks: errors of all dimensions of one Krylov path, and of all ranks of one decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray
from tlstd.core.svd import svd
from tlstd.core.threads import one_thread
from tlstd.data.transitions import Transitions
from tlstd.krylov.arnoldi import KrylovPath
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd_lab.problems import KnownProcess, Problem, problem, stream, visited
from tlstd_lab.processes.garnet import garnet_off_policy


def dimension(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """RMSE of the solutions in the first m Krylov directions, m as in ``dimensions``.

    Settings: ``problem``, ``n_samples``, ``lambda_``, ``dimensions``. Columns: ``residual`` (least residual, what
    Krylov LSTD uses) and ``galerkin``, at the problem's states; ``residual_visited`` at states of another stream. A
    path that ends before keeps its last solution.
    """
    model = learned(stream(settings["problem"], settings["n_samples"], seed), settings["lambda_"])
    path, there = path_of(model, max(settings["dimensions"])), visited(settings["problem"])
    made, found = problem(settings["problem"]), {}
    for name, where, method in (
        ("residual", made, path.coordinates),
        ("residual_visited", there, path.coordinates),
        ("galerkin", made, path.galerkin),
    ):
        on_basis = columns(where, model) @ path.Q.T
        found[name] = np.array([rmse(where, on_basis, method(m)) for m in settings["dimensions"]])
    return found


def garnet(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """The same on an off-policy Garnet of this seed's own, with t-LSTD's ranks from one decomposition.

    Settings: ``n_states``, ``n_features``, ``n_samples``, ``lambda_``, ``dimensions``. Columns: ``residual``,
    ``galerkin``, ``rank`` (A with only its leading singular values inverted), each over the root of the mean squared
    value.
    """
    process = garnet_off_policy(
        settings["n_states"], 4, 5, settings["n_features"], np.random.default_rng(seed), gamma=0.95, features="binary"
    )
    steps = process.sample(settings["n_samples"], np.random.default_rng([seed, 1]))
    model = learned(steps, settings["lambda_"])
    path, X, truth = path_of(model, max(settings["dimensions"])), process.X[:, model.seen_ids], process.values()
    size = float(np.sqrt(np.mean(truth**2)))

    def error(values: FloatArray) -> float:
        return float(np.sqrt(np.mean((values - truth) ** 2))) / size

    operator = model.operator()
    with one_thread():
        U, sigma, Vt = svd(operator.matvec(np.eye(operator.n)))
    on_basis, on_v, on_u = X @ path.Q.T, X @ Vt.T, (U.T @ operator.b()[:, 0]) / sigma
    found: dict[str, list[float]] = {"residual": [], "galerkin": [], "rank": []}
    for m in settings["dimensions"]:
        for name, y in (("residual", path.coordinates(m)), ("galerkin", path.galerkin(m))):
            found[name].append(error(on_basis[:, : y.size] @ y))
        found["rank"].append(error(on_v[:, :m] @ on_u[:m]))
    return {name: np.array(errors) for name, errors in found.items()}


def learned(steps: Transitions, lambda_: float) -> KrylovLSTD:
    """A model that has all samples."""
    model = KrylovLSTD(steps.n_features, lambda_=lambda_, dimension=1)
    model.update_many(steps)
    return model


def path_of(model: KrylovLSTD, dimension: int) -> KrylovPath:
    """The Krylov path of this length over the features seen."""
    operator = model.operator()
    arnoldi = operator.arnoldi()
    arnoldi.extend(dimension)
    return arnoldi.paths[0]


def columns(where: Problem | KnownProcess, model: KrylovLSTD) -> Any:
    """Features of the problem's states, those that were seen."""
    X = where.X if isinstance(where.X, np.ndarray) else sp.csc_array(where.X)
    return X[:, model.seen_ids]


def rmse(where: Problem | KnownProcess, on_basis: FloatArray, y: FloatArray) -> float:
    """Error of a solution with these coordinates."""
    return where.rmse(on_basis[:, : y.size] @ y)
