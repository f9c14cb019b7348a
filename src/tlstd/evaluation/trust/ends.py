"""Whether ends look like time limits, or cut-offs like ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import deviation, power_of_two
from tlstd.evaluation.selection import Setting
from tlstd.evaluation.steps import Rows, steps_of
from tlstd.evaluation.systems import WHOLE, StateSystem
from tlstd.evaluation.trust.evidence import MEDIUM, SMALL, Evidence, thinned
from tlstd.evaluation.trust.neighbours import MOST_QUERIES, Neighbours
from tlstd.evaluation.trust.verdict import Check, graded
from tlstd.krylov.arnoldi import Arnoldi
from tlstd.logs.log import Log

COMPARED = 20
"""Similar states, of other episodes, that the last state of an episode is compared with."""
CUT_SHORT = 0.5
"""Share of similar states that go on, from which an end looks like a time limit."""
PREDICTED, LIFT = 0.25, 4.0
"""Share of similar states that are last ones too, and how many times it is that among all states, from which a cut
looks like an end."""


# --- ends -----------------------------------------------------------------------------------------------------------


def ends(evidence: Evidence) -> Check:
    """Whether ends look like time limits, or cut-offs like ends, and what the other reading would change."""
    log = evidence.sample
    limits, cuts = _limits(log), _cuts(log)
    n_limits, n_cuts = int(limits.sum()), int(cuts.sum())
    going_on, predicted, lift = float("nan"), float("nan"), float("nan")
    if n_limits or n_cuts:
        going_on, predicted, lift = _look_around(evidence, limits, cuts)
    suspects = [
        (limits, going_on > CUT_SHORT, "ended", "cut off"),
        (cuts, predicted > PREDICTED and lift > LIFT, "cut off", "ended"),
    ]
    measured, sentences, states, data = 0.0, [], ["green"], {}
    for which, suspicious, now, instead in suspects:
        if not suspicious:
            continue
        moved, effect, everywhere = _other_reading(evidence, _changed(log, which, instead))
        certain = moved > max(evidence.half_width, 0.5 * SMALL * evidence.spread) or everywhere > MEDIUM
        states.append(graded(True, certain))
        measured = max(measured, effect)
        sentences.append(_sentence(evidence, int(which.sum()), now, instead, effect))
        data[f"taken_for_{now.replace(' ', '_')}"] = {"episodes": int(which.sum()), "moves_the_value_by": moved}
    if not sentences and n_limits and n_limits == int(log.terminated.sum()) and not going_on < CUT_SHORT:
        states.append("amber")
        sentences.append(
            f"All episodes that ended have exactly {_longest(log):,} steps, the most there are. If that is a time "
            "limit, say time_limit=, and they are cut off instead"
        )
    state = "red" if "red" in states else "amber" if "amber" in states else "green"
    calm = "The states in which episodes end are unlike those in which they go on, as they should be"
    if not n_limits and not n_cuts:
        calm = "No episode is said to have ended at the longest length, or was cut off before it"
    return Check(
        "ends",
        "Ends of episodes",
        state,
        measured,
        "change of values if doubtful ends are read the other way, in standard deviations of returns",
        "ends look like a time limit, or cut-offs like ends",
        "and the answer would change by 2 standard errors and 0.1 standard deviations, or all values by 0.5",
        "An end is a matter of the state: where it is one, episodes that come to similar states end soon too. A time "
        "limit strikes anywhere.",
        ". ".join(sentences or [calm]) + ".",
        {**data, "similar_states_go_on": going_on, "similar_states_end": predicted, "over_all_states": lift},
    )


def _other_reading(evidence: Evidence, changed: Log) -> tuple[float, float, float]:
    """What another reading of the ends moves: the answer, that in standard deviations, and values of all states."""
    values, answers = [], []
    for log in (evidence.sample, changed):
        found, starts = _values(evidence, log)
        values.append(found)
        answers.append(float(found[starts].mean()) if starts.size else float(found.mean()))
    moved = abs(answers[1] - answers[0])
    spread = max(evidence.spread, deviation(values[1]))
    if not spread > 0.0:
        return moved, 0.0, 0.0
    unit = power_of_two(*values)
    everywhere = unit * float(np.sqrt(np.mean(((values[1] - values[0]) / unit) ** 2))) / spread
    return moved, max(moved / spread, everywhere), everywhere


def _values(evidence: Evidence, log: Log) -> tuple[FloatArray, IntArray]:
    """Values of all logged states under the logged policy, and the rows of first states."""
    steps = steps_of(log, evidence.case.gamma)
    rows = Rows.of(evidence.case.cells, steps.states.reshape(len(steps.states), -1).astype(np.float64))
    chosen = evidence.case.model.selection.whole if evidence.on_policy else Setting(0.8, 20)
    system, lambda_ = StateSystem(steps, rows), [chosen.lambda_]
    path = Arnoldi(lambda V, columns: system.matvec(V, [WHOLE], lambda_), system.b([WHOLE], lambda_, [0]))
    path.extend(chosen.dimension)
    return rows.times(path.solutions(chosen.dimension))[steps.row_of, 0], log.start_rows


def _sentence(evidence: Evidence, n: int, now: str, instead: str, effect: float) -> str:
    if now == "ended":
        what = (
            f"{n:,} episodes are said to have ended after exactly {_longest(evidence.sample):,} steps, the most there "
        )
        what += "are, in states from which others go on: it looks like a time limit"
        remedy = "say time_limit= (or flag them as truncated)"
    else:
        what = f"{n:,} episodes are taken for cut off in states where others stop too: it looks like an end"
        remedy = 'flag them as terminated, or say ends="terminated"'
    return f"{what}. Taken for {instead}, values move by {effect:.2g} standard deviations: {remedy}"


def _longest(log: Log) -> int:
    return int(np.diff(log.episodes).max(initial=0))


def _limits(log: Log) -> NDArray[np.bool_]:
    """(E,): episodes that ended at exactly the longest length, if at least 3 and a twentieth of all did.

    None if as many were cut off there: the log tells its time limit from ends.
    """
    lengths, ended = np.diff(log.episodes), log.terminated[log.episodes[1:] - 1]
    longest = (lengths == lengths.max(initial=0)) & (lengths > 1)
    atom: NDArray[np.bool_] = longest & ended
    told = (longest & ~ended).sum() >= atom.sum()
    return atom if atom.sum() >= max(3, 0.05 * lengths.size) and not told else np.zeros(lengths.size, dtype=np.bool_)


def _cuts(log: Log) -> NDArray[np.bool_]:
    """(E,): episodes that were cut off before the longest length, if at least 3 and a twentieth of all were."""
    lengths, ended = np.diff(log.episodes), log.terminated[log.episodes[1:] - 1]
    shorter: NDArray[np.bool_] = (lengths < lengths.max(initial=0)) & ~ended
    return shorter if shorter.sum() >= max(3, 0.05 * lengths.size) else np.zeros(lengths.size, dtype=np.bool_)


def _look_around(evidence: Evidence, limits: NDArray[np.bool_], cuts: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Of the states like those where limits ended, the share that go on; of those like cuts, the share that stop, and
    how many times that of all states it is."""
    log = evidence.sample
    lengths = np.diff(log.episodes)
    episode = np.repeat(np.arange(lengths.size), lengths)
    remaining = np.repeat(log.episodes[1:] - 1, lengths) - np.arange(len(log))
    last = log.episodes[1:] - 1
    similar = _Similar(log, episode)
    going_on = predicted = lift = float("nan")
    if limits.any():
        around = similar(last[limits])
        going_on = _share(remaining[around] > 0.1 * lengths.max(), around)
    if cuts.any():
        soon = remaining <= 0.05 * lengths.mean()
        around = similar(last[cuts])
        predicted = _share(soon[around], around)
        lift = predicted / max(float(soon.mean()), 1e-12)
    return going_on, predicted, lift


def _share(yes: NDArray[np.bool_], around: IntArray) -> float:
    known = around >= 0
    return float(yes[known].mean()) if known.any() else float("nan")


class _Similar:
    """The rows of other episodes whose observations are most similar; -1 where there are fewer than ``COMPARED``."""

    def __init__(self, log: Log, episode: IntArray) -> None:
        self.log, self.episode = log, episode
        self.near = None if log.discrete else Neighbours(log.states, episode)
        self.order: Any = np.argsort(log.observations, kind="stable") if log.discrete else None

    def __call__(self, rows: IntArray) -> IntArray:
        rows = rows[thinned(rows.size, MOST_QUERIES // 10)]
        if self.near is not None:
            k = min(4 * COMPARED, len(self.near.rows))
            found = self.near.nearest(self.log.states[rows], k)
        else:
            found = np.stack([self._same(int(row)) for row in rows])
        own = (self.episode[found] == self.episode[rows][:, None]) | (found < 0)
        places = np.argsort(own, axis=1, kind="stable")[:, :COMPARED]
        chosen: IntArray = np.where(np.take_along_axis(own, places, 1), -1, np.take_along_axis(found, places, 1))
        return chosen

    def _same(self, row: int) -> IntArray:
        """Rows with the same discrete observation, at most four times as many as are compared."""
        values = self.log.observations[self.order]
        low, high = np.searchsorted(values, self.log.observations[row], side="left"), 0
        high = int(np.searchsorted(values, self.log.observations[row], side="right"))
        rows = self.order[low + thinned(high - int(low), 4 * COMPARED)]
        return np.concatenate([rows, np.full(4 * COMPARED - rows.size, -1)])


def _changed(log: Log, which: NDArray[np.bool_], instead: str) -> Log:
    """The log with these episodes' ends read the other way."""
    rows = log.episodes[1:][which] - 1
    terminated, truncated = log.terminated.copy(), log.truncated.copy()
    terminated[rows], truncated[rows] = instead == "ended", instead == "cut off"
    return replace(log, terminated=terminated, truncated=truncated)
