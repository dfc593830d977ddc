"""Families: things that stand for each other, directly or by way of others."""

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T", bound="int | str | tuple[Any, ...]")


def families_of(things: Iterable[T], pairs: Iterable[tuple[T, T]]) -> list[frozenset[T]]:
    """Return the families in order of their first members.

    Args:
        things: All that may be alone.
        pairs: Two of one family each.
    """
    import networkx as nx  # here: `compute` starts without it

    graph = nx.Graph()
    graph.add_nodes_from(things)
    graph.add_edges_from(pairs)
    return sorted(map(frozenset, nx.connected_components(graph)), key=min)
