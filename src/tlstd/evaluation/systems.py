"""The systems A w = b of least squares, as products: A V, AᵀH and b, with any fold held out and any λ.

A = (1/T) Σ z_t (x_t - γ_{t+1} x'_t)ᵀ and b = (1/T) Σ z_t r_{t+1}, with the trace z_t = ρ_t (γ_t λ z_{t-1} + x_t). A is
never formed: A V = (1/T) Σ x_t s_t with s_t = ρ_t (d_tᵀV + γ_{t+1} λ s_{t+1}), and AᵀH = (1/T) Σ d_t (z_tᵀH). A system
says how x_t and x'_t come from rows of features:

- :class:`StateSystem`: x_t = φ(s_t), x'_t = φ(s_{t+1}); on-policy, or with importance ratios ρ_t.
- :class:`ActionSystem`: x_t = φ(s_t) in the block of a_t, x'_t = Σ_a π(a|s_{t+1}) φ(s_{t+1}) in the block of a.
- :class:`PairSystem`: x_t and x'_t are given: continuous actions.

With few dense features A is formed after all, once for each λ and fold: products then cost n² in place of a pass over
the steps.

Traces start anew where a group begins. Columns of V and H may each have a fold of their own, ``WHOLE`` for none. A
system may be a part of a larger one: :meth:`System.products` and its like are sums that parts add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.steps import Rows, Steps, backward, forward

WHOLE = -1
"""The system in which nothing is held out."""
MOST_DENSE, STEPS_PER_WEIGHT = 1_500, 4
"""Weights of dense features up to which A is formed, and for each of them so many steps."""


class System:
    """What all of them share; a subclass says what x_t and x'_t are.

    Parameters
    ----------
    steps : Steps
    ids : (d,) integers
        The features that occur, in rising order.
    n : int
        Number of weights.
    rhos : (N,), optional
        Importance ratios.
    """

    def __init__(self, steps: Steps, ids: IntArray, n: int, rhos: FloatArray | None = None) -> None:
        self.steps, self.ids, self.n, self.rhos = steps, ids, n, rhos
        self.rewards: list[FloatArray] = [steps.rewards]
        """Right-hand sides: rewards (N,) of each."""
        self.shift: FloatArray | None = None
        """(n,): a diagonal that is added to A."""
        self._formed: dict[float, dict[int, FloatArray]] = {}

    # --- what a subclass says ---------------------------------------------------------------------------------------

    def on(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x_tᵀV and x'_tᵀV, (N, k) each."""
        raise NotImplementedError

    def back(self, now: FloatArray, after: FloatArray | None) -> FloatArray:
        """Σ x_t now_t + Σ x'_t after_t, (n, k)."""
        raise NotImplementedError

    @property
    def dense(self) -> bool:
        """Whether A is formed."""
        return False

    def now(self, some: slice | IntArray) -> FloatArray:
        """x_t (steps, n) of some steps, of dense features."""
        raise NotImplementedError

    def next(self, some: slice | IntArray) -> FloatArray:
        """x'_t (steps, n) of some steps, of dense features."""
        raise NotImplementedError

    def outer(self, some: IntArray, values: FloatArray) -> FloatArray:
        """Σ x_t s_tᵀ (n, n) over some steps, of dense features, for s_t (steps, n)."""
        found: FloatArray = self.now(some).T @ values
        return found

    def values(self, V: FloatArray, rows: IntArray) -> FloatArray:
        """Values (len(rows), k) of rows of features under the policy, by weights (n, k)."""
        raise NotImplementedError

    def values_sum(self, weights: FloatArray) -> FloatArray:
        """x (n,) with xᵀw = Σ weights_i · value of row i, for weights (n_rows,)."""
        raise NotImplementedError

    @property
    def n_rows(self) -> int:
        """Rows of features of states."""
        raise NotImplementedError

    @cached_property
    def squares(self) -> float:
        """Σ ‖x‖² over the rows of features, and how many there are."""
        raise NotImplementedError

    @cached_property
    def constant(self) -> FloatArray:
        """(n,): 1 for a feature that is 1 everywhere, else 0; it is not regularised."""
        return np.zeros(self.n)

    # --- what follows -----------------------------------------------------------------------------------------------

    @property
    def square(self) -> float:
        """The mean ‖x‖²."""
        return self.squares / max(1, self.n_rows)

    @cached_property
    def counts(self) -> IntArray:
        """Steps of each fold."""
        return np.bincount(self.steps.fold, minlength=int(self.steps.fold.max(initial=0)) + 1)

    def sizes(self, folds: Sequence[int]) -> FloatArray:
        """How many steps there are without each of these folds."""
        n = len(self.steps)
        return np.array([n if fold == WHOLE else n - self.counts[fold] for fold in folds], dtype=np.float64)

    def hide(self, values: FloatArray, folds: Sequence[int]) -> None:
        """Set the steps of each column's fold to 0."""
        for column, fold in enumerate(folds):
            if fold != WHOLE:
                values[self.steps.fold == fold, column] = 0.0

    def _weighed(self, values: FloatArray, lambdas: Sequence[float]) -> FloatArray:
        """s_t = ρ_t (values_t + γ_{t+1} λ s_{t+1})."""
        if self.rhos is not None:
            values *= self.rhos[:, None]
        return self._along(values, lambdas, backwards=True)

    def formed(self, lambda_: float) -> dict[int, FloatArray]:
        """T A (n, n) of each fold, and of all steps under ``WHOLE``, of dense features."""
        if lambda_ in self._formed:
            return self._formed[lambda_]
        steps, folds = self.steps, self.steps.folds.tolist()
        found = {fold: np.zeros((self.n, self.n)) for fold in folds}
        for piece in steps.pieces:
            values = self.now(piece) - steps.discounts[piece, None] * self.next(piece)
            if self.rhos is not None:
                values *= self.rhos[piece, None]
            values = self._along(values, [lambda_] * self.n, backwards=True, some=piece)
            for fold in folds:
                mine = np.flatnonzero(steps.fold[piece] == fold)
                found[fold] += self.outer(piece.start + mine, values[mine])
        found[WHOLE] = sum(found.values(), np.zeros((self.n, self.n)))
        self._formed[lambda_] = found
        return found

    def _by_matrix(self, V: FloatArray, folds: Sequence[int], lambdas: Sequence[float], other_way: bool) -> FloatArray:
        """T A V, or T Aᵀ V, by matrices that were formed."""
        out = np.empty_like(V)
        for lambda_ in set(lambdas):
            columns = [c for c, own in enumerate(lambdas) if own == lambda_]
            matrices = {fold: A.T if other_way else A for fold, A in self.formed(lambda_).items()}
            out[:, columns] = matrices[WHOLE] @ V[:, columns]
            for fold in {folds[c] for c in columns} & set(matrices) - {WHOLE}:
                own = [c for c in columns if folds[c] == fold]
                out[:, own] -= matrices[fold] @ V[:, own]
        return out

    def _along(
        self, values: FloatArray, lambdas: Sequence[float], backwards: bool, some: slice = slice(None)
    ) -> FloatArray:
        """Sums along the groups of some steps, all if left out; ``lambdas`` are those of the columns."""
        steps = self.steps
        ratios = 1.0 if self.rhos is None else self.rhos[some]
        over = ~(steps.ends if backwards else steps.begins)[some]
        for lambda_ in set(lambdas) - {0.0}:
            columns = [c for c, own in enumerate(lambdas) if own == lambda_]
            factors = np.where(over, ratios * (steps.gamma * lambda_), 0.0)
            own = values if len(columns) == len(lambdas) else values[:, columns]
            found = backward(own, factors) if backwards else forward(own, factors)
            if len(columns) == len(lambdas):
                return found
            values[:, columns] = found
        return values

    def products(
        self, V: FloatArray, folds: Sequence[int], lambdas: Sequence[float], seen: list[FloatArray] | None = None
    ) -> FloatArray:
        """T A V, each column in its own system. ``seen`` gets x_tᵀV and d_tᵀV, (N, k) each, where A is not formed."""
        if self.dense:
            return self._by_matrix(V, folds, lambdas, other_way=False)
        now, after = self.on(V)
        values = now - self.steps.discounts[:, None] * after
        if seen is not None:
            seen[:] = [now, values.copy()]
        self.hide(values, folds)
        return self.back(self._weighed(values, lambdas), None)

    def transposed(self, H: FloatArray, folds: Sequence[int], lambdas: Sequence[float]) -> FloatArray:
        """T AᵀH, each column in its own system."""
        if self.dense:
            return self._by_matrix(H, folds, lambdas, other_way=True)
        traces = self.traces(H, lambdas)
        self.hide(traces, folds)
        return self.back(traces, -self.steps.discounts[:, None] * traces)

    def sides(self, folds: Sequence[int], lambdas: Sequence[float], sides: Sequence[int]) -> FloatArray:
        """T b of each column's system and right-hand side, (n, k)."""
        values = np.column_stack([self.rewards[side] for side in sides])
        self.hide(values, folds)
        return self.back(self._weighed(values, lambdas), None)

    def matvec(
        self, V: FloatArray, folds: Sequence[int], lambdas: Sequence[float], seen: list[FloatArray] | None = None
    ) -> FloatArray:
        """A V."""
        made = self.products(V, folds, lambdas, seen) / self.sizes(folds)
        return made if self.shift is None else made + self.shift[:, None] * V

    def rmatvec(self, H: FloatArray, folds: Sequence[int], lambdas: Sequence[float]) -> FloatArray:
        """AᵀH."""
        made = self.transposed(H, folds, lambdas) / self.sizes(folds)
        return made if self.shift is None else made + self.shift[:, None] * H

    def b(self, folds: Sequence[int], lambdas: Sequence[float], sides: Sequence[int]) -> FloatArray:
        """b of each column's system and right-hand side, (n, k)."""
        return self.sides(folds, lambdas, sides) / self.sizes(folds)

    def traces(self, H: FloatArray, lambdas: Sequence[float]) -> FloatArray:
        """z_tᵀH, (N, k)."""
        values = self.on(H)[0]
        if self.rhos is not None:
            values = values * self.rhos[:, None]
        return self._along(values, lambdas, backwards=False)

    def by_others(self, W: FloatArray, folds: IntArray) -> FloatArray:
        """(N, 4): x_tᵀw and x'_tᵀw by the weights that have not seen the step's fold, and by those of all episodes.

        Columns of W (n, F + 1) have not seen one of the folds (F + 1,) each, ``WHOLE`` last.
        """
        now, after = self.on(W)
        if folds.size < 3:
            return np.column_stack([now[:, -1], after[:, -1], now[:, -1], after[:, -1]])
        every, own = np.arange(len(self.steps)), np.searchsorted(folds[:-1], self.steps.fold)
        return np.column_stack([now[every, own], after[every, own], now[:, -1], after[:, -1]])


class RowsSystem(System):
    """What values of states and of pairs share: ``rows`` are x, ``behind`` the features of states under the policy."""

    rows: Rows
    behind: Rows

    def values(self, V: FloatArray, rows: IntArray) -> FloatArray:
        """Values of rows of states under the policy."""
        found: FloatArray = self.behind.times(V)[rows]
        return found

    def values_sum(self, weights: FloatArray) -> FloatArray:
        """Their weighted sum, as features."""
        return self.behind.back(weights[:, None])[:, 0]

    @property
    def n_rows(self) -> int:
        """Rows of features of states."""
        return self.behind.size

    @cached_property
    def squares(self) -> float:
        """Σ ‖x‖² over the rows of features of states."""
        return self.behind.square * self.behind.size

    @cached_property
    def sums(self) -> FloatArray:
        """(n,): Σ (1 - x)² over the rows of x."""
        return self.rows.off_one

    @cached_property
    def constant(self) -> FloatArray:
        """Features that are 1 in all rows of x."""
        return constant(self.sums, self.rows.size)


class StateSystem(RowsSystem):
    """Values of states."""

    def __init__(self, steps: Steps, rows: Rows, rhos: FloatArray | None = None) -> None:
        super().__init__(steps, rows.ids, rows.ids.size, rhos)
        self.rows = self.behind = rows

    @property
    def dense(self) -> bool:
        """Whether A is formed."""
        return self.rows.dense is not None and _pays(self)

    def now(self, some: slice | IntArray) -> FloatArray:
        """x_t of some steps."""
        return _dense(self.rows)[self.steps.here[some]]

    def next(self, some: slice | IntArray) -> FloatArray:
        """x'_t of some steps."""
        return _dense(self.rows)[self.steps.after[some]]

    def on(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x_tᵀV and x'_tᵀV."""
        values = self.rows.times(V)
        return values[self.steps.here], values[self.steps.after]

    def back(self, now: FloatArray, after: FloatArray | None) -> FloatArray:
        """Σ x_t now_t + Σ x'_t after_t."""
        sums = gathered(now, self.steps.here, self.rows.size)
        if after is not None:
            sums += gathered(after, self.steps.after, self.rows.size)
        return self.rows.back(sums)


class ActionSystem(System):
    """Values of states and discrete actions: weights lie in one block for each action.

    Parameters
    ----------
    steps, rows : as in :class:`System`
    actions : (N,) integers
    chances : (M, n_actions)
        π(a|s) of every row of features, 0 for actions that the log does not have there.
    """

    def __init__(self, steps: Steps, rows: Rows, actions: IntArray, chances: FloatArray) -> None:
        self.n_actions, self.d = chances.shape[1], rows.ids.size
        super().__init__(steps, rows.ids, self.n_actions * self.d)
        self.rows, self.actions, self.chances = rows, actions, chances
        self.taken = [np.flatnonzero(actions == a) for a in range(self.n_actions)]
        self.some = [np.flatnonzero(chances[:, a]) for a in range(self.n_actions)]

    def block(self, V: FloatArray, a: int) -> FloatArray:
        """The rows of V that belong to an action."""
        return V[a * self.d : (a + 1) * self.d]

    @property
    def dense(self) -> bool:
        """Whether A is formed."""
        return self.rows.dense is not None and _pays(self)

    def now(self, some: slice | IntArray) -> FloatArray:
        """x_t of some steps."""
        return self._in_blocks(self.steps.here[some], np.eye(self.n_actions)[self.actions[some]])

    def next(self, some: slice | IntArray) -> FloatArray:
        """x'_t of some steps."""
        return self._in_blocks(self.steps.after[some], self.chances[self.steps.after[some]])

    def _in_blocks(self, rows: IntArray, chances: FloatArray) -> FloatArray:
        blocks = chances[:, :, None] * _dense(self.rows)[rows][:, None, :]
        return blocks.reshape(rows.size, self.n)

    def outer(self, some: IntArray, values: FloatArray) -> FloatArray:
        """Σ x_t s_tᵀ over some steps, by the actions taken."""
        out = np.zeros((self.n, self.n))
        X, taken = _dense(self.rows)[self.steps.here[some]], self.actions[some]
        for a in range(self.n_actions):
            mine = np.flatnonzero(taken == a)
            self.block(out, a)[:] = X[mine].T @ values[mine]
        return out

    def on(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x_tᵀV and x'_tᵀV."""
        now, mean = np.zeros((len(self.steps), V.shape[1])), np.zeros((self.rows.size, V.shape[1]))
        here = self.steps.here
        for a in range(self.n_actions):
            if self.taken[a].size or self.some[a].size:
                values = self.rows.times(self.block(V, a))
                now[self.taken[a]] = values[here[self.taken[a]]]
                mean[self.some[a]] += self.chances[self.some[a], a][:, None] * values[self.some[a]]
        return now, mean[self.steps.after]

    def back(self, now: FloatArray, after: FloatArray | None) -> FloatArray:
        """Σ x_t now_t + Σ x'_t after_t."""
        out = np.zeros((self.n, now.shape[1]))
        behind = None if after is None else gathered(after, self.steps.after, self.rows.size)
        for a in range(self.n_actions):
            taken = self.taken[a]
            if not taken.size and (behind is None or not self.some[a].size):
                continue
            sums = gathered(now[taken], self.steps.here[taken], self.rows.size)
            if behind is not None:
                sums[self.some[a]] += self.chances[self.some[a], a][:, None] * behind[self.some[a]]
            self.block(out, a)[:] = self.rows.back(sums)
        return out

    def values(self, V: FloatArray, rows: IntArray) -> FloatArray:
        """Σ_a π(a|s) q(s, a) of rows of features, without constants of the actions."""
        mean = np.zeros((self.rows.size, V.shape[1]))
        for a in range(self.n_actions):
            some = self.some[a]
            if some.size:
                mean[some] += self.chances[some, a][:, None] * self.rows.times(self.block(V, a))[some]
        return mean[rows]

    def values_sum(self, weights: FloatArray) -> FloatArray:
        """Their weighted sum, as features: Σ_i weights_i Σ_a π(a|s_i) φ(s_i, a)."""
        out = np.zeros((self.n, 1))
        for a in range(self.n_actions):
            self.block(out, a)[:] = self.rows.back(self.chances[:, [a]] * weights[:, None])
        return out[:, 0]

    @property
    def n_rows(self) -> int:
        """Rows of features."""
        return self.rows.size

    @cached_property
    def squares(self) -> float:
        """Σ ‖x‖²."""
        return self.rows.square * self.rows.size


class PairSystem(RowsSystem):
    """Values of states and continuous actions, by features of both side by side.

    Parameters
    ----------
    steps : Steps
    rows : Rows
        φ(s_t, a_t) of every step, in order.
    behind : Rows
        Mean features under the policy of the rows of ``steps.states``, over the same features.
    beyond : (M,)
        The policy's probability of actions that the log does not have there, which ``behind`` leaves out.
    """

    def __init__(self, steps: Steps, rows: Rows, behind: Rows, beyond: FloatArray) -> None:
        super().__init__(steps, rows.ids, rows.ids.size)
        self.rows, self.behind, self.beyond = rows, behind, beyond

    @property
    def dense(self) -> bool:
        """Whether A is formed."""
        return self.rows.dense is not None and self.behind.dense is not None and _pays(self)

    def now(self, some: slice | IntArray) -> FloatArray:
        """x_t of some steps."""
        return _dense(self.rows)[some]

    def next(self, some: slice | IntArray) -> FloatArray:
        """x'_t of some steps."""
        return _dense(self.behind)[self.steps.after[some]]

    def on(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x_tᵀV and x'_tᵀV."""
        return self.rows.times(V), self.behind.times(V)[self.steps.after]

    def back(self, now: FloatArray, after: FloatArray | None) -> FloatArray:
        """Σ x_t now_t + Σ x'_t after_t."""
        out = self.rows.back(now)
        if after is not None:
            out += self.behind.back(gathered(after, self.steps.after, self.behind.size))
        return out


def _pays(system: System) -> bool:
    """Whether products with A of dense features are cheaper than passes over the steps."""
    return system.n <= min(MOST_DENSE, len(system.steps) / STEPS_PER_WEIGHT)


def _dense(rows: Rows) -> FloatArray:
    found = rows.dense
    assert found is not None
    return found


def constant(sums: FloatArray, n: int) -> FloatArray:
    """(d,): 1 for features that are 1 in all of n rows, by their Σ (1 - x)² over these; 0 for the others."""
    same: FloatArray = (sums <= 1e-9 * n).astype(np.float64)
    return same if n > 1 else np.zeros(sums.size)


def gathered(values: FloatArray, rows: IntArray, size: int) -> FloatArray:
    """(size, k): the sums of the values (N, k) that belong to each row."""
    out = np.zeros((size, values.shape[1]))
    if rows.size <= size and (rows.size < 2 or (np.diff(rows) > 0).all()):
        out[rows] = values
        return out
    for column in range(values.shape[1]):
        out[:, column] = np.bincount(rows, values[:, column], size)
    return out
