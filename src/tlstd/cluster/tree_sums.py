"""Sums of parts, pairwise along their order, wherever each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

Node = tuple[int, int]
"""(k, i): the sum of the parts i 2ᵏ, …, (i + 1) 2ᵏ - 1, as far as there are any; (0, i) is part i."""


def tree_sums(parts: Iterable[tuple[Node, T]], n: int, add: Callable[[T, T], T]) -> dict[Node, T]:
    """Some of the nodes of the tree over ``n`` parts, with every two that have the same parent added up.

    In whatever order parts are joined, a node is the same sum: ((0+1)+(2+3))+(4+…).

    >>> tree_sums([((0, 1), "b"), ((0, 2), "c"), ((0, 3), "d"), ((0, 4), "e")], 5, lambda a, b: f"({a}{b})")
    {(0, 1): 'b', (1, 1): '(cd)', (2, 1): 'e'}
    """
    found: dict[Node, T] = {}
    top = max(0, n - 1).bit_length()
    for (k, i), part in parts:
        while k < top:
            beside = (k, i ^ 1)
            if (i ^ 1) << k < n:
                if beside not in found:
                    break
                other = found.pop(beside)
                part = add(other, part) if i & 1 else add(part, other)
            k, i = k + 1, i >> 1
        found[k, i] = part
    return found


def pairwise_sum(parts: Iterable[T], n: int, add: Callable[[T, T], T]) -> T:
    """The sum of ``n`` parts, one or more, pairwise along their order, holding few of them at a time.

    >>> pairwise_sum("abcde", 5, lambda a, b: f"({a}{b})")
    '(((ab)(cd))e)'
    """
    (total,) = tree_sums((((0, i), part) for i, part in enumerate(parts)), n, add).values()
    return total


def joined(n: int, add: Callable[[T, T], T], several: Iterable[dict[Node, T]]) -> dict[Node, T]:
    """Several of :func:`tree_sums` over the same ``n`` parts in one."""
    return tree_sums((part for sums in several for part in sums.items()), n, add)
