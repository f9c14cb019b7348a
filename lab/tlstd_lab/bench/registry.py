"""The rows by name: the one line to add for a new one."""

from __future__ import annotations

from importlib import import_module

from tlstd_lab.bench.row import Row

PLACES: dict[str, str] = {
    "tlstd-energy": "truncated:energy",
    "tlstd-energy-read": "truncated:energy_read",
    "tlstd-projected": "truncated:projected",
    "tlstd-one-by-one": "truncated:one_by_one",
    "tlstd-tiles": "truncated:tiles",
    "tlstd-rbf": "truncated:rbf",
    "bare-energy": "bare:energy",
    "bare-energy-read": "bare:energy_read",
    "bare-tiles": "bare:tiles",
    "bare-rbf": "bare:rbf",
    "td": "stepping:td",
    "true-online-td": "stepping:true_online_td",
    "one-step": "one_step:one_step",
    "atd": "truncated:atd",
    "ilstd": "stepping:ilstd",
    "ilstd-memory": "stepping:ilstd_memory",
    "lstd": "accumulation:lstd",
    "tile-coding": "accumulation:tile_coding",
    "blas-threads": "threads:blas_threads",
    "import": "startup:imports",
    "compile": "startup:compiling",
    "growth-features": "growth:features",
    "growth-rank": "growth:rank",
    "growth-active": "growth:active",
    "growth-samples": "growth:samples",
    "growth-sketch-features": "growth:sketched_features",
    "growth-sketch-active": "growth:sketched_active",
    "growth-buffer": "buffers:buffer",
    "buffer-active": "buffers:many_active",
    "trade-off-car": "tradeoff:trade_off_car",
    "trade-off-energy": "tradeoff:trade_off_energy",
}
"""The function of each row, ``"module:function"`` of this package, in the order in which they are run and printed."""


def _row(place: str) -> Row:
    module, _, function = place.partition(":")
    found: Row = getattr(import_module(f"tlstd_lab.bench.{module}"), function)
    return found


ROWS: dict[str, Row] = {name: _row(place) for name, place in PLACES.items()}
"""The rows, imported."""
