"""Beside a state: the states that are nearly alike it, and what keeps them apart."""

from collections.abc import Sequence

import streamlit as st

from graphcredit.viewer.graph.alike import most_alike
from graphcredit.viewer.graph.task_graph import Node, node_key
from graphcredit.viewer.pages.graph_parts import controls as controls
from graphcredit.viewer.queries.graphs import action_lists
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.text_box import show_box

_MOST = 3


def show_alike(
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
    found = most_alike(nodes, state_id, _MOST)
    if not found:
        return
    lists = ask(action_lists, run_id=run_id, iteration=iteration, task_id=task_id)
    st.markdown("**Nearly alike, and kept apart**")
    for alike in found:
        other = alike.node.state_id
        with st.expander(f"{alike.difference.ratio:.0%} alike: state {other}"):
            lines = alike.difference.lines or "They differ only in spaces."
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
