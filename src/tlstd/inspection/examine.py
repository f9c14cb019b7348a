"""What is in a model or a horde, live or in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Path, printable, read
from tlstd.diagnostics import effective_rank
from tlstd.errors import StateError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.loading import load
from tlstd.evaluation.value_function import CLASS_NAME, ValueFunction
from tlstd.features.base import FeatureMap
from tlstd.horde import Horde
from tlstd.horde.saving import read_stored
from tlstd.inspection.advice import Advice, advise
from tlstd.truncated.truncation import TruncatedEstimator
from tlstd.zoo.atd import ATD
from tlstd.zoo.handover import Handover

SCHEMA = 1
"""Version of what :meth:`Inspection.plain` returns: raised when a key changes its meaning or goes, not for new ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """A factored A: its spectrum and how well it is kept."""

    rank: int
    rcond: float
    singular_values: FloatArray
    effective_rank: int
    n_inverted: int
    """Singular values above ``rcond`` times the largest: those that the solution uses."""
    orthogonality_error: float
    n_buffered: int
    advice: Advice


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """What is known about a model; ``active`` and ``handed_over`` are None for all but a :class:`~tlstd.Handover`."""

    class_name: str
    parameters: Mapping[str, Any]
    n_updates: int
    n_features: int
    n_seen: int
    n_targets: int
    memory_bytes: int
    """Bytes in arrays as loaded: buffers have no room for more yet, and there are no caches."""
    active: str | None = None
    handed_over: int | None = None
    factors: Factors | None = None
    path: str | None = None
    file_bytes: int | None = None
    questions: tuple[Mapping[str, Any], ...] | None = None
    """Of a :class:`~tlstd.Horde`, in order: name, cumulant, discount, ratio, lambda, size; of functions the names."""
    models: tuple[Inspection, ...] | None = None
    """Of a :class:`~tlstd.Horde`: one for each group of questions."""

    def plain(self) -> dict[str, Any]:
        """The same as JSON can hold it; the keys are those of ``docs/state.md``."""
        factors = None
        if self.factors is not None:
            f = self.factors
            factors = {
                "rank": f.rank,
                "rcond": f.rcond,
                "singular_values": f.singular_values.tolist(),
                "effective_rank": f.effective_rank,
                "n_inverted": f.n_inverted,
                "orthogonality_error": f.orthogonality_error,
                "n_buffered": f.n_buffered,
                "advice": {"verdict": f.advice.verdict, "rank": f.advice.rank, "reason": f.advice.reason},
            }
        return {
            "schema": SCHEMA,
            "path": self.path,
            "class": self.class_name,
            "parameters": dict(self.parameters),
            "n_updates": self.n_updates,
            "n_features": self.n_features,
            "n_seen": self.n_seen,
            "n_targets": self.n_targets,
            "memory_bytes": self.memory_bytes,
            "file_bytes": self.file_bytes,
            "active": self.active,
            "handed_over": self.handed_over,
            "factors": factors,
            "questions": None if self.questions is None else [dict(question) for question in self.questions],
            "models": None if self.models is None else [model.plain() for model in self.models],
        }


def examine_file(path: Path) -> Inspection:
    """Look at a saved model; raises :class:`~tlstd.StateError` with a remedy if there is none to be read.

    Example
    -------
    >>> examine_file("missing")
    Traceback (most recent call last):
    tlstd.errors.StateError: missing cannot be read (No such file or directory): name a file that model.save() wrote
    """
    try:
        shown = os.fspath(path).encode("utf-8", "backslashreplace").decode()  # names may hold bytes that are no text
        return _examined_file(path, shown, os.path.getsize(path))
    except OSError as error:
        raise StateError(
            f"{printable(os.fspath(path))} cannot be read ({error.strerror}): name a file that model.save() wrote"
        ) from error
    except MemoryError as error:
        raise StateError(
            f"{printable(os.fspath(path))} holds a model that does not fit into memory: inspect it on a larger machine"
        ) from error


def _examined_file(path: Path, shown: str, size: int) -> Inspection:
    """Of a model by itself, of a value function's, or of a horde."""
    kind = ""
    with suppress(StateError):  # said below, with the name of the file
        kind = read(path).class_name
    if kind == "Horde":
        found = read_stored(path)
        return _of_horde(found.questions, found.features, found.models, shown, size)
    if kind == CLASS_NAME:
        return examine(ValueFunction.load(path).model, path=shown, file_bytes=size)
    return examine(load(path), path=shown, file_bytes=size)


def examine(model: LinearEstimator | Horde, *, path: str | None = None, file_bytes: int | None = None) -> Inspection:
    """Say what a model or a horde holds. Costs a read of its singular values and O(seen · rank²).

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import TLSTD, boyan_chain
    >>> model = TLSTD(4, rank=2, lambda_=0.5)
    >>> model.update_many(boyan_chain().sample(1_000, np.random.default_rng(0)))
    >>> found = examine(model)
    >>> found.n_updates, found.n_seen, found.factors.singular_values.size
    (1000, 4, 2)
    >>> found.factors.advice.verdict
    'undecided'
    """
    if isinstance(model, Horde):
        described = [question.described() for question in model.questions]
        return _of_horde(described, model.features, [group.model for group in model.groups], path, file_bytes)
    memory = model.nbytes  # before anything is read, which leaves caches
    part = model.active if isinstance(model, Handover) else model
    n_seen: int = getattr(part, "n_seen", model.n_features)
    return Inspection(
        class_name=type(model).__name__,
        parameters=model.parameters,
        n_updates=model.n_updates,
        n_features=model.n_features,
        n_seen=n_seen,
        n_targets=model.n_targets,
        memory_bytes=memory,
        active=type(part).__name__ if isinstance(model, Handover) else None,
        handed_over=model.handed_over if isinstance(model, Handover) else None,
        factors=_factors(part) if isinstance(part, TruncatedEstimator) else None,
        path=path,
        file_bytes=file_bytes,
    )


_PARTS = ("cumulant", "discount", "ratio", "lambda", "size", "name")
"""Of a question, in the order of :meth:`~tlstd.Question.described`."""


def _of_horde(
    questions: Sequence[Sequence[Any]],
    features: FeatureMap | None,
    models: Sequence[LinearEstimator],
    path: str | None,
    file_bytes: int | None,
) -> Inspection:
    parts = tuple(examine(model) for model in models)
    return Inspection(
        class_name="Horde",
        parameters={"features": None if features is None else type(features).__name__},
        n_updates=parts[0].n_updates,
        n_features=parts[0].n_features,
        n_seen=max(part.n_seen for part in parts),
        n_targets=sum(part.n_targets for part in parts),
        memory_bytes=sum(part.memory_bytes for part in parts),
        path=path,
        file_bytes=file_bytes,
        questions=tuple(dict(zip(_PARTS, row, strict=True)) for row in questions),
        models=parts,
    )


def _factors(model: TruncatedEstimator) -> Factors:
    sigma = model.singular_values
    advice = advise(
        sigma,
        rank=model.rank,
        rcond=model.rcond,
        n_seen=model.n_seen,
        n_updates=model.n_updates,
        subspace=model.subspace_lambda is not None,
    )
    if isinstance(model, ATD) and model.eta > 0.0 and 0 < sigma.size == model.rank and advice.verdict == "undecided":
        more = " (The TD part learns the rest, at its own pace.)"
        advice = Advice(advice.verdict, advice.rank, advice.reason + more)
    return Factors(
        rank=model.rank,
        rcond=model.rcond,
        singular_values=sigma,
        effective_rank=effective_rank(sigma),
        n_inverted=model.n_inverted,
        orthogonality_error=model.orthogonality_error(),
        n_buffered=model.n_buffered,
        advice=advice,
    )
