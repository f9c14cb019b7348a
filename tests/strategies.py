"""What hypothesis draws in several test modules."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from tlstd.data.transitions import Transitions

actions = st.tuples(
    st.sampled_from(["update", "update_many", "predict", "read", "save and load"]),
    st.integers(0, 239),
    st.integers(0, 60),
    st.sampled_from([1, 2, 7]),
)
"""Something to do with a model: the action, the first of some steps, how many, and a stride."""


def cuts(n: int) -> st.SearchStrategy[list[int]]:
    """Where to cut a stream of n steps: into one to seven pieces, some of them empty."""
    return st.lists(st.integers(0, n), max_size=6).map(sorted)


def pieces(steps: Transitions, at: list[int]) -> list[Transitions]:
    """The pieces of a stream that is cut at some places."""
    return [steps[a:b] for a, b in pairwise([0, *at, len(steps)])]
