"""Many questions about one stream: encoded once, learned by as many models as there are discounts and policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import file_format
from tlstd.core.arrays import FloatArray, IntArray, as_real
from tlstd.data.transitions import Transition, Transitions, trace_discounts
from tlstd.data.vectors import Vector, as_vector
from tlstd.errors import InvalidInputError, InvalidParameterError, StateError, TlstdError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.calls import Synchronized, synchronized
from tlstd.estimators.loading import packed
from tlstd.features.base import FeatureMap, check_map
from tlstd.features.saving import description
from tlstd.features.states import encoded
from tlstd.horde.questions import Question, all_cumulants
from tlstd.horde.saving import stored, with_functions
from tlstd.horde.steps import Steps


@dataclass(frozen=True, eq=False)
class Group:
    """Questions with one discount, ratio and λ at every step, and the model that learns them."""

    asked: tuple[int, ...]
    """Their numbers among all questions."""
    places: IntArray
    """Of their predictions among all predictions."""
    model: LinearEstimator


class _Pending(NamedTuple):
    """Steps that all groups are to learn from: what is left to do is known from each model's ``n_updates``."""

    parts: list[Any]
    """For each group Transitions, or a Transition."""
    n_before: int
    last: FloatArray


class Horde(Synchronized):
    """Predictions of many general value functions from one stream of observations.

    Observations are encoded once. Questions with the same discount, ratio and λ at every step form a *group*: their
    equations have the same matrix A and the same traces and differ in b alone, so one model with as many targets learns
    all of them. Between groups features are shared, and nothing else: γ and ρ are inside every term of A, and the
    trace.

    Every prediction is, to rounding, that of a model of its own.

    Parameters
    ----------
    features : feature map
        Of observations.
    questions : sequence of :class:`Question`
    model : estimator
        As which each group learns: a clone of it for each, with as many targets. One without ``n_targets`` learns each
        prediction apart.

    Attributes
    ----------
    n_predictions : int
        Sum of the sizes of all questions; predictions are in the order of the questions.

    Notes
    -----
    Time and memory are those of one model for each group, with as many targets. A call of :meth:`update_many` with N
    steps takes 8 · N · n_predictions bytes for the cumulants; cut long recordings into pieces.

    Interrupted while groups learn (Ctrl-C, no memory left), the next call first completes the others: all have then
    learned from the same steps. A refusal changes none of them.

    References
    ----------
    Sutton, Modayil, Delp, Degris, Pilarski, White, Precup: Horde: a scalable real-time architecture for learning
    knowledge from unsupervised sensorimotor interaction. AAMAS 2011.

    Example
    -------
    How much light within about 2, 10 and 50 steps, along a corridor with a lamp at its end:

    >>> from tlstd import Horde, LSTD, Question, Steps, TileCoder
    >>> place = np.abs(np.arange(2_001) % 40 - 20) / 20.0            # there and back again
    >>> features = TileCoder([0.0], [1.0], tiles=21, tilings=1)
    >>> questions = [Question("light", discount=gamma) for gamma in (0.5, 0.9, 0.98)]
    >>> horde = Horde(features, questions, LSTD(features.n_features, lambda_=1.0))
    >>> horde.update_many(Steps.along(place[:, None], columns={"light": place[1:] ** 2}))
    >>> horde.predict([0.5]).round(1)
    array([ 0.5,  3.3, 16.7])
    """

    def __init__(self, features: FeatureMap, questions: Sequence[Question], model: LinearEstimator) -> None:
        if not isinstance(model, LinearEstimator):
            raise InvalidParameterError(f"model is {type(model).__name__}: pass an estimator of this library")
        asked = _checked(questions)
        shares = "n_targets" in model.get_params(deep=False)
        groups = []
        for numbers, places in _grouped(asked, shares):
            lambda_ = asked[numbers[0]].lambda_
            changes: dict[str, Any] = {"n_targets": places.size} if shares else {}
            if lambda_ is not None:
                changes["lambda_"] = lambda_
            groups.append(Group(numbers, places, model.clone(**changes)))
        self._begin(features, asked, tuple(groups))

    def _begin(self, features: FeatureMap, questions: tuple[Question, ...], groups: tuple[Group, ...]) -> None:
        check_map(features)
        if features.n_features != groups[0].model.n_features:
            raise InvalidParameterError(
                f"the features are {features.n_features} but the model has n_features={groups[0].model.n_features}: "
                "make it for this map"
            )
        super().__init__()
        self.features, self.questions, self._groups = features, questions, groups
        self.n_predictions = sum(question.size for question in questions)
        self._last: FloatArray = np.zeros(len(groups))  # γ of the last step, for each group; 0 where an episode ended
        self._seen: tuple[FloatArray, Any] = np.zeros(0), None  # the last next observation, and its features
        self._cumulants = _shared(questions)
        asked = [questions[group.asked[0]] for group in groups]
        # for each group the first one with the same discounts, ratios and λ: another only where targets are not shared
        self._alike = [next(i for i, other in enumerate(asked) if other.shares_with(one)) for one in asked]
        self._before: _Pending | None = None

    # --- learning ---------------------------------------------------------------------------------------------------

    @property
    @synchronized
    def n_updates(self) -> int:
        """Number of steps learned from."""
        return self._groups[0].model.n_updates

    @property
    def n_groups(self) -> int:
        """Number of models."""
        return len(self._groups)

    @property
    @synchronized
    def groups(self) -> tuple[Group, ...]:
        """Which questions share a model, and the models. They are to be looked at; steps go through the horde."""
        return self._groups

    @property
    @synchronized
    def nbytes(self) -> int:
        """Bytes held in arrays by all models."""
        return sum(group.model.nbytes for group in self._groups)

    @synchronized
    def update(
        self,
        observation: ArrayLike,
        next_observation: ArrayLike,
        *,
        action: Any = None,
        terminated: bool | np.bool_ = False,
        truncated: bool | np.bool_ = False,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        """Learn from one step; ``columns`` has a number, or for a question of several cumulants a row, by name."""
        step = Steps(
            np.atleast_2d(as_real(observation, "observation")),
            np.atleast_2d(as_real(next_observation, "next_observation")),
            actions=None if action is None else [action],
            terminated=np.array([terminated]),
            truncated=np.array([truncated]),
            columns={name: [value] for name, value in (columns or {}).items()},
        )
        if len(step) != 1:
            raise InvalidInputError(f"observation has shape {np.shape(observation)}: pass (D,), or use update_many")
        self._learn(step, None, self._vectors(step))

    def _vectors(self, step: Steps) -> tuple[Vector, Vector]:
        """The features of one step; those of the observation are mostly known from the step before."""
        x = self._seen[1] if np.array_equal(self._seen[0], step.observations[0]) else None
        x_next = as_vector(self.features.encode(step.next_observations[0]))
        if x is None:
            x = as_vector(self.features.encode(step.observations[0]))
        self._seen = step.next_observations[0].copy(), x_next
        return x, x_next

    @synchronized
    def update_many(self, steps: Steps) -> None:
        """Learn from many steps: the same as :meth:`update` for each.

        The first step continues the trace of the last call; call :meth:`gap` before it if steps are missing.
        """
        self._learn(steps, None)

    @synchronized
    def update_and_predict(self, steps: Steps) -> FloatArray:
        """Learn from steps one after the other, and return all predictions at each next observation right after it.

        (N, n_predictions); in compiled loops where the model has them.
        """
        values = np.empty((len(steps), self.n_predictions))
        self._learn(steps, values)
        return values

    @synchronized
    def gap(self) -> None:
        """Say that steps are missing here: the next step starts with an empty trace, as after a truncated one.

        Call it after :meth:`load` if the process was down, and wherever the stream was interrupted. Nothing is learned.

        Example
        -------
        >>> from tlstd import Horde, LSTD, OneHot, Question, Steps
        >>> horde = Horde(OneHot([0], [9]), [Question(1.0, discount=0.9)], LSTD(10, lambda_=1.0))
        >>> horde.update_many(Steps.along([[0], [1], [2]]))
        >>> horde.gap()
        >>> horde.update_many(Steps.along([[7], [8]]))  # does not credit the observations 0, 1 and 2
        """
        self._last = np.zeros(len(self._groups))

    def _learn(self, steps: Steps, values: FloatArray | None, vectors: tuple[Vector, Vector] | None = None) -> None:
        if not isinstance(steps, Steps):
            raise InvalidInputError(f"update_many() was given {type(steps).__name__}: pass Steps")
        if not len(steps):
            return
        pending = self._prepared(steps, vectors)
        for number in sorted(set(self._alike))[1:]:  # the first refuses by itself
            self._groups[number].model.check(pending.parts[number])
        self._before = pending
        try:
            for group, part in zip(self._groups, pending.parts, strict=True):
                if values is not None:
                    found = group.model.update_and_predict(part)
                    values[:, group.places] = found.reshape(len(steps), -1)
                elif isinstance(part, Transition):
                    group.model.update(part)
                else:
                    group.model.update_many(part)
        except TlstdError:
            if all(group.model.n_updates == pending.n_before for group in self._groups):
                self._before = None
            raise
        self.__dict__.update(_last=pending.last, _before=None)

    def _prepared(self, steps: Steps, vectors: tuple[Vector, Vector] | None) -> _Pending:
        """What each group is to learn; nothing changes. ``vectors`` are the features, if there is one step."""
        cumulants = all_cumulants(self._cumulants, steps, self.n_predictions)
        base = None if vectors is not None else self._encoded(steps)
        parts: list[Any] = []
        last, ends = np.zeros(len(self._groups)), steps.ends
        found: dict[int, tuple[FloatArray, FloatArray]] = {}
        for number, group in enumerate(self._groups):
            rewards, before, first = cumulants[:, group.places], self._last[number], self._alike[number]
            if first == number:
                question = self.questions[group.asked[0]]
                found[number] = question.discounts(steps), question.ratios(steps)
            gammas, rhos = found[first]
            last[number] = 0.0 if ends[-1] else gammas[-1]
            if base is None and vectors is not None:
                x, x_next = vectors
                gamma, rho = 0.0 if steps.terminated[0] else gammas.item(), rhos.item()
                reward = rewards[0] if group.places.size > 1 else rewards.item()
                parts.append(Transition(x, reward, x_next, discount=gamma, trace_discount=before.item(), rho=rho))
            elif base is not None:
                traces = trace_discounts(ends, gammas)
                traces[0] = before
                parts.append(
                    base.with_columns(
                        rewards=rewards if group.places.size > 1 else rewards[:, 0],
                        discounts=np.where(steps.terminated, 0.0, gammas),
                        trace_discounts=traces,
                        rhos=rhos,
                    )
                )
        return _Pending(parts, self._groups[0].model.n_updates, last)

    def _encoded(self, steps: Steps) -> Transitions:
        """The features of many steps, each observation encoded once; all else is still to be filled in."""
        observations, next_rows = steps.distinct()
        store, zeros = encoded(self.features, observations), np.zeros(len(steps))
        return Transitions.from_rows(
            store, next_rows - 1, zeros, next_rows, discounts=zeros, trace_discounts=zeros, rhos=None
        )

    def _mend(self) -> None:
        """Let all groups learn what one of them was learning when it was interrupted."""
        if self._before is None:
            return
        for group, part in zip(self._groups, self._before.parts, strict=True):
            done = group.model.n_updates - self._before.n_before
            if not isinstance(part, Transition):
                group.model.update_many(part[done:])
            elif not done:
                group.model.update(part)
        self.__dict__.update(_last=self._before.last, _before=None)

    # --- reading ----------------------------------------------------------------------------------------------------

    @synchronized
    def predict(self, observations: ArrayLike) -> FloatArray:
        """All predictions at one observation (D,), as (n_predictions,), or at each of (N, D), as (N, n_predictions)."""
        array = as_real(observations, "observations")
        if array.ndim == 1:
            known, x = self._seen
            x = x if np.array_equal(known, array) else self.features.encode(array)
            values = np.empty(self.n_predictions)
            for group in self._groups:
                values[group.places] = group.model.predict(x)
            return values
        X = encoded(self.features, array)
        values = np.empty((X.shape[0], self.n_predictions))
        for group in self._groups:
            values[:, group.places] = group.model.predict(X).reshape(X.shape[0], -1)
        return values

    @property
    @synchronized
    def weights(self) -> FloatArray:
        """(n_features, n_predictions)."""
        weights = np.empty((self.features.n_features, self.n_predictions))
        for group in self._groups:
            weights[:, group.places] = group.model.weights.reshape(len(weights), -1)
        return weights

    def __repr__(self) -> str:
        kind = type(self._groups[0].model).__name__
        return f"<Horde of {self.n_predictions} predictions by {len(self._groups)} {kind}>"

    # --- saving -----------------------------------------------------------------------------------------------------

    @synchronized
    def save(self, path: file_format.Path) -> None:
        """Write everything to a file, for :meth:`load`: whole or not at all.

        Of functions in questions, and of a feature map of your own, only the names are in it.
        """
        described: dict[str, Any] = {"questions": [question.described() for question in self.questions]}
        state: dict[str, Any] = {"last": self._last, "features": {}}
        described["features"] = None
        with suppress(StateError):  # a map of somebody's own
            described["features"], state["features"] = description(self.features)
        described["models"] = []
        for number, group in enumerate(self._groups):
            model, state[f"group{number}"] = packed(group.model)
            described["models"].append(model)
        file_format.write(path, "Horde", described, state)

    @classmethod
    def load(
        cls,
        path: file_format.Path,
        *,
        questions: Sequence[Question] | None = None,
        features: FeatureMap | None = None,
        classes: Iterable[type[LinearEstimator]] = (),
    ) -> Horde:
        """The horde that was saved: continued, it is the one that was never stopped, bit for bit.

        ``questions`` are needed where some have functions, ``features`` where the map is not one of this library. They
        have to be those of before. Anything but an undamaged file raises :class:`~tlstd.StateError`. If steps were
        missed in the meantime, call :meth:`gap`.
        """
        try:
            return cls._loaded(file_format.read(path), questions, features, classes)
        except StateError as error:
            raise StateError(file_format.printable(f"{path!s} cannot be loaded ({error})")) from error

    @classmethod
    def _loaded(
        cls,
        contents: file_format.Contents,
        questions: Sequence[Question] | None,
        features: FeatureMap | None,
        classes: Iterable[type[LinearEstimator]],
    ) -> Horde:
        found = stored(contents, features, classes)
        asked = with_functions(found.questions, questions)
        if found.features is None:
            raise StateError("its feature map is not in the file: pass features=")
        shares = "n_targets" in found.models[0].get_params(deep=False)
        sorted_out = list(_grouped(asked, shares))
        if [places.size for _, places in sorted_out] != [model.n_targets for model in found.models]:
            raise StateError("its models are not those of its questions")
        horde = cls.__new__(cls)
        groups = tuple(Group(*parts, model) for parts, model in zip(sorted_out, found.models, strict=True))
        try:
            horde._begin(found.features, asked, groups)
        except InvalidParameterError as error:
            raise StateError(str(error)) from error
        horde._last = found.last
        return horde


def _checked(questions: Sequence[Question]) -> tuple[Question, ...]:
    asked = tuple(questions)
    if not asked or not all(isinstance(question, Question) for question in asked):
        raise InvalidParameterError(f"questions are {questions!r}: pass a list of one or more Question")
    return asked


def _shared(questions: tuple[Question, ...]) -> list[tuple[Question, IntArray]]:
    """One question for each cumulant, with the places of all that have it."""
    found: list[tuple[Question, list[IntArray]]] = []
    start = 0
    for question in questions:
        places = np.arange(start, start + question.size)
        start += question.size
        same = [row for known, row in found if (known.cumulant, known.size) == (question.cumulant, question.size)]
        if same:
            same[0].append(places)
        else:
            found.append((question, [places]))
    return [(question, np.concatenate(row)) for question, row in found]


def _grouped(questions: tuple[Question, ...], shares: bool) -> Iterable[tuple[tuple[int, ...], IntArray]]:
    """For each group the numbers of its questions and the places of their predictions, by its first question."""
    starts = np.concatenate([[0], np.cumsum([question.size for question in questions])])
    places = [np.arange(starts[i], starts[i + 1]) for i in range(len(questions))]
    if not shares:
        return [((i,), places[i][k : k + 1]) for i in range(len(questions)) for k in range(places[i].size)]
    groups: list[list[int]] = []
    for i, question in enumerate(questions):
        own = next((group for group in groups if questions[group[0]].shares_with(question)), None)
        if own is None:
            groups.append([i])
        else:
            own.append(i)
    return [(tuple(group), np.concatenate([places[i] for i in group])) for group in groups]
