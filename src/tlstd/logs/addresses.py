"""Files in a bucket, by their addresses (``s3://bucket/logs/*.parquet``), read by polars.

Only ``s3://`` is tested, against a server of its own; ``gs://``, ``az://``, ``abfs://`` and ``hf://`` are passed on to
polars; ``http://`` and ``https://`` are refused.
Credentials are those that polars finds (environment, profiles), or ``storage`` options. Neither these nor what an
address holds before its host or after a question mark is ever shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tlstd.core.extras import needs
from tlstd.core.file_format import without_credentials
from tlstd.errors import InvalidInputError

Storage = Mapping[str, str]
"""Options for polars' ``storage_options``: keys, secrets, endpoints."""

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "adl", "abfs", "abfss", "hf")
REFUSED = ("http", "https")
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


def shown(name: str) -> str:
    """A name as people may see it: an address without credentials, a file as it is.

    >>> shown("s3://key:secret@bucket/a.csv"), shown("a.csv")
    ('s3://***@bucket/a.csv', 'a.csv')
    """
    return without_credentials(name)


def refuse_others(name: object) -> None:
    """Raise for an address of the web, and for one of a kind that is not known."""
    if not isinstance(name, str) or "://" not in name or is_address(name):
        return
    if name.partition("://")[0].lower() in REFUSED:
        raise InvalidInputError(f"{shown(name)} is an address of the web, which is not read: download the file first")
    raise InvalidInputError(
        f"{shown(name)} begins with none of {', '.join(f'{scheme}://' for scheme in SCHEMES)}, which are read: copy "
        "the file to this machine first"
    )


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
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    reason = without_secrets(first.replace(address, shown(address)), {**_credentials(address), **(storage or {})})
    return InvalidInputError(
        f"{shown(address)} cannot be read ({reason[:200]}): check the address, the credentials (--storage-option, or "
        "those that polars finds) and whether the file is whole"
    )


def _credentials(address: str) -> dict[str, str]:
    """What an address holds before its host and after a question mark, by made-up names."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return {"address": address}
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    return {"user": user, "password": password, **dict(parse_qsl(parts.query))}


def without_secrets(text: str, storage: Storage | None) -> str:
    """The text with the values of options left out.

    >>> without_secrets("key abcdef is wrong", {"aws_secret_access_key": "abcdef"})
    'key *** is wrong'
    """
    for value in sorted(map(str, (storage or {}).values()), key=len, reverse=True):
        if len(value) >= SHORTEST:
            text = text.replace(value, "***")
    return text
