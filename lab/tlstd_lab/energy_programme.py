"""Energy storage by dynamic programming: a near-optimal policy, exact values, and what hiding the time costs.

On the grid of whole numbers (71,176 states at each of 100 phases with the usual parameters) all of it is a matter of
small matrix products, because the noises of renewable, price and demand are independent and leave the storage alone: if
V_t are the values at phase t, then after the decision, with R in storage,

    W_t(R, E, P) = Σ_E' Σ_P' Σ_D' p(E'|E) p(P'|P) p_{t+1}(D') V_{t+1}(R, E', P', D'),

and V_t = contribution + γ·W_t(R + η_c·charge − discharge, E, P). With a charge efficiency below 1 the storage leaves
the grid and W is interpolated linearly in R; what is exact below is then exact for the process that is rounded to a
neighbouring grid point at random, with the same mean, and approximate for the domain (how far: ``docs/domains.md``).

The policy is not optimised at the γ = 0.8 at which it is evaluated [P]: with so short a horizon it hardly pays to store
anything. It maximises the mean reward per step. Results are kept in the user's cache (``tlstd_lab.cache``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.domains.energy_storage import EnergyStorage, StoragePolicy, contribution
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd_lab.cache import cached_arrays

_VERSION = 1  # of what is computed here; raise it when the numbers change, so that old files are left alone
_TIE = 1e-9  # differences below this are rounding
_ERROR = 1e-9  # of exact values
_PATIENCE = 20  # sweeps without progress after which there is none to come
_MAX_SWEEPS = 1000


def optimal_policy(domain: EnergyStorage, *, tolerance: float = 0.01, cache: bool = True) -> StoragePolicy:
    """Return the policy of whole net charges with the largest mean reward per step, by periodic backward induction.

    Undiscounted backward induction through the ``period`` stages, as a finite problem would have it, repeated with the
    first stage's values (less a constant) as the final ones. One sweep from zero empties the storage before the last
    stage, as if nothing came after; but the task goes on and the storage carries over, so the sweeps go on until they
    agree. Let δ be what one more sweep adds to the values: both the best possible reward per period and that of the
    sweep's own policy lie between min δ and max δ, and sweeps end when these are ``tolerance`` apart.

    Ties go to the smallest net charge in size, then to discharging; differences below 1e-9 are ties, so that rounding
    does not decide.

    Parameters
    ----------
    domain : EnergyStorage
    tolerance : float > 0
        Largest possible loss of reward per period against the best policy of whole net charges on the grid.
    cache : bool
        Whether to use the user's cache.

    Returns
    -------
    StoragePolicy
        Cost: per sweep, for each phase and net charge O(grid points), and the products by which W_t is made.

    Example
    -------
    Cheap energy is bought, expensive energy is sold.

    >>> domain = EnergyStorage(capacity=4, max_flow=2, renewable=(0, 2), price=(1, 4), price_walk=(1.0, 1), period=6)
    >>> policy = optimal_policy(domain, cache=False)
    >>> policy.act(np.array([[2.0, 0.0, 1.0, 3.0, 0.0], [2.0, 0.0, 4.0, 3.0, 0.0]]), np.zeros(2))
    array([ 2., -2.])
    """
    parameters.real("tolerance", tolerance, low=0.0, open_low=True)

    def compute() -> dict[str, NDArray[Any]]:
        return {"table": _optimise(_Grid(domain), tolerance)}

    arrays = _kept("energy-policy", {"domain": domain.parameters, "tolerance": float(tolerance)}, compute, cache)
    return StoragePolicy(domain, arrays["table"])


def greedy(domain: EnergyStorage) -> StoragePolicy:
    """Return the myopic policy: the largest reward of this step; among equals, the one that leaves most in storage.

    It sells whatever there is, and fills an empty storage with surplus wind.

    Example
    -------
    >>> policy = greedy(EnergyStorage())
    >>> policy.act(np.array([[9.0, 7.0, 50.0, 3.0, 0.0], [0.0, 7.0, 50.0, 3.0, 0.0]]), np.zeros(2))
    array([-5.,  4.])
    """
    grid = _Grid(domain)
    by_level = np.argsort(-grid.actions)
    best, table = np.full(grid.shape[1:], -np.inf), np.zeros(grid.shape[1:], dtype=np.int8)
    for a in by_level:
        _improve(best, table, grid.rewards[a], grid.actions[a])
    return StoragePolicy(domain, np.broadcast_to(table, grid.shape))


def never_store(domain: EnergyStorage) -> StoragePolicy:
    """Return the policy that leaves the storage alone.

    Example
    -------
    >>> never_store(EnergyStorage()).act(np.array([[9.0, 7.0, 50.0, 3.0, 0.0]]), np.zeros(1))
    array([0.])
    """
    return StoragePolicy(domain, np.zeros(domain.table_shape, dtype=np.int8))


def exact_values(
    domain: EnergyStorage,
    policy: StoragePolicy,
    states: ArrayLike,
    *,
    gamma: float = EnergyStorage.gamma,
    cache: bool = True,
) -> FloatArray:
    """Return V^π of states, with an error below 1e-9 (full charge efficiency, whole storages).

    Between whole storages, and with less than full efficiency, values are interpolated linearly, which is not exact.

    The first call for a policy and γ sweeps backward through the period, starting from zero, until a bound on the
    remaining error is small: two sweeps with the usual parameters, where γ^100 = 2·10⁻¹⁰.

    Parameters
    ----------
    domain : EnergyStorage
    policy : StoragePolicy
    states : (N, 5)
        Renewable, price and demand whole; the storage need not be, see above.
    gamma : float in [0, 1)
    cache : bool
        Whether to use the user's cache.

    Returns
    -------
    (N,)
        Cost: two sweeps the first time with the usual parameters.

    Example
    -------
    Nothing is stored, wind is steady at 2 and meets a demand of 1 at a price of 1 or 2.

    >>> domain = EnergyStorage(renewable=(2, 3), renewable_step=0, price=(1, 2), price_walk=(1.0, 0),
    ...                        jump_probability=0.0, demand_wave=(1.0, 0.0), demand_noise=(1.0, 0))
    >>> states = [[5.0, 2.0, 1.0, 1.0, 0.0], [5.0, 2.0, 2.0, 1.0, 0.0]]
    >>> exact_values(domain, never_store(domain), states, gamma=0.8, cache=False).round(9)
    array([ 5., 10.])
    """
    checked = domain.check_states(states)
    outside = checked[:, 1:4][checked[:, 1:4] != np.floor(checked[:, 1:4])]
    if outside.size:
        raise InvalidInputError(f"states contain {outside[0]:g}: renewable, price and demand must be whole numbers")
    after = _values_after(domain, policy, gamma, cache)
    storage, renewable, price, demand, phase = checked.T
    charge, discharge = domain.flows(storage, policy.act(checked, np.zeros(len(checked))))
    reward = contribution(renewable, price, demand, charge, discharge, discharge_efficiency=domain.discharge_efficiency)
    below, weight = _between(storage + domain.charge_efficiency * charge - discharge, domain)
    e, p = (renewable - domain.low[1]).astype(np.int64), (price - domain.low[2]).astype(np.int64)
    t = phase.astype(np.int64)
    values: FloatArray = reward + gamma * ((1.0 - weight) * after[t, below, e, p] + weight * after[t, below + 1, e, p])
    return values


def stationary(domain: EnergyStorage, policy: StoragePolicy) -> FloatArray:
    """Return how often each state is visited in the long run, (phase, storage, renewable, price, demand); sums to 1.

    Starting from an even distribution at phase 0, forward through the period until a whole period changes the
    distribution by less than 1e-12 (in the sum of absolute differences). Under a policy that keeps for ever what the
    storage begins with, such as :func:`never_store`, the result depends on that even start.

    Cost: a few small matrix products for each phase of a period; memory of one number for each state of all phases.

    Example
    -------
    >>> domain = EnergyStorage(capacity=2, period=3, price=(1, 3), jump_probability=0.0)
    >>> share = stationary(domain, greedy(domain))
    >>> share.shape, round(float(share.sum()), 12)
    ((3, 3, 7, 3, 8), 1.0)
    """
    grid = _Grid(_same(domain, policy))
    visits = np.empty(grid.shape)
    here = np.full(grid.shape[1:-1], 1.0 / math.prod(grid.shape[1:-1]))[..., None] * grid.demand[0]
    for _ in range(_MAX_SWEEPS):
        first = here
        for t in range(domain.period):
            visits[t] = here
            here = grid.forward(grid.move(here, policy.table[t]), t)
        if np.abs(here - first).sum() < 1e-12:
            visits /= visits.sum()
            return visits
    raise InvalidParameterError(f"{_MAX_SWEEPS} periods under the policy do not settle to a distribution of states")


class AliasingFloor(NamedTuple):
    """What a predictor can reach that does not see the time; see :func:`aliasing_floor`."""

    rmse: float
    """The floor: root mean squared error of the best predictor."""
    sd: float
    """Standard deviation of the values, the error of the best constant."""
    mean: float
    """Mean of the values."""
    predictor: FloatArray
    """The best predictor, (storage, renewable, price, demand). Where the policy never comes, the mean over phases."""


def aliasing_floor(
    domain: EnergyStorage, policy: StoragePolicy, *, gamma: float = EnergyStorage.gamma, cache: bool = True
) -> AliasingFloor:
    """Return the smallest RMSE against V^π of any function of storage, renewable, price and demand.

    V^π also depends on the phase, which features do not see. With states as often as the policy visits them in the long
    run, the best function of the rest is the mean of V^π over phases given the rest, and its error is the floor. Both
    the visits (:func:`stationary`) and the values are exact.

    (Means over a recorded path instead give too small a floor: most observations occur in it a few times only, and the
    mean of few values fits them too well: ``docs/domains.md`` has by how much.)

    Parameters
    ----------
    domain : EnergyStorage
    policy : StoragePolicy
    gamma : float in [0, 1)
    cache : bool
        Whether to use the user's cache.

    Returns
    -------
    AliasingFloor
        Cost: that of :func:`stationary` and :func:`exact_values`, the first time.

    Example
    -------
    Without a wave every phase is like every other, and nothing is hidden.

    >>> for amplitude in (0.0, 2.0):
    ...     domain = EnergyStorage(capacity=2, period=6, price=(1, 4), demand_wave=(3.0, amplitude))
    ...     print(round(aliasing_floor(domain, greedy(domain), cache=False).rmse, 2))
    0.0
    2.03
    """

    def compute() -> dict[str, NDArray[Any]]:
        grid = _Grid(domain)
        after, visits = _values_after(domain, policy, gamma, cache), stationary(domain, policy)
        values = np.empty(grid.shape)
        for t in range(domain.period):
            values[t] = grid.under(policy.table[t], gamma * after[t])
        observed = visits.sum(axis=0)
        weighed = np.einsum("t...,t...->...", visits, values)
        with np.errstate(invalid="ignore"):
            predictor = np.where(observed > 0.0, weighed / observed, values.mean(axis=0))
        mean = float(weighed.sum())
        sd = math.sqrt(sum(float((v * (w - mean) ** 2).sum()) for v, w in zip(visits, values, strict=True)))
        rmse = math.sqrt(sum(float((v * (w - predictor) ** 2).sum()) for v, w in zip(visits, values, strict=True)))
        return {"predictor": predictor, "numbers": np.array([rmse, sd, mean])}

    key = _policy_key(domain, policy, gamma)
    arrays = _kept("energy-floor", key, compute, cache)
    rmse, sd, mean = (float(number) for number in arrays["numbers"])
    return AliasingFloor(rmse, sd, mean, arrays["predictor"])


# --- the grid -------------------------------------------------------------------------------------------------------


class _Grid:
    """The domain on whole numbers: what each net charge earns and where it leads, and the noises as matrices."""

    def __init__(self, domain: EnergyStorage) -> None:
        self.shape = domain.table_shape
        R, E, P, D = np.ix_(*(np.arange(low, high + 1.0) for low, high in zip(domain.low, domain.high, strict=True)))
        self.actions = np.array(sorted(range(-domain.max_flow, domain.max_flow + 1), key=lambda x: (abs(x), x)))
        """Net charges, the smallest in size first."""
        charge, discharge = domain.flows(R, self.actions[:, None, None, None, None])
        self.rewards = contribution(E, P, D, charge, discharge, discharge_efficiency=domain.discharge_efficiency)
        """(actions, storage, renewable, price, demand)"""
        level = R + domain.charge_efficiency * charge - discharge
        self.below, self.weight = _between(level[..., 0, 0, 0], domain)
        """Where each action leads from each storage: between ``below`` and ``below + 1``, (actions, storage)."""
        self.renewable = _transitions(domain.renewable_noise, self.shape[2])
        self.price = _transitions(domain.price_noise, self.shape[3])
        half = domain.demand_noise.size // 2
        self.demand = np.zeros((self.shape[0], self.shape[4]))
        """Probabilities of the demands at each phase."""
        for k, probability in enumerate(domain.demand_noise):
            column = np.clip(domain.demand_means + (k - half), domain.low[3], domain.high[3]) - domain.low[3]
            self.demand[np.arange(self.shape[0]), column.astype(np.int64)] += probability

    def backward(self, values: FloatArray, t: int) -> FloatArray:
        """Means over the noise that follows phase t: values of phase t + 1 to (storage, renewable, price)."""
        mean = values @ self.demand[(t + 1) % self.shape[0]]
        result: FloatArray = self.renewable @ (mean @ self.price.T)
        return result

    def forward(self, shares: FloatArray, t: int) -> FloatArray:
        """The transpose of :meth:`backward`."""
        moved = self.renewable.T @ (shares @ self.price)
        result: FloatArray = moved[..., None] * self.demand[(t + 1) % self.shape[0]]
        return result

    def after(self, values: FloatArray, a: int) -> FloatArray:
        """Values (storage, renewable, price) after the decision for action number ``a``, before it."""
        weight = self.weight[a][:, None, None]
        result: FloatArray = (1.0 - weight) * values[self.below[a]] + weight * values[self.below[a] + 1]
        return result

    def under(self, table: NDArray[np.int8], after: FloatArray) -> FloatArray:
        """Values of one stage under its part of a table, given the (discounted) values after the decision."""
        values = np.empty(self.shape[1:])
        for a, action in enumerate(self.actions):
            np.copyto(values, self.rewards[a] + self.after(after, a)[..., None], where=table == action)
        return values

    def move(self, shares: FloatArray, table: NDArray[np.int8]) -> FloatArray:
        """Where the decisions of one stage take a distribution: (storage, renewable, price)."""
        moved = np.zeros(self.shape[1:-1])
        for a, action in enumerate(self.actions):
            taken = np.where(table == action, shares, 0.0).sum(axis=-1)
            weight = self.weight[a][:, None, None]
            np.add.at(moved, self.below[a], (1.0 - weight) * taken)
            np.add.at(moved, self.below[a] + 1, weight * taken)
        return moved


def _between(level: FloatArray, domain: EnergyStorage) -> tuple[IntArray, FloatArray]:
    """Index of the grid point below each storage (below the last), and the weight of the next one."""
    below = np.clip(np.floor(level), 0, domain.capacity - 1).astype(np.int64)
    return below, np.clip(level - below, 0.0, 1.0)


def _transitions(noise: FloatArray, n: int) -> FloatArray:
    """Transition matrix (n, n) of a walk with this noise whose ends stop it."""
    half = noise.size // 2
    matrix = np.zeros((n, n))
    for k, probability in enumerate(noise):
        matrix[np.arange(n), np.clip(np.arange(n) + k - half, 0, n - 1)] += probability
    return matrix


def _improve(best: FloatArray, table: NDArray[np.int8], values: FloatArray, action: int) -> None:
    """Put ``action`` where it is better than the best so far; in place."""
    better = values > best + _TIE
    np.copyto(best, values, where=better)
    np.copyto(table, np.int8(action), where=better)


def _optimise(grid: _Grid, tolerance: float) -> NDArray[np.int8]:
    """The table of :func:`optimal_policy`."""
    table = np.zeros(grid.shape, dtype=np.int8)
    values = np.zeros(grid.shape[1:])
    spans: list[float] = []
    for _ in range(_MAX_SWEEPS):
        final = values
        for t in reversed(range(grid.shape[0])):
            after = grid.backward(values, t)
            values = np.full(grid.shape[1:], -np.inf)
            for a, action in enumerate(grid.actions):
                _improve(values, table[t], grid.rewards[a] + grid.after(after, a)[..., None], action)
        added = values - final
        spans.append(float(added.max() - added.min()))
        if spans[-1] <= tolerance:
            return table
        if len(spans) > _PATIENCE and min(spans[-_PATIENCE:]) > 0.999 * min(spans[:-_PATIENCE]):
            break
        values -= values.flat[0]
    raise InvalidParameterError(
        f"{len(spans)} sweeps bound the best reward of a period to {min(spans):g}, not to {tolerance:g}: raise the "
        "tolerance, and let wind and price change (renewable_step, price_walk or jump_probability above 0), because "
        "values that are never left have rewards of their own"
    )


def _values_after(domain: EnergyStorage, policy: StoragePolicy, gamma: float, cache: bool) -> FloatArray:
    """W of the module, (phase, storage, renewable, price), under a policy."""
    parameters.real("gamma", gamma, low=0.0, high=1.0, open_high=True, why=": the task never ends")

    def compute() -> dict[str, NDArray[Any]]:
        grid = _Grid(domain)
        after = np.empty(grid.shape[:-1])
        first = np.zeros(grid.shape[1:])
        contraction = gamma ** grid.shape[0]
        for _ in range(_MAX_SWEEPS):
            values = first
            for t in reversed(range(grid.shape[0])):
                after[t] = grid.backward(values, t)
                values = grid.under(policy.table[t], gamma * after[t])
            change, first = float(np.abs(values - first).max()), values
            if contraction / (1.0 - contraction) * change <= _ERROR:
                return {"after": after}
        raise InvalidParameterError(
            f"gamma is {gamma!r}: that close to 1 the sweeps do not get to an error of {_ERROR}"
        )

    after: FloatArray = _kept("energy-values", _policy_key(domain, policy, gamma), compute, cache)["after"]
    return after


def _same(domain: EnergyStorage, policy: StoragePolicy) -> EnergyStorage:
    if policy.domain.parameters != domain.parameters:
        raise InvalidParameterError(f"the policy is for {policy.domain!r}, not for {domain!r}: pass one of this domain")
    return domain


def _policy_key(domain: EnergyStorage, policy: StoragePolicy, gamma: float) -> dict[str, Any]:
    digest = hashlib.sha256(policy.table.tobytes()).hexdigest()
    return {"domain": _same(domain, policy).parameters, "table": digest, "gamma": float(gamma)}


def _kept(
    name: str, key: Mapping[str, Any], compute: Callable[[], dict[str, NDArray[Any]]], cache: bool
) -> dict[str, NDArray[Any]]:
    return cached_arrays(name, {**key, "version": _VERSION}, compute) if cache else compute()
