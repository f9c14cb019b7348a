"""What is in a saved model, and whether its rank fits: ``tlstd inspect`` (``docs/state.md``).

Pure functions of a model: :func:`examine` and :func:`examine_file` say what there is to say as an :class:`Inspection`,
:func:`render` shows it in a terminal.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlstd.container import Path, printable
from tlstd.diagnostics import effective_rank
from tlstd.errors import StateError
from tlstd.estimators.atd import ATD
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.handover import Handover
from tlstd.estimators.truncation import TruncatedEstimator
from tlstd.evaluation.value_function import ValueFunction
from tlstd.linalg.svd import inverse_factors
from tlstd.state import load
from tlstd.types import FloatArray

if TYPE_CHECKING:
    from rich.console import RenderableType

SCHEMA = 1
"""Version of what :meth:`Inspection.plain` returns: raised when a key changes its meaning or goes, not for new ones."""
TOLERATED = 2.0
"""How far above the cut-off the smallest kept singular value may lie before a larger rank is worth a try."""
SLACK = 1.1
"""Rank that is kept per singular value inverted when a smaller one is advised: truncation needs a little room."""
WORTHWHILE = 0.8
"""A smaller rank is advised if it is at most this part of the present one."""
SAMPLES_PER_RANK = 10
"""Samples per singular value before which a spectrum that is still filling up says nothing."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about the rank.

    ``verdict`` is "lower", "keep" or "undecided"; ``rank`` the one to use, None if undecided. No spectrum says "raise":
    whether more directions help or fit noise is decided by data (:func:`tlstd.evaluation.choose`).
    """

    verdict: str
    rank: int | None
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """A factored A: its spectrum and how well it is kept."""

    rank: int
    rcond: float
    singular_values: FloatArray
    effective_rank: int
    n_inverted: int
    """Singular values above ``rcond`` times the largest: those that the solution uses."""
    orthogonality_error: float
    n_buffered: int
    advice: Advice


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """What is known about a model; ``active`` and ``handed_over`` are None for all but a :class:`~tlstd.Handover`."""

    class_name: str
    parameters: Mapping[str, Any]
    n_updates: int
    n_features: int
    n_seen: int
    n_targets: int
    memory_bytes: int
    """Bytes in arrays as loaded: buffers have no room for more yet, and there are no caches."""
    active: str | None = None
    handed_over: int | None = None
    factors: Factors | None = None
    path: str | None = None
    file_bytes: int | None = None

    def plain(self) -> dict[str, Any]:
        """The same as JSON can hold it; the keys are those of ``docs/state.md``."""
        factors = None
        if self.factors is not None:
            f = self.factors
            factors = {
                "rank": f.rank,
                "rcond": f.rcond,
                "singular_values": f.singular_values.tolist(),
                "effective_rank": f.effective_rank,
                "n_inverted": f.n_inverted,
                "orthogonality_error": f.orthogonality_error,
                "n_buffered": f.n_buffered,
                "advice": {"verdict": f.advice.verdict, "rank": f.advice.rank, "reason": f.advice.reason},
            }
        return {
            "schema": SCHEMA,
            "path": self.path,
            "class": self.class_name,
            "parameters": dict(self.parameters),
            "n_updates": self.n_updates,
            "n_features": self.n_features,
            "n_seen": self.n_seen,
            "n_targets": self.n_targets,
            "memory_bytes": self.memory_bytes,
            "file_bytes": self.file_bytes,
            "active": self.active,
            "handed_over": self.handed_over,
            "factors": factors,
        }


# --- looking --------------------------------------------------------------------------------------------------------


def _model(path: Path) -> LinearEstimator:
    """The model in a file, by itself or as part of a value function."""
    try:
        return load(path)
    except StateError as error:
        try:
            return ValueFunction.load(path).model
        except StateError:
            raise error from None


def examine_file(path: Path) -> Inspection:
    """Look at a saved model; raises :class:`~tlstd.StateError` with a remedy if there is none to be read.

    Example
    -------
    >>> examine_file("missing")
    Traceback (most recent call last):
    tlstd.errors.StateError: missing cannot be read (No such file or directory): name a file that model.save() wrote
    """
    try:
        shown = os.fspath(path).encode("utf-8", "backslashreplace").decode()  # names may hold bytes that are no text
        return examine(_model(path), path=shown, file_bytes=os.path.getsize(path))
    except OSError as error:
        raise StateError(
            f"{printable(os.fspath(path))} cannot be read ({error.strerror}): name a file that model.save() wrote"
        ) from error
    except MemoryError as error:
        raise StateError(
            f"{printable(os.fspath(path))} holds a model that does not fit into memory: inspect it on a larger machine"
        ) from error


def examine(model: LinearEstimator, *, path: str | None = None, file_bytes: int | None = None) -> Inspection:
    """Say what a model holds. Costs a read of its singular values and O(seen · rank²).

    Example
    -------
    >>> from tlstd import TLSTD, boyan_chain
    >>> model = TLSTD(4, rank=2, lambda_=0.5)
    >>> model.update_many(boyan_chain().sample(1_000, np.random.default_rng(0)))
    >>> found = examine(model)
    >>> found.n_updates, found.n_seen, found.factors.singular_values.size
    (1000, 4, 2)
    >>> found.factors.advice.verdict
    'undecided'
    """
    memory = model.nbytes  # before anything is read, which leaves caches
    part = model.active if isinstance(model, Handover) else model
    n_seen: int = getattr(part, "n_seen", model.n_features)
    return Inspection(
        class_name=type(model).__name__,
        parameters=model.parameters,
        n_updates=model.n_updates,
        n_features=model.n_features,
        n_seen=n_seen,
        n_targets=model.n_targets,
        memory_bytes=memory,
        active=type(part).__name__ if isinstance(model, Handover) else None,
        handed_over=model.handed_over if isinstance(model, Handover) else None,
        factors=_factors(part) if isinstance(part, TruncatedEstimator) else None,
        path=path,
        file_bytes=file_bytes,
    )


def _factors(model: TruncatedEstimator) -> Factors:
    sigma = model.singular_values
    advice = advise(
        sigma,
        rank=model.rank,
        rcond=model.rcond,
        n_seen=model.n_seen,
        n_updates=model.n_updates,
        subspace=model.subspace_lambda is not None,
    )
    if isinstance(model, ATD) and model.eta > 0.0 and 0 < sigma.size == model.rank and advice.verdict == "undecided":
        more = " (The TD part learns the rest, at its own pace.)"
        advice = Advice(advice.verdict, advice.rank, advice.reason + more)
    return Factors(
        rank=model.rank,
        rcond=model.rcond,
        singular_values=sigma,
        effective_rank=effective_rank(sigma),
        n_inverted=model.n_inverted,
        orthogonality_error=model.orthogonality_error(),
        n_buffered=model.n_buffered,
        advice=advice,
    )


def advise(
    singular_values: FloatArray, *, rank: int, rcond: float, n_seen: int, n_updates: int, subspace: bool = False
) -> Advice:
    """Say what the spectrum says about the rank; ``docs/state.md`` has the rule with what it was measured on.

    The solution inverts the singular values above ``rcond`` times the largest. If many are at or below that, a smaller
    rank gives the same solution. If the smallest one that the rank keeps is far above it, the rank leaves out some that
    LSTD would use; whether these carry values or noise the spectrum cannot tell, so nothing is advised. The *weight* of
    the singular values takes no part: those with little of it matter (the measurements say how much).

    Example
    -------
    >>> falling = 0.5 ** np.arange(40.0)
    >>> advise(falling, rank=40, rcond=1e-3, n_seen=1000, n_updates=9000).rank
    11
    >>> advise(falling[:5], rank=5, rcond=1e-3, n_seen=1000, n_updates=9000).verdict
    'undecided'
    >>> advise(falling[:10], rank=10, rcond=1e-3, n_seen=1000, n_updates=9000).verdict
    'keep'
    """
    if rank == 0:
        return Advice("undecided", None, "With rank 0 there are no factors: this is TD.")
    if singular_values.size == 0 or not singular_values[0] > 0.0:
        return Advice("undecided", None, "Nothing has been learned yet.")
    kept = int(singular_values.size)
    if kept < rank and n_updates < SAMPLES_PER_RANK * rank:
        return Advice(
            "undecided",
            None,
            f"{n_updates} samples have filled {kept} of {rank} singular values: look again after "
            f"{SAMPLES_PER_RANK * rank}.",
        )
    used = kept if subspace else int(np.count_nonzero(inverse_factors(singular_values, rcond=rcond)))
    enough = math.ceil(SLACK * used)
    if used < rank and enough <= WORTHWHILE * rank:
        return Advice(
            "lower",
            enough,
            f"{used} of {rank} singular values are used, the others are at or below the cut-off (rcond = {rcond:g} "
            f"times the largest): rank {enough} gives nearly the same values in less memory and time.",
        )
    if subspace:
        return Advice(
            "undecided",
            None,
            "These are the singular values of subspace_lambda, and the cut-off is for the equations of lambda_: "
            "compare ranks by their predictions.",
        )
    if used == rank and rank < n_seen:
        ratio = float(singular_values[-1] / singular_values[0])
        if ratio > TOLERATED * rcond:
            return Advice(
                "undecided",
                None,
                f"The smallest singular value kept is {ratio:.1e} of the largest, above the cut-off (rcond = "
                f"{rcond:g}): the rank leaves out others that LSTD would use. The spectrum cannot tell whether they "
                f"help or fit noise: compare ranks such as {max(1, rank // 2)}, {rank} and {min(2 * rank, n_seen)} by "
                "tlstd.evaluation.choose.",
            )
        return Advice("keep", rank, "The singular values reach the cut-off where the rank ends.")
    if used == rank:
        return Advice("keep", rank, "The rank covers every feature seen: nothing is cut off.")
    return Advice("keep", rank, f"{used} of {rank} singular values are used and nothing above the cut-off is left out.")


# --- showing --------------------------------------------------------------------------------------------------------

_BLOCKS = " ▁▂▃▄▅▆▇█"


def plot(
    singular_values: FloatArray, *, rcond: float = 0.0, width: int = 60, height: int = 8, unicode: bool = True
) -> list[str]:
    """The singular values on a logarithmic scale as lines of text, a line across at the cut-off.

    More values than fit are drawn as the largest of each group of neighbours.

    Example
    -------
    >>> print("\\n".join(plot(0.1 ** np.arange(7.0), height=4, unicode=False)))
      1e+00 |#
            |###
            |####
      1e-06 |#######
            +-------
             1     7
    """
    sigma = singular_values[singular_values > 0.0]
    if not sigma.size:
        return []
    groups = np.array_split(sigma, min(width, sigma.size))
    heights = np.log10([group[0] for group in groups])
    top = float(heights[0])
    lowest = math.log10(rcond) - 2.0 if rcond > 0.0 else -16.0  # far below the cut-off nothing matters any more
    floor = max(float(np.log10(sigma[-1])), top + lowest)
    floor = min(floor, top - 1.0)  # equal values are full bars, not empty ones
    step = (top - floor) / height
    cells = np.maximum((heights - floor) / step, 1 / 8)  # of all rows, from the bottom
    line = round((top + math.log10(rcond) - floor) / step) if rcond > 0.0 else 0
    lines = []
    for row in range(height - 1, -1, -1):
        parts = np.clip(cells - row, 0.0, 1.0)
        if unicode:
            bars = "".join(_BLOCKS[round(8 * part)] for part in parts)
        else:
            bars = "".join("#" if part >= 0.5 or (row == 0 and part > 0.0) else " " for part in parts)
        label = f"{10.0**top:.0e}" if row == height - 1 else f"{10.0**floor:.0e}" if row == 0 else ""
        mark = ""
        if 0 < line < height and row == line:
            bars = "".join((("╌" if unicode else "-") if bar == " " else bar) for bar in bars)
            mark = " cut-off"
        lines.append(f"{label:>7} {'│' if unicode else '|'}{bars if mark else bars.rstrip()}{mark}")
    lines.append(f"{'':7} {'└' if unicode else '+'}{('─' if unicode else '-') * len(groups)}")
    last = str(sigma.size)
    gap = len(groups) - 1 - len(last)
    lines.append(f"{'':9}1{' ' * gap}{last}" if gap > 0 else f"{'':9}1 to {last}")
    return lines


def render(found: Inspection, *, width: int = 80, unicode: bool = True) -> RenderableType:
    """An inspection for a rich console; without ``unicode`` it is plain ASCII, but for names from the file."""
    from rich.console import Group
    from rich.text import Text

    def rows(pairs: list[tuple[str, str]]) -> list[RenderableType]:
        pairs = [(printable(name), printable(value)) for name, value in pairs]  # they may come from a file
        start = max(len(name) for name, _ in pairs) + 2
        return [
            Text.assemble((f"{name:{start}}", "dim"), value, no_wrap=True, overflow="ignore") for name, value in pairs
        ]

    where = f" in {printable(found.path)}" if found.path else ""
    heading = Text.assemble((printable(found.class_name), "bold"), where, no_wrap=True, overflow="ignore")
    parts: list[RenderableType] = [heading, "", *rows(_facts(found)), "", *rows(_parameters(found.parameters))]
    if found.factors is not None:
        f = found.factors
        lines = plot(f.singular_values, rcond=f.rcond, width=max(8, min(60, width - 20)), unicode=unicode)
        if lines:
            parts += ["", Text("singular values (log scale)", "dim"), *(Text(line, no_wrap=True) for line in lines)]
        colour = {"lower": "yellow", "keep": "green"}.get(f.advice.verdict, "dim")
        verdict = f.advice.verdict + (f" to {f.advice.rank}." if f.advice.verdict == "lower" else ".")
        advice = Text(textwrap.fill(f"rank: {verdict} {f.advice.reason}", width - 1))
        advice.stylize(f"bold {colour}", 6, 6 + len(verdict))
        parts += ["", *rows(_numbers(f)), "", advice]
    return Group(*parts)


def _facts(found: Inspection) -> list[tuple[str, str]]:
    size = _bytes(found.memory_bytes)
    if found.file_bytes is not None:
        size += f" (file: {_bytes(found.file_bytes)})"
    rows = [
        ("updates", f"{found.n_updates:,}"),
        ("features seen", f"{found.n_seen:,} of {found.n_features:,}"),
        ("targets", str(found.n_targets)),
        ("memory", size),
    ]
    if found.active is not None:
        since = "has not handed over yet" if found.handed_over is None else f"since update {found.handed_over:,}"
        rows.append(("learning now", f"{found.active}, {since}"))
    return rows


def _parameters(parameters: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Those that were given a value, with the parameters of parts under dotted names."""
    rows = []
    for name, value in parameters.items():
        if isinstance(value, list) and len(value) == 2 and isinstance(value[1], dict):  # an estimator
            rows += [(prefix + name, str(value[0])), *_parameters(value[1], f"{prefix}{name}.")]
        elif value is not None and name not in ("n_features", "n_targets"):
            rows.append((prefix + name, str(value)))
    return rows


def _numbers(f: Factors) -> list[tuple[str, str]]:
    rows = []
    if f.singular_values.size:
        rows.append(("largest, smallest", f"{f.singular_values[0]:.3g}, {f.singular_values[-1]:.3g}"))
    return [
        *rows,
        ("kept", f"{f.singular_values.size} of rank {f.rank}"),
        ("used", f"{f.n_inverted} (above rcond = {f.rcond:g} times the largest)"),
        ("effective rank", f"{f.effective_rank} (95% of the sum)"),
        ("orthogonality error", f"{f.orthogonality_error:.1e}"),
        ("samples waiting", str(f.n_buffered)),
    ]


def _bytes(count: int) -> str:
    """Three digits with a unit.

    >>> _bytes(512), _bytes(1_234_567)
    ('512 B', '1.23 MB')
    """
    size, units = float(count), ["B", "kB", "MB", "GB"]
    while size >= 1000.0 and len(units) > 1:
        size /= 1000.0
        units.pop(0)
    return f"{size:.3g} {units[0]}"
