"""From a log to an answer: the value of a policy, by several estimators side by side, with nothing to tune."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation.doubly_robust import ENOUGH, doubly_robust
from tlstd.evaluation.evaluation import Evaluation, Row
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.intervals import Interval, interval_of
from tlstd.evaluation.log_intervals import asked_states, influences_on, learned_rows
from tlstd.evaluation.ratios import importance_ratios
from tlstd.evaluation.table_actions import add_action_values, add_silence
from tlstd.evaluation.table_states import add_state_values
from tlstd.evaluation.task import EvaluationTask, Features, Probabilities, Start
from tlstd.evaluation.whole_episodes import WholeEpisodes, whole_episodes
from tlstd.logs.log import Log


def evaluate(
    log: Any,
    *,
    gamma: float,
    features: Features = "auto",
    policy: Any = None,
    start: Start | None = None,
    estimators: Iterable[str] | None = None,
    probabilities: Probabilities = "logged",
    all: bool = False,
    level: float = 0.95,
    cost: bool = False,
    cluster: Any = None,
    compare: bool = False,
    returns: Sequence[float] | None = None,
    rewards: Sequence[float] | None = None,
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
    policy : function, (N, n_actions) or (N,) probabilities, or "logged", optional
        The policy asked for. Left out, it is the one that the log has in columns (``log.policy``), and else the one
        that acted, which "logged" means in any case. A function gets observations (M, D), or (M,) numbers of
        states, and returns probabilities (M, n_actions) or actions (M,); for continuous actions one draw for each, (M,
        A). A table has one row for each step of the log; (N,) are probabilities of the logged actions, enough for
        ratios.
    start : "first", "all" or states, optional
        Whose mean value is asked for: the first states of the episodes, all states, or states (M, D). Left out, the
        first ones; in a log without ends all states, and the first.
    estimators : names, optional
        Rows of the table (``ESTIMATORS``); those that apply and are fast, if left out. The answer is the first row.
    probabilities : "logged" or "estimate"
        "estimate": where the log has no probabilities of its actions, they are estimated by softmax regression on the
        features, so that there are ratios. It is a model of its own, and can be wrong.
    all : bool
        Run t-LSTD on more than ``SAMPLED`` steps too.
    level : float in (0, 1)
        Of the intervals: the share of logs whose interval covers the true value, as far as it goes
        (``docs/trust.md``).
    cost : bool
        Whether rewards are costs, so that smaller is better. Numbers stay as they are; words follow.
    cluster : distributed.Client, optional
        Whose workers read, keep and multiply the files of the log, one at a time; ``log`` is then the names of files,
        and a policy a function (``docs/clusters.md``).
    compare : bool
        Show LSTD, t-LSTD and TD beside the answer too, which take longer than it; so does ``all``.
    returns : (LOW, HIGH), optional
        The range of discounted returns from any step on. Actions of the policy that the log does not have are worth
        something in it, which widens the interval of action values (``docs/trust.md``). Left out, it is the range of
        returns in the log, an assumption.
    rewards : (LOW, HIGH), optional
        The same by the range of single rewards, summed over the horizon 1/(1-γ).
    report : function of a text and a share, optional
        Called as things go on.

    Returns
    -------
    Evaluation
        Its ``rung`` says what the answer stands on, and ``assumption`` what that assumes. On-policy, of the first
        states of episodes, it is the mean of their returns; where episodes were cut off, with the values of the states
        behind the cuts. Of other states, and of one stream, it is Krylov LSTD's, with λ and dimension chosen by
        held-out returns (:func:`tlstd.evaluation.choose`). For another policy it is the doubly robust one, if
        the log has probabilities of its actions and the weights have an effective sample size of 40, else Krylov LSTD's
        with importance ratios; without probabilities LSTDQ's: least squares for action values with λ = 0,
        its dimension chosen by held-out residuals, because logged returns are not the policy's.

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
    if cluster is not None:
        options = {"features": features, "policy": policy, "start": start, "estimators": estimators, "report": report}
        options |= {"level": level, "cost": cost, "compare": compare}
        ranges = {"returns": returns, "rewards": rewards}
        given = [f"{name}={pair!r}" for name, pair in ranges.items() if pair is not None]
        given += [f"probabilities={probabilities!r}"] * (probabilities != "logged")
        given += [f"all={all!r}"] * parameters.flag("all", all)
        if given:
            raise InvalidParameterError(
                f"{given[0]} with a cluster is for one process, which holds the whole log: leave it out, or leave out "
                "cluster"
            )
        files = import_module("tlstd.cluster.evaluate")  # it builds on this module
        found: Evaluation = files.evaluate_files(log, gamma=gamma, client=cluster, **options)
        return found
    table = log if isinstance(log, Log) else Log.from_frame(log)
    run = EvaluationTask(
        table,
        gamma,
        features,
        policy,
        start,
        estimators,
        probabilities,
        all,
        level,
        report,
        cost=cost,
        compare=compare,
        returns=returns,
        rewards=rewards,
    )
    return answered(run)


def answered(run: EvaluationTask, with_interval: bool = True) -> Evaluation:
    """The answer to what is asked; without an interval, its value is that of the regularised model."""
    fitted = _fitted(run, _with_interval if with_interval else _without_interval)
    run.report("done", 1.0)
    silence = run.silence if run.rows[0].name == "LSTDQ" else None
    return Evaluation(
        tuple(run.rows),
        fitted.values,
        tuple(run.notes),
        run.gamma,
        run.log.source,
        run.policy,
        fitted,
        policy_name=run.policy_name,
        cost=run.cost,
        left_out=run.left_out,
        n_steps=len(run.log),
        returned=run.returned,
        influenced=run.influence_of(fitted),
        limits=run.limits,
        silence=silence,
    )


def _with_interval(run: EvaluationTask, fitted: Fitted) -> Fitted:
    """Give the row that a model is from its interval, and the middle of it as its value; return what was fitted.

    Regularisation makes the values of single states better and moves their mean towards 0 (``docs/trust.md``). Of the
    policy that acted the row of returns comes first, where the log carries it.
    """
    own = "KrylovLSTD" if fitted.values.kind == "states" else "LSTDQ"
    at = next((i for i, row in enumerate(run.rows) if row.name.startswith(own)), None)
    began, returned = perf_counter(), _returns(run, fitted)
    silence = add_silence(run, fitted) if own == "LSTDQ" and at is not None else None
    asked = [] if at is None or silence is not None else [asked_states(fitted)]
    if returned is not None and returned.cuts is not None and returned.rests_on_model:
        asked.append(returned.cuts)
    before = perf_counter() - began
    found = []
    if asked:
        run.report(f"{own}: interval", 0.0)
        found = influences_on(fitted, asked)
    if at is not None and silence is not None:
        run.influences.append((fitted, silence.middle))
        run.rows[at] = with_middle(run.rows[at], silence.interval)
    elif at is not None:
        run.influences.append((fitted, found[0]))
        run.rows[at] = with_middle(run.rows[at], interval_of(found[0], run.level))
    if returned is not None:
        if len(found) > (at is not None):
            returned = returned.with_influence(found[-1], run.log, learned_rows(fitted))
        run.returned = returned
        values, interval = {"start states": returned.found.value}, returned.interval(run.level)
        row = Row(returned.name, values, before, returned.note, interval)
        run.rows.insert(0 if returned.carries else len(run.rows), row)
    return fitted


def _add_doubly_robust(run: EvaluationTask, fitted: Fitted, ratios: FloatArray, known: bool) -> None:
    """The row "doubly robust": the answer, where the probabilities are logged and enough counts."""
    if len(fitted.log) < len(run.log) or not (run.log.has_ends or run.log.n_episodes > 1):
        return
    run.report("doubly robust", 0.95)
    began = perf_counter()
    found = doubly_robust(fitted, ratios)
    if found is None:
        return
    if found.cuts is not None and found.rests_on_model:
        found = found.with_influence(influences_on(fitted, [found.cuts])[0], run.log, learned_rows(fitted))
    carries = known and found.carries
    row = Row(
        found.name, {"start states": found.found.value}, perf_counter() - began, found.note, found.interval(run.level)
    )
    run.rows.insert(0 if carries else len(run.rows), row)
    run.notes.append(
        f"Doubly robust {'is' if carries else 'is not'} the answer: that takes logged probabilities and an effective "
        f"sample size of {ENOUGH}; here it is {found.found.effective:,.0f}."
    )
    if carries:
        run.returned = found


def _returns(run: EvaluationTask, fitted: Fitted) -> WholeEpisodes | None:
    """The returns of the start states under the logged policy, where these are asked for."""
    log = run.log
    wanted = run.wants("mean of returns") or run.wants("returns with tails")
    if run.target is not None or not wanted or "start states" not in run.starts:
        return None
    run.report("returns", 0.95)
    return whole_episodes(fitted, run.large) if log.has_ends or log.n_episodes > 1 else None


def _without_interval(_run: EvaluationTask, fitted: Fitted) -> Fitted:
    return fitted


def with_middle(row: Row, interval: Interval) -> Row:
    """A row with its interval, and the middle of it as its value, unless it is too wide to be known."""
    if np.isfinite(interval.half_width):
        values = row.values | {next(iter(row.values)): interval.value}
        row = replace(row, values=values, plain=row.value, note=f"{row.note}; debiased from {row.value:.5g}")
    return replace(row, interval=interval)


def _fitted(run: EvaluationTask, finished: Callable[[EvaluationTask, Fitted], Fitted]) -> Fitted:
    """Add the rows of the table, finish those of fitted models, and return what the answer comes from."""
    target = run.target
    if target is None:
        return finished(run, add_state_values(run, None))
    best: Fitted | None = None
    action_values: Fitted | None = None
    ratios = None if run.asked == {"LSTDQ"} else importance_ratios(run, target)
    known = run.log.probabilities is not None
    if ratios is not None and known:
        best = finished(run, add_state_values(run, ratios))
    doubly = ratios is not None and run.wants("doubly robust") and "start states" in run.starts
    if (run.wants("LSTDQ") or doubly) and target.logged is None:
        action_values = finished(run, add_action_values(run, target))
        best = action_values if best is None and run.wants("LSTDQ") else best
    if ratios is not None and not known:
        with_ratios = finished(run, add_state_values(run, ratios))
        best = with_ratios if best is None else best
    if ratios is not None and action_values is not None and doubly:
        _add_doubly_robust(run, action_values, ratios, known)
    if best is None:
        raise InvalidInputError(
            "the policy is given by probabilities of the logged actions alone, and the log has none of the policy that "
            'acted: pass a function or a table of all actions, or probabilities="estimate"'
        )
    return best
