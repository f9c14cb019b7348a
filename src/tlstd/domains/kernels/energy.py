"""Energy storage: one step, many steps side by side, and one long path under a table of actions.

All of them go through the same scalar functions, so a path is what single steps would give, bit for bit.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel, part


@part
def _draw(cdf, u):
    """The first k with u < cdf[k] (the inverse of the distribution function), by bisection."""
    low, high = 0, cdf.size - 1
    while low < high:
        middle = (low + high) // 2
        if u < cdf[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@part
def _flows(storage, action, capacity, max_flow, charge_efficiency):
    """Charge and discharge of a net charge, cut to what the storage permits; one of the two is 0."""
    charge = max(0.0, min(action, max_flow, (capacity - storage) / charge_efficiency))
    discharge = max(0.0, min(-action, max_flow, storage))
    return charge, discharge


@part
def _move(state, action, noise, low, high, plant, cdfs, demand_means, out):
    """One step from ``state`` to ``out``, in place; returns the reward.

    ``plant`` holds the largest flow, the charge and the discharge efficiency; ``cdfs`` are the distributions of the
    noises of renewable, price and demand, which lie around 0 on the unit grid.
    """
    renewable_cdf, price_cdf, demand_cdf = cdfs
    storage, renewable, price, demand = state[0], state[1], state[2], state[3]
    charge, discharge = _flows(storage, action, high[0], plant[0], plant[1])
    reward = price * (plant[2] * discharge - charge + min(renewable, demand + charge))
    phase = (int(state[4]) + 1) % demand_means.size
    renewable += _draw(renewable_cdf, noise[0]) - renewable_cdf.size // 2
    price += _draw(price_cdf, noise[1]) - price_cdf.size // 2
    demand = demand_means[phase] + _draw(demand_cdf, noise[2]) - demand_cdf.size // 2
    out[0] = min(max(storage + plant[1] * charge - discharge, low[0]), high[0])
    out[1] = min(max(renewable, low[1]), high[1])
    out[2] = min(max(price, low[2]), high[2])
    out[3] = min(max(demand, low[3]), high[3])
    out[4] = phase
    return reward


@part
def _nearest(value, low, n):
    """Index of the grid point next to ``value`` among ``n`` from ``low`` on."""
    return min(max(int(value - low + 0.5), 0), n - 1)


@part
def _look_up(table, state, low, high, plant):
    """Net charge by a table, interpolated linearly in the storage and cut to what the storage permits."""
    i = min(max(int(state[0]), 0), table.shape[1] - 2)
    phase = int(state[4]) % table.shape[0]
    e = _nearest(state[1], low[1], table.shape[2])
    p = _nearest(state[2], low[2], table.shape[3])
    d = _nearest(state[3], low[3], table.shape[4])
    below, above = float(table[phase, i, e, p, d]), float(table[phase, i + 1, e, p, d])
    action = below + (state[0] - i) * (above - below)
    charge, discharge = _flows(state[0], action, high[0], plant[0], plant[1])
    return charge - discharge


@kernel
def step_many(states, actions, noise, low, high, plant, cdfs, demand_means):
    """Next states and rewards of N states."""
    out, rewards = np.empty_like(states), np.empty(states.shape[0])
    for n in range(states.shape[0]):
        rewards[n] = _move(states[n], actions[n], noise[n], low, high, plant, cdfs, demand_means, out[n])
    return out, rewards


@kernel
def look_up_many(table, states, low, high, plant):
    """Net charges of N states by a table."""
    actions = np.empty(states.shape[0])
    for n in range(states.shape[0]):
        actions[n] = _look_up(table, states[n], low, high, plant)
    return actions


@kernel
def follow(table, start, noise, low, high, plant, cdfs, demand_means):
    """One path of ``len(noise)`` steps from ``start`` under a table: states (T + 1, 5), actions, rewards."""
    n_steps = noise.shape[0]
    states, actions, rewards = np.empty((n_steps + 1, start.size)), np.empty(n_steps), np.empty(n_steps)
    for i in range(start.size):
        states[0, i] = start[i]
    for t in range(n_steps):
        actions[t] = _look_up(table, states[t], low, high, plant)
        rewards[t] = _move(states[t], actions[t], noise[t], low, high, plant, cdfs, demand_means, states[t + 1])
    return states, actions, rewards
