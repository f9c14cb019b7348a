"""Energy storage: wind, a battery, a market and a demand; which flows to allocate at every step.

State and task are the paper's [P]: "the amount of energy in storage, the amounts of renewable generation available, the
market price of energy, and the demand", "to maximize revenue and satisfy demand", γ = 0.8, after the benchmark of Salas
and Powell. Their parameter tables are not available to us, so every number below is ours [OC], and this is *not* one
of their instances. What the task leaves open is decided as follows [OC]:

* **Flows.** wind → demand, wind → storage, grid → demand, grid → storage, storage → demand, storage → grid. There is no
  flow from wind to the grid: wind that neither the demand nor the storage takes is lost. Energy is bought and sold at
  the same price; the demand is always met (from the grid if need be) and pays the price too. See :func:`contribution`.
* **Action.** The net charge: the storage either charges or discharges in one step. (Doing both at once would pass
  surplus wind through the storage to the grid in no time, the flow that is left out.)
* **Storage.** R ← R + η_c·charge − discharge; η_d applies to what comes out.
* **Time.** The demand is a wave over ``period`` steps with independent noise. The task never ends: after the last phase
  comes the first, and the storage carries over. The phase is part of the state, but features do not see it [P], so no
  function of what they see can equal the values (``docs/domains.md`` has by how much they miss them).
* **Grid.** Renewable, price, demand and, with full efficiency, storage stay on whole numbers. With a charge efficiency
  below 1 the storage leaves them: then tables of actions and values are read by linear interpolation in the storage.

References
----------
D. F. Salas, W. B. Powell, "Benchmarking a scalable approximate dynamic programming algorithm for stochastic control of
multidimensional energy storage problems", Princeton University, 2013 (the paper's reference for this domain).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, as_array, as_real, locked
from tlstd.domains import pictures
from tlstd.domains.base import Domain, Picture, Step
from tlstd.domains.kernels import energy as kernels
from tlstd.domains.policies import Policy
from tlstd.errors import InvalidInputError, InvalidParameterError

Table = NDArray[np.int8]
"""Net charges (phase, storage, renewable, price, demand)."""


def contribution(
    renewable: ArrayLike,
    price: ArrayLike,
    demand: ArrayLike,
    charge: ArrayLike,
    discharge: ArrayLike,
    *,
    discharge_efficiency: float = 1.0,
) -> FloatArray:
    """Revenue of one step with total charge c and discharge q: P·(η_d q − c + min(E, D + c)).

    This is the optimum over the six flows. With w, g, s for wind, grid, storage and d for the demand it is to

        maximise    P·(D + η_d·sg − gs − gd)
        subject to  wd + gd + η_d·sd = D,   wd + ws <= E,   ws + gs = c,   sd + sg = q,   all flows >= 0:

    the demand pays P·D, what storage sells to the grid pays P, what is bought from it costs P. Putting in gd and gs
    leaves P·(η_d q − c + wd + ws), where wd <= D, ws <= c and wd + ws <= E: as much wind as demand and charge can
    take, min(E, D + c), provided that P >= 0. (sd = 0 is always optimal: at one price it does not matter who
    gets the discharge.)

    Parameters
    ----------
    renewable, price, demand, charge, discharge : numbers >= 0, or arrays that broadcast
    discharge_efficiency : float in (0, 1]

    Returns
    -------
    float array of the common shape

    Example
    -------
    Wind 5 against demand 3: the surplus of 2 charges for nothing, a charge of 3 buys 1 at the price of 40.

    >>> contribution(5, 40, 3, [0, 2, 3], 0)
    array([120., 120.,  80.])
    >>> float(contribution(5, 40, 3, charge=0, discharge=2, discharge_efficiency=0.9))
    192.0
    """
    given = {"renewable": renewable, "price": price, "demand": demand, "charge": charge, "discharge": discharge}
    E, P, D, c, q = _broadcast(given)
    efficiency = _efficiency(discharge_efficiency, "discharge_efficiency")
    revenue: FloatArray = P * (efficiency * q - c + np.minimum(E, D + c))
    return revenue


class EnergyStorage(Domain):
    """A storage between wind, market and demand. All numbers are our choice [OC]; see the module.

    Parameters
    ----------
    capacity : int >= 1
        The storage holds between 0 and this.
    max_flow : int in [1, 127]
        Largest charge and largest discharge of one step.
    charge_efficiency, discharge_efficiency : float in (0, 1]
    renewable, price, demand : (int, int)
        Smallest and largest value, not negative; noise that leads beyond is cut there.
    period : int >= 1
        Steps until the demand repeats.
    renewable_step : int >= 0
        The renewable moves by a whole number between −this and this, all equally likely.
    price_walk : (sd, cut)
        At every step the price moves by a discretised normal: whole numbers of at most ``cut``, with probabilities
        proportional to the density of N(0, sd²).
    jump_probability, jump : float in [0, 1], (sd, cut)
        With this probability it jumps as well, by another discretised normal.
    demand_wave : (mean, amplitude)
        Without noise the demand at phase t is mean − amplitude·sin(2πt/period), rounded.
    demand_noise : (sd, cut)
        Discretised normal, new at every step.

    Example
    -------
    >>> domain = EnergyStorage()
    >>> states = domain.start(3, np.random.default_rng(0))
    >>> states
    array([[19.,  2., 31.,  4.,  1.],
           [28.,  5., 59.,  5., 54.],
           [25.,  1., 65.,  3.,  3.]])
    >>> step = domain.step(states, [2.0, -5.0, 0.0], np.random.default_rng(1))
    >>> step.states
    array([[21.,  2., 35.,  1.,  2.],
           [23.,  6., 58.,  4., 55.],
           [25.,  2., 64.,  2.,  4.]])
    >>> step.rewards
    array([  0., 590.,  65.])
    """

    name: ClassVar[str] = "EnergyStorage"
    state_names: ClassVar[tuple[str, ...]] = ("storage", "renewable", "price", "demand", "phase")
    gamma: ClassVar[float] = 0.8
    noise_size: ClassVar[int] = 3
    start_noise_size: ClassVar[int] = 5
    continuing: ClassVar[bool] = True

    def __init__(
        self,
        *,
        capacity: int = 30,
        max_flow: int = 5,
        charge_efficiency: float = 1.0,
        discharge_efficiency: float = 1.0,
        renewable: tuple[int, int] = (1, 7),
        price: tuple[int, int] = (30, 70),
        demand: tuple[int, int] = (0, 7),
        period: int = 100,
        renewable_step: int = 1,
        price_walk: tuple[float, int] = (2.5, 8),
        jump_probability: float = 0.031,
        jump: tuple[float, int] = (50.0, 40),
        demand_wave: tuple[float, float] = (3.0, 4.0),
        demand_noise: tuple[float, int] = (1.0, 2),
    ) -> None:
        self.capacity = parameters.integer("capacity", capacity)
        self.max_flow = parameters.integer("max_flow", max_flow, high=127, why=", what tables of actions can hold")
        self.charge_efficiency = _efficiency(charge_efficiency, "charge_efficiency")
        self.discharge_efficiency = _efficiency(discharge_efficiency, "discharge_efficiency")
        ranges = _range(renewable, "renewable"), _range(price, "price"), _range(demand, "demand")
        self.period = parameters.integer("period", period)
        dynamics = self._set_dynamics(renewable_step, price_walk, jump_probability, jump, demand_wave, demand_noise)
        self.low = locked(np.array([0.0, *(float(low) for low, _ in ranges)]))
        self.high = locked(np.array([float(self.capacity), *(float(high) for _, high in ranges)]))
        self.action_bounds = (-float(self.max_flow), float(self.max_flow))
        selling = self.discharge_efficiency * self.max_flow + min(self.high[1], self.high[3])
        self.reward_bound = float(self.high[2] * max(selling, self.max_flow))
        self.parameters: dict[str, Any] = {
            "capacity": self.capacity,
            "max_flow": self.max_flow,
            "charge_efficiency": self.charge_efficiency,
            "discharge_efficiency": self.discharge_efficiency,
            "renewable": list(ranges[0]),
            "price": list(ranges[1]),
            "demand": list(ranges[2]),
            "period": self.period,
            **dynamics,
        }
        """The constructor's arguments, as JSON holds them."""
        flows = np.array([float(self.max_flow), self.charge_efficiency, self.discharge_efficiency])
        # what kernels get: writable, also in copies of the domain, so that they are compiled for one kind of array
        self._plant = (self.low.copy(), self.high.copy(), flows, self._noise, self.demand_means.copy())

    def _set_dynamics(
        self,
        renewable_step: int,
        price_walk: tuple[float, int],
        jump_probability: float,
        jump: tuple[float, int],
        demand_wave: tuple[float, float],
        demand_noise: tuple[float, int],
    ) -> dict[str, Any]:
        """Check how renewable, price and demand move; returns these arguments as JSON holds them."""
        half = parameters.integer("renewable_step", renewable_step, low=0)
        self.renewable_noise = locked(np.full(2 * half + 1, 1.0 / (2 * half + 1)))
        """Probabilities of the renewable's moves −renewable_step, …, renewable_step."""
        jump_share = parameters.real("jump_probability", jump_probability, low=0.0, high=1.0)
        walk, leap = _discretised(price_walk, "price_walk"), _discretised(jump, "jump")
        still = np.zeros(leap.size)
        still[leap.size // 2] = 1.0
        self.price_noise = locked(np.convolve(walk, jump_share * leap + (1.0 - jump_share) * still))
        """Probabilities of the price's moves, walk and jump together, from the largest fall to the largest rise."""
        self.demand_noise = locked(_discretised(demand_noise, "demand_noise"))
        """Probabilities of the demand's noise, from the smallest to the largest."""
        mean, amplitude = _pair(demand_wave, "demand_wave", "(mean, amplitude)")
        mean = parameters.real("the mean of demand_wave", mean, open_low=True, open_high=True)
        amplitude = parameters.real("the amplitude of demand_wave", amplitude, open_low=True, open_high=True)
        wave = mean - amplitude * np.sin(2.0 * np.pi * np.arange(self.period) / self.period)
        self.demand_means: FloatArray = locked(np.rint(wave) + 0.0)
        """The demand at each phase without noise, (period,); before it is cut to its range."""
        self._noise = (
            _distribution(self.renewable_noise),
            _distribution(self.price_noise),
            _distribution(self.demand_noise),
        )
        return {
            "renewable_step": half,
            "price_walk": [float(price_walk[0]), int(price_walk[1])],
            "jump_probability": jump_share,
            "jump": [float(jump[0]), int(jump[1])],
            "demand_wave": [mean, amplitude],
            "demand_noise": [float(demand_noise[0]), int(demand_noise[1])],
        }

    @property
    def table_shape(self) -> tuple[int, int, int, int, int]:
        """Numbers of phases and of grid points of storage, renewable, price and demand."""
        storage, renewable, price, demand = (int(n) + 1 for n in self.high - self.low)
        return self.period, storage, renewable, price, demand

    def policy(self) -> StoragePolicy:
        """A simple rule [OC], which earns about 93% of what the best policy earns per step (``docs/domains.md``).

        It sells as much as it can if the price is in the upper half of its range or the storage is more than half full.
        Otherwise, or with nothing to sell, it stores the wind that the demand leaves. It never buys to store.

        The paper's is "a provided near-optimal policy" of the benchmark, which we do not have; the experiments use
        dynamic programming instead (``tlstd_lab.energy_programme``).

        Example
        -------
        Wind 5 against demand 3: kept at a low price, unless the storage is more than half full; at a high price sold.

        >>> states = [[9.0, 5.0, 40.0, 3.0, 0.0], [16.0, 5.0, 40.0, 3.0, 0.0], [9.0, 5.0, 60.0, 3.0, 0.0]]
        >>> EnergyStorage().policy().act(np.array(states), np.zeros(3))
        array([ 2., -5., -5.])
        """
        storage, renewable, price, demand = np.ix_(
            *(np.arange(low, high + 1.0) for low, high in zip(self.low, self.high, strict=True))
        )
        sells = (storage > 0.0) & ((storage > 0.5 * self.capacity) | (price >= 0.5 * (self.low[2] + self.high[2])))
        left = np.clip(renewable - demand, 0.0, self.max_flow)
        table = np.where(sells, -self.max_flow, left).astype(np.int8)
        return StoragePolicy(self, np.broadcast_to(table, self.table_shape))

    def flows(self, storage: ArrayLike, actions: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Charge and discharge of net charges, cut to what the storage permits. Arrays that broadcast.

        Example
        -------
        >>> EnergyStorage().flows([29.0, 2.0, 2.0], [4.0, -4.0, 4.0])
        (array([1., 0., 4.]), array([0., 2., 0.]))
        """
        level, action = _broadcast({"storage": storage, "actions": actions})
        room = (self.high[0] - level) / self.charge_efficiency
        charge = np.maximum(0.0, np.minimum(np.minimum(action, self.max_flow), room))
        discharge = np.maximum(0.0, np.minimum(np.minimum(-action, self.max_flow), level))
        return charge, discharge

    def simulate(
        self, start: FloatArray, policy: Policy, noise: FloatArray, uniforms: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Follow a policy from one state, for as many steps as there is noise.

        The same as single steps with the same numbers, bit for bit. A :class:`StoragePolicy` of this domain runs in one
        compiled loop, any other policy step by step, which takes many times as long.

        Parameters
        ----------
        start : (5,)
        policy : Policy
        noise : (T, 3), uniform on [0, 1)
        uniforms : (T,), uniform on [0, 1)
            For random policies.

        Returns
        -------
        states : (T + 1, 5), actions : (T,), rewards : (T,)

        Example
        -------
        >>> domain, rng = EnergyStorage(), np.random.default_rng(0)
        >>> start, policy = domain.start(1, rng)[0], domain.policy()
        >>> states, actions, rewards = domain.simulate(start, policy, rng.random((500, 3)), np.zeros(500))
        >>> states.shape, actions.shape, rewards.shape
        ((501, 5), (500,), (500,))
        """
        first = self.check_states([start])[0]
        noise = np.ascontiguousarray(as_real(noise, "noise"))
        uniforms = as_real(uniforms, "uniforms")
        if noise.shape != (*noise.shape[:1], self.noise_size) or uniforms.shape != noise.shape[:1]:
            raise InvalidInputError(
                f"noise has shape {noise.shape} and uniforms {uniforms.shape}: pass (T, {self.noise_size}) and (T,)"
            )
        if type(policy) is StoragePolicy and policy.domain.parameters == self.parameters:
            path: tuple[FloatArray, FloatArray, FloatArray] = kernels.follow(policy.table, first, noise, *self._plant)
            return path
        return super().simulate(first, policy, noise, uniforms)

    def draw(self, state: FloatArray) -> Picture:
        """Draw one state (5,): the four amounts as columns, and where in its wave the demand is."""
        amounts = self.check_states([state])[0]
        figure, axes = pictures.canvas(640, 320, ncols=5, width_ratios=[1.5, 1.0, 1.0, 1.0, 4.0])
        titles = ("storage", "wind", "price", "demand")
        colours = ("#2a9d5c", "#3a86c8", "#c9a227", "#c8553d")
        for axis, title, colour, amount, low, high in zip(
            axes, titles, colours, amounts, self.low, self.high, strict=False
        ):
            axis.bar([0.0], [high - low], bottom=low, width=1.0, color="#eeeeee", edgecolor="#444444")
            axis.bar([0.0], [amount - low], bottom=low, width=1.0, color=colour)
            axis.axhline(amount, color="#222222", linewidth=2)
            axis.set_title(f"{title}\n{amount:.3g}", fontsize=11)
            axis.set_xlim(-0.52, 0.52)
            axis.set_ylim(low, high + 0.001 * (high - low))
            axis.set_xticks([])
            axis.set_yticks([low, high])
            for side in ("top", "right", "bottom", "left"):
                axis.spines[side].set_visible(False)
        phase, cycle = int(amounts[4]), axes[4]
        wave = np.clip(self.demand_means, self.low[3], self.high[3])
        cycle.step(np.arange(self.period), wave, where="mid", color=colours[3], alpha=0.5)
        cycle.axvline(phase, color="#222222", linewidth=1)
        cycle.plot([phase], [amounts[3]], "o", color=colours[3], markersize=9, markeredgecolor="#222222")
        cycle.set_title(f"demand over the cycle\nstep {phase} of {self.period}", fontsize=11)
        cycle.set_xlabel("line: without noise, dot: now", fontsize=9)
        cycle.set_xlim(-0.5, self.period - 0.5)
        margin = 0.06 * (self.high[3] - self.low[3])
        cycle.set_ylim(self.low[3] - margin, self.high[3] + margin)
        cycle.spines[["top", "right"]].set_visible(False)
        return pictures.pixels(figure)

    def check_states(self, states: ArrayLike) -> FloatArray:
        """States as an array (N, 5) within the box, with whole phases; or an error."""
        array = super().check_states(states)
        inside = (array[:, :4] >= self.low) & (array[:, :4] <= self.high)
        if not inside.all():
            row, column = np.argwhere(~inside)[0]
            raise InvalidInputError(
                f"states contain a {self.state_names[column]} of {array[row, column]:g}: "
                f"it lies in [{self.low[column]:g}, {self.high[column]:g}]"
            )
        phases = array[:, 4]
        known = (phases == np.floor(phases)) & (phases >= 0.0) & (phases < self.period)
        if not known.all():
            raise InvalidInputError(
                f"states contain a phase of {phases[~known][0]:g}: it is a whole number in [0, {self.period})"
            )
        return array

    def __repr__(self) -> str:
        usual = EnergyStorage.__init__.__kwdefaults__ or {}
        values = {name: tuple(v) if isinstance(v, list) else v for name, v in self.parameters.items()}
        changed = {name: value for name, value in values.items() if value != usual[name]}
        return f"EnergyStorage({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        x, u, e = (array if array.flags.carray else array.copy() for array in (states, actions, noise))
        next_states, rewards = kernels.step_many(x, u, e, *self._plant)
        return Step(next_states, rewards, np.zeros(len(states), dtype=np.bool_))

    def _start(self, noise: FloatArray) -> FloatArray:
        """Storage, renewable, price and phase uniform on the grid, the demand as it is at that phase [OC]."""
        period, *counts = self.table_shape
        observed = self.low[:3] + _uniform(noise[:, :3], np.array(counts[:3]))
        phase = _uniform(noise[:, 3], np.array(period))
        drawn = np.searchsorted(self._noise[2], noise[:, 4], side="right") - self.demand_noise.size // 2
        demand = np.clip(self.demand_means[phase.astype(np.int64)] + drawn, self.low[3], self.high[3])
        return np.column_stack([observed, demand, phase])


class StoragePolicy(Policy):
    """Net charges by a table over phase, storage, renewable, price and demand.

    Between two whole storages the net charge is interpolated linearly; in any case it is cut to what the storage
    permits. Renewable, price and demand are rounded to the grid.

    Parameters
    ----------
    domain : EnergyStorage
    table : ``domain.table_shape`` integers in [−max_flow, max_flow]

    Example
    -------
    >>> domain = EnergyStorage()
    >>> fill = StoragePolicy(domain, np.full(domain.table_shape, 5))
    >>> fill.act(np.array([[0.0, 4.0, 50.0, 3.0, 0.0], [27.5, 4.0, 50.0, 3.0, 0.0]]), np.zeros(2))
    array([5. , 2.5])
    """

    def __init__(self, domain: EnergyStorage, table: NDArray[Any]) -> None:
        table = as_array(table, "the table")
        if table.dtype.kind not in "iu" or table.shape != domain.table_shape:
            raise InvalidParameterError(
                f"the table has type {table.dtype} and shape {table.shape}: pass integers of shape {domain.table_shape}"
            )
        if table.min() < -domain.max_flow or table.max() > domain.max_flow:
            worst = table.min() if table.min() < -domain.max_flow else table.max()
            raise InvalidParameterError(f"the table contains {worst}: net charges lie within ±{domain.max_flow}")
        self.domain = domain
        self.table: Table = np.array(table, dtype=np.int8, order="C")
        self.table.flags.writeable = False

    def act(self, states: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Net charges (N,); the uniform numbers are not used."""
        domain = self.domain
        actions: FloatArray = kernels.look_up_many(self.table, np.ascontiguousarray(states), *domain._plant[:3])
        return actions

    def probability(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """1 for the policy's own actions, 0 for others."""
        same: NDArray[np.bool_] = self.act(states, np.zeros(len(states))) == actions
        return same.astype(np.float64)


def _uniform(uniforms: FloatArray, count: IntArray) -> FloatArray:
    """Whole numbers in [0, count), as floats."""
    whole: FloatArray = np.minimum(np.floor(uniforms * count), count - 1)
    return whole


def _discretised(normal: tuple[float, int], name: str) -> FloatArray:
    """Probabilities of −cut, …, cut, proportional to the density of N(0, sd²)."""
    sd, cut = _pair(normal, name, "(sd, cut)")
    half = parameters.integer(f"the cut of {name}", cut, low=0)
    parameters.positive(f"the standard deviation of {name}", sd)
    density = np.exp(-0.5 * (np.arange(-half, half + 1) / sd) ** 2)
    probabilities: FloatArray = density / density.sum()
    return probabilities


def _distribution(probabilities: FloatArray) -> FloatArray:
    """Distribution function; exactly 1 from the last possible value on, so that no uniform number goes beyond it."""
    cdf = np.cumsum(probabilities)
    cdf[np.flatnonzero(probabilities)[-1] :] = 1.0
    return cdf


def _pair(value: Any, name: str, remedy: str) -> tuple[Any, Any]:
    """The two parts of a parameter."""
    try:
        first, second = value
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"{name} is {value!r}: pass {remedy}") from error
    return first, second


def _broadcast(arrays: Mapping[str, ArrayLike]) -> tuple[FloatArray, ...]:
    """Arrays of numbers whose shapes fit together."""
    numbers = tuple(as_real(array, name) for name, array in arrays.items())
    try:
        np.broadcast_shapes(*(array.shape for array in numbers))
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(arrays, numbers, strict=True))
        raise InvalidInputError(f"the shapes do not fit together ({shapes}): pass arrays that broadcast") from error
    return numbers


def _efficiency(value: float, name: str) -> float:
    return parameters.real(name, value, low=0.0, high=1.0, open_low=True)


def _range(bounds: tuple[int, int], name: str) -> tuple[int, int]:
    low, high = _pair(bounds, name, "(smallest, largest)")
    first = parameters.integer(f"the smallest {name}", low, low=0)
    last = parameters.integer(f"the largest {name}", high, low=0)
    if last <= first:
        raise InvalidParameterError(f"{name} is {bounds!r}: the largest must be above the smallest")
    return first, last
