"""The systems that Theorem 1 is tried on: limits that are known exactly, and what stands for averages of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import expm

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.domains import MarkovRewardProcess, boyan_chain, random_walk
from tlstd_lab.processes import garnet

SEED = 2016
RANKS_PER_CASE = 4
System: TypeAlias = tuple[FloatArray, FloatArray]


class Case(NamedTuple):
    """A limit A, b and what stands for the average of samples."""

    A: FloatArray
    b: FloatArray
    A_t: FloatArray
    b_t: FloatArray


def sampled(process: MarkovRewardProcess, lambda_: float, n_steps: int, rng: np.random.Generator) -> System:
    """A_t and b_t of LSTD(λ) along a stream, in the order of the features."""
    model = LSTD(process.n_features, lambda_=lambda_)
    model.update_many(process.sample(n_steps, rng))
    ids, A, b = model.system()
    d = process.n_features
    A_t, b_t = np.zeros((d, d)), np.zeros(d)
    A_t[np.ix_(ids, ids)], b_t[ids] = A, b[:, 0]
    return A_t, b_t


def _along_stream(process: MarkovRewardProcess, rng: np.random.Generator, most: int = 10_000) -> Case:
    lambda_ = float(rng.choice([0.0, 0.5, 0.9, 1.0]))
    n_steps = int(np.exp(rng.uniform(np.log(20.0), np.log(most))))
    return Case(*process.system(lambda_), *sampled(process, lambda_, n_steps, rng))


def _garnet(rng: np.random.Generator) -> MarkovRewardProcess:
    n = int(rng.integers(10, 61))
    d = int(rng.integers(3, min(n, 25) + 1))
    kind = "binary" if rng.random() < 0.5 else "gaussian"
    return garnet(n, 2, 3, d, rng, gamma=float(rng.choice([0.5, 0.9, 0.99])), features=kind)  # type: ignore[arg-type]


def _garnet_stream(rng: np.random.Generator) -> Case:
    return _along_stream(_garnet(rng), rng)


def _redundant_stream(rng: np.random.Generator) -> Case:
    n = int(rng.integers(5, 13))
    return _along_stream(garnet(n, 2, 3, int(rng.integers(n + 1, 2 * n + 1)), rng, gamma=0.9), rng)


def _boyan_stream(rng: np.random.Generator) -> Case:
    return _along_stream(boyan_chain(int(rng.choice([13, 25, 41, 61]))), rng)


def _walk_stream(rng: np.random.Generator) -> Case:
    features = str(rng.choice(["tabular", "inverted", "dependent"]))
    n, gamma = int(rng.choice([5, 11, 19, 31])), float(rng.choice([0.9, 1.0]))
    return _along_stream(random_walk(n, gamma=gamma, features=features), rng)  # type: ignore[arg-type]


def _cycle_stream(rng: np.random.Generator) -> Case:
    """States in a fixed order, one feature each: no noise in the values, so that b_t = A_t w*; and σ come in pairs."""
    n = int(rng.integers(4, 21))
    gamma = float(rng.choice([0.5, 0.9, 0.99]))
    process = MarkovRewardProcess(np.roll(np.eye(n), 1, axis=1), rng.standard_normal(n), np.eye(n), gamma=gamma)
    return _along_stream(process, rng, most=200)


def _perturbed(rng: np.random.Generator) -> Case:
    """Gaussian noise instead of sampling."""
    A, b = _garnet(rng).system(0.0)
    size = 10.0 ** rng.uniform(-4.0, 0.0)
    noise = rng.standard_normal(A.shape) * np.linalg.norm(A, 2) / np.sqrt(b.size)
    return Case(A, b, A + size * noise, b + size * rng.standard_normal(b.size) * np.abs(b).mean())


def _turned(rng: np.random.Generator) -> Case:
    """A with its right singular vectors turned, and b_t = A_t w*: the noise term of the bound is zero."""
    A, b = _garnet(rng).system(0.0)
    skew = rng.standard_normal(A.shape)
    A_t = A @ expm(10.0 ** rng.uniform(-4.0, 0.0) * (skew - skew.T) / np.sqrt(b.size))
    return Case(A, b, A_t, A_t @ np.linalg.lstsq(A, b, rcond=1e-12)[0])


def _repeated(rng: np.random.Generator) -> Case:
    """Each singular value of A occurs three times; b_t = A_t w*."""
    d = 3 * int(rng.integers(2, 6))
    U, V = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    sigma = np.repeat(np.sort(rng.random(d // 3))[::-1], 3)
    A = (U * sigma) @ V.T
    A_t = A + 10.0 ** rng.uniform(-8.0, -1.0) * rng.standard_normal((d, d))
    w = V @ (sigma * rng.choice([-1.0, 1.0], d))
    return Case(A, A @ w, A_t, A_t @ w)


FAMILIES: dict[str, Callable[[np.random.Generator], Case]] = {
    "Garnet": _garnet_stream,
    "redundant Garnet": _redundant_stream,
    "Boyan chain": _boyan_stream,
    "random walk": _walk_stream,
    "cycle": _cycle_stream,
    "Gaussian noise": _perturbed,
    "turned": _turned,
    "repeated σ": _repeated,
}


def of_family(family: str, n: int, seed: int = SEED) -> Iterator[tuple[Case, list[int]]]:
    """``n`` cases of a family with the ranks at which they are looked at."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    for _ in range(n):
        case = FAMILIES[family](rng)
        d = case.b.size
        ranks = rng.choice(np.arange(1, d + 1), min(d, RANKS_PER_CASE), replace=False)
        yield case, sorted(map(int, ranks))


def cases(n: int, seed: int = SEED) -> Iterator[tuple[str, Case, list[int]]]:
    """``n`` cases of each family."""
    for family in FAMILIES:
        for case, ranks in of_family(family, n, seed):
            yield family, case, ranks


# --- processes by name ----------------------------------------------------------------------------------------------


def cycle(n_states: int = 10) -> MarkovRewardProcess:
    """States in a fixed order, one feature each: the singular values of A come in pairs."""
    rewards = np.random.default_rng(SEED).standard_normal(n_states)
    return MarkovRewardProcess(np.roll(np.eye(n_states), 1, axis=1), rewards, np.eye(n_states), gamma=0.9)


def smooth_walk(n_states: int = 31, n_features: int = 16, width: float = 3.0) -> MarkovRewardProcess:
    """The random walk with Gaussian bumps as features: an ill-conditioned system."""
    walk = random_walk(n_states)
    places, centres = np.arange(n_states)[:, None], np.linspace(0.0, n_states - 1.0, n_features)
    ends = np.zeros(n_states)
    ends[[0, -1]] = -1.0, 1.0
    bumps = np.exp(-(((places - centres) / width) ** 2))
    return MarkovRewardProcess(
        walk.P, np.zeros(n_states), bumps, gamma=1.0, start=walk.start, termination_rewards=ends, name="smooth walk"
    )


ORACLES: dict[str, tuple[MarkovRewardProcess, float]] = {
    "random walk, λ=1": (random_walk(31, features="dependent"), 1.0),
    "walk with RBFs, λ=1": (smooth_walk(), 1.0),
    "Boyan chain, λ=0": (boyan_chain(61), 0.0),
}
"""Coefficients that decay faster than the singular values, as fast, and not at all."""
