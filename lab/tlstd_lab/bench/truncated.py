"""Rows of t-LSTD and of ATD, which uses its factors."""

from __future__ import annotations

from tlstd.estimators.step_sizes import Decay
from tlstd.zoo.atd import ATD
from tlstd_lab.bench import problems
from tlstd_lab.bench.problems import Problem, warmed, whole
from tlstd_lab.bench.row import Bench, Line, cost, speed_up


def energy(bench: Bench) -> list[Line]:
    """t-LSTD on the energy-like stream, update_many, against two dense versions with k=r."""
    return _against_dense(bench, problems.energy(bench.quick), target=60.0)


def tiles(bench: Bench) -> list[Line]:
    """t-LSTD on Mountain Car's tiles, update_many, against two dense versions with k=r."""
    return _against_dense(bench, problems.tiles(bench.quick), target=4.0)


def rbf(bench: Bench) -> list[Line]:
    """t-LSTD on Mountain Car's RBFs, update_many, against two dense versions with k=r."""
    return _against_dense(bench, problems.rbf(bench.quick), target=1.5)


def _against_dense(bench: Bench, problem: Problem, *, target: float) -> list[Line]:
    """Against the reference, which projects twice and has the target, and against one projection in NumPy."""
    warm = warmed(problem)
    part = problem.stream[warm.start : warm.start + whole(problem.part, warm.buffer)]
    ours = problems.many(f"t-LSTD, {problem.name}, update_many", warm.model, part)
    buffers = bench.size(4, 1)
    dense = (
        problems.reference(problem, mini_batch=True, buffers=buffers),
        problems.one_projection(problem, buffers=buffers),
    )
    own, reference, once = bench.time(ours, *dense)
    note = f"d={problem.n_features:,}, {warm.model.n_seen:,} seen, r={problem.rank}"
    return [speed_up(own, reference, target, note=note), speed_up(own, once)]


def energy_read(bench: Bench) -> list[Line]:
    """t-LSTD on the energy-like stream, read at every step, against the dense reference with k=1 (stretch: 20)."""
    problem = problems.energy(bench.quick)
    warm = warmed(problem, buffer_size=problem.rank)
    part = problem.stream[warm.start : warm.start + bench.size(4, 1) * warm.buffer]
    ours = problems.stepwise(f"t-LSTD, {problem.name}, update and predict", warm.model, part, read=True)
    theirs = problems.reference(problem, mini_batch=False, buffers=1)
    return [speed_up(*bench.compare(ours, theirs), 10.0, note="stretch: 20")]


def projected(bench: Bench) -> list[Line]:
    """t-LSTD with projected reads, update_and_predict, against exact reads at every step (energy-like, tiles)."""
    lines = []
    for problem in (problems.energy(bench.quick), problems.tiles(bench.quick)):
        exact, warm = warmed(problem, buffer_size=problem.rank), warmed(problem, reads="projected")
        part = problem.stream[warm.start : warm.start + whole(problem.part, warm.buffer)]
        few = problem.stream[exact.start : exact.start + bench.size(2, 1) * exact.buffer]
        name = f"t-LSTD, {problem.name}, projected, update_and_predict"
        ours = problems.many_read(name, warm.model, part)
        theirs = problems.stepwise("exact, read at every step", exact.model, few, read=True)
        lines.append(speed_up(*bench.compare(ours, theirs)))
    return lines


def one_by_one(bench: Bench) -> list[Line]:
    """t-LSTD on the energy-like stream, update one by one, against its own update_many."""
    problem = problems.energy(bench.quick)
    warm = warmed(problem)
    part = problem.stream[warm.start : warm.start + whole(problem.part, warm.buffer)]
    ours = problems.stepwise(f"t-LSTD, {problem.name}, update", warm.model, part, read=False)
    theirs = problems.many("its update_many", warm.model, part)
    return [cost(*bench.compare(ours, theirs), 1.5)]


def atd(bench: Bench) -> list[Line]:
    """ATD against t-LSTD read at every step, same stream, rank and buffer (energy-like, tiles)."""
    lines = []
    for problem in (problems.energy(bench.quick), problems.tiles(bench.quick)):
        warm = warmed(problem, buffer_size=problem.rank)
        model = ATD(
            problem.n_features,
            problem.rank,
            step_size=Decay(1.0, 0),
            lambda_=problem.lambda_,
            eta=1e-3,
            buffer_size=problem.rank,
        )
        model.update_many(problem.stream[warm.start - 3 * warm.buffer : warm.start])
        part = problem.stream[warm.start : warm.start + bench.size(4, 1) * warm.buffer]
        ours = problems.many(f"ATD, {problem.name}, update_many", model, part)
        theirs = problems.stepwise("t-LSTD, read at every step", warm.model, part, read=True)
        lines.append(cost(*bench.compare(ours, theirs), 1.5))
    return lines
