"""The data that estimators learn from: sparse vectors, transitions and columns of transitions.

Every value is checked where it enters: a :class:`SparseVector` or a :class:`Transition` that exists is
valid and cannot be changed, so estimators only have to compare sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.errors import CapacityError, InvalidInputError, InvalidParameterError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Scalar = TypeVar("Scalar", np.float64, np.int64)

MAX_MAGNITUDE = 1e100
"""Largest absolute value accepted for features, rewards and importance ratios.

The algorithms form products of up to three inputs; up to this size none of them overflows.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """A vector of ``size`` entries, of which only the non-zero ones are stored.

    Indices may come unsorted and repeated (repeated entries add up) and in any integer type; they are stored
    sorted, unique and without zeros. Nothing that is passed in is kept or changed.

    Parameters
    ----------
    indices : (nnz,) integers in ``[0, size)``
    values : (nnz,) real numbers, finite and at most ``MAX_MAGNITUDE`` in size
    size : int
        Number of features; may be far larger than memory, e.g. ``2**31`` hashed features, up to ``2**63 - 1``.

    Example
    -------
    >>> x = SparseVector([7, 2, 7], [1.0, 3.0, 0.5], size=10)
    >>> x.indices, x.values
    (array([2, 7]), array([3. , 1.5]))
    >>> x.nnz
    2
    """

    indices: IntArray
    values: FloatArray
    size: int

    def __init__(self, indices: ArrayLike, values: ArrayLike, size: int) -> None:
        size = _as_size(size)
        index, value = _as_indices(indices, size), _as_floats(values, "values", 1)
        if index.shape != value.shape:
            raise InvalidInputError(
                f"a sparse vector has {index.size} indices but {value.size} values: pass one value per index"
            )
        if index.size > 1 and not (index[1:] > index[:-1]).all():
            index, inverse = np.unique(index, return_inverse=True)
            summed = np.zeros(index.size)
            np.add.at(summed, inverse, value)
            value = summed
            _check_magnitude(value, "values")
        kept = value != 0.0
        index, value = index[kept], value[kept]  # copies
        _set(self, indices=_locked(index), values=_locked(value), size=size)

    @classmethod
    def from_dense(cls, x: ArrayLike) -> SparseVector:
        """The non-zero entries of a dense vector."""
        dense = _as_floats(x, "x", 1)
        index = np.flatnonzero(dense)
        return cls._trusted(index, dense[index], _as_size(dense.size))

    @classmethod
    def _trusted(cls, indices: IntArray, values: FloatArray, size: int) -> SparseVector:
        """Wrap arrays that are already sorted, unique, finite, non-zero and owned by the caller."""
        self = cls.__new__(cls)
        _set(self, indices=_locked(indices), values=_locked(values), size=size)
        return self

    @property
    def nnz(self) -> int:
        """Number of stored (non-zero) entries."""
        return self.indices.size

    def toarray(self) -> FloatArray:
        """Return the vector as a dense array of ``size`` entries."""
        try:
            dense = np.zeros(self.size)
        except (MemoryError, ValueError) as error:
            raise CapacityError(
                f"a dense vector of {self.size} entries does not fit into memory: use indices and values"
            ) from error
        dense[self.indices] = self.values
        return dense

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"SparseVector(nnz={self.nnz}, size={self.size})"


Vector: TypeAlias = FloatArray | SparseVector
VectorLike: TypeAlias = ArrayLike | SparseVector
Matrix: TypeAlias = "FloatArray | sp.csr_array"


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """One step of experience: from ``x``, with ``reward``, to ``x_next``.

    Two discounts say what one cannot: ``discount`` (γ at time t+1) weighs the bootstrap from ``x_next`` and is 0
    when the episode *terminated* but not when it was cut off; ``trace_discount`` (γ at time t) decays the
    eligibility trace and is 0 on the first step of an episode. :class:`TransitionBuilder` sets both.

    Parameters
    ----------
    x, x_next : 1-D array or SparseVector
    reward : float, or one per target
    discount, trace_discount : float in [0, 1]
    rho : float >= 0
        Importance ratio of the action taken, target over behaviour policy.

    Example
    -------
    >>> t = Transition([1.0, 0.0], -1.0, [0.0, 1.0], discount=0.9, trace_discount=0.0)
    >>> t.n_features, t.rho
    (2, 1.0)
    """

    x: Vector
    reward: float | FloatArray
    x_next: Vector
    discount: float
    trace_discount: float
    rho: float

    def __init__(
        self,
        x: VectorLike,
        reward: float | ArrayLike,
        x_next: VectorLike,
        *,
        discount: float,
        trace_discount: float,
        rho: float = 1.0,
    ) -> None:
        _set(
            self,
            x=as_vector(x, "x"),
            reward=_as_reward(reward),
            x_next=as_vector(x_next, "x_next"),
            discount=_as_unit(discount, "discount"),
            trace_discount=_as_unit(trace_discount, "trace_discount"),
            rho=_as_ratio(rho),
        )
        if _size(self.x) != _size(self.x_next):
            raise InvalidInputError(
                f"x has {_size(self.x)} features but x_next has {_size(self.x_next)}: encode both with one map"
            )

    @property
    def n_features(self) -> int:
        """Number of features of ``x`` and ``x_next``."""
        return _size(self.x)

    @property
    def n_targets(self) -> int:
        """Number of reward signals."""
        return 1 if isinstance(self.reward, float) else self.reward.size


class TransitionBuilder:
    """Turns what an environment says at each step into transitions with the right discounts.

    Parameters
    ----------
    gamma : float in [0, 1]
        Discount used when a step does not bring its own.

    Example
    -------
    >>> build = TransitionBuilder(gamma=0.9)
    >>> build.reset([1.0, 0.0])
    >>> t = build.step(-1.0, [0.0, 1.0])
    >>> t.discount, t.trace_discount
    (0.9, 0.0)
    >>> t = build.step(-1.0, [1.0, 0.0], truncated=True)   # a time limit: bootstraps
    >>> t.discount, t.trace_discount
    (0.9, 0.9)
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = _as_unit(gamma, "gamma")
        self._x: Vector | None = None
        self._trace_discount = 0.0

    def reset(self, x: VectorLike) -> None:
        """Begin an episode at ``x``; the next step starts with an empty trace."""
        self._x = as_vector(x, "x")
        self._trace_discount = 0.0

    def step(
        self,
        reward: float | ArrayLike,
        x_next: VectorLike,
        *,
        terminated: bool = False,
        truncated: bool = False,
        rho: float = 1.0,
        discount: float | None = None,
    ) -> Transition:
        """Return the transition from the current features to ``x_next`` and move there.

        ``terminated`` makes the discount 0; ``truncated`` leaves it. After either, call :meth:`reset`.
        """
        if self._x is None:
            raise InvalidInputError("step() was called outside an episode: call reset(x) first")
        transition = Transition(
            self._x,
            reward,
            x_next,
            discount=0.0 if terminated else self.gamma if discount is None else discount,
            trace_discount=self._trace_discount,
            rho=rho,
        )
        self._x = None if terminated or truncated else transition.x_next
        self._trace_discount = transition.discount
        return transition


class Transitions:
    """Many transitions, in columns.

    Arrays are referenced, not copied (do not change them while they are in use), and slices are views. Features
    live in a *store*, one row per distinct observation, to which each transition points twice, so that a recorded
    trajectory holds each observation once; :meth:`from_rows` gives direct access to that form.

    Parameters
    ----------
    X, X_next : (N, d) array or scipy.sparse array
    rewards : (N,) or (N, n_targets)
    discounts, trace_discounts : (N,) in [0, 1]; see :class:`Transition`
    rhos : (N,) >= 0, optional
        Importance ratios; all one if left out.

    Example
    -------
    >>> steps = Transitions.from_arrays(
    ...     np.eye(3), [0.0, 0.0, 1.0], np.eye(3)[[1, 2, 0]],
    ...     terminated=[False, False, True], truncated=[False, False, False], gamma=0.9)
    >>> len(steps), steps.discounts, steps.trace_discounts
    (3, array([0.9, 0.9, 0. ]), array([0. , 0.9, 0.9]))
    >>> len(steps[1:])
    2
    """

    __slots__ = (
        "discounts",
        "n_features",
        "n_targets",
        "next_rows",
        "next_store",
        "rewards",
        "rhos",
        "rows",
        "store",
        "trace_discounts",
    )

    store: Matrix
    next_store: Matrix
    rows: IntArray
    next_rows: IntArray
    rewards: FloatArray
    discounts: FloatArray
    trace_discounts: FloatArray
    rhos: FloatArray
    n_features: int
    n_targets: int

    def __init__(
        self,
        X: Any,
        rewards: ArrayLike,
        X_next: Any,
        *,
        discounts: ArrayLike,
        trace_discounts: ArrayLike,
        rhos: ArrayLike | None = None,
    ) -> None:
        store, next_store = as_matrix(X, "X"), as_matrix(X_next, "X_next")
        if store.shape != next_store.shape:
            raise InvalidInputError(f"X has shape {store.shape} but X_next has {next_store.shape}: they need the same")
        rows = np.arange(store.shape[0])
        self._fill(store, rows, rewards, next_store, rows, discounts, trace_discounts, rhos)

    @classmethod
    def from_rows(
        cls,
        store: Any,
        rows: ArrayLike,
        rewards: ArrayLike,
        next_rows: ArrayLike,
        *,
        discounts: ArrayLike,
        trace_discounts: ArrayLike,
        rhos: ArrayLike | None = None,
    ) -> Transitions:
        """Transitions between rows of one feature matrix: from ``store[rows[t]]`` to ``store[next_rows[t]]``."""
        self = cls.__new__(cls)
        matrix = as_matrix(store, "store")
        n_rows = matrix.shape[0]
        self._fill(
            matrix,
            _as_indices(rows, n_rows, "rows"),
            rewards,
            matrix,
            _as_indices(next_rows, n_rows, "next_rows"),
            discounts,
            trace_discounts,
            rhos,
        )
        return self

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        rewards: ArrayLike,
        X_next: Any,
        *,
        terminated: ArrayLike,
        truncated: ArrayLike,
        gamma: float | ArrayLike,
        rhos: ArrayLike | None = None,
    ) -> Transitions:
        """Transitions of consecutive steps, as logged: the flags become the two discounts.

        A terminated step does not bootstrap, a truncated one does, and after either the trace starts empty.
        ``gamma`` is one number or one per step. Steps of several environments must be grouped by environment,
        with ``truncated`` set where one group ends.
        """
        X = as_matrix(X, "X")
        n = X.shape[0]
        ended, cut = _as_flags(terminated, "terminated", n), _as_flags(truncated, "truncated", n)
        gammas = _as_floats(gamma, "gamma", None)
        if gammas.shape not in ((), (n,)):
            raise InvalidInputError(f"gamma has shape {gammas.shape}: pass one number, or one for each of {n} steps")
        _check_unit(np.atleast_1d(gammas), "gamma")
        discounts = np.where(ended, 0.0, gammas)
        trace_discounts = np.zeros(n)
        trace_discounts[1:] = np.where(cut, 0.0, discounts)[:-1]
        return cls(X, rewards, X_next, discounts=discounts, trace_discounts=trace_discounts, rhos=rhos)

    @classmethod
    def from_episodes(cls, episodes: Iterable[tuple[Any, ArrayLike, bool]], *, gamma: float) -> Transitions:
        """Transitions of whole episodes ``(X with T+1 rows, rewards with T, terminated)``.

        ``terminated=False`` means that the episode was cut off: its last step bootstraps from the last row. An episode
        of one row and no reward adds no transition.
        """
        gamma = _as_unit(gamma, "gamma")
        matrices: list[Matrix] = []
        reward_parts: list[FloatArray] = []
        rows, discounts, trace_discounts = [], [], []
        offset = 0
        for number, (features, rewards, terminated) in enumerate(episodes):
            X, r = (
                as_matrix(features, f"X of episode {number}"),
                _as_floats(rewards, f"rewards of episode {number}", None),
            )
            length = X.shape[0] - 1
            if not isinstance(terminated, (bool, np.bool_)):
                raise InvalidInputError(f"terminated of episode {number} is {terminated!r}: pass True or False")
            if r.ndim == 0 or r.shape[0] != length or length < 0:
                raise InvalidInputError(
                    f"episode {number} has {X.shape[0]} feature rows and rewards of shape {r.shape}: "
                    "T rewards need T+1 rows (the last one is the final observation)"
                )
            if matrices and X.shape[1] != matrices[0].shape[1]:
                raise InvalidInputError(
                    f"episode {number} has {X.shape[1]} features but episode 0 has {matrices[0].shape[1]}"
                )
            matrices.append(X)
            if length:
                if reward_parts and r.shape[1:] != reward_parts[0].shape[1:]:
                    raise InvalidInputError(
                        f"episode {number} has rewards of shape {r.shape} after ones of shape {reward_parts[0].shape}: "
                        "all episodes need the same targets"
                    )
                reward_parts.append(r)
            rows.append(np.arange(offset, offset + length))
            discount, trace_discount = np.full(length, gamma), np.full(length, gamma)
            discount[length - 1 :] = 0.0 if terminated else gamma
            trace_discount[:1] = 0.0
            discounts.append(discount)
            trace_discounts.append(trace_discount)
            offset += length + 1
        if not matrices:
            raise InvalidInputError("there are no episodes: pass at least one (X, rewards, terminated)")
        if any(sp.issparse(X) for X in matrices):
            store: Any = sp.csr_array(sp.vstack([sp.csr_array(X) for X in matrices]))
        else:
            store = np.concatenate(matrices)
        row = np.concatenate(rows)
        return cls.from_rows(
            store,
            row,
            np.concatenate(reward_parts) if reward_parts else np.zeros(0),
            row + 1,
            discounts=np.concatenate(discounts),
            trace_discounts=np.concatenate(trace_discounts),
        )

    def _fill(
        self,
        store: Matrix,
        rows: IntArray,
        rewards: ArrayLike,
        next_store: Matrix,
        next_rows: IntArray,
        discounts: ArrayLike,
        trace_discounts: ArrayLike,
        rhos: ArrayLike | None,
    ) -> None:
        n = rows.size
        columns: dict[str, FloatArray] = {
            "rewards": _as_floats(rewards, "rewards", None),
            "discounts": _as_floats(discounts, "discounts", 1),
            "trace_discounts": _as_floats(trace_discounts, "trace_discounts", 1),
            "rhos": np.ones(n) if rhos is None else _as_floats(rhos, "rhos", 1),
        }
        for name, column in (("next_rows", next_rows), *columns.items()):
            if column.ndim == 0 or column.shape[0] != n:
                raise InvalidInputError(
                    f"{name} has shape {column.shape} but there are {n} transitions: ragged columns cannot be used"
                )
        if columns["rewards"].ndim > 2 or columns["rewards"].shape[1:] == (0,):
            raise InvalidInputError(f"rewards have shape {columns['rewards'].shape}: pass (N,) or (N, n_targets)")
        self.store, self.rows, self.next_store = store, rows, next_store
        self.next_rows, self.rewards = next_rows, columns["rewards"]
        self.discounts, self.trace_discounts = columns["discounts"], columns["trace_discounts"]
        self.rhos = columns["rhos"]
        self.n_features = int(store.shape[1])
        self.n_targets = 1 if self.rewards.ndim == 1 else self.rewards.shape[1]
        self.check()

    def check(self) -> None:
        """Raise :class:`InvalidInputError` if any value cannot be used.

        Called on construction, and by every ``update_many`` before it changes the model, because the arrays are
        shared with the caller.
        """
        _check_unit(self.discounts, "discounts")
        _check_unit(self.trace_discounts, "trace_discounts")
        _check_magnitude(self.rewards, "rewards")
        _check_magnitude(self.rhos, "rhos")
        if self.rhos.size and self.rhos.min() < 0.0:
            raise InvalidInputError(f"rhos has the value {self.rhos.min()}: importance ratios are >= 0")
        _check_rows(self.store, self.rows, "X")
        _check_rows(self.next_store, self.next_rows, "X_next")

    @property
    def X(self) -> Matrix:
        """Features before each step, (N, d)."""
        return _take(self.store, self.rows)

    @property
    def X_next(self) -> Matrix:
        """Features after each step, (N, d)."""
        return _take(self.next_store, self.next_rows)

    @property
    def is_sparse(self) -> bool:
        """Whether the features are stored as sparse rows."""
        return not isinstance(self.store, np.ndarray)

    def __len__(self) -> int:
        return self.rows.size

    @overload
    def __getitem__(self, key: int) -> Transition: ...
    @overload
    def __getitem__(self, key: slice) -> Transitions: ...
    def __getitem__(self, key: int | slice) -> Transition | Transitions:
        if isinstance(key, slice):
            part = object.__new__(Transitions)
            for name in ("store", "next_store", "n_features", "n_targets"):
                setattr(part, name, getattr(self, name))
            for name in ("rows", "next_rows", "rewards", "discounts", "trace_discounts", "rhos"):
                setattr(part, name, getattr(self, name)[key])
            return part
        i = range(len(self))[key]
        reward = self.rewards[i]
        return Transition(
            _row(self.store, int(self.rows[i])),
            float(reward) if reward.ndim == 0 else reward,
            _row(self.next_store, int(self.next_rows[i])),
            discount=float(self.discounts[i]),
            trace_discount=float(self.trace_discounts[i]),
            rho=float(self.rhos[i]),
        )

    def __iter__(self) -> Iterator[Transition]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return f"Transitions({len(self)} steps, {self.n_features} {kind} features, {self.n_targets} target(s))"


# ---------------------------------------------------------------------------------------------------------------------
# Turning what users pass into checked arrays


def as_vector(x: VectorLike, name: str = "x") -> Vector:
    """Return ``x`` as a SparseVector or as a read-only copy of a dense float64 vector, checked."""
    if isinstance(x, SparseVector):
        return x
    if sp.issparse(x):
        raise InvalidInputError(f"{name} is a scipy sparse matrix: pass SparseVector(indices, values, size)")
    dense = _as_floats(x, name, 1)
    return _locked(dense if isinstance(x, (list, tuple)) else dense.copy())  # anything else may share its memory


def as_matrix(X: Any, name: str = "X") -> Matrix:
    """Return ``X`` as a C-ordered float64 array or a canonical csr_array with int64 indices, checked."""
    if not sp.issparse(X):
        return np.ascontiguousarray(_as_floats(X, name, 2))
    if X.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} has values of type {X.dtype}: pass real numbers")
    if X.ndim != 2:
        raise InvalidInputError(f"{name} has shape {X.shape}: it must have 2 dimension(s)")
    _check_sparse_structure(X, name)
    with np.errstate(over="ignore"):
        csr = sp.csr_array(X, dtype=np.float64)
    if not csr.has_canonical_format or (csr.data == 0.0).any():
        csr = csr.copy()  # indices, indptr and data may each be the caller's
        csr.sum_duplicates()
        csr.eliminate_zeros()
    _check_magnitude(csr.data, name)
    if csr.indices.dtype != np.int64 or csr.indptr.dtype != np.int64:
        wide = sp.csr_array(csr.shape, dtype=np.float64)
        wide.data, wide.indices, wide.indptr = (
            csr.data,
            csr.indices.astype(np.int64),
            csr.indptr.astype(np.int64),
        )
        csr = wide
    return csr


def _set(instance: object, **fields: object) -> None:
    """Set fields of a frozen instance while it is being made."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)


def _locked(array: NDArray[Scalar]) -> NDArray[Scalar]:
    array.flags.writeable = False
    return array


def _size(x: Vector) -> int:
    return x.size


def _row(matrix: Matrix, i: int) -> Vector:
    if isinstance(matrix, np.ndarray):
        return as_vector(matrix[i])
    start, stop = matrix.indptr[i], matrix.indptr[i + 1]
    return SparseVector(matrix.indices[start:stop], matrix.data[start:stop], matrix.shape[1])


def _take(matrix: Matrix, rows: IntArray) -> Matrix:
    n = rows.size
    if n and rows[-1] - rows[0] == n - 1 and (np.diff(rows) == 1).all():
        return matrix[int(rows[0]) : int(rows[0]) + n]
    return matrix[rows]


def _as_size(size: object) -> int:
    if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)) or not 1 <= size < 1 << 63:
        raise InvalidParameterError(f"size is {size!r}: it must be a positive integer below 2**63")
    return int(size)


def _as_array(value: ArrayLike, name: str) -> NDArray[Any]:
    """Return ``value`` as an array of whatever type it has."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInputError(f"{name} has masked entries: fill them or leave them out")
    try:
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInputError(f"{name} cannot be read ({error}): pass a rectangular array of numbers") from error


def _as_floats(value: ArrayLike, name: str, ndim: int | None) -> FloatArray:
    """Return ``value`` as float64 of ``ndim`` dimensions (any if None); finite and not too large."""
    array = _as_array(value, name)
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} has values of type {array.dtype}: pass an array of real numbers")
    if ndim is not None and array.ndim != ndim:
        raise InvalidInputError(f"{name} has shape {array.shape}: it must have {ndim} dimension(s)")
    with np.errstate(over="ignore"):
        floats = array.astype(np.float64, copy=False)
    _check_magnitude(floats, name)
    return floats


def _as_indices(value: ArrayLike, size: int, name: str = "indices") -> IntArray:
    array = _as_array(value, name)
    if array.size == 0 and array.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InvalidInputError(f"{name} have type {array.dtype} and shape {array.shape}: pass a 1-D array of integers")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        raise InvalidInputError(f"{name} contain {low if low < 0 else high}: they must lie in [0, {size})")
    return array.astype(np.int64, copy=False)


def _as_flags(value: ArrayLike, name: str, n: int) -> NDArray[np.bool_]:
    array = _as_array(value, name)
    if array.shape != (n,) or (n and array.dtype.kind not in "biu"):
        raise InvalidInputError(
            f"{name} has shape {array.shape} and type {array.dtype}: pass one boolean for each of the {n} steps"
        )
    return array.astype(np.bool_)


def _as_reward(reward: float | ArrayLike) -> float | FloatArray:
    array = _as_floats(reward, "reward", None)
    if array.ndim == 0:
        return float(array)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError(f"reward has shape {array.shape}: pass a number, or a 1-D array of one per target")
    return float(array[0]) if array.size == 1 else _locked(array.copy())


def _as_unit(value: object, name: str) -> float:
    number = _as_number(value, name)
    if not 0.0 <= number <= 1.0:
        raise InvalidInputError(f"{name} is {value!r}: discounts lie in [0, 1]")
    return number


def _as_ratio(value: object) -> float:
    number = _as_number(value, "rho")
    if not 0.0 <= number <= MAX_MAGNITUDE:
        raise InvalidInputError(f"rho is {value!r}: an importance ratio is a finite number >= 0")
    return number


def _as_number(value: object, name: str) -> float:
    if isinstance(value, (float, int, np.integer, np.floating, np.bool_)) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiub"
    ):
        try:
            return float(value)
        except OverflowError:
            return np.inf if value > 0 else -np.inf
    raise InvalidInputError(f"{name} is {value!r}: pass a number")


def _check_unit(array: FloatArray, name: str) -> None:
    if array.size and not (array.min() >= 0.0 and array.max() <= 1.0):
        bad = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))[0]
        raise InvalidInputError(f"{name}[{bad}] is {array[bad]}: discounts lie in [0, 1]")


def _check_magnitude(array: FloatArray, name: str) -> None:
    if array.size and not (array.max() <= MAX_MAGNITUDE and array.min() >= -MAX_MAGNITUDE):
        bad = np.flatnonzero(~(np.abs(array) <= MAX_MAGNITUDE).ravel())[0]
        raise InvalidInputError(
            f"{name} contains {array.ravel()[bad]} (flat position {bad}): "
            f"values must be finite and at most {MAX_MAGNITUDE:g} in size; clean or rescale the data"
        )


def _check_rows(store: Matrix, rows: IntArray, name: str) -> None:
    """Check the rows in use; where they lie close together, with what lies between them, which spares a copy."""
    if not rows.size:
        return
    low, high = int(rows.min()), int(rows.max()) + 1
    if low < 0 or high > store.shape[0]:
        raise InvalidInputError(f"{name} has rows from {low} to {high - 1}: they must lie in [0, {store.shape[0]})")
    together = high - low <= 4 * rows.size
    if isinstance(store, np.ndarray):
        _check_magnitude(store[low:high] if together else store[rows], name)
        return
    if together:
        starts, stops = store.indptr[low:high], store.indptr[low + 1 : high + 1]
    else:
        starts, stops = store.indptr[rows], store.indptr[rows + 1]
    lengths = stops - starts
    if starts.min() < 0 or lengths.min() < 0 or stops.max() > min(store.indices.size, store.data.size):
        raise InvalidInputError(f"{name} has a broken indptr: it must rise from 0 to the number of its entries")
    ends = np.cumsum(lengths)
    picked: slice | IntArray = slice(starts[0], stops[-1])
    if not together:
        picked = np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths)
    _check_magnitude(store.data[picked], name)
    indices = store.indices[picked]
    _check_range(indices, store.shape[1], name, "column")
    rising = indices[1:] > indices[:-1]
    rising[ends[(ends > 0) & (ends < indices.size)] - 1] = True  # from one row to the next they need not rise
    if not rising.all():
        raise InvalidInputError(f"{name} has column indices that do not rise within a row: call sum_duplicates()")


def _check_range(indices: NDArray[Any], size: int, name: str, axis: str) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        raise InvalidInputError(
            f"{name} has {axis} indices from {indices.min()} to {indices.max()}: they must lie in [0, {size})"
        )


def _check_sparse_structure(X: Any, name: str) -> None:
    """Refuse sparse arrays put together by hand that do not hang together: SciPy would read past their ends."""
    if X.format == "coo":
        for indices, size, axis in ((X.row, X.shape[0], "row"), (X.col, X.shape[1], "column")):
            if indices.size != X.data.size:
                raise InvalidInputError(f"{name} has {indices.size} {axis} indices and {X.data.size} values")
            _check_range(indices, size, name, axis)
    if X.format not in ("csr", "csc", "bsr"):
        return
    major, minor, axis = (*X.shape, "column") if X.format != "csc" else (*X.shape[::-1], "row")
    if X.format == "bsr":
        major, minor, axis = major // X.blocksize[0], minor // X.blocksize[1], "block column"
    indptr, indices, n_values = X.indptr, X.indices, len(X.data)
    if indptr.size != major + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise InvalidInputError(f"{name} has a broken indptr: it must rise from 0 in {major + 1} entries")
    if indices.size < indptr[-1] or n_values < indptr[-1]:
        raise InvalidInputError(
            f"{name} has {indices.size} indices and {n_values} values where its indptr needs {indptr[-1]}"
        )
    _check_range(indices[: indptr[-1]], minor, name, axis)
