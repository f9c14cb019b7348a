"""Finite Markov processes whose values and LSTD systems are known exactly: the oracles of the test suite."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, as_real, locked
from tlstd.data.transitions import Transitions, trace_discounts
from tlstd.errors import InvalidParameterError

ROUNDING = 1e-9
"""Largest error accepted in a sum of probabilities; a smaller one is taken for rounding."""

BLOCK = 8192
"""Random numbers are drawn in whole blocks, so that a longer sample begins with the shorter one."""


class Trajectory(NamedTuple):
    """A sampled stream of states, before any features; every array has one entry per step."""

    states: IntArray
    """The state that each step leaves."""
    next_states: IntArray
    """The state that each step enters; ``n_states`` if it terminates."""
    rewards: FloatArray
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    rhos: FloatArray
    """Importance ratios, all one on-policy."""


class _Outcomes(NamedTuple):
    """All that can happen in one step, flat and sorted by ``state``."""

    state: IntArray
    successor: IntArray
    probability: FloatArray
    reward: FloatArray
    rho: FloatArray


class MarkovRewardProcess:
    """A finite Markov chain with rewards and linear features, everything about it in closed form.

    It is the policy evaluation problem of section 2 of Gehring, Pan & White (2016) with the policy already folded
    into ``P``, extended to episodes: rows of ``P`` may sum to less than one, the missing mass terminates, and the
    stream of experience restarts from ``start``. A terminated step leads to all-zero features.

    Parameters
    ----------
    P : (n, n)
        Transition probabilities between the (non-terminal) states; rows sum to at most one.
    rewards : (n,) or (n, n)
        Reward of a step by the state it leaves, or by the states it leaves and enters.
    X : (n, d)
        One row of features per state.
    gamma : float in [0, 1]
        Discount. One is allowed if termination can be reached from every state.
    start : (n,), optional
        Distribution of an episode's first state; uniform if left out.
    termination_rewards : (n,), optional
        Reward of the step that terminates, by the state it leaves. If left out: ``rewards`` if they are (n,), zero
        if they are (n, n).
    reward_noise : float >= 0
        Standard deviation of Gaussian noise added to every sampled reward. It changes neither values nor system.
    name : str

    Attributes
    ----------
    P, X, gamma, start, name
        As given; arrays are read-only copies.
    termination : (n,)
        Probability that a step from each state terminates.
    expected_rewards : (n,)
        Mean reward of a step from each state.
    n_states, n_features : int

    Notes
    -----
    Dense: O(n²) memory, O(n³) time for each exact quantity. Meant for up to a few thousand states.

    References
    ----------
    C. Gehring, Y. Pan, M. White, "Incremental Truncated LSTD", IJCAI 2016, section 2.

    Example
    -------
    A coin decides at every step whether to go on (reward 1) or to stop (reward 1 as well): two steps on average.

    >>> process = MarkovRewardProcess([[0.5]], [1.0], [[1.0]], gamma=1.0)
    >>> process.values()
    array([2.])
    >>> A, b = process.system(0.0)
    >>> A, b
    (array([[0.5]]), array([1.]))
    >>> stream = process.sample(1000, np.random.default_rng(0))
    >>> len(stream), float(stream.rewards.mean())
    (1000, 1.0)
    """

    def __init__(
        self,
        P: ArrayLike,
        rewards: ArrayLike,
        X: ArrayLike,
        *,
        gamma: float,
        start: ArrayLike | None = None,
        termination_rewards: ArrayLike | None = None,
        reward_noise: float = 0.0,
        name: str = "Markov reward process",
    ) -> None:
        self.name = name
        self.P = _probabilities(P, "P", 2)
        n = self.n_states = self.P.shape[0]
        if self.P.shape != (n, n) or n == 0:
            raise InvalidParameterError(f"P has shape {self.P.shape}: pass a square matrix, one row per state")
        self.X = _floats(X, "X", 2)
        if self.X.shape[0] != n or self.X.shape[1] == 0:
            raise InvalidParameterError(f"X has shape {self.X.shape}: pass one row of features for each of {n} states")
        self.n_features = self.X.shape[1]
        if start is None:
            self.start = locked(np.full(n, 1.0 / n))
        else:
            self.start = _distributions(start, "start", (n,))
        self.gamma = parameters.real("gamma", gamma, low=0.0, high=1.0)
        self.reward_noise = parameters.real("reward_noise", reward_noise, low=0.0, open_high=True)

        self.termination = locked(_missing_mass(self.P))
        self._rewards = _floats(rewards, "rewards", None)
        if self._rewards.shape not in ((n,), (n, n)):
            raise InvalidParameterError(f"rewards have shape {self._rewards.shape}: pass ({n},) or ({n}, {n})")
        if termination_rewards is not None:
            self._termination_rewards = _floats(termination_rewards, "termination_rewards", 1)
        else:
            self._termination_rewards = self._rewards if self._rewards.ndim == 1 else np.zeros(n)
        if self._termination_rewards.shape != (n,):
            raise InvalidParameterError(
                f"termination_rewards have shape {self._termination_rewards.shape}: pass one for each of {n} states"
            )
        by_successor = np.broadcast_to(self._rewards.reshape(n, -1), (n, n))
        self.expected_rewards = locked(
            (self.P * by_successor).sum(axis=1) + self.termination * self._termination_rewards
        )
        if self.gamma == 1.0:
            self._check_termination()

    def values(self) -> FloatArray:
        """Exact value of every state, V = (I − γP)⁻¹ r, shape (n,). Costs O(n³)."""
        bellman = np.eye(self.n_states) - self.gamma * self.P
        return np.linalg.solve(bellman, self.expected_rewards).astype(np.float64, copy=False)

    def state_distribution(self) -> FloatArray:
        """Long-run frequency of the states that steps leave, shape (n,).

        It is the stationary distribution of the stream that restarts upon termination, whose transition matrix is
        P + (1 − P𝟙) startᵀ. States that the stream leaves for good, or never meets, have frequency zero. Costs O(n³).

        Raises
        ------
        InvalidParameterError
            If the frequencies depend on chance, because the stream can end up in two different sets of states.

        Example
        -------
        >>> import tlstd.domains
        >>> tlstd.domains.random_walk(3).state_distribution()
        array([0.25, 0.5 , 0.25])
        """
        P, termination = self._stream_matrix()
        return _stationary(P + np.outer(termination, self.start), self.start > 0.0, self.name)

    def system(self, lambda_: float) -> tuple[FloatArray, FloatArray]:
        """Exact LSTD(λ) system: A = Xᵀ D (I − γλP)⁻¹ (I − γP) X and b = Xᵀ D (I − γλP)⁻¹ r.

        D holds :meth:`state_distribution`. These are the limits of the averages (1/T) Σ z_t (x_t − γ_{t+1} x_{t+1})ᵀ
        and (1/T) Σ z_t r_{t+1} along :meth:`sample`: because the trace is cut where an episode starts, the mean trace
        at a state adds up paths *within* an episode only, Σ_k (γλ)^k D P^k, with the sub-stochastic P and not the
        restarting matrix; and because a terminated step does not bootstrap, so does the mean of x_t − γ_{t+1} x_{t+1}.

        This is the process without time limits: a stream sampled with ``truncate_after`` visits states with
        other frequencies and cuts traces earlier, and converges to another system.

        Parameters
        ----------
        lambda_ : float in [0, 1]

        Returns
        -------
        A : (d, d)
        b : (d,)
        """
        parameters.real("lambda_", lambda_, low=0.0, high=1.0)
        identity = np.eye(self.n_states)
        right = np.column_stack([(identity - self.gamma * self.P) @ self.X, self.expected_rewards])
        averaged = np.linalg.solve(identity - self.gamma * lambda_ * self.P, right)
        both = self.X.T @ (self.state_distribution()[:, None] * averaged)
        return both[:, :-1], both[:, -1]

    def solution(self, lambda_: float) -> FloatArray:
        """Weights of the LSTD(λ) fixed point, A w = b, shape (d,).

        Features that depend linearly on each other (over the states that are visited) leave many solutions with
        the same predictions; this is the shortest. The rank is decided on D^½ X, where zero is zero up to
        rounding, and not on A.

        Example
        -------
        >>> import tlstd.domains
        >>> tlstd.domains.boyan_chain().solution(0.5).round(9) + 0.0
        array([-24., -16.,  -8.,   0.])
        """
        A, b = self.system(lambda_)
        weighted = np.sqrt(self.state_distribution())[:, None] * self.X
        _, sigma, Vt = np.linalg.svd(weighted, full_matrices=False)
        V = Vt[sigma > max(weighted.shape) * np.finfo(np.float64).eps * sigma[0]].T
        weights: FloatArray = V @ np.linalg.solve(V.T @ A @ V, V.T @ b)
        return weights

    def trajectory(self, n_steps: int, rng: np.random.Generator, *, truncate_after: int | None = None) -> Trajectory:
        """Sample ``n_steps`` steps of states and rewards; :meth:`sample` puts the features to them.

        The first ``n`` steps do not depend on ``n_steps``, except that the last step of a stream counts as truncated
        unless it terminates. Costs O(1) per step, compiled, plus O(n²).

        Parameters
        ----------
        n_steps : int >= 1
        rng : np.random.Generator
        truncate_after : int >= 1, optional
            Episodes that have not terminated after this many steps are truncated, and the stream restarts.
        """
        parameters.integer("n_steps", n_steps)
        parameters.generator("rng", rng)
        if truncate_after is not None:
            parameters.integer("truncate_after", truncate_after)
        outcomes = self._outcomes()
        chosen, noise, truncated = _walk(outcomes, self.start, n_steps, rng, truncate_after, self.reward_noise)
        next_states = outcomes.successor[chosen]
        terminated = next_states == self.n_states
        truncated[-1] |= not terminated[-1]
        rewards = outcomes.reward[chosen] + noise
        return Trajectory(outcomes.state[chosen], next_states, rewards, terminated, truncated, outcomes.rho[chosen])

    def sample(
        self, n_steps: int, rng: np.random.Generator, *, sparse: bool = False, truncate_after: int | None = None
    ) -> Transitions:
        """Record a stream of exactly ``n_steps`` transitions through episodes, restarting after each.

        The last episode is cut by the length: its last step bootstraps. The features are stored once per *state*.

        Parameters
        ----------
        n_steps : int >= 1
        rng : np.random.Generator
        sparse : bool
            Whether the features are stored as ``scipy.sparse.csr_array``.
        truncate_after : int >= 1, optional
            Time limit of an episode, see :meth:`trajectory`; such a stream no longer converges to :meth:`system`.

        Example
        -------
        >>> import tlstd.domains
        >>> stream = tlstd.domains.boyan_chain().sample(5, np.random.default_rng(0), sparse=True)
        >>> stream.rewards
        array([-3., -3., -3., -3., -3.])
        >>> stream[0].x.toarray()
        array([1., 0., 0., 0.])
        """
        path = self.trajectory(n_steps, rng, truncate_after=truncate_after)
        store = np.vstack([self.X, np.zeros(self.n_features)])  # row n: where terminated steps lead
        return Transitions.from_rows(
            sp.csr_array(store) if parameters.flag("sparse", sparse) else store,
            path.states,
            path.rewards,
            path.next_states,
            discounts=np.where(path.terminated, 0.0, self.gamma),
            trace_discounts=trace_discounts(path.terminated | path.truncated, self.gamma),
            rhos=path.rhos,
        )

    def _stream_matrix(self) -> tuple[FloatArray, FloatArray]:
        """Transition and termination probabilities of the stream that is observed."""
        return self.P, self.termination

    def _outcomes(self) -> _Outcomes:
        n = self.n_states
        extended = np.column_stack([self.P, self.termination])
        state, successor = np.nonzero(extended)
        ends = successor == n
        by_successor = np.broadcast_to(self._rewards.reshape(n, -1), (n, n))
        reward = np.where(ends, self._termination_rewards[state], by_successor[state, np.where(ends, 0, successor)])
        return _Outcomes(state, successor, extended[state, successor], reward, np.ones(state.size))

    def _check_termination(self) -> None:
        ends = self.termination > 0.0
        while (grown := ends | (self.P[:, ends] > 0.0).any(axis=1)).sum() > ends.sum():
            ends = grown
        if not ends.all():
            raise InvalidParameterError(
                f"gamma is 1 but state {int(np.flatnonzero(~ends)[0])} of {self.name!r} never terminates, so values "
                "are not finite: use gamma < 1"
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.name!r}, {self.n_states} states, {self.n_features} features, "
            f"gamma={self.gamma:g})"
        )


class OffPolicyProcess(MarkovRewardProcess):
    """A finite decision process that evaluates one policy from the experience of another.

    Values, ``P`` and ``expected_rewards`` are those of the target policy; the stream, and with it
    ``state_distribution()``, are those of the behaviour policy. With importance ratios ρ_t = π(a_t|s_t)/μ(a_t|s_t) and
    the trace z_t = ρ_t (γ_t λ z_{t−1} + x_t), the ratio of a step's own action makes the mean of ρ_t (x_t − γ x_{t+1})
    that of the target policy, and the ratios inside the trace do so for the paths that lead to it; only the
    frequency with which paths begin stays that of the behaviour. So ``system`` is
    A = Xᵀ D_μ (I − γλP_π)⁻¹ (I − γP_π) X and b = Xᵀ D_μ (I − γλP_π)⁻¹ r_π.

    The averages along a stream have finite variance only while (γλ)² E_μ[ρ²|s] stays below one.

    Parameters
    ----------
    P : (n, n_actions, n)
        Transition probabilities; rows may sum to less than one, the rest terminates.
    rewards : (n, n_actions)
        Reward of each action, wherever it leads.
    X : (n, d)
    target, behaviour : (n, n_actions)
        Action probabilities. The behaviour must take every action that the target takes.
    gamma, start, reward_noise, name
        As for :class:`MarkovRewardProcess`.

    References
    ----------
    H. Yu, "Convergence of least squares temporal difference methods under general conditions", ICML 2010.

    Example
    -------
    One state, two actions with rewards 0 and 1; the target always takes the second, the behaviour either.

    >>> P = np.full((1, 2, 1), 0.5)
    >>> process = OffPolicyProcess(P, [[0.0, 1.0]], [[1.0]], target=[[0, 1]], behaviour=[[0.5, 0.5]], gamma=1.0)
    >>> process.values()
    array([2.])
    >>> stream = process.sample(6, np.random.default_rng(0))
    >>> stream.rewards, stream.rhos
    (array([0., 0., 0., 1., 1., 1.]), array([0., 0., 0., 2., 2., 2.]))
    """

    def __init__(
        self,
        P: ArrayLike,
        rewards: ArrayLike,
        X: ArrayLike,
        *,
        target: ArrayLike,
        behaviour: ArrayLike,
        gamma: float,
        start: ArrayLike | None = None,
        reward_noise: float = 0.0,
        name: str = "off-policy process",
    ) -> None:
        self._action_P = _probabilities(P, "P", 3)
        n, n_actions = self._action_P.shape[:2]
        if self._action_P.shape != (n, n_actions, n) or n_actions == 0:
            raise InvalidParameterError(f"P has shape {self._action_P.shape}: pass (n_states, n_actions, n_states)")
        self._action_rewards = _floats(rewards, "rewards", 2)
        if self._action_rewards.shape != (n, n_actions):
            raise InvalidParameterError(
                f"rewards have shape {self._action_rewards.shape}: pass one per state and action, ({n}, {n_actions})"
            )
        self.target = _distributions(target, "target", (n, n_actions))
        self.behaviour = _distributions(behaviour, "behaviour", (n, n_actions))
        uncovered = np.argwhere((self.target > 0.0) & (self.behaviour == 0.0))
        if uncovered.size:
            state, action = (int(i) for i in uncovered[0])
            raise InvalidParameterError(
                f"behaviour[{state}, {action}] is 0 but target[{state}, {action}] is {self.target[state, action]:g}: "
                "the behaviour must take every action that the target takes"
            )
        super().__init__(
            np.einsum("sa,sat->st", self.target, self._action_P),
            (self.target * self._action_rewards).sum(axis=1),
            X,
            gamma=gamma,
            start=start,
            reward_noise=reward_noise,
            name=name,
        )

    def _stream_matrix(self) -> tuple[FloatArray, FloatArray]:
        P = np.einsum("sa,sat->st", self.behaviour, self._action_P)
        return P, _missing_mass(P)

    def _outcomes(self) -> _Outcomes:
        extended = np.concatenate([self._action_P, _missing_mass(self._action_P)[:, :, None]], axis=2)
        joint = self.behaviour[:, :, None] * extended
        state, action, successor = np.nonzero(joint)
        return _Outcomes(
            state,
            successor,
            joint[state, action, successor],
            self._action_rewards[state, action],
            self.target[state, action] / self.behaviour[state, action],
        )


def _walk(
    outcomes: _Outcomes,
    start: FloatArray,
    n_steps: int,
    rng: np.random.Generator,
    truncate_after: int | None,
    reward_noise: float,
) -> tuple[IntArray, FloatArray, NDArray[np.bool_]]:
    """Return the outcome of every step, the noise of its reward, and whether it reached the time limit."""
    n = start.size
    first = np.searchsorted(outcomes.state, np.arange(n + 1))
    cumulative = [_inverse_cdf(outcomes.probability[i:j]) for i, j in pairwise(first.tolist())]
    starts = np.flatnonzero(start).tolist()
    start_cumulative = _inverse_cdf(start[starts])
    offsets, successors = first.tolist(), outcomes.successor.tolist()
    limit = 0 if truncate_after is None else truncate_after  # a length is never 0

    chosen = np.empty(n_steps, dtype=np.int64)
    noise = np.zeros(n_steps)
    cut: list[int] = []
    state, length = starts[bisect_right(start_cumulative, rng.random())], 0
    for begin in range(0, n_steps, BLOCK):
        size = min(BLOCK, n_steps - begin)
        steps, restarts = (column[:size].tolist() for column in rng.random((2, BLOCK)))
        if reward_noise > 0.0:
            noise[begin : begin + size] = reward_noise * rng.standard_normal(BLOCK)[:size]
        taken = []
        for u, restart in zip(steps, restarts, strict=True):
            outcome = offsets[state] + bisect_right(cumulative[state], u)
            taken.append(outcome)
            state = successors[outcome]
            length += 1
            if state == n or length == limit:
                if state != n:
                    cut.append(begin + len(taken) - 1)
                state, length = starts[bisect_right(start_cumulative, restart)], 0
        chosen[begin : begin + size] = taken
    truncated = np.zeros(n_steps, dtype=np.bool_)
    truncated[cut] = True
    return chosen, noise, truncated


def _inverse_cdf(probability: FloatArray) -> list[float]:
    """Inner boundaries of the cumulative distribution: ``bisect_right`` in them inverts it, whatever the rounding."""
    cumulative = np.cumsum(probability)
    boundaries: list[float] = (cumulative[:-1] / cumulative[-1]).tolist()
    return boundaries


def _stationary(Q: FloatArray, start: NDArray[np.bool_], name: str) -> FloatArray:
    """Stationary distribution of the stochastic matrix ``Q`` on the one closed class that ``start`` leads to."""
    edges = Q > 0.0
    reached = start
    while (grown := reached | edges[reached].any(axis=0)).sum() > reached.sum():
        reached = grown
    members = np.flatnonzero(reached)
    inside = edges[np.ix_(members, members)]
    n_classes, label = connected_components(sp.csr_array(inside), connection="strong")
    source, goal = np.nonzero(inside)
    left = label[source[label[source] != label[goal]]]
    closed = np.setdiff1d(np.arange(n_classes), left)
    if closed.size != 1:
        raise InvalidParameterError(
            f"{name!r} can end up in {closed.size} separate sets of states, so its state distribution depends on "
            "chance: start in one of them, or let episodes terminate"
        )
    members = members[label == closed[0]]
    balance = Q[np.ix_(members, members)].T - np.eye(members.size)
    balance[-1] = 1.0  # one balance equation follows from the others; the probabilities add up instead
    normalisation = np.zeros(members.size)
    normalisation[-1] = 1.0
    frequency = np.maximum(np.linalg.solve(balance, normalisation), 0.0)
    distribution = np.zeros(Q.shape[0])
    distribution[members] = frequency / frequency.sum()
    return distribution


def _missing_mass(P: FloatArray) -> FloatArray:
    """What the last axis lacks to one; zero where it lacks no more than rounding."""
    missing = 1.0 - P.sum(axis=-1)
    return np.where(missing > ROUNDING, missing, 0.0)


def _floats(value: ArrayLike, name: str, ndim: int | None) -> FloatArray:
    """Return a read-only float64 copy of ``value``, finite."""
    array = as_real(value, name, InvalidParameterError).copy()
    if ndim is not None and array.ndim != ndim:
        raise InvalidParameterError(f"{name} has shape {array.shape}: it must have {ndim} dimension(s)")
    if not np.isfinite(array).all():
        raise InvalidParameterError(f"{name} contains {array[~np.isfinite(array)][0]}: pass finite numbers")
    return locked(array)


def _probabilities(value: ArrayLike, name: str, ndim: int) -> FloatArray:
    """Return ``value`` as probabilities that add up to at most one along the last axis."""
    array = _floats(value, name, ndim)
    if array.size and array.min() < 0.0:
        raise InvalidParameterError(f"{name} contains {array.min()}: probabilities are >= 0")
    total = array.sum(axis=-1)
    if total.size and total.max() > 1.0 + ROUNDING:
        raise InvalidParameterError(
            f"{name} has a row that adds up to {total.max()}: rows of probabilities add up to at most 1 "
            "(what is missing terminates)"
        )
    return array


def _distributions(value: ArrayLike, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return ``value`` as probabilities that add up to one along the last axis."""
    array = _probabilities(value, name, len(shape))
    if array.shape != shape:
        raise InvalidParameterError(f"{name} has shape {array.shape}: it must have {shape}")
    total = array.sum(axis=-1, keepdims=True)
    if total.min() < 1.0 - ROUNDING:
        raise InvalidParameterError(f"{name} adds up to {total.min()}: probabilities over all choices add up to 1")
    return locked(array / total)
