"""Tile coding: states to the indices of their active tiles, counted through or hashed."""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel, part


@part
def _mix(bits):
    """The output function of SplitMix64: every bit of the argument reaches every bit of the result (one to one)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@part
def _shifts(tiles, tilings):
    """shift[j, i] = j / (N n_i): how far tiling j lies below the first, as a part of the range of dimension i."""
    shift = np.empty((tilings, tiles.size))
    for j in range(tilings):
        for i in range(tiles.size):
            shift[j, i] = j / (tilings * tiles[i])
    return shift


@part
def _locate(state, low, high, u):
    """u = the state as parts of the range, clipped to [0, 1]; in place. Returns whether all of it is a number."""
    for i in range(low.size):
        s = state[i]
        if np.isnan(s):
            return False
        u[i] = (min(max(s, low[i]), high[i]) - low[i]) / (high[i] - low[i])
    return True


@part
def _hash(u, shift, tiles, hash_size, out):
    """The hash of each tiling's tile, to the first entries of ``out``."""
    size = np.uint64(hash_size)
    for j in range(shift.shape[0]):
        bits = _mix(np.uint64(j))
        for i in range(tiles.size):
            last = tiles[i] - 1
            tile = int((u[i] + shift[j, i]) * last)
            bits = _mix(bits ^ np.uint64(min(tile, last)))
        out[j] = np.int64(bits % size)


@part
def _place(x, scale):
    """``np.interp`` of one number, operation by operation, so rounding is the same; at most 1.

    ``scale`` (K, 2) has rising values and their places.
    """
    low, high = 0, len(scale) - 1
    if x >= scale[high, 0]:
        return scale[high, 1]
    while high - low > 1:
        middle = (low + high) // 2
        if x < scale[middle, 0]:
            high = middle
        else:
            low = middle
    if x <= scale[low, 0]:
        return scale[low, 1]
    slope = (scale[high, 1] - scale[low, 1]) / (scale[high, 0] - scale[low, 0])
    place = slope * (x - scale[low, 0]) + scale[low, 1]
    if np.isnan(place):  # 0 times inf: the range is too large for a floating-point number
        place = slope * (x - scale[high, 0]) + scale[high, 1]
    return min(place, 1.0)


@part
def _added_up(index, values):
    """Sort ``index``, keep each entry once, and count it in ``values``; returns how many are kept. (Shell's sort.)"""
    gap = 1
    while gap < index.size:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for e in range(gap, index.size):
            moved, to = index[e], e
            while to >= gap and index[to - gap] > moved:
                index[to] = index[to - gap]
                to -= gap
            index[to] = moved
    n = 0
    for e in range(index.size):
        if n > 0 and index[e] == index[n - 1]:
            values[n - 1] += 1.0
        else:
            index[n], values[n] = index[e], 1.0
            n += 1
    return n


@kernel
def tile_indices(states, low, high, tiles, tilings, out):
    """Write the index of the active tile of each tiling to ``out[:, :tilings]``, tile by tile and tiling by tiling.

    Returns the first state with an entry that is not a number (where it stopped), -1 if there is none.
    O(D · tilings) per state; the arithmetic is that of NumPy, operation by operation, so rounding is the same. The
    index is counted in integers, so it may have 63 bits.
    """
    n_dimensions = low.size
    shift = _shifts(tiles, tilings)
    u = np.empty(n_dimensions)
    for row in range(states.shape[0]):
        if not _locate(states[row], low, high, u):
            return row
        for j in range(tilings):
            index = j
            for i in range(n_dimensions):
                last = tiles[i] - 1
                tile = int((u[i] + shift[j, i]) * last)  # not negative: truncation is the floor
                index = index * tiles[i] + min(tile, last)
            out[row, j] = index
    return -1


@kernel
def short_tile_indices(states, low, high, tiles, tilings, out):
    """As :func:`tile_indices`, for indices of at most 53 bits, and faster.

    They are counted in floating-point numbers, exactly, for all tilings of a dimension at once: that is vectorised.
    Columns of ``out`` after the tilings are set to the first index that is no tile's.
    """
    n_dimensions = low.size
    shift = _shifts(tiles, tilings).T.copy()
    u, index = np.empty(n_dimensions), np.empty(tilings)
    n_tiles = tilings
    for n in tiles:
        n_tiles *= n
    for row in range(states.shape[0]):
        if not _locate(states[row], low, high, u):
            return row
        for j in range(tilings):
            index[j] = j
        for i in range(n_dimensions):
            n, last, u_i = float(tiles[i]), float(tiles[i] - 1), u[i]
            for j in range(tilings):
                index[j] = index[j] * n + min(np.floor((u_i + shift[i, j]) * last), last)
        for j in range(tilings):
            out[row, j] = np.int64(index[j])
        for j in range(tilings, out.shape[1]):
            out[row, j] = n_tiles
    return -1


@kernel
def short_tile_index(state, box, tiles, tilings, out):
    """As :func:`short_tile_indices`, of one state; ``box`` is (low, high). Returns whether it is a number."""
    u = np.empty(tiles.size)
    if not _locate(state, box[0], box[1], u):
        return False
    n_tiles = 1
    for n in tiles:
        n_tiles *= n
    for j in range(tilings):
        index = float(j)
        for i in range(tiles.size):
            n, last = float(tiles[i]), float(tiles[i] - 1)
            index = index * n + min(np.floor((u[i] + j / (tilings * tiles[i])) * last), last)
        out[j] = np.int64(index)
    for j in range(tilings, out.size):
        out[j] = tilings * n_tiles
    return True


@kernel
def hashed_tile_indices(states, low, high, tiles, tilings, hash_size, out):
    """As :func:`tile_indices`, with the hash of (tiling, coordinates) modulo ``hash_size`` as the index.

    h = mix(j), then h ← mix(h xor k_i) for each dimension, in 64 bits without sign.
    """
    shift = _shifts(tiles, tilings)
    u = np.empty(low.size)
    for row in range(states.shape[0]):
        if not _locate(states[row], low, high, u):
            return row
        _hash(u, shift, tiles, hash_size, out[row])
    return -1


@kernel
def hashed_tiles(state, box, tiles, tilings, hash_size, index, values):
    """The features of one state: indices as :func:`hashed_tile_indices`, then the bias, with equal ones added up.

    Returns how many there are; 0 if the state is not a number. ``index`` and ``values`` have room for all.
    """
    u = np.empty(tiles.size)
    if not _locate(state, box[0], box[1], u):
        return 0
    _hash(u, _shifts(tiles, tilings), tiles, hash_size, index)
    for j in range(tilings, index.size):
        index[j] = hash_size
    return _added_up(index, values)


@kernel
def auto_tiles(state, knots, columns, groups, tilings, n_features, is_hashed, index, values):
    """As :func:`hashed_tiles`, of :class:`~tlstd.AutoTiles`.

    ``knots`` (K, 2) are the scales of all columns. A row of ``columns`` is where the scale of a column begins and ends,
    and the number of tiles; one of ``groups`` is two columns, or one column twice, and the first index of their tiles.
    O(D log K + n_active), and a sort.
    """
    cells = np.empty((len(columns), tilings), dtype=np.int64)
    for i in range(len(columns)):
        if np.isnan(state[i]):
            return 0
        n, place = columns[i, 2], _place(state[i], knots[columns[i, 0] : columns[i, 1]])
        for j in range(tilings):
            cells[i, j] = int((place + j / (tilings * n)) * (n - 1))  # not negative: truncation is the floor
    hash_size = np.uint64(n_features - 1)
    for g in range(len(groups)):
        a, b, first = groups[g, 0], groups[g, 1], groups[g, 2]
        for j in range(tilings):
            tile = j * columns[a, 2] + cells[a, j]
            if b != a:
                tile = tile * columns[b, 2] + cells[b, j]
            tile += first
            index[g * tilings + j] = np.int64(_mix(np.uint64(tile)) % hash_size) if is_hashed else tile
    index[-1] = n_features - 1
    return _added_up(index, values)
