"""Task: the best setting of a method for each number of samples, on streams that are not reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.threads import one_thread
from tlstd.data.transitions import Transitions
from tlstd_lab.learning import make
from tlstd_lab.problems import measured, stream
from tlstd_lab.questions.contest.methods import filled, scaled

Place = tuple[int, ...]
"""Index of the value on each axis."""


def tune(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """Look for the setting with the least mean RMSE, for each of ``samples`` by itself.

    A coarse grid is tried (``start``), then the neighbours of the best setting on every axis, until none is better: so
    the best is inside, or at an end that cannot be passed (λ of 0 or 1, a constant step). Each try learns from every
    stream once and counts for all numbers of samples.

    Settings: ``problem``, ``estimator`` (what is not tuned), ``axes`` and ``start`` (values by name), ``samples``,
    ``streams`` (their number; seeds from ``seed`` on), ``tries`` (settings at most), and ``curve``: whether the setting
    with the least mean RMSE of the whole curve is looked for too (the last row, of 0 samples). Columns: ``samples``,
    one per axis, ``rmse`` on these streams, ``tried`` (settings in all), ``inside`` (1, or 0 where an axis or the tries
    ended).
    """
    search = Search(settings, range(seed, seed + settings["streams"]))
    samples = [*settings["samples"], 0] if settings.get("curve") else settings["samples"]
    found = [search.best_at(at) for at in range(len(samples))]
    columns: dict[str, IntArray | FloatArray] = {"samples": np.array(samples)}
    for axis, (name, values) in enumerate(search.axes.items()):
        columns[name] = np.array([float(values[place[axis]]) for place, _ in found])
    columns["rmse"] = np.array([float(search.errors[place][at]) for at, (place, _) in enumerate(found)])
    columns["inside"] = np.array([float(inside) for _, inside in found])
    return columns | {"tried": np.full(len(found), float(len(search.errors)))}


class Search:
    """Mean errors by setting, and the walk to the best of them."""

    def __init__(self, settings: Mapping[str, Any], seeds: Sequence[int]) -> None:
        self.settings = settings
        self.streams = [stream(settings["problem"], settings["samples"][-1], seed) for seed in seeds]
        self.axes: dict[str, Sequence[float]] = dict(settings["axes"])
        self.errors: dict[Place, FloatArray] = {}
        starts = [[values.index(value) for value in settings["start"][name]] for name, values in self.axes.items()]
        for place in product(*starts):
            self._try(place)

    def best_at(self, at: int) -> tuple[Place, bool]:
        """The best place for one number of samples, and whether all its neighbours are known to be no better."""
        while True:
            best = min(self.errors, key=lambda place: float(self.errors[place][at]))
            unknown = [place for place in self._neighbours(best) if place not in self.errors]
            if not unknown:
                return best, self._inside(best)
            for place in unknown:
                if not self._try(place):
                    return best, False

    def _try(self, place: Place) -> bool:
        """Measure a setting, unless there have been enough."""
        if len(self.errors) >= self.settings["tries"]:
            return False
        point = {name: values[i] for (name, values), i in zip(self.axes.items(), place, strict=True)}
        estimator = filled(self.settings["estimator"], point)
        with np.errstate(all="ignore"):
            errors = np.mean([self._curve(estimator, steps) for steps in self.streams], axis=0)
            if self.settings.get("curve"):
                errors = np.append(errors, mean_of_curve(errors, self.settings["samples"]))
        self.errors[place] = errors
        return True

    def _curve(self, estimator: Mapping[str, Any], steps: Transitions) -> FloatArray:
        made, samples = measured(self.settings["problem"]), self.settings["samples"]
        model, errors = make(scaled(estimator, made.square_length, made.n_features), made.n_features), []
        with one_thread(), np.errstate(all="ignore"):
            for start, stop in zip((0, *samples), samples, strict=False):
                model.update_many(steps[start:stop])
                errors.append(made.rmse(model.predict(made.X)))
        return np.array(errors)

    def _neighbours(self, place: Place) -> Iterator[Place]:
        for axis, values in enumerate(self.axes.values()):
            for i in (place[axis] - 1, place[axis] + 1):
                if 0 <= i < len(values):
                    yield (*place[:axis], i, *place[axis + 1 :])

    def _inside(self, place: Place) -> bool:
        """Whether no axis ends where it could go on: step sizes, decays towards 0, more passes."""
        open_ends = {
            "alpha": (True, True),
            "rate": (True, True),
            "eta": (True, True),
            "n0": (True, False),
            "passes": (False, True),
        }
        for i, (name, values) in zip(place, self.axes.items(), strict=True):
            low, high = open_ends.get(name, (False, False))
            if (low and i == 0) or (high and i == len(values) - 1):
                return False
        return True


def mean_of_curve(errors: FloatArray, samples: Sequence[int]) -> FloatArray:
    """Mean RMSE from the first to the last number of samples, straight lines between (…, points).

    Example
    -------
    >>> mean_of_curve(np.array([3.0, 1.0, 1.0]), [100, 200, 400])
    array(1.33333333)
    """
    mean: FloatArray = np.asarray(np.trapezoid(errors, samples, axis=-1) / (samples[-1] - samples[0]))
    return mean
