"""LSPI's own problems, chains and an inverted pendulum, with its numbers: reproduced, and with other solvers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tlstd_lab.chart import Axis, Chart, Legend, Series, curve, points
from tlstd_lab.claims import BEYOND, Claim, Finding, Verdict, above, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.questions.control.methods import COLOUR, LITERAL, MARKER, shown
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import bootstrap, interval

CHAINS = ("4 states", "20 states", "50 states, polynomials", "50 states, Gaussians")
ON_CHAINS = {
    "LSTD": {"estimators": LITERAL["LSTD"]["estimators"]},
    "sigma points": {"about": "mean", "ridge": 0.0, "rcond": 1e-10},
    "sigma points of second moments": {"about": "zero", "ridge": 0.0, "rcond": 1e-10},
}
GOOD = 0.01
"""Part of the optimal value that a policy may lose and still count as optimal but for minor deviations."""


class Chains(Panel):
    """What policies lose on the chains."""

    name = "control-chain"
    title = "LSPI's chains"
    caption = (
        "Policy iteration on the chains of LSPI's publication, from one random walk of 50, 5,000 and 10,000 steps: "
        "part of the optimal value (true values, mean over states) that the last policy loses. LSTD is LSPI; sigma "
        "points of a Gaussian, and of second moments, from the same walks."
    )
    size = (5.2, 2.6)

    def method_runs(self, scale: Scale, chain: str, method: str) -> list[RunSpec]:
        """Return the runs of one method on one chain."""
        settings = {"chain": chain, "method": ON_CHAINS[method], "samples": 0.1 if scale == "smoke" else 1.0}
        return specs("control-chain", settings, seeds(pick({"smoke": 1, "quick": 20, "paper": 100}, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all of them."""
        return [run for chain in CHAINS for m in ON_CHAINS for run in self.method_runs(results.scale, chain, m)]

    def chart(self, results: Results) -> Chart:
        """Return a mark with its interval for each method and chain."""
        series = []
        for number, method in enumerate(ON_CHAINS):
            runs = [results.column(self.method_runs(results.scale, chain, method), "loss")[:, 0] for chain in CHAINS]
            value, low, high = np.array([bootstrap(np.mean, losses) for losses in runs]).T
            marks = points(np.arange(len(CHAINS)) + 0.16 * (number - 1), value, np.clip(low, 0, 1), np.clip(high, 0, 1))
            label = "LSTD (LSPI)" if method == "LSTD" else method
            series.append(Series(label, COLOUR[method], marks, marker=MARKER[method], joined=False, size=4.0))
        ticks = tuple((float(i), words.replace("50 states, ", "50, ")) for i, words in enumerate(CHAINS))
        x = Axis("", low=-0.5, high=len(CHAINS) - 0.5, ticks=ticks)
        return Chart(series, x, Axis("part of the value lost", low=-0.05, high=1.05), legend=Legend("below", 3))

    def claims(self) -> Sequence[Claim]:
        """Return what the publication says of each chain, and sigma points."""
        return (
            Claim(
                "control-chain-4",
                BEYOND,
                "On the chain of 4 states LSPI finds the optimal policy from 50 random samples.",
                lambda results: self._optimal(results, "4 states"),
            ),
            Claim(
                "control-chain-20",
                BEYOND,
                "On the chain of 20 states LSPI with polynomials converges to the optimal policy.",
                lambda results: self._optimal(results, "20 states"),
            ),
            Claim(
                "control-chain-50-polynomials",
                BEYOND,
                "On the chain of 50 states LSPI with polynomials converges in fewer than 10 iterations, not to the "
                "optimal policy.",
                self._fails,
            ),
            Claim(
                "control-chain-50-Gaussians",
                BEYOND,
                "On the chain of 50 states LSPI with Gaussians converges to the optimal policy, or nearly.",
                lambda results: self._optimal(results, "50 states, Gaussians"),
            ),
            Claim(
                "control-chain-sigma",
                BEYOND,
                "Sigma points of a Gaussian find as good policies as LSPI on the chains.",
                self._sigma,
            ),
        )

    def _optimal(self, results: Results, chain: str) -> Finding:
        runs = self.method_runs(results.scale, chain, "LSTD")
        share = interval(np.mean, (results.column(runs, "loss")[:, 0] <= GOOD).astype(float))
        iterations = results.column(runs, "iterations")[:, 0]
        converged = results.column(runs, "converged")[:, 0].mean()
        note = f"converged: {converged:.0%}; iterations: {iterations.min():.0f} to {iterations.max():.0f}"
        return Finding(above(share, 0.8, partly=0.5), share, f"runs that lose at most {GOOD:.0%} of the value", note)

    def _fails(self, results: Results) -> Finding:
        runs = self.method_runs(results.scale, "50 states, polynomials", "LSTD")
        loss = interval(np.mean, results.column(runs, "loss")[:, 0])
        quick = (results.column(runs, "converged")[:, 0] == 1) & (results.column(runs, "iterations")[:, 0] < 10)
        verdict: Verdict = above(loss, GOOD)
        if quick.mean() < 0.9:
            verdict = "not"
        same = results.column(runs, "same")[:, 0].mean()
        note = f"converged in fewer than 10 iterations: {quick.mean():.0%}; states with the optimal action: {same:.0%}"
        return Finding(verdict, loss, "part of the value lost", note)

    def _sigma(self, results: Results) -> Finding:
        extra = {}
        for chain in CHAINS:
            losses = [results.column(self.method_runs(results.scale, chain, m), "loss")[:, 0] for m in ON_CHAINS]
            extra[chain] = interval(lambda a, b: float(a.mean() - b.mean()), losses[1], losses[0])
        worst = max(extra, key=lambda chain: extra[chain].value)
        note = "; ".join(f"{chain}: {number}" for chain, number in extra.items())
        return Finding(below(extra[worst], 0.02, partly=0.1), extra[worst], f"value lost beyond LSPI, {worst}", note)


EPISODES = {"smoke": (20, 40), "quick": (100, 300, 1000), "paper": (50, 100, 200, 400, 700, 1000)}


class Pole(Panel):
    """Balancing steps against training episodes."""

    name = "control-pole"
    title = "LSPI's inverted pendulum"
    caption = (
        "The inverted pendulum of LSPI's publication, 3 × 10 features, γ=0.95: steps (of at most 3,000) for which the "
        "policy balances, found from episodes of random actions. LSTD (LSPI) and sigma points at every number of "
        "episodes, t-LSTD of rank 24 and Krylov LSTD of dimension 30 at the largest."
    )
    size = (3.8, 2.9)

    def method_runs(self, scale: Scale, method: str, episodes: int) -> list[RunSpec]:
        """Return the runs of one method from so many episodes."""
        settings = {"problem": "inverted pendulum", "method": LITERAL[method], "episodes": episodes, "starts": 10}
        return specs("control-success", settings, shown(pick({"smoke": 1, "quick": 20, "paper": 100}, scale)))

    def sizes(self, scale: Scale, method: str) -> tuple[int, ...]:
        """Return the numbers of episodes at which a method is run."""
        every = pick(EPISODES, scale)
        return every if method in ("LSTD", "sigma points") else every[-1:]

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all of them."""
        scale = results.scale
        return [run for m in LITERAL for n in self.sizes(scale, m) for run in self.method_runs(scale, m, n)]

    def chart(self, results: Results) -> Chart:
        """Return a line or a mark for each method."""
        series = []
        for method in LITERAL:
            sizes = self.sizes(results.scale, method)
            steps = [results.column(self.method_runs(results.scale, method, n), "balanced")[:, 0] for n in sizes]
            label = "LSTD (LSPI)" if method == "LSTD" else method
            series.append(curve(sizes, np.array(steps).T, label, COLOUR[method], marker=MARKER[method], size=4.0))
        x, y = Axis("episodes of random actions", log=True), Axis("steps balanced", low=-100.0, high=3150.0)
        return Chart(series, x, y, legend=Legend("below", 2))

    def claims(self) -> Sequence[Claim]:
        """Return what the publication says, and the other solvers."""
        return (
            Claim(
                "control-pole-lspi",
                BEYOND,
                "With 1,000 random episodes LSPI balances the pendulum for about 2,850 of 3,000 steps.",
                lambda results: self._balances(results, "LSTD"),
            ),
            *(
                Claim(
                    f"control-pole-{name}",
                    BEYOND,
                    f"With 1,000 random episodes policy iteration with {words} balances as long.",
                    partial(self._balances, method=method),
                )
                for name, words, method in (
                    ("t-LSTD", "t-LSTD of rank 24 (of 30)", "t-LSTD"),
                    ("krylov", "Krylov LSTD", "Krylov LSTD"),
                    ("sigma", "sigma points", "sigma points"),
                )
            ),
        )

    def _balances(self, results: Results, method: str) -> Finding:
        """About: the whole interval above 2,700."""
        largest = pick(EPISODES, results.scale)[-1]
        runs = self.method_runs(results.scale, method, largest)
        steps = results.column(runs, "balanced")[:, 0]
        number = interval(np.mean, steps)
        seconds = results.column(runs, "seconds")[:, 0].mean()
        note = f"worst run: {steps.min():.0f} steps; {seconds:.2g} s of processor time"
        return Finding(above(number, 2700.0, partly=1500.0), number, f"steps balanced, {largest} episodes", note)
