"""Error against rank on Mountain Car, and what ``tlstd inspect`` would advise: the table of ``docs/state.md``.

uv run python -m tlstd_lab.measurements.rank_advice        # a minute
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tlstd import LSTD, RBF, TLSTD, FeatureMap, TileCoder
from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation import choose, true_values
from tlstd.inspection import examine
from tlstd.streams import record
from tlstd_lab.tables import row, table

RANKS = (20, 30, 50, 75, 100, 150)
N_STEPS = 4_000
CAR = MountainCar()
FEATURES: dict[str, tuple[FeatureMap, float]] = {
    "256 RBFs of width 0.12, λ=0.9": (RBF(CAR.low, CAR.high, grid=16, width=0.12), 0.9),
    "256 RBFs of width 0.3, λ=0.9": (RBF(CAR.low, CAR.high, grid=16, width=0.3), 0.9),
    "8 tilings of 8 × 8, λ=1": (TileCoder(CAR.low, CAR.high, tiles=8, tilings=8), 1.0),
}


def main() -> None:
    truth = true_values(CAR, CAR.grid())
    print(table(["", *(f"rank {rank}" for rank in RANKS), "LSTD"], []))
    for name, (features, lambda_) in FEATURES.items():
        X, stream = features.encode_many(CAR.grid()), record(CAR, None, features, n_steps=N_STEPS, seed=0)

        def rmse(model: LinearEstimator, X: object = X) -> str:
            return f"{np.sqrt(np.mean((model.predict(X) - truth) ** 2)):.2f}"

        errors, facts, advice = [], [], []
        for rank in RANKS:
            model = TLSTD(features.n_features, rank, lambda_=lambda_)
            model.update_many(stream)
            errors.append(rmse(model))
            found = examine(model).factors
            assert found is not None
            facts.append(f"{found.effective_rank}, {found.n_inverted}")
            to = f" to {found.advice.rank}" if found.advice.verdict == "lower" else ""
            advice.append(found.advice.verdict + to)
        choice = choose(partial(TLSTD, features.n_features, lambda_=lambda_), RANKS, stream)
        scores = [f"{np.sqrt(score):.2f}" for score in choice.scores]
        scores[RANKS.index(choice.value)] += ", chosen"
        full = LSTD(features.n_features, lambda_=lambda_)
        full.update_many(stream)
        print(row([name, *errors, rmse(full)]))
        for what, cells in (("held out", scores), ("effective rank, used", facts), ("advice", advice)):
            print(row([what, *cells, ""]))


if __name__ == "__main__":
    main()
