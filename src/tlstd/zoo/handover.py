"""One estimator for early learning, then another from its weights."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

import tlstd
from tlstd.core import parameters
from tlstd.core.arrays import MAX_MAGNITUDE, FloatArray, IntArray, Matrix
from tlstd.core.file_format import Saved, State
from tlstd.core.units import safe_unit
from tlstd.data.batch import Batch
from tlstd.data.vectors import SparseVector, Vector
from tlstd.errors import InvalidParameterError, TlstdError
from tlstd.estimators.base import Factory, LinearEstimator
from tlstd.estimators.calls import exclusive
from tlstd.estimators.composite import fresh_part, made_from
from tlstd.estimators.stepping import SteppingEstimator

_CHANGING = ("_active", "_handed_over", "_second", "_looks", "_ids", "_values")


class Handover(LinearEstimator):
    """Learns with one estimator, then goes on with another from the weights of the first.

    The paper's suggestion: t-LSTD for early learning, where samples are few, then TD, which is cheaper and has no
    truncation bias. Any two estimators of this library will do if the second can start from weights (it has a step
    size). At the handover the first is dropped, and the second begins with an empty trace.

    Parameters
    ----------
    first : estimator
        A new one; it becomes part of this model.
    second : estimator with a step size
        A new one, for the same features and targets; its step sizes count from the handover.
    after : int, optional
        Hand over after this many samples.
    settled : float > 0, optional
        Instead of a number of samples: hand over as soon as the weights of the first change by at most this fraction
        of their length while the number of samples doubles. That is looked at after ``patience`` · 2, 4, 8, …
        samples: a function of the stream alone, however it is cut into calls. 0.3 is a good start: least squares
        approach their solution as 1/√t, so that the change also says how far from it they are. (t-LSTD of ranks 30
        to 100 on Mountain Car gets there after 1,600 to 13,000 samples.) One target only.
    patience : int
        Samples before the weights are first looked at for ``settled``.

    Notes
    -----
    Costs what the active estimator costs; with ``settled``, also a solution and a copy of the first at each look. If
    the weights of the first are not finite (a TD that diverges), nothing is handed over.

    References
    ----------
    Gehring, Pan, White: Incremental Truncated LSTD. IJCAI 2016, discussion.

    Example
    -------
    >>> from tlstd import TD, TLSTD, Decay, Handover, boyan_chain
    >>> chain = boyan_chain()
    >>> model = Handover(
    ...     TLSTD(4, rank=2, lambda_=0.0), TD(4, step_size=Decay(0.2, 1000), lambda_=0.0), after=500
    ... )
    >>> stream = chain.sample(50_000, np.random.default_rng(0))
    >>> model.update_many(stream[:500])
    >>> early = np.abs(model.predict(chain.X) - chain.values()).max()
    >>> model.update_many(stream[500:])
    >>> model.handed_over, type(model.active).__name__
    (500, 'TD')
    >>> bool(np.abs(model.predict(chain.X) - chain.values()).max() < 0.2 * early)
    True
    """

    def __init__(
        self,
        first: LinearEstimator,
        second: SteppingEstimator,
        *,
        after: int | None = None,
        settled: float | None = None,
        patience: int = 100,
    ) -> None:
        _check_pair(first, second)
        # the longer trace of the two bounds both
        super().__init__(first.n_features, lambda_=max(first.lambda_, second.lambda_), n_targets=first.n_targets)
        if (after is None) == (settled is None):
            raise InvalidParameterError(
                f"after is {after!r} and settled is {settled!r}: pass exactly one of them, the rule for handing over"
            )
        self.after = None if after is None else parameters.integer("after", after)
        self.settled = None if settled is None else parameters.positive("settled", settled, high=1e100)
        if self.settled is not None and self.n_targets > 1:
            raise InvalidParameterError(
                f"settled looks at one solution but there are n_targets={self.n_targets}, which would settle at "
                "different times: pass after=, or make one model per target"
            )
        self.patience = parameters.integer("patience", patience)
        self._handed_over: int | None = None
        self._active: LinearEstimator = first
        self._first, self._second = copy.deepcopy(first), second  # as it was made
        self._kept: dict[str, Any] | None = None  # what may change while a batch reaches over the handover
        self._looks = 0
        self._ids: IntArray = np.zeros(0, dtype=np.int64)  # of the weights at the last look
        self._values: FloatArray = np.zeros((0, self.n_targets))
        self._share_lock()

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        super().__setstate__(attributes)
        self._share_lock()

    def _share_lock(self) -> None:
        """One lock for this model and its parts: somebody may hold on to ``active``."""
        self._active._lock = self._second._lock = self._lock

    # --- learning ---------------------------------------------------------------------------------------------------

    @property
    @exclusive
    def active(self) -> LinearEstimator:
        """The estimator that learns and predicts now."""
        return self._active

    @property
    @exclusive
    def handed_over(self) -> int | None:
        """Number of samples at which the second took over; None before."""
        return self._handed_over

    def _count(self) -> int:
        return (self._handed_over or 0) + self._active._count()

    def _check_batch(self, batch: Batch) -> None:
        if self._handed_over is None:
            self._second._check_batch(batch)
        if self._next_look() > self._count() + len(batch):  # otherwise part by part, as it is learned
            self._active._check_batch(batch)

    def _learn(self, batch: Batch) -> None:
        self._run(batch, None)

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        self._run(batch, values)

    def _run(self, batch: Batch, values: FloatArray | None) -> None:
        """Learn; the value of each x_next after its step goes to ``values``, if they are wanted."""
        if self._next_look() > self._count() + len(batch):
            self._pass_on(batch, values)
            return
        self._kept = copy.deepcopy({name: self.__dict__[name] for name in _CHANGING})
        try:
            self._learn_across(batch, values)
        except TlstdError:  # e.g. the second has no memory left: nothing was learned then
            self._put_back()
            raise
        self._kept = None

    def _pass_on(self, batch: Batch, values: FloatArray | None) -> None:
        """Let the active estimator learn, in its own loop."""
        bounds = self._active._bounded_trace(batch, None)
        self._active._unfinished = True  # somebody may hold on to it
        self._active._learn_checked(batch, *bounds, values)
        self._active._unfinished = False

    def _put_back(self) -> None:
        if self._kept is not None:
            self.__dict__.update(self._kept, _kept=None)
            self._share_lock()

    def _mend(self) -> None:
        self._before = None  # the active estimator knows what was learned
        super()._mend()
        self._put_back()
        for part in (self._active, self._second):
            part._mend()
            part._unfinished = False

    def _learn_across(self, batch: Batch, values: FloatArray | None) -> None:
        """Learn from a batch in which the weights of the first are looked at."""
        start = 0
        while start < len(batch):
            stop = min(len(batch), start + self._next_look() - self._count())
            part = batch.part(start, stop)
            self._active._check_batch(part)
            self._pass_on(part, None if values is None else values[start:stop])
            start = stop
            if self._next_look() == self._count():
                self._look()
                if values is not None and self._handed_over is not None:  # the last step's is the new estimator's
                    last = batch.part(stop - 1, stop)
                    values[stop - 1] = self._active._predict_vector(last.next_vector(self.n_features))

    def _next_look(self) -> int:
        """Number of samples at which it is next decided whether to hand over."""
        if self._handed_over is not None:
            return 2**63 - 1
        first = self.after or self.patience
        return first << max(0, min(self._looks, 62 - first.bit_length()))

    def _look(self) -> None:
        ids, values = self._active._solution()
        finite = bool((np.abs(values) <= MAX_MAGNITUDE).all())  # larger ones are on their way to infinity
        ready = self.settled is None or (self._looks > 0 and self._change(ids, values) <= self.settled)
        if finite and ready:
            self._second.start_from(self._active.sparse_weights)
            self.__dict__.update(_active=self._second, _handed_over=self._count())
            ids, values = ids[:0], values[:0]
        self._looks += 1
        if self.settled is not None:
            self._ids, self._values = ids.copy(), values.copy()

    def _change(self, ids: IntArray, values: FloatArray) -> float:
        """How far the weights are from those of the last look, relative to their length."""
        unit = safe_unit(values)
        difference = values.copy()
        difference[np.searchsorted(ids, self._ids)] -= self._values  # features that were seen stay
        length = float(np.linalg.norm(values / unit))
        return float(np.linalg.norm(difference / unit)) / length if length > 0.0 else np.inf  # nothing is learned yet

    # --- reading ----------------------------------------------------------------------------------------------------

    def _solve(self) -> tuple[IntArray, FloatArray]:
        return self._active._solution()

    def _predict_vector(self, x: Vector) -> FloatArray:
        return self._active._predict_vector(x)

    def _value(self, x: SparseVector) -> Any:
        return self._active._value(x)

    def _predict_matrix(self, X: Matrix) -> FloatArray:
        return self._active._predict_matrix(X)

    # --- saving -----------------------------------------------------------------------------------------------------

    def _parameters(self) -> dict[str, Any]:
        return {
            "first": made_from(self._first),
            "second": made_from(self._second),
            "after": self.after,
            "settled": self.settled,
            "patience": self.patience,
        }

    def _part_classes(self) -> dict[str, type[LinearEstimator]]:
        return {type(model).__name__: type(model) for model in (self._first, self._second)}

    @classmethod
    def _with_parts(
        cls, parameters: Mapping[str, Any], saved: Saved, classes: Mapping[str, type[LinearEstimator]]
    ) -> Mapping[str, Any]:
        pair = {role: fresh_part(cls, role, parameters, saved.part(role), classes) for role in ("first", "second")}
        return {**parameters, **pair}

    def _state(self) -> State:
        first, second = (self._active, self._second) if self._handed_over is None else (self._first, self._active)
        return {
            "handed_over": -1 if self._handed_over is None else self._handed_over,
            "looks": self._looks,
            "ids": self._ids,
            "values": self._values,
            "first": first._state(),
            "second": second._state(),
        }

    def _restore(self, saved: Saved) -> None:
        at = saved.integer("handed_over", low=-1, high=self._n_updates)
        self._looks = saved.integer("looks", high=62)
        self._ids = saved.integers("ids", None, low=0, high=self.n_features - 1)
        self._values = saved.floats("values", self._ids.size, self.n_targets)
        if (np.diff(self._ids) <= 0).any():
            raise saved.error("ids", "are not rising")
        first = self._active
        if at >= 0:
            self.__dict__.update(_active=self._second, _handed_over=at)
        self._active._n_updates = self._n_updates - max(at, 0)
        if self._next_look() <= self._n_updates:
            raise saved.error("looks", f"is {self._looks} after {self._n_updates} updates")
        first._restore(saved.part("first"))
        self._second._restore(saved.part("second"))


def _check_pair(first: object, second: object) -> None:
    """Raise if the two cannot hand over."""
    for role, model in (("first", first), ("second", second)):
        if not isinstance(model, LinearEstimator) or isinstance(model, Handover):
            raise InvalidParameterError(f"{role} is {type(model).__name__}: pass an estimator such as TLSTD or TD")
        if model.n_updates:
            raise InvalidParameterError(
                f"{role} has learned from {model.n_updates} samples: pass a new estimator, which this one then owns"
            )
    assert isinstance(first, LinearEstimator)
    if first is second:
        raise InvalidParameterError("first and second are one and the same estimator: pass two")
    if not isinstance(second, SteppingEstimator):
        raise InvalidParameterError(
            f"second is {type(second).__name__}, which solves for its weights and cannot start from others: pass TD, "
            "TrueOnlineTD, ATD or ILSTD"
        )
    if (first.n_features, first.n_targets) != (second.n_features, second.n_targets):
        raise InvalidParameterError(
            f"first has {first.n_features} features and {first.n_targets} target(s), second {second.n_features} and "
            f"{second.n_targets}: make both for the same"
        )


EXAMPLES: dict[str, Factory] = {
    "Handover": lambda n_features, **options: Handover(
        tlstd.TLSTD(n_features, max(1, n_features // 2), lambda_=0.7, **options),
        tlstd.TD(n_features, step_size=0.05, lambda_=0.7, **options),
        after=40,
    ),
    "Handover (settled)": lambda n_features, **options: Handover(
        tlstd.LSTD(n_features, lambda_=0.7, **options),
        tlstd.ATD(n_features, n_features // 2, step_size=tlstd.Decay(1.0, 10), lambda_=0.7, eta=0.01, **options),
        settled=0.5,
        patience=11,
    ),
}
