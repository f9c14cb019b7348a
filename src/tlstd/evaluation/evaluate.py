"""From a log to an answer: the value of a policy, by several estimators side by side, with nothing to tune."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd import container, parameters
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.krylov_lstd import KrylovLSTD
from tlstd.estimators.lstd import LSTD
from tlstd.estimators.td import TD
from tlstd.estimators.tlstd import TLSTD
from tlstd.evaluation.action_values import action_transitions, fit_action_values, joint_transitions
from tlstd.evaluation.choose import choose
from tlstd.evaluation.importance import per_decision, start_returns, starts_of
from tlstd.evaluation.policies import Target, as_target, fitted_probabilities, of_logged_actions
from tlstd.evaluation.value_function import ValueFunction
from tlstd.features.auto_tiles import AutoTiles
from tlstd.features.base import FeatureMap, check_map
from tlstd.features.columns import Columns
from tlstd.features.one_hot import OneHot
from tlstd.logs.log import Log
from tlstd.types import FloatArray, IntArray, Transitions
from tlstd.validation import as_floats

SCHEMA = 1
"""Version of what :meth:`Evaluation.to_json` returns: raised when a key changes its meaning or goes."""
LAMBDAS = (0.0, 0.5, 0.8, 0.95, 1.0)
"""Trace parameters that are compared on-policy."""
OFF_POLICY_LAMBDAS = (0.0, 0.5, 0.9)
"""With ratios, which multiply along the trace."""
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
STEP_SIZES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Of TD, divided by the mean ‖x‖²."""
FEWEST_VISITS = 20
"""Steps in which a feature of state and action occurs, on average, below which LSTDQ comes with a warning."""
RANK = 40
"""Of t-LSTD."""
MOST_FOR_LSTD = 1_000
"""Features seen up to which LSTD is in the table."""
SAMPLED = 1_000_000
"""Steps beyond which λ and dimension are chosen on a sample of episodes, and t-LSTD is left out."""
SAMPLE = 100_000
"""Steps of that sample."""
ESTIMATORS = (
    "KrylovLSTD",
    "LSTD",
    "t-LSTD",
    "TD",
    "Monte Carlo",
    "LSTDQ",
    "per-decision IS",
    "weighted IS",
    "doubly robust",
)
"""Rows of the table by name, for ``estimators=``."""

Report = Callable[[str, float], None]
"""Told what is being done, and how much of all is done."""


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    values: dict[str, float]
    """Mean value of each set of start states, by name."""
    seconds: float
    note: str

    @property
    def value(self) -> float:
        """The value of the first set."""
        return next(iter(self.values.values()), float("nan"))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The answer of :func:`evaluate`; ``print`` shows it."""

    rows: tuple[Row, ...]
    """The table; the first row is the answer."""
    model: ValueFunction
    """What the answer comes from: it can be asked, saved and continued."""
    notes: tuple[str, ...]
    """What was assumed, chosen and left out."""
    gamma: float
    source: str
    policy: Any = field(default=None, repr=False)

    @property
    def value(self) -> float:
        """The value of the policy: the mean over start states."""
        return self.rows[0].value

    @property
    def table(self) -> str:
        """The estimators side by side."""
        sets = list(self.rows[0].values)
        names = ["estimator", *sets, "seconds", ""]
        lines = [
            [
                row.name,
                *(f"{row.values[s]:.5g}" if s in row.values else "" for s in sets),
                f"{row.seconds:.2f}",
                row.note,
            ]
            for row in self.rows
        ]
        widths = [max(len(line[i]) for line in [names, *lines]) for i in range(len(names))]
        shown = []
        for line in [names, *lines]:
            cells = [line[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(line[1:-1], widths[1:-1], strict=True)]
            shown.append("  ".join([*cells, line[-1]]).rstrip())
        return "\n".join(shown)

    def predict(self, states: ArrayLike) -> FloatArray:
        """Values (M,) of states (M, D), or (M,) numbers of states, under the policy asked for."""
        if self.model.kind == "states":
            return self.model.predict(states)
        if not callable(self.policy):
            raise InvalidInputError(
                "the policy was given as a table of the log's states: ask model.predict for actions"
            )
        return self.model.predict(states, policy=self.policy)

    def to_json(self) -> str:
        """The answer for programs; ``docs/how_to/evaluate_a_log.md`` has the keys."""
        rows = [
            {"name": row.name, "values": _finite(row.values), "seconds": row.seconds, "note": row.note}
            for row in self.rows
        ]
        whole = {
            "schema": SCHEMA,
            "value": _finite({"": self.value})[""],
            "gamma": self.gamma,
            "source": self.source,
            "features": repr(self.model.features),
            "estimators": rows,
            "notes": list(self.notes),
        }
        return json.dumps(whole, allow_nan=False, ensure_ascii=False)

    def save(self, path: container.Path) -> None:
        """Write the model and its feature map to a file, for :meth:`ValueFunction.load` and ``tlstd predict``."""
        self.model.save(path)

    def __str__(self) -> str:
        return "\n".join([self.table, "", *self.notes])


def evaluate(
    log: Any,
    *,
    gamma: float,
    features: FeatureMap | str = "auto",
    policy: Any = None,
    start: ArrayLike | str | None = None,
    estimators: Iterable[str] | None = None,
    probabilities: str = "logged",
    all: bool = False,
    report: Callable[[str, float], None] | None = None,
) -> Evaluation:
    """The value of a policy from a log of steps, by several estimators side by side.

    Parameters
    ----------
    log : Log, or anything that :meth:`Log.from_frame` takes
        A frame, or names of files.
    gamma : float in [0, 1]
        Discount. 1 needs a log whose episodes end.
    features : "auto", "columns" or FeatureMap
        "auto": :class:`~tlstd.AutoTiles` of the observations, :class:`~tlstd.OneHot` where they are numbers of states.
        "columns": the columns as they are, and a constant. For action values of continuous actions a map sees state and
        action side by side.
    policy : function, (N, n_actions) or (N,) probabilities, optional
        The policy asked for; the one that acted, if left out. A function gets observations (M, D), or (M,) numbers of
        states, and returns probabilities (M, n_actions) or actions (M,); for continuous actions one draw for each, (M,
        A). A table has one row for each step of the log; (N,) are probabilities of the logged actions, enough for
        ratios.
    start : "first", "all" or states, optional
        Whose mean value is asked for: the first states of the episodes, all states, or states (M, D). Left out, the
        first ones; in a log without ends all states, and the first.
    estimators : names, optional
        Rows of the table (``ESTIMATORS``); all that apply, if left out. The answer is the first row.
    probabilities : "logged" or "estimate"
        "estimate": where the log has no probabilities of its actions, they are estimated by softmax regression on the
        features, so that there are ratios. It is a model of its own, and can be wrong.
    all : bool
        Run t-LSTD on more than ``SAMPLED`` steps too.
    report : function of a text and a share, optional
        Called as things go on.

    Returns
    -------
    Evaluation
        On-policy the answer is Krylov LSTD's, with λ and dimension chosen by held-out returns
        (:func:`tlstd.evaluation.choose`). For another policy it is Krylov LSTD's with importance ratios, if the log has
        probabilities of its actions; else LSTDQ's: least squares for action values with λ = 0, its dimension chosen by
        held-out residuals, because logged returns are not the policy's.

    Example
    -------
    Five states in a row, of which the last one pays and ends the episode; who acted goes right half of the time:

    >>> import numpy as np
    >>> from tlstd import Log
    >>> rng = np.random.default_rng(0)
    >>> rows = []
    >>> for episode in range(200):
    ...     state = 0
    ...     while state < 5:
    ...         right = int(rng.random() < 0.5)
    ...         after = state + 1 if right else max(0, state - 1)
    ...         rows.append((episode, state, right, float(after == 5), after == 5))
    ...         state = after
    >>> episodes, states, actions, rewards, ended = map(np.array, zip(*rows))
    >>> log = Log.from_arrays(states, rewards, actions=actions, terminated=ended, episodes=episodes, discrete=True)
    >>> evaluation = evaluate(log, gamma=0.9, policy=lambda states: np.ones(len(states), dtype=int))  # always right
    >>> round(evaluation.value, 3), round(0.9**4, 3)
    (0.656, 0.656)
    """
    return _Run(_as_log(log), gamma, features, policy, start, estimators, probabilities, all, report).evaluation()


class _Run:
    """One evaluation under way."""

    def __init__(
        self,
        log: Log,
        gamma: float,
        features: FeatureMap | str,
        policy: Any,
        start: ArrayLike | str | None,
        estimators: Iterable[str] | None,
        probabilities: str,
        everything: bool,
        report: Report | None,
    ) -> None:
        self.log = log
        self.gamma = parameters.real("gamma", gamma, low=0.0, high=1.0)
        if not len(log):
            raise InvalidInputError("the log has no steps: there is nothing to evaluate")
        if self.gamma == 1.0 and not log.terminated.any():
            raise InvalidParameterError("gamma is 1, but no episode of the log terminates: use gamma < 1")
        self.policy = policy
        self.target = None if policy is None else as_target(policy, log)
        self.asked = _names(estimators)
        self.probabilities = parameters.choice("probabilities", probabilities, ("logged", "estimate"))
        self.everything = parameters.flag("all", everything)
        self.report: Report = (lambda text, share: None) if report is None else report
        self.notes: list[str] = list(log.notes)
        self.rows: list[Row] = []
        self.continuous = log.actions is not None and log.actions.ndim == 2
        self.starts = self._start_sets(start)
        self.start_is_given = not (start is None or isinstance(start, str))
        self.given_features = features
        self.reference: Callable[[], LinearEstimator] | None = None

    # --- what is asked ----------------------------------------------------------------------------------------------

    def _start_sets(self, start: ArrayLike | str | None) -> dict[str, NDArray[Any]]:
        """Observations of each set of start states, by name."""
        log = self.log
        if start is None:
            sets = log.starts
            if len(sets) > 1:
                self.notes.append(
                    "The log has no ends: the value is the mean over all its states, and that of the first."
                )
        elif isinstance(start, str):
            parameters.choice("start", start, ("first", "all"), why=", or states")
            sets = {"start states": log.start_rows} if start == "first" else {"all states": np.arange(len(log))}
        else:
            states = as_floats(start, "start", None)
            shape = log.observations.shape[1:]
            if states.shape == shape:
                states = states[None]
            if states.shape[1:] != shape or not len(states):
                raise InvalidInputError(
                    f"start has shape {states.shape}: pass states (M, {', '.join(map(str, shape))})"
                )
            return {"given states": states.astype(log.observations.dtype)}
        if any(not rows.size for rows in sets.values()):
            raise InvalidInputError('the log has no first row of an episode: pass start="all", or states')
        return {name: log.observations[rows] for name, rows in sets.items()}

    def _map(self, joint: bool = False) -> FeatureMap:
        given, log = self.given_features, self.log
        if not isinstance(given, str):
            check_map(given)
            return given
        states = np.hstack([log.states, log.actions]) if joint and log.actions is not None else log.states
        parameters.choice("features", given, ("auto", "columns"), why=", or a feature map")
        if log.discrete and not joint:
            assert log.n_observations is not None
            return OneHot([0], [max(1, log.n_observations - 1)])
        return AutoTiles.fit(states) if given == "auto" else Columns(states.shape[1])

    def wants(self, name: str) -> bool:
        return self.asked is None or name in self.asked

    # --- the answer -------------------------------------------------------------------------------------------------

    def evaluation(self) -> Evaluation:
        best: ValueFunction | None = None
        if self.target is None:
            best = self._state_values(None)
        else:
            rhos = None if self.asked == {"LSTDQ"} else self._ratios(self.target)
            known = self.log.probabilities is not None
            if rhos is not None and known:
                best = self._state_values(rhos)
            if self.wants("LSTDQ") and self.target.logged is None:
                action_values = self._action_values(self.target)
                best = action_values if best is None else best
            if rhos is not None and not known:
                with_ratios = self._state_values(rhos)
                best = with_ratios if best is None else best
            if best is None:
                raise InvalidInputError(
                    "the policy is given by probabilities of the logged actions alone, and the log has none of the "
                    'policy that acted: pass a function or a table of all actions, or probabilities="estimate"'
                )
        self.report("done", 1.0)
        return Evaluation(tuple(self.rows), best, tuple(self.notes), self.gamma, self.log.source, self.policy)

    def _add(self, name: str, began: float, values: dict[str, float], note: str = "") -> None:
        self.rows.append(Row(name, values, perf_counter() - began, note))

    def _means(self, values: Callable[[NDArray[Any]], FloatArray]) -> dict[str, float]:
        return {name: float(np.mean(values(states))) for name, states in self.starts.items()}

    def _action_values(self, target: Target) -> ValueFunction:
        log, began = self.log, perf_counter()
        assert log.actions is not None
        self.report("action values", 0.1)
        features = self._map(joint=self.continuous)
        if self.continuous:
            n_actions = log.actions.shape[1]
            steps = joint_transitions(log, features, target, self.gamma)
        else:
            n_actions = self._n_actions(target)
            steps = action_transitions(log, features, target, self.gamma, n_actions)
        self.report("action values: choosing the dimension", 0.3)
        model, choice = fit_action_values(steps)
        kind = "joint" if self.continuous else "actions"
        values = ValueFunction(model, features, self.gamma, kind=kind, n_actions=n_actions)
        note = f"dimension {model.chosen_dimension}"
        if choice is not None:
            note += "" if choice.decided else " (not chosen)"
            self.notes.append(f"LSTDQ: {choice.note}")
        X = sp.csr_array(steps.X)
        visits = X.nnz / max(1, np.unique(X.indices).size)
        if visits < FEWEST_VISITS:
            self.notes.append(
                f"Warning: a feature of state and action occurs in {visits:.0f} steps on average, fewer than "
                f"{FEWEST_VISITS}: LSTDQ's values may be far too near to 0."
            )
        self._add("LSTDQ", began, self._means(lambda states: self._asked(values, states, target)), note)
        return values

    def _asked(self, values: ValueFunction, states: NDArray[Any], target: Target) -> FloatArray:
        """Values of start states under the target."""
        if target.function is not None:
            return values.predict(states, policy=target.function)
        assert target.table is not None
        if self.start_is_given:
            raise InvalidInputError("start are states, but the policy is a table of the log's states: pass a function")
        rows = self.log.starts if len(states) != len(self.log) else {"": np.arange(len(self.log))}
        (table,) = (target.table[r] for r in rows.values() if r.size == len(states))
        all_actions = values.predict(states)[:, : table.shape[1]]
        mean: FloatArray = (table * all_actions).sum(axis=1)
        return mean

    def _n_actions(self, target: Target) -> int:
        assert self.log.actions is not None
        n = int(self.log.actions.max(initial=0)) + 1
        if target.table is not None:
            return max(n, int(target.table.shape[1]))
        if target.function is not None:
            answer = np.shape(target.function(self.log.observations[:2]))
            if len(answer) == 2:
                return max(n, int(answer[1]))
        return n

    def _ratios(self, target: Target) -> FloatArray | None:
        log = self.log
        if self.continuous or log.actions is None:
            if self.probabilities == "estimate":
                raise InvalidInputError("probabilities of continuous actions are not estimated: use LSTDQ's value")
            return None
        if log.probabilities is not None:
            behaviour = log.probabilities
        elif self.probabilities == "estimate":
            X = log.transitions(self._map(), self.gamma).store
            taken = log.actions.astype(np.int64)
            behaviour = fitted_probabilities(X[: len(log)], taken, int(taken.max()) + 1)
            self.notes.append(
                "Warning: the log has no probabilities of its actions. They were estimated by softmax regression on "
                "the features; if that is wrong, so are all rows with ratios."
            )
        else:
            self.notes.append("The log has no probabilities of its actions: there are no rows with importance ratios.")
            return None
        wanted = of_logged_actions(target, log, self._n_actions(target))
        bad = (wanted > 0.0) & ~(behaviour > 0.0)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InvalidInputError(
                f"step {row} has an action of probability {behaviour[row]} by the log: what was done had some chance"
            )
        return np.where(wanted > 0.0, wanted / np.where(behaviour > 0.0, behaviour, 1.0), 0.0)

    # --- values of states -------------------------------------------------------------------------------------------

    def _state_values(self, rhos: FloatArray | None) -> ValueFunction:
        features = self._map()
        self.report("features", 0.4)
        log, sample = self.log, _sample(self.log)
        sample_rhos = rhos
        if len(sample) < len(log):
            chosen = _sample_rows(log)
            sample_rhos = None if rhos is None else rhos[chosen]
            self.notes.append(
                f"{len(log):,} steps: λ, dimension and step size were chosen on {sample.n_episodes:,} episodes of "
                f"{len(sample):,} steps."
            )
        steps = sample.transitions(features, self.gamma, rhos=sample_rhos)
        if not len(steps):
            raise InvalidInputError("the log has no step whose next observation is known: nothing can be learned")
        self.report("choosing λ and dimension", 0.45)
        began = perf_counter()
        lambda_, dimension = self._chosen(steps, rhos is not None)
        best = self._learned(KrylovLSTD(features.n_features, lambda_=lambda_, dimension=dimension), features, rhos)
        note = f"λ={lambda_:g}, dimension {dimension}"
        values: dict[str, ValueFunction] = {}
        if self.wants("KrylovLSTD"):
            self._add("KrylovLSTD" + " with ratios" * (rhos is not None), began, self._means(best.predict), note)
        values["KrylovLSTD"] = best
        self._others(steps, features, lambda_, rhos, values)
        if not self.start_is_given and (self.log.has_ends or self.log.n_episodes > 1):
            self._means_of_returns(log, best, features, lambda_, dimension, rhos)
        return values["KrylovLSTD"]

    def _learned(self, model: LinearEstimator, features: FeatureMap, rhos: FloatArray | None) -> ValueFunction:
        values = ValueFunction(model, features, self.gamma)
        values.update(self.log, rhos=rhos)
        return values

    def _chosen(self, steps: Transitions, off_policy: bool) -> tuple[float, int]:
        """λ and dimension: for each λ the dimension of least held-out error, and then the best of these."""
        candidates = []
        for lambda_ in OFF_POLICY_LAMBDAS if off_policy else LAMBDAS:
            model = KrylovLSTD(steps.n_features, lambda_=lambda_)
            model.update_many(steps)
            dimension = model.chosen_dimension
            assert isinstance(dimension, int)
            candidates.append((lambda_, dimension))
        careful = candidates[0] if off_policy else candidates[-2]
        self.reference = lambda: KrylovLSTD(steps.n_features, lambda_=careful[0], dimension=careful[1])
        choice = choose(
            lambda c: KrylovLSTD(steps.n_features, lambda_=c[0], dimension=c[1]),
            candidates,
            steps,
            otherwise=careful,
            reference=self.reference,
        )
        self.notes.append(f"KrylovLSTD: {choice.note}")
        return choice.value

    def _others(
        self,
        steps: Transitions,
        features: FeatureMap,
        lambda_: float,
        rhos: FloatArray | None,
        values: dict[str, ValueFunction],
    ) -> None:
        n, suffix = features.n_features, " with ratios" * (rhos is not None)
        X = steps.X
        seen = n if isinstance(X, np.ndarray) else int(np.unique(X.indices).size)
        if self.wants("LSTD") and seen <= MOST_FOR_LSTD:
            self.report("LSTD", 0.6)
            began = perf_counter()
            ridge = choose(
                lambda r: LSTD(n, lambda_=lambda_, ridge=r), RIDGES, steps, otherwise=1e-4, reference=self.reference
            ).value
            found = self._learned(LSTD(n, lambda_=lambda_, ridge=ridge), features, rhos)
            self._add("LSTD" + suffix, began, self._means(found.predict), f"λ={lambda_:g}, ridge {ridge:g}")
        if self.wants("t-LSTD"):
            self._truncated(steps, features, lambda_, rhos, min(RANK, seen))
        if self.wants("TD"):
            self.report("TD", 0.9)
            began = perf_counter()
            square = float((X**2).sum() / X.shape[0])
            sizes = [size / square for size in STEP_SIZES]
            size = choose(
                lambda a: TD(n, step_size=a, lambda_=lambda_),
                sizes,
                steps,
                otherwise=sizes[1],
                reference=self.reference,
            ).value
            found = self._learned(TD(n, step_size=size, lambda_=lambda_), features, rhos)
            self._add("TD" + suffix, began, self._means(found.predict), f"λ={lambda_:g}, step size {size:.2g}")

    def _truncated(
        self, steps: Transitions, features: FeatureMap, lambda_: float, rhos: FloatArray | None, rank: int
    ) -> None:
        self.report("t-LSTD", 0.7)
        began = perf_counter()
        if len(self.log) > SAMPLED and not self.everything:
            part = steps[: min(len(steps), 4_000)]
            TLSTD(features.n_features, rank, lambda_=lambda_).update_many(part)
            estimate = (perf_counter() - began) / len(part) * len(self.log)
            self.notes.append(
                f"t-LSTD was left out: it would take about {estimate / 60:.0f} minutes (all=True, --all)."
            )
            return
        found = self._learned(TLSTD(features.n_features, rank, lambda_=lambda_), features, rhos)
        note = f"λ={lambda_:g}, rank {rank}"
        self._add("t-LSTD" + " with ratios" * (rhos is not None), began, self._means(found.predict), note)

    def _means_of_returns(
        self,
        log: Log,
        best: ValueFunction,
        features: FeatureMap,
        lambda_: float,
        dimension: int,
        rhos: FloatArray | None,
    ) -> None:
        """Monte Carlo, or with ratios importance sampling and doubly robust: only of the start states."""
        if "start states" not in self.starts or len(log) > SAMPLED:
            return
        self.report("returns", 0.95)
        steps = log.transitions(features, self.gamma, rhos=rhos)
        starts = starts_of(steps, log.start_rows)

        def make() -> LinearEstimator:
            return KrylovLSTD(features.n_features, lambda_=lambda_, dimension=dimension)

        name = "Monte Carlo" if rhos is None else "doubly robust"
        if self.wants(name) and starts.size:
            began = perf_counter()
            mean, _, how = start_returns(steps, starts, make)
            self._add(name, began, {"start states": mean}, how)
        if rhos is not None and starts.size and (self.wants("per-decision IS") or self.wants("weighted IS")):
            began = perf_counter()
            plain, weighted = per_decision(steps, starts, best.model.predict(steps.X_next))
            for kind, value in (("per-decision IS", plain), ("weighted IS", weighted)):
                if self.wants(kind):
                    self._add(kind, began, {"start states": value}, f"{starts.size:,} episodes")


# --- parts ----------------------------------------------------------------------------------------------------------


def _as_log(log: Any) -> Log:
    return log if isinstance(log, Log) else Log.from_frame(log)


def _names(estimators: Iterable[str] | None) -> set[str] | None:
    if estimators is None:
        return None
    names = set([estimators] if isinstance(estimators, str) else estimators)
    for name in sorted(names):
        parameters.choice("estimators", name, ESTIMATORS)
    if not names:
        raise InvalidParameterError(f"estimators is empty: name at least one of {', '.join(ESTIMATORS)}")
    return names


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    return {name: value if np.isfinite(value) else None for name, value in values.items()}


def _sample_rows(log: Log) -> IntArray:
    """Rows of evenly spaced episodes, about ``SAMPLE`` steps; the first steps, where episodes are few and long."""
    lengths = np.diff(log.episodes)
    wanted = max(1, int(log.n_episodes * SAMPLE / len(log)))
    chosen = np.unique(np.linspace(0, log.n_episodes - 1, wanted).astype(np.int64))
    if lengths[chosen].sum() > 2 * SAMPLE:  # few, long ones
        return np.arange(SAMPLE)
    return np.concatenate([np.arange(log.episodes[e], log.episodes[e + 1]) for e in chosen.tolist()])


def _sample(log: Log) -> Log:
    if len(log) <= SAMPLED:
        return log
    rows = _sample_rows(log)
    if rows.size == SAMPLE and rows[-1] == SAMPLE - 1:
        return log[:SAMPLE]
    chosen = np.unique(np.searchsorted(log.episodes, rows, side="right") - 1)
    lengths = np.diff(log.episodes)[chosen]
    return replace(
        log,
        observations=log.observations[rows],
        actions=None if log.actions is None else log.actions[rows],
        rewards=log.rewards[rows],
        terminated=log.terminated[rows],
        truncated=log.truncated[rows],
        probabilities=None if log.probabilities is None else log.probabilities[rows],
        final=log.final[chosen],
        has_final=log.has_final[chosen],
        begins=log.begins[chosen],
        ids=[log.ids[e] for e in chosen.tolist()],
        episodes=np.concatenate([[0], np.cumsum(lengths)]),
    )
