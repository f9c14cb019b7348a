"""``tlstd_lab.golden``: two records of one code are equal, and a changed bit is found, named, and an exit code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tlstd_lab import golden
from tlstd_lab.store import Store

import tlstd

TD, PANEL = "estimators/TD/off-policy", "panels/A.1"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A record of each of two cases."""
    folders = {only: tmp_path_factory.mktemp("golden") for only in (TD, PANEL)}
    assert all(golden.main(["record", str(folder), "--only", only]) == 0 for only, folder in folders.items())
    return folders


def compared(folder: Path, *more: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    return golden.main(["compare", str(folder), *more]), capsys.readouterr().out


@pytest.mark.parametrize("only", [TD, PANEL])
def test_the_same_code_makes_the_same_record(
    records: dict[str, Path], only: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed = compared(records[only], "--only", only, capsys=capsys)
    assert code == 0
    assert "\n0 differences from the " in printed


def test_the_last_bit_of_one_weight_is_found(
    records: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tlstd.TD.weights

    def weights(model: tlstd.TD) -> Any:
        values = whole.__get__(model).copy()
        values[7] = np.nextafter(values[7], np.inf)
        return values

    monkeypatch.setattr(tlstd.TD, "weights", property(weights))
    code, printed = compared(records[TD], "--only", TD, capsys=capsys)
    assert code == 1
    assert f"{golden.KINDS[3]}: 6\n" in printed  # at once, one by one, both parts of two, predicting, from weights
    assert f"  {TD}/at_once/weights  (60,) float64: 1 of 60 entries, by at most " in printed
    assert "\n6 differences" in printed


def test_a_number_in_a_stored_run_is_found(
    records: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, keys = Store.write, list[str]()

    def write_another(store: Store, spec: Any, columns: Mapping[str, Any], **more: Any) -> bool:
        if not keys:
            columns = {name: np.asarray(values) + 1e-9 for name, values in columns.items()}
        keys.append(spec.key)
        return write(store, spec, columns, **more)

    monkeypatch.setattr(Store, "write", write_another)
    code, printed = compared(records[PANEL], "--only", PANEL, capsys=capsys)
    assert code == 1
    assert f"\n{golden.KINDS[2]}: " in printed
    assert f"  {PANEL}/runs/{keys[0]}/columns/sigma  " in printed
    assert f"  {PANEL}/figure/0/lines/" in printed
    assert all(key not in printed for key in keys[1:])


def test_a_byte_of_a_saved_file_is_found(
    records: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = tlstd.__version__
    monkeypatch.setattr(tlstd, "__version__", version[:-1] + "9")
    code, printed = compared(records[TD], "--only", TD, capsys=capsys)
    assert code == 1
    changed = f"'{version}' became '{version[:-1]}9'"
    assert f"\n{golden.KINDS[2]}: 1\n  {TD}/in_two_parts/file/header/library  {changed}\n" in printed


@pytest.mark.parametrize(
    ("kind", "name", "value", "words"),
    [
        (0, "at_once/n_updates", ..., ""),
        (1, "at_once/further", 1.0, ""),
        (2, "in_two_parts/file/sha256", "0" * 64, "became '0000"),
        (2, "at_once/n_updates", 201, "(1,) int64: 1 of 1 entries, by at most 1, relative 0.005"),
        (2, "at_once/n_updates", 200.0, "200 became 200.0"),
        (2, "at_once/weights", np.zeros(61), "(60,) float64 became (61,) float64"),
        (2, "at_once/weights", np.full(60, np.nan), "(60,) float64: 60 of 60 entries, by at most inf, relative inf"),
    ],
)
def test_every_kind_of_difference(
    records: dict[str, Path],
    kind: int,
    name: str,
    value: Any,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries, _ = golden.read(records[TD])
    changed = {**entries, f"{TD}/{name}": value}
    golden.write(tmp_path, {name: entry for name, entry in changed.items() if entry is not ...})
    code, printed = compared(records[TD], str(tmp_path), capsys=capsys)
    assert code == 1
    assert f"\n{golden.KINDS[kind]}: 1\n  {TD}/{name}" in printed
    assert words in printed
    assert "\n1 differences" in printed


def test_a_name_that_nothing_has(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no case fits 'TD'"):
        golden.main(["record", str(tmp_path), "--only", "TD"])
