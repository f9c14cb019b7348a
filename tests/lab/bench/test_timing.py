"""The stopwatch of the benchmark, with clocks that do what they are told."""

from collections.abc import Callable

import pytest
from tlstd_lab.bench.row import Bench, Line, Target, cost, duration, speed_up
from tlstd_lab.bench.timing import Side, Times, interleaved, ratios


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_sides_take_turns_and_only_their_actions_are_timed() -> None:
    cpu, wall, log = FakeClock(), FakeClock(), list[str]()

    def side(name: str, seconds: float) -> Side:
        def prepare() -> Callable[[], None]:
            cpu.now += 1000.0  # must not count

            def action() -> None:
                log.append(name)
                cpu.now += seconds
                wall.now += 2.0 * seconds

            return action

        return Side(name, 10, prepare)

    ours, theirs = interleaved([side("ours", 1.0), side("theirs", 3.0)], 3, cpu=cpu, wall=wall)
    # once to warm up, then in turn, every other round in reverse
    assert log == ["ours", "theirs", "ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert ours == Times("ours", 10, (1.0, 1.0, 1.0), (2.0, 2.0, 2.0))
    assert theirs.cpu == (3.0, 3.0, 3.0)
    assert theirs.per_step == pytest.approx(0.3)


def test_the_warm_up_is_not_in_the_times() -> None:
    clock, seconds = FakeClock(), iter([100.0, 2.0, 4.0, 3.0])

    def action() -> None:
        clock.now += next(seconds)

    (times,) = interleaved([Side("compiles first", 1, lambda: action)], 3, cpu=clock, wall=clock)
    assert times.cpu == (2.0, 4.0, 3.0)
    assert times.per_step == 3.0  # the median


def test_ratios_are_taken_repeat_by_repeat_and_per_step() -> None:
    ours, theirs = Times("ours", 10, (1.0, 2.0, 4.0), (1.0,) * 3), Times("theirs", 5, (5.0, 5.0, 10.0), (2.0,) * 3)
    assert ratios(theirs, ours) == (10.0, 5.0, 5.0)
    assert ratios(theirs, ours, wall=True) == (4.0, 4.0, 4.0)
    faster = speed_up(ours, theirs, 6.0)
    assert (faster.median, min(faster.values), max(faster.values), faster.reached) == (5.0, 5.0, 10.0, False)
    slower = cost(ours, theirs, 0.2)
    assert slower.median == pytest.approx(0.2)
    assert slower.reached
    assert cost(ours, theirs).reached is None


def test_bench_adds_up_what_was_timed() -> None:
    clock = FakeClock()

    def action() -> None:
        clock.now += 2.0

    bench = Bench(quick=True, cpu=clock, wall=clock)
    bench.time(Side("a", 1, lambda: action))
    assert bench.timed == 2.0 * bench.repeats
    assert (bench.size(10, 1), Bench().size(10, 1)) == (1, 10)


@pytest.mark.parametrize(("sign", "value", "met"), [(">=", 2.0, True), (">=", 1.9, False), ("<=", 2.1, False)])
def test_targets(sign: str, value: float, met: bool) -> None:
    assert Target(sign, 2.0).met(value) is met  # type: ignore[arg-type]


def test_a_line_in_json_has_every_time() -> None:
    times = Times("ours", 10, (1.0, 2.0), (3.0, 4.0))
    plain = Line("a", "b", (2.0, 1.0), Target("<=", 2.0), times=(times,)).plain()
    assert plain["times"] == [{"name": "ours", "steps": 10, "cpu": [1.0, 2.0], "wall": [3.0, 4.0]}]
    assert (plain["median"], plain["low"], plain["high"], plain["reached"]) == (1.5, 1.0, 2.0, True)
    assert duration(0.5) == "500 ms"
