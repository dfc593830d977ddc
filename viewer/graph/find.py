"""Find states by words of their text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphcredit.viewer.graph.keys import node_key
from graphcredit.viewer.graph.task_graph import TaskGraph


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundStates:
    """What was searched for, and the states whose text contains it."""

    words: str = ""
    """Empty if nothing is searched for."""
    keys: Sequence[str] = ()
    """Keys of the states in the drawing."""
    total: int = 0
    """How many there are in the whole graph."""

    def as_json(self) -> dict[str, Any]:
        """Return the data of the component."""
        return {"words": self.words, "keys": list(self.keys), "total": self.total}


def states_with(graph: TaskGraph, words: str) -> list[int]:
    """Return the states whose text contains some words, as they are, but for upper and lower case.

    Empty words are in no state.
    """
    wanted = words.strip().lower()
    if not wanted:
        return []
    return [node.state_id for node in graph.nodes if wanted in node.state.lower()]


def found(graph: TaskGraph, shown: TaskGraph, words: str) -> FoundStates:
    """Return the states of a graph with some words, and which of them are shown."""
    there = {node.state_id for node in shown.nodes}
    states = states_with(graph, words)
    return FoundStates(
        words=words,
        keys=[node_key(state) for state in states if state in there],
        total=len(states),
    )
