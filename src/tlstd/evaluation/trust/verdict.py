"""What a check has found, and the light over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

ORDER = ("red", "amber", "unchecked", "green", "not applicable")
"""States, the worst first. "unchecked": nothing in the log can test the answer for bias."""
LIKELY, CERTAIN = 2.7e-3, 6.3e-5
"""Probabilities, by chance alone, of what counts as found (amber) and as certain (red): 3 and 4 standard errors."""


@dataclass(frozen=True)
class Check:
    """One question about the log and the answer, with what was measured."""

    name: str
    """For programs."""
    title: str
    """For people."""
    state: str
    """One of ``ORDER``."""
    value: float | None
    """What was measured; None if nothing was."""
    measured: str
    """What ``value`` is, in words."""
    amber: str
    """From where it is amber, and from where it is ``red``."""
    red: str
    reason: str
    """Why these thresholds."""
    sentence: str
    """What was found; if it is not green, what to do."""
    data: dict[str, Any]
    """More numbers, for figures and tables."""
    about: str = "answer"
    """"answer": the light shows it; "state values": it says how good the model's values of states are, on which the
    answer does not rest."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; numbers that are not finite are None."""
        names = ("name", "title", "state", "value", "measured", "amber", "red", "reason", "sentence", "data", "about")
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class Trust:
    """How far to trust an answer; ``print`` shows the light and its reasons."""

    checks: tuple[Check, ...]
    note: str
    """What the checks were made on."""

    @property
    def light(self) -> str:
        """The worst state of the checks of what the answer rests on."""
        return worst(check.state for check in self.of_answer)

    @property
    def values_light(self) -> str:
        """The worst state of any check: how far to trust the model's values of states."""
        return worst(check.state for check in self.checks)

    @property
    def of_answer(self) -> tuple[Check, ...]:
        """The checks of what the answer rests on, the worst first."""
        return tuple(check for check in self.ordered if check.about == "answer")

    @property
    def of_values(self) -> tuple[Check, ...]:
        """The checks of the model's values of states, where the answer does not rest on them, the worst first."""
        return tuple(check for check in self.ordered if check.about != "answer")

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentences of the checks of the answer that are not green, the worst first."""
        return _reasons(self.of_answer)

    @property
    def ordered(self) -> tuple[Check, ...]:
        """The checks, the worst first."""
        return tuple(sorted(self.checks, key=lambda check: ORDER.index(check.state)))

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"there is no check {name!r}: there are {', '.join(check.name for check in self.checks)}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "light": self.light,
            "reasons": list(self.reasons),
            "state_values": {"light": self.values_light, "reasons": list(_reasons(self.of_values))},
            "note": self.note,
            "checks": [check.to_dict() for check in self.checks],
        }

    def __str__(self) -> str:
        return self._told("Trust: ")

    def about(self, policy: str) -> str:
        """The same, of a policy by its name."""
        return self._told(f"Of {policy}: ")

    def _told(self, head: str) -> str:
        told = [f"{head}{self.light} ({_counted(self.of_answer)}).", *(f"- {reason}" for reason in self.reasons)]
        if self.of_values:
            told.append(f"Values of states, on which the answer does not rest: {_counted(self.of_values)}.")
            told += [f"- {reason}" for reason in _reasons(self.of_values)]
        return "\n".join(told)


def _reasons(checks: Iterable[Check]) -> tuple[str, ...]:
    return tuple(check.sentence for check in checks if check.state in ("red", "amber", "unchecked"))


def _counted(checks: Sequence[Check]) -> str:
    """How many checks have each state.

    >>> _counted([])
    ''
    """
    counts = [sum(check.state == state for check in checks) for state in ORDER]
    return ", ".join(f"{n} {state}" for n, state in zip(counts, ORDER, strict=True) if n)


def worst(states: Iterable[str]) -> str:
    """The worst of some states; "not applicable" if there is none.

    Example
    -------
    >>> worst(["green", "not applicable", "unchecked"])
    'unchecked'
    """
    return min(states, key=ORDER.index, default="not applicable")


def not_applicable(name: str, title: str, why: str) -> Check:
    """A check that does not apply."""
    return Check(name, title, "not applicable", None, "", "", "", "", why, {})


def chance(value: float, error: float, degrees: float, scale: float = 1.0) -> float:
    """Probability of a value so far from 0 by chance, by Student's distribution.

    ``scale`` is the size of what was subtracted to get it, for telling it from rounding.
    """
    if not np.isfinite(value) or not np.isfinite(error):
        return 1.0
    if error <= 1e-12 * max(abs(value), scale):
        return 0.0 if abs(value) > 1e-9 * max(scale, 1e-300) else 1.0
    return float(2.0 * stdtr(max(1.0, degrees), -abs(value) / error))


def graded(amber: bool, red: bool) -> str:
    """The state of something that is amber, red or neither."""
    return "red" if red else "amber" if amber else "green"


def plain(value: Any) -> Any:
    """A value as JSON takes it."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def short(error: float) -> str:
    """An error as it is shown, with two digits; large ones without exponents.

    Example
    -------
    >>> short(0.0123), short(514.2), short(2e9)
    ('0.012', '514', '2e+09')
    """
    return f"{error:,.0f}" if 100.0 <= error < 1e7 else f"{error:.2g}"


def percent(share: float) -> str:
    """A share as it is shown.

    Example
    -------
    >>> percent(0.123), percent(0.0004), percent(0.0)
    ('12%', '0.04%', '0%')
    """
    return f"{100.0 * share:.0f}%" if share >= 0.01 or share <= 0.0 else f"{100.0 * share:.1g}%"
