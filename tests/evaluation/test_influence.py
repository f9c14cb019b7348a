"""Influence of steps and episodes: against a dense transcription of its formulas, and against exact values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import stdtrit

from tlstd import KrylovLSTD, Transitions, random_walk
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.held_out import make_folds
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation.bootstrap import bootstrap_interval
from tlstd.evaluation.influence import Asked, Influence, influences
from tlstd.evaluation.intervals import ROUNDING, difference_of, interval_of, mean_interval


class Dense(NamedTuple):
    """Everything again, in loops over samples and with whole matrices."""

    value: float
    contributions: FloatArray
    factors: FloatArray
    errors: FloatArray


def dense(steps: Transitions, lambda_: float, X0: FloatArray, drawn: IntArray | None, kind: str) -> Dense:
    X, X_next, g, r, rho = steps.X, steps.X_next, steps.discounts, steps.rewards, steps.rhos
    T, n = X.shape
    folds = make_folds(g, steps.trace_discounts, 2 if kind == "debiased" else 5)
    Z, z = np.zeros((T, n)), np.zeros(n)
    for t in range(T):
        z = rho[t] * ((0.0 if folds.cut[t] else lambda_ * steps.trace_discounts[t]) * z + X[t])
        Z[t] = z
    D = X - g[:, None] * X_next
    constant = (X[0] == X).all(axis=0) & (X[0] != 0.0)
    ridge = np.diag(np.where(constant, 0.0, 1e-9 * (X**2).sum() / T))

    def solved(kept: Any, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        A = Z[kept].T @ D[kept] / kept.sum() + ridge
        return np.linalg.solve(A, Z[kept].T @ r[kept] / kept.sum()), np.linalg.solve(A.T, x)

    start_fold = None if drawn is None else folds.fold[drawn]
    w, h = solved(np.ones(T, dtype=bool), X0.mean(axis=0))
    u, delta = Z @ h, r - D @ w
    value = float(X0.mean(axis=0) @ w + (u * delta).mean())
    by_fold, values = [], []
    for k in range(folds.n_folds):
        x = X0.mean(axis=0) if start_fold is None or (start_fold == k).all() else X0[start_fold != k].mean(axis=0)
        by_fold.append(solved(folds.fold != k, x))
        values.append(X0 @ by_fold[k][0])
    if kind != "plug-in" and folds.n_folds > 1:
        for k, (w_k, h_k) in enumerate(by_fold):
            mine = folds.fold == k
            delta[mine] = (r - D @ w_k)[mine]
            if kind == "debiased":
                u[mine] = (Z @ h_k)[mine]
    sums = np.array([(u * delta)[folds.group == i].sum() / T for i in range(folds.n_groups)])
    if drawn is not None:
        own = np.array([(X0[m] @ w if kind == "plug-in" else values[folds.fold[t]][m]) for m, t in enumerate(drawn)])
        if kind == "debiased":
            value = float(own.mean() + (u * delta).mean())
            own -= own.mean()
        else:
            own -= [(X0 @ w).mean() if kind == "plug-in" else values[folds.fold[t]].mean() for t in drawn]
        for m, t in enumerate(drawn):
            sums[folds.group[t]] += own[m] / len(X0)
    elif kind == "debiased":
        each = np.array([values[folds.fold[t]].mean() for t in range(T)])
        value = float(each.mean() + (u * delta).mean())
        for t in range(T):
            sums[folds.group[t]] += (each[t] - each.mean()) / T
    return Dense(value, sums - sums.mean(), u, delta)


def stream(rng: np.random.Generator, *, ratios: bool, ends: str) -> Transitions:
    """Random features with a constant one, episodes of 1 to 9 steps, some ended and some cut off."""
    episodes = []
    for i in range(40):
        length = int(rng.integers(1, 10))
        X = np.column_stack([np.ones(length + 1), rng.standard_normal((length + 1, 4))])
        over = {"ended": True, "cut": False, "both": i % 2 == 0}[ends]
        episodes.append((X, rng.standard_normal(length), over))
    steps = Transitions.from_episodes(episodes, gamma=0.9)
    if ratios:
        steps.rhos = np.where(rng.random(len(steps)) < 0.2, 0.0, rng.random(len(steps)) * 2.0)
    return steps


def fit(steps: Transitions, lambda_: float) -> KrylovLSTD:
    model = KrylovLSTD(steps.n_features, lambda_=lambda_, dimension=2)
    model.update_many(steps)
    return model


@pytest.mark.parametrize("kind", ["sandwich", "plug-in", "debiased"])
@pytest.mark.parametrize(
    ("lambda_", "ratios", "ends"), [(0.0, False, "ended"), (0.8, True, "both"), (1.0, False, "cut"), (0.5, True, "cut")]
)
def test_all_formulas_against_dense_ones(kind: str, lambda_: float, ratios: bool, ends: str) -> None:
    steps = stream(np.random.default_rng(3), ratios=ratios, ends=ends)
    starts = np.flatnonzero(steps.trace_discounts == 0.0)
    given = np.random.default_rng(4).standard_normal((3, 5))
    asked = [Asked(steps.X[starts], starts), Asked(given)]
    found = influences(fit(steps, lambda_), asked, kind="debiased" if kind == "debiased" else "sandwich")
    if kind == "plug-in":
        found = [each.plug_in() for each in found]
    for each, X0, drawn in zip(found, (steps.X[starts], given), (starts, None), strict=True):
        expected = dense(steps, lambda_, X0, drawn, kind)
        assert each.settled
        assert each.value == pytest.approx(expected.value, rel=1e-6)
        assert_allclose(each.factors, expected.factors, rtol=1e-5, atol=1e-6)
        assert_allclose(each.errors, expected.errors, rtol=1e-5, atol=1e-6)
        assert_allclose(each.contributions, expected.contributions, rtol=1e-5, atol=1e-8)


def test_a_value_is_the_sum_over_steps() -> None:
    """xᵀw = (1/T) Σ (hᵀz_t) r_{t+1} but for the ridge, and the mean factor is the value of a reward of 1."""
    steps = stream(np.random.default_rng(0), ratios=False, ends="ended")
    (found,) = influences(fit(steps, 0.6), [Asked(steps.X[:1])])
    assert found.value == pytest.approx((found.factors * steps.rewards).mean(), rel=1e-4)
    assert found.density_ratios.mean() == pytest.approx(1.0)


def test_constant_returns_have_the_width_of_rounding() -> None:
    """Every step pays 1 and γ = 0.5 for ever: the value is 2 in every log."""
    X = np.column_stack([np.ones(11), np.random.default_rng(0).standard_normal((11, 2))])
    steps = Transitions.from_episodes([(X, np.ones(10), False)] * 12, gamma=0.5)
    starts = np.flatnonzero(steps.trace_discounts == 0.0)
    found = interval_of(influences(fit(steps, 0.5), [Asked(steps.X[starts], starts)])[0].found)
    assert found.value == pytest.approx(2.0)
    assert found.half_width == pytest.approx(2.0 * ROUNDING)


def test_a_single_episode_has_blocks_and_a_single_step_no_bound() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((301, 3))
    long = Transitions.from_episodes([(X, rng.standard_normal(300), False)], gamma=0.5)
    (found,) = influences(fit(long, 0.5), [Asked(X[:1])])
    assert found.groups.n_blocks == found.groups.n_groups >= 10
    assert np.isfinite(interval_of(found.found).half_width)
    short = long[:1]
    (found,) = influences(fit(short, 0.5), [Asked(X[:1])])
    found_interval = interval_of(found.found)
    assert found_interval.half_width == np.inf
    assert found_interval.to_dict()["low"] is None


def test_standard_error_of_a_tabular_chain_is_the_delta_methods() -> None:
    """One feature a state: T·Var(xᵀw) → Σ_t E[(hᵀx_t)² δ_t²] with exact A, w and state distribution."""
    walk, lambda_ = random_walk(7, gamma=0.9), 0.0
    A, _ = walk.system(lambda_)
    x, values, d = np.eye(7)[3], walk.values(), walk.state_distribution()
    h = np.linalg.solve(A.T, x)
    second = np.zeros(7)
    for s in range(7):  # E[δ²|s]: one step to the left or right; ends pay -1 or 1 beyond the ends, and 0 elsewhere
        for after in (s - 1, s + 1):
            inside = 0 <= after < 7
            end = -1.0 if after < 0 else 1.0
            second[s] += 0.5 * ((walk.gamma * values[after] if inside else end) - values[s]) ** 2
    variance = float((d * h**2 * second).sum())
    steps = walk.sample(60_000, np.random.default_rng(1))
    for kind in ("sandwich", "debiased"):
        (found,) = influences(fit(steps, lambda_), [Asked(x[None])], kind=kind)
        assert found.standard_error == pytest.approx(np.sqrt(variance / len(steps)), rel=0.05), kind
        assert abs(found.value - values[3]) < 4.0 * found.standard_error
        assert found.plug_in().standard_error == pytest.approx(found.standard_error, rel=0.02)
        assert 1_000 < found.degrees < found.groups.n_groups


@pytest.mark.parametrize("given", [True, False])
def test_bootstrap_and_sandwich_agree_on_many_episodes(given: bool) -> None:
    steps = random_walk(7, gamma=0.9).sample(20_000, np.random.default_rng(1))
    starts = np.flatnonzero(steps.trace_discounts == 0.0)
    asked = Asked(np.eye(7)[[2]]) if given else Asked(steps.X[starts + 1], starts)  # what followed the start states
    model = fit(steps, 0.8)
    found, drawn = interval_of(influences(model, [asked])[0].found), bootstrap_interval(model, asked)
    assert abs(drawn.value - found.value) < 1e-3 * found.standard_error  # the ridge, and one step of debiasing
    assert drawn.standard_error == pytest.approx(found.standard_error, rel=0.15)
    assert drawn.half_width == pytest.approx(found.half_width, rel=0.2)
    assert bootstrap_interval(model, asked) == drawn  # the same seed
    assert bootstrap_interval(model, asked, rng=np.random.default_rng(5)) != drawn


def test_blocks_of_one_autoregressive_stream() -> None:
    """x_{t+1} = 0.8 x_t + noise pays x_t: v(x) = x/(1 - 0.8γ) with γ = 0.5, within intervals from blocks."""
    inside, truth = [], 1.0 / (1.0 - 0.8 * 0.5)
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        x = np.zeros(1_001)
        for t in range(1_000):
            x[t + 1] = 0.8 * x[t] + rng.standard_normal()
        features = np.column_stack([np.ones(1_001), x])
        steps = Transitions.from_episodes([(features, x[:-1] + rng.standard_normal(1_000), False)], gamma=0.5)
        (found,) = influences(fit(steps, 0.5), [Asked(np.array([[1.0, 1.0]]))])
        assert found.groups.n_blocks == found.groups.n_groups == 35
        inside.append(truth in interval_of(found.found))
    assert 52 <= sum(inside) <= 60  # fewer than 52 of 60 have a chance of 0.4% at 95%


def test_differences_are_paired() -> None:
    """The same value twice: no difference, and no width; of two states less than their widths apart would give."""
    steps = random_walk(5, gamma=0.9).sample(3_000, np.random.default_rng(0))
    a, b = influences(fit(steps, 0.5), [Asked(np.eye(5)[[2]]), Asked(np.eye(5)[[3]])])
    same = difference_of(a.found, a.found)
    assert (same.value, same.half_width) == (0.0, 0.0)
    paired = difference_of(b.found, a.found)
    assert paired.value == pytest.approx(b.value - a.value)
    assert paired.standard_error < 0.8 * np.hypot(a.standard_error, b.standard_error)


def test_what_a_value_rests_on() -> None:
    """Of 30 episodes one has seen the state that is asked for: it is named, and counts for about one."""
    one = np.eye(3)
    episodes = [(one[[0, 0, 1]], [0.0, 1.0], True)] * 29 + [(one[[2, 0, 1]], [5.0, 1.0], True)]
    steps = Transitions.from_episodes(episodes, gamma=0.9)
    (found,) = influences(fit(steps, 0.0), [Asked(one[[2]])])
    assert isinstance(found, Influence)
    assert found.effective_groups < 2.5
    assert found.named([f"e{i}" for i in range(30)]).most_influential(1)[0][0] == "e29"


def test_mean_of_returns() -> None:
    values = np.array([1.0, 2.0, 6.0, 7.0])
    found = mean_interval(values, level=0.9)
    error = values.std(ddof=1) / 2.0
    assert found.half_width == pytest.approx(2.353363 * error, rel=1e-5)
    assert 4.0 in found
    assert 40.0 not in found
    assert mean_interval(values[:1]).half_width == np.inf


def test_what_is_refused() -> None:
    steps = random_walk(5, gamma=0.9).sample(300, np.random.default_rng(0))
    model = fit(steps, 0.5)
    with pytest.raises(InvalidParameterError, match="kind"):
        influences(model, [Asked(np.eye(5))], kind="magic")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="5 features"):
        influences(model, [Asked(np.eye(4))])
    with pytest.raises(InvalidInputError, match="drawn"):
        influences(model, [Asked(np.eye(5), np.array([1, 2]))])
    with pytest.raises(InvalidInputError, match="beta"):
        influences(KrylovLSTD(5, lambda_=0.0), [Asked(np.eye(5))])
    with pytest.raises(InvalidParameterError, match="level"):
        interval_of(influences(model, [Asked(np.eye(5))])[0].found, level=1.0)


def test_a_few_long_episodes_carry_the_value() -> None:
    """Six of 200 steps among thirty of one, equally noisy: Student's t has (Σ n)²/Σ n² - 1 degrees, and not 35."""
    rng, lengths = np.random.default_rng(0), np.repeat([200, 1], [6, 30])
    episodes = [(np.ones((n + 1, 1)), rng.standard_normal(n), True) for n in lengths]
    (found,) = influences(fit(Transitions.from_episodes(episodes, gamma=0.5), 0.0), [Asked(np.ones((1, 1)))])
    interval, degrees = interval_of(found.found), lengths.sum() ** 2 / (lengths**2).sum() - 1.0
    assert found.groups.n_groups == lengths.size
    assert interval.degrees == pytest.approx(degrees)
    sides = interval.value - interval.low, interval.high - interval.value
    assert min(sides) == pytest.approx(stdtrit(degrees, 0.975) * interval.standard_error)
