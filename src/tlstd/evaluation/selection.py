"""λ and the dimension of the Krylov space, chosen by held-out episodes; and the weights that come with them.

One Krylov path per fold and λ, all in lock-step, gives the held-out error of every dimension on the way. The weights of
a fold are those of the path without it, at the λ and the dimension that predict best in the *other* folds. So an
episode's own errors have no part in the choice of the weights that predict it. (Models whose errors do have a part in
it have learned from the episode.)

- Values of states: squared error of held-out returns. Where returns are not seen to their end, or are those of another
  policy, a fixed reference of the same fold completes them.
- Action values: ‖b_k - A_k w‖ of held-out folds k, in the norm of the inverse feature covariance. That is the projected
  Bellman error there. Logged returns are not the target policy's, and λ is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar, cast

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import power_of_two, safe_unit
from tlstd.data.scores import least, within_one_standard_error
from tlstd.evaluation.steps import HIDDEN, BoolArray, Rows, Steps
from tlstd.evaluation.systems import WHOLE, ActionSystem, PairSystem, StateSystem, System
from tlstd.krylov.arnoldi import Arnoldi, KrylovPath
from tlstd.krylov.search import MAX_DIMENSION, fixed_dimension, patience

LAMBDAS = (0.0, 0.5, 0.8, 0.95, 1.0)
"""Trace parameters that are compared on-policy."""
WITH_RATIOS = (0.0, 0.5, 0.9)
"""With ratios, which multiply along the trace."""
COMPARED = 3_000
"""Steps on which λ is chosen, about."""
MOST = 50_000
"""Steps on which the dimension is chosen, about."""
SPACED = 40
"""Groups of a sample, where groups are few and long."""
FEWEST_STATES, FEWEST_GROUPS = 100.0, 4
"""States that count, and episodes or blocks, below which nothing is chosen."""
ENOUGH_RETURNS, ENOUGH_WITH_ENDS = 0.5, 0.75
"""Share of the states whose return must be seen, without and with terminations; else all are completed."""

DIMENSIONS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 65, 80, 100, 125, 150, 200, 250, 300)
"""Krylov dimensions that are compared for action values."""
AT_LEAST = 80
"""Dimension before which that search does not end: where rewards are the same everywhere, small ones have the residual
of no values at all, and larger ones a larger residual before they have a smaller one."""
FEWER = 40
"""Dimensions that are compared where features are chosen."""
WORSE = 3
"""Dimensions in a row that are worse than the best, after which it ends."""
COVARIANCE_RIDGE = 1e-3
"""Added to the feature covariance, in units of the mean ‖x‖²."""
SMALLEST = 1e-6
"""Added to the covariance of values in units of their own, times its trace."""
DENSE = 5_000
"""Features up to which the covariance is decomposed; beyond, its systems are solved by conjugate gradients."""


class Setting(NamedTuple):
    """Of a solution."""

    lambda_: float
    dimension: int


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen, for all episodes and for those without each fold."""

    whole: Setting
    of_fold: dict[int, Setting]
    decided: bool
    note: str
    """By what, or why not."""
    scores: dict[Setting, float]
    """Held-out error of what was compared; of each λ the best dimension."""
    paths: dict[tuple[float, int], KrylovPath]
    """By λ and fold, as far as they are of all steps."""
    errors: Errors = field(default_factory=lambda: Errors(np.zeros(0), np.zeros(0), 1.0))
    """Held-out squared errors of values of states, at the settings of each fold; empty of action values."""


class Errors(NamedTuple):
    """Held-out squared errors, by group of steps."""

    sums: FloatArray
    """(G,): of each group, in units of ``unit``²."""
    sizes: FloatArray
    """(G,): how many predictions these are of."""
    unit: float

    @property
    def mean(self) -> float:
        """Of all, in the same units."""
        return float(self.sums.sum() / max(1.0, float(self.sizes.sum())))

    def over(self, best: Errors) -> tuple[float, float]:
        """By how much the mean is larger than another one, and the standard error of that, over groups."""
        if not np.isfinite(self.mean):
            return np.inf, 0.0
        apart, n = self.sums - best.sums, int((self.sizes > 0.0).sum())
        total = max(1.0, float(self.sizes.sum()))
        more = float(apart.sum()) / total
        spread = float(np.square(apart - more * self.sizes).sum()) * n / max(1, n - 1)
        return more, float(np.sqrt(spread)) / total


def weights(system: System, selection: Selection, side: int = 0, *, whole: bool = True) -> tuple[IntArray, FloatArray]:
    """The folds, ``WHOLE`` last, and W (n, folds + 1): the solutions without each of them.

    Without ``whole`` the last one, of all episodes, is left 0.
    """
    folds = np.append(system.steps.folds, WHOLE)
    settings = [selection.whole if fold == WHOLE else selection.of_fold[fold] for fold in folds.tolist()]
    known = selection.paths if side == 0 else {}
    missing = [
        (s.lambda_, f)
        for s, f in zip(settings, folds.tolist(), strict=True)
        if (s.lambda_, f) not in known and (whole if f == WHOLE else system.steps.folds.size > 1)
    ]
    found = dict(known)
    if missing:
        lambdas, held = [m[0] for m in missing], [m[1] for m in missing]
        paths = _Paths(system, lambdas, held, side)
        longest = {(s.lambda_, f): s.dimension for s, f in zip(settings, folds.tolist(), strict=True)}
        for dimension in sorted({longest[m] for m in missing}):
            paths.extend(dimension, [i for i, m in enumerate(missing) if longest[m] >= dimension])
        found |= dict(zip(missing, paths.paths, strict=True))
    columns = []
    for setting, fold in zip(settings, folds.tolist(), strict=True):
        path = found.get((setting.lambda_, fold))
        columns.append(np.zeros(system.n) if path is None else path.solution(setting.dimension))
    return folds, np.column_stack(columns)


class _Paths(Arnoldi):
    """Krylov paths of a system, one for each pair of λ and fold."""

    def __init__(self, system: System, lambdas: Sequence[float], folds: Sequence[int], side: int = 0) -> None:
        self.system, self.lambdas, self.folds = system, list(lambdas), list(folds)
        self.held: list[list[FloatArray]] | None = None
        super().__init__(self._product, system.b(self.folds, self.lambdas, [side] * len(self.folds)))

    def keep(self, what: int) -> None:
        """Keep x_tᵀq (``what`` 0) or d_tᵀq (1) of the held-out steps of each path, for every vector of its basis."""
        self.held, self._what = [[] for _ in self.folds], what
        self._mine = {fold: np.flatnonzero(self.system.steps.fold == fold) for fold in set(self.folds)}
        self._rows: dict[int, FloatArray] = {}
        if self.system.dense:
            for fold, mine in self._mine.items():
                self._rows[fold] = self.system.now(mine)
                if what:
                    self._rows[fold] -= self.system.steps.discounts[mine, None] * self.system.next(mine)

    def _product(self, V: FloatArray, columns: Sequence[int]) -> FloatArray:
        folds, lambdas = [self.folds[c] for c in columns], [self.lambdas[c] for c in columns]
        seen: list[FloatArray] = []
        keep = self.held is not None and not self.system.dense
        made = self.system.matvec(V, folds, lambdas, seen if keep else None)
        if self.held is not None and keep:
            for i, c in enumerate(columns):
                self.held[c].append(seen[self._what][self._mine[self.folds[c]], i])
        return made

    def predicted(self, c: int, dimension: int) -> FloatArray:
        """What was kept, of the solution of a dimension."""
        assert self.held is not None
        if self.system.dense:
            product: FloatArray = self._rows[self.folds[c]] @ self.paths[c].solution(dimension)
            return product
        y = self.paths[c].coordinates(dimension)
        out = np.zeros(self._mine[self.folds[c]].size)
        for weight, column in zip(y.tolist(), self.held[c], strict=False):
            out += weight * column
        return out


# --- values of states, by returns -------------------------------------------------------------------------------------


class Targets(NamedTuple):
    """Returns that predictions are compared with."""

    values: FloatArray
    """(N,)."""
    usable: FloatArray
    """(N,): 1 where the return can be used, else 0."""
    completed: bool
    """Whether a reference completes them."""
    why: str
    """Why nothing can be chosen by them; empty if it can."""


SystemT = TypeVar("SystemT", bound=System)


def choose(system: StateSystem) -> Selection:
    """λ and dimension by returns of held-out episodes."""
    lambdas: tuple[float, ...] = LAMBDAS if system.rhos is None else WITH_RATIOS
    if system.steps.gamma == 0.0:
        lambdas = (0.0,)
    small = thinned(system, COMPARED)
    found = _by_returns(small, lambdas)
    if not found.decided or small is system:
        return found
    at = lambdas.index(found.whole.lambda_)  # a larger sample may prefer a neighbour
    chosen = {setting.lambda_ for setting in found.of_fold.values()}
    some = thinned(system, MOST)
    again = _by_returns(some, [own for i, own in enumerate(lambdas) if abs(i - at) <= 1 or own in chosen])
    return again if again.decided and some is system else replace(again if again.decided else found, paths={})


def common_targets(systems: Sequence[StateSystem], lambda_: float) -> Targets | None:
    """Returns to compare several systems of the same steps by, which differ in their features; None without any.

    Where returns are not seen to their end, they are completed by the median of the systems' values, for all alike.
    """
    steps = systems[0].steps
    folds, fixed = steps.folds.tolist(), fixed_dimension(len(steps))
    if len(folds) < 2:
        return None
    found = [targets_of(each, _Paths(each, [lambda_] * len(folds), folds), 0, fixed) for each in systems]
    if found[0].why:
        return None
    return found[0]._replace(values=np.median([each.values for each in found], axis=0))


def by_returns(system: StateSystem, lambda_: float, targets: Targets) -> Selection:
    """The dimension that predicts these targets best, for each fold, with the errors."""
    return _by_returns(system, (lambda_,), targets=targets)


def expected_returns(system: StateSystem, chosen: Selection, lambda_: float) -> FloatArray:
    """(N,): returns of the logged policy in which values of other episodes' models stand for what is further away."""
    steps = system.steps
    folds, W = weights(system, chosen, whole=False)
    now, after = system.by_others(W, folds)[:, :2].T
    expected: FloatArray = now + steps.following(
        steps.rewards + steps.discounts * after - now, lambda_ * steps.discounts
    )
    return expected


def _by_returns(system: StateSystem, lambdas: Sequence[float], targets: Targets | None = None) -> Selection:
    steps, folds = system.steps, system.steps.folds.tolist()
    fixed = fixed_dimension(len(steps))
    careful = Setting(lambdas[0] if system.rhos is not None or len(lambdas) < 2 else lambdas[-2], fixed)
    paths = _Paths(system, [one for one in lambdas for _ in folds], folds * len(lambdas)) if len(folds) > 1 else None
    if paths is None:
        return _undecided(careful, folds, "there are too few episodes to hold some of them out")
    paths.keep(0)
    if targets is None:
        targets = targets_of(system, paths, lambdas.index(careful.lambda_), fixed)
    if targets.why:
        return _undecided(careful, folds, targets.why)
    unit = safe_unit(targets.values[targets.usable > 0.0])
    scaled = targets.values / unit
    errors: dict[float, list[FloatArray]] = {lambda_: [] for lambda_ in lambdas}
    searching = list(range(len(lambdas)))
    mine = [np.flatnonzero(steps.fold == fold) for fold in folds]
    for m in range(1, MAX_DIMENSION + 1):
        columns = [i * len(folds) + j for i in searching for j in range(len(folds))]
        paths.extend(m, columns)
        for i in list(searching):
            own = np.zeros(len(steps))
            for j in range(len(folds)):
                c = i * len(folds) + j
                own[mine[j]] = paths.predicted(c, m) / unit - scaled[mine[j]]
            with np.errstate(over="ignore", invalid="ignore"):
                squares = steps.sums(targets.usable * own * own)
            squares[~np.isfinite(squares)] = np.inf
            errors[lambdas[i]].append(squares)
            totals = np.array([each.sum() for each in errors[lambdas[i]]])
            best = 1 + int(np.argmin(totals))
            own_paths = paths.paths[i * len(folds) : (i + 1) * len(folds)]
            ended = all(path.finished and path.dimension <= m for path in own_paths)
            if ended or m - best >= patience(best):
                searching.remove(i)
        if not searching:
            break
    tables = {lambda_: np.array(own).T for lambda_, own in errors.items()}
    sizes, scale = steps.sums(targets.usable), float((targets.usable * scaled**2).sum())
    whole, best_scores = _best(tables, np.ones(sizes.size, dtype=np.bool_), sizes, scale)
    of_fold = {fold: _best(tables, steps.of_group != fold, sizes, scale)[0] for fold in folds}
    kind = "Returns, completed by a reference," if targets.completed else "Returns"
    note = f"{kind} of {int(targets.usable.sum()):,} states, {_groups(steps)}."
    names = [(lambda_, fold) for lambda_ in lambdas for fold in folds]
    kept = dict(zip(names, paths.paths, strict=True))
    settings = [of_fold[fold] for fold in steps.of_group.tolist()]
    own = np.array([tables[s.lambda_][g, s.dimension - 1] for g, s in enumerate(settings)])
    best_scores = {s: v * unit**2 for s, v in best_scores.items()}
    return Selection(whole, of_fold, True, note, best_scores, kept, Errors(own, sizes, unit))


def _best(
    tables: dict[float, FloatArray], groups: BoolArray, sizes: FloatArray, scale: float
) -> tuple[Setting, dict[Setting, float]]:
    """The best λ and dimension in some of the groups, and the scores of the best dimension of each λ."""
    found: dict[Setting, float] = {}
    total = max(1.0, float(sizes[groups].sum()))
    for lambda_, table in tables.items():
        means = table[groups].sum(axis=0) / total
        at = least(means, scale / total)
        found[Setting(lambda_, at + 1)] = float(means[at])
    allowed = list(found)
    at = least(np.array([found[setting] for setting in allowed]), scale / total)
    return allowed[at], found


def targets_of(system: StateSystem, paths: _Paths, which: int, fixed: int) -> Targets:
    """Returns of all steps; where they are not seen to their end, completed by models of the other folds."""
    steps, rhos = system.steps, system.rhos
    seen = steps.tails <= HIDDEN
    enough = ENOUGH_WITH_ENDS if (steps.discounts == 0.0).any() else ENOUGH_RETURNS
    completed = rhos is not None or float(seen.mean()) < enough
    usable = np.ones(len(steps)) if completed else seen.astype(np.float64)
    n_groups = np.unique(steps.group[usable > 0.0]).size
    if n_groups < FEWEST_GROUPS:
        return Targets(steps.returns, usable, completed, f"there are returns in only {n_groups} episodes or blocks")
    ratios = np.ones(len(steps)) if rhos is None else _counting(steps, rhos)
    effective = _kish(usable * ratios)
    if effective < FEWEST_STATES:
        cause = " by their importance ratios" if rhos is not None else ""
        return Targets(
            steps.returns, usable, completed, f"{usable.sum():,.0f} held-out states count as {effective:.0f}{cause}"
        )
    if not completed:
        return Targets(steps.returns, usable, False, "")
    n = steps.folds.size
    columns = range(which * n, (which + 1) * n)
    paths.extend(fixed, list(columns))
    W = np.column_stack([paths.paths[c].solution(fixed) for c in columns])
    now, after = system.on(W)
    own = np.searchsorted(steps.folds, steps.fold)
    v, v_next = now[np.arange(len(steps)), own], after[np.arange(len(steps)), own]
    return Targets(completed_returns(steps, v, v_next, rhos), usable, True, "")


def completed_returns(
    steps: Steps, values: FloatArray, next_values: FloatArray, rhos: FloatArray | None = None
) -> FloatArray:
    """G_t = ρ_t (r_{t+1} + γ_{t+1} G_{t+1}) + (1 - ρ_t) v(s_t), with v(s_{t+1}) for G_{t+1} where a group ends."""
    ratios = np.ones(len(steps)) if rhos is None else rhos
    rewards = steps.rewards + np.where(steps.ends & (steps.discounts > 0.0), steps.discounts * next_values, 0.0)
    return steps.following(ratios * rewards + (1.0 - ratios) * values, ratios * steps.discounts)


def _counting(steps: Steps, rhos: FloatArray) -> FloatArray:
    """The mean of ρ_t ρ_{t+1} … over the length of a return that stops with probability 1 - γ at each step."""
    beyond = np.where(steps.ends, steps.discounts, 0.0)
    return steps.following(rhos * (1.0 - steps.discounts + beyond), rhos * steps.discounts)


def _kish(values: FloatArray) -> float:
    largest = float(np.abs(values).max(initial=0.0))
    if not largest > 0.0:
        return 0.0
    relative = values / largest
    return float(relative.sum() ** 2 / (relative @ relative))


def _undecided(setting: Setting, folds: Sequence[int], why: str) -> Selection:
    return Selection(setting, dict.fromkeys(folds, setting), False, f"Nothing was chosen: {why}.", {}, {})


def _groups(steps: Steps) -> str:
    whole, folds = steps.n_groups - steps.n_blocks, steps.folds.size
    parts = [f"{whole:,} episode{'s' * (whole != 1)}"] if whole else []
    parts += [f"{steps.n_blocks:,} blocks of a stream"] if steps.n_blocks else []
    return f"{' and '.join(parts)} in {folds} folds"


def thinned_steps(steps: Steps, n: int) -> tuple[Steps, IntArray, IntArray]:
    """Evenly spaced groups with about n steps, and the places of these steps and of their states.

    Where groups are few and long, there are ``SPACED`` of them or all, and of each only what it begins with, two
    horizons or more. They are all steps, if these are no more than n.
    """
    every = -(-len(steps) // max(1, n))
    if every <= 1:
        return steps, np.arange(len(steps)), np.arange(len(steps.states))
    if steps.n_groups < 2 * FEWEST_GROUPS * every:
        every = max(1, steps.n_groups // SPACED)
    rank = np.empty(steps.n_groups, dtype=np.int64)  # every so-manieth group of each fold
    for fold in steps.folds:
        own = np.flatnonzero(steps.of_group == fold)
        rank[own] = np.arange(own.size)
    inside = (rank % every == 0)[steps.group]
    if int(inside.sum()) > 2 * n:
        horizon = np.log(HIDDEN) / np.log(steps.gamma) if 0.0 < steps.gamma < 1.0 else len(steps) * steps.gamma
        longest = max(n // int((rank % every == 0).sum()), int(2.0 * horizon), 1)
        inside &= np.arange(len(steps)) - np.flatnonzero(steps.begins)[steps.group] < longest
    kept = np.flatnonzero(inside)
    if kept.size == len(steps):
        return steps, kept, np.arange(len(steps.states))
    used, places = np.unique(np.concatenate([steps.here[kept], steps.after[kept]]), return_inverse=True)
    return part(steps, kept, places, steps.states[used]), kept, used


def thinned(system: SystemT, n: int) -> SystemT:
    """The system of evenly spaced groups with about n steps; itself, if it has no more."""
    some, kept, used = thinned_steps(system.steps, n)
    if some is system.steps:
        return system
    made: System
    if isinstance(system, PairSystem):
        pairs = Rows([system.rows.take(kept)], system.ids, system.rows.n_features)
        behind = Rows([system.behind.take(used)], system.ids, system.rows.n_features)
        made = PairSystem(some, pairs, behind, system.beyond[used])
    else:
        assert isinstance(system, (StateSystem, ActionSystem))
        rows = Rows([system.rows.take(used)], system.ids, system.rows.n_features)
        if isinstance(system, ActionSystem):
            made = ActionSystem(some, rows, system.actions[kept], system.chances[used])
        else:
            made = StateSystem(some, rows, None if system.rhos is None else system.rhos[kept])
    made.rewards = [own[kept] for own in system.rewards]
    return cast(SystemT, made)


def part(steps: Steps, kept: IntArray, places: IntArray, states: FloatArray) -> Steps:
    """Some steps, whole groups of them; ``places`` are the rows of their states and then of their next states."""
    _, group = np.unique(steps.group[kept], return_inverse=True)
    own = {name: getattr(steps, name)[kept] for name in ("kept", "rewards", "discounts", "episode", "fold")}
    blocks = 0 if not steps.n_blocks else int(group[-1]) + 1
    return replace(
        steps, states=states, here=places[: kept.size], after=places[kept.size :], group=group,
        n_groups=int(group[-1]) + 1, n_blocks=blocks, **own,
    )  # fmt: skip


# --- action values, by residuals ------------------------------------------------------------------------------------


def choose_for_actions(system: System, most: int = DIMENSIONS[-1]) -> Selection:
    """The Krylov dimension by held-out residuals, of action values with λ = 0; at most ``most``.

    The largest one within one standard error (over folds, of the difference) of the least: too small a dimension
    leaves out what is far from any reward, an error in one direction, where too large a one adds noise.
    """
    whole, system = system, thinned(system, MOST)
    steps, folds = system.steps, system.steps.folds.tolist()
    fixed = Setting(0.0, fixed_dimension(len(steps)))
    if len(folds) < 2 or steps.n_groups < FEWEST_GROUPS:
        return _undecided(fixed, folds, f"there are only {steps.n_groups} episodes or blocks")
    paths = _Paths(system, [0.0] * len(folds), folds)
    paths.keep(1)
    norm = _Covariance(system)
    unit = safe_unit(system.rewards[0])
    squares: list[list[float]] = []
    for m in (each for each in DIMENSIONS if each <= most):
        paths.extend(m)
        residuals = np.zeros((len(steps), len(folds)))
        for j, fold in enumerate(folds):
            mine = np.flatnonzero(steps.fold == fold)
            residuals[mine, j] = (system.rewards[0][mine] - paths.predicted(j, m)) / unit / max(1, mine.size)
        projected = system.back(residuals, None)
        squares.append(norm.squares(projected).tolist())
        means = np.mean(squares, axis=1)
        worse = len(means) - 1 - int(means.argmin())
        if (m >= AT_LEAST and worse >= WORSE) or all(path.finished for path in paths.paths):
            break
    table = np.array(squares)
    chosen = {fold: _largest(table[:, [j for j, f in enumerate(folds) if f != fold]]) for fold in folds}
    note = f"Held-out residuals of {len(steps):,} steps, {_groups(steps)}."
    compared = {Setting(0.0, m): float(s) * unit**2 for m, s in zip(DIMENSIONS, table.mean(axis=1), strict=False)}
    kept = {(0.0, f): path for f, path in zip(folds, paths.paths, strict=True)} if system is whole else {}
    of_fold = {fold: Setting(0.0, DIMENSIONS[at]) for fold, at in chosen.items()}
    return Selection(Setting(0.0, DIMENSIONS[_largest(table)]), of_fold, True, note, compared, kept)


class HeldOut(NamedTuple):
    """Action values of the steps of a system by models of other episodes, and what follows the next state."""

    values: FloatArray
    """(N,): q(s_t, a_t), less the constants of the actions."""
    targets: FloatArray
    """(N,): r_{t+1} + γ v(s_{t+1}), less the same."""


def held_out_values(system: System) -> HeldOut:
    """Of a system, with the dimension that each fold's residuals choose in the others."""
    folds, W = weights(system, choose_for_actions(system, FEWER), whole=False)
    now, after = system.by_others(W, folds)[:, :2].T
    return HeldOut(now, system.rewards[0] + system.steps.discounts * after)


def errors_of_residuals(steps: Steps, found: Sequence[HeldOut]) -> list[Errors]:
    """Held-out Bellman residuals of several systems of the same steps, which differ in their features.

    gᵀC⁻¹g for g = Σ ψ_t δ_t/N and C = Σ ψ_t ψ_tᵀ/N, where ψ_t are the values of step t by all of the systems and 1.
    Where the values q of a system are wrong and those of another one, p, are right, the TD errors of q go along with
    p − q. Right values have TD errors of mean zero wherever they are, and so go along with nothing.
    """
    n, unit = len(steps), safe_unit(*(each.targets for each in found))
    tests = np.column_stack([np.ones(n), *(_of_size_one(each.values) for each in found)])
    C = tests.T @ tests / n
    C[np.diag_indices(len(C))] += SMALLEST * float(np.trace(C))
    errors, sizes = [], steps.sums(np.ones(n))
    for each in found:
        residuals = (each.targets - each.values) / unit
        along = tests @ np.linalg.solve(C, tests.T @ residuals / n) * residuals
        sums = steps.sums(along)
        errors.append(Errors(2.0 * sums - float(along.mean()) * sizes, sizes, unit))  # whose mean is gᵀC⁻¹g
    return errors


def _of_size_one(values: FloatArray) -> FloatArray:
    """In units of their root mean square, so that the unit of rewards does not matter; zeros stay zeros."""
    own: FloatArray = values / power_of_two(values)
    return own / (float(np.sqrt(np.square(own).mean())) or 1.0)


def can_hold_out(steps: Steps) -> bool:
    """Whether there are folds, and groups enough."""
    return steps.folds.size > 1 and steps.n_groups >= FEWEST_GROUPS


def _largest(table: FloatArray) -> int:
    """The last of (candidates, folds) within one standard error of the least."""
    if table.shape[1] < 2:
        return int(table.sum(axis=1).argmin())
    return len(table) - 1 - within_one_standard_error(table[::-1].T)


class _Covariance:
    """C = XᵀX/N + ηI, as the norm gᵀC⁻¹g. Features of different actions never occur together: C has their blocks."""

    def __init__(self, system: System) -> None:
        self.system, self.factors = system, None
        self.ridge = COVARIANCE_RIDGE * (system.square or 1.0)
        if system.n * system.ids.size <= DENSE**2:
            blocks = covariance(system)
            if not system.square > 0.0:  # nothing that the policy does is in the log
                self.ridge = COVARIANCE_RIDGE * (sum(float(np.trace(C)) for C in blocks) or 1.0)
            self.factors = [self._factor(C) for C in blocks]

    def _factor(self, C: FloatArray) -> tuple[FloatArray, bool]:
        C[np.diag_indices(len(C))] += self.ridge
        found: tuple[FloatArray, bool] = scipy.linalg.cho_factor(C, overwrite_a=True)
        return found

    def squares(self, G: FloatArray) -> FloatArray:
        """gᵀC⁻¹g of each column of G (n, k)."""
        if self.factors is not None:
            parts = zip(np.split(G, len(self.factors)), self.factors, strict=True)
            solved = [(g, scipy.linalg.cho_solve(factor, g, check_finite=False)) for g, factor in parts]
            total: FloatArray = np.sum([np.einsum("ij,ij->j", g, x) for g, x in solved], axis=0)
            return total
        return np.array([self._square(g) for g in G.T])

    def _square(self, g: FloatArray) -> float:
        from scipy.sparse.linalg import LinearOperator, cg  # here: slow to import, and small systems need none of it

        def apply(v: FloatArray) -> FloatArray:
            on = self.system.on(np.reshape(v, (-1, 1)))[0]
            n = len(self.system.steps)
            found: FloatArray = self.system.back(on, None)[:, 0] / n + self.ridge * np.ravel(v)
            return found

        solution, _ = cg(LinearOperator((g.size, g.size), matvec=apply, dtype=np.float64), g, rtol=1e-3, maxiter=200)
        return float(g @ solution)


def covariance(system: System) -> list[FloatArray]:
    """XᵀX/N, the block (d, d) of each action; of pairs there is one."""
    n, d, steps = len(system.steps), system.ids.size, system.steps
    assert isinstance(system, (ActionSystem, PairSystem))
    here = np.arange(n) if isinstance(system, PairSystem) else steps.here
    blocks = []
    for own in system.taken if isinstance(system, ActionSystem) else [np.arange(n)]:
        counts = np.bincount(here[own], minlength=system.rows.size).astype(np.float64)
        block, start = np.zeros((d, d)), 0
        for rows in system.rows.blocks:
            weight = counts[start : start + rows.shape[0]]
            some, start = np.flatnonzero(weight), start + rows.shape[0]
            X = rows[some]
            product = X.T @ (sp.diags_array(weight[some]) @ X) if sp.issparse(X) else X.T @ (weight[some, None] * X)
            block += product.toarray() if sp.issparse(product) else product
        blocks.append(block / n)
    return blocks
