"""Logs: tables of steps, as people have them, checked and made ready to learn from (``docs/logs.md``)."""

from tlstd.logs.chunks import read_chunks
from tlstd.logs.log import Log

__all__ = ["Log", "read_chunks"]
