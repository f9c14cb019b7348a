"""Errors of "auto" on energy storage and Mountain Car, against TD, LSTD and the best dimension in hindsight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tlstd import LSTD, Transitions
from tlstd.core.svd import inverse_factors, svd
from tlstd.core.threads import one_thread
from tlstd.evaluation import true_values
from tlstd.streams.simulated import trajectory
from tlstd_lab.measurements.krylov.topic import (
    CAR_STREAMS,
    ENERGY_SAMPLES,
    LAMBDA,
    STREAMS,
    Data,
    Topic,
    auto_against_hindsight,
    sample,
)  # fmt: skip
from tlstd_lab.measurements.krylov.tuned_td import PAPER, TUNING, Tuning, errors_after
from tlstd_lab.panel import seeds
from tlstd_lab.problems import EVALUATION_SEED, Problem, problem
from tlstd_lab.tables import span, spread, table, verdict

CAR_SAMPLES = (1_000, 5_000, 10_000)
CUTOFFS = (*(10.0 ** -np.arange(1.0, 10.5, 0.5)).tolist(), 0.0)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Of the means over streams."""
    return float(np.mean(ours) / np.mean(theirs))


def energy() -> Data:
    """RMSE on energy storage of "auto", of TD, and of the best dimension in hindsight."""
    made = problem("energy")
    tuning = Tuning(made, ENERGY_SAMPLES)
    streams = [sample(made, ENERGY_SAMPLES[-1], seed) for seed in seeds(STREAMS)]
    found: list[Data] = []
    for at, n in enumerate(ENERGY_SAMPLES):
        settings = {"paper": tuning.best(PAPER, at), "tuned": tuning.best_of_all(at)}
        row: Data = {"samples": n, "settings": {name: str(setting) for name, setting in settings.items()}}
        for name, setting in settings.items():
            row[name] = [errors_after((n,), setting.model(made), made, stream)[0] for stream in streams]
        row |= auto_against_hindsight(made, [stream[:n] for stream in streams])
        found.append(row)
    return {"rows": found, "td_runs": len(tuning.errors) * TUNING, "td_settings": len(tuning.errors)}


def energy_table(data: Data) -> str:
    head = ["samples", "Krylov LSTD", "dimensions", "TD, paper's grid", "TD, tuned", "/ TD, paper's grid",
            "/ TD, tuned", "best in hindsight", "/ best"]  # fmt: skip
    rows = [
        [
            f"{row['samples']:,}", spread(row["auto"]), span(row["dimensions"]), spread(row["paper"]),
            spread(row["tuned"]), verdict(ratio(row["auto"], row["paper"]), 0.85),
            verdict(ratio(row["auto"], row["tuned"]), 0.92),
            f"{spread(row['best'])}, dimensions {span(row['best_dimensions'])}",
            verdict(ratio(row["auto"], row["best"]), 1.05, 3),
        ]
        for row in data["rows"]
    ]  # fmt: skip
    settings = "; ".join(f"{row['samples']:,}: {row['settings']['tuned']}" for row in data["rows"])
    single = [np.divide(row["auto"], row["paper"]) for row in data["rows"]]
    ranges = ", ".join(f"{values.min():.2f} to {values.max():.2f}" for values in single)
    note = (
        f"TD was tuned by {data['td_runs']:,} runs ({data['td_settings']} settings, {TUNING} streams of other seeds), "
        f"at each number of samples by itself. Best: {settings}. "
        f"Stream by stream the ratios to TD on the paper's grid go from {ranges}."
    )
    return f"{table(head, rows)}\n\n{note}"


def car() -> Data:
    """RMSE on Mountain Car of "auto", of LSTD at its best cut-off in hindsight, and of the best dimension.

    On the grid of states that the figures use, and on states that another stream goes through.
    """
    found = []
    for name in ("car-tiles", "car-rbf"):
        made = problem(name)
        states = trajectory(made.domain, made.policy, n_steps=5_000, seed=EVALUATION_SEED).states[::10]
        there = made._replace(X=made.features.encode_many(states), truth=true_values(made.domain, states))
        streams = [sample(made, CAR_SAMPLES[-1], seed) for seed in seeds(CAR_STREAMS)]
        for n in CAR_SAMPLES:
            parts = [stream[:n] for stream in streams]
            best = [best_cutoff(made, part) for part in parts]
            row: Data = {"problem": made.title, "samples": n}
            row |= {"lstd": [error for error, _ in best], "cutoffs": [cutoff for _, cutoff in best]}
            visited = auto_against_hindsight(there, parts)
            visited["lstd"] = [best_cutoff(there, part)[0] for part in parts]
            found.append(row | auto_against_hindsight(made, parts) | {"visited": visited})
    return {"rows": found}


def best_cutoff(made: Problem, stream: Transitions) -> tuple[float, float]:
    """LSTD's least RMSE over cut-offs, with one decomposition."""
    model = LSTD(made.features.n_features, lambda_=LAMBDA)
    model.update_many(stream)
    ids, A, b = model.system()
    with one_thread():
        U, sigma, Vt = svd(A)
    X = made.X if isinstance(made.X, np.ndarray) else sp.csc_array(made.X)
    on_v, on_u = X[:, ids] @ Vt.T, U.T @ b.reshape(ids.size)
    errors = [made.rmse(on_v @ (inverse_factors(sigma, rcond=cutoff) * on_u)) for cutoff in CUTOFFS]
    best = int(np.argmin(errors))
    return errors[best], CUTOFFS[best]


def car_table(data: Data) -> str:
    head = ["", "samples", "Krylov LSTD", "dimensions", "LSTD, best cut-off", "/ LSTD", "best dimension in hindsight",
            "/ best", "where a stream goes: / LSTD", "/ best"]  # fmt: skip
    rows = [
        [
            row["problem"], f"{row['samples']:,}", spread(row["auto"], 1), span(row["dimensions"]),
            spread(row["lstd"], 1), verdict(ratio(row["auto"], row["lstd"]), 1.05, 3),
            f"{spread(row['best'], 1)}, dimensions {span(row['best_dimensions'])}",
            verdict(ratio(row["auto"], row["best"]), 1.05, 3),
            *(f"{ratio(row['visited']['auto'], row['visited'][other]):.3f}" for other in ("lstd", "best")),
        ]
        for row in data["rows"]
    ]  # fmt: skip
    return table(head, rows)


ENERGY = Topic("energy", energy, energy_table)
CAR = Topic("car", car, car_table)
