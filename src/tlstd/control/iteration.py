"""The loop of approximate policy iteration: evaluate, improve, notice the end, and keep the best.

The policy that follows from action values w is greedy in them. What an evaluation makes of a policy depends only on the
actions it takes where the data ask for one (the next states, or the sigma points). So a policy that takes the same
actions there as an earlier one has the same values, and everything after it is known: it is converged if that was the
one just before, and a cycle otherwise. Both are certain, and found without a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tlstd.control.policies import GreedyPolicy
from tlstd.core.arrays import FloatArray, IntArray, as_floats
from tlstd.errors import InvalidParameterError
from tlstd.features.combine import StateAction


class Evaluator(Protocol):
    """What finds the action values of a policy."""

    def asked(self, weights: FloatArray) -> IntArray:
        """The greedy actions that the evaluation depends on."""

    def fit(self, chosen: IntArray | None) -> FloatArray:
        """Weights of the action values of the policy that takes these actions; None: of the uniform one."""


class Iteration(NamedTuple):
    """One policy and what was found out about it."""

    number: int
    policy: FloatArray | None
    """The weights that it is greedy in; None for the uniform policy that is the start."""
    weights: FloatArray
    """Of its action values."""
    value: float
    """Mean value of the start states, by the judge; NaN if nobody has judged."""
    changed: float
    """Share of the actions asked for that are other than those of the policy before."""
    moved: float
    """‖w - w_before‖ / ‖w‖ of the action values."""
    seconds: float


@dataclass(frozen=True, eq=False)
class PolicyIteration:
    """What policy iteration has found, and how it ended."""

    policy: GreedyPolicy
    """The best policy, by ``judged_by``."""
    history: tuple[Iteration, ...]
    """All policies in turn, the start first; with a cycle, the policy of its mean weights is the last."""
    stopped: str
    """"converged": the same policy twice, or weights that no longer move. "cycle": an earlier policy came back.
    "limit": ``max_iterations``. "interrupted": by Ctrl-C. "diverged": the weights were no longer finite."""
    cycle: int
    """Number of policies that follow each other for ever: 1 if converged, 0 where it is not known."""
    chosen: int
    """The place of the policy in ``history``."""
    judged_by: str
    """What "best" means: see ``judge`` of :func:`policy_iteration`."""
    notes: tuple[str, ...] = ()
    """What to know about it."""

    @property
    def weights(self) -> FloatArray:
        """The weights that the policy is greedy in."""
        return self.policy.weights

    @property
    def value(self) -> float:
        """The value of the policy by the judge; not an unbiased one, because it was chosen by it."""
        return self.history[self.chosen].value

    def __str__(self) -> str:
        lines = [f"{self.stopped}" + f" of {self.cycle}" * (self.cycle > 1) + f"; the best by {self.judged_by}:"]
        lines.append("     policy   value   changed     moved  seconds")
        for entry in self.history:
            mark = "*" if entry.number == self.chosen else " "
            name = "uniform" if entry.policy is None else str(entry.number)
            name = "mean" if self.cycle > 1 and entry is self.history[-1] else name
            lines.append(
                f"{mark} {name:>9} {entry.value:7.4g} {entry.changed:9.2%} {entry.moved:9.2g} {entry.seconds:8.2f}"
            )
        return "\n".join([*lines, *self.notes])


Judge = Callable[[FloatArray | None, FloatArray], float]
"""From the weights of a policy (None: uniform) and of its action values to its value."""


@dataclass
class Loop:
    """Policy iteration as it goes on; what it has found so far is there at any moment."""

    evaluator: Evaluator
    judge: Judge
    max_iterations: int
    tolerance: float
    on_iteration: Callable[[Iteration], None] | None = None
    possible: tuple[float, float] = (-np.inf, np.inf)
    """What values can be; an estimate outside is wrong, and its policy the best only if there is no other."""
    picky: bool = False
    """Whether the first impossible value of an improved policy is the end."""
    entries: list[Iteration] = field(default_factory=list)
    stopped: str = "limit"
    cycle: int = 0

    def run(self, start: FloatArray | None) -> None:
        """Iterate to an end; Ctrl-C is one, unless nothing has been found yet."""
        try:
            self._run(start)
        except KeyboardInterrupt:
            if len(self.entries) < 2:
                raise
            self.stopped = "interrupted"

    def _run(self, start: FloatArray | None) -> None:
        met: dict[bytes, int] = {}
        policy, before = start, None
        for number in range(self.max_iterations + 1):
            began = perf_counter()
            chosen = None if policy is None else self.evaluator.asked(policy)
            key = b"uniform" if chosen is None else blake2b(chosen.astype(np.int32).tobytes()).digest()
            earlier = met.setdefault(key, number)
            weights = self.entries[earlier].weights if earlier < number else self.evaluator.fit(chosen)
            if not np.isfinite(weights).all():
                self.stopped = "diverged"
                return
            changed = 1.0 if before is None or chosen is None else float(np.mean(chosen != before))
            entry = self._add(policy, weights, changed, began)
            if earlier < number:
                self.cycle = number - earlier
                self.stopped = "converged" if self.cycle == 1 else "cycle"
                break
            if number and entry.moved <= self.tolerance:
                self.stopped, self.cycle = "converged", 1
                break
            if self.picky and policy is not None and self._is_impossible(entry):
                return
            policy, before = weights, chosen
        if self.cycle > 1:
            began = perf_counter()
            mean = np.mean([entry.weights for entry in self.entries[-self.cycle :]], axis=0)
            chosen = self.evaluator.asked(mean)
            self._add(mean, self.evaluator.fit(chosen), float(np.mean(chosen != before)), began)

    @property
    def sound(self) -> bool:
        """Whether it has converged, and all values are possible."""
        return self.stopped == "converged" and not any(map(self._is_impossible, self._improved))

    @property
    def _improved(self) -> list[Iteration]:
        return [entry for entry in self.entries if entry.policy is not None]

    def _is_impossible(self, entry: Iteration) -> bool:
        low, high = self.possible
        slack = 1e-6 * max(abs(low), abs(high)) if np.isfinite([low, high]).all() else 0.0
        return not np.isnan(entry.value) and not low - slack <= entry.value <= high + slack

    def _add(self, policy: FloatArray | None, weights: FloatArray, changed: float, began: float) -> Iteration:
        length = float(np.linalg.norm(weights))
        moved = np.inf
        if self.entries:
            moved = float(np.linalg.norm(weights - self.entries[-1].weights)) / max(length, np.finfo(float).tiny)
        value = float(self.judge(policy, weights))
        entry = Iteration(len(self.entries), policy, weights, value, changed, moved, perf_counter() - began)
        self.entries.append(entry)
        if self.on_iteration is not None:
            self.on_iteration(entry)
        return entry

    def result(
        self,
        features: StateAction,
        judged_by: str,
        epsilon: float,
        actions: ArrayLike | None,
    ) -> PolicyIteration:
        """What has been found; of policies with the same value the last."""
        improved = self._improved
        if not improved:
            raise InvalidParameterError(
                f"there is no improved policy after {len(self.entries)} evaluation(s), {self.stopped}: "
                "give max_iterations >= 1, and finite data"
            )
        judged = [entry for entry in improved if not np.isnan(entry.value)]
        within = [entry for entry in judged if not self._is_impossible(entry)]
        best = max(within or judged or improved[-1:], key=lambda entry: (entry.value, entry.number))
        notes: tuple[str, ...] = ()
        if len(within) < len(judged):
            low, high = self.possible
            notes = (
                f"Warning: {len(judged) - len(within)} of {len(improved)} policies have estimated values that these "
                f"rewards do not allow ({low:.4g} to {high:.4g}): which policy is best is not known. Regularise more, "
                "or try them (judge=).",
            )
        assert best.policy is not None
        policy = GreedyPolicy(features, best.policy, epsilon=epsilon, actions=actions)
        return PolicyIteration(policy, tuple(self.entries), self.stopped, self.cycle, best.number, judged_by, notes)


def start_weights(start: ArrayLike | GreedyPolicy | None, features: StateAction) -> FloatArray | None:
    """The weights that the first policy is greedy in, checked; None: the uniform policy."""
    if start is None:
        return None
    weights = as_floats(start.weights if isinstance(start, GreedyPolicy) else start, "start", 1)
    if weights.shape != (features.n_features,):
        raise InvalidParameterError(
            f"start has shape {weights.shape}: pass ({features.n_features},) weights, a GreedyPolicy, or None"
        )
    return weights
