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
    n_dimensions = low.size
    shift = _shifts(tiles, tilings)
    u = np.empty(n_dimensions)
    size = np.uint64(hash_size)
    for row in range(states.shape[0]):
        if not _locate(states[row], low, high, u):
            return row
        for j in range(tilings):
            bits = _mix(np.uint64(j))
            for i in range(n_dimensions):
                last = tiles[i] - 1
                tile = int((u[i] + shift[j, i]) * last)
                bits = _mix(bits ^ np.uint64(min(tile, last)))
            out[row, j] = np.int64(bits % size)
    return -1
