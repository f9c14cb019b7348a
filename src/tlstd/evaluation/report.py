"""The answer of :func:`evaluate`: finished numbers, which printing, JSON and the page only read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import file_format, parameters
from tlstd.core.arrays import FloatArray
from tlstd.core.units import power_of_two
from tlstd.errors import InvalidInputError
from tlstd.evaluation.comparison import Comparison, bounds, difference, finite
from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.fits import Fit, Starts
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.ladder import Case, Row, unit_names
from tlstd.evaluation.names import doubt_about_cost
from tlstd.evaluation.question import given_states
from tlstd.evaluation.rungs import REFUSAL, Rung
from tlstd.evaluation.silence import Limits, Silence, SilentInterval, between
from tlstd.evaluation.trust import LeftOut, Trust
from tlstd.evaluation.trust.verdict import short, worst
from tlstd.evaluation.views import Views
from tlstd.features.base import FeatureMap
from tlstd.logs.log import Log

SCHEMA = 3
"""Version of what :meth:`Report.to_json` returns: raised when a key changes its meaning or goes."""


@dataclass(frozen=True, eq=False)
class Report:
    """The answer of :func:`evaluate`; ``print`` shows it."""

    rows: tuple[Row, ...]
    """The table; the first row is the answer."""
    trust: Trust
    """How far to trust the value (``docs/trust.md``)."""
    views: Views = field(repr=False)
    """Values along some episodes and over pairs of columns."""
    best_estimate: float
    """The point of least estimated mean squared error: the answer, or a row that assumes more and agrees with it.

    NaN of a refusal beside which no row is better.
    """
    best_by: str
    """The row that it comes from."""
    notes: tuple[str, ...]
    """What was assumed, chosen and left out."""
    case: Case = field(repr=False)
    """What was asked and fitted, for further questions."""
    source: str
    policy_name: str
    """Of the target policy."""
    n_steps: int
    left_out: LeftOut = field(default_factory=LeftOut, repr=False)
    """What of the log was not used."""
    comparison: Comparison | None = field(default=None, repr=False)
    """With another policy, by :meth:`compared`."""

    @classmethod
    def of(cls, case: Case, trust: Trust, views: Views, left_out: LeftOut | None = None) -> Report:
        """The report of a case in which everything was found."""
        best = best_row(case.rows)
        refused = best is case.rows[0] and best.name == "LSTDQ" and case.silence is not None and case.silence.refuses
        n = case.log.n_dropped
        left = LeftOut(0, 0, n, n + case.log.n_episodes) if left_out is None else left_out
        log, notes = case.log, tuple(case.notes)
        return cls(
            tuple(case.rows),
            trust,
            views,
            float("nan") if refused else best.value,
            best.name,
            notes,
            case,
            log.source,
            case.policy_name,
            len(log),
            left,
        )

    # --- what was found ---------------------------------------------------------------------------------------------

    @property
    def log(self) -> Log:
        """The log that was asked."""
        return self.case.log

    @property
    def gamma(self) -> float:
        """Discount."""
        return self.case.gamma

    @property
    def cost(self) -> bool:
        """Whether rewards are costs: smaller is better."""
        return self.case.question.cost

    @property
    def policy(self) -> Any:
        """The target policy; None if it is the logged one."""
        target = self.case.target
        return (
            None if target is None else next(p for p in (target.function, target.table, target.logged) if p is not None)
        )

    @property
    def limits(self) -> Limits | None:
        """The range of discounted returns, where it was given."""
        return self.case.limits

    @property
    def silence(self) -> Silence | None:
        """Of an answer from action values: what the log does not have of the policy's actions; None if it has all."""
        return self.case.silence if self.rows[0].name == "LSTDQ" else None

    @property
    def features(self) -> FeatureMap:
        """Of the model."""
        return self.fit.features

    @property
    def fit(self) -> Fit:
        """The model's values, by all episodes and without each fold."""
        return self.case.model

    @property
    def _rung(self) -> Rung:
        refused = self.silence is not None and self.silence.refuses
        return REFUSAL if refused else self.rows[0].rung

    @property
    def rung(self) -> str:
        """What the value stands on: "mean of returns", "returns with tails", "doubly robust", ..., or "refusal"."""
        return self._rung.name

    @property
    def assumption(self) -> str:
        """What that assumes, in one sentence."""
        return self._rung.assumption

    @property
    def of_model(self) -> Row:
        """The row of least squares: the answer, or what stands beside it."""
        return next((row for row in self.rows if row.plain is not None), self.rows[0])

    @property
    def value(self) -> float:
        """The value of the policy: the mean over start states. NaN of a refusal: only the interval is known."""
        return float("nan") if self._rung is REFUSAL else self.rows[0].value

    @property
    def interval_or_none(self) -> Interval | None:
        """The interval of the value; None where the log is too small for one, or not known."""
        found = self.rows[0].interval
        return found if found is not None and np.isfinite(found.half_width) else None

    @property
    def light(self) -> str:
        """The worst state of the checks of what the value stands on; of a comparison, of both policies' checks."""
        own = self.trust.light
        return own if self.comparison is None else worst([own, self.comparison.light])

    # --- further questions ------------------------------------------------------------------------------------------

    @cached_property
    def model(self) -> Any:
        """The values as a :class:`ValueFunction`: it can be asked, saved and continued."""
        from tlstd.evaluation.value_function import of_fit  # here: estimators load numba

        return of_fit(self.fit)

    def predict(self, states: ArrayLike) -> FloatArray:
        """Values (M,) of states (M, D), or (M,) numbers of states, under the target policy."""
        if self.policy is not None and not callable(self.policy) and self.fit.kind != "states":
            raise InvalidInputError(
                "the policy was given as a table of the log's states: ask model.predict for actions"
            )
        return self.fit.regularised(self._states(states))

    def interval(self, states: ArrayLike | None = None, *, level: float | None = None) -> Interval:
        """An interval for the mean value of states, of the start states if left out; for one state pass (1, D).

        Of the start states it is the interval of the answer; of given states that of least squares, with room for what
        actions that the log does not have are worth.

        Parameters
        ----------
        states : (M, D), or (M,) numbers of states, optional
        level : float in (0, 1), optional
            The share of logs whose interval covers the true value, as far as its ``covers`` goes.

        Example
        -------
        >>> from tlstd import Log, evaluate
        >>> rng = np.random.default_rng(0)
        >>> rewards, episodes = rng.standard_normal(300), np.repeat(np.arange(100), 3)
        >>> log = Log.from_arrays(np.tile([0, 1, 2], 100), rewards, episodes=episodes, ends="terminated", discrete=True)
        >>> report = evaluate(log, gamma=0.5)
        >>> print(report.interval())
        -0.10282 ± 0.25  [-0.35, 0.153]
        >>> print(report.interval([1]))
        -0.00081029 ± 0.23  [-0.234, 0.228]
        """
        level = self.case.question.level if level is None else level
        if states is None:
            found = self.rows[0].interval
            if found is None:
                raise InvalidInputError("this row has no interval: leave estimators out")
            return found.at(level)
        ends = [self.case.interval(each, "sandwich", with_starts=False) for each in self._found(states)]
        return (ends[0] if len(ends) == 1 else between(*ends)).at(level)

    def influence(self, states: ArrayLike | None = None) -> EpisodeValue:
        """The value, with what each episode (or block) has moved it by; of given states by least squares."""
        if states is None:
            middle = self.rows[0].middle
            if middle is None:
                raise InvalidInputError("it is not known what each episode moves this row by: leave estimators out")
            return middle
        found = self._found(states)
        return EpisodeValue(
            sum(each.value for each in found) / len(found),
            np.mean([each.contributions for each in found], axis=0),
            found[0].effective,
        )

    def most_influential(self, count: int = 5) -> list[tuple[Any, float]]:
        """Names of the episodes (or steps of the blocks) that move the value most, and by how much."""
        found = self.influence()
        order = np.argsort(-np.abs(found.contributions), kind="stable")[: parameters.integer("count", count)]
        names = unit_names(self.case, found)
        return [(names[g], float(found.contributions[g])) for g in order.tolist()]

    def ends(self, states: ArrayLike | None = None) -> tuple[EpisodeValue, EpisodeValue]:
        """The value with what each episode (or block) moves it by, if missing actions are worth LOW, and HIGH."""
        found = self.rows[0].found if states is None else tuple(self._found(states))
        if not found:
            raise InvalidInputError("it is not known what each episode moves this row by: leave estimators out")
        return found[0], found[-1]

    def _states(self, states: ArrayLike) -> Starts:
        return Starts("given states", given_states(states, self.case.seen), None)

    def _found(self, states: ArrayLike) -> list[EpisodeValue]:
        fit = self.fit
        parts = fit.value(fit.query(self._states(states)))
        if len(parts) > 1:
            assert self.case.silence is not None
            parts = [parts[0].mixed(parts[1], worth) for worth in self.case.silence.limits[:2]]
        return [each.found for each in parts]

    def compared(self, other: Report, name: str | None = None, *, level: float | None = None) -> Report:
        """The same answer with how much more its policy is worth than another one, of which ``other`` is the answer.

        ``print``, :meth:`to_json` and the page show it, and their light is the worse of the two; the number alone is
        :func:`difference`. ``name`` is the other policy's own, if left out.
        """
        if self.cost != other.cost:
            raise InvalidInputError("one of the answers has costs and the other rewards: say cost= in the same way")
        called = other.policy_name if name is None else name
        called = "the other policy" if called == self.policy_name else called
        found = difference(self, other, level=self.case.question.level if level is None else level)
        unsure = "" if self.cost else doubt_about_cost(self.log)
        return replace(self, comparison=Comparison(called, other, found, self.policy_name, unsure))

    def save(self, path: file_format.Path) -> None:
        """Write the model and its feature map to a file, for :meth:`ValueFunction.load` and ``tlstd predict``."""
        self.model.save(path)

    # --- shown ------------------------------------------------------------------------------------------------------

    @property
    def table(self) -> str:
        """The rows side by side."""
        sets = list(self.rows[0].values)
        level = next((f"{100 * row.interval.level:.4g}%" for row in self.rows if row.interval is not None), "")
        names = ["estimator", sets[0], *([f"{level} interval"] if level else []), *sets[1:], "seconds", ""]
        lines = [
            [
                row.name,
                _number(row.values.get(sets[0])),
                *([bounds(row.interval)] if level else []),
                *(_number(row.values.get(s)) for s in sets[1:]),
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

    def to_json(self) -> str:
        """The answer for programs; ``docs/logs.md`` has the keys."""
        rows = [
            {
                "name": row.name,
                "rung": row.rung.name,
                "assumption": row.rung.assumption,
                "values": {name: finite(value) for name, value in row.values.items()},
                "interval": None if row.interval is None else row.interval.to_dict(),
                "debiased_from": finite(row.plain),
                "seconds": row.seconds,
                "note": row.note,
            }
            for row in self.rows
        ]
        whole = {
            "schema": SCHEMA,
            "value": finite(self.value),
            "interval": None if self.interval_or_none is None else self.interval_or_none.to_dict(),
            "rung": self.rung,
            "assumption": self.assumption,
            "best_estimate": {"value": finite(self.best_estimate), "by": self.best_by},
            "silence": None if self.silence is None else self.silence.to_dict(),
            "gamma": self.gamma,
            "source": self.source,
            "features": repr(self.features),
            "families": [] if self.fit.choice is None else [each.to_dict() for each in self.fit.choice.tried],
            "policy": self.policy_name,
            "cost": self.cost,
            "columns": {role: list(of) for role, of in self.log.roles.items()},
            "light": self.light,
            "estimators": rows,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "trust": self.trust.to_dict(),
            "views": self.views.to_dict(),
            "notes": [*self.notes, *self._about_interval()],
        }
        return json.dumps(whole, allow_nan=False)

    def __str__(self) -> str:
        compared = [] if self.comparison is None else [str(self.comparison), ""]
        stands = [f"Rung: {self.rung}. Assumption: {self.assumption}"]
        if self.best_by != self.rows[0].name:
            stands.append(
                f"Best estimate: {self.best_estimate:.5g}, by {self.best_by} (least estimated squared error)."
            )
        return "\n".join([self.table, "", *stands, "", *compared, *self._told(), *self.notes, *self._about_interval()])

    def __repr__(self) -> str:
        interval = self.interval_or_none
        return f"<Report: {self.value:.5g} {bounds(interval)}, {self.rung}, {self.light}>"

    def _told(self) -> list[str]:
        """The light and its reasons; of a comparison, those of both policies."""
        if self.comparison is None:
            return [str(self.trust), ""]
        both = [(self.policy_name, self.trust), (self.comparison.name, self.comparison.other.trust)]
        told = [each.about(name) for name, each in both]
        which = "both policies" if self.trust.light == self.comparison.light else "the worse of two policies"
        return [f"Trust: {self.light}, {which}.", *told, ""]

    def _about_interval(self) -> list[str]:
        """What there is to know about the interval of the answer."""
        found = self.rows[0].interval
        if found is None:
            return []
        if not np.isfinite(found.half_width):
            return ["Warning: one episode, too short to be cut into blocks, says nothing about others: no interval."]
        about = [f"The interval {bounds(found)} covers {found.covers}."]
        if isinstance(found, SilentInterval):
            parts = f"{short(found.sampling)} is chance and {short(found.silence)} is what the log does not have"
            about.append(f"Of its half-width {short(found.half_width)}, {parts}.")
        return about


Evaluation = Report
"""The name of :class:`Report` until version 0.2."""


def best_row(rows: list[Row]) -> Row:
    """The row of least estimated mean squared error.

    That of the answer is its variance. That of a row that assumes more is its variance, and its squared distance from
    the answer as far as chance does not explain it.
    """
    first, best, least = rows[0], rows[0], np.inf
    base = first.middle
    widths = [row.interval.half_width for row in rows if row.interval is not None]
    apart = [row.value - first.value for row in rows]
    unit = power_of_two(*(width for width in [*widths, *apart] if np.isfinite(width)))
    for row in rows:
        own = row.middle
        if own is None or row.interval is None or not np.isfinite(row.interval.half_width):
            continue
        error = (own.standard_error / unit) ** 2
        if row.interval.half_width > 0 and len(row.found) > 1:
            error = max(error, (row.interval.half_width / unit / 2.0) ** 2)
        bias = 0.0
        if base is not None and row is not first:
            same = own.contributions.size == base.contributions.size
            noise = own.minus(base).standard_error if same else np.hypot(own.standard_error, base.standard_error)
            bias = max(0.0, ((own.value - base.value) / unit) ** 2 - float(noise / unit) ** 2)
        if error + bias < least * (1.0 - 1e-9):
            best, least = row, error + bias
    return best


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"
