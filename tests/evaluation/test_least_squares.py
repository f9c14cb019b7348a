"""Debiased values of least squares: against dense solutions and loops, and in many simulated logs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.evaluation.logs import Decisions, random_decisions, simulated
from tests.evaluation.plain import dense_rows, expected_blocks, in_blocks, random_log, whole
from tlstd import Log, OneHot, TileCoder
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.episode_values import degrees
from tlstd.evaluation.fits import Fit, Starts, fit_actions, fit_pairs, fit_states
from tlstd.evaluation.intervals import interval_of
from tlstd.evaluation.ladder import clustered
from tlstd.evaluation.least_squares import RIDGE, LeastSquares
from tlstd.evaluation.policies import Target

N, GAMMA = 6, 0.8
BEHAVIOUR = np.random.default_rng(9).dirichlet(np.full(2, 4.0), N)
POLICY = np.random.default_rng(8).dirichlet(np.full(2, 4.0), N)
KINDS = ("states", "ratios", "actions", "missing", "pairs", "tiles")


def process() -> Decisions:
    return random_decisions(np.random.default_rng(1), N, 2, 2, 0.2)


def ratios(log: Log) -> FloatArray:
    assert log.actions is not None
    found: FloatArray = (POLICY / BEHAVIOUR)[log.observations, log.actions]
    return found


def fitted(kind: str, log: Log) -> Fit:
    table = OneHot([0], [N - 1])
    if kind in ("states", "ratios"):
        return fit_states(log, table, GAMMA, ratios(log) if kind == "ratios" else None)
    if kind == "tiles":
        return fit_states(log, TileCoder([0.0], [float(N)], tiles=4, tilings=2), GAMMA)
    if kind == "missing":  # action 2 is nowhere in the log
        third = np.hstack([0.8 * POLICY, np.full((N, 1), 0.2)])
        return fit_actions(log, table, GAMMA, Target(function=lambda s: third[s]))
    return fit_actions(log, table, GAMMA, Target(function=lambda s: POLICY[s]))


def continuous() -> Fit:
    """A policy that now and then does what is unlike all that was logged."""
    rng = np.random.default_rng(2)
    log = random_log(5, 40, discrete=False)
    log = replace(log, actions=rng.random((len(log), 1)))
    return fit_pairs(log, Products(), GAMMA, Target(function=lambda s: 0.2 + 0.1 * s[:, :1] + 9.0 * (s[:, 1:2] > 1.0)))


class Products:
    """1, states, action and their products: dense."""

    n_features = 8

    def encode(self, state: Any) -> FloatArray:
        found: FloatArray = self.encode_many(np.asarray(state)[None])[0]
        return found

    def encode_many(self, states: Any) -> FloatArray:
        states = np.asarray(states, dtype=float)
        return np.column_stack([np.ones(len(states)), states, states[:, :3] * states[:, 3:]])


def log_of(seed: int = 0, n_steps: int = 400, limit: int = 12) -> Log:
    return simulated(process(), BEHAVIOUR, np.random.default_rng(seed), n_steps, limit, known=True)


class Dense(NamedTuple):
    value: float
    exact: float
    plain: float
    contributions: FloatArray
    factors: FloatArray
    errors: FloatArray
    spread: FloatArray


def dense(fit: Fit, rows: IntArray, side: int, given: bool) -> Dense:
    """The mean value of rows of the log: all formulas of the module's header, with whole matrices and loops."""
    system: Any = fit.system
    steps, log = fit.steps, fit.steps.log
    Phi = dense_rows(system.rows)
    n = len(steps)
    if fit.kind == "joint":
        behind = dense_rows(system.behind)
        X, X_next, asked = Phi, behind[steps.after], behind[steps.row_of[rows]]
        offsets = fit.extra(steps.row_of[rows], side)
    elif fit.kind == "actions":
        X, every = in_blocks(Phi[steps.here], system.actions, system.n_actions), expected_blocks(Phi, system.chances)
        X_next, asked = every[steps.after], every[steps.row_of[rows]]
        offsets = fit.extra(steps.row_of[rows], side)
    else:
        X, X_next, asked, offsets = Phi[steps.here], Phi[steps.after], Phi[steps.row_of[rows]], np.zeros(rows.size)
    r = system.rewards[side]
    made = whole(steps, X, X_next, fit.lambda_, system.rhos, -1, r)
    constant = (Phi == 1.0).all(axis=0) if fit.kind != "actions" else np.zeros(system.n, dtype=bool)
    mean_square = ((behind if fit.kind == "joint" else Phi) ** 2).sum() / system.n_rows
    A = made.A + np.diag(RIDGE / n * mean_square * ~constant)
    x = asked.mean(axis=0)
    h = np.linalg.lstsq(A.T, x, rcond=1e-13)[0]
    u = made.Z @ h
    W, folds = fit.weights[side], fit.folds.tolist()
    value = plain = float(x @ W[:, -1] + offsets.mean())
    errors, contributions, spread = np.zeros(n), np.zeros(log.n_episodes), np.zeros(log.n_episodes)
    for t in range(n):
        own = W[:, folds.index(steps.fold[t])]
        errors[t] = r[t] - made.D[t] @ own
        value += u[t] * (r[t] - made.D[t] @ W[:, -1]) / n
        contributions[steps.episode[t]] += u[t] * errors[t] / n
    for t in range(n):
        spread[steps.episode[t]] += (u[t] / n) ** 2 * np.mean(errors**2)
    if not given:
        own = np.zeros(rows.size)
        for i, row in enumerate(rows.tolist()):
            at = int(np.searchsorted(steps.kept, row))
            own[i] = asked[i] @ W[:, folds.index(steps.fold[at])] + offsets[i]
        for i, row in enumerate(rows.tolist()):
            e = int(np.searchsorted(log.episodes, row, side="right")) - 1
            contributions[e] += (own[i] - own.mean()) / rows.size
            spread[e] += own.var() / rows.size**2
    exact = float(x @ np.linalg.lstsq(made.A, made.b, rcond=1e-10)[0] + offsets.mean())
    return Dense(value, exact, plain, contributions - contributions.mean(), u, errors, spread)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_formulas_against_dense_ones(kind: str, given: bool) -> None:
    fit = continuous() if kind == "pairs" else fitted(kind, log_of())
    log = fit.steps.log
    rows = np.intersect1d(log.start_rows, fit.steps.kept)
    starts = Starts("start states", log.observations[rows], None if given else rows)
    found = fit.value(fit.query(starts))
    assert len(found) == len(fit.weights) == (2 if kind in ("missing", "pairs") else 1)
    for side, each in enumerate(found):
        expected = dense(fit, rows, side, given)
        assert isinstance(each, LeastSquares)
        assert each.settled
        assert each.found.value == pytest.approx(expected.value, rel=1e-6, abs=1e-9)
        debiased, before = abs(each.found.value - expected.exact), abs(each.plain - expected.exact)
        assert debiased <= 0.02 * before + 1e-6  # to first order whatever w is: what is left is the ridge times that
        assert each.plain == pytest.approx(expected.plain, rel=1e-10, abs=1e-12)
        assert_allclose(each.factors, expected.factors, rtol=1e-5, atol=1e-6)
        assert_allclose(each.errors, expected.errors, atol=1e-10)
        assert_allclose(each.found.contributions, expected.contributions, atol=1e-7)
        assert each.found.degrees == pytest.approx(degrees(expected.spread), rel=1e-5)
        if kind in ("states", "tiles"):
            assert abs(each.plain - expected.exact) > 1e-6  # there was something to take away


def test_density_ratios_of_a_table() -> None:
    """How often the policy is in a state, over how often the log is there: by solving for its visits."""
    log = log_of(n_steps=20_000, limit=1_000)
    fit = fitted("ratios", log)
    setting = fit.selection.whole._replace(lambda_=0.0)
    fit = replace(fit, selection=replace(fit.selection, whole=setting))
    P = np.einsum("sa,sat->st", POLICY, process().P)
    visits = np.linalg.solve(np.eye(N) - GAMMA * P.T, np.full(N, 1.0 / N))
    logged = np.bincount(log.observations, minlength=N) / len(log)
    (found,) = fit.value(fit.query(Starts("start states", log.observations[log.start_rows], log.start_rows)))
    by_state = np.bincount(log.observations, found.factors, N) / np.bincount(log.observations, minlength=N)
    assert_allclose(by_state, visits / logged, rtol=0.1)
    assert found.density_ratios.mean() == pytest.approx(1.0)


def test_two_sides_are_mixed_linearly() -> None:
    fit = fitted("missing", log_of())
    rows = fit.steps.log.start_rows
    first, second = fit.value(fit.query(Starts("start states", fit.steps.log.observations[rows], rows)))
    mixed = first.mixed(second, -3.0)
    assert mixed.found.value == pytest.approx(first.found.value - 3.0 * second.found.value)
    assert_allclose(mixed.found.contributions, first.found.contributions - 3.0 * second.found.contributions)
    assert_allclose(mixed.errors, first.errors - 3.0 * second.errors)
    assert 0.0 < second.found.value < 1.0 / (1.0 - GAMMA)


def test_start_states_whose_step_is_not_known_belong_to_their_own_episode() -> None:
    """An episode of one step that was cut off: the step is left out, its start state is asked for."""
    log = log_of(n_steps=200)
    lengths = np.diff(log.episodes)
    one = int(np.flatnonzero((lengths == 1) & (np.arange(lengths.size) > 2))[0])
    ended, known = log.terminated.copy(), log.has_final.copy()
    ended[log.episodes[one]], known[one] = False, False
    log = replace(log, terminated=ended, has_final=known)
    fit = fitted("states", log)
    assert log.episodes[one] not in fit.steps.kept
    (found,) = fit.value(fit.query(Starts("start states", log.observations[log.start_rows], log.start_rows)))
    values = fit.weights[0][:, -1][np.searchsorted(fit.system.ids, log.observations[log.start_rows])]
    rest = found.found.contributions[one]
    others = np.delete(found.found.contributions, one)
    assert rest + others.sum() == pytest.approx(0.0, abs=1e-12)
    by_steps = np.bincount(fit.steps.episode, found.factors * found.errors / len(fit.steps), log.n_episodes)
    starts = found.found.contributions - by_steps + by_steps.mean()
    expected = (values[one] - values.mean()) / values.size
    # only the weights of its fold differ: the part of an episode is that of its own start state
    assert starts[one] == pytest.approx(expected, abs=0.3 * abs(expected))


def test_clusters_are_the_units_of_the_interval() -> None:
    """Sums of contributions over episodes that belong together."""
    log = log_of(n_steps=300)
    users = np.arange(log.n_episodes) % 9
    of_users = replace(log, row_clusters=np.repeat(users, np.diff(log.episodes)), row_cluster_names=tuple("abcdefghi"))
    fit = fitted("states", of_users)
    (found,) = fit.value(fit.query(Starts("start states", log.observations[log.start_rows], log.start_rows)))
    some = clustered(found.found, of_users)
    expected = [found.found.contributions[users == u].sum() for u in range(9)]
    assert_allclose(some.contributions, expected, atol=1e-14)
    assert interval_of(some).n_groups == 9
    assert interval_of(some).degrees < 9


# --- many logs --------------------------------------------------------------------------------------------------------


def truth(policy: FloatArray) -> float:
    return float((policy * process().action_values(policy, GAMMA)).sum(axis=1).mean())


def many(kind: str, n_logs: int) -> tuple[FloatArray, FloatArray, float]:
    """Values and standard errors of logs, and the share of intervals with the truth inside."""
    values, widths, inside = np.zeros(n_logs), np.zeros(n_logs), 0
    true = truth(BEHAVIOUR if kind in ("states", "tiles") else POLICY)
    for seed in range(n_logs):
        log = log_of(seed + 100, 300, 1_000)
        fit = fitted(kind, log)
        (found,) = fit.value(fit.query(Starts("start states", log.observations[log.start_rows], log.start_rows)))
        values[seed], widths[seed] = found.found.value, found.found.standard_error
        inside += true in interval_of(found.found)
    return values - true, widths, inside / n_logs


@pytest.mark.long
@pytest.mark.parametrize("kind", ["states", "ratios", "actions"])
def test_coverage_and_standard_errors_of_many_logs(kind: str) -> None:
    """300 logs of about 60 episodes: standard errors are the spread of the values, and 95% cover."""
    errors, widths, covered = many(kind, 300)
    print(f"{kind}: covered {covered:.3f}, standard error over spread {widths.mean() / errors.std():.3f}")
    assert 0.92 <= covered <= 0.98
    assert widths.mean() == pytest.approx(errors.std(), rel=0.15)
    assert abs(errors.mean()) < 3.5 * errors.std() / np.sqrt(300)


@pytest.mark.parametrize("kind", ["states", "actions"])
def test_coverage_of_some_logs(kind: str) -> None:
    errors, widths, covered = many(kind, 60)
    assert covered >= 0.88
    assert widths.mean() == pytest.approx(errors.std(), rel=0.3)
