"""Logs that can be trusted, and logs that cannot: each made by a seed, with what to ask and what should be said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from tlstd_lab.energy_programme import optimal_policy

from tests.evaluation.logs import play, pole_policy, random_decisions, simulated
from tlstd import Log, boyan_chain, random_walk
from tlstd.core.arrays import FloatArray
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.domains.mountain_car import MountainCar
from tlstd.features.columns import Columns
from tlstd.streams import trajectory


class Case(NamedTuple):
    """A log, and how it is asked."""

    log: Log
    options: dict[str, Any]


Maker = Callable[[int], Case]


def first_part(case: Case, share: float) -> Case:
    """The first episodes of a log, or the first steps of a stream."""
    log = case.log
    if log.n_episodes > 1:
        return Case(log.select(np.arange(round(share * log.n_episodes))), case.options)
    n = round(share * len(log))
    return Case(Log.from_arrays(log.observations[:n], log.rewards[:n]), case.options)


def process_log(process: MarkovRewardProcess, n_steps: int, seed: int) -> Log:
    """States of a Markov reward process by their numbers."""
    path = process.trajectory(n_steps, np.random.default_rng(seed))
    following = np.where(path.terminated, path.states, path.next_states)
    return Log.from_arrays(
        path.states,
        path.rewards,
        terminated=path.terminated,
        truncated=path.truncated,
        next_observations=following,
        discrete=True,
    )


def domain_log(domain: Any, n_steps: int, seed: int, **options: Any) -> Log:
    """A log of a simulated domain."""
    path = trajectory(domain, n_steps=n_steps, seed=seed, **options)
    seen = domain.observe(path.states)
    return Log.from_arrays(
        seen[path.rows],
        path.rewards,
        actions=path.actions[:, None],
        terminated=path.terminated,
        truncated=path.truncated,
        next_observations=seen[path.rows + 1],
    )


# --- sound ----------------------------------------------------------------------------------------------------------


def walk(seed: int) -> Case:
    return Case(process_log(random_walk(19, gamma=0.97), 8_000, seed), {"gamma": 0.97})


def boyan(seed: int) -> Case:
    return Case(process_log(boyan_chain(), 1_500, seed), {"gamma": 1.0})


def garnet_on(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    process = random_decisions(rng, 20, 3, 3, 0.05)
    return Case(simulated(process, rng.dirichlet(np.ones(3), 20), rng, 4_000, 60), {"gamma": 0.95})


def garnet_off(seed: int, known: bool = True) -> Case:
    rng = np.random.default_rng(seed)
    process = random_decisions(rng, 20, 3, 3, 0.05)
    behaviour = rng.dirichlet(np.full(3, 3.0), 20)
    target = 0.5 * behaviour + 0.5 * np.roll(behaviour, 1, axis=1)
    log = simulated(process, behaviour, rng, 6_000, 60, known=known)
    return Case(log, {"gamma": 0.9, "policy": lambda states: target[states]})


def garnet_action_values(seed: int) -> Case:
    return garnet_off(seed, known=False)


def mountain_car(seed: int) -> Case:
    return Case(domain_log(MountainCar(), 5_000, seed), {"gamma": 0.99})


def pole(seed: int) -> Case:
    return Case(play("CartPole-v1", pole_policy(0.5), 80, known=False, limit=200, seed=seed), {"gamma": 0.95})


def pole_off(seed: int) -> Case:
    log = play("CartPole-v1", pole_policy(0.6), 60, known=False, limit=200, seed=seed)
    return Case(log, {"gamma": 0.9, "policy": pole_policy(0.4)})


def frozen_lake(seed: int) -> Case:
    def careful(states: Any) -> FloatArray:
        chances = np.zeros((len(states), 4))
        chances[:] = [0.1, 0.4, 0.4, 0.1]
        return chances

    return Case(play("FrozenLake-v1", careful, 400, known=False, limit=100, seed=seed), {"gamma": 0.95})


def stream(seed: int, n: int = 6_000) -> Case:
    """A level that returns to its mean, and is paid."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n + 1, 2))
    for t in range(n):
        x[t + 1] = [0.9, 0.6] * x[t] + rng.standard_normal(2)
    rewards = x[:n, 0] + 0.5 * x[:n, 1] + rng.standard_normal(n)
    return Case(Log.from_arrays(x[:n], rewards), {"gamma": 0.9})


def energy(seed: int) -> Case:
    domain = EnergyStorage()
    log = domain_log(domain, 6_000, seed, policy=optimal_policy(domain))
    return Case(Log.from_arrays(log.observations, log.rewards), {"gamma": 0.8})


def regulator(seed: int, n_episodes: int = 120, gain: float = 0.5, noise: float = 0.5, length: int = 30) -> Log:
    """A level that is steered to 0 by noisy, continuous actions; cut off after 30 steps."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(n_episodes):
        x = 2.0 * rng.standard_normal(2)
        for t in range(length):
            action = -gain * x[0] + noise * rng.standard_normal()
            after = np.array(
                [0.9 * x[0] + action + 0.2 * rng.standard_normal(), 0.8 * x[1] + 0.3 * rng.standard_normal()]
            )
            rows.append((episode, x, action, -(x[0] ** 2) - 0.1 * action**2, t == length - 1, after))
            x = after
    episodes, states, actions, rewards, cut, following = map(np.array, zip(*rows, strict=True))
    return Log.from_arrays(
        states,
        rewards,
        actions=actions[:, None],
        truncated=cut,
        terminated=np.zeros(len(rows), dtype=bool),
        episodes=episodes,
        next_observations=following,
    )


def regulator_on(seed: int) -> Case:
    return Case(regulator(seed), {"gamma": 0.9})


def regulator_off(seed: int) -> Case:
    return Case(regulator(seed), {"gamma": 0.9, "policy": lambda x: -0.6 * x[:, :1]})


SOUND: dict[str, Maker] = {
    "random walk": walk,
    "Boyan's chain": boyan,
    "Garnet": garnet_on,
    "Garnet, another policy, ratios": garnet_off,
    "Garnet, another policy, action values": garnet_action_values,
    "Mountain Car": mountain_car,
    "CartPole": pole,
    "CartPole, another policy": pole_off,
    "FrozenLake": frozen_lake,
    "stream": stream,
    "energy storage": energy,
    "regulator": regulator_on,
    "regulator, another policy": regulator_off,
}

# --- failures -------------------------------------------------------------------------------------------------------


def unsupported(seed: int) -> Case:
    """The behaviour never does what the policy always does, in half of the states."""
    rng = np.random.default_rng(seed)
    process = random_decisions(rng, 20, 3, 3, 0.05)
    behaviour = rng.dirichlet(np.full(3, 3.0), 20)
    behaviour[::2, 2] = 0.0
    behaviour /= behaviour.sum(axis=1, keepdims=True)
    log = simulated(process, behaviour, rng, 6_000, 60)
    return Case(log, {"gamma": 0.9, "policy": lambda states: np.full(len(states), 2)})


def wrong_probabilities(seed: int) -> Case:
    """A log that says that every action had the same probability."""
    case = garnet_off(seed)
    assert case.log.probabilities is not None
    return Case(replace(case.log, probabilities=np.full(len(case.log), 1 / 2)), case.options)


def unsupported_continuous(seed: int) -> Case:
    """A controller five times as strong as any that was logged."""
    return Case(regulator(seed), {"gamma": 0.9, "policy": lambda x: 2.5 * x[:, :1] + 4.0})


def limits_for_ends(seed: int) -> Case:
    """A time limit of 30 steps that is flagged as terminated."""
    log = regulator(seed)
    return Case(replace(log, terminated=log.truncated, truncated=log.terminated), {"gamma": 0.97})


def ends_for_limits(seed: int) -> Case:
    """A walk that ends at both sides, logged without flags."""
    log = process_log(random_walk(19, gamma=0.97), 8_000, seed)
    names = np.repeat(np.arange(log.n_episodes), np.diff(log.episodes))
    return Case(Log.from_arrays(log.observations, log.rewards, episodes=names, discrete=True), {"gamma": 0.97})


def one_episode(seed: int) -> Case:
    """A reward of 1,000 once, where others are about 1."""
    log = domain_log(MountainCar(), 4_000, seed)
    rewards = log.rewards.copy()
    a = log.episodes[log.n_episodes // 3]
    rewards[a] -= 20_000.0
    return Case(replace(log, rewards=rewards), {"gamma": 0.95})


def far_starts(seed: int) -> Case:
    """Asked for states that are ten times as large as any."""
    return Case(regulator(seed), {"gamma": 0.9, "start": np.array([[30.0, 30.0], [-40.0, 20.0], [0.0, 50.0]])})


def long_horizon(seed: int) -> Case:
    """γ of 0.9999 for episodes that are cut off after 30 steps."""
    return Case(regulator(seed), {"gamma": 0.9999})


def short_horizon(seed: int) -> Case:
    """γ of 0.8 where all that is paid comes at the end, after some 100 steps."""
    log = domain_log(MountainCar(), 8_000, seed)
    long = np.flatnonzero(np.diff(log.episodes) > 60)
    rewards = np.where(log.terminated, 1.0, 0.0)
    rows = np.concatenate([np.arange(log.episodes[e], log.episodes[e + 1]) for e in long.tolist()])
    names = np.repeat(np.arange(long.size), np.diff(log.episodes)[long])
    return Case(
        Log.from_arrays(log.observations[rows], rewards[rows], terminated=log.terminated[rows], episodes=names),
        {"gamma": 0.8},
    )


def drifting(seed: int) -> Case:
    """Halfway the rewards change."""
    log = process_log(boyan_chain(), 1_500, seed)
    late = np.arange(len(log)) > len(log) // 2
    return Case(replace(log, rewards=np.where(late, 0.5 * log.rewards, log.rewards)), {"gamma": 1.0})


def learning(seed: int) -> Case:
    """A log of somebody who learns: CartPole, better and better."""
    parts = [
        play("CartPole-v1", pole_policy(e), 25, known=False, limit=200, seed=seed * 7 + i)
        for i, e in enumerate((1.0, 0.8, 0.5, 0.3))
    ]
    names = np.concatenate(
        [np.repeat(np.arange(p.n_episodes), np.diff(p.episodes)) + 100 * i for i, p in enumerate(parts)]
    )
    return Case(
        Log.from_arrays(
            np.concatenate([p.observations for p in parts]),
            np.concatenate([p.rewards for p in parts]),
            terminated=np.concatenate([p.terminated for p in parts]),
            truncated=np.concatenate([p.truncated for p in parts]),
            episodes=names,
        ),
        {"gamma": 0.98},
    )


def hidden_speed(seed: int) -> Case:
    """Mountain Car, without the speed."""
    log = domain_log(MountainCar(), 5_000, seed)
    return Case(replace(log, observations=log.observations[:, :1], final=log.final[:, :1]), {"gamma": 0.99})


def hidden_mode(seed: int) -> Case:
    """A machine that is well or ill for a whole episode; seen is something else."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(10, 40, 150)
    names = np.repeat(np.arange(150), lengths)
    rewards = rng.standard_normal(names.size) + 3.0 * (rng.random(150) < 0.5)[names]
    ended = np.append(np.diff(names) != 0, True)
    seen = rng.standard_normal((names.size, 2))
    return Case(Log.from_arrays(seen, rewards, terminated=ended, episodes=names), {"gamma": 0.9})


def few(seed: int) -> Case:
    """Six episodes."""
    return Case(play("CartPole-v1", pole_policy(0.5), 6, known=False, limit=200, seed=seed), {"gamma": 0.95})


def linear_features(seed: int) -> Case:
    """A value that is a hill, and features that are straight lines."""
    return Case(regulator(seed), {"gamma": 0.9, "features": Columns(2)})


FAILURES: dict[str, tuple[str, Maker]] = {  # the checks, one of which should be red or amber
    "unsupported actions": ("silence", unsupported),
    "unsupported continuous actions": ("actions", unsupported_continuous),
    "wrong probabilities": ("ratios", wrong_probabilities),
    "time limits taken for ends": ("ends", limits_for_ends),
    "ends taken for time limits": ("ends", ends_for_limits),
    "one episode carries everything": ("influence", one_episode),
    "far start states": ("starts", far_starts),
    "γ beyond the episodes": ("horizon", long_horizon),
    "γ before the rewards": ("horizon", short_horizon),
    "rewards that change": ("stationarity", drifting),
    "a policy that learns": ("stationarity", learning),
    "hidden speed": ("residuals", hidden_speed),
    "hidden mode": ("residuals", hidden_mode),
    "features that are lines": ("residuals calibration", linear_features),
    "too few episodes": ("episodes", few),
}
