"""Sums of parts: the same order wherever each part is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tlstd.cluster.tree_sums import joined, pairwise_sum, tree_sums


def test_order_of_sums() -> None:
    """Pairwise by levels, whatever the number of parts."""

    def by_levels(parts: list[str]) -> str:
        while len(parts) > 1:
            pairs = list(_pairs(parts))
            parts = [f"({''.join(pair)})" if len(pair) > 1 else pair[0] for pair in pairs]
        return parts[0]

    def add(a: str, b: str) -> str:
        return f"({a}{b})"

    rng = np.random.default_rng(0)
    for n in range(1, 40):
        parts = [chr(97 + i % 26) for i in range(n)]
        assert pairwise_sum(parts, n, add) == by_levels(parts)
        workers = rng.integers(4, size=n)  # whichever has which, and whoever joins their sums
        sums = [
            tree_sums((((0, i), parts[i]) for i in rng.permutation(np.flatnonzero(workers == w)).tolist()), n, add)
            for w in range(4)
        ]
        (total,) = joined(n, add, [joined(n, add, sums[2:]), *sums[:2]]).values()
        assert total == by_levels(parts)


def _pairs(parts: list[str]) -> Iterator[list[str]]:
    for i in range(0, len(parts), 2):
        yield parts[i : i + 2]
