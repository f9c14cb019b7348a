"""The promises of ``docs/reliability.md``, tried in numbers that find rare failures, within a time that is given.

    uv run tlstd campaign --hours 1

A promise is a row: a file of ``rows/`` with a :class:`~tlstd_lab.campaign.row.Row`, and a line of ``registry.py``. The
engine shares the time among rows and subjects, keeps what was done, and every failure as a file that repeats it.
"""
