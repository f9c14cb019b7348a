"""Several models as one: what each has learned from its part of the samples, added up."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TypeVar

from tlstd.core import file_format
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import LOADABLE

Model = TypeVar("Model", bound=LinearEstimator)


def merge(models: Iterable[Model]) -> Model:
    """A new model that has learned from the samples of all models, in their order; they stay as they are.

    For samples that were learned from in parts, on several machines for example. A trace does not pass from one model
    to the next: cut the parts where episodes end. The new model can learn on; its trace is that of the last one.

    - :class:`~tlstd.LSTD`, :class:`~tlstd.ProjectedLSTD` and :class:`~tlstd.SketchedLSTD`: A and b add; the model of
      all samples, but for rounding.
    - :class:`~tlstd.KrylovLSTD` that keeps all samples, :class:`~tlstd.LARSTD` and :class:`~tlstd.LSTDSA`: one behind
      the other; the model of all samples.
    - :class:`~tlstd.TLSTD`: the factors are joined and cut back to the rank. What each model has cut off before is
      gone, so the result depends a little on the parts and their order (``docs/clusters.md`` has how much).

    Others, and models with ``beta``, ``max_samples`` or ``subspace_lambda``, raise :class:`~tlstd.InvalidInputError`:
    what they know depends on the order of all samples.

    Parameters
    ----------
    models : one or more models of the same class and parameters
        They are copied one at a time.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import LSTD, boyan_chain, merge
    >>> parts = [boyan_chain().sample(300, np.random.default_rng(seed)) for seed in (0, 1)]
    >>> models = [LSTD(4, lambda_=0.5), LSTD(4, lambda_=0.5)]
    >>> for model, part in zip(models, parts):
    ...     model.update_many(part)
    >>> whole = LSTD(4, lambda_=0.5)
    >>> whole.update_many(parts)
    >>> bool(np.abs(merge(models).weights - whole.weights).max() < 1e-12)
    True
    """
    merged: Model | None = None
    first: Model | None = None
    for i, model in enumerate(models):
        if not isinstance(model, LinearEstimator):
            raise InvalidInputError(f"model {i} is {type(model).__name__}: pass estimators of this library")
        if first is None or merged is None:
            first, merged = model, copy.deepcopy(model)
            continue
        _check_same(i, first, model)
        merged = _of_two(merged, copy.deepcopy(model))
    if merged is None:
        raise InvalidInputError("there are no models to merge: pass at least one")
    return merged


def _check_same(i: int, first: LinearEstimator, model: LinearEstimator) -> None:
    if type(model) is not type(first):
        raise InvalidInputError(
            f"model {i} is a {type(model).__name__} and the first a {type(first).__name__}: merge models of one class"
        )
    mine, theirs = model.parameters, first.parameters
    for name in mine.keys() | theirs.keys():
        if mine.get(name) != theirs.get(name):
            raise InvalidInputError(
                f"model {i} has {name}={mine.get(name)!r} and the first {theirs.get(name)!r}: merge models of the same "
                "parameters"
            )


def _of_two(first: Model, second: Model) -> Model:
    """Both are copies."""
    state = first._merged_state(second)
    last = second if second.n_updates else first
    whole = {"n_updates": first.n_updates + second.n_updates, "trace_bound": last._bound.item(), "model": state}
    contents = file_format.Contents(type(first).__name__, first.parameters, file_format.Saved.of(whole))
    merged = type(first)._loaded(contents, LOADABLE)
    assert isinstance(merged, type(first))
    return merged
