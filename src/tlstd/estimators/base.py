"""What every estimator does in the same way: checking data, predicting, saving, surviving interruptions."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import numpy as np
import scipy.sparse as sp

from tlstd.core import file_format, parameters
from tlstd.core.arrays import MAX_MAGNITUDE, FloatArray, IntArray, Matrix, as_matrix
from tlstd.data.batch import Batch, vector_arrays
from tlstd.data.kernels import sparse as kernels
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector, Vector, as_vector
from tlstd.errors import (
    CapacityError,
    InvalidInputError,
    InvalidParameterError,
    ReadOnlyError,
    StateError,
    TlstdError,
)
from tlstd.estimators.calls import Synchronized, exclusive, ignore_overflow
from tlstd.estimators.calls import synchronized as synchronized

MAX_DENSE_WEIGHTS = 1 << 27
"""Number of weights (1 GiB) above which ``weights`` refuses and names ``sparse_weights``."""

_MISSING = object()
_signature = lru_cache(256)(inspect.signature)  # of a class: to find it takes a fifth of a small save

Model = TypeVar("Model", bound="LinearEstimator")

Value: TypeAlias = float | Any
"""Of one vector: a float, or with several targets an array, which the model's type does not tell.

To a type checker it is a float; ``np.asarray(model.predict(x))`` where it is an array.
"""

Factory: TypeAlias = "Callable[..., LinearEstimator]"
"""Makes an estimator from the number of features; takes ``n_targets`` too if the estimator does."""


@runtime_checkable
class Estimator(Protocol):
    """What can be learned from transitions and asked for values: the contract of :mod:`tlstd.checks`."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        ...

    @property
    def n_updates(self) -> int:
        """Number of transitions learned from."""
        ...

    def update(self, transition: Transition) -> None:
        """Learn from one transition."""
        ...

    def update_many(self, transitions: Transitions) -> None:
        """Learn from many, as if one after the other."""
        ...

    @overload
    def predict(self, x: SparseVector) -> Value: ...
    @overload
    def predict(self, x: Any) -> Any: ...
    def predict(self, x: Any) -> Any:
        """Estimate the value of one vector or of every row of a matrix."""
        ...

    @property
    def weights(self) -> FloatArray:
        """The weights as a dense array."""
        ...

    @property
    def sparse_weights(self) -> Any:
        """The weights of the features seen."""
        ...


class LinearEstimator(Synchronized, ABC):
    """Base of the estimators: v(s) = wᵀx(s), w solved for lazily and cached until the next update.

    A subclass learns from a checked batch (``_learn``) and says its weights (``_solve``); it may refuse a batch
    before anything changes (``_check_batch``) and answer single predictions in a cheaper way (``_predict_vector``).
    Everyday calls of ``update`` and ``predict`` may be one compiled call each (``_learn_one``, ``_value``).

    Learning may be interrupted at any point (Ctrl-C, no memory left), and then the model has to be that of some prefix
    of the batch. A ``_learn`` that only gives new values to its attributes has nothing to do for that: they get their
    old values back. One that changes arrays in place says in ``_count`` how many samples these hold, counted by the
    same kernel that changes them, and puts what is in between in order in ``_mend``.

    Public methods that read or change the model are ``synchronized``: one step for other threads.

    To be saved, a subclass keeps each constructor argument in an attribute of the same name (or says otherwise in
    ``_parameters`` and ``_made``), says in ``_state`` what else later results depend on, and takes it back in
    ``_restore``; :func:`tlstd.load` knows the public ones. With a part that can do both::

        def _state(self):
            return {"system": self._system.state()}

        def _restore(self, saved):
            self._system.restore(saved.part("system"))

    Caches are not saved: a read is a function of the state, to the bit. ``_restore`` believes nothing: every number is
    taken with its range, every array with its shape (see :class:`tlstd.core.file_format.Saved`), above all what kernels
    use as an index, and nothing is allocated that is larger than what was in the file. A constructor argument that was
    added later is named in ``_ADDED`` with the value that models had before, which is not written.
    """

    _ADDED: ClassVar[Mapping[str, Any]] = {}
    _replacing = False  # traces, which are for sparse features

    def __init__(self, n_features: int, *, lambda_: float, n_targets: int) -> None:
        self.n_features = parameters.integer("n_features", n_features)
        self.lambda_ = parameters.real("lambda_", lambda_, low=0.0, high=1.0)
        self.n_targets = parameters.integer("n_targets", n_targets)
        parameters.check_memory(
            f"n_targets is {self.n_targets}", 8 * self.n_targets, "one value of each", remedy="use fewer targets"
        )
        super().__init__()
        self._n_updates = 0
        self._longest_lambda = self.lambda_  # of the longest trace that is kept
        self._bound: FloatArray = np.zeros(1)  # of the trace's length; kernels may change it
        self._solved: tuple[IntArray, FloatArray] | None = None
        self._reading: Any = None  # what a subclass keeps from read to read, until the next update
        self._before: dict[str, Any] | None = None  # the attributes before what is being learned

    def __setattr__(self, name: str, value: object) -> None:
        read_only = name in self.__dict__ or isinstance(getattr(type(self), name, None), property)
        if read_only and not name.startswith("_"):
            raise ReadOnlyError(
                f"{name} of this {type(self).__name__} is {getattr(self, name)!r} and cannot become {value!r}: "
                "make a new model with other parameters"
            )
        super().__setattr__(name, value)

    @property
    def n_updates(self) -> int:
        """Number of transitions learned from: before or after a whole call, if another thread is learning."""
        return self._count() if self._is_busy() else self._finished_count()

    @exclusive
    def _finished_count(self) -> int:
        return self._count()

    def _count(self) -> int:
        """The number at this moment, also in the middle of learning."""
        return self._n_updates

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name, as a saved file holds them: numbers, words, lists and dicts."""
        return self._parameters()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name, as it takes them; what scikit-learn calls parameters.

        ``type(model)(**model.get_params(deep=False))`` is a new model. Estimators that this one is made of are new ones
        too; ``deep`` adds their parameters, as ``first__rank``. There is no ``set_params``: parameters of a model do
        not change, :meth:`clone` makes another one. (:attr:`parameters` is the same as a file holds it, e.g. two
        numbers for a :class:`~tlstd.Decay`.)
        """
        found = self._arguments()
        for name, part in list(found.items()) if deep else ():
            if isinstance(part, LinearEstimator):
                found |= {f"{name}__{inner}": value for inner, value in part.get_params().items()}
        return found

    def clone(self: Model, **changes: Any) -> Model:
        """A new model with the same parameters, or with some of them changed, that has learned nothing.

        Weights given by ``start_from`` are not parameters: the clone starts at zero.

        Example
        -------
        >>> from tlstd import TLSTD
        >>> TLSTD(1000, rank=50, lambda_=0.9).clone(rank=20)
        <TLSTD(n_features=1000, rank=20, lambda_=0.9), 0 samples>
        """
        unknown = changes.keys() - self._arguments().keys()
        if unknown:
            raise InvalidParameterError(
                f"{type(self).__name__} has no parameter {min(unknown)!r}: it has {', '.join(self._arguments())}"
            )
        return type(self)(**self._arguments() | changes)

    def _arguments(self) -> dict[str, Any]:
        """The constructor's arguments; for those that are estimators, new ones."""
        found = {}
        for name in _signature(type(self)).parameters:
            value = getattr(self, name, getattr(self, f"_{name}", _MISSING))
            if value is _MISSING:
                raise StateError(
                    f"the argument {name} of {type(self).__name__} is kept nowhere: keep it in an attribute of its name"
                )
            found[name] = value.clone() if isinstance(value, LinearEstimator) else value
        return found

    # --- learning ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self._description() if self._is_busy() else self._finished_description()

    @synchronized
    def _finished_description(self) -> str:
        return self._description()

    def _description(self) -> str:
        arguments = []
        for name, parameter in _signature(type(self)).parameters.items():
            value = getattr(self, name, getattr(self, f"_{name}", None))
            if parameter.default is parameter.empty or value != parameter.default:
                arguments.append(f"{name}={value!r}")
        return f"<{type(self).__name__}({', '.join(arguments)}), {self.n_updates:,} samples>"

    @exclusive
    def update(self, transition: Transition) -> None:
        """Learn from one transition."""
        if type(transition) is not Transition or not self._learn_one(transition):
            self._learn_any(transition)
        else:
            own = self.__dict__
            own["_solved"] = own["_reading"] = None

    def _learn_one(self, t: Transition) -> bool:
        """Learn from an everyday transition in one compiled call, or return False and change nothing.

        What a :class:`Transition` may have that this model cannot use is for this method to see: sizes, the number of
        rewards, a trace that becomes too long (``_bound``), and what ``_check_batch`` refuses. No NumPy arithmetic
        here: it might warn.
        """
        return False

    @ignore_overflow
    def _learn_any(self, transition: Transition) -> None:
        """Learn from one transition as from a batch of one."""
        if not isinstance(transition, Transition):
            raise InvalidInputError(f"update() was given {type(transition).__name__}: pass a Transition")
        self._ingest(transition, Batch.from_transition(transition))

    def update_many(self, transitions: Transitions | Iterable[Transitions]) -> None:
        """Learn from many transitions in compiled loops: the same model as calling :meth:`update` for each.

        Everything is checked before anything changes. Interrupted (Ctrl-C, no memory left), the model has learned from
        some of them, the first ``n_updates`` in all, and can be used, saved and continued from there.

        Of a list or an iterator of :class:`~tlstd.Transitions`, e.g. of a log that is read in chunks, each piece is
        checked when its turn comes, and between two pieces the model can be used.
        """
        if isinstance(transitions, (Iterator, list, tuple)):
            for piece in transitions:
                self._update_many(piece)
        else:
            self._update_many(transitions)

    @synchronized
    def _update_many(self, transitions: Any) -> None:
        self._ingest(transitions, *_sound_batch(transitions, "update_many"))

    @synchronized
    def update_and_predict(self, transitions: Transitions) -> FloatArray:
        """Learn from transitions one after the other and return the value of each x_next right after its step.

        The same as :meth:`update` and :meth:`predict` in turn, in compiled loops except where each value takes a
        solution of its own (``docs/estimators.md`` says where). (N,), or (N, n_targets) for several targets.

        Example
        -------
        >>> import numpy as np
        >>> from tlstd import TD, random_walk
        >>> chain = random_walk(n_states=5, gamma=0.9)
        >>> model = TD(5, step_size=0.1, lambda_=0.9)
        >>> model.update_and_predict(chain.sample(1_000, np.random.default_rng(0))).shape
        (1000,)
        """
        batch, lengths = _sound_batch(transitions, "update_and_predict")
        values = np.zeros((len(batch), self.n_targets))
        self._ingest(transitions, batch, lengths, values)
        return values[:, 0] if self.n_targets == 1 else values

    def _ingest(
        self,
        data: Transition | Transitions,
        batch: Batch,
        lengths: FloatArray | None = None,
        values: FloatArray | None = None,
    ) -> None:
        admitted = self._checked_batch(data, batch, lengths)
        if admitted is not None:
            self._learn_checked(batch, *admitted, values)

    @synchronized
    def check(self, data: Transition | Transitions) -> None:
        """Raise what :meth:`update` or :meth:`update_many` would refuse; nothing changes."""
        if isinstance(data, Transition):
            self._checked_batch(data, Batch.from_transition(data), None)
        else:
            self._checked_batch(data, *_sound_batch(data, "check"))

    def _checked_batch(
        self, data: Transition | Transitions, batch: Batch, lengths: FloatArray | None
    ) -> tuple[float, float] | None:
        """Bounds of the trace's length, for ``_learn_checked``, if this model can use the batch; None for an empty
        one."""
        if data.n_features != self.n_features:
            raise InvalidInputError(
                f"the features have size {data.n_features} but this model has n_features={self.n_features}: "
                "encode with the map that the model was made for"
            )
        if batch.rows.size == 0:
            return None
        if data.n_targets != self.n_targets:
            raise InvalidInputError(
                f"there are {data.n_targets} reward(s) a step but this model has n_targets={self.n_targets}: pass one "
                "reward per target"
            )
        bounds = self._bounded_trace(batch, lengths)
        self._check_batch(batch)
        return bounds

    def _learn_checked(self, batch: Batch, bound: float, highest: float, values: FloatArray | None = None) -> None:
        """Learn from a batch that was admitted, and count it; ``bound`` and ``highest`` are the trace's, as below.

        The value of each x_next after its step goes to ``values``, if they are wanted.
        """
        own = self.__dict__
        self._bound[0] = highest
        own.update(_solved=None, _reading=None)
        own["_before"] = own.copy()
        n_updates = self._n_updates + batch.rows.size
        if values is None:
            self._learn(batch)
        else:
            self._learn_and_predict(batch, values)
        own.update(_n_updates=n_updates, _before=None)
        self._bound[0] = bound

    def _mend(self) -> None:
        """Put the model in order after an interruption; if that is interrupted, from the beginning again.

        A subclass that changes anything in place, or keeps caches that are changed in place, extends this.
        """
        if self._before is not None:
            self.__dict__.update(self._before, _before=None)
        self.__dict__.update(_solved=None, _reading=None)

    def _bounded_trace(self, batch: Batch, lengths: FloatArray | None) -> tuple[float, float]:
        """Upper bounds of the trace's length after the batch and anywhere in it.

        Raises where products with it could overflow.
        """
        start = self._bound.item()
        step, bound, highest = batch.follow_trace(self._longest_lambda, start, MAX_MAGNITUDE, lengths)
        if step >= 0:
            raise InvalidInputError(
                f"with rho = {batch.rhos[step]} at step {step} of this call the eligibility trace could reach "
                f"{bound:.1e}, over the limit of {MAX_MAGNITUDE:g}: rescale the features, clip rho or lower lambda_"
            )
        return bound, highest

    def _check_batch(self, batch: Batch) -> None:
        """Raise if this estimator cannot use the batch. The model must not change here."""
        if self._replacing:
            most = batch.most_active()
            if most > max(1, self.n_features // 2):  # they would forget the past at every step
                raise InvalidInputError(
                    f"a feature vector has {most} of {self.n_features} entries non-zero: replacing traces are for "
                    'sparse features; use trace="accumulating"'
                )

    @abstractmethod
    def _learn(self, batch: Batch) -> None:
        """Take in a batch that is known to be usable."""

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        """As ``_learn``; the value of each x_next after its step goes to ``values`` (N, n_targets)."""
        for t in range(len(batch)):
            part = batch.part(t, t + 1)
            self.__dict__.update(_solved=None, _reading=None)
            self._learn(part)
            self._n_updates += 1  # for those that do not count themselves
            values[t] = self._predict_vector(part.next_vector(self.n_features))
        self._solved = None

    @abstractmethod
    def _solve(self) -> tuple[IntArray, FloatArray]:
        """Ids of the features with a weight, and their weights (n, n_targets)."""

    # --- saving -----------------------------------------------------------------------------------------------------

    @synchronized
    def save(self, path: file_format.Path) -> None:
        """Write the model to a file, for :func:`tlstd.load`; parameters, samples waiting in buffers and all.

        A file of that name stays whole until the new one is complete and on the disk, whatever happens. A model that
        :func:`tlstd.load` would refuse, above all one that has diverged (something is not finite), raises
        :class:`~tlstd.StateError`.
        """
        described, state = self._saveable()
        file_format.write(path, described["class"], described["parameters"], state)

    @synchronized
    def _packed(self) -> tuple[dict[str, Any], file_format.State]:
        """Class and parameters, and the state as a copy, for a file that holds more than a model."""
        described, state = self._saveable()
        return described, copy.deepcopy(state)

    def _saveable(self) -> tuple[dict[str, Any], file_format.State]:
        """Class and parameters, and the state, of which it is known that they can be loaded again."""
        parameters = self._parameters()
        state = {"n_updates": self.n_updates, "trace_bound": self._bound.item(), "model": self._state()}
        contents = file_format.Contents(type(self).__name__, parameters, file_format.Saved.of(state))
        try:
            self._loaded(contents, self._part_classes())
        except StateError as error:
            raise StateError(f"it could not be loaded again ({error}): a diverged model cannot be saved") from error
        except MemoryError:
            pass  # no room for a second look
        return {"class": type(self).__name__, "parameters": parameters}, state

    def _part_classes(self) -> dict[str, type[LinearEstimator]]:
        """The classes of estimators that this one is made of, by name."""
        return {}

    @classmethod
    @ignore_overflow
    def _loaded(cls, contents: file_format.Contents, classes: Mapping[str, type[LinearEstimator]]) -> LinearEstimator:
        """Make a model from the contents of a file; raises StateError if they do not make one."""
        saved = contents.saved
        model = cls._fresh(contents.parameters, saved.part("model"), classes)
        model._n_updates = n_updates = saved.integer("n_updates", high=2**62)
        model._bound[0] = saved.real("trace_bound", low=0.0, high=MAX_MAGNITUDE)
        model._restore(saved.part("model"))
        if model.n_updates != n_updates:
            raise saved.error("model", f"has {model.n_updates} samples where the model has {n_updates} updates")
        saved.finish()
        return model

    @classmethod
    def _fresh(
        cls, parameters: Mapping[str, Any], saved: file_format.Saved, classes: Mapping[str, type[LinearEstimator]]
    ) -> LinearEstimator:
        """A new model with the parameters in a file; raises StateError. ``classes`` has those that parts may have."""
        cls._check_sizes(parameters, saved)
        arguments = cls._with_parts(parameters, saved, classes)
        try:
            model = cls._made(arguments)
        except (TlstdError, TypeError, ValueError, OverflowError, MemoryError) as error:
            raise StateError(f"its parameters are not those of {cls.__name__}: {str(error)[:200]}") from error
        if file_format.canonical(model._parameters()) != file_format.canonical(dict(parameters)):
            raise StateError(f"its parameters are not as {cls.__name__} writes them")
        return model

    def _parameters(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON can hold them."""
        values = {name: getattr(self, name) for name in _signature(type(self)).parameters}
        return {name: value for name, value in values.items() if name not in self._ADDED or value != self._ADDED[name]}

    @classmethod
    def _with_parts(
        cls, parameters: Mapping[str, Any], saved: file_format.Saved, classes: Mapping[str, type[LinearEstimator]]
    ) -> Mapping[str, Any]:
        """The parameters with new models for those that stand for estimators."""
        return parameters

    @classmethod
    def _made(cls, parameters: Mapping[str, Any]) -> LinearEstimator:
        """A fresh model with the arguments of ``_parameters``."""
        return cls(**parameters)

    @classmethod
    def _check_sizes(cls, parameters: Mapping[str, Any], saved: file_format.Saved) -> None:
        """Raise StateError if the constructor would allocate more for these parameters than was saved."""

    def _state(self) -> file_format.State:
        """What later results depend on, apart from parameters."""
        raise StateError(f"{type(self).__name__} cannot be saved: give it the methods _state and _restore")

    def _restore(self, saved: file_format.Saved) -> None:
        """Take over what ``_state`` said, checked, in a fresh model; raises StateError. ``n_updates`` is known."""
        raise StateError(f"{type(self).__name__} cannot be loaded: give it the methods _state and _restore")

    def _merged_state(self: Model, other: Model) -> file_format.State:
        """The state after the samples of this model and then those of another one of the same parameters.

        Both are copies, which may be changed. Raises :class:`~tlstd.InvalidInputError` where there is none.
        """
        raise InvalidInputError(
            f"{type(self).__name__} models cannot be merged, because what they have learned depends on the order of "
            "the samples: let one model learn from all of them"
        )

    def _refuse_to_merge_with_beta(self, beta: float | None) -> None:
        if beta is not None:
            raise InvalidInputError(
                f"models with beta={beta} cannot be merged, because the weight of a sample depends on how many came "
                "after it: let one model learn from all of them"
            )

    # --- reading ----------------------------------------------------------------------------------------------------

    def _solution(self) -> tuple[IntArray, FloatArray]:
        """Ids in rising order and their weights, read-only; solved once after an update."""
        if self._solved is None:
            ids, weights = self._solve()
            order = np.argsort(ids)
            self._solved = ids[order], weights[order]
        return self._solved

    @property
    @synchronized
    def weights(self) -> FloatArray:
        """The weights, (n_features,) or (n_features, n_targets); read-only, zero for features never seen."""
        if self.n_features * self.n_targets > MAX_DENSE_WEIGHTS:
            raise CapacityError(
                f"weights would hold {self.n_features} x {self.n_targets} numbers: use sparse_weights, "
                "which has only the features that were seen"
            )
        ids, values = self._solution()
        weights = np.zeros((self.n_features, self.n_targets))
        weights[ids] = values
        weights.flags.writeable = False
        return weights[:, 0] if self.n_targets == 1 else weights

    @property
    @synchronized
    def sparse_weights(self) -> SparseVector | sp.csc_array:
        """The non-zero weights: a SparseVector, or a csc_array (n_features, n_targets) for several targets."""
        ids, values = self._solution()
        if self.n_targets > 1:
            columns = [np.flatnonzero(values[:, c]) for c in range(self.n_targets)]
            indptr = np.concatenate([[0], np.cumsum([rows.size for rows in columns])])
            data = np.concatenate([values[rows, c] for c, rows in enumerate(columns)])
            indices = ids[np.concatenate(columns)]
            return sp.csc_array((data, indices, indptr), shape=(self.n_features, self.n_targets))
        kept = values[:, 0] != 0.0
        return SparseVector._trusted(ids[kept], values[kept, 0], self.n_features)

    @property
    @synchronized
    def nbytes(self) -> int:
        """Bytes held in arrays by this model, buffers and caches included."""
        return _array_bytes(self, set())

    @overload
    def predict(self, x: SparseVector) -> Value: ...
    @overload
    def predict(self, x: Any) -> Any: ...
    @exclusive  # type: ignore[misc]  # of a decorated method mypy does not know that it takes what the overloads say
    def predict(self, x: Any) -> Any:
        """Values of one feature vector or of every row of a matrix.

        Parameters
        ----------
        x : 1-D array, SparseVector, (N, d) array or scipy.sparse array

        Returns
        -------
        float or (n_targets,) for a vector; (N,) or (N, n_targets) for a matrix.
        """
        if type(x) is SparseVector and x.size == self.n_features:  # nothing else is to be checked
            value = self._value(x)
            return self._one_value(x) if value is None else value
        return self._predict(x)

    def _value(self, x: SparseVector) -> Any:
        """What :meth:`predict` returns for a vector, if that takes no NumPy arithmetic, which might warn, or None."""
        if not self._is_solved():
            return None
        value = self._predict_vector(x)
        return value.item() if value.size == 1 else value

    def _is_solved(self) -> bool:
        """Whether all that is left for :meth:`_predict_vector` are compiled sums. To be overridden along with it."""
        return self._solved is not None and type(self)._predict_vector is LinearEstimator._predict_vector

    @ignore_overflow
    def _predict(self, x: Any) -> Any:
        if _is_vector(x):
            vector = as_vector(x)
            self._check_width(vector.size)
            return self._one_value(vector)
        matrix = as_matrix(x, "x")
        self._check_width(matrix.shape[1])
        values = self._predict_matrix(matrix)
        return values[:, 0] if self.n_targets == 1 else values

    @ignore_overflow
    def _one_value(self, x: Vector) -> Any:
        value = self._predict_vector(x)
        return float(value[0]) if self.n_targets == 1 else value

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features:
            raise InvalidInputError(
                f"x has {n_features} features but this model has n_features={self.n_features}: encode it with the "
                "map that the model was made for"
            )

    def _predict_vector(self, x: Vector) -> FloatArray:
        out = np.zeros(self.n_targets)
        kernels.add_listed(*vector_arrays(x), *self._solution(), out)
        return out

    def _predict_matrix(self, X: Matrix) -> FloatArray:
        ids, weights = self._solution()
        if isinstance(X, np.ndarray):
            values: FloatArray = X @ weights if ids.size == self.n_features else X[:, ids] @ weights
            return values
        out = np.empty((X.shape[0], self.n_targets))
        kernels.listed_values(X.indptr, X.indices, X.data, ids, weights, out)
        return out


def _sound_batch(transitions: object, method: str) -> tuple[Batch, FloatArray | None]:
    """Checked columns, and the lengths of the vectors x if they came out on the way."""
    if not isinstance(transitions, Transitions):
        raise InvalidInputError(f"{method}() was given {type(transitions).__name__}: pass Transitions")
    batch = Batch.from_transitions(transitions)
    lengths = batch.lengths_if_sound(transitions.n_features)
    if lengths is None:
        transitions.check()
    return batch, lengths


def _is_vector(x: object) -> bool:
    if isinstance(x, SparseVector):
        return True
    if type(x) is np.ndarray:
        return x.ndim <= 1  # as_vector says what to pass instead of a number
    try:
        return not sp.issparse(x) and np.ndim(x) <= 1  # type: ignore[arg-type]
    except ValueError:  # ragged: as_matrix says so
        return False


def _array_bytes(value: object, visited: set[int]) -> int:
    """Bytes of all distinct arrays that can be reached from an object of this library."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        new = id(value) not in visited
        visited.add(id(value))
        return value.nbytes if new else 0
    if id(value) in visited:
        return 0
    visited.add(id(value))
    if isinstance(value, dict):
        return sum(_array_bytes(item, visited) for item in value.values())
    if isinstance(value, (tuple, list)):
        return sum(_array_bytes(item, visited) for item in value)
    if type(value).__module__.startswith("tlstd."):
        names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
        return sum(_array_bytes(getattr(value, name), visited) for name in names)
    return 0
