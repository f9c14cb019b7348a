"""Task: error and CPU time of a method after each of several numbers of samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.threads import one_thread
from tlstd.data.transitions import Transitions
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation import choose
from tlstd_lab.learning import make
from tlstd_lab.problems import measured, stream, visited
from tlstd_lab.questions.contest.methods import scaled
from tlstd_lab.shared_lstd import sharing

WARM_UP = 400
"""Samples from which each kind of model learns once before anything is timed."""


def contest(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE after each of ``samples``, and the CPU seconds that it takes to get there.

    Settings: ``problem``; ``estimator`` (see :func:`tlstd_lab.learning.make`; step sizes are divided by the mean of
    ‖x‖²); ``samples`` (rising), ``length`` of the stream if it is not the last of them; and ``choose``, a parameter's
    name and candidates, if one is chosen by held-out data at each number of samples; ``shared``, if candidates of LSTD
    share their matrices (the same errors; its times are then no one's).

    Columns: ``samples``; ``seconds``, of learning from all samples so far, choosing, and solving once; ``rmse`` at the
    problem's states; ``visited``, the RMSE at states of another stream; ``chosen``, the value or Krylov dimension, NaN
    if there is none; ``zero``, the RMSE of predicting 0.
    """
    name, samples = settings["problem"], settings["samples"]
    made, there = measured(name), visited(name)
    steps = stream(name, settings.get("length", samples[-1]), seed)
    with one_thread(), np.errstate(all="ignore"):
        _measure(settings, steps[: min(WARM_UP, samples[0])])
        rows, model, learning = [], _model(settings), 0.0
        for start, stop in zip((0, *samples), samples, strict=False):
            if settings.get("choose"):
                model, seconds = _measure(settings, steps[:stop])
            else:
                begin = time.process_time()
                model.update_many(steps[start:stop])
                learning += time.process_time() - begin
                seconds = learning + _read(model)
            errors = made.rmse(model.predict(made.X)), there.rmse(model.predict(there.X))
            rows.append((seconds, *errors, _chosen(settings, model), made.rmse(np.zeros(made.truth.size))))
    names = ("seconds", "rmse", "visited", "chosen", "zero")
    return {"samples": np.array(samples)} | dict(zip(names, np.array(rows).T, strict=True))


def _measure(settings: dict[str, Any], steps: Transitions) -> tuple[LinearEstimator, float]:
    """A model that learns from all steps, and the CPU seconds of choosing, learning and solving."""
    begin, more = time.process_time(), {}
    if settings.get("choose"):
        ((parameter, values),) = settings["choose"].items()
        factory: Callable[..., LinearEstimator] = partial(_model, settings)
        if settings.get("shared"):
            factory = sharing(settings["estimator"], measured(settings["problem"]).n_features)
        choice = choose(lambda value: factory(**{parameter: value}), values, steps)
        more = {parameter: choice.value}
    model = _model(settings, **more)
    model.update_many(steps)
    _read(model)
    return model, time.process_time() - begin


def _model(settings: dict[str, Any], **more: Any) -> LinearEstimator:
    made = measured(settings["problem"])
    candidates = settings.get("choose") or {}
    first = {parameter: values[0] for parameter, values in candidates.items()}
    return make(scaled(settings["estimator"], made.square_length, made.n_features) | first | more, made.n_features)


def _read(model: LinearEstimator) -> float:
    begin = time.process_time()
    model.sparse_weights  # noqa: B018 - solved when read
    return time.process_time() - begin


def _chosen(settings: dict[str, Any], model: LinearEstimator) -> float:
    for parameter in settings.get("choose") or ():
        return float(getattr(model, parameter))
    return float(getattr(model, "chosen_dimension", np.nan))
