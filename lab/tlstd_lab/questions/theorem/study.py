"""Does the paper's Theorem 1 hold, how tight is it, and is truncation better than Tikhonov's regularisation?

Thousands of random systems (A, b) whose limit is known exactly, with averages (A_t, b_t) along sampled streams or with
perturbations of other kinds; several ranks each. ``docs/theorem.md`` says what came out.

    uv run python -m tlstd_lab.questions.theorem.study --out docs/figures                about 1 minute
    uv run python -m tlstd_lab.questions.theorem.study --scale smoke --out FOLDER        a few seconds
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tlstd.diagnostics import compare
from tlstd_lab.questions.theorem.bounds import Row, convergence, measure, summary
from tlstd_lab.questions.theorem.figures import draw_picard, draw_shares, draw_tikhonov, draw_trade_off
from tlstd_lab.questions.theorem.systems import FAMILIES, SEED, cases
from tlstd_lab.questions.theorem.tikhonov import Pair, if_comparable, tikhonov_curves, tikhonov_summary
from tlstd_lab.questions.theorem.trade_off import trade_off

N_CASES = {"smoke": 3, "full": 400}
"""Systems of each family."""
N_REPEATS = {"smoke": 1, "full": 40}
"""Streams behind each point of the trade-off."""


def run(folder: Path, scale: str, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Measure everything and write ``theorem_*.png`` and ``theorem.json``."""
    rows: list[Row] = []
    both: dict[str, list[Pair]] = {family: [] for family in (*FAMILIES, "p > 1", "p <= 1")}
    for number, (family, case, ranks) in enumerate(cases(N_CASES[scale])):
        rows += measure(family, number, case, ranks)
        c = compare(*case)
        pairs = [pair for rank in ranks if (pair := if_comparable(c, rank)) is not None]
        both[family] += pairs
        both["p > 1" if c.condition.trend().p > 1.0 else "p <= 1"] += pairs
    by_family = {family: summary([row for row in rows if row.family == family]) for family in FAMILIES}
    tikhonov = tikhonov_summary({family: values for family, values in both.items() if values})
    trade_offs = trade_off(N_REPEATS[scale])
    pictures = draw_picard(folder / "theorem_picard.png")
    draw_trade_off(trade_offs, folder / "theorem_trade_off.png")
    draw_shares(by_family, folder / "theorem_shares.png")
    draw_tikhonov(
        tikhonov_curves(N_REPEATS[scale]),
        {f: tikhonov[f] for f in FAMILIES if f in tikhonov},
        folder / "theorem_tikhonov.png",
    )
    violations = [
        {key: value for key, value in asdict(row).items() if key in ("family", "case", "n_features", "rank", "fails")}
        | {"bound / error": {n: float(f"{row.free[n]:.4g}") for n in row.fails if n in row.free}}
        for row in rows
        if set(row.fails) & set(row.free)
    ]
    results = {
        "scale": scale,
        "seed": SEED,
        "all": summary(rows),
        "families": by_family,
        "convergence": convergence(),
        "picard": pictures,
        "trade-off": trade_offs,
        "tikhonov": tikhonov,
        "violations with the smallest C": violations,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "theorem.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    for key, value in results["all"].items():  # type: ignore[attr-defined]
        report(f"{key}: {value}")
    return results


def main(arguments: Sequence[str] | None = None, report: Callable[[str], None] = print) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder for what is written")
    parser.add_argument("--scale", choices=sorted(N_CASES), default="full", help="how many cases")
    options = parser.parse_args(arguments)
    run(options.out, options.scale, report)


if __name__ == "__main__":
    main()
