from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.estimators.streams import LAMBDAS, ON_POLICY, assert_weights, learned_in_pieces
from tests.helpers import dense, pairwise, random_transitions
from tlstd.classic.td import TD
from tlstd.classic.true_online_td import TrueOnlineTD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.domains.boyan_chain import boyan_chain
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.domains.random_walk import random_walk
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.estimators.step_sizes import Decay, StepSize, as_schedule


def literal_true_online(
    steps: Transitions, step_size: StepSize, lambda_: float, *, alpha_in_trace: bool = True
) -> FloatArray:
    """True-online TD(λ) in dense NumPy as printed in 2014 (α in the trace) or in 2016 (α outside); (d, m)."""
    alphas = as_schedule(step_size).values(1, len(steps))
    W, e, v_old = np.zeros((steps.n_features, steps.n_targets)), np.zeros(steps.n_features), np.zeros(steps.n_targets)
    for t, alpha in zip(steps, alphas, strict=True):
        x, x_next, decay = dense(t.x), dense(t.x_next), t.trace_discount * lambda_
        if t.trace_discount == 0.0:
            v_old = np.zeros(steps.n_targets)
        v, v_next = x @ W, x_next @ W
        delta = t.reward + t.discount * v_next - v
        if alpha_in_trace:
            e = decay * e + alpha * x - alpha * decay * (e @ x) * x
            W = W + np.outer(e, delta + v - v_old) - alpha * np.outer(x, v - v_old)
        else:
            e = decay * e + x - alpha * decay * (e @ x) * x
            W = W + alpha * np.outer(e, delta + v - v_old) - alpha * np.outer(x, v - v_old)
        v_old = v_next
    return W


def online_lambda_return(steps: Transitions, step_size: StepSize, lambda_: float) -> FloatArray:
    """The forward view: the weights after each step, (N + 1, d), by the online λ-return algorithm, literally.

    At every horizon h of an episode all updates w ← w + α_k (G_k^h - w·x_k) x_k, k = 0, …, h - 1, are made again from
    the weights w_0 with which the episode began. The interim λ-return mixes the n-step returns that end by h,
    G_k^h = (1 - λ) Σ_{n < h-k} λ^{n-1} G_k^(n) + λ^{h-k-1} G_k^(h-k), and G_k^(n) bootstraps with w_{k+n-1}, the
    weights that were current when x_{k+n} was reached.
    """
    alphas = as_schedule(step_size).values(1, len(steps))
    X, X_next = np.asarray(steps.X), np.asarray(steps.X_next)
    history = [np.zeros(steps.n_features)]
    start = 0
    for now in range(len(steps)):
        if steps.trace_discounts[now] == 0.0:
            start = now
        w = history[start]
        for k in range(start, now + 1):
            G = 0.0
            reward, discount = 0.0, 1.0
            for n in range(1, now - k + 2):
                last = k + n - 1  # the step whose reward is the n-th
                reward += discount * steps.rewards[last]
                discount *= steps.discounts[last]
                n_step = reward + discount * (history[last] @ X_next[last])
                G += lambda_ ** (n - 1) * n_step * ((1.0 - lambda_) if last < now else 1.0)
            w = w + alphas[k] * (G - w @ X[k]) * X[k]
        history.append(w)
    return np.array(history)


SCHEDULES: dict[str, StepSize] = {"constant": 0.02, "decay": Decay(0.05, 50), "function": lambda t: 0.05 / t**0.3}
KINDS = pytest.mark.parametrize("kind", ON_POLICY)


class TestAgainstTheLiteralLoop:
    @pytest.mark.parametrize(("kind", "lambda_", "schedule"), pairwise(ON_POLICY, (0.0, 0.5, 1.0), SCHEDULES))
    def test_all(self, kind: str, lambda_: float, schedule: str) -> None:
        options, step_size = ON_POLICY[kind], SCHEDULES[schedule]
        rng = np.random.default_rng([len(kind), int(10 * lambda_), len(schedule)])
        steps = random_transitions(rng, n_features=20, n_steps=150, **options)
        model = TrueOnlineTD(20, step_size=step_size, lambda_=lambda_, n_targets=options.get("n_targets", 1))
        model.update_many(steps[:60])
        model.update_many(steps[60:])
        assert_weights(model, literal_true_online(steps, step_size, lambda_))

    def test_by_hand(self) -> None:
        """Two steps with α = λ = 0.5, γ = 0.9, over x = (1, 0) and x = (1, 1).

        z = (0.5, 0), δ = 1, w = (0.5, 0), v_old = 0 for (1, 1). Then z·x = 0.5 and
        z = 0.45 ((0.5, 0) - 0.5·0.5 (1, 1)) + 0.5 (1, 1) = (0.6125, 0.3875); v = 0.5, v' = 0.5;
        w = (0.5, 0) + (2 + 0.9·0.5 - 0) z - 0.5 (0.5 - 0) (1, 1) = (0.5 + 1.500625 - 0.25, 0.949375 - 0.25).
        """
        model = TrueOnlineTD(10, step_size=0.5, lambda_=0.5)
        a, b = SparseVector([0], [1.0], 10), SparseVector([0, 1], [1.0, 1.0], 10)
        model.update(Transition(a, 1.0, b, discount=0.9, trace_discount=0.0))
        assert_array_equal(model.weights[:2], [0.5, 0.0])
        model.update(Transition(b, 2.0, a, discount=0.9, trace_discount=0.9))
        assert_allclose(model.weights[:2], [1.750625, 0.699375], rtol=1e-14)
        in_full = TrueOnlineTD(2, step_size=0.5, lambda_=0.5)
        in_full.update_many(
            Transitions(
                [[1.0, 0.0], [1.0, 1.0]],
                [1.0, 2.0],
                [[1.0, 1.0], [1.0, 0.0]],
                discounts=[0.9, 0.9],
                trace_discounts=[0.0, 0.9],
            )
        )
        assert_allclose(in_full.weights, [1.750625, 0.699375], rtol=1e-14)


class TestForwardView:
    @LAMBDAS
    @pytest.mark.parametrize("density", [0.15, 1.0])
    @pytest.mark.parametrize("schedule", SCHEDULES)
    def test_online_lambda_return(self, lambda_: float, density: float, schedule: str) -> None:
        """Equal at *every* step, with terminations, truncations and changing step sizes."""
        step_size = SCHEDULES[schedule]
        for seed in range(3):
            rng = np.random.default_rng(seed)
            steps = random_transitions(rng, n_features=8, n_steps=25, density=density, terminate=0.08, truncate=0.08)
            expected = online_lambda_return(steps, step_size, lambda_)
            model = TrueOnlineTD(8, step_size=step_size, lambda_=lambda_)
            for t, w in zip(steps, expected[1:], strict=True):
                model.update(t)
                assert_allclose(model.weights, w, rtol=0.0, atol=1e-9 * max(0.1, np.abs(expected).max()))

    @pytest.mark.parametrize("lambda_", [0.5, 1.0])
    def test_discounts_that_change(self, lambda_: float) -> None:
        """γ_t decays the trace and γ_{t+1} weighs the bootstrap: with state-dependent discounts they differ."""
        rng = np.random.default_rng(0)
        X, gammas = rng.standard_normal((31, 6)), rng.choice([0.3, 0.9, 1.0], 30)
        flags: dict[str, Any] = {"terminated": np.arange(30) == 14, "truncated": np.arange(30) == 22, "gamma": gammas}
        steps = Transitions.from_arrays(X[:-1], rng.standard_normal(30), X[1:], **flags)
        model = TrueOnlineTD(6, step_size=0.05, lambda_=lambda_)
        model.update_many(steps)
        assert_allclose(model.weights, online_lambda_return(steps, 0.05, lambda_)[-1], rtol=0.0, atol=1e-11)

    def test_the_form_of_2016_is_for_constant_step_sizes(self) -> None:
        """Why the step size is inside the trace: outside it, the forward view is missed when α changes."""
        steps = random_transitions(np.random.default_rng(1), n_features=6, n_steps=30)
        for step_size, same in ((0.05, True), (Decay(0.2, 3), False)):
            forward = online_lambda_return(steps, step_size, 0.9)[-1]
            inside, outside = (
                literal_true_online(steps, step_size, 0.9, alpha_in_trace=inside)[:, 0] for inside in (True, False)
            )
            assert_allclose(inside, forward, rtol=0.0, atol=1e-11)
            assert (np.abs(outside - forward).max() < 1e-11) == same
            assert same or np.abs(outside - forward).max() > 1e-2

    def test_td_is_not_the_forward_view(self) -> None:
        steps = random_transitions(np.random.default_rng(1), n_features=6, n_steps=30)
        model = TD(6, step_size=0.05, lambda_=0.9)
        model.update_many(steps)
        assert np.abs(model.weights - online_lambda_return(steps, 0.05, 0.9)[-1]).max() > 1e-3


class TestRelations:
    @KINDS
    def test_lambda_0_is_td_0(self, kind: str) -> None:
        options = ON_POLICY[kind]
        steps = random_transitions(np.random.default_rng(2), n_features=20, n_steps=150, **options)
        n_targets = options.get("n_targets", 1)
        ours = TrueOnlineTD(20, step_size=Decay(0.05, 30), lambda_=0.0, n_targets=n_targets)
        td = TD(20, step_size=Decay(0.05, 30), lambda_=0.0, n_targets=n_targets)
        for model in (ours, td):
            model.update_many(steps)
        assert_allclose(ours.weights, td.weights, rtol=1e-12, atol=1e-14)

    @pytest.mark.parametrize("lambda_", [0.5, 1.0])
    def test_tiny_steps_are_those_of_td(self, lambda_: float) -> None:
        """To first order in α the two are the same."""
        steps = random_transitions(np.random.default_rng(3), n_features=10, n_steps=200)
        ours, td = (cls(10, step_size=1e-7, lambda_=lambda_) for cls in (TrueOnlineTD, TD))
        for model in (ours, td):
            model.update_many(steps)
        assert_allclose(ours.weights, td.weights, rtol=0.0, atol=1e-4 * np.abs(td.weights).max())

    def test_td_diverges_where_it_does_not(self) -> None:
        """A feature seen again and again at α λ-return steps close to 1: TD's accumulating trace takes it too far."""
        steps = Transitions.from_episodes([(np.ones((31, 1)), np.ones(30), True)] * 20, gamma=1.0)
        ours, td = (cls(1, step_size=0.3, lambda_=1.0) for cls in (TrueOnlineTD, TD))
        for model in (ours, td):
            model.update_many(steps)
        assert abs(ours.weights[0]) < 31.0
        assert not abs(td.weights[0]) < 1e6

    @pytest.mark.parametrize("process", [boyan_chain(), random_walk(7, gamma=0.95, features="dependent")])
    def test_small_steps_end_at_the_solution(self, process: MarkovRewardProcess) -> None:
        model = TrueOnlineTD(process.n_features, step_size=Decay(0.05, 1_000), lambda_=0.5)
        model.update_many(process.sample(300_000, np.random.default_rng(0)))
        solution = process.solution(0.5)
        assert np.abs(model.weights - solution).max() < 0.1 * np.abs(solution).max()

    def test_starts_from_weights(self) -> None:
        """TD from w is TD from 0 on what w leaves unexplained, in mid-episode too."""
        rng = np.random.default_rng(4)
        steps = random_transitions(rng, n_features=20, n_steps=60, density=0.2, terminate=0.0, truncate=0.0)[5:]
        w = rng.standard_normal(20)
        ours, fresh = (TrueOnlineTD(20, step_size=0.05, lambda_=0.8) for _ in range(2))
        ours.start_from(w)
        ours.update_many(steps)
        left = steps.rewards + steps.discounts * (steps.X_next @ w) - steps.X @ w
        columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
        fresh.update_many(Transitions(steps.X, left, steps.X_next, **columns))
        assert_allclose(ours.weights, w + fresh.weights, rtol=1e-10, atol=1e-12)


class TestForm:
    @KINDS
    def test_cuts(self, kind: str) -> None:
        """v_old survives between calls: however the stream is cut, not a bit changes."""
        options = ON_POLICY[kind]
        steps = random_transitions(np.random.default_rng(5), n_features=20, n_steps=90, **options)
        make = partial(TrueOnlineTD, 20, step_size=0.02, lambda_=0.9, n_targets=options.get("n_targets", 1))
        whole, single, cut = learned_in_pieces(make, steps)
        assert_array_equal(single.weights, whole.weights)
        assert_array_equal(cut.weights, whole.weights)

    def test_huge_sizes(self) -> None:
        rng = np.random.default_rng(0)
        indices, indptr = rng.integers(0, 2**31, 20_000), np.arange(0, 20_001, 4)
        X = sp.csr_array((np.ones(20_000), indices, indptr), shape=(5_000, 2**31))
        gammas = np.full(4_999, 0.9)
        model = TrueOnlineTD(2**31, step_size=0.05, lambda_=0.9)
        model.update_many(
            Transitions.from_rows(
                X, np.arange(4_999), gammas, np.arange(1, 5_000), discounts=gammas, trace_discounts=gammas
            )
        )
        assert model.n_seen > 19_000
        assert model.nbytes < 150 * model.n_seen
        assert model._counts[0] < 4 * (219 + 33 * 20)  # entries leave after ln(1e-20) / ln(0.81) steps and 33 epochs
        assert np.isfinite(model.sparse_weights.values).all()

    @pytest.mark.parametrize("density", [0.1, 1.0])
    def test_divergence_is_silent(self, density: float) -> None:
        steps = random_transitions(np.random.default_rng(0), n_features=20, n_steps=800, density=density)
        model = TrueOnlineTD(20, step_size=50.0, lambda_=0.9)
        model.update_many(steps)
        model.update(steps[0])
        assert not np.isfinite(model.weights).all()
        for x in (np.ones(20), SparseVector([3], [1.0], 20), np.eye(20), sp.csr_array(np.eye(20))):
            model.predict(x)


class TestRefused:
    @pytest.mark.parametrize("density", [0.1, 1.0])
    @pytest.mark.parametrize("rho", [0.0, 0.5, 1.0 + 1e-9, 2.0])
    def test_off_policy(self, rho: float, density: float) -> None:
        steps = random_transitions(np.random.default_rng(0), n_features=20, n_steps=40, density=density)
        model, twin = (TrueOnlineTD(20, step_size=0.02, lambda_=0.9) for _ in range(2))
        for each in (model, twin):
            each.update_many(steps[:20])
        bad = steps[20:]
        bad.rhos = np.where(np.arange(20) == 7, rho, 1.0)
        with pytest.raises(InvalidInputError, match=f"rho is {rho} at step 7"):
            model.update_many(bad)
        with pytest.raises(InvalidInputError, match=f"rho is {rho} at step 0.*use TD"):
            model.update(bad[7])
        assert model.n_updates == 20
        for each in (model, twin):
            each.update_many(steps[20:])
        assert_array_equal(model.weights, twin.weights)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"step_size": -1.0}, "step_size is -1.0"),
            ({"step_size": None}, "step_size is None"),
            ({"lambda_": -0.1}, "lambda_ is -0.1"),
            ({"n_targets": 1.5}, "n_targets is 1.5"),
            ({"n_features": -3}, "n_features is -3"),
        ],
    )
    def test_parameters(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidParameterError, match=message):
            TrueOnlineTD(**{"n_features": 3, "step_size": 0.1, "lambda_": 0.5, **change})

    @pytest.mark.parametrize("option", ["trace", "beta"])
    def test_options_it_does_not_have(self, option: str) -> None:
        options: dict[str, Any] = {option: "accumulating" if option == "trace" else 0.1}
        with pytest.raises(TypeError, match=option):
            TrueOnlineTD(3, step_size=0.1, lambda_=0.5, **options)
