"""The target policy, and the ratios of its probabilities to those of the logged policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from traceback import extract_tb
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.core.arrays import FloatArray, IntArray, Matrix, as_array, as_floats
from tlstd.errors import InvalidInputError, InvalidParameterError, TlstdError
from tlstd.logs.log import Log

Policy: TypeAlias = Callable[[NDArray[Any]], ArrayLike]
"""From observations (M, D), or (M,) numbers of states, to what is done in them.

Discrete actions: probabilities (M, n_actions), or the actions (M,) themselves. Continuous actions: one draw for each
observation, (M, A).
"""
ROUNDING = 1e-6
"""Error accepted in sums of probabilities."""
DRAWS = 8
"""Actions that are drawn in each state where actions are continuous and the policy is random."""
LEAST_PROBABILITY = 1e-6
"""Of an action that was taken, by the estimated behaviour."""


@dataclass(frozen=True, eq=False)
class Target:
    """The target policy, checked, for one log.

    One of three is not None: a function; ``table``, probabilities of all actions in the state of each row; or
    ``logged``, those of the logged actions alone.
    """

    function: Policy | None = None
    table: FloatArray | None = None
    logged: FloatArray | None = None

    def of_rows(self, start: int, stop: int) -> Target:
        """The target for a piece of the log; its table has one more row, if there is one."""
        table = None if self.table is None else self.table[start : stop + 1]
        return replace(self, table=table, logged=None if self.logged is None else self.logged[start:stop])

    def n_actions(self, log: Log) -> int:
        """Number of discrete actions, of the log and of the policy."""
        assert log.actions is not None
        n = int(log.actions.max(initial=0)) + 1
        if self.table is not None:
            return max(n, int(self.table.shape[1]))
        if self.function is not None:
            answer = np.shape(self._ask(log.observations[:2]))
            if len(answer) == 2:
                return max(n, int(answer[1]))
        return n

    def _ask(self, observations: NDArray[Any]) -> ArrayLike:
        """What the function returns; what it raises is said with where it happened."""
        assert self.function is not None
        try:
            return self.function(observations)
        except (TlstdError, KeyboardInterrupt):
            raise
        except BaseException as error:  # sys.exit() in a policy is a mistake of the policy
            at = extract_tb(error.__traceback__)[-1]
            kinds = "numbers of states (M,)" if observations.ndim == 1 else "observations (M, D)"
            raise InvalidInputError(
                f"the policy failed when it was asked about {kinds} of shape {observations.shape}: "
                f"{type(error).__name__}: {error} (line {at.lineno} of {at.filename}). Mend the function: it gets many "
                "states at once, and returns probabilities (M, n_actions) or actions"
            ) from error

    def select(self, rows: IntArray | None) -> Target:
        """The target for some rows of the log; None: all of them."""
        if rows is None:
            return self
        table = None if self.table is None else self.table[rows]
        return replace(self, table=table, logged=None if self.logged is None else self.logged[rows])

    def probabilities(self, observations: NDArray[Any], n_actions: int) -> FloatArray:
        """(M, n_actions) by the function, for discrete actions."""
        assert self.function is not None
        answer = as_array(self._ask(observations), "what the policy returned")
        m = len(observations)
        if answer.dtype.kind in "USO":
            raise InvalidInputError(
                f"the policy returned {answer.ravel()[:1].tolist()} for {m} observations: return numbers of actions "
                f"from 0 to {n_actions - 1}, or probabilities {(m, n_actions)}; words are understood where the log's "
                "actions are words"
            )
        if answer.shape == (m,) and answer.dtype.kind in "iub":
            if m and (answer.min() < 0 or answer.max() >= n_actions):
                bad = answer[(answer < 0) | (answer >= n_actions)][0]
                raise InvalidInputError(f"the policy returned action {bad}: they are from 0 to {n_actions - 1}")
            return np.eye(n_actions)[answer.astype(np.int64)]
        return distributions(answer, (m, n_actions), "the policy")

    def draws(self, observations: NDArray[Any], size: int) -> list[FloatArray]:
        """Actions (M, A) by the function, for continuous actions: one array if it is not random, else ``DRAWS``."""
        assert self.function is not None
        drawn: list[FloatArray] = []
        while len(drawn) < DRAWS:
            actions = as_floats(self._ask(observations), "what the policy returned", None)
            actions = actions.reshape(len(actions), -1) if actions.ndim else actions
            if actions.shape != (len(observations), size):
                raise InvalidInputError(
                    f"the policy returned shape {actions.shape} for {len(observations)} observations: return actions "
                    f"of shape ({len(observations)}, {size}), one draw for each"
                )
            drawn.append(actions)
            if len(drawn) == 2 and (drawn[0] == drawn[1]).all():
                return drawn[:1]
        return drawn


class WordedPolicy:
    """A policy that may return the log's words for actions, where numbers or probabilities are expected.

    Example
    -------
    >>> policy = WordedPolicy(lambda states: np.where(states > 0, "up", "down"), ("down", "up"))
    >>> policy(np.array([0, 1]))
    array([0, 1])
    """

    def __init__(self, function: Policy, names: tuple[str, ...]) -> None:
        self.function, self.names = function, names

    def __call__(self, observations: NDArray[Any]) -> ArrayLike:
        """What the function returns, with numbers in place of words."""
        answer = self.function(observations)
        words = np.asarray(answer)
        if words.dtype.kind not in "USO":
            return answer
        words = words.astype(str)
        places = np.minimum(np.searchsorted(self.names, words), len(self.names) - 1)
        unknown = np.asarray(self.names)[places] != words
        if unknown.any():
            known = ", ".join(map(repr, self.names))
            raise InvalidInputError(f"the policy returned action {words[unknown][0].item()!r}: the log has {known}")
        return places


def as_target(policy: Any, log: Log) -> Target:
    """The policy as given, checked against the log."""
    if log.actions is None:
        raise InvalidInputError("a policy was given, but the log has no actions: name their column")
    if callable(policy):
        return Target(function=policy if log.action_names is None else WordedPolicy(policy, log.action_names))
    if isinstance(policy, str):
        raise InvalidParameterError(
            f"policy is {policy!r}: pass a function, an array of probabilities or 'logged'; module:function and "
            "column:name are understood on the command line only"
        )
    array = as_floats(policy, "policy", None)
    n = len(log)
    continuous = log.actions.ndim != 1
    if continuous and array.shape != (n,):
        raise InvalidParameterError(
            "the log has continuous actions: pass a function from observations to actions, or the densities (N,) of "
            "the logged ones"
        )
    if array.shape == (n,):
        if n and not (array.min() >= 0.0 and (continuous or array.max() <= 1.0 + ROUNDING)):
            raise InvalidInputError("policy has numbers outside [0, 1]: pass probabilities of the logged actions")
        return Target(logged=array)
    if array.ndim != 2 or array.shape[1] <= int(log.actions.max(initial=0)):
        raise InvalidInputError(
            f"policy has shape {array.shape}: pass ({n}, n_actions) probabilities of all actions, one row a step of "
            f"the log, ({n},) of the logged ones, or a function; actions go up to {int(log.actions.max(initial=0))}"
        )
    return Target(table=distributions(array, (n, array.shape[1]), "policy"))


def distributions(array: NDArray[Any], shape: tuple[int, int], name: str) -> FloatArray:
    """Rows of probabilities, checked."""
    if array.shape != shape or array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"{name} has shape {array.shape} and type {array.dtype} for {shape[0]} observations: probabilities have "
            f"shape {shape}, and actions are {shape[0]} integers"
        )
    rows = array.astype(np.float64)
    bad = ~((rows >= -ROUNDING).all(axis=1) & (np.abs(rows.sum(axis=1) - 1.0) <= ROUNDING))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(f"row {row} of {name} is {rows[row].tolist()}: probabilities are >= 0 and add up to 1")
    return np.maximum(rows, 0.0)


def of_logged_actions(target: Target, log: Log, n_actions: int) -> FloatArray:
    """The target's probability (N,) of what was done."""
    if target.logged is not None:
        return target.logged
    table = target.table if target.table is not None else target.probabilities(log.observations, n_actions)
    return table[np.arange(len(log)), log.actions]


def fitted_probabilities(X: Matrix, actions: IntArray, n_actions: int) -> FloatArray:
    """Probabilities (N,) of the actions taken, by softmax regression on features.

    Minimises -mean log p(a|x) + ‖W‖²/(2N), by L-BFGS. Cost: O(entries · n_actions) an iteration, at most 200.

    Example
    -------
    >>> X = np.eye(2)[[0, 0, 0, 0, 1, 1, 1, 1] * 50]
    >>> actions = np.array([0, 0, 0, 1, 1, 1, 1, 1] * 50)
    >>> fitted_probabilities(X, actions, 2)[[0, 3, 4]].round(2)
    array([0.75, 0.25, 0.99])
    """
    from scipy.optimize import minimize  # here: it takes long to import, and hardly any process gets here

    seen = slice(None) if isinstance(X, np.ndarray) else np.unique(X.indices)
    Z = X[:, seen]
    n, taken = len(actions), np.eye(n_actions)[actions]
    transposed = Z.T if isinstance(Z, np.ndarray) else sp.csr_array(Z.T)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        W = flat.reshape(-1, n_actions)
        scores = Z @ W
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        gradient = transposed @ (np.exp(logs) - taken) / n + W / n
        return float(-(logs * taken).sum() / n + (W * W).sum() / (2 * n)), gradient.ravel()

    found = minimize(loss, np.zeros(Z.shape[1] * n_actions), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    scores = Z @ found.x.reshape(-1, n_actions)
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    probability: FloatArray = np.maximum(chances[np.arange(n), actions], LEAST_PROBABILITY)
    return probability
