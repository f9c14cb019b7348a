"""Logs that are larger than memory, in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tlstd.core import parameters
from tlstd.errors import InvalidInputError
from tlstd.logs.checking import check
from tlstd.logs.columns import Names, Preset
from tlstd.logs.log import Log
from tlstd.logs.readers import Columns, Places
from tlstd.logs.reading import Source, joined
from tlstd.logs.table import Checked, Ends

ROWS = 500_000
"""Rows of a piece unless told otherwise."""


def read_chunks(
    frame: Any,
    columns: Mapping[str, Names] | None = None,
    preset: Preset | None = None,
    *,
    rows: int = ROWS,
    discrete: bool | None = None,
    n_observations: int | None = None,
    time_limit: int | None = None,
    ends: Ends | None = None,
    storage: Mapping[str, str] | None = None,
) -> Iterator[Log]:
    """Read a log in pieces of about ``rows`` steps, each of them a :class:`Log`.

    The steps of the pieces are together those of :meth:`Log.from_frame`, to the bit: an episode may go on from piece
    to piece (``continues``, ``goes_on``), and so do the traces of their transitions. ``notes`` of a piece are those
    that no piece before it had. Rows have to be in order, and discrete observations need ``n_observations``; the usual
    distance of steps and the first step of episodes are those of the first piece that has two of them.

    Parameters
    ----------
    frame, columns, preset, discrete, n_observations, time_limit, ends, storage
        As in :meth:`Log.from_frame`.
    rows : int
        Of a piece, about. Memory is that of some pieces.

    Example
    -------
    >>> table = {"obs": np.arange(10.0), "reward": np.ones(10), "terminated": [0, 0, 0, 0, 0, 0, 1, 0, 0, 1]}
    >>> for piece in read_chunks(table, rows=4):
    ...     print(len(piece), piece.continues, piece.goes_on)
    3 False True
    4 True False
    2 False True
    1 True False
    """
    rows = parameters.integer("rows", rows)
    source = Source(frame, columns, preset, storage)
    return _pieces(source, rows, discrete=discrete, n_observations=n_observations, time_limit=time_limit, ends=ends)


def _pieces(source: Source, rows: int, **options: Any) -> Iterator[Log]:
    places = Places()
    kept: Columns | None = None
    row = 0  # of the first row of what is kept
    state: dict[str, Any] = {"may_sort": False}
    said: set[str] = set()
    names = _Names()
    role = {name: role for role, group in source.mapped.columns.items() for name in group}
    notes = source.mapped.notes

    def piece(buffer: Columns, more: bool) -> tuple[Log, Any]:
        table = source.made([buffer], places, first_row=row, more=more, notes=notes, **options, **state)
        checked = check(table)
        log = Log._of(checked, source=source.name, roles=source.mapped.columns)
        if log.n_observations is not None and options["n_observations"] is None:
            raise InvalidInputError(
                "the observations are taken for discrete states, and how many there are is not known before the end of "
                "the log: say n_observations, or discrete=False"
            )
        return log, checked

    for chunk in source.chunks(rows, places):
        buffer = (
            chunk if kept is None else {name: joined([kept[name], chunk[name]], name, role[name]) for name in chunk}
        )
        log, checked = piece(buffer, more=True)
        log, last = log[:-1], log[-1:]
        origin = int(checked.rows[-1])
        options["discrete"] = last.discrete
        state.update(
            continues=last.continues,
            begins=bool(last.begins[0]),
            before=(len(log) - int(log.episodes[-2]) if last.continues and len(log) else 0)
            + (state.get("before", 0) if last.continues and log.n_episodes <= 1 else 0),
            usual=checked.usual,
            least=checked.least,
        )
        if "episode" not in source.mapped.columns:
            state["first_id"] = last.ids[0]
        kept = {name: np.asarray(column)[origin:] for name, column in buffer.items()}
        row += origin
        if len(log):
            names.check(log, checked, places, row)
            yield _new(log, said)
        notes = ()
    if kept is None:
        raise InvalidInputError(f"{source.name} has no rows: there is nothing to read")
    log, checked = piece(kept, more=False)
    names.check(log, checked, places, row)
    yield _new(log, said)


def _new(log: Log, said: set[str]) -> Log:
    """The piece, with what has not been said before."""
    notes = tuple(note for note in log.notes if note not in said)
    said.update(notes)
    return replace(log, notes=notes)


class _Names:
    """Refuses an episode that comes again after others: its rows would have to be sorted, or compared."""

    def __init__(self) -> None:
        self._ended: dict[Any, bool] = {}
        self._steps: dict[Any, tuple[Any, Any]] = {}
        self._latest: Any = None

    def check(self, log: Log, checked: Checked, places: Places, row: int) -> None:
        """Look at the episodes of the next piece."""
        one_file = len(places.starts) == 1  # names may be used again in another file
        for i, name in enumerate(log.ids):
            if one_file and name != self._latest and self._ended.get(name) is False:
                raise InvalidInputError(
                    f"episode {name!r} goes on before {places([row])}, after rows of others: a log that is read in "
                    "chunks is not sorted; sort it by episode and step, or read it whole"
                )
            if checked.steps is not None and checked.named:
                self._check_steps(name, checked.steps[log.episodes[i]], checked.steps[log.episodes[i + 1] - 1])
            self._ended[name], self._latest = bool(checked.flagged[i]), name

    def _check_steps(self, name: Any, low: Any, high: Any) -> None:
        before = self._steps.get(name, (low, low))
        if name in self._steps and low <= before[1] and high >= before[0]:
            raise InvalidInputError(
                f"episode {name!r} comes again with steps {low} to {high}: a log that is read in chunks is not "
                "searched for repeated rows; read it whole, or, if names of episodes are used anew, leave the names "
                "out (columns={'episode': None})"
            )
        self._steps[name] = min(before[0], low), max(before[1], high)
