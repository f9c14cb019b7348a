"""Two systems of disjoint samples as one: the state that a system has after the samples of both.

The samples of the second count as coming after those of the first, with a trace that starts empty. Features have the
rows that they would have then: those of the first system, and after them what is new in the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import State
from tlstd.core.svd import EPS, svd
from tlstd.core.threads import one_thread


class Rows:
    """The features of two systems, and where those of the second are.

    >>> rows = Rows(np.array([5, 2]), np.array([7, 5]))
    >>> rows.ids, rows.second, rows.widened(np.array([1.0, 2.0]))
    (array([5, 2, 7]), array([2, 0]), array([2., 0., 1.]))
    """

    def __init__(self, first: IntArray, second: IntArray) -> None:
        new = second[~np.isin(second, first)]
        self.ids: IntArray = np.concatenate([first, new])
        order = np.argsort(self.ids)
        self.second: IntArray = order[np.searchsorted(self.ids, second, sorter=order)]
        self.n_first = first.size

    def lengthened(self, a: FloatArray) -> FloatArray:
        """An array over the first system's features, over all."""
        whole = np.zeros((self.ids.size, *a.shape[1:]))
        whole[: a.shape[0]] = a
        return whole

    def widened(self, a: FloatArray) -> FloatArray:
        """An array over the second system's features (or over the first ones of them), over all."""
        whole = np.zeros((self.ids.size, *a.shape[1:]))
        whole[self.second[: a.shape[0]]] = a
        return whole

    def added(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Square matrices over the features of each, added."""
        whole = np.zeros((self.ids.size, self.ids.size))
        whole[: self.n_first, : self.n_first] = A
        whole[np.ix_(self.second, self.second)] += B
        return whole


def full_systems(first: State, second: State) -> State:
    """Of :class:`~tlstd.classic.full_system.FullSystem`: A and b add."""
    if first["n_samples"] == 0 or second["n_samples"] == 0:
        return second if first["n_samples"] == 0 else first
    rows = Rows(first["seen"]["ids"], second["seen"]["ids"])
    dense = "dense" in (first["storage"], second["storage"])
    made: dict[str, Any] = {
        "seen": {"ids": rows.ids},
        "storage": "dense" if dense else "sparse",
        "scale": 1.0,
        "n_samples": first["n_samples"] + second["n_samples"],
        "A": rows.added(
            *(part["A"] + part["Z"].T @ part["D"] if len(part["Z"]) else part["A"] for part in (first, second))
        ),
        "b": rows.lengthened(first["b"]) + rows.widened(second["b"]),
        "z": rows.widened(second["z"]),
        "active": np.zeros(0, dtype=np.int64) if dense else rows.second[second["active"]],
        "Z": np.zeros((0, rows.ids.size if dense else 0)),
        "D": np.zeros((0, rows.ids.size if dense else 0)),
    }
    if "moments" in first:
        made["moments"] = _moments(first["moments"], second["moments"])
    return made


def _moments(first: State, second: State) -> State:
    """Squares add; constant is what is constant in both, with the same value."""
    ids, i, j = np.intersect1d(first["constant_ids"], second["constant_ids"], return_indices=True)
    values = first["constant_values"][i]
    same = values == second["constant_values"][j]
    squares = first["squares"] + second["squares"]
    return {"squares": squares, "constant_ids": ids[same], "constant_values": values[same]}


def recursive_systems(first: State, second: State, initial_diagonal: float) -> State:
    """Of :class:`~tlstd.classic.recursive_system.RecursiveSystem`: A and b add; the inverse is computed when read."""
    if first["n_samples"] == 0 or second["n_samples"] == 0:
        return second if first["n_samples"] == 0 else first
    rows = Rows(first["seen"]["ids"], second["seen"]["ids"])
    A = rows.added(first["inverse"]["A"], second["inverse"]["A"])
    twice = rows.second[rows.second < rows.n_first]
    A[twice, twice] -= initial_diagonal
    return {
        "seen": {"ids": rows.ids},
        "inverse": {"healthy": False, "A": A, "P": np.zeros((0, 0)), "capacity": rows.ids.size},
        "scale": 1.0,
        "n_samples": first["n_samples"] + second["n_samples"],
        "z": rows.widened(second["z"]),
        "b": rows.lengthened(first["b"]) + rows.widened(second["b"]),
    }


def truncated_systems(first: State, second: State, rank: int) -> State:
    """Of :class:`~tlstd.truncated.truncated_system.TruncatedSystem` with empty buffers: joined, and cut to the rank.

    A = ω₁ U₁Σ₁V₁ᵀ + ω₂ U₂Σ₂V₂ᵀ, ω by the numbers of samples, has a rank of at most twice ``rank``: its SVD is that of
    the small matrix R_U diag(ω₁σ₁, ω₂σ₂) R_Vᵀ between QR decompositions of [U₁ U₂] and [V₁ V₂]. O(n·rank²).
    """
    counts = [part["n_compressed"] for part in (first, second)]
    if 0 in counts:
        return second if counts[0] == 0 else first
    shares = [count / sum(counts) for count in counts]
    rows = Rows(first["seen"]["ids"], second["seen"]["ids"])
    one, two = first["factors"], second["factors"]
    sigma = np.concatenate([share * part["sigma"] for share, part in zip(shares, (one, two), strict=True)])
    with one_thread():
        sides = [np.hstack([rows.lengthened(one[side]), rows.widened(two[side])]) for side in ("U", "V")]
        (Q_U, R_U), (Q_V, R_V) = (scipy.linalg.qr(side, mode="economic", check_finite=False) for side in sides)
        L, sigma, Rt = svd((R_U * sigma) @ R_V.T)
        kept = min(rank, int(np.count_nonzero(sigma > EPS * sigma[:1].max(initial=0.0))))
        U, V = np.ascontiguousarray(Q_U @ L[:, :kept]), np.ascontiguousarray(Q_V @ Rt[:kept].T)
    made = dict(second if second["storage"] == "dense" or first["storage"] == "sparse" else first)
    made |= {
        "seen": {"ids": rows.ids},
        "factors": {"U": U, "sigma": sigma[:kept], "V": V, "doubt": 0.0},
        "n_compressed": sum(counts),
        "b": shares[0] * rows.lengthened(first["b"]) + shares[1] * rows.widened(second["b"]),
        "z": rows.widened(second["z"]),
    }
    if "trace" in second:
        made["trace"], made["trace_scale"] = rows.widened(second["trace"]), second["trace_scale"]
    return made


def kept_samples(first: State, second: State, n_features: int) -> State:
    """Of :class:`~tlstd.krylov.samples.SampleStore` that has all its samples: one behind the other."""
    if first["n_samples"] == 0 or second["n_samples"] == 0:
        return second if first["n_samples"] == 0 else first
    rows = Rows(first["seen"]["ids"], second["seen"]["ids"])
    dense = "dense" in (first["storage"], second["storage"])
    before, after = dict(first), dict(second)
    after["positions"] = rows.second[after["positions"]]
    after["trace_discounts"] = after["trace_discounts"].copy()
    after["trace_discounts"][0] = 0.0  # its trace starts empty
    if dense:
        for part in (before, after):
            _make_dense(part, rows.ids, n_features)
    made: dict[str, Any] = {
        "seen": {"ids": np.arange(n_features) if dense else rows.ids},
        "storage": "dense" if dense else "sparse",
        "n_samples": first["n_samples"] + second["n_samples"],
        "n_left": 0,
        "border": np.zeros(0),
    }
    for name in ("shared", "lengths", "positions", "X", "rewards", "discounts", "trace_discounts"):
        made[name] = np.concatenate([before[name], after[name]])
    for name, size in (("values", "positions"), ("rhos", "rewards")):  # left out if they are all 1
        parts = [part[name] for part in (before, after)]
        if any(part.size for part in parts):
            sizes = [len(part[size]) for part in (before, after)]
            parts = [part if part.size else np.ones(n) for part, n in zip(parts, sizes, strict=True)]
        made[name] = np.concatenate(parts)
    return made


def _make_dense(part: dict[str, Any], ids: IntArray, n_features: int) -> None:
    """Rows as dense ones, in the order of the features; in place."""
    if part["storage"] == "sparse":
        lengths, positions = part["lengths"], part["positions"]
        X = np.zeros((lengths.size, n_features))
        values = part["values"] if part["values"].size else 1.0
        X[np.repeat(np.arange(lengths.size), lengths), ids[positions]] = values
        part["X"] = X
    part.update(lengths=np.zeros(0, dtype=np.int64), positions=np.zeros(0, dtype=np.int64), values=np.zeros(0))
