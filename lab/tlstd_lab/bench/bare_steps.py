"""One step of learning while acting as one compiled call on ready arrays, to compare the library's four calls with.

A call encodes a state by tile coding, checks what was given, learns from the step, and returns the value of the new
state. Arrays are those of one stream and stay the same: nothing is made from call to call. ``ids`` (2, tilings) has the
active tiles of the state before in its first row; those of the new state go to the second, and to the first in the end.
``trace`` is γ at time t (0 where an episode begins) and a bound of the trace's length. Each returns -1e300 if something
is wrong, with nothing changed but the second row.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.jit import kernel

_LARGEST = 1e100
REFUSED = -1e300


@kernel
def _encoded(state: FloatArray, box: FloatArray, tiles: int, ids: IntArray) -> bool:
    """Write the active tiles of a state, a tiling each, to ``ids[1]``; ``box`` has low and high as its rows."""
    tilings = ids.shape[1]
    for j in range(tilings):
        index = j
        for i in range(state.size):
            if not (abs(state[i]) <= _LARGEST):
                return False
            u = (min(max(state[i], box[0, i]), box[1, i]) - box[0, i]) / (box[1, i] - box[0, i])
            index = index * tiles + min(int((u + j / (tilings * tiles)) * (tiles - 1)), tiles - 1)
        ids[1, j] = index
    return True


@kernel
def _bound(
    state: FloatArray,
    box: FloatArray,
    tiles: int,
    ids: IntArray,
    n: int,
    step: tuple[float, float, float],
    trace: FloatArray,
    lambda_: float,
) -> float:
    """Encode the state and check the step (reward, discount, ρ): the bound of the trace's length after it, or -1."""
    reward, discount, rho = step
    sound = _encoded(state, box, tiles, ids)
    sound &= abs(reward) <= _LARGEST and 0.0 <= discount <= 1.0 and 0.0 <= rho <= _LARGEST
    for side in range(2):
        before = -1
        for j in range(ids.shape[1]):
            sound &= before < ids[side, j] < n
            before = ids[side, j]
    bound = rho * (trace[0] * lambda_ * trace[1] + np.sqrt(float(ids.shape[1])))
    return bound if sound and bound <= _LARGEST else -1.0


@kernel
def _move_on(ids: IntArray, trace: FloatArray, discount: float, bound: float, ends: bool) -> None:
    for j in range(ids.shape[1]):
        ids[0, j] = ids[1, j]
    trace[0], trace[1] = 0.0 if ends else discount, bound


@kernel
def td(
    state: FloatArray,
    box: FloatArray,
    ids: IntArray,
    trace: FloatArray,
    w: FloatArray,
    z: FloatArray,
    tiles: int,
    reward: float,
    discount: float,
    rho: float,
    ends: bool,
    alpha: float,
    lambda_: float,
) -> float:
    """TD(λ) with w and z of d numbers."""
    bound = _bound(state, box, tiles, ids, w.size, (reward, discount, rho), trace, lambda_)
    if bound < 0.0:
        return REFUSED
    decay, delta = rho * trace[0] * lambda_, reward
    for j in range(ids.shape[1]):
        delta += discount * w[ids[1, j]] - w[ids[0, j]]
    for i in range(z.size):
        z[i] *= decay
    for j in range(ids.shape[1]):
        z[ids[0, j]] += rho
    for i in range(z.size):
        w[i] += alpha * delta * z[i]
    value = 0.0
    for j in range(ids.shape[1]):
        value += w[ids[1, j]]
    _move_on(ids, trace, discount, bound, ends)
    return value


@kernel
def true_online_td(
    state: FloatArray,
    box: FloatArray,
    ids: IntArray,
    trace: FloatArray,
    w: FloatArray,
    z: FloatArray,
    v_old: FloatArray,
    tiles: int,
    reward: float,
    discount: float,
    rho: float,
    ends: bool,
    alpha: float,
    lambda_: float,
) -> float:
    """True-online TD(λ) with w and z of d numbers."""
    bound = _bound(state, box, tiles, ids, w.size, (reward, discount, rho), trace, lambda_)
    if bound < 0.0 or rho != 1.0:
        return REFUSED
    decay, v, v_next, overlap = trace[0] * lambda_, 0.0, 0.0, 0.0
    for j in range(ids.shape[1]):
        v += w[ids[0, j]]
        v_next += w[ids[1, j]]
        overlap += z[ids[0, j]]
    old = v if trace[0] == 0.0 else v_old[0]
    delta, share = reward + discount * v_next - old, alpha * (1.0 - decay * overlap)
    for i in range(z.size):
        z[i] *= decay
    for j in range(ids.shape[1]):
        z[ids[0, j]] += share
    for i in range(z.size):
        w[i] += delta * z[i]
    for j in range(ids.shape[1]):
        w[ids[0, j]] -= alpha * (v - old)
    v_old[0], value = v_next, 0.0
    for j in range(ids.shape[1]):
        value += w[ids[1, j]]
    _move_on(ids, trace, discount, bound, ends)
    return value


@kernel
def lstd(
    state: FloatArray,
    box: FloatArray,
    ids: IntArray,
    trace: FloatArray,
    A: FloatArray,
    P: FloatArray,
    b: FloatArray,
    z: FloatArray,
    row_of: IntArray,
    tiles: int,
    reward: float,
    discount: float,
    rho: float,
    ends: bool,
    lambda_: float,
) -> float:
    """LSTD(λ) with A and P = A⁻¹ by the Sherman-Morrison formula; w = P b, refined once. ``row_of`` has d entries."""
    bound = _bound(state, box, tiles, ids, row_of.size, (reward, discount, rho), trace, lambda_)
    if bound < 0.0:
        return REFUSED
    n, tilings = z.size, ids.shape[1]
    d = np.zeros(n)
    for i in range(n):
        z[i] *= rho * trace[0] * lambda_
    for j in range(tilings):
        z[row_of[ids[0, j]]] += rho
        d[row_of[ids[0, j]]] += 1.0
        d[row_of[ids[1, j]]] -= discount
    Pz, dP = np.dot(P, z), np.dot(d, P)
    factor = 1.0 / (1.0 + np.dot(d, Pz))
    for i in range(n):
        for j in range(2 * tilings):
            row = row_of[ids[j // tilings, j % tilings]]
            A[i, row] += (1.0 if j < tilings else -discount) * z[i]
        b[i] += reward * z[i]
        for j in range(n):
            P[i, j] -= factor * Pz[i] * dP[j]
    w = np.dot(P, b)
    w += np.dot(P, b - np.dot(A, w))
    value = 0.0
    for j in range(tilings):
        value += w[row_of[ids[1, j]]]
    _move_on(ids, trace, discount, bound, ends)
    return value


@kernel
def buffered(
    state: FloatArray,
    box: FloatArray,
    ids: IntArray,
    trace: FloatArray,
    row_of: IntArray,
    left: IntArray,
    right: IntArray,
    left_values: FloatArray,
    right_values: FloatArray,
    ends_of: IntArray,
    columns: FloatArray,
    count: IntArray,
    tiles: int,
    reward: float,
    discount: float,
    rho: float,
    ends: bool,
    lambda_: float,
) -> float:
    """t-LSTD's step between compressions: x and d = x - γx' of length 1 behind those in two buffers. Nothing is read.

    ``ends_of`` (2, k + 1) is where their entries end, ``columns`` (5, k) are lengths, rewards, decays and ratios.
    """
    bound = _bound(state, box, tiles, ids, row_of.size, (reward, discount, rho), trace, lambda_)
    at, tilings = count[0], ids.shape[1]
    if bound < 0.0 or at + 1 >= ends_of.shape[1]:
        return REFUSED
    start, end, total = ends_of[0, at], ends_of[1, at], 0.0
    p = q = 0
    for j in range(tilings):
        left[start + j], left_values[start + j] = row_of[ids[0, j]], 1.0 / np.sqrt(float(tilings))
    first = end
    while p < tilings or (q < tilings and discount != 0.0):  # two rising lists
        if q == tilings or discount == 0.0 or (p < tilings and ids[0, p] < ids[1, q]):
            right[end], right_values[end] = row_of[ids[0, p]], 1.0
            p += 1
        elif p == tilings or ids[1, q] < ids[0, p]:
            right[end], right_values[end] = row_of[ids[1, q]], -discount
            q += 1
        else:
            right[end], right_values[end] = row_of[ids[0, p]], 1.0 - discount
            p, q = p + 1, q + 1
        total += right_values[end] * right_values[end]
        end += 1
    length = np.sqrt(total)
    for e in range(first, end):
        right_values[e] /= length
    ends_of[0, at + 1], ends_of[1, at + 1] = start + tilings, end
    columns[0, at], columns[1, at], columns[2, at] = np.sqrt(float(tilings)), length, reward
    columns[3, at], columns[4, at] = trace[0] * lambda_, rho
    count[0] += 1
    _move_on(ids, trace, discount, bound, ends)
    return 0.0
