"""Beside a state: the states that are nearly the same, and what keeps them apart."""

from collections.abc import Sequence

import streamlit as st

from graphcredit.store.text_diff import WordDiff, compare
from graphcredit.viewer.graph.task_graph import Node, node_key
from graphcredit.viewer.pages.parts import graph_controls as controls
from graphcredit.viewer.queries.graphs import action_lists
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.text import show_box

_MOST = 3
"""Similar states to show."""
_LEAST = 0.5
"""Least likeness of states that are nearly alike."""
_MOST_LOOKED_AT = 2000
"""States with the most visits, whose words are compared."""
_TRIED = 4
"""So many times the states that are asked for have their words aligned, which takes long."""


def _most_similar(nodes: Sequence[Node], state_id: int) -> list[tuple[int, WordDiff]]:
    """Return the states that are nearly alike one, the most alike first, and their differences.

    Sets of words choose whom to compare word by word.

    Args:
        nodes: Of the graph; goals have no text that counts.
        state_id: The state.
    """
    state = next(node for node in nodes if node.state_id == state_id)
    if state.is_goal:
        return []
    words = frozenset(state.state.split())
    others = [node for node in nodes if not node.is_goal and node.state_id != state_id]
    others = sorted(others, key=lambda node: (-node.visits, node.state_id))[:_MOST_LOOKED_AT]

    def overlap(node: Node) -> float:
        theirs = frozenset(node.state.split())
        return len(words & theirs) / max(len(words | theirs), 1)

    likely = sorted(others, key=overlap, reverse=True)[: _TRIED * _MOST]
    similar = [(node.state_id, compare(state.state, node.state)) for node in likely]
    near = [(other, difference) for other, difference in similar if difference.ratio >= _LEAST]
    return sorted(near, key=lambda each: -each[1].ratio)[:_MOST]


def show_similar_states(
    nodes: Sequence[Node], state_id: int, *, run_id: str, iteration: int, task_id: str
) -> None:
    """Show the states of a graph that were nearly merged with a state; nothing without any.

    Args:
        nodes: Of the whole graph.
        state_id: The state.
        run_id: The run.
        iteration: The iteration.
        task_id: The task.
    """
    similar = _most_similar(nodes, state_id)
    if not similar:
        return
    lists = ask(action_lists, run_id=run_id, iteration=iteration, task_id=task_id)
    st.markdown("**Nearly alike, and kept apart**")
    for other, difference in similar:
        with st.expander(f"{difference.ratio:.0%} alike: state {other}"):
            lines = difference.lines or "They differ only in spaces."
            show_box(lines, key=f"alike_{other}")
            mine, theirs = lists.get(state_id), lists.get(other)
            if mine and theirs and mine.isdisjoint(theirs):
                st.caption("Their admissible actions differ: that alone keeps them apart.")
            st.button(
                f"Show state {other}",
                key=f"graph_alike_{other}",
                type="tertiary",
                on_click=controls.pick,
                args=(node_key(other),),
            )
