"""From a log to an answer: question, fit, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from tlstd.core import parameters
from tlstd.core.threads import one_thread
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation.ladder import Case, LocalFits, climb
from tlstd.evaluation.names import doubt_about_cost, policy_name
from tlstd.evaluation.policies import as_target
from tlstd.evaluation.question import Features, Probabilities, Question, Start, names_of, start_sets, with_rewards
from tlstd.evaluation.report import Report
from tlstd.evaluation.silence import given_limits
from tlstd.evaluation.trust import Evidence, LeftOut, assess
from tlstd.evaluation.views import views
from tlstd.features.clipping import clipped_note
from tlstd.logs.log import Log

Told = Callable[[str, float], None]


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
    report: Told | None = None,
) -> Report:
    """The value of a policy from a log of steps, with an interval, what it assumes, and how far to trust it.

    Parameters
    ----------
    log : Log, or anything that :meth:`Log.from_frame` takes
        A frame, or names of files.
    gamma : float in [0, 1]
        Discount. 1 needs a log whose episodes end.
    features : "auto", "tiles", "mixed", "quadratic", "linear", "smooth", "leaves", "columns" or FeatureMap
        "auto" chooses for values of states, by held-out error, and takes "mixed" for action values
        (``docs/features.md``); :class:`~tlstd.OneHot` where observations are numbers of states. "columns": the columns
        as they are, and a constant. For action values of continuous actions a map sees state and action side by side.
    policy : function, (N, n_actions) or (N,) probabilities, or "logged", optional
        The target policy. Left out, it is the one that the log has in columns (``log.policy``), and else the logged
        policy, which "logged" means in any case. A function gets observations (M, D), or (M,) numbers of
        states, and returns probabilities (M, n_actions) or actions (M,); for continuous actions one draw for each, (M,
        A). A table has one row for each step of the log; (N,) are probabilities of the logged actions (densities, if
        actions are continuous), enough for ratios.
    start : "first", "all" or states, optional
        Whose mean value is asked for: the first states of the episodes, all visited states, or states (M, D). Left
        out, the first ones; in a log without ends all states, and the first.
    estimators : names, optional
        Rows of the table (``ESTIMATORS``); those that apply and are fast, if left out. The answer is the first row.
    probabilities : "logged" or "estimate"
        "estimate": where the log has no probabilities of its actions, they are estimated by softmax regression on the
        features. The rows that rest on them are a second opinion, never the answer.
    all : bool
        The same as ``compare``.
    level : float in (0, 1)
        Of the intervals: the share of logs whose interval covers the true value, as far as it goes
        (``docs/trust.md``).
    cost : bool
        Whether rewards are costs, so that smaller is better. Numbers stay as they are; words follow.
    cluster : distributed.Client, optional
        Whose workers read, keep and multiply the files of the log, one at a time; ``log`` is then the names of files,
        and a policy a function (``docs/clusters.md``).
    compare : bool
        Show LSTD, t-LSTD, TD, weighted importance sampling and fitted trees beside the answer too, which take longer
        than it.
    returns : (LOW, HIGH), optional
        The range of discounted returns from any step on. Actions of the policy that the log does not have are worth
        something in it, which widens the interval of action values (``docs/trust.md``). Left out, it is the range of
        returns in the log, an assumption.
    rewards : (LOW, HIGH), optional
        The same by the range of single rewards, summed over the horizon 1/(1-γ).
    report : function of a text and a share, optional
        Progress callback: (message, fraction).

    Returns
    -------
    Report
        Finished numbers. Its ``rung`` names what the answer stands on, and ``assumption`` says what that assumes; the
        table in ``docs/trust.md`` says which log and question lead to which rung.

    Example
    -------
    Five states in a row, of which the last one pays and ends the episode. The logged policy goes right half of the
    time:

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
    >>> found = evaluate(log, gamma=0.9, policy=lambda states: np.ones(len(states), dtype=int))  # always right
    >>> round(found.value, 3), round(0.9**4, 3)
    (0.656, 0.656)
    """
    question = Question(
        gammas=(gamma,),
        policies=(policy,),
        starts=(start,),
        features=features,
        estimators=names_of(estimators),
        probabilities=probabilities,
        level=level,
        cost=cost,
        compare=parameters.flag("compare", compare) or parameters.flag("all", all),
        returns=None if returns is None else tuple(returns),  # type: ignore[arg-type]
        reward_range=None if rewards is None else tuple(rewards),  # type: ignore[arg-type]
    )
    if cluster is not None:
        files = import_module("tlstd.cluster.evaluate")  # it builds on this module
        found: Report = files.evaluate_files(log, question=question, client=cluster, report=report)
        return found
    table = log if isinstance(log, Log) else Log.from_frame(log)
    return answers(question, table, report)[0]


def answers(
    question: Question, log: Log, report: Told | None = None, left_out: LeftOut | None = None
) -> tuple[Report, ...]:
    """A report for every combination of policy, discount, start, rewards and segment; states are encoded once."""
    if not len(log):
        raise InvalidInputError("the log has no steps: there is nothing to evaluate")
    asked = list(product(question.policies, question.gammas, question.starts, question.rewards, question.segments))
    shared = LocalFits()
    found = []
    for i, (policy, gamma, start, rewards, segment) in enumerate(asked):

        def told(text: str, share: float, i: int = i) -> None:
            if report is not None:
                report(text, (i + share) / len(asked))

        some = with_rewards(log, rewards)
        if segment is not None:
            some, own = some.select(np.asarray(segment)), LocalFits()
        else:
            own = shared
        with one_thread():  # products are with few columns at a time
            case = case_of(question, some, policy, gamma, start, told)
            case.fits = own
            found.append(answered(case, left_out))
    return tuple(found)


def case_of(
    question: Question,
    log: Log,
    policy: Any,
    gamma: float,
    start: Start | None,
    report: Told,
    sample: Log | None = None,
) -> Case:
    """What is asked, checked against the log; ``sample`` is what is here of one whose observations are elsewhere."""
    if gamma == 0.0 and not log.has_episodes:
        log = log.as_decisions()
    if gamma == 1.0 and not log.terminated.any():
        raise InvalidParameterError("gamma is 1, but no episode of the log terminates: use gamma < 1")
    notes, doubt = list(log.notes), doubt_about_cost(log)
    if question.cost:
        notes.append("The rewards are costs, as told: smaller is better.")
    elif doubt:
        notes.append(f"Is less better? T{doubt[1:]}.")
    if isinstance(policy, str) and policy == "logged":
        policy = None
    elif policy is None and log.policy is not None:
        notes.append("The target policy is the one in the log's columns (the logged policy: 'logged').")
        policy = log.policy
    target = None if policy is None else as_target(policy, log)
    limits = given_limits(question.returns, question.reward_range, gamma, bool(log.terminated.any()))
    sets = start_sets(log, start, target, sample)
    if start is None and len(sets) > 1:
        notes.append("The log has no ends: the value is the mean over all its states, and that of the first.")
    if not isinstance(question.features, str) and log.states.shape[1] and not log.discrete:
        beyond = clipped_note(question.features, log.states, log.columns)
        notes += [beyond] if beyond else []
    name = policy_name(policy, log)
    return Case(question, log, gamma, target, sets, limits, report, name, sample=sample, notes=notes)


def answered(case: Case, left_out: LeftOut | None = None) -> Report:
    """The report of a case, with checks and what the page shows."""
    climb(case)
    asked = case.question.wants
    if asked("LSTD") or asked("t-LSTD") or asked("TD"):
        import_module("tlstd.evaluation.compare").add_compared(case)
    if case.question.estimators is not None:
        case.rows = [row for row in case.rows if asked(row.name.removesuffix(" with ratios"))]
    if not case.rows:
        raise InvalidInputError(
            "none of the rows asked for can be had from this log and policy: leave estimators out to see which can"
            + "; fitted trees only stand beside another row" * asked("fitted trees")
        )
    if asked("fitted trees"):
        import_module("tlstd.evaluation.fitted_row").add_fitted_trees(case)
    case.report("how far to trust it", 0.97)
    n = case.log.n_dropped
    left = LeftOut(0, 0, n, n + case.log.n_episodes) if left_out is None else left_out
    trust = assess(Evidence(case, left))
    case.report("done", 1.0)
    return Report.of(case, trust, views(case), left)
