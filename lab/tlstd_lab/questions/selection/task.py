"""Errors on a chain of twenty states with many features of noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd_lab.learning import make

STATES = 20


def chain() -> MarkovRewardProcess:
    """The chain of twenty states under its best policy: towards the nearer end, which fails once in ten times.

    A step from either end is rewarded by 1; γ=0.9. Features: a constant, and five radial basis functions.
    """
    P, places = np.zeros((STATES, STATES)), np.arange(STATES)
    for state in places:
        towards = -1 if state < STATES // 2 else 1
        for move, probability in ((towards, 0.9), (-towards, 0.1)):
            P[state, np.clip(state + move, 0, STATES - 1)] += probability
    centres = np.linspace(0.0, STATES - 1.0, 5)
    bumps = np.exp(-((places[:, None] - centres) ** 2) / (2.0 * 4.0**2))
    rewards = np.isin(places, (0, STATES - 1)).astype(np.float64)
    return MarkovRewardProcess(P, rewards, np.hstack([np.ones((STATES, 1)), bumps]), gamma=0.9)


def selection(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE over the states, and the number of weights that are not zero, for each number ``noise`` of noise features.

    Settings: ``estimator`` (see :func:`tlstd_lab.learning.make`), ``samples``, in episodes of 20 steps from random
    states, and ``noise`` (rising). Noise is normal and drawn anew at every step, also where values are asked for, ten
    times a state.
    """
    process, rng = chain(), np.random.default_rng(seed)
    n, most = settings["samples"], max(settings["noise"])
    episodes = [process.sample(20, rng) for _ in range(-(-n // 20))]
    sides = (
        np.concatenate([np.asarray(e.X) for e in episodes]),
        np.concatenate([np.asarray(e.X_next) for e in episodes]),
    )
    rewards = np.concatenate([episode.rewards for episode in episodes])[:n]
    starts = np.arange(n) % 20 == 0
    noise = rng.standard_normal((n + 1, most))  # the next row of a step is the row of the next step
    asked, asked_noise = np.tile(process.X, (10, 1)), rng.standard_normal((10 * STATES, most))
    errors, sizes = [], []
    for p in settings["noise"]:
        model = make(settings["estimator"], process.n_features + p)
        X, X_next = (np.hstack([side[:n], noise[i : n + i, :p]]) for i, side in enumerate(sides))
        discounts = np.full(n, process.gamma)
        steps = Transitions(X, rewards, X_next, discounts=discounts, trace_discounts=np.where(starts, 0.0, discounts))
        model.update_many(steps)
        values = model.predict(np.hstack([asked, asked_noise[:, :p]]))
        errors.append(float(np.sqrt(np.mean((values - np.tile(process.values(), 10)) ** 2))))
        sizes.append(int(np.count_nonzero(model.weights)))
    return {"n_noise": np.array(settings["noise"]), "rmse": np.array(errors), "n_weights": np.array(sizes)}
