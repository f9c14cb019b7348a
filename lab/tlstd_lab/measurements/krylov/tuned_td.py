"""TD, and the search for its best step size, λ and N₀."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from tlstd import TD, Decay, Transitions
from tlstd.core.arrays import FloatArray
from tlstd.estimators.base import LinearEstimator
from tlstd_lab.measurements.krylov.topic import LAMBDA, sample
from tlstd_lab.panel import seeds
from tlstd_lab.problems import Problem

TUNING = 5
"""Streams by which parameters are chosen."""


class Setting(NamedTuple):
    """A step size of TD, times the active features, with its λ and N₀; infinite N₀ is a constant step."""

    alpha: float
    lambda_: float
    n0: float

    def model(self, made: Problem) -> TD:
        alpha = self.alpha / made.square_length
        step = alpha if np.isinf(self.n0) else Decay(alpha, self.n0)
        return TD(made.features.n_features, step_size=step, lambda_=self.lambda_)

    def __str__(self) -> str:
        decay = "constant" if np.isinf(self.n0) else f"N₀={self.n0:g}"
        return f"α={self.alpha:g}/active, λ={self.lambda_:g}, {decay}"


PAPER = tuple(Setting(2.0**e, LAMBDA, np.inf) for e in range(-11, 0))
"""The paper's α₀ (to be divided by the active features), at this λ and without decay."""
LARGEST = PAPER[-1]


def errors_after(samples: Sequence[int], model: LinearEstimator, made: Problem, stream: Transitions) -> list[float]:
    """RMSE after each number of samples."""
    errors, start = [], 0
    with np.errstate(all="ignore"):
        for stop in samples:
            model.update_many(stream[start:stop])
            errors.append(made.rmse(model.predict(made.X)))
            start = stop
    return errors


class Tuning:
    """TD's mean error over the tuning streams, by setting and number of samples; each setting is run once."""

    def __init__(self, made: Problem, samples: Sequence[int]) -> None:
        self.made, self.samples = made, samples
        self.streams = [sample(made, samples[-1], seed) for seed in seeds(TUNING, tuning=True)]
        self.errors: dict[Setting, FloatArray] = {}

    def best(self, settings: Iterable[Setting], at: int) -> Setting:
        settings = list(settings)
        for setting in settings:
            if setting not in self.errors:
                runs = [errors_after(self.samples, setting.model(self.made), self.made, s) for s in self.streams]
                self.errors[setting] = np.mean(runs, axis=0)
        return min(settings, key=lambda setting: float(self.errors[setting][at]))

    def best_of_all(self, at: int) -> Setting:
        """The best over α, λ and N₀, with grids that grow until it is inside."""
        alphas, n0s = [2.0**e for e in range(-5, 2)], [100.0, 1e3, 1e4, np.inf]
        lambdas = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
        while True:
            best = self.best((Setting(*values) for values in product(alphas, lambdas, n0s)), at)
            if best.alpha == min(alphas):
                alphas.append(best.alpha / 2.0)
            elif best.alpha == max(alphas):
                alphas.append(2.0 * best.alpha)
            elif best.n0 == min(n0s):
                n0s.append(best.n0 / 10.0)
            elif best.n0 == max(n for n in n0s if np.isfinite(n)):
                n0s.append(10.0 * best.n0)  # constant is the far end of it
            else:
                return best
