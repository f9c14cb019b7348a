"""Measure Krylov LSTD, and write the tables and figures of its page.

uv run python -m tlstd_lab.measurements.krylov               # everything, about 15 minutes of one core
uv run python -m tlstd_lab.measurements.krylov time hashed   # some measurements
uv run python -m tlstd_lab.measurements.krylov --write       # measures nothing: tables and figures from what is stored

Every measurement goes into ``docs/figures/krylov.json`` as soon as it is finished. Then the tables of
``docs/krylov.md`` are written between their marks, and the figures ``docs/figures/krylov_*.png`` are drawn.
"""

from __future__ import annotations

import json
import sys
import time

from tlstd_lab.bench.report import machine
from tlstd_lab.drawing import STYLE
from tlstd_lab.measurements.krylov import errors, every_step, first_samples, growth, hashed, timing
from tlstd_lab.measurements.krylov.topic import Data, Topic
from tlstd_lab.tables import DOCS, write_tables

TOPICS: dict[str, Topic] = {
    topic.name: topic
    for topic in (errors.ENERGY, errors.CAR, *(m.TOPIC for m in (timing, every_step, hashed, growth, first_samples)))
}


def tables(stored: Data) -> dict[str, str]:
    """The tables of what is stored, by topic."""
    return {name: topic.table(stored[name]["data"]) for name, topic in TOPICS.items() if name in stored}


def write(stored: Data) -> None:
    """Tables and figures."""
    import matplotlib as mpl

    write_tables(DOCS / "krylov.md", tables(stored))
    with mpl.rc_context(STYLE):
        for name, topic in TOPICS.items():
            if name in stored and topic.picture is not None:
                topic.picture.draw(stored[name]["data"], DOCS / "figures" / topic.picture.file)


def main(*arguments: str) -> None:
    names = [name for name in arguments if name != "--write"]
    unknown = set(names) - set(TOPICS)
    if unknown:
        raise SystemExit(f"there is no measurement {', '.join(sorted(unknown))}: choose from {', '.join(TOPICS)}")
    store = DOCS / "figures" / "krylov.json"
    stored: Data = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    chosen = [] if "--write" in arguments else [name for name in TOPICS if not names or name in names]
    for name in chosen:
        begin = time.process_time()
        data = TOPICS[name].measure()
        stored[name] = {"data": data, "cpu_seconds": time.process_time() - begin, "machine": machine()}
        store.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{name}: {stored[name]['cpu_seconds']:.0f} s\n\n{TOPICS[name].table(data)}\n", flush=True)
    write(stored)


if __name__ == "__main__":
    main(*sys.argv[1:])
