"""Task: how far the truncated SVD is from the best one of its rank, along a stream that may change."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd.domains.mountain_car import MountainCar
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.problems import problem, stream

BOTTOM = -np.pi / 6.0
"""Of Mountain Car's valley."""


def halves(name: str, n_steps: int, change_at: int, seed: int) -> Transitions:
    """Single steps of Mountain Car from random states left of the valley, then right of it: hardly a common feature."""
    made = problem(name)
    car = made.domain
    assert isinstance(car, MountainCar)
    states = car.start(8 * n_steps, np.random.default_rng(seed))
    left, right = states[states[:, 0] < BOTTOM][:change_at], states[states[:, 0] >= BOTTOM]
    states = np.concatenate([left, right])[:n_steps]
    after, rewards, terminated = car.step(states, car.policy().function(states))
    return Transitions(
        made.features.encode_many(states),
        rewards,
        made.features.encode_many(after),
        discounts=np.where(terminated, 0.0, car.gamma),
        trace_discounts=np.zeros(n_steps),
    )


def distance(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """‖A_t − UΣVᵀ‖_F over the Eckart–Young optimum, and the share of the best left subspace that U holds.

    Settings: ``problem``, ``rank``, ``beta`` (None: running average), ``steps``, ``points``, and ``change_at`` if the
    stream changes.
    """
    n_steps, rank, beta = settings["steps"], settings["rank"], settings["beta"]
    if settings["change_at"] is None:
        steps = stream(settings["problem"], n_steps, seed)
    else:
        steps = halves(settings["problem"], n_steps, settings["change_at"], seed)
    exact = LSTD(steps.n_features, lambda_=0.0, beta=beta)
    model = TLSTD(steps.n_features, rank, lambda_=0.0, beta=beta)
    rows = []
    for points in np.array_split(np.arange(n_steps), settings["points"]):
        part = steps[int(points[0]) : int(points[-1]) + 1]
        exact.update_many(part)
        model.update_many(part)
        ids, A, _ = exact.system()
        rows.append((points[-1] + 1, *compare(ids, A, model)))
    samples, ratio, overlap = np.array(rows, dtype=np.float64).T
    return {"samples": samples.astype(np.int64), "ratio": ratio, "overlap": overlap}


def compare(ids: IntArray, A: FloatArray, model: TLSTD) -> tuple[float, float]:
    """Distance over the least possible, and overlap, for the system A of the features ``ids``."""
    seen, U, sigma, V = model.factors()
    every = np.zeros((2, model.n_features, sigma.size))
    every[:, seen] = U, V
    U, V = every[:, ids]  # rows in the order of LSTD's features
    best_U, best_sigma, _ = np.linalg.svd(A)
    best = np.sqrt((best_sigma[model.rank :] ** 2).sum())
    overlap = np.linalg.norm(best_U[:, : model.rank].T @ U) ** 2 / sigma.size
    return float(np.linalg.norm(A - (U * sigma) @ V.T) / best), float(overlap)
