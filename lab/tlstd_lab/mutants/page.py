"""The page that says what the tests catch, by package, and lists the mutants that they do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tlstd_lab.mutants.drawing import Mutant
from tlstd_lab.tables import table

Results = Mapping[Mutant, Mapping[str, Any]]
"""What became of each mutant that was tried."""

HEAD = """\
# What the tests catch

A mutant is one small change of the library's source. It is caught if a test fails. A mutant that survives shows code
that could be wrong unnoticed, or a change without effect. The command below wrote this page.

    {command}

It drew {drawn} mutants and read {written} written by hand from `lab/tlstd_lab/mutants/written`. It tried {tried}
of them on commit {commit} with {workers} workers.
The trials took {minutes:.0f} minutes in all, {cpu:.0f} of them processor time.
The tests were run once without mutants before that, for some minutes more.

- Each package gets a share of the drawn mutants by its lines of code, and at least four where there are enough.
- The operators are comparison, sign, off by one, constant, and/or, negated condition, and dropped statement.
- Each mutant is tried in a copy of the tree. Kernels are compiled again from its source.
- Its tests are those of its package and those that import the changed file, the nearest first. Without the mutant
  they take at most {budget:.0f} seconds together. The first failure ends them.
- A test that does not end counts as a failure only if it ends without the mutant in a third of the time."""


def change_of(mutant: Mutant) -> str:
    """What is replaced by what, in one line.

    >>> from tlstd_lab.mutants.operators import Change
    >>> change_of(Mutant("a.py", Change("sign", 1, 0, b"x + 1", b"x - 1")))
    '`x + 1` → `x - 1`'
    """
    if mutant.change is None:
        return "its text is not there exactly once"
    texts = [" ".join(text.decode().split()).replace("|", "\\|") for text in (mutant.change.old, mutant.change.new)]
    return " → ".join(f"`{text if len(text) <= 70 else text[:67] + '...'}`" for text in texts)


def score(mutants: Sequence[Mutant], results: Results) -> str:
    """How many of these mutants were caught."""
    caught = sum(results[one]["result"] != "survived" for one in mutants)
    return f"{caught} / {len(mutants)}" if mutants else ""


def scores(results: Results) -> str:
    """The table by package."""
    lines = []
    for package in [*sorted({one.package for one in results}), ""]:
        of = [one for one in results if package in ("", one.package)]
        drawn, written = ([one for one in of if one.is_written == by_hand] for by_hand in (False, True))
        lines.append([package or "**all**", score(drawn, results), score(written, results)])
    return table(["package", "drawn: caught / all", "by hand: caught / all"], lines)


def listed(mutants: Sequence[Mutant]) -> str:
    """Mutants by place, each with its change."""
    rows = [
        [one.place, one.why or (one.change.operator if one.change else ""), change_of(one)]
        for one in sorted(mutants, key=lambda one: (one.file, one.change.line if one.change else 0))
    ]
    return table(["place", "operator, or why it matters", "change"], rows) if rows else "None."


def page(mutants: Sequence[Mutant], results: Results, failing: Sequence[str], facts: Mapping[str, Any]) -> str:
    """The whole page; ``facts`` are the command, commit, budget and number of workers."""
    n_written = sum(one.is_written for one in mutants)
    facts = {
        **facts,
        "drawn": len(mutants) - n_written,
        "written": n_written,
        "tried": len(results),
        "minutes": sum(row["seconds"] for row in results.values()) / 60,
        "cpu": sum(row["cpu"] for row in results.values()) / 60,
    }
    survivors = [one for one, row in results.items() if row["result"] == "survived"]
    stale = [one for one in mutants if one.change is None]
    kinds = [row["result"] for row in results.values()]
    parts = [
        HEAD.format(**facts),
        scores(results),
        f"Of those caught, {kinds.count('timeout')} did not end and {kinds.count('crashed')} ended the process.",
        "## Mutants that no test caught",
        listed(survivors),
        "## Stale mutants",
        "The text that these replace has changed: write them anew.",
        listed(stale),
        "## Tests left out",
        "These fail without any mutant in a copy of the tree.",
        "\n".join(f"- `{name}`" for name in sorted(failing)) or "None.",
    ]
    return "\n\n".join(parts) + "\n"
