"""What an answer was fitted to: the same in pieces as whole, and its features give its value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.evaluation.logs import random_decisions, simulated
from tlstd import KrylovLSTD, Log
from tlstd.evaluation import ValueFunction, evaluate
from tlstd.evaluation.log_intervals import influence_on

POLICY = np.random.default_rng(5).dirichlet(np.ones(2), 6)


def decisions(known: bool) -> Log:
    rng = np.random.default_rng(1)
    return simulated(random_decisions(rng, 6, 2, 2, 0.1), np.full((6, 2), 0.5), rng, 1_000, 30, known=known)


def continuous() -> Log:
    rng = np.random.default_rng(2)
    seen, done = rng.random((400, 2)), rng.random((400, 1))
    return Log.from_arrays(seen, seen[:, 0] + done[:, 0], actions=done, terminated=rng.random(400) < 0.05)


CASES: dict[str, Any] = {
    "logged policy": (decisions(False), None, "KrylovLSTD"),
    "ratios": (decisions(True), lambda s: POLICY[s], "KrylovLSTD"),
    "action values": (decisions(False), lambda s: POLICY[s], "LSTDQ"),
    "action values by a table": (decisions(False), "table", "LSTDQ"),
    "continuous actions": (continuous(), lambda s: s[:, :1], "LSTDQ"),
}


@pytest.mark.parametrize("case", CASES)
def test_pieces_are_the_whole(case: str) -> None:
    log, policy, name = CASES[case]
    policy = POLICY[log.observations] if isinstance(policy, str) else policy
    evaluation = evaluate(log, gamma=0.9, policy=policy, estimators=name)
    fitted = evaluation.fitted
    assert fitted is not None
    whole, pieces = fitted.transitions(), list(fitted.pieces(137))
    assert len(pieces) == -(-len(log) // 137)
    for array in ("X", "X_next"):
        together = sp.vstack([sp.csr_array(getattr(piece, array)) for piece in pieces])
        assert_allclose(together.toarray(), sp.csr_array(getattr(whole, array)).toarray(), rtol=1e-15)
    for array in ("rewards", "discounts", "trace_discounts", "rhos"):
        assert_array_equal(np.concatenate([getattr(piece, array) for piece in pieces]), getattr(whole, array))
    model = KrylovLSTD(whole.n_features, lambda_=fitted.lambda_, dimension=fitted.dimension)
    model.update_many(iter(pieces))
    assert_allclose(model.weights, fitted.values.model.weights, rtol=1e-9, atol=1e-12)
    X, offsets = fitted.start_features("start states")
    mean = sp.csr_array(X).mean(axis=0) @ fitted.values.model.weights + offsets.mean()
    assert mean == pytest.approx(fitted.mean("start states"))
    assert offsets.any() == (name == "LSTDQ")


@pytest.mark.parametrize("case", ["action values", "action values by a table"])
def test_influence_counts_the_offsets(case: str) -> None:
    """One feature a state and action can represent the constants: with them or without, the whole system's value."""
    log, policy, name = CASES[case]
    policy = POLICY[log.observations] if isinstance(policy, str) else policy
    fitted = evaluate(log, gamma=0.9, policy=policy, estimators=name).fitted
    assert fitted is not None
    plain = ValueFunction(KrylovLSTD(12, lambda_=0.0), fitted.values.features, 0.9, kind="actions", n_actions=2)
    plain.update(log, policy=fitted.target)
    without, found = influence_on(replace(fitted, values=plain)), influence_on(fitted)
    assert found.value == pytest.approx(without.value, rel=1e-3)
    assert found.standard_error == pytest.approx(without.standard_error, rel=1e-2)


def test_the_fit_of_a_part_has_its_start_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """LSTDQ of a large log learns from some episodes: rows and start states are those of that part."""
    monkeypatch.setattr("tlstd.evaluation.task.SAMPLED", 500)
    monkeypatch.setattr("tlstd.evaluation.task.SAMPLE", 200)
    monkeypatch.setattr("tlstd.evaluation.table_actions.MOST_STEPS", 300)
    log = decisions(False)
    for policy in (lambda s: POLICY[s], POLICY[log.observations]):
        evaluation = evaluate(log, gamma=0.9, policy=policy, estimators="LSTDQ")
        fitted = evaluation.fitted
        assert fitted is not None
        starts = fitted.starts["start states"]
        assert len(fitted.log) < 500
        assert_array_equal(starts.rows, fitted.log.start_rows)
        assert_array_equal(starts.observations, fitted.log.observations[fitted.log.start_rows])
        assert any("LSTDQ learned from" in note for note in evaluation.notes)
        assert np.isfinite(influence_on(fitted).standard_error)
        assert len(evaluate(log, gamma=0.9, policy=policy, estimators="LSTDQ", all=True).fitted.log) == len(log)  # type: ignore[union-attr]
