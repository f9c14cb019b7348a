"""Tasks: policies from logs of random actions, and how good they are; policies improved while they act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from tlstd.control import GreedyPolicy, PolicyIteration, policy_iteration, sigma_point_policy_iteration
from tlstd.control.steps import action_steps
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.policies import EpsilonGreedy
from tlstd.estimators.base import LinearEstimator
from tlstd.features import FeatureMap, StateAction
from tlstd.logs.log import Log
from tlstd.streams import record
from tlstd_lab.learning import make
from tlstd_lab.questions.control.domains import Chain
from tlstd_lab.questions.control.problems import PROBLEMS, Powers, Problem, bumps

CHAINS: dict[str, tuple[Chain, Callable[[], FeatureMap], int]] = {
    "4 states": (Chain(4, (1, 2)), lambda: Powers(4, 2), 50),
    "20 states": (Chain(20, (0, 19)), lambda: Powers(20, 4), 5_000),
    "50 states, polynomials": (Chain(50, (9, 40)), lambda: Powers(50, 4), 10_000),
    "50 states, Gaussians": (Chain(50, (9, 40)), lambda: bumps(50, 10, 4.0), 10_000),
}
"""Section 9.1 of LSPI's publication: chain, features of states, samples."""
LITERAL: dict[str, Any] = {"center": False, "max_iterations": 20}
TRIAL_SEED = 77
"""Starts and noise of trials are the same for all policies."""


def _found(
    method: dict[str, Any], data: Log | Transitions, features: StateAction, **options: Any
) -> tuple[PolicyIteration, float]:
    """What a method finds, and its processor seconds; ``estimators`` in turn, or sigma points."""
    arguments = dict(method)
    began = process_time()
    if "about" in arguments:
        found = sigma_point_policy_iteration(data, features, **arguments, **options)
    else:
        makers: list[Callable[[int], LinearEstimator]] = [partial(make, one) for one in arguments.pop("estimators")]
        found = policy_iteration(data, features, makers, **arguments, **options)
    return found, process_time() - began


def chain(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """A policy for one of ``CHAINS`` from one random walk: ``chain``, ``method``, ``samples`` (a factor)."""
    world, features, n_steps = CHAINS[settings["chain"]]
    log = world.walk(round(n_steps * settings["samples"]), np.random.default_rng(seed))
    state_action = StateAction(features(), 2)
    start = np.zeros(state_action.n_features)  # left everywhere
    options = LITERAL | {"gamma": world.gamma, "start": start}
    if "about" not in settings["method"]:
        options["judge"] = "last"
    found, seconds = _found(settings["method"], log, state_action, **options)
    last = next(entry for entry in reversed(found.history) if entry.policy is not None)
    policy = GreedyPolicy(state_action, last.weights).greedy(np.arange(world.n_states))
    best = world.best()
    loss = 1.0 - world.values(policy).mean() / world.values(best).mean()
    return {
        "loss": np.array([loss]),
        "same": np.array([np.mean(policy == best)]),
        "converged": np.array([float(found.stopped == "converged")]),
        "iterations": np.array([float(len(found.history) - 1)]),
        "seconds": np.array([seconds]),
    }


def success(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """A policy for one of ``PROBLEMS`` from a random log, and its trials.

    Settings: ``problem``, ``method`` (as in ``_found``), ``steps`` or ``episodes`` of the log, ``starts`` of trials.
    """
    problem = PROBLEMS[settings["problem"]]()
    if "episodes" in settings:
        log = _episodes(problem, settings["episodes"], seed)
    else:
        log = problem.log(settings["steps"], seed)
    found, seconds = _found(settings["method"], log, problem.state_action, actions=problem.actions)
    rng = np.random.default_rng(TRIAL_SEED)
    starts = problem.domain.start(settings["starts"], rng)
    trial = problem.trial(found.policy, starts, rng)
    fixed = problem.trial(found.policy, problem.fixed_start, rng)
    return {
        "success": np.array([trial.success.mean()]),
        "balanced": np.array([trial.steps.mean()]),
        "fixed": fixed.success,
        "fixed_steps": fixed.steps,
        "converged": np.array([float(found.stopped == "converged")]),
        "iterations": np.array([float(len(found.history) - 1)]),
        "seconds": np.array([seconds]),
        "samples": np.array([len(log)]),
    }


def _episodes(problem: Problem, count: int, seed: int) -> Transitions:
    """Whole episodes of the random policy."""
    n_steps = 20 * count
    while True:
        steps = problem.log(n_steps, seed)
        first = np.flatnonzero(steps.trace_discounts == 0.0)
        if first.size > count:
            return steps[: int(first[count])]
        n_steps *= 2


def improvement(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """A policy that improves while it acts: steps to Mountain Car's goal after each round.

    In every round the ε-greedy policy of the present weights acts for ``steps``, one model goes on learning from them,
    x = φ(s, a) to x′ = Σ π(a|s′) φ(s′, a) of the policy that acted, and the weights are read. Settings: ``estimator``
    (with or without ``beta``), ``force`` of the engine in the second half, ``rounds``, ``steps``, ``epsilon``,
    ``starts``.
    """
    problem = PROBLEMS["Mountain Car"]()
    features, epsilon = problem.state_action, settings["epsilon"]
    model = make(settings["estimator"], features.n_features)
    children = np.random.SeedSequence(seed).spawn(settings["rounds"])
    rng = np.random.default_rng(TRIAL_SEED)
    starts = problem.domain.start(settings["starts"], rng)
    weights = np.zeros(features.n_features)
    mean_steps = []
    for number, child in enumerate(children):
        if number == len(children) // 2:
            problem = replace(problem, domain=MountainCar(force=settings["force"]))
        greedy = GreedyPolicy(features, weights)
        rate = 1.0 if number == 0 else epsilon
        acting = EpsilonGreedy(greedy.on(problem.domain), problem.actions, rate)
        path = record(problem.domain, acting, problem.features, n_steps=settings["steps"], seed=child, episode_cap=100)
        steps = action_steps(path, features, None, problem.actions)
        model.update_many(steps.transitions(steps.greedy(weights), rate))
        weights = model.weights
        mean_steps.append(problem.trial(GreedyPolicy(features, weights), starts, rng).steps.mean())
    samples = settings["steps"] * (1 + np.arange(len(children)))
    return {"samples": samples, "mean_steps": np.array(mean_steps)}
