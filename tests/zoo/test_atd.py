"""ATD between its two limits, TD and LSTD, and against a literal loop in between."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from tlstd_lab.reference import ReferenceTLSTD

import tlstd
from tests.helpers import batch_lstd, dense, pairwise, random_transitions
from tlstd.checks import check_estimator
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidParameterError
from tlstd.estimators.step_sizes import Decay
from tlstd.zoo.atd import ATD
from tlstd.zoo.moving_weights import MovingWeights

KINDS: dict[str, dict[str, Any]] = {
    "dense": {"density": 1.0},
    "sparse": {"density": 0.15, "sparse": True},
    "off-policy": {"density": 0.15, "sparse": True, "off_policy": True},
}


def stream(seed: int, kind: str, n_targets: int = 1) -> Transitions:
    return random_transitions(
        np.random.default_rng(seed), n_features=20, n_steps=180, n_targets=n_targets, **KINDS[kind]
    )


def close(actual: FloatArray, expected: FloatArray, tolerance: float) -> bool:
    return bool(np.abs(actual - expected).max() <= tolerance * np.abs(expected).max())


@pytest.mark.parametrize(("kind", "lambda_", "buffer_size"), pairwise(KINDS, (0.0, 0.5, 0.9), (1, 7, None)))
def test_full_rank_follows_lstd(kind: str, lambda_: float, buffer_size: int | None) -> None:
    """With α_t = 1/t, η = 0 and nothing truncated a step is the Sherman–Morrison update of LSTD's solution."""
    steps = stream(1, kind, n_targets=2)
    model = ATD(
        20, 20, step_size=Decay(1.0, 0), lambda_=lambda_, eta=0.0, rcond=1e-14, buffer_size=buffer_size, n_targets=2
    )
    for start, stop in ((0, 110), (110, 180)):
        model.update_many(steps[start:stop])
        A, b = batch_lstd(steps[:stop], lambda_)
        assert close(model.weights, scipy.linalg.solve(A, b), 1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lambda_", [0.0, 0.9])
def test_rank_zero_is_td(kind: str, lambda_: float) -> None:
    steps = stream(2, kind, n_targets=2)
    model = ATD(20, 0, step_size=1.0, lambda_=lambda_, eta=0.01, n_targets=2)
    model.update_many(steps)
    W, z = np.zeros((20, 2)), np.zeros(20)
    for t in steps:
        x, x_next = dense(t.x), dense(t.x_next)
        z = t.rho * (t.trace_discount * lambda_ * z + x)
        W += 0.01 * np.outer(z, t.reward + t.discount * x_next @ W - x @ W)
    assert close(model.weights, W, 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_small_rank_is_the_literal_loop(kind: str) -> None:
    """w += (α A_r⁺ + ηI) δ z with A_r from the dense reference, in which A grows to 2r columns between truncations."""
    rank, lambda_, rcond = 5, 0.7, 1e-4
    steps = stream(3, kind)
    model = ATD(20, rank, step_size=Decay(0.3, 50), lambda_=lambda_, eta=0.02, buffer_size=rank, rcond=rcond)
    reference = ReferenceTLSTD(20, rank, lambda_=lambda_, mini_batch=False, rcond=rcond)
    alphas = Decay(0.3, 50).values(1, len(steps))
    w, z, worst = np.zeros(20), np.zeros(20), 0.0
    for alpha, t in zip(alphas, steps, strict=True):
        x, x_next = dense(t.x), dense(t.x_next)
        z = t.rho * (t.trace_discount * lambda_ * z + x)
        delta = float(t.reward) + t.discount * x_next @ w - x @ w
        columns = {"discount": t.discount, "trace_discount": t.trace_discount, "rho": t.rho}
        reference.update(x, float(t.reward), x_next, **columns)
        sigma = reference.sigma[:rank]
        kept = sigma > rcond * sigma[0] if sigma.size else np.zeros(0, dtype=np.bool_)
        U, V = reference.U[:, :rank][:, kept], reference.V[:, :rank][:, kept]
        w = w + alpha * delta * V @ ((U.T @ z) / sigma[kept]) + 0.02 * delta * z
        model.update(t)
        worst = max(worst, float(np.abs(model.weights - w).max() / max(np.abs(w).max(), 1e-12)))
        assert model.predict(t.x) == pytest.approx(float(w @ x), rel=1e-6, abs=1e-9)
    assert worst < 1e-8


def test_one_update_by_hand() -> None:
    """One feature: A = (1-½)=½ after x=1 → 1 with γ=½; δ=2; w = (α/A + η) δ z = (0.1·2 + 0.05)·2 = 0.5."""
    model = ATD(1, 1, step_size=0.1, lambda_=0.0, eta=0.05)
    model.update(Transition([1.0], 2.0, [1.0], discount=0.5, trace_discount=0.0))
    assert model.predict([1.0]) == pytest.approx(0.5, rel=1e-14)


def test_only_seen_features_take_memory() -> None:
    d = 2**31
    model = ATD(d, 3, step_size=0.1, lambda_=0.9, eta=0.01)
    for i in range(50):
        x, x_next = (SparseVector([10**9 + 7 * j, j], [1.0, 0.5], d) for j in (i % 9, (i + 1) % 9))
        model.update(Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.9))
    assert model.n_seen == 18
    assert model.nbytes < 1_000_000
    assert np.isfinite(model.sparse_weights.values).all()


def test_divergence_is_data() -> None:
    model = ATD(5, 2, step_size=0.1, lambda_=0.9, eta=1e6)
    model.update_many(random_transitions(np.random.default_rng(0), n_features=5, n_steps=400))
    assert not np.isfinite(model.weights).all()


def test_weights_to_start_from_are_saved_with_replacing_traces(tmp_path: Path) -> None:
    steps = stream(2, "sparse")
    model = ATD(20, 3, step_size=Decay(1.0, 10), lambda_=0.9, eta=0.01, trace="replacing", buffer_size=8)
    model.start_from(np.arange(20.0))
    model.save(tmp_path / "model")
    loaded = tlstd.load(tmp_path / "model")
    assert np.array_equal(loaded.weights, np.arange(20.0))
    for m in (model, loaded):
        m.update_many(steps)
    assert np.array_equal(loaded.weights, model.weights)


@pytest.mark.parametrize("after", [0, 3, 8, 11])
def test_an_interruption_takes_a_replacing_trace_back(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that has been appended, but has not moved the weights, leaves nothing on the trace."""
    steps = stream(2, "sparse")[:30]
    whole, cut_off = (
        ATD(20, 3, step_size=Decay(1.0, 10), lambda_=0.9, eta=0.01, trace="replacing", buffer_size=8) for _ in range(2)
    )
    whole.update_many(steps)
    cut_off.update_many(steps[:after])
    with monkeypatch.context() as patch:
        patch.setattr(MovingWeights, "move", lambda *arguments: _raise(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            cut_off.update(steps[after])
    assert cut_off.n_updates == after
    cut_off.update_many(steps[after:])
    assert close(cut_off.weights, whole.weights, 1e-10)


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.long
def test_contract_with_replacing_traces() -> None:
    check_estimator(
        lambda n, **more: ATD(n, n // 2, step_size=Decay(1.0, 10), lambda_=0.7, eta=0.01, trace="replacing", **more)
    )


@pytest.mark.parametrize("bad", [{"rank": 11}, {"rank": -1}, {"eta": -0.1}, {"step_size": 0.0}, {"step_size": "x"}])
def test_bad_parameters(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"rank": 3, "step_size": 0.1, "eta": 0.1}
    with pytest.raises(InvalidParameterError, match=next(iter(bad))):
        ATD(10, lambda_=0.5, **{**good, **bad})
