"""Influence and intervals of what was fitted to a log: its start states, and its episodes by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import IntArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation.bootstrap import bootstrap_interval
from tlstd.evaluation.fitted import Fitted, Starts
from tlstd.evaluation.influence import Asked, Influence, InfluenceKind, influence_by, influences
from tlstd.evaluation.intervals import Interval, interval_of
from tlstd.evaluation.whole_episodes import WholeEpisodes, whole_episodes
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.logs.log import Log

SAMPLED, SAMPLE = 1_000_000, 100_000
"""Steps beyond which h comes from a sample of episodes, and steps of that sample."""
IntervalKind: TypeAlias = Literal["auto", "sandwich", "plug-in", "debiased", "bootstrap", "returns"]
"""Kinds of intervals by name; "auto" is the sandwich."""


def influence_on(fitted: Fitted, states: ArrayLike | None = None, kind: InfluenceKind = "sandwich") -> Influence:
    """What each step and episode of the log has moved the mean value of states by; of the start states, if left out."""
    return influences_on(fitted, [asked_states(fitted, states)], kind)[0]


def influences_on(fitted: Fitted, asked: Sequence[Asked], kind: InfluenceKind = "sandwich") -> list[Influence]:
    """The same for several sets of states, in the same passes."""
    rows, model = learned_rows(fitted), _model(fitted)
    if len(fitted.log) > SAMPLED:
        sample = sampled(fitted)
        on_sample = influences(sample, [Asked(each.X, None, each.offsets) for each in asked])
        found = [influence_by(model, *pair, sample.seen_ids) for pair in zip(asked, on_sample, strict=True)]
    else:
        found = influences(model, asked, kind=kind)
    names = _group_names(fitted.log, rows, np.flatnonzero(found[0].groups.cut))
    return [each.named(names) for each in found]


def returns_of(fitted: Fitted) -> WholeEpisodes:
    """The mean return of the start states, on-policy; with what lies behind cuts, and the influence of its values."""
    if fitted.target is not None or "start states" not in fitted.starts:
        raise InvalidInputError(
            'intervals of kind "returns" are of the start states under the logged policy: leave out states and '
            'policy, or use kind="sandwich"'
        )
    found = whole_episodes(fitted, len(fitted.log) > SAMPLED)
    if found is None:
        raise InvalidInputError("no start state has a step whose next observation is known: there are no returns")
    if found.cuts is None or not found.rests_on_model:
        return found
    return found.with_influence(influences_on(fitted, [found.cuts])[0], fitted.log, learned_rows(fitted))


def _group_names(log: Log, rows: IntArray, first: IntArray) -> list[Any]:
    """Names of groups of steps: an episode's own name, or the steps of a block of it, counted from its first."""
    begins, ends = rows[first], rows[np.append(first[1:], rows.size) - 1]
    episode = np.searchsorted(log.episodes, begins, side="right") - 1
    blocks = np.bincount(episode, minlength=log.n_episodes) > 1
    names: list[Any] = []
    for e, a, b in zip(episode.tolist(), begins.tolist(), ends.tolist(), strict=True):
        a, b = a - int(log.episodes[e]), b - int(log.episodes[e])
        steps = f"steps {a:,} to {b:,}" if b > a else f"step {a:,}"
        if log.n_episodes > 1:
            steps += f" of episode {log.ids[e]}"
        names.append(steps if blocks[e] else log.ids[e])
    return names


def interval_for(
    fitted: Fitted, states: ArrayLike | None = None, level: float = 0.95, kind: IntervalKind = "auto"
) -> Interval:
    """The interval of the mean value of states, of one of the kinds."""
    if kind == "returns":
        if states is not None:
            raise InvalidInputError('intervals of kind "returns" are of the start states: leave out states')
        return returns_of(fitted).interval(level)
    if kind == "bootstrap":
        return bootstrap_interval(_model(fitted), asked_states(fitted, states), level=level)
    found = influence_on(fitted, states, "debiased" if kind == "debiased" else "sandwich")
    return interval_of(found.plug_in() if kind == "plug-in" else found, level)


def sampled(fitted: Fitted) -> KrylovLSTD:
    """A model of about ``SAMPLE`` steps in evenly spaced episodes; of the first steps, where episodes are long."""
    log = fitted.log
    wanted = max(1, int(log.n_episodes * SAMPLE / len(log)))
    chosen = np.unique(np.linspace(0, log.n_episodes - 1, wanted).astype(np.int64))
    if np.diff(log.episodes)[chosen].sum() > 2 * SAMPLE:
        part, rows = log[:SAMPLE], np.arange(SAMPLE)
    else:
        part, rows = log.select(chosen), log.rows_of(chosen)
    target = fitted.target
    if target is not None and target.table is not None:
        target = replace(target, table=target.table[rows])
    ratios = None if fitted.rhos is None else fitted.rhos[rows]
    model = KrylovLSTD(_model(fitted).n_features, lambda_=fitted.lambda_, dimension=1)
    for steps in fitted.values.pieces(part, target=target, rhos=ratios):
        model.update_many(steps)
    return model


def _model(fitted: Fitted) -> KrylovLSTD:
    model = fitted.values.model
    if not isinstance(model, KrylovLSTD):
        raise InvalidInputError(f"influence was asked of {type(model).__name__}: it is known of KrylovLSTD")
    return model


def asked_states(fitted: Fitted, states: ArrayLike | None = None) -> Asked:
    """Features of states, of the start states if left out, and the steps that they came with."""
    starts, rows = _starts(fitted, states), learned_rows(fitted)
    drawn = None
    if starts.rows is not None:  # where the first step was left out, with the one after it
        drawn = np.minimum(np.searchsorted(rows, starts.rows), rows.size - 1)
    X, offsets = fitted.encode(starts)
    return Asked(X, drawn, offsets)


def learned_rows(fitted: Fitted) -> IntArray:
    """The rows of the log that the model has learned from, in order."""
    log = fitted.log
    last = log.episodes[1:] - 1
    known = log.terminated[last]
    if fitted.target is None or fitted.target.table is None or fitted.values.kind == "states":
        known = known | log.has_final
    return np.delete(np.arange(len(log)), last[~known])


def _starts(fitted: Fitted, states: ArrayLike | None) -> Starts:
    if states is None:
        return next(iter(fitted.starts.values()))
    observations: Any = np.asarray(states, dtype=fitted.log.observations.dtype)
    shape = fitted.log.observations.shape[1:]
    if observations.shape == shape:
        observations = observations[None]
    if observations.shape[1:] != shape or not len(observations):
        raise InvalidInputError(f"states have shape {observations.shape}: pass (M, {', '.join(map(str, shape))})")
    return Starts(observations, None)
