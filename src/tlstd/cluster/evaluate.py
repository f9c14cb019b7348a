"""From a log in many files to an answer, on the workers of a Dask cluster or in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from tlstd.cluster.checkpoint import Checkpoint
from tlstd.cluster.files import Overview, prepare
from tlstd.cluster.interval import AskedMean, Guess, Settled, sharded_interval
from tlstd.cluster.log_shard import LogFile
from tlstd.cluster.operator import ShardedOperator
from tlstd.cluster.progress import Pace, Report
from tlstd.cluster.question import Question
from tlstd.cluster.shard_pool import InProcess, OnDask, ShardPool
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.core.parameters import OnError
from tlstd.errors import InvalidInputError
from tlstd.estimators.fixed_weights import FixedWeights
from tlstd.evaluation.evaluate import answered, with_middle
from tlstd.evaluation.evaluation import Evaluation, Row
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.log_intervals import influence_on
from tlstd.evaluation.policies import Target
from tlstd.evaluation.task import SAMPLE, SAMPLED, EvaluationTask, Features, Start
from tlstd.evaluation.value_function import ValueFunction
from tlstd.krylov.arnoldi import Arnoldi
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.logs.addresses import shown
from tlstd.logs.columns import Preset
from tlstd.logs.joining import concatenate
from tlstd.logs.log import Log
from tlstd.logs.messages import count_of
from tlstd.logs.readers import named_files

WHICH = {"start states": "first", "all states": "all", "first state": "first"}
"""Sets of start states that are in the log, and which of its states they are."""
FEWEST_EPISODES = 20
"""In a sample; where fewer would be in it, the sample is of the first steps."""


def evaluate_files(
    source: Any,
    *,
    gamma: float,
    client: Any = None,
    features: Features = "auto",
    policy: Any = None,
    start: Start | None = None,
    estimators: Iterable[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    preset: Preset | None = None,
    options: Mapping[str, Any] | None = None,
    storage: Mapping[str, str] | None = None,
    on_error: OnError = "stop",
    checkpoint: Any = None,
    spill: Any = None,
    level: float = 0.95,
    cost: bool = False,
    compare: bool = False,
    report: Report | None = None,
) -> Evaluation:
    """The value of a policy from a log in files, each of which is read, encoded and kept by one worker.

    Only vectors over the features seen travel. λ, dimension and features are chosen as by :func:`tlstd.evaluate`, on
    all steps or, beyond a million, on a sample of whole episodes, by a stable hash of their names. The weights are
    those of all steps: the same bits for any number of workers.

    Parameters
    ----------
    source : file, folder, pattern, or list of these
        Every file is a shard. An episode may go on in the next file.
    gamma, features, policy, start, estimators : as in :func:`tlstd.evaluate`
        A policy is a function; it goes to the workers. Rows but the first are those of a log of up to a million steps.
    client : distributed.Client, optional
        Whose workers do it. Left out, this process.
    columns, preset : as in :meth:`tlstd.Log.from_frame`
    options : dict, optional
        Further arguments of :meth:`tlstd.Log.from_frame`.
    storage : dict, optional
        Options of polars for addresses, such as keys; they go to the workers, and nowhere else.
    on_error : "stop" or "skip"
        What to do with files that cannot be used.
    checkpoint : folder, optional
        Where rounds are kept: the same call goes on where it was stopped. A folder with rounds of another question is
        refused: other arguments, other contents of the files, or another file that defines the policy.
    spill : folder, optional
        Of the workers' machines, on a local disk: what they have read is kept there and not in memory.
    level : float in (0, 1)
        Of the interval.
    cost, compare : as in :func:`tlstd.evaluate`
    report : function of a text and a share, optional
    """
    say: Report = (lambda text, share: None) if report is None else report
    secrets = None if storage is None else dict(storage)
    folder = None if spill is None else str(spill)
    names, said = named_files(source, storage)
    asked = Question(
        files=tuple(shown(name) for name in names),
        gamma=parameters.real("gamma", gamma, low=0.0, high=1.0),
        features=features,
        policy=policy,
        start=start,
        estimators=estimators if estimators is None or isinstance(estimators, str) else tuple(estimators),
        columns=columns,
        preset=preset,
        options=dict(options or {}),
        on_error=on_error,
        level=level,
        cost=cost,
        compare=compare,
    )
    rounds = Checkpoint(checkpoint, asked.described())
    files = [LogFile(name, asked.columns, asked.preset, dict(asked.options), secrets, folder) for name in names]
    say(f"reading {len(files):,} files", 0.0)
    pool = _pool(client, files, say)
    overview = prepare(pool, files, asked.on_error, gamma=asked.gamma)
    say("choosing features, λ and dimension", 0.3)
    answer, log = _on_sample(pool, overview, asked, say)
    fitted = answer.fitted
    assert fitted is not None
    began = perf_counter()
    solved = _solved(pool, fitted, rounds, say, overview)
    first, others = answer.rows[0], answer.rows[1:]
    if len(log) < overview.n_steps:
        found = _interval(solved, fitted, rounds, say, overview, asked.level)
        row = with_middle(Row(first.name, solved.means, perf_counter() - began, first.note), found.interval)
        others = ()
        answer = replace(answer, notes=(*answer.notes, *([found.note] if found.note else [])))
        if answer.silence is not None:
            said = (*said, "Warning: the interval has no room for what actions are worth that the log does not have.")
            answer = replace(answer, silence=None, influenced=None)
    else:
        values = solved.means | dict(list(first.values.items())[:1])
        row = replace(first, values=values, seconds=perf_counter() - began)
    notes = (*said, *overview.notes, *(note for note in answer.notes if note not in log.notes))
    if rounds.n_known:
        notes += (f"{count_of(rounds.n_known, 'round')} of before, kept in {rounds.folder}, taken as they were.",)
    say("done", 1.0)
    source = f"{len(files):,} files"
    made = {"rows": (row, *others), "model": solved.values, "notes": notes, "source": source}
    return replace(answer, left_out=overview.left_out, n_steps=overview.n_steps, **made)


def _pool(client: Any, files: Sequence[LogFile], say: Report) -> ShardPool:
    pace = Pace(say, f"read {{}} of {len(files):,} files", len(files), (0.0, 0.3))
    if client is not None:
        return OnDask(client, files, pace)
    shards = []
    for i, file in enumerate(files):
        shards.append(file())
        pace(i + 1)
    return InProcess(shards)


def _on_sample(pool: ShardPool, overview: Overview, asked: Question, say: Report) -> tuple[Evaluation, Log]:
    """The answer of one machine for the log, or for a sample of its episodes, and that log."""
    share = 1.0 if overview.n_steps <= SAMPLED else SAMPLE / overview.n_steps
    if asked.policy is not None and not callable(asked.policy):
        raise InvalidInputError("the policy is an array: on several files pass a function from observations")
    few = share < 1.0 and share * overview.n_episodes < FEWEST_EPISODES
    parts: list[Log] = pool.each("first_steps", SAMPLE) if few else pool.each("sample", share)
    log = concatenate([part for part in parts if len(part)])
    rows = asked.estimators if share == 1.0 else ("KrylovLSTD", "LSTDQ")

    def told(text: str, done: float) -> None:
        say(text, 0.3 + 0.1 * done)

    what = asked.gamma, asked.features, asked.policy, asked.start
    run = EvaluationTask(log, *what, rows, "logged", False, asked.level, told, pool.map, asked.cost, asked.compare)
    answer = answered(run, with_interval=share == 1.0)
    if share < 1.0:
        said = (
            f"{overview.n_steps:,} steps: parameters were chosen on {'the first ' * few}{len(log):,} of them, "
            f"{log.n_episodes:,} episode{'s' * (log.n_episodes != 1)}, and trust is about these. Value and interval "
            "are of all steps."
        )
        answer = replace(answer, notes=(*answer.notes, said))
    return answer, log


class _Solved(NamedTuple):
    """What all shards say."""

    operator: ShardedOperator
    weights: FloatArray
    values: ValueFunction
    asked: dict[str, AskedMean]
    means: dict[str, float]


def _solved(pool: ShardPool, fitted: Fitted, rounds: Checkpoint, say: Report, overview: Overview) -> _Solved:
    """The values by all shards, and their means over the sets of start states."""
    old = fitted.values
    n = old.model.n_features
    fresh = KrylovLSTD(n, lambda_=fitted.lambda_, dimension=fitted.dimension)
    options: dict[str, Any] = {"kind": old.kind, "n_actions": old.n_actions, "offsets": old.offsets}
    template = ValueFunction(fresh, old.features, old.gamma, **options)
    say("encoding", 0.4)
    sets = {name: WHICH[name] for name in fitted.starts if name in WHICH}
    own = (template, _sent(fitted), fitted.rhos is not None, fitted.lambda_, sets)
    pool.change("encoded", [own] * len(pool), Pace(say, f"encoded {{}} of {len(pool):,} files", len(pool), (0.4, 0.5)))
    if rounds.folder is not None:
        chosen = {"lambda": fitted.lambda_, "dimension": fitted.dimension, "kind": old.kind}
        rounds.add({"chosen parameters": chosen, "contents of the files": pool.each("digest")})
    operator = ShardedOperator(pool)
    pace = Pace(say, f"round {{}} of {fitted.dimension:,}", fitted.dimension, (0.5, 0.75), overview.n_steps)
    pace(done := 0)

    def product(V: FloatArray) -> FloatArray:
        nonlocal done
        done += 1
        was_known = rounds.n_known
        found = rounds.remember(f"round-{done:04d}", operator.matvec, V)
        if rounds.n_known > was_known:
            pace.known(done)
        else:
            pace(done)
        return found

    paths = Arnoldi(lambda V, columns: product(V), operator.b())
    paths.extend(fitted.dimension)
    weights = paths.solutions(fitted.dimension)
    model = FixedWeights.of(n, fitted.lambda_, operator.ids, weights, sum(operator.counts))
    values = ValueFunction(model, old.features, old.gamma, **options)
    asked = {name: _asked(operator, fitted, name) for name in fitted.starts}
    means = {name: float(each.x @ weights[:, 0]) + each.offset for name, each in asked.items()}
    return _Solved(operator, weights, values, asked, means)


def _asked(operator: ShardedOperator, fitted: Fitted, name: str) -> AskedMean:
    """The mean over a set of start states: of the log, by all shards; or of states that were given."""
    n = operator.n
    if name in WHICH:
        sums = operator.pool.total("asked_sum", name)[:, 0]
        count = max(1.0, float(sums[n]))
        return AskedMean(name, sums[:n] / count, float(sums[n + 1]) / count, int(sums[n]))
    X, offsets = fitted.encode(fitted.starts[name])
    mean = np.asarray(X.mean(axis=0)).ravel()[operator.ids]
    return AskedMean(None, mean, float(offsets.mean()), len(offsets))


def _interval(
    solved: _Solved, fitted: Fitted, rounds: Checkpoint, say: Report, overview: Overview, level: float
) -> Settled:
    """The interval of the first set of start states, from all shards."""
    say("interval", 0.75)
    found = influence_on(fitted)
    error = found.standard_error * np.sqrt(found.groups.n_groups / max(1, overview.n_episodes))
    assert isinstance(fitted.values.model, KrylovLSTD)
    guess = Guess(fitted.values.model.seen_ids, found.adjoint, float(error))
    pace = Pace(say, "interval: round {}", 30, (0.75, 1.0), overview.n_steps, exactly=False)
    done = 0

    def remember(name: str, function: Callable[..., FloatArray], *arguments: FloatArray) -> FloatArray:
        nonlocal done
        kept = rounds.remember(name, function, *arguments)
        done += 1
        pace(done)
        return kept

    asked = next(iter(solved.asked.values()))
    return sharded_interval(solved.operator, solved.weights, asked, guess, level, remember)


def _sent(fitted: Fitted) -> Target | None:
    """The policy as workers get it: a function, or None for columns of their own file."""
    target = fitted.target
    if target is None or target.function is not None:
        return target
    if fitted.rhos is None:
        raise InvalidInputError(
            "the policy is in columns of the log, without probabilities of the policy that acted: on several files "
            "pass a function from observations"
        )
    return None
