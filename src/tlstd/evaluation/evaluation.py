"""The answer of ``evaluate``: a table of estimators, the model behind it, and what was assumed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import file_format, parameters
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation.comparison import Comparison, bounds, difference, finite
from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.fitted import Fitted, LeftOut
from tlstd.evaluation.influence import Influence
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.log_intervals import IntervalKind, influence_on, interval_for, learned_rows
from tlstd.evaluation.names import doubt_about_cost
from tlstd.evaluation.rungs import REFUSAL, Rung, rung_of
from tlstd.evaluation.silence import Limits, Silence, SilentInterval
from tlstd.evaluation.trust import Answer, Trust, assess
from tlstd.evaluation.trust.verdict import short, worst
from tlstd.evaluation.value_function import ValueFunction
from tlstd.evaluation.views import Views, views
from tlstd.evaluation.whole_episodes import WholeEpisodes, episodes_of_groups

SCHEMA = 3
"""Version of what :meth:`Evaluation.to_json` returns: raised when a key changes its meaning or goes."""


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    values: dict[str, float]
    """Mean value of each set of start states, by name."""
    seconds: float
    note: str
    interval: Interval | None = None
    """Of the value of the first set, where there is one: of returns, and of the model."""
    plain: float | None = None
    """What the value of the first set was debiased from, the mean of the model's values; None if it was not."""

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
    fitted: Fitted | None = field(default=None, repr=False)
    """What the model was fitted to: log, ratios, start states, and its steps in pieces."""
    comparison: Comparison | None = field(default=None, repr=False)
    """With another policy, by :meth:`compared`."""
    policy_name: str = "the policy that acted"
    """Of the policy asked for."""
    cost: bool = False
    """Whether rewards are costs: smaller is better."""
    left_out: LeftOut = field(default_factory=LeftOut, repr=False)
    """What of the log was not used."""
    n_steps: int = 0
    """Of the log, of which the model may have learned a part; 0: all of it."""
    returned: WholeEpisodes | None = field(default=None, repr=False)
    """The value from returns, with what each episode moves it by; None where there is none."""
    influenced: Influence | None = field(default=None, repr=False)
    """The model's influence on the start states, where it was computed with the answer."""

    limits: Limits | None = None
    """The range of discounted returns, where it was told."""
    silence: Silence | None = field(default=None, repr=False)
    """Of an answer from action values: what the log does not have of the policy's actions; None if it has all."""

    @property
    def _rung(self) -> Rung:
        return REFUSAL if self.silence is not None and self.silence.refuses else rung_of(self.rows[0].name)

    @property
    def rung(self) -> str:
        """What the value stands on: "mean of returns", "returns with tails", "least squares", ..., or "refusal"."""
        return self._rung.name

    @property
    def assumption(self) -> str:
        """What that assumes, in one sentence."""
        return self._rung.assumption

    @property
    def by_returns(self) -> WholeEpisodes | None:
        """The value from returns, if that is the answer."""
        return self.returned if self.returned is not None and self.returned.name == self.rows[0].name else None

    @property
    def of_model(self) -> Row:
        """The row of the model: the answer, or what stands beside it."""
        return next((row for row in self.rows if row.plain is not None), self.rows[0])

    @property
    def value(self) -> float:
        """The value of the policy: the mean over start states. NaN of a refusal: only the interval is known."""
        return float("nan") if self._rung is REFUSAL else self.rows[0].value

    @cached_property
    def trust(self) -> Trust | None:
        """How far to trust the value (``docs/trust.md``); computed when first asked for, None without ``fitted``."""
        if self.fitted is None:
            return None
        row = self.of_model
        own = None if row.interval is None or row.plain is None else _bounded(row.interval)
        of_log = self.returned, self.influenced, self.left_out, self.n_steps
        answer = Answer(own, row.plain, self.rows[0].value, self.rung, *of_log, self.limits, self.silence)
        return assess(self.fitted, answer)

    @property
    def light(self) -> str:
        """The worst state of the checks of what the value stands on; of a comparison, of both policies' checks."""
        own = "unchecked" if self.trust is None else self.trust.light
        return own if self.comparison is None else worst([own, self.comparison.light])

    @cached_property
    def views(self) -> Views | None:
        """Values along some episodes and over pairs of columns; computed when first asked for."""
        return None if self.fitted is None else views(self.fitted)

    @cached_property
    def interval_or_none(self) -> Interval | None:
        """The interval of the value; None where the log is too small for one, or not known."""
        found = self.rows[0].interval
        return self._interval("auto") if found is None else _bounded(found)

    def _interval(self, kind: IntervalKind) -> Interval | None:
        try:
            found = self.interval(kind=kind)
        except InvalidInputError:
            return None
        return _bounded(found)

    @property
    def table(self) -> str:
        """The estimators side by side."""
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

    def predict(self, states: ArrayLike) -> FloatArray:
        """Values (M,) of states (M, D), or (M,) numbers of states, under the policy asked for."""
        if self.model.kind == "states":
            return self.model.predict(states)
        if not callable(self.policy):
            raise InvalidInputError(
                "the policy was given as a table of the log's states: ask model.predict for actions"
            )
        return self.model.predict(states, policy=self.policy)

    def interval(
        self, states: ArrayLike | None = None, *, level: float = 0.95, kind: IntervalKind = "auto"
    ) -> Interval:
        """An interval for the mean value of states, of the start states if left out; for one state pass (1, D).

        Parameters
        ----------
        states : (M, D), or (M,) numbers of states, optional
        level : float in (0, 1)
            The share of logs whose interval covers the true value, as far as its ``covers`` goes.
        kind : "auto", "sandwich", "plug-in", "debiased", "bootstrap" or "returns"
            "auto" is the interval of the answer; of given states it is the sandwich. "returns" is that of the mean of
            start returns, on-policy. The others are there to be compared with (``docs/trust.md``).

        Example
        -------
        >>> from tlstd import Log, evaluate
        >>> rng = np.random.default_rng(0)
        >>> rewards, episodes = rng.standard_normal(300), np.repeat(np.arange(100), 3)
        >>> log = Log.from_arrays(np.tile([0, 1, 2], 100), rewards, episodes=episodes, ends="terminated", discrete=True)
        >>> evaluation = evaluate(log, gamma=0.5)
        >>> print(evaluation.interval())
        -0.10282 ± 0.25  [-0.35, 0.144]
        >>> print(evaluation.interval(kind="sandwich"))
        -0.10282 ± 0.25  [-0.352, 0.147]
        """
        parameters.choice("kind", kind, get_args(IntervalKind))
        fitted, found = self._known(), self.rows[0].interval
        if states is None and kind == "auto" and found is not None:
            return found.at(level)  # of shards ``fitted`` has a part only
        return interval_for(fitted, states, level, kind)

    def influence(self, states: ArrayLike | None = None) -> Influence:
        """What each step and each episode, by its name in the log, has moved the model's mean value of states by."""
        if states is None and self.influenced is not None:
            return self.influenced
        return influence_on(self._known(), states)

    def at_worth(self, highest: bool) -> Evaluation:
        """The same answer where actions that the log does not have are worth the most, or the least."""
        if self.silence is None:
            return self
        return replace(self, silence=None, influenced=self.silence.upper if highest else self.silence.lower)

    def by_episode(self) -> EpisodeValue:
        """The value, with what each episode of the log has moved it by."""
        log = self._known().log
        if self.by_returns is not None:
            return self.by_returns.found._replace(contributions=self.by_returns.by_episode())
        found, rows = self.influence(), learned_rows(self._known())
        episode = episodes_of_groups(log, rows, found.groups)
        moved = np.bincount(episode, found.contributions, log.n_episodes).astype(np.float64)
        return EpisodeValue(found.value, moved, found.effective_groups)

    def _known(self) -> Fitted:
        if self.fitted is None:
            raise InvalidInputError("this answer does not know its log: make it by evaluate()")
        return self.fitted

    def compared(self, other: Evaluation, name: str | None = None, *, level: float = 0.95) -> Evaluation:
        """The same answer with how much more its policy is worth than another one, of which ``other`` is the answer.

        ``print``, :meth:`to_json` and the page show it, and their light is the worse of the two; the number alone is
        :func:`difference`. ``name`` is the other policy's own, if left out.
        """
        if self.cost != other.cost:
            raise InvalidInputError("one of the answers has costs and the other rewards: say cost= in the same way")
        called = other.policy_name if name is None else name
        called = "the other policy" if called == self.policy_name else called
        found, unsure = difference(self, other, level=level), "" if self.cost else self._unsure()
        return replace(self, comparison=Comparison(called, other, found, self.policy_name, unsure))

    def _unsure(self) -> str:
        return "" if self.fitted is None else doubt_about_cost(self.fitted.log)

    def to_json(self) -> str:
        """The answer for programs; ``docs/logs.md`` has the keys."""
        rows = [
            {
                "name": row.name,
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
            "silence": None if self.silence is None else self.silence.to_dict(),
            "gamma": self.gamma,
            "source": self.source,
            "features": repr(self.model.features),
            "policy": self.policy_name,
            "cost": self.cost,
            "columns": {} if self.fitted is None else {role: list(of) for role, of in self.fitted.log.roles.items()},
            "light": self.light,
            "estimators": rows,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "trust": None if self.trust is None else self.trust.to_dict(),
            "views": None if self.views is None else self.views.to_dict(),
            "notes": [*self.notes, *self._about_interval()],
        }
        return json.dumps(whole, allow_nan=False)

    def save(self, path: file_format.Path) -> None:
        """Write the model and its feature map to a file, for :meth:`ValueFunction.load` and ``tlstd predict``."""
        self.model.save(path)

    def __str__(self) -> str:
        compared = [] if self.comparison is None else [str(self.comparison), ""]
        stands = f"Rung: {self.rung}. Assumption: {self.assumption}"
        return "\n".join([self.table, "", stands, "", *compared, *self._told(), *self.notes, *self._about_interval()])

    def _told(self) -> list[str]:
        """The light and its reasons; of a comparison, those of both policies."""
        if self.comparison is None:
            return [] if self.trust is None else [str(self.trust), ""]
        both = [(self.policy_name, self.trust), (self.comparison.name, self.comparison.other.trust)]
        told = [each.about(name) for name, each in both if each is not None]
        same = self.trust is not None and self.trust.light == self.comparison.light
        which = "both policies" if same else "the worse of two policies"
        return [f"Trust: {self.light}, {which}.", *told, ""] if told else []

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
        if found.kind == "sampled":
            about.append("The adjoint system of the interval was solved for a sample of the steps.")
        return about


def _bounded(interval: Interval) -> Interval | None:
    return interval if np.isfinite(interval.half_width) else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"
