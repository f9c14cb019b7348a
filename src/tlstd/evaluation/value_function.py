"""A model with its feature map: what can be asked about states, saved, and continued with new logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.core import file_format, parameters
from tlstd.core.arrays import FloatArray, Matrix, as_array, as_floats, as_real, locked
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError, InvalidParameterError, StateError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.fixed_weights import FixedWeights
from tlstd.estimators.loading import packed, unpacked
from tlstd.evaluation.action_values import PIECE, action_transitions, expected, joint_transitions, mean_features
from tlstd.evaluation.fits import Fit, Kind
from tlstd.evaluation.policies import Policy, Target, as_target
from tlstd.evaluation.systems import ActionSystem, PairSystem, StateSystem
from tlstd.features.base import FeatureMap
from tlstd.features.saving import description, restored
from tlstd.features.states import encoded
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.logs.log import Log

CLASS_NAME = "ValueFunction"


class Encoded(NamedTuple):
    """States as a value function sees them."""

    X: Matrix
    """(M, n): features."""
    offsets: FloatArray
    """(M,): what comes on top of features times weights."""


class ValueFunction:
    """The values that an estimator has learned, asked by states instead of feature vectors.

    Parameters
    ----------
    model : LinearEstimator
    features : FeatureMap
    gamma : float
    kind : "states", "actions" or "joint"
        Values of states; of states and discrete actions, one block of weights each; or of states and continuous actions
        side by side.
    n_actions : int
        Number of discrete actions, or of numbers of a continuous one; 0 for values of states.
    offsets : (n_actions,) numbers, or (1,), optional
        Constants of each discrete action, or one for all, that come on top of what the model says: it has learned from
        rewards less r_c = c_a - γ Σ π(a′|s′) c_a′. 0 if left out.

    Example
    -------
    >>> import os, tempfile
    >>> from tlstd import LSTD, Log, OneHot
    >>> log = Log.from_arrays([0, 1, 0, 1], [1.0, 0.0, 1.0, 0.0], terminated=[0, 1, 0, 1], discrete=True)
    >>> values = ValueFunction(LSTD(2, lambda_=0.0), OneHot([0], [1]), 0.9)
    >>> values.update(log)
    >>> values.predict([0, 1]).round(9) + 0.0
    array([1., 0.])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     values.save(os.path.join(folder, "values"))
    ...     ValueFunction.load(os.path.join(folder, "values")).predict([0]).round(9)
    array([1.])
    """

    def __init__(
        self,
        model: LinearEstimator,
        features: FeatureMap,
        gamma: float,
        *,
        kind: Kind = "states",
        n_actions: int = 0,
        offsets: ArrayLike | None = None,
    ) -> None:
        self.model, self.features = model, features
        self.gamma = parameters.real("gamma", gamma, low=0.0, high=1.0)
        self.kind: Kind = parameters.choice("kind", kind, get_args(Kind))
        self.n_actions = parameters.integer("n_actions", n_actions, low=0 if kind == "states" else 1)
        size = self.n_actions if kind == "actions" else 1
        self.offsets = locked(np.zeros(size) if offsets is None else as_floats(offsets, "offsets", 1).copy())
        if self.offsets.shape != (size,) or (kind == "states" and self.offsets.any()):
            raise InvalidParameterError(f"offsets are {self.offsets.tolist()}: {size} numbers, of values of actions")
        wanted = features.n_features * (self.n_actions if kind == "actions" else 1)
        if model.n_features != wanted:
            raise InvalidParameterError(f"the model has {model.n_features} features and the map makes {wanted}")

    def predict(
        self, states: ArrayLike, *, policy: Policy | None = None, actions: ArrayLike | None = None
    ) -> FloatArray:
        """Values (M,) of states (M, D), or (M,) numbers of states.

        Of action values a policy says the values of states, Σ_a π(a|s) Q(s, a), or ``actions`` which ones are meant.
        With neither, all of them: (M, n_actions), for discrete actions.
        """
        if self.kind == "states" and (policy is not None or actions is not None):
            raise InvalidInputError("these are values of states under one policy: ask without policy and actions")
        if self.kind != "actions" or policy is not None or actions is not None:
            return self.values_of(self.encode(states, policy=policy, actions=actions))
        n, single = len(as_array(states, "states")), np.eye(self.n_actions)
        return np.column_stack([self.values_of(self.encode(states, probabilities=np.tile(a, (n, 1)))) for a in single])

    def encode(
        self,
        states: ArrayLike,
        *,
        policy: Policy | None = None,
        actions: ArrayLike | None = None,
        probabilities: FloatArray | None = None,
    ) -> Encoded:
        """Features (M, n) and offsets (M,): features times weights, and offsets, are the values of states.

        Of action values Σ_a π(a|s) φ(s, a) and Σ_a π(a|s) c_a, by a policy, by the actions meant, or by probabilities
        (M, n_actions).
        """
        observations = as_array(states, "states")
        if observations.ndim not in (1, 2):
            raise InvalidInputError(f"states have shape {observations.shape}: pass (M, D), or (M,) numbers of states")
        if not observations.size:
            raise InvalidInputError(f"states have shape {observations.shape}: pass at least one")
        rows = as_real(observations, "states").reshape(len(observations), -1)
        if observations.dtype.kind not in "iu":
            observations = rows.reshape(observations.shape)
        if self.kind == "joint":
            X = self._joint(observations, rows, policy, actions)
            return Encoded(X, np.full(len(rows), self.offsets[0]))
        X = encoded(self.features, rows)
        if self.kind == "states":
            return Encoded(X, np.zeros(len(rows)))
        if policy is not None:
            probabilities = Target(function=policy).probabilities(observations, self.n_actions)
        elif actions is not None:
            probabilities = np.eye(self.n_actions)[_whole(actions, len(rows), self.n_actions)]
        if probabilities is None:
            raise InvalidInputError("these are values of states and actions: pass a policy, or the actions")
        full = np.zeros((len(rows), self.n_actions))
        full[:, : probabilities.shape[1]] = probabilities
        return Encoded(expected(sp.csr_array(X), full), full @ self.offsets)

    def _joint(
        self, observations: NDArray[Any], rows: FloatArray, policy: Policy | None, actions: ArrayLike | None
    ) -> Matrix:
        if policy is not None:
            drawn = Target(function=policy).draws(observations, self.n_actions)
        elif actions is not None:
            drawn = [as_real(actions, "actions").reshape(len(rows), -1)]
        else:
            raise InvalidInputError("these are values of states and continuous actions: pass a policy or actions")
        return mean_features(self.features, rows, drawn)

    def values_of(self, encoded: Encoded) -> FloatArray:
        """Values (M,) of what :meth:`encode` returned."""
        values: FloatArray = self.model.predict(encoded.X) + encoded.offsets
        return values

    def pieces(
        self, log: Log, *, target: Target | None = None, rhos: FloatArray | None = None, rows: int = PIECE
    ) -> Iterator[Transitions]:
        """The steps of a log as the model learns them, rewards less offsets, in pieces of at most ``rows`` steps."""
        start = 0
        for piece in log.pieces(rows):
            stop = start + len(piece)
            if self.kind == "states":
                some = None if rhos is None else rhos[start:stop]
                yield piece.transitions(self.features, self.gamma, rhos=some)
            else:
                assert target is not None
                part = target.of_rows(start, stop)
                if self.kind == "actions":
                    yield action_transitions(piece, self.features, part, self.gamma, self.n_actions, self.offsets)
                else:
                    yield joint_transitions(piece, self.features, part, self.gamma, self.offsets)
            start = stop

    def update(
        self,
        log: Log,
        *,
        policy: Any = None,
        rhos: ArrayLike | None = None,
        report: Callable[[float], None] | None = None,
    ) -> None:
        """Go on learning from a new log, piece by piece; of action values for the same policy as before.

        ``report`` is told the share of the log that has been learned from.
        """
        if self.kind != "states" and policy is None:
            raise InvalidInputError("these are action values: pass the policy that they are of")
        if self.kind != "states":
            self._check_actions(log)
        target = policy if isinstance(policy, Target) else None if self.kind == "states" else as_target(policy, log)
        ratios = None if rhos is None else as_floats(rhos, "rhos", 1)
        for i, steps in enumerate(self.pieces(log, target=target, rhos=ratios)):
            self.model.update_many(steps)
            if report is not None:
                report(min(1.0, (i + 1) * PIECE / len(log)))

    def _check_actions(self, log: Log) -> None:
        """The actions of a log are those that the values are of."""
        actions = log.actions
        if self.kind == "joint" and (actions is None or actions.shape[1:] != (self.n_actions,)):
            raise InvalidInputError(f"these are values of actions of {self.n_actions} numbers: the log has other ones")
        if self.kind == "actions" and (actions is None or actions.ndim != 1):
            raise InvalidInputError("these are values of discrete actions: the log has none")
        if (
            self.kind == "actions"
            and actions is not None
            and not -1 < actions.min(initial=0) <= actions.max(initial=0) < self.n_actions
        ):
            raise InvalidInputError(
                f"the log has actions from {actions.min()} to {actions.max()}: these are values of actions from 0 to "
                f"{self.n_actions - 1}"
            )

    def save(self, path: file_format.Path) -> None:
        """Write model and feature map to one file, replaced as a whole; the file holds numbers, and no policy."""
        map_described, arrays = description(self.features)
        described, state = packed(self.model)
        contents: Mapping[str, Any] = {
            "gamma": self.gamma,
            "kind": self.kind,
            "n_actions": self.n_actions,
            "offsets": self.offsets.tolist(),
            "model": described,
            "features": map_described,
        }
        file_format.write(path, CLASS_NAME, contents, {"model": state, "features": arrays})

    @classmethod
    def load(cls, path: file_format.Path) -> ValueFunction:
        """What was saved; raises :class:`~tlstd.StateError` for anything else. Nothing in a file can run."""
        try:
            contents = file_format.read(path)
            if contents.class_name != CLASS_NAME:
                raise StateError(f"it holds a {contents.class_name[:40]}, which tlstd.load reads")  # noqa: TRY301
            return cls._of(contents)
        except StateError as error:
            found = f"{path!s} cannot be loaded ({error}): name a file that tlstd evaluate --out or save() wrote"
            raise StateError(file_format.printable(found)) from error

    @classmethod
    def _of(cls, contents: file_format.Contents) -> ValueFunction:
        given, saved = contents.parameters, contents.saved
        if given.keys() != {"gamma", "kind", "n_actions", "offsets", "model", "features"}:
            raise StateError("its parameters are not those of a value function")
        features = restored(given["features"], saved.apart("features"))
        model = unpacked(given["model"], saved.apart("model"))
        saved.finish()
        try:
            options = {name: given[name] for name in ("kind", "n_actions", "offsets")}
            return cls(model, features, given["gamma"], **options)
        except (InvalidParameterError, InvalidInputError) as error:
            raise StateError(f"its parameters do not fit ({error})") from error

    def __repr__(self) -> str:
        return f"<ValueFunction of {self.kind}: {self.model!r}, {self.features!r}>"


def _whole(actions: ArrayLike, n: int, n_actions: int) -> NDArray[np.int64]:
    array = np.asarray(actions)
    if array.shape != (n,) or array.dtype.kind not in "iu" or (n and not 0 <= array.min() <= array.max() < n_actions):
        raise InvalidInputError(f"actions have shape {array.shape}: pass {n} integers from 0 to {n_actions - 1}")
    return array.astype(np.int64)


def of_fit(fit: Fit) -> ValueFunction:
    """What :func:`evaluate` fitted, as a model that can be saved and continued: Krylov LSTD with the same settings.

    Where it cannot learn on, because its steps are elsewhere or its features are leaves of trees, it has fixed weights.
    """
    steps, chosen = fit.steps, fit.selection.whole
    n_actions = {"states": 0, "actions": fit.offsets.size, "joint": fit.n_numbers}[fit.kind]
    n = fit.features.n_features * (n_actions if fit.kind == "actions" else 1)
    model = KrylovLSTD(n, lambda_=chosen.lambda_, dimension=chosen.dimension)
    offsets = None if fit.kind == "states" else fit.offsets
    by_half = fit.choice is not None and fit.choice.family.by_half  # the map gives new states other features
    if by_half or not isinstance(fit.system, (StateSystem, ActionSystem, PairSystem)):  # its steps are elsewhere
        blocks = np.arange(n_actions if fit.kind == "actions" else 1)[:, None] * fit.features.n_features
        ids, weights = (blocks + fit.system.ids).ravel(), fit.weights[0][:, -1:]
        if fit.silent:
            weights = weights + fit.worth * fit.weights[1][:, -1:]
        solved = FixedWeights.of(n, chosen.lambda_, ids, weights, len(steps))
        return ValueFunction(solved, fit.features, steps.gamma, kind=fit.kind, n_actions=n_actions, offsets=offsets)
    values = ValueFunction(model, fit.features, steps.gamma, kind=fit.kind, n_actions=n_actions, offsets=offsets)
    values.update(steps.log, policy=fit.target, rhos=fit.rhos)
    return values
