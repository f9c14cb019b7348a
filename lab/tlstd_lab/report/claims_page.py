"""Write ``docs/claims.md``: every claim, decided at the largest scale of which all its runs are committed.

uv run python -m tlstd_lab.report.claims_page                      # 90 seconds; computes no run
uv run python -m tlstd_lab.report.claims_page --out FILE
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from tlstd_lab.panel import Scale
from tlstd_lab.questions import PANELS
from tlstd_lab.report.sources import Shown, Sources, gather
from tlstd_lab.reproduce import claims_rows, counts

ROOT = Path(__file__).parents[3]
BUNDLES = {"paper": "results/paper.parquet", "quick": "results/quick.parquet"}
"""Where the runs of a scale are packed, the better scale first."""

HEAD = f"""\
# Claims

Every statement of the paper that can be measured, and those that go beyond it, by the panel that decides them. Each is
decided at the largest scale at which all of its runs are committed: `paper` (as published) where there is one,
otherwise `quick` (few runs). The number is that of the rule which decides the claim, with a 95% bootstrap interval over
runs, stretched by what Student's distribution asks for with few of them. A claim is *reproduced* only if the whole
interval is on its side; *partly* if only the number is, or if a part of what is claimed holds: a weaker bound, or some
of the places it is claimed for, as the code of the claim says (`partly=`).

This page is written, without computing a run, from `{"` and `".join(BUNDLES.values())}` by

    uv run python -m tlstd_lab.report.claims_page

The command above each figure draws it and prints the same verdicts.
"""


def committed(names: Sequence[str] | None = None) -> list[Shown]:
    """The panels (all if none are named) at the best scale of the committed runs, with their claims decided."""
    found = gather(Sources([ROOT / bundle for bundle in BUNDLES.values()]), names)
    return [shown for shown in found.values() if shown is not None]


def figure(name: str, scale: Scale) -> str:
    """Where the figure of a panel at a scale lies under ``docs``."""
    return f"figures/reproduction/{'paper_' if scale == 'paper' else ''}figure_{name}.png"


def section(shown: Shown) -> str:
    """A panel: its command, figure, caption, and claims as a table in Markdown."""
    name, scale = shown.panel.name, shown.results.scale
    lines = [
        f"## {name}",
        "",
        f"**{shown.panel.title}**, scale `{scale}`:",
        "",
        f"    uv run tlstd reproduce {name} --scale {scale} --bundle {BUNDLES[scale]} --claims",
        "",
        f"![{name}]({figure(name, scale)})",
        "",
        shown.panel.caption,
        "",
    ]
    return "\n".join(lines + ([*claims_rows(shown.judged), ""] if shown.judged else []))


def totals(panels: Iterable[Shown]) -> str:
    """How many claims have each verdict, by scale."""
    judged = {
        scale: [one for shown in panels if shown.results.scale == scale for one in shown.judged] for scale in BUNDLES
    }
    return "".join(f"- Scale `{scale}`: {counts(found)}.\n" for scale, found in judged.items() if found)


def page(panels: Sequence[Shown]) -> str:
    """The page in Markdown."""
    return "\n".join([HEAD, totals(panels), *(section(shown) for shown in panels)])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "claims.md", help="the page")
    path = parser.parse_args().out
    panels = committed()
    path.write_text(page(panels), encoding="utf-8")
    print(f"written: {path}, {len(panels)} of {len(PANELS)} panels")


if __name__ == "__main__":
    main()
