"""A log as least squares sees it: states as rows of features, the steps between them, groups and folds of episodes.

A state is encoded once. Steps refer to the rows of their state and of the next one, so that another discount, policy or
reward needs no new encoding. Episodes (or blocks of long ones) are groups: what is in one group is not independent, and
is held out together. Folds follow a hash of the episode's name, so that an episode has the same fold on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.features.base import FeatureMap
from tlstd.features.states import encoded
from tlstd.logs.log import Log

FOLDS = 5
BLOCK = 50_000
"""Rows that are encoded and multiplied at once."""
PIECE = 10_000
"""Steps of which matrices are summed at once."""
HIDDEN = 0.02
"""A return counts as seen if what is not seen of it weighs no more than this."""
HORIZONS = 5
"""Horizons (steps until a return is seen but for ``HIDDEN``) in a block of a long episode."""
FEWEST_BLOCKS, MOST_BLOCKS = 10, 50
"""Blocks of a log that is one long episode, as far as ``HORIZONS`` allows."""

BoolArray = NDArray[np.bool_]


class Rows:
    """Rows of features in blocks, over the features that occur in them.

    Example
    -------
    >>> from tlstd import OneHot
    >>> rows = Rows.of(OneHot([0], [9]), np.array([[3.0], [5.0], [3.0]]))
    >>> rows.ids, rows.times(np.array([[1.0], [2.0]])).ravel(), rows.back(np.ones((3, 1))).ravel()
    (array([3, 5]), array([1., 2., 1.]), array([2., 1.]))
    """

    def __init__(self, blocks: list[Any], ids: IntArray, n_features: int) -> None:
        self.blocks, self.ids, self.n_features = blocks, ids, n_features
        self.size: int = sum(int(block.shape[0]) for block in blocks)

    @classmethod
    def of(cls, features: FeatureMap, states: FloatArray) -> Rows:
        """The features of states (M, D)."""
        blocks = [encoded(features, np.ascontiguousarray(states[a : a + BLOCK])) for a in range(0, len(states), BLOCK)]
        n = features.n_features
        if not any(sp.issparse(block) for block in blocks):
            return cls([np.asarray(block, dtype=np.float64) for block in blocks], np.arange(n), n)
        blocks = [sp.csr_array(block) for block in blocks]
        for block in blocks:
            block.sum_duplicates()  # in order from the beginning: SciPy would do it on the way, and other sums follow
        if n <= 1 << 24:
            seen = np.zeros(n, dtype=np.bool_)
            for block in blocks:
                seen[block.indices] = True
            ids, place = np.flatnonzero(seen), (np.cumsum(seen) - 1).astype(np.int32)
            places = [place[block.indices] for block in blocks]
        else:
            ids = np.unique(np.concatenate([np.unique(block.indices) for block in blocks]))
            places = [np.searchsorted(ids, block.indices).astype(np.int32) for block in blocks]
        ones = np.ones(0)
        for b, (block, columns) in enumerate(zip(blocks, places, strict=True)):
            data = np.asarray(block.data, dtype=np.float64)
            if (data == 1.0).all():  # of binary features the ones are kept once for all blocks
                ones = np.ones(data.size) if data.size > ones.size else ones
                data = ones[: data.size]
            made = sp.csr_array((block.shape[0], ids.size))
            made.data, made.indices, made.indptr = data, columns, block.indptr.astype(np.int32)
            blocks[b] = made
        return cls(blocks, ids, n)

    def over(self, ids: IntArray) -> Rows:
        """The same rows over other features, in rising order; what these are without is left out."""
        if np.array_equal(ids, self.ids):
            return self
        order = np.searchsorted(self.ids, ids)
        known = (order < self.ids.size) & (self.ids[np.minimum(order, self.ids.size - 1)] == ids)
        width, new = self.ids.size, np.flatnonzero(known)
        if new.size == width:  # nothing is left out: entries stay where they are, and only have other numbers
            blocks = []
            for block in self.blocks:
                made = sp.csr_array((block.shape[0], ids.size))
                sparse = sp.csr_array(block)
                made.data, made.indptr = sparse.data, sparse.indptr
                made.indices = new.astype(np.int32)[sparse.indices]
                blocks.append(made)
            return Rows(blocks, ids, self.n_features)
        into = sp.csr_array((np.ones(new.size), (order[known], new)), shape=(width, ids.size))
        blocks = [sp.csr_array(sp.csr_array(block) @ into) for block in self.blocks]
        for block in blocks:
            block.sum_duplicates()
        return Rows(blocks, ids, self.n_features)

    @cached_property
    def dense(self) -> FloatArray | None:
        """All rows as one array (M, n); None if they are sparse."""
        if not self.blocks or any(sp.issparse(block) for block in self.blocks):
            return None
        if len(self.blocks) > 1:  # in one place from here on
            self.blocks = [np.concatenate(self.blocks)]
        found: FloatArray = self.blocks[0]
        return found

    def times(self, V: FloatArray) -> FloatArray:
        """Rows times the columns of V (n, k): (M, k)."""
        out = np.empty((self.size, V.shape[1]))
        start = 0
        for block in self.blocks:
            out[start : start + block.shape[0]] = block @ V
            start += block.shape[0]
        return out

    def back(self, U: FloatArray) -> FloatArray:
        """Σ_i row_iᵀ U_i for U (M, k): (n, k)."""
        out, start = np.zeros((self.ids.size, U.shape[1])), 0
        for block in self.blocks:
            out += block.T @ U[start : start + block.shape[0]]
            start += block.shape[0]
        return out

    def take(self, rows: IntArray) -> Any:
        """Some rows as one matrix."""
        parts, start = [], 0
        if len(self.blocks) == 1:
            return self.blocks[0][rows]
        order = np.argsort(rows, kind="stable")
        for block in self.blocks:
            some = rows[order][(rows[order] >= start) & (rows[order] < start + block.shape[0])]
            parts.append(block[some - start])
            start += block.shape[0]
        whole = sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)
        return whole[np.argsort(order, kind="stable")]

    @cached_property
    def square(self) -> float:
        """The mean ‖x‖²."""
        total = 0.0
        for block in self.blocks:
            total += float(np.square(block.data if sp.issparse(block) else block).sum())
        return total / max(1, self.size)

    @cached_property
    def off_one(self) -> FloatArray:
        """(n,): Σ (1 - x)² of each feature over the rows."""
        total = np.full(self.ids.size, float(self.size))
        for block in self.blocks:
            squares = block.power(2) if sp.issparse(block) else np.square(block)
            total += np.asarray(squares.sum(axis=0) - 2.0 * block.sum(axis=0)).ravel()
        return total


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a log whose next state is known, for one discount; arrays are (N,) unless they say otherwise."""

    log: Log
    gamma: float
    kept: IntArray
    """Their rows in the log."""
    states: NDArray[Any]
    """(M, D) or (M,) observations: each row of features is that of one of them."""
    row_of: IntArray
    """(len(log),): the row of features of every state of the log."""
    here: IntArray
    """Row of the state."""
    after: IntArray
    """Row of the next state; any row where the episode terminated."""
    rewards: FloatArray
    discounts: FloatArray
    """γ_{t+1}: 0 where the episode terminated."""
    episode: IntArray
    """Place in the log of the episode."""
    group: IntArray
    fold: IntArray
    n_groups: int
    n_blocks: int
    """How many of the groups are blocks of long episodes."""

    def __len__(self) -> int:
        return self.rewards.size

    @cached_property
    def begins(self) -> BoolArray:
        """Whether a group begins: no trace reaches over that."""
        begins: BoolArray = np.diff(self.group, prepend=-1) != 0
        return begins

    @cached_property
    def ends(self) -> BoolArray:
        """Whether a group ends."""
        return np.append(self.begins[1:], True) if len(self) else np.zeros(0, dtype=np.bool_)

    @cached_property
    def folds(self) -> IntArray:
        """The folds that there are."""
        return np.unique(self.fold)

    @cached_property
    def of_group(self) -> IntArray:
        """(G,): the fold of each group."""
        return self.fold[self.begins]

    @cached_property
    def starts(self) -> IntArray:
        """Steps with which an episode of the log begins."""
        return np.flatnonzero(np.isin(self.kept, self.log.start_rows))

    @cached_property
    def episode_ends(self) -> IntArray:
        """(G,): the step behind the last one of each episode that begins in the log, in the order of ``starts``."""
        last = np.append(np.flatnonzero(np.diff(self.episode)) + 1, len(self))
        return last[np.searchsorted(last, self.starts, side="right")]

    @cached_property
    def tails(self) -> FloatArray:
        """What of each step's return is not seen in its group: the product of the discounts to its end."""
        return self.following(np.where(self.ends, self.discounts, 0.0), self.discounts)

    @cached_property
    def returns(self) -> FloatArray:
        """The discounted rewards to the end of the group."""
        return self.following(self.rewards, self.discounts)

    @cached_property
    def pieces(self) -> list[slice]:
        """Steps of whole groups, about ``PIECE`` at a time."""
        begins = np.flatnonzero(self.begins)
        wanted = np.searchsorted(begins, np.arange(0, len(self), PIECE))
        cuts = np.append(begins[np.unique(np.minimum(wanted, begins.size - 1))], len(self)) if begins.size else [0]
        return [slice(int(a), int(b)) for a, b in pairwise(np.unique(cuts))]

    def following(self, values: FloatArray, factors: FloatArray) -> FloatArray:
        """s with s_t = values_t + factors_t s_{t+1} within groups; values (N,) or (N, k)."""
        return backward(values, np.where(self.ends, 0.0, factors))

    def sums(self, values: FloatArray) -> FloatArray:
        """(G,): sums over the groups."""
        return np.bincount(self.group, values, self.n_groups).astype(np.float64, copy=False)


def backward(values: FloatArray, factors: FloatArray) -> FloatArray:
    """s_t = values_t + factors_t s_{t+1}, along the first axis: a bidiagonal system.

    >>> backward(np.array([1.0, 1.0, 1.0]), np.array([0.5, 0.5, 0.0]))
    array([1.75, 1.5 , 1.  ])
    """
    band = np.empty((2, factors.size), order="F")
    band[0, 1:], band[1] = -factors[:-1], 1.0
    return _solved(band, values, "U")


def forward(values: FloatArray, factors: FloatArray) -> FloatArray:
    """u_t = values_t + factors_t u_{t-1}.

    >>> forward(np.array([1.0, 1.0, 1.0]), np.array([0.0, 0.5, 0.5]))
    array([1.  , 1.5 , 1.75])
    """
    band = np.empty((2, factors.size), order="F")
    band[0], band[1, :-1] = 1.0, -factors[1:]
    return _solved(band, values, "L")


def _solved(band: FloatArray, values: FloatArray, uplo: str) -> FloatArray:
    if not values.size:
        return values.copy()
    found, _ = scipy.linalg.lapack.dtbtrs(band, np.array(values, dtype=np.float64, order="F"), uplo=uplo, diag="U")
    result: FloatArray = found.reshape(values.shape)
    return result


def columns(observations: NDArray[Any]) -> FloatArray:
    """(M, D) numbers, as feature maps take them."""
    return observations.reshape(len(observations), -1).astype(np.float64, copy=False)


def steps_of(log: Log, gamma: float, *, distinct: bool = True, known: BoolArray | None = None) -> Steps:
    """The steps of a log.

    Parameters
    ----------
    log : Log
    gamma : float
    distinct : bool
        Whether discrete observations that are the same share a row; not where a policy is a table of steps.
    known : (N,) flags, optional
        Steps that can be used; all whose next state is known, if left out.
    """
    n, last = len(log), log.episodes[1:] - 1
    open_end = ~log.terminated[last]
    needed = np.flatnonzero(open_end & log.has_final)
    after = np.arange(1, n + 1)
    after[last] = last
    after[last[needed]] = n + np.arange(needed.size)
    states = np.concatenate([log.observations, log.final[needed]]) if needed.size else log.observations
    usable = np.ones(n, dtype=np.bool_) if known is None else known.copy()
    usable[last[open_end & ~log.has_final]] = False
    kept = np.flatnonzero(usable)
    row_of, after = np.arange(n), after[kept]
    if log.discrete and distinct:
        states, row = np.unique(states, return_inverse=True)
        row_of, after = row[:n], row[after]
    discounts = np.where(log.terminated, 0.0, gamma)[kept]
    episode = np.repeat(np.arange(log.n_episodes), np.diff(log.episodes))[kept]
    group, fold, n_blocks = dealt(episode, discounts, log)
    n_groups = int(group[-1]) + 1 if kept.size else 0
    return Steps(
        log,
        gamma,
        kept,
        states,
        row_of,
        row_of[kept],
        after,
        log.rewards[kept],
        discounts,
        episode,
        group,
        fold,
        n_groups,
        n_blocks,
    )


def dealt(episode: IntArray, discounts: FloatArray, log: Log) -> tuple[IntArray, IntArray, int]:
    """The group and the fold of each step, and how many groups are blocks.

    Episodes are groups, and follow the hash of their name into a fold. One that is longer than a fold is cut into
    blocks of ``HORIZONS`` horizons or more, dealt in turn.
    """
    n = episode.size
    if not n:
        return episode, episode, 0
    begins = np.flatnonzero(np.diff(episode, prepend=-1))
    lengths = np.diff(begins, append=n)
    step = -float(np.log(np.maximum(discounts, HIDDEN)).mean())
    horizon = -np.log(HIDDEN) / step if step > 0.0 else np.inf
    block = max(1, int(min(max(HORIZONS * horizon, n / MOST_BLOCKS), n / FEWEST_BLOCKS)))
    long = (lengths > n / FOLDS) & (lengths > block)
    names = hashes([log.ids[e] for e in episode[begins].tolist()])
    if log.clusters is not None:  # what belongs together is held out together
        assert log.cluster_names is not None
        names = hashes([str(name) for name in log.cluster_names])[log.clusters[episode[begins]]]
    of_episode = (names % np.uint64(FOLDS)).astype(np.int64)
    fold = np.repeat(of_episode, lengths)
    cuts, n_blocks = [begins], 0
    for begin, length, first in zip(begins[long], lengths[long], of_episode[long], strict=True):
        pieces = int(np.ceil(length / block))
        inside = begin + np.arange(pieces) * length // pieces
        fold[begin : begin + length] = np.repeat(
            (first + np.arange(pieces)) % FOLDS, np.diff(inside, append=begin + length)
        )
        cuts.append(inside)
        n_blocks += pieces
    first_steps = np.zeros(n, dtype=np.int64)
    first_steps[np.concatenate(cuts)] = 1
    return np.cumsum(first_steps) - 1, fold, n_blocks


def hashes(names: Sequence[Any], salt: str = "") -> NDArray[np.uint64]:
    """A stable hash of each episode's name."""
    if not salt and names and all(isinstance(name, (int, np.integer)) for name in names):  # quicker
        bits = np.array([int(name) & 0xFFFFFFFFFFFFFFFF for name in names], dtype=np.uint64)
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))
    digests = b"".join(hashlib.blake2b(f"{salt}:{name}".encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
