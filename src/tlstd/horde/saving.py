"""What the file of a horde holds: everything but functions, of which it has the names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tlstd.core import file_format
from tlstd.core.arrays import FloatArray
from tlstd.errors import StateError, TlstdError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.loading import unpacked
from tlstd.features.base import FeatureMap
from tlstd.features.saving import restored
from tlstd.horde.questions import Question


class Stored(NamedTuple):
    """A horde before its functions are put in."""

    questions: list[list[Any]]
    """As :meth:`Question.described` makes them."""
    features: FeatureMap | None
    """None for a map that is not of this library."""
    models: list[LinearEstimator]
    last: FloatArray
    """γ of the last step, for each model."""


def read_stored(path: file_format.Path) -> Stored:
    """Read a horde without asking for its functions; raises :class:`~tlstd.StateError`."""
    try:
        return stored(file_format.read(path))
    except StateError as error:
        raise StateError(file_format.printable(f"{path!s} cannot be loaded ({error})")) from error


def stored(
    contents: file_format.Contents, features: FeatureMap | None = None, classes: Iterable[type[LinearEstimator]] = ()
) -> Stored:
    """What is in a file, checked; a map that is given takes the place of the one in it."""
    given, saved = contents.parameters, contents.saved
    if contents.class_name != "Horde" or given.keys() != {"features", "models", "questions"}:
        raise StateError("it is not a horde: use tlstd.load for other models")
    questions = given["questions"]
    asked = _with_names(questions)
    arrays = saved.apart("features")
    if features is None and given["features"] is not None:
        features = restored(given["features"], arrays)
    if not isinstance(given["models"], list):
        raise StateError("its models are not listed")
    models = [unpacked(model, saved.apart(f"group{i}"), classes) for i, model in enumerate(given["models"])]
    if sum(question.size for question in asked) != sum(model.n_targets for model in models):
        raise StateError("its models are not those of its questions")
    if len({(model.n_updates, model.n_features, type(model)) for model in models}) != 1:
        raise StateError("its models have not learned from the same steps")
    last = saved.floats("last", len(models), low=0.0, high=1.0)
    saved.finish()
    return Stored(questions, features, models, last)


def with_functions(described: list[list[Any]], questions: Sequence[Question] | None) -> tuple[Question, ...]:
    """The questions of a file, or those given if they are the same as far as a file can tell."""
    if questions is None:
        names = [part for row in described for part in row[:3] if isinstance(part, dict)]
        if names:
            raise StateError(
                f"its questions have functions ({names[0]['function'][:80]}), which a file cannot hold: pass questions="
            )
        return tuple(Question(*row) for row in described)
    asked = tuple(questions)
    if not all(isinstance(question, Question) for question in asked):
        raise StateError(f"questions are {questions!r}: pass a list of one or more Question")
    if [question.described() for question in asked] != described:
        raise StateError("its questions are not the ones that were passed: pass those that it was made with, in order")
    return asked


def _with_names(described: Any) -> list[Question]:
    """The questions with something that cannot be asked in place of functions, so that all else is checked."""
    if not isinstance(described, list) or not all(isinstance(row, list) and len(row) == 6 for row in described):
        raise StateError("its questions are not written as this library does")
    try:
        return [Question(*map(_named, row)) for row in described]
    except TlstdError as error:
        raise StateError(f"its questions cannot be asked ({error})") from error


def _named(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.keys() != {"function"} or not isinstance(part["function"], str):
        raise StateError("its questions are not written as this library does")
    return _named  # anything that can be called
