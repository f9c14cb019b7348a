"""From the columns of a table, one row a step, to a sound log: what is mended, counted and said, and what is refused.

Every error names rows as they are in the source.
"""

from __future__ import annotations

from tlstd.logs.converting import check_options, convert, convert_flags
from tlstd.logs.cutting import cut
from tlstd.logs.draft import Draft
from tlstd.logs.ending import find_ends
from tlstd.logs.episodes import check_clusters, leave_out_repeated, number_episodes, put_in_order, take_final_rows
from tlstd.logs.numbers import check_numbers, drop_bad_episodes
from tlstd.logs.table import Checked, Table


def check(table: Table) -> Checked:
    """Make a log of a table, or refuse it.

    In this order: columns become arrays of one length; rows are dealt into episodes, repeated ones left out, and the
    others sorted where they are out of order; rows that hold nothing but the observation after a last step are taken
    out; numbers are checked; ends, gaps and next observations say where an episode is cut.
    """
    draft = Draft(table)
    check_options(draft)
    convert(draft)
    number_episodes(draft, convert_flags(draft))
    check_clusters(draft)
    leave_out_repeated(draft)
    put_in_order(draft)
    drop_bad_episodes(draft)
    take_final_rows(draft)
    check_numbers(draft)
    terminated, truncated = find_ends(draft)
    return cut(draft, terminated, truncated)
