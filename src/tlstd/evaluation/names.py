"""What policies and rewards are called, and what their names leave open."""

from __future__ import annotations

import re
from typing import Any

from tlstd.logs.log import Log

COSTS = frozenset({"cost", "costs", "loss", "losses", "penalty", "penalties"})
"""Words in the name of a column of rewards from which these may be costs."""
TURNED = frozenset({"neg", "negative", "negated", "minus"})
"""Words that say that they were turned into rewards."""


def doubt_about_cost(log: Log) -> str:
    """Why the rewards of a log may be costs, by the name of their column; empty if it says nothing of the kind.

    >>> from dataclasses import replace
    >>> log = Log.from_arrays([0.0], [1.0], terminated=[True])
    >>> doubt_about_cost(replace(log, roles={"reward": ("run_cost",)}))
    'the rewards are read from run_cost; if smaller is better, say cost=True (--cost)'
    >>> doubt_about_cost(replace(log, roles={"reward": ("negative cost",)})), doubt_about_cost(log)
    ('', '')
    """
    name = " ".join(log.roles.get("reward", ()))
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    words = set(re.findall(r"[a-z]+", apart.lower()))
    if not words & COSTS or words & TURNED:
        return ""
    return f"the rewards are read from {name}; if smaller is better, say cost=True (--cost)"


def policy_name(policy: Any, log: Log) -> str:
    """What a policy is called: a function by its name, columns by theirs.

    >>> log = Log.from_arrays([0.0], [1.0], terminated=[True])
    >>> policy_name(None, log), policy_name(policy_name, log), policy_name(lambda states: states, log)
    ('the logged policy', 'policy_name', 'the policy given')
    """
    if policy is None:
        return "the logged policy"
    if policy is log.policy:
        columns = log.roles.get("policy", ())
        return f"column:{','.join(columns)}" if columns else "the policy in the log's columns"
    name = getattr(policy, "__qualname__", None)
    return name if isinstance(name, str) and "<" not in name else "the policy given"
