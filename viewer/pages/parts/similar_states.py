"""Beside a state: the states that are nearly the same, and what keeps them apart."""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, kw_only=True, slots=True)
class SimilarState:
    """A state, and how its text differs from another one's."""

    node: Node
    difference: WordDiff


def most_similar(nodes: Sequence[Node], state_id: int, number: int) -> list[SimilarState]:
    """Return the other states of a graph that are nearly alike one, the most alike first.

    Sets of words choose whom to compare word by word.

    Args:
        nodes: Of the graph; goals have no text that counts.
        state_id: The state.
        number: Most states to return.
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

    likely = sorted(others, key=overlap, reverse=True)[: _TRIED * number]
    similar = [
        SimilarState(node=node, difference=compare(state.state, node.state)) for node in likely
    ]
    near = [each for each in similar if each.difference.ratio >= _LEAST]
    return sorted(near, key=lambda each: -each.difference.ratio)[:number]


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
    similar = most_similar(nodes, state_id, _MOST)
    if not similar:
        return
    lists = ask(action_lists, run_id=run_id, iteration=iteration, task_id=task_id)
    st.markdown("**Nearly alike, and kept apart**")
    for each in similar:
        other = each.node.state_id
        with st.expander(f"{each.difference.ratio:.0%} alike: state {other}"):
            lines = each.difference.lines or "They differ only in spaces."
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
