"""Beyond the paper: control from logs of random actions; and while acting, with constant β and with 1/t."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, SOLID, Axis, Chart, Legend, Rule, Series, curve, points
from tlstd_lab.claims import BEYOND, Claim, Finding, above, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.questions.control.methods import COLOUR, LOGS, MARKER, shown
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import bootstrap, interval, ratio_of_means

STEPS = {"Mountain Car": 2_000, "Pendulum": 3_000, "CartPole": 2_000}
"""Of the random logs."""
PLACES = {
    "Mountain Car": "success",
    "Mountain Car from the valley": "fixed",
    "Pendulum": "success",
    "Pendulum hanging": "fixed",
    "CartPole": "success",
}
"""What is shown, and the column that has it."""


class Logs(Panel):
    """Success rates of policies found from logs of random actions."""

    name = "control-logs"
    title = "Policies from logs of random actions"
    caption = (
        "Policy iteration from 2,000 steps (Pendulum: 3,000) of random actions. Mountain Car: 3 × 64 RBFs, starts "
        "uniform over the box, and the valley; success is the goal within 300 steps. Pendulum with a torque of 5 "
        "(lifting takes 9.8): 3 × 99 RBFs, starts at rest anywhere, and hanging; success is being upright throughout "
        "the 20th second. CartPole: 2 × 81 Fourier features; success is 500 steps. λ=0; LSTD and Krylov LSTD of "
        "dimension 60 with the smallest ridge that converges to possible values, t-LSTD of rank 120."
    )
    size = (5.2, 2.6)

    def method_runs(self, scale: Scale, problem: str, method: str) -> list[RunSpec]:
        """Return the runs of one method on one problem."""
        steps = STEPS[problem] if scale != "smoke" else 300
        settings = {"problem": problem, "method": LOGS[method], "steps": steps, "starts": 50}
        if scale == "smoke":
            settings |= {"starts": 5, "method": _short(LOGS[method])}
        return specs("control-success", settings, shown(pick({"smoke": 1, "quick": 20, "paper": 100}, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all of them."""
        return [run for problem in STEPS for method in LOGS for run in self.method_runs(results.scale, problem, method)]

    def rates(self, results: Results, place: str, method: str) -> FloatArray:
        """Success (runs,) in one of the places shown."""
        problem = next(name for name in STEPS if place.startswith(name))
        return results.column(self.method_runs(results.scale, problem, method), PLACES[place])[:, 0]

    def chart(self, results: Results) -> Chart:
        """Return a mark with its interval for each method in each place."""
        series = []
        for number, method in enumerate(LOGS):
            found = [bootstrap(np.mean, self.rates(results, place, method)) for place in PLACES]
            value, low, high = np.array(found).T
            at = np.arange(len(PLACES)) + 0.16 * (number - 1)
            marks = points(at, value, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))
            series.append(Series(method, COLOURS[method], marks, marker=MARKER[method], joined=False, size=4.0))
        words = ("Mountain Car", "from the valley", "Pendulum", "hanging", "CartPole")
        ticks = tuple((float(i), word) for i, word in enumerate(words))
        return Chart(
            series,
            Axis("", low=-0.5, high=len(PLACES) - 0.5, ticks=ticks),
            Axis("success rate", low=-0.05, high=1.05),
            legend=Legend("below", 3, 6.5),
        )

    def claims(self) -> Sequence[Claim]:
        """Return one for each place, and what t-LSTD and Krylov LSTD add."""
        found = [
            Claim(
                f"control-logs-{place.lower().replace(' ', '-')}",
                BEYOND,
                f"{place}: policy iteration with LSTD succeeds nine times in ten, from random actions alone.",
                partial(self._succeeds, place=place),
            )
            for place in PLACES
        ]
        return (
            *found,
            Claim(
                "control-logs-krylov",
                BEYOND,
                "Krylov LSTD of dimension 60 finds as good policies as LSTD on all three problems.",
                lambda results: self._like_lstd(results, "Krylov LSTD"),
            ),
            Claim(
                "control-logs-t-LSTD",
                BEYOND,
                "t-LSTD of rank 120 (of 162 to 297 features) finds as good policies as LSTD on all three problems.",
                lambda results: self._like_lstd(results, "t-LSTD"),
            ),
            Claim("control-logs-time", BEYOND, "With so few features t-LSTD is slower than LSTD.", self._time),
        )

    def _succeeds(self, results: Results, place: str) -> Finding:
        rates = {method: interval(np.mean, self.rates(results, place, method)) for method in LOGS}
        note = "; ".join(f"{method}: {rate}" for method, rate in rates.items() if method != "LSTD")
        return Finding(above(rates["LSTD"], 0.9, partly=0.5), rates["LSTD"], "success rate, LSTD", note)

    def _like_lstd(self, results: Results, method: str) -> Finding:
        """The worst of the three problems decides."""
        lost = {
            problem: interval(
                lambda a, b: float(a.mean() - b.mean()),
                self.rates(results, problem, "LSTD"),
                self.rates(results, problem, method),
            )
            for problem in STEPS
        }
        worst = max(lost, key=lambda problem: lost[problem].value)
        note = "; ".join(f"{problem}: {number}" for problem, number in lost.items())
        return Finding(below(lost[worst], 0.1, partly=0.3), lost[worst], f"success lost to LSTD, {worst}", note)

    def _time(self, results: Results) -> Finding:
        seconds = {
            (problem, method): results.column(self.method_runs(results.scale, problem, method), "seconds")[:, 0]
            for problem in STEPS
            for method in LOGS
        }
        ratios = {problem: ratio_of_means(seconds[problem, "t-LSTD"], seconds[problem, "LSTD"]) for problem in STEPS}
        least = min(ratios, key=lambda problem: ratios[problem].value)
        note = "; ".join(f"{problem}, {method}: {s.mean():.2g} s" for (problem, method), s in seconds.items())
        return Finding(above(ratios[least], 1.0), ratios[least], f"processor time over LSTD's, {least}", note)


def _short(method: dict[str, Any]) -> dict[str, Any]:
    """With at most two estimators and iterations."""
    return method | {"estimators": method["estimators"][-2:], "max_iterations": 2}


BETAS: tuple[float | None, ...] = (None, 1e-3)
ONLINE: dict[str, dict[str, Any]] = {
    "LSTD": {"class": "LSTD", "lambda_": 0.0, "ridge": 1e-6},
    "t-LSTD": {"class": "TLSTD", "lambda_": 0.0, "rank": 120, "rcond": 1e-4},
}
FORCES = {"the same": 0.001, "changed": 0.0006}
"""Of the engine in the second half."""


class Beta(Panel):
    """Policies that improve while they act, with all samples alike and with constant β."""

    name = "control-beta"
    title = "Policies improved while they act"
    caption = (
        "Mountain Car, 3 × 64 RBFs, λ=0: an ε-greedy policy (ε=0.1) acts for rounds of 500 steps, one model goes on "
        "learning from them, and its weights are the next policy; half-way the engine loses 40% of its force (dotted). "
        "Steps to the goal from starts uniform over the box, at most 300."
    )
    size = (4.2, 3.0)

    def method_runs(self, scale: Scale, world: str, method: str, beta: float | None) -> list[RunSpec]:
        """Return the runs of one method with one β."""
        estimator = ONLINE[method] | ({} if beta is None else {"beta": beta})
        rounds = pick({"smoke": 2, "quick": 20, "paper": 60}, scale)
        settings = {"estimator": estimator, "force": FORCES[world], "rounds": rounds}
        settings |= {"steps": pick({"smoke": 100, "quick": 500, "paper": 500}, scale), "epsilon": 0.1, "starts": 30}
        return specs("control-improvement", settings, seeds(pick({"smoke": 1, "quick": 5, "paper": 20}, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return both worlds, methods and all β."""
        return [
            run
            for world in FORCES
            for method in ONLINE
            for beta in BETAS
            for run in self.method_runs(results.scale, world, method, beta)
        ]

    def chart(self, results: Results) -> Chart:
        """Return the world that changes: a line with a band for each method and β."""
        series = []
        for method in ONLINE:
            for beta, dash in zip(BETAS, (DASHED, SOLID), strict=True):
                runs = self.method_runs(results.scale, "changed", method, beta)
                label = f"{method}, " + ("1/t" if beta is None else f"β={beta:g}")
                look = {"dash": dash, "marker": MARKER[method], "hollow": beta is None, "every": 3}
                samples = results[runs[0]].columns["samples"]
                series.append(curve(samples, results.column(runs, "mean_steps"), label, COLOUR[method], **look))
        half = float(samples[len(samples) // 2 - 1])
        return Chart(series, Axis("samples"), Axis("steps to the goal"), (Rule("x", half),), legend=Legend("below", 3))

    def claims(self) -> Sequence[Claim]:
        """Return what β does in both worlds."""
        return (
            Claim(
                "control-beta-same",
                BEYOND,
                "While a policy improves, LSTD that forgets (constant β) ends with a better one than with 1/t.",
                lambda results: self._helps(results, "the same", "LSTD"),
            ),
            Claim(
                "control-beta-changed",
                BEYOND,
                "Where the engine changes half-way, LSTD with constant β ends with a better policy than with 1/t.",
                lambda results: self._helps(results, "changed", "LSTD"),
            ),
            Claim(
                "control-beta-changed-t-LSTD",
                BEYOND,
                "Where the engine changes half-way, t-LSTD with constant β ends with a better policy than with 1/t.",
                lambda results: self._helps(results, "changed", "t-LSTD"),
            ),
        )

    def _helps(self, results: Results, world: str, method: str) -> Finding:
        """Better: fewer steps in the mean of the last quarter, 5% count."""
        ends = {}
        for beta in BETAS:
            steps = results.column(self.method_runs(results.scale, world, method, beta), "mean_steps")
            ends[beta] = steps[:, -max(1, steps.shape[1] // 4) :].mean(axis=1)
        beta = BETAS[-1]
        ratio = ratio_of_means(ends[None], ends[beta])
        note = "; ".join(f"{'1/t' if one is None else f'β={one:g}'}: {s.mean():.3g}" for one, s in ends.items())
        return Finding(above(ratio, 1.05), ratio, f"steps to the goal at the end, 1/t over β={beta:g}", note)
