"""Which column of a table is what: by name, by a map, by a preset, or guessed where only one can be meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from tlstd.core import parameters
from tlstd.errors import InvalidInputError, InvalidParameterError, shortened

ROLES = (
    "observation",
    "action",
    "reward",
    "terminated",
    "truncated",
    "done",
    "episode",
    "step",
    "next_observation",
    "probability",
    "log_probability",
    "policy",
    "cluster",
)
"""What a column can be."""

Names = str | Sequence[str] | None
"""A column, several that are one observation or action together, or None: none of them."""

_OBSERVATIONS = ("observation", "observations", "obs", "state", "states", "observation.state")
KNOWN: dict[str, tuple[str, ...]] = {
    "observation": _OBSERVATIONS,
    "action": ("action", "actions", "act"),
    "reward": ("reward", "rewards", "next.reward"),
    "terminated": ("terminated", "terminateds", "termination", "terminations", "terminal", "terminals", "is_terminal"),
    "truncated": ("truncated", "truncateds", "truncation", "truncations", "timeout", "timeouts"),
    "done": ("done", "dones", "next.done"),
    "episode": ("episode", "episode_id", "episode_index", "eps_id", "trajectory", "trajectory_id", "traj_id"),
    "step": ("step", "steps", "t", "time_step", "timestep", "frame_index", "step_id"),
    "next_observation": ("next_observation", "next_observations", "next_obs", "new_obs", "next_state", "next_states"),
    "probability": ("probability", "probabilities", "action_prob", "action_probability", "propensity", "pscore"),
    "log_probability": ("log_probability", "action_logp", "logp", "log_prob", "action_log_prob"),
    "policy": (),  # the policy asked for is named, never guessed
    "cluster": (),  # named, never guessed
}
"""Names by which a column is known for what it is, whatever the case of their letters."""

Preset: TypeAlias = Literal["minari", "lerobot", "rllib", "d4rl", "flat"]

PRESETS: dict[Preset, dict[str, tuple[str, ...]]] = {
    "minari": {
        "observation": ("observations",),
        "action": ("actions",),
        "reward": ("rewards",),
        "terminated": ("terminations",),
        "truncated": ("truncations",),
        "episode": ("episode_id", "id"),
    },
    "lerobot": {
        "observation": ("observation.state",),
        "action": ("action",),
        "reward": ("next.reward", "reward"),
        "done": ("next.done", "done"),
        "episode": ("episode_index",),
        "step": ("frame_index",),
    },
    "rllib": {
        "observation": ("obs",),
        "next_observation": ("new_obs", "next_obs"),
        "action": ("actions", "action"),
        "reward": ("rewards", "reward"),
        "terminated": ("terminateds",),
        "truncated": ("truncateds",),
        "done": ("dones",),
        "episode": ("eps_id", "episode_id"),
        "step": ("t",),
        "probability": ("action_prob",),
        "log_probability": ("action_logp",),
    },
    "d4rl": {
        "observation": ("observations",),
        "next_observation": ("next_observations",),
        "action": ("actions",),
        "reward": ("rewards",),
        "terminated": ("terminals",),
        "truncated": ("timeouts",),
    },
    "flat": {
        "observation": ("obs",),
        "next_observation": ("next_obs",),
        "action": ("action", "act"),
        "reward": ("reward",),
        "terminated": ("terminated",),
        "truncated": ("truncated",),
        "done": ("done",),
        "episode": ("episode",),
        "step": ("step",),
        "probability": ("probability",),
    },
}
"""Names of the columns by the tool that writes them."""

_SEVERAL = ("observation", "next_observation", "action", "policy")


class Mapped(NamedTuple):
    """The columns of a table by what they are."""

    columns: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def find(names: Sequence[str], columns: Mapping[str, Names] | None, preset: Preset | None, where: str) -> Mapped:
    """Say which of the columns ``names`` is what.

    Example
    -------
    >>> found = find(["episode", "obs_0", "obs_1", "act", "reward", "speed"], {"action": None}, None, "a.csv")
    >>> found.columns["observation"], "action" in found.columns
    (('obs_0', 'obs_1'), False)
    >>> print(*found.notes)
    Columns, by their names: observation is obs_0, obs_1; reward is reward; episode is episode. Not used: act, speed.
    """
    chosen = {} if columns is None else _given(names, columns, where)
    left_out = {role for role, given in (columns or {}).items() if given is None}
    table = KNOWN
    if preset is not None:
        parameters.choice("preset", preset, get_args(Preset))
        table = PRESETS[preset]
    for role in ROLES:
        if role in chosen or role in left_out:
            continue
        found = [hit for name in table.get(role, ()) for hit in _matches(names, name, role, where)]
        if len(found) > 1:
            options = " or ".join(_listed(hit) for hit in found)
            raise InvalidInputError(
                f"{where} has several columns that can be the {role}: {options}; say which, "
                f"columns={{{role!r}: {found[0][0] if len(found[0]) == 1 else list(found[0])!r}}} "
                f"(--map {role}={','.join(found[0])})"
            )
        if found:
            chosen[role] = found[0]
    said = f"Columns, by {'their names' if preset is None else f'the preset {preset!r}'}: "
    if "done" in chosen and ("terminated" in chosen or "truncated" in chosen) and "done" not in (columns or {}):
        del chosen["done"]  # says less
    if "probability" in chosen and "log_probability" in chosen:
        del chosen["log_probability"]
    for role in ("observation", "reward"):
        if role not in chosen:
            looked = (PRESETS[preset] if preset else KNOWN).get(role, ())
            raise InvalidInputError(
                f"{where} has no column for the {role} (looked for {', '.join(looked)}); it has {_listed(names)}: say "
                f"which it is, columns={{{role!r}: ...}} (--map {role}=...)"
            )
    told = [role for role in ROLES if role in chosen and role in (columns or {})]
    found_out = [role for role in ROLES if role in chosen and role not in told]
    used = {name for group in chosen.values() for name in group}
    unused = [name for name in names if name not in used]
    text = " As told: ".join(_said(chosen, roles) for roles in (found_out, told) if roles)
    text = f"{said if found_out else 'Columns, as told: '}{text}"
    return Mapped(chosen, (shortened(text + (f" Not used: {_listed(unused)}." if unused else "")),))


def _said(chosen: Mapping[str, tuple[str, ...]], roles: Sequence[str]) -> str:
    return "; ".join(f"{role} is {_listed(chosen[role])}" for role in roles) + "."


def _given(names: Sequence[str], columns: Mapping[str, Names], where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(columns, Mapping):
        raise InvalidParameterError(f"columns is {columns!r}: pass a dict, e.g. {{'reward': 'r'}}")
    chosen = {}
    for role, given in columns.items():
        parameters.choice("a key of columns", role, ROLES)
        if given is None:
            continue
        wanted = (given,) if isinstance(given, str) else tuple(given)
        if len(wanted) == 1 and wanted[0] not in names and role in _SEVERAL:
            wanted = _numbered(names, wanted[0], role, where) or wanted
        absent = [name for name in wanted if name not in names]
        if absent or not wanted:
            raise InvalidInputError(
                f"{where} has no column {_listed(absent)!r} for the {role}: it has {_listed(names)}"
            )
        if len(wanted) > 1 and role not in _SEVERAL:
            raise InvalidParameterError(f"columns has {len(wanted)} names for {role}: it is one column")
        chosen[role] = wanted
    return chosen


def _matches(names: Sequence[str], known: str, role: str, where: str) -> list[tuple[str, ...]]:
    """All that can be meant by a name: columns of that name in any case of letters, and the numbered ones."""
    found: list[tuple[str, ...]] = [(name,) for name in names if name.lower() == known]
    numbered = _numbered(names, known, role, where) if role in _SEVERAL else None
    return found if numbered is None else [*found, numbered]


def _numbered(names: Sequence[str], base: str, role: str, where: str) -> tuple[str, ...] | None:
    """Columns base_0, base_1, … (or base0, base.0, base[0]; or from 1) in the order of their numbers."""
    pattern = re.compile(rf"{re.escape(base)}[_.\[]?0*([0-9]+)\]?", re.IGNORECASE)
    matches = [(match[1], name) for name in names if (match := pattern.fullmatch(name))]
    if not matches:
        return None
    # more digits than any column has, and than Python reads: their first ten are a number that is too large as well
    numbers = [(int(digits[:10]), name) for digits, name in matches]
    remedy = f"name the columns, columns={{{role!r}: [...]}} (--map {role}=...)"
    found: dict[int, str] = {}
    for number, name in numbers:
        if number in found:
            raise InvalidInputError(
                f"{where} has {found[number]} and {name} for number {number:,} of the {role}: {remedy}"
            )
        found[number] = name
    first = min(found)
    missing = sorted(set(range(first, first + len(found))) - set(found))
    if first > 1 or missing:
        lacking = missing[0] if missing else 0
        raise InvalidInputError(
            f"{where} has {_listed(list(found.values()))} for the {role}, but not number {lacking}: mend the table, or "
            f"{remedy}"
        )
    return tuple(found[i] for i in sorted(found))


def _listed(names: Sequence[str]) -> str:
    if len(names) > 12:
        return f"{', '.join(names[:6])}, …, {names[-1]} ({len(names):,} in all)"
    return ", ".join(names) if names else "none"
