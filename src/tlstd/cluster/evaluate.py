"""From a log in many files to an answer, on the workers of a Dask cluster or in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count, product
from typing import Any

from tlstd.cluster.checkpoint import Checkpoint
from tlstd.cluster.files import Overview, prepare
from tlstd.cluster.log_shard import LogFile
from tlstd.cluster.pooled import PooledFits
from tlstd.cluster.progress import Pace
from tlstd.cluster.progress import Report as Told
from tlstd.cluster.shard_pool import InProcess, OnDask, ShardPool
from tlstd.core.parameters import OnError
from tlstd.core.threads import one_thread
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation.evaluate import answered, answers, case_of
from tlstd.evaluation.question import Question
from tlstd.evaluation.report import Report
from tlstd.logs.addresses import shown
from tlstd.logs.columns import Preset
from tlstd.logs.joining import concatenate
from tlstd.logs.log import Log
from tlstd.logs.messages import count_of
from tlstd.logs.readers import named_files

GATHERED = 1_000_000
"""Steps up to which all of the log comes to this process: its answer is then that of one process, to the bit."""
SAMPLE = 100_000
"""Steps of whole episodes, about, on which features, λ and dimensions are chosen beyond."""
FEWEST_EPISODES = 20
"""In a sample; where fewer would be in it, the sample is of the first steps."""


def evaluate_files(source: Any, *, question: Question, **options: Any) -> Report:
    """The first of the :func:`answers_of_files`: that of a question with one policy, discount and start."""
    return answers_of_files(source, question=question, **options)[0]


def answers_of_files(
    source: Any,
    *,
    question: Question,
    client: Any = None,
    columns: Mapping[str, Any] | None = None,
    preset: Preset | None = None,
    options: Mapping[str, Any] | None = None,
    storage: Mapping[str, str] | None = None,
    on_error: OnError = "stop",
    checkpoint: Any = None,
    spill: Any = None,
    report: Told | None = None,
) -> tuple[Report, ...]:
    """A report for every policy, discount and start of a question about a log in files, which are read once.

    Each file is read, encoded and kept by one worker. A log of up to a million steps comes to this process, and its
    answers are those of :func:`tlstd.evaluate`. Of a larger one, features, λ and dimensions are chosen on a sample of
    whole episodes, by a stable hash of their names. Returns, weights, values and intervals are of all steps: the same
    bits for any number of workers.

    Parameters
    ----------
    source : file, folder, pattern, or list of these
        Every file is a part. An episode may go on in the next file.
    question : Question
        Policies are functions, or columns of the log.
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
    report : function of a text and a share, optional
        Progress callback: (message, fraction).
    """
    say: Told = (lambda text, share: None) if report is None else report
    _check(question)
    secrets, folder = None if storage is None else dict(storage), None if spill is None else str(spill)
    names, said = named_files(source, storage)
    asked = question.described() | {
        "files": [shown(name) for name in names],
        "columns": None if columns is None else {str(key): str(of) for key, of in columns.items()},
        "preset": preset,
        "options": {str(key): str(of) for key, of in (options or {}).items()},
        "on_error": on_error,
    }
    rounds = Checkpoint(checkpoint, asked)
    files = [LogFile(name, columns, preset, dict(options or {}), secrets, folder) for name in names]
    say(f"reading {len(files):,} files", 0.0)
    pool = _pool(client, files, say)
    overview = prepare(pool, files, on_error, gamma=0.0 if set(question.gammas) == {0.0} else None)
    gathered = overview.n_steps <= GATHERED
    found = _gathered(pool, overview, question, say) if gathered else _pooled(pool, overview, question, rounds, say)
    notes = (*said, *overview.notes)
    kept: tuple[str, ...] = ()
    if rounds.n_known:
        kept = (f"{count_of(rounds.n_known, 'round')} of before, kept in {rounds.folder}, taken as they were.",)
    say("done", 1.0)
    return tuple(
        replace(
            each,
            notes=(*notes, *(note for note in each.notes if note not in each.log.notes), *kept),
            source=f"{len(files):,} files",
            n_steps=overview.n_steps,
        )
        for each in found
    )


def _check(question: Question) -> None:
    """What workers can be asked."""
    for policy in question.policies:
        if policy is not None and not callable(policy) and not isinstance(policy, str):
            raise InvalidInputError(
                "the policy is an array, whose rows cannot be told apart by file: pass a function from observations, "
                "or write its probabilities into columns of the files (columns={'policy': ...}, --policy column:NAME)"
            )
    if any(each is not None for each in (*question.rewards, *question.segments)):
        raise InvalidInputError(
            "rewards and segments of a question are arrays over the whole log, which no file holds: name another "
            "column (columns={'reward': ...}), or pass a Log to tlstd.evaluate"
        )
    if question.probabilities != "logged":
        raise InvalidParameterError(
            f"probabilities={question.probabilities!r} with a cluster is for one process, which holds the whole log: "
            "leave it out, or leave out cluster"
        )


def _pool(client: Any, files: Sequence[LogFile], say: Told) -> ShardPool:
    pace = Pace(say, f"read {{}} of {len(files):,} files", len(files), (0.0, 0.3))
    if client is not None:
        return OnDask(client, files, pace)
    shards = []
    for i, file in enumerate(files):
        shards.append(file())
        pace(i + 1)
    return InProcess(shards)


def _later(say: Told) -> Told:
    return lambda text, share: say(text, 0.3 + 0.7 * share)


def _gathered(pool: ShardPool, overview: Overview, question: Question, say: Told) -> tuple[Report, ...]:
    """The answers of one process, to which all of the log has come."""
    log = concatenate([part for part in pool.each("sample", 1.0) if len(part)])
    return answers(question, log, _later(say), overview.left_out)


def _pooled(
    pool: ShardPool, overview: Overview, question: Question, rounds: Checkpoint, say: Told
) -> tuple[Report, ...]:
    """The answers from parts that stay where they are."""
    share = SAMPLE / overview.n_steps
    few = share * overview.n_episodes < FEWEST_EPISODES
    parts: list[Log] = pool.each("first_steps", SAMPLE) if few else pool.each("sample", share)
    sample = concatenate([part for part in parts if len(part)])
    every: list[Log] = pool.each("thin")
    log = concatenate(every)
    table = log.policy is not None and log.policy.ndim == 2 and None in question.policies
    if table and any(each.goes_on for each in every[:-1]):
        raise InvalidInputError(
            "an episode goes on in the next file, and the policy is in columns: its probabilities after the last step "
            "of a file are in the next one. Cut the files where episodes end, or pass a function"
        )
    asked = list(product(question.policies, question.gammas, question.starts))
    if len(asked) > 1 and 0.0 in question.gammas and not log.has_episodes:
        raise InvalidParameterError(
            "gamma=0 beside other questions: without it the rows of this log are one stream, and with it each is an "
            "episode: ask for gamma=0 alone"
        )
    pool.change("as_part", [(i,) for i in range(len(pool))])
    said = (
        f"{overview.n_steps:,} steps: features, λ and dimensions were chosen on {'the first ' * few}{len(sample):,} of "
        f"them, {sample.n_episodes:,} episode{'s' * (sample.n_episodes != 1)}. Value and interval are of all steps."
    )
    later, done, found = _later(say), count(1), []

    def tell() -> None:
        n = next(done)
        later(f"round {n:,}", min(0.9, 0.2 + n / (500 * len(asked))))

    for i, (policy, gamma, start) in enumerate(asked):
        if i:
            pool.change("anew", [()] * len(pool))
        with one_thread():
            case = case_of(question, log, policy, gamma, start, later, sample=sample)
            case.fits = PooledFits(pool, sample, overview.n_steps, rounds, tell, f"answer-{i + 1}-" if i else "")
            answer = answered(case, overview.left_out)
        found.append(replace(answer, notes=(*answer.notes, said)))
    return tuple(found)
