"""Files in a bucket, by their addresses (``s3://bucket/logs/*.parquet``), read by polars.

Only ``s3://`` is tested, against a server of its own; ``gs://``, ``az://``, ``abfs://``, ``hf://`` and ``https://`` are
passed on to polars.
Credentials are those that polars finds (environment, profiles), or ``storage`` options, which are never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tlstd.errors import InvalidInputError
from tlstd.extras import needs

Storage = Mapping[str, str]
"""Options for polars' ``storage_options``: keys, secrets, endpoints."""

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "adl", "abfs", "abfss", "hf", "http", "https")
KINDS = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv")
"""Ends of the names of files that are read there."""
SHORTEST = 4
"""Characters of a value that is taken for a secret."""


def is_address(name: object) -> bool:
    """Whether a name is that of something in a bucket.

    >>> is_address("s3://bucket/logs/*.parquet"), is_address("logs/*.parquet")
    (True, False)
    """
    return isinstance(name, str) and name.partition("://")[0].lower() in SCHEMES and "://" in name


def listed(address: str, storage: Storage | None) -> list[str]:
    """The addresses of the files that an address, a pattern or a folder stands for."""
    if not any(sign in address for sign in "*?[") and address.endswith(KINDS):
        return [address]
    if not address.endswith(KINDS):
        address = f"{address.rstrip('/')}/*.parquet"
    with needs("polars"):
        import polars as pl
    kind = address.rpartition(".")[2]
    scans: dict[str, Any] = {"parquet": pl.scan_parquet, "pq": pl.scan_parquet, "csv": pl.scan_csv}
    scan = scans.get(kind, pl.scan_ipc)
    try:
        frame = scan(address, storage_options=dict(storage or {}), include_file_paths="file")
        names: list[str] = frame.select(pl.col("file").unique()).collect().to_series().to_list()
    except Exception as error:  # whatever polars and object stores raise
        raise unreadable(address, error, storage) from None
    return names


def unreadable(address: str, error: BaseException, storage: Storage | None) -> InvalidInputError:
    """The error for what cannot be read, without secrets."""
    reason = without_secrets(str(error).strip().splitlines()[0][:200] or type(error).__name__, storage)
    return InvalidInputError(
        f"{address} cannot be read ({reason}): check the address, the credentials (--storage-option, or those that "
        "polars finds) and whether the file is whole"
    )


def without_secrets(text: str, storage: Storage | None) -> str:
    """The text with the values of options left out.

    >>> without_secrets("key abcdef is wrong", {"aws_secret_access_key": "abcdef"})
    'key *** is wrong'
    """
    for value in sorted(map(str, (storage or {}).values()), key=len, reverse=True):
        if len(value) >= SHORTEST:
            text = text.replace(value, "***")
    return text
