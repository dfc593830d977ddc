"""The states whose texts are most alike a state's: the ones that a merge nearly united with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphcredit.store.text_diff import WordDiff, compare
from graphcredit.viewer.graph.task_graph import Node

_LEAST = 0.5
"""Least likeness of states that are nearly alike."""
_MOST_LOOKED_AT = 2000
"""States with the most visits, whose words are compared."""
_TRIED = 4
"""So many times the states that are asked for have their words aligned, which takes long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alike:
    """A state, and how its text differs from another one's."""

    node: Node
    difference: WordDiff


def most_alike(nodes: Sequence[Node], state_id: int, number: int) -> list[Alike]:
    """Return the other states of a graph that are nearly alike one, the most alike first.

    Sets of words choose whom to compare word by word.

    Args:
        nodes: Of the graph; goals have no text that counts.
        state_id: The state.
        number: Most states to return.
    """
    own = next(node for node in nodes if node.state_id == state_id)
    if own.is_goal:
        return []
    words = frozenset(own.state.split())
    others = [node for node in nodes if not node.is_goal and node.state_id != state_id]
    others = sorted(others, key=lambda node: (-node.visits, node.state_id))[:_MOST_LOOKED_AT]

    def overlap(node: Node) -> float:
        theirs = frozenset(node.state.split())
        return len(words & theirs) / max(len(words | theirs), 1)

    likely = sorted(others, key=overlap, reverse=True)[: _TRIED * number]
    found = [Alike(node=node, difference=compare(own.state, node.state)) for node in likely]
    near = [alike for alike in found if alike.difference.ratio >= _LEAST]
    return sorted(near, key=lambda alike: -alike.difference.ratio)[:number]
