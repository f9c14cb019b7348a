"""The steps that estimators learn from: one transition, many as columns, and a builder for episodes.

Every value is checked where it enters: a :class:`Transition` that exists is valid and cannot be changed, so estimators
only have to compare sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.core.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    as_array,
    as_flag,
    as_flags,
    as_floats,
    as_indices,
    as_matrix,
    as_ratio,
    as_reward,
    as_unit,
    check_magnitude,
    check_rows,
    check_unit,
    locked,
)
from tlstd.data.vectors import SparseVector, Vector, VectorLike, as_vector, compiled_checks, field_setters, state_parts
from tlstd.errors import InvalidInputError

_FLOAT = np.dtype(np.float64)


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
        reward: SupportsFloat | ArrayLike,
        x_next: VectorLike,
        *,
        discount: float,
        trace_discount: float,
        rho: float = 1.0,
    ) -> None:
        _fill_transition(
            self,
            as_vector(x, "x"),
            as_reward(reward),
            as_vector(x_next, "x_next"),
            as_unit(discount, "discount"),
            as_unit(trace_discount, "trace_discount"),
            as_ratio(rho),
        )

    @property
    def n_features(self) -> int:
        """Number of features of ``x`` and ``x_next``."""
        return self.x.size

    @property
    def n_targets(self) -> int:
        """Number of reward signals."""
        return 1 if isinstance(self.reward, float) else self.reward.size

    def __copy__(self) -> Transition:
        return self

    def __deepcopy__(self, memo: object) -> Transition:
        return self

    def __getstate__(self) -> tuple[Any, ...]:
        return self.x, self.reward, self.x_next, self.discount, self.trace_discount, self.rho

    def __setstate__(self, state: object) -> None:
        x, reward, x_next, discount, trace_discount, rho = state_parts(state, 6)
        Transition.__init__(self, x, reward, x_next, discount=discount, trace_discount=trace_discount, rho=rho)


_transition_setters = field_setters(Transition)


def _fill_transition(
    t: Transition,
    x: Vector,
    reward: float | FloatArray,
    x_next: Vector,
    discount: float,
    trace_discount: float,
    rho: float,
) -> None:
    """Give a transition its fields, which have been checked one by one."""
    if x.size != x_next.size:
        raise InvalidInputError(f"x has {x.size} features but x_next has {x_next.size}: encode both with one map")
    set_x, set_reward, set_x_next, set_discount, set_trace_discount, set_rho = _transition_setters
    set_x(t, x)
    set_reward(t, reward)
    set_x_next(t, x_next)
    set_discount(t, discount)
    set_trace_discount(t, trace_discount)
    set_rho(t, rho)


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
        self.gamma = as_unit(gamma, "gamma")
        self._x: Vector | None = None
        self._trace_discount = 0.0

    def reset(self, x: VectorLike) -> None:
        """Begin an episode at ``x``; the next step starts with an empty trace."""
        self._x = as_vector(x, "x")
        self._trace_discount = 0.0

    def step(
        self,
        reward: SupportsFloat | ArrayLike,
        x_next: VectorLike,
        *,
        terminated: bool | np.bool_ = False,
        truncated: bool | np.bool_ = False,
        rho: float = 1.0,
        discount: float | None = None,
    ) -> Transition:
        """Return the transition from the current features to ``x_next`` and move there.

        ``terminated`` makes the discount 0; ``truncated`` leaves it. After either, call :meth:`reset`. Both are True,
        False, 1 or 0.
        """
        if self._x is None:
            raise InvalidInputError("step() was called outside an episode: call reset(x) first")
        if terminated is not False:
            terminated = as_flag(terminated, "terminated")
        if truncated is not False:
            truncated = as_flag(truncated, "truncated")
        reward, x_next, rho = as_reward(reward), as_vector(x_next, "x_next"), as_ratio(rho)
        discount = 0.0 if terminated else as_unit(self.gamma if discount is None else discount, "discount")
        transition: Transition = object.__new__(Transition)
        _fill_transition(transition, self._x, reward, x_next, discount, self._trace_discount, rho)
        self._x = None if terminated or truncated else x_next
        self._trace_discount = discount
        return transition


_COLUMNS = ("store", "rows", "rewards", "next_store", "next_rows", "discounts", "trace_discounts", "rhos", "actions")


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

    Attributes
    ----------
    actions : (N,) or (N, A), or None
        What was done, where it is known (:func:`tlstd.streams.record`, :func:`tlstd.streams.from_gymnasium`). No
        estimator uses it.

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
        "actions",
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
    actions: NDArray[Any] | None
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
        actions: ArrayLike | None = None,
    ) -> Transitions:
        """Transitions between rows of one feature matrix: from ``store[rows[t]]`` to ``store[next_rows[t]]``."""
        self = cls.__new__(cls)
        matrix = as_matrix(store, "store")
        n_rows = matrix.shape[0]
        self._fill(
            matrix,
            as_indices(rows, n_rows, "rows"),
            rewards,
            matrix,
            as_indices(next_rows, n_rows, "next_rows"),
            discounts,
            trace_discounts,
            rhos,
            actions,
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
        continues: bool | ArrayLike = False,
    ) -> Transitions:
        """Transitions of consecutive steps, as logged: the flags become the two discounts.

        A terminated step does not bootstrap, a truncated one does, and after either the trace starts empty.
        ``gamma`` is one number or one per step. Steps of several environments must be grouped by environment,
        with ``truncated`` set where one group ends.

        A log that is read piece by piece may cut an episode in two: ``continues`` says that the first step goes on with
        the last one of the piece before, so that the trace does too. Where each step has its own ``gamma``, it is the
        one of that last step.
        """
        X = as_matrix(X, "X")
        n = X.shape[0]
        ended, cut = as_flags(terminated, "terminated", n), as_flags(truncated, "truncated", n)
        gammas = as_floats(gamma, "gamma", None)
        if gammas.shape not in ((), (n,)):
            raise InvalidInputError(f"gamma has shape {gammas.shape}: pass one number, or one for each of {n} steps")
        check_unit(np.atleast_1d(gammas), "gamma")
        discounts = np.where(ended, 0.0, gammas)
        traces = trace_discounts(ended | cut, gammas)
        if n and continues is not False:
            if continues is True and gammas.ndim:
                raise InvalidInputError(
                    "continues is True, but each step has its own gamma: pass that of the last step of the piece before"
                )
            traces[0] = gammas if continues is True else as_unit(continues, "continues")
        return cls(X, rewards, X_next, discounts=discounts, trace_discounts=traces, rhos=rhos)

    @classmethod
    def from_episodes(cls, episodes: Iterable[tuple[Any, ArrayLike, bool]], *, gamma: float) -> Transitions:
        """Transitions of whole episodes ``(X with T+1 rows, rewards with T, terminated)``.

        ``terminated=False`` means that the episode was cut off: its last step bootstraps from the last row. An episode
        of one row and no reward adds no transition.
        """
        gamma = as_unit(gamma, "gamma")
        matrices: list[Matrix] = []
        reward_parts: list[FloatArray] = []
        rows, discounts, trace_discounts = [], [], []
        offset = 0
        for number, episode in enumerate(_listed(episodes)):
            X, r, terminated = _episode(number, episode)
            length = X.shape[0] - 1
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
        row = np.concatenate(rows)
        return cls.from_rows(
            _stacked(matrices),
            row,
            np.concatenate(reward_parts) if reward_parts else np.zeros(0),
            row + 1,
            discounts=np.concatenate(discounts),
            trace_discounts=np.concatenate(trace_discounts),
        )

    @classmethod
    def concatenate(cls, pieces: Iterable[Transitions]) -> Transitions:
        """The steps of all pieces as one; traces go on from piece to piece where they did before.

        Features are copied, once.

        Example
        -------
        >>> steps = Transitions.from_episodes([(np.eye(4), [0.0, 0.0, 1.0], True)], gamma=0.9)
        >>> whole = Transitions.concatenate([steps[:1], steps[1:]])
        >>> whole.trace_discounts
        array([0. , 0.9, 0.9])
        """
        parts = list(pieces)
        if not parts:
            raise InvalidInputError("there are no pieces to put together: pass at least one Transitions")
        for i, part in enumerate(parts):
            if not isinstance(part, Transitions):
                raise InvalidInputError(f"piece {i} is {type(part).__name__}: pass Transitions")
            if part.n_features != parts[0].n_features or part.rewards.shape[1:] != parts[0].rewards.shape[1:]:
                raise InvalidInputError(f"piece {i} is {part} after {parts[0]}: all need the same features and targets")
        rows, next_rows = [], []
        stores: list[Matrix] = []
        height = 0
        for part in parts:
            rows.append(part.rows + height)
            stores.append(part.store)
            if part.next_store is not part.store:
                height += part.store.shape[0]
                stores.append(part.next_store)
            next_rows.append(part.next_rows + height)
            height += part.next_store.shape[0]
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("rewards", "discounts", "trace_discounts", "rhos")
        }
        actions = [part.actions for part in parts if part.actions is not None]
        return cls.from_rows(
            _stacked(stores),
            np.concatenate(rows),
            columns.pop("rewards"),
            np.concatenate(next_rows),
            **columns,
            actions=None if len(actions) < len(parts) else np.concatenate(actions),
        )

    def with_columns(
        self, *, rewards: ArrayLike, discounts: ArrayLike, trace_discounts: ArrayLike, rhos: ArrayLike | None = None
    ) -> Transitions:
        """The same steps, features shared, with other rewards, discounts and ratios."""
        other = object.__new__(Transitions)
        other._fill(
            self.store,
            self.rows,
            rewards,
            self.next_store,
            self.next_rows,
            discounts,
            trace_discounts,
            rhos,
            self.actions,
        )
        return other

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
        actions: ArrayLike | None = None,
    ) -> None:
        n = rows.size
        columns: Any = rewards, discounts, trace_discounts, np.ones(n) if rhos is None else rhos
        is_sound = next_rows.size == n and _are_sound(columns, n)
        if not is_sound:
            columns = _as_columns(columns, next_rows, n)
        self.store, self.rows, self.next_store, self.next_rows = store, rows, next_store, next_rows
        self.rewards, self.discounts, self.trace_discounts, self.rhos = columns
        self.actions = None if actions is None else as_array(actions, "actions")
        if self.actions is not None and (self.actions.shape[:1] != (n,) or self.actions.dtype.kind not in "iufb"):
            raise InvalidInputError(
                f"actions have shape {self.actions.shape} and type {self.actions.dtype}: pass numbers, one or one row "
                f"for each of {n} transitions"
            )
        self.n_features = int(store.shape[1])
        self.n_targets = 1 if self.rewards.ndim == 1 else self.rewards.shape[1]
        if not is_sound:
            self._check_ranges()  # all else has been checked on its way here

    def check(self) -> None:
        """Raise :class:`InvalidInputError` if any value cannot be used.

        Called by every ``update_many`` before it changes the model, because the arrays are shared with the caller.
        """
        if not _are_sound((self.rewards, self.discounts, self.trace_discounts, self.rhos), len(self)):
            self._check_ranges()
            check_magnitude(self.rewards, "rewards")
            check_magnitude(self.rhos, "rhos")
        check_rows(self.store, self.rows, "X")
        check_rows(self.next_store, self.next_rows, "X_next")

    def _check_ranges(self) -> None:
        check_unit(self.discounts, "discounts")
        check_unit(self.trace_discounts, "trace_discounts")
        if self.rhos.size and self.rhos.min() < 0.0:
            raise InvalidInputError(f"rhos has the value {self.rhos.min()}: importance ratios are >= 0")

    def clip_ratios(self, rho: float, trace: float | None = None, *, before: float = 1.0) -> Transitions:
        """The same steps with importance ratios clipped in the way of V-trace, for any estimator that takes ratios.

        V-trace weighs the error δ_t by min(ρ̄, ρ_t), and cuts the trace of what came before by min(c̄, ρ_{t-1}): its
        update is min(ρ̄, ρ_t) δ_t e_t with e_t = γ_t λ min(c̄, ρ_{t-1}) e_{t-1} + x_t. Estimators here have one trace,
        z_t = ρ_t (γ_t λ z_{t-1} + x_t), which is that for z_t = min(ρ̄, ρ_t) e_t, if the ratios become min(ρ̄, ρ_t) and
        the trace discounts γ_t min(c̄, ρ_{t-1}) / min(ρ̄, ρ_{t-1}). These are the columns of what is returned.

        With features of all states the solution is the value of the policy that takes actions in proportion to
        min(ρ̄ μ, π), between behaviour μ and target π: clipping by ρ̄ trades bias for variance. c̄ changes nothing then,
        as λ does not, but variance and speed.

        Parameters
        ----------
        rho : float > 0
            ρ̄. Infinite: not clipped.
        trace : float in (0, rho], optional
            c̄, ρ̄ if left out: then the trace discounts stay as they are.
        before : float >= 0
            ρ of the step before the first, if these steps are a later piece of a stream.

        Notes
        -----
        What cannot be said in this way: c̄ > ρ̄ (a trace that grows faster than its ratios), and clips that depend on the
        state. Emphatic TD takes min(c̄, ρ) for its follow-on trace. The corrections of TDC, GTD2 and TDRC are those of
        the unclipped trace: with c̄ < ρ̄ and λ > 0 they follow no gradient.

        References
        ----------
        Espeholt et al.: IMPALA: scalable distributed deep-RL with importance weighted actor-learner architectures.
        ICML 2018.

        Example
        -------
        >>> steps = Transitions(
        ...     np.eye(3), np.ones(3), np.eye(3), discounts=np.full(3, 0.9), trace_discounts=[0.0, 0.9, 0.9],
        ...     rhos=[4.0, 0.5, 8.0])
        >>> clipped = steps.clip_ratios(2.0, 1.0)
        >>> clipped.rhos, clipped.trace_discounts
        (array([2. , 0.5, 2. ]), array([0.  , 0.45, 0.9 ]))
        """
        limit = rho if trace is None else trace
        if not rho > 0.0:
            raise InvalidInputError(f"rho is {rho}: ratios are clipped at a number above 0")
        if not 0.0 < limit <= rho:
            raise InvalidInputError(f"trace is {trace}: it must lie in (0, {rho:g}], below the clip of the ratios")
        clipped = self[:]
        clipped.rhos = np.minimum(self.rhos, rho)
        if limit < rho and len(self):
            past = np.concatenate([[as_ratio(before)], self.rhos[:-1]])
            shares = np.minimum(past, limit) / np.where(past > 0.0, np.minimum(past, rho), 1.0)
            clipped.trace_discounts = self.trace_discounts * np.where(past > 0.0, shares, 1.0)
        return clipped

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
            part.actions = None if self.actions is None else self.actions[key]
            return part
        i = range(len(self))[key]
        reward = self.rewards[i]
        step = object.__new__(Transition)
        _fill_transition(  # as its constructor, which would check and copy the vectors once more
            step,
            _row(self.store, int(self.rows[i])),
            as_reward(float(reward) if reward.ndim == 0 else reward),
            _row(self.next_store, int(self.next_rows[i])),
            as_unit(float(self.discounts[i]), "discount"),
            as_unit(float(self.trace_discounts[i]), "trace_discount"),
            as_ratio(float(self.rhos[i])),
        )
        return step

    def __iter__(self) -> Iterator[Transition]:
        return (self[i] for i in range(len(self)))

    def __getstate__(self) -> tuple[Any, ...]:
        values = tuple(getattr(self, name) for name in _COLUMNS)
        return *values, [[part.flags.writeable for part in _arrays(value)] for value in values]

    def __setstate__(self, state: object) -> None:
        *values, writeable = state_parts(state, len(_COLUMNS) + 1)
        given_store, rows, rewards, given_next_store, next_rows, discounts, trace_discounts, rhos, actions = values
        store = as_matrix(given_store, "store")
        next_store = store if given_next_store is given_store else as_matrix(given_next_store, "next_store")
        if store.shape[1] != next_store.shape[1]:
            raise InvalidInputError(f"store has {store.shape[1]} features and next_store {next_store.shape[1]}")
        rows = as_indices(rows, store.shape[0], "rows")
        next_rows = as_indices(next_rows, next_store.shape[0], "next_rows")
        self._fill(store, rows, rewards, next_store, next_rows, discounts, trace_discounts, rhos, actions)
        for name, may_change in zip(_COLUMNS, state_parts(writeable, len(_COLUMNS)), strict=True):
            arrays = _arrays(getattr(self, name))
            for part, changeable in zip(arrays, state_parts(may_change, len(arrays)), strict=True):
                if not changeable:
                    locked(part)

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return f"Transitions({len(self)} steps, {self.n_features} {kind} features, {self.n_targets} target(s))"


def _stacked(matrices: Sequence[Matrix]) -> Any:
    """The rows of all, sparse if one of them is."""
    if any(sp.issparse(X) for X in matrices):
        return sp.csr_array(sp.vstack([sp.csr_array(X) for X in matrices]))
    return np.concatenate(matrices)


def trace_discounts(ends: NDArray[np.bool_], gamma: float | FloatArray) -> FloatArray:
    """γ_t of consecutive steps: 0 on the first step of every episode. ``ends`` marks the last steps."""
    out = np.zeros(len(ends))
    out[1:] = np.where(ends, 0.0, gamma)[:-1]
    return out


def _are_sound(columns: Any, n: int) -> bool:
    """Whether rewards, discounts, trace discounts and ratios are plain arrays of values in their ranges, in one pass.

    If not, :func:`_as_columns` and the ranges have to say what is wrong, if anything is.
    """
    rewards = columns[0]
    if not all(type(c) is np.ndarray and c.dtype is _FLOAT and c.flags.carray and c.shape[:1] == (n,) for c in columns):
        return False
    if rewards.ndim > 2 or rewards.shape[1:] == (0,) or any(c.ndim != 1 for c in columns[1:]):
        return False
    targets = rewards[:, None] if rewards.ndim == 1 else rewards
    return bool(compiled_checks().columns_are_sound(targets, *columns[1:]))


def _as_columns(columns: Any, next_rows: IntArray, n: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rewards, discounts, trace discounts and ratios as finite arrays, one entry or row for each of n transitions."""
    names = "rewards", "discounts", "trace_discounts", "rhos"
    rewards, discounts, traces, rhos = (
        as_floats(column, name, None if name == "rewards" else 1) for column, name in zip(columns, names, strict=True)
    )
    for name, column in zip(("next_rows", *names), (next_rows, rewards, discounts, traces, rhos), strict=True):
        if column.ndim == 0 or column.shape[0] != n:
            raise InvalidInputError(
                f"{name} has shape {column.shape} but there are {n} transitions: ragged columns cannot be used"
            )
    if rewards.ndim > 2 or rewards.shape[1:] == (0,):
        raise InvalidInputError(f"rewards have shape {rewards.shape}: pass (N,) or (N, n_targets)")
    return rewards, discounts, traces, rhos


def _episode(number: int, episode: Any) -> tuple[Matrix, FloatArray, bool]:
    """X with T+1 rows, T rewards and whether it terminated, checked."""
    if not isinstance(episode, (tuple, list)) or len(episode) != 3:
        given = f"{len(episode)} parts" if isinstance(episode, (tuple, list)) else type(episode).__name__
        raise InvalidInputError(f"episode {number} is of {given}: pass three, (X, rewards, terminated)")
    X, r = as_matrix(episode[0], f"X of episode {number}"), as_floats(episode[1], f"rewards of episode {number}", None)
    terminated = as_flag(episode[2], f"terminated of episode {number}")
    if r.ndim == 0 or X.shape[0] == 0 or r.shape[0] != X.shape[0] - 1:
        raise InvalidInputError(
            f"episode {number} has {X.shape[0]} feature rows and rewards of shape {r.shape}: "
            "T rewards need T+1 rows (the last one is the final observation)"
        )
    return X, r, terminated


def _listed(episodes: Any) -> Iterator[Any]:
    try:
        return iter(episodes)
    except TypeError as error:
        raise InvalidInputError(f"episodes is {episodes!r}: pass a list of (X, rewards, terminated)") from error


def _arrays(value: NDArray[Any] | sp.csr_array | None) -> tuple[Any, ...]:
    """The arrays that a column or a store consists of."""
    if value is None:
        return ()
    return (value,) if isinstance(value, np.ndarray) else (value.data, value.indices, value.indptr)


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
