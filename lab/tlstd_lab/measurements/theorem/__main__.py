"""The numbers and figures of ``docs/experiments.md``: thousands of random systems (A, b) whose limit is known exactly.

uv run python -m tlstd_lab.measurements.theorem --out docs/figures                  # about 1 minute
uv run python -m tlstd_lab.measurements.theorem --scale smoke --out FOLDER          # a few seconds

Runs are those of the laboratory's one runner: with ``--store FOLDER`` they are kept, and only missing ones computed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tlstd_lab.measurements.theorem.figures import draw_picard, draw_shares, draw_tikhonov, draw_trade_off
from tlstd_lab.panel import SCALES, Results, Scale, pick
from tlstd_lab.questions.theorem.bounds import convergence, joined, summary, violations
from tlstd_lab.questions.theorem.systems import FAMILIES, ORACLES, SEED
from tlstd_lab.questions.theorem.tikhonov import PAIR, tikhonov_summary
from tlstd_lab.questions.theorem.trade_off import CURVES, SAMPLES, regret
from tlstd_lab.runner import run_all
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store


class Study:
    """Which runs there are, and what follows from them."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        n_cases = pick({"smoke": 3, "quick": 40, "paper": 400}, scale)
        streams = pick({"smoke": 1, "quick": 10, "paper": 40}, scale)
        self.families = {f: RunSpec("theorem-rows", {"family": f, "cases": n_cases}, SEED) for f in FAMILIES}
        self.trade_offs = {
            (oracle, n): RunSpec("trade-off-medians", {"oracle": oracle, "samples": n, "streams": streams}, SEED)
            for oracle in ORACLES
            for n in SAMPLES
        }
        self.tikhonov = {
            oracle: RunSpec("tikhonov", {"oracle": oracle, "streams": streams}, SEED) for oracle in list(ORACLES)[:2]
        }

    def run(self, store: Store) -> Results:
        """Compute what is not stored."""
        wanted = [*self.families.values(), *self.trade_offs.values(), *self.tikhonov.values()]
        report = run_all(wanted, store)
        if not report.complete:
            raise SystemExit(str(report))
        return Results(store, self.scale)

    def write(self, results: Results, folder: Path) -> dict[str, Any]:
        """Write ``theorem_*.png`` and ``theorem.json``."""
        families = {family: results[spec].columns for family, spec in self.families.items()}
        everything = joined(families)
        by_family = {family: summary(columns) for family, columns in families.items()}
        by_trend = {}
        for words, chosen in (("p > 1", everything["p"] > 1.0), ("p <= 1", ~(everything["p"] > 1.0))):
            by_trend[words] = tikhonov_summary({name: column[chosen] for name, column in everything.items()})
        tikhonov = {family: tikhonov_summary(columns) for family, columns in families.items()}
        trade_offs = {
            f"{oracle}, {n} samples": {
                **{curve: [float(f"{x:.4g}") for x in results[spec].columns[curve]] for curve in CURVES},
                "regret": {c: float(f"{results[spec].columns[regret(c)][0]:.4g}") for c in CURVES[3:]},
            }
            for (oracle, n), spec in self.trade_offs.items()
        }
        pairs = {o: np.stack([results[s].columns[name] for name in PAIR], axis=1) for o, s in self.tikhonov.items()}
        found = {
            "scale": self.scale,
            "seed": SEED,
            "all": summary(everything),
            "families": by_family,
            "convergence": convergence(),
            "picard": draw_picard(folder / "theorem_picard.png"),
            "trade-off": trade_offs,
            "tikhonov": tikhonov | by_trend,
            "violations with the smallest C": violations(families),
        }
        draw_trade_off(trade_offs, folder / "theorem_trade_off.png")
        draw_shares(by_family, folder / "theorem_shares.png")
        draw_tikhonov(pairs, tikhonov, folder / "theorem_tikhonov.png")
        (folder / "theorem.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        return found


def main(arguments: Sequence[str] | None = None, report: Callable[[str], None] = print) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder for what is written")
    parser.add_argument("--scale", choices=SCALES, default="paper", help="how many cases")
    parser.add_argument("--store", type=Path, help="folder of the runs; none is kept if left out")
    options = parser.parse_args(arguments)
    study = Study(options.scale)
    with TemporaryDirectory() as folder:
        found = study.write(study.run(Store(options.store or folder)), options.out)
    for key, value in found["all"].items():
        report(f"{key}: {value}")


if __name__ == "__main__":
    main()
