"""From a log in many files to an answer, on the workers of a Dask cluster or in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tlstd import parameters
from tlstd.cluster.checkpoint import Checkpoint
from tlstd.cluster.crews import Crew, InProcess, OnDask
from tlstd.cluster.files import Overview, mean_features, prepare
from tlstd.cluster.log_shard import LogFile
from tlstd.cluster.operator import ShardedOperator
from tlstd.errors import InvalidInputError
from tlstd.estimators.fixed_weights import FixedWeights
from tlstd.estimators.krylov_lstd import KrylovLSTD
from tlstd.evaluation.evaluate import evaluate
from tlstd.evaluation.evaluation import Evaluation, Row
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.policies import Target
from tlstd.evaluation.run import SAMPLE, SAMPLED
from tlstd.evaluation.value_function import ValueFunction
from tlstd.features.base import FeatureMap
from tlstd.logs.joining import concatenate
from tlstd.logs.log import Log
from tlstd.logs.readers import file_names
from tlstd.types import FloatArray

Report = Callable[[str, float], None]


def evaluate_files(
    source: Any,
    *,
    gamma: float,
    client: Any = None,
    features: FeatureMap | str = "auto",
    policy: Any = None,
    start: ArrayLike | str | None = None,
    estimators: Iterable[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    preset: str | None = None,
    options: Mapping[str, Any] | None = None,
    storage: Mapping[str, str] | None = None,
    on_error: str = "stop",
    checkpoint: Any = None,
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
        Where rounds are kept: the same call goes on where it was stopped.
    report : function of a text and a share, optional
    """
    say: Report = (lambda text, share: None) if report is None else report
    secrets = None if storage is None else dict(storage)
    files = [LogFile(name, columns, preset, dict(options or {}), secrets) for name in file_names(source, storage)]
    say(f"reading {len(files):,} files", 0.0)
    crew = _crew(client, files, say)
    overview = prepare(crew, files, on_error)
    say("choosing features, λ and dimension", 0.3)
    answer, log = _on_sample(crew, overview, gamma, features, policy, start, estimators)
    fitted = answer.fitted
    assert fitted is not None
    question = _question(files, fitted, gamma, overview)
    rounds = Checkpoint(checkpoint, question)
    began = perf_counter()
    values, means = _solved(crew, fitted, rounds, say)
    first, others = answer.rows[0], answer.rows[1:]
    seconds = perf_counter() - began
    if len(log) < overview.n_steps:  # the sample's interval is not that of all steps
        row, others = Row(first.name, means, seconds, first.note.partition("; debiased")[0]), ()
    else:
        row = replace(first, values=means | dict(list(first.values.items())[:1]), seconds=seconds)
    notes = (*overview.notes, *(note for note in answer.notes if note not in log.notes))
    say("done", 1.0)
    return replace(
        answer, rows=(row, *others), model=values, notes=notes, source=f"{len(files):,} files", fitted=fitted
    )


def _crew(client: Any, files: Sequence[LogFile], say: Report) -> Crew:
    if client is not None:
        return OnDask(
            client, files, lambda done: say(f"read {done:,} of {len(files):,} files", 0.3 * done / len(files))
        )
    shards = []
    for i, file in enumerate(files):
        shards.append(file())
        say(f"read {i + 1:,} of {len(files):,} files", 0.3 * (i + 1) / len(files))
    return InProcess(shards)


def _on_sample(
    crew: Crew,
    overview: Overview,
    gamma: float,
    features: FeatureMap | str,
    policy: Any,
    start: ArrayLike | str | None,
    estimators: Iterable[str] | None,
) -> tuple[Evaluation, Log]:
    """The answer of one machine for the log, or for a sample of its episodes, and that log."""
    share = 1.0 if overview.n_steps <= SAMPLED else SAMPLE / overview.n_steps
    if policy is not None and not callable(policy):
        raise InvalidInputError("the policy is an array: on several files pass a function from observations")
    pieces: list[Log] = [piece for piece in crew.each("sample", share) if len(piece)]
    if not pieces:
        raise InvalidInputError(
            f"none of {overview.n_episodes:,} episodes is in the sample on which parameters are chosen: give episodes "
            "names, or more of them"
        )
    log = concatenate(pieces)
    answer = evaluate(
        log,
        gamma=gamma,
        features=features,
        policy=policy,
        start=start,
        estimators=estimators if share == 1.0 else ("KrylovLSTD", "LSTDQ"),
    )
    if share < 1.0:
        said = (
            f"{overview.n_steps:,} steps: parameters were chosen on {len(log):,} of them, {log.n_episodes:,} episodes."
        )
        answer = replace(answer, notes=(*answer.notes, said))
    return answer, log


def _solved(crew: Crew, fitted: Fitted, rounds: Checkpoint, say: Report) -> tuple[ValueFunction, dict[str, float]]:
    """The values by all shards, and their means over the sets of start states."""
    old = fitted.values
    n = old.model.n_features
    fresh = KrylovLSTD(n, lambda_=fitted.lambda_, dimension=fitted.dimension)
    options: dict[str, Any] = {"kind": old.kind, "n_actions": old.n_actions, "offsets": old.offsets}
    template = ValueFunction(fresh, old.features, old.gamma, **options)
    starts = _start_sums(crew, template, fitted)
    say("encoding", 0.4)
    lambda_, with_ratios = fitted.lambda_, fitted.rhos is not None
    target = _sent(fitted)
    crew.change("encoded", [(template, target, with_ratios, lambda_)] * len(crew))
    operator = ShardedOperator(crew)
    done = 0

    def product(V: FloatArray) -> FloatArray:
        nonlocal done
        done += 1
        say(f"round {done:,} of {fitted.dimension:,}", 0.5 + 0.5 * done / (fitted.dimension + 1))
        return rounds.remember(f"round-{done:04d}", lambda: operator.matvec(V))

    ids, weights = operator.solve(fitted.dimension, product)
    model = FixedWeights.of(n, lambda_, ids, weights, sum(operator.counts))
    values = ValueFunction(model, old.features, old.gamma, **options)
    means = {}
    for name, set_ in fitted.starts.items():
        if name in starts:
            mean, offset = mean_features(starts[name], ids)
            means[name] = float(mean @ weights[:, 0]) + offset
        else:
            means[name] = float(np.mean(values.values_of(fitted.encode(set_))))
    return values, means


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


def _start_sums(crew: Crew, template: ValueFunction, fitted: Fitted) -> dict[str, list[Any]]:
    """Sums of the features of start states by shard, for each set of them that is in the log."""
    which = {"start states": "first", "all states": "all", "first state": "first"}
    return {
        name: crew.each("start_features", template, fitted.target, which[name])
        for name in fitted.starts
        if name in which
    }


def _question(files: Sequence[LogFile], fitted: Fitted, gamma: float, overview: Overview) -> dict[str, Any]:
    """What rounds depend on."""
    return {
        "files": [file.path for file in files],
        "steps": overview.n_steps,
        "episodes": overview.n_episodes,
        "gamma": parameters.real("gamma", gamma, low=0.0, high=1.0),
        "lambda": fitted.lambda_,
        "dimension": fitted.dimension,
        "features": repr(fitted.values.features),
        "kind": fitted.values.kind,
    }
