"""The lists beside the graph: details of the selection, or transitions to look at first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.store.schema import split_estimator_column
from graphcredit.viewer.graph.cytoscape import (
    Ends,
    Shading,
    edge_key,
    edge_value,
    is_flipped,
    node_key,
    signed,
    state_name,
)
from graphcredit.viewer.graph.facts import Choice, choices, edge_steps, ranked_steps, remarkable
from graphcredit.viewer.graph.task_graph import Edge, Node, TaskGraph
from graphcredit.viewer.graph.text_diff import compare
from graphcredit.viewer.pages import graph_controls as controls
from graphcredit.viewer.queries.graphs import state_texts
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.text import label, show_code, show_table, show_text

_MOST_EDGES = 12
_MOST_ACTIONS = 20
_MOST_TEXTS = 10
_MOST_LINKS = 12
_TEXT_HEIGHT = 200
_LIST_HEIGHT = 560


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """The panel beside the graph, which can be used with the keyboard alone."""

    run_id: str
    iteration: int
    task_id: str
    column: str
    """The advantage that colours the edges."""
    graph: TaskGraph
    """The whole graph."""
    shown: TaskGraph
    """The part that is drawn."""
    steps: pa.Table
    """Steps of the task, from `queries.graphs.task_steps`."""
    shading: Shading
    trajectory: str | None
    """The trajectory that is laid over the graph."""

    def show(self, selected: int | Ends | None) -> None:
        """Show the panel for a state, a transition, or nothing in particular."""
        self._choose_state(selected)
        if selected is None and self.trajectory is not None:
            self._trajectory(self.trajectory)
        elif selected is None:
            self._overview()
        elif isinstance(selected, tuple):
            self._transition(selected)
        else:
            self._state(selected)

    def show_steps(self, ends: Ends) -> None:
        """Show the steps of a transition with every part of every estimator's credit."""
        _title("Steps of this transition")
        steps = edge_steps(self.steps, ends)
        shown = [name for name in steps.column_names if name != "is_action_valid"]
        parts = [name for name in shown if split_estimator_column(name)]
        number = st.column_config.NumberColumn(format="%+.3f")
        show_table(steps.select(shown), column_config=dict.fromkeys(parts, number))

    def _choose_state(self, selected: int | Ends | None) -> None:
        names = {node_key(node.state_id): state_name(node) for node in self.shown.nodes}
        key = controls.picked_key(selected)
        st.session_state["graph_state"] = key if key in names else None
        st.selectbox(
            "State",
            list(names),
            key="graph_state",
            format_func=names.__getitem__,
            placeholder="choose a state, or click it in the graph",
            on_change=lambda: controls.pick(st.session_state["graph_state"] or ""),
        )

    def _trajectory(self, trajectory_id: str) -> None:
        _title("Its steps, the most credited first")
        selection.link("trajectory", "Step by step", trajectory=trajectory_id)
        with st.container(gap=None, height=_LIST_HEIGHT):
            for step in ranked_steps(self.steps, trajectory_id, self.column):
                ends = step["state_id"], step["next_state_id"]
                self._button(
                    f"step {step['step_index']}: {step['action']}  "
                    f"({ends[0]} → {self._target(ends[1])})",
                    edge_key(ends),
                    f"step{step['step_index']}",
                    credit=tinted(step[self.column]),
                )

    def _overview(self) -> None:
        compared = self.shading.others is not None
        _title("Where they differ most" if compared else "Most credited, most blamed")
        edges = remarkable(self.shown, self.shading, most=_MOST_EDGES)
        if not edges:
            st.caption("All shown transitions have the advantage 0.")
        with st.container(gap=None):
            for edge in edges:
                self._edge_button(edge)

    def _state(self, state_id: int) -> None:
        node = next(node for node in self.graph.nodes if node.state_id == state_id)
        distance = node.goal_distance
        way = "no way to the goal was seen" if distance is None else f"{distance:g} to the goal"
        show_text(
            f"{way} · {counted(node.visits, 'visit')} by "
            f"{counted(node.num_trajectories, 'trajectory')}, {node.success_rate:.0%} won"
            + "".join(f" · {value}" for value in _values(node))
        )
        show_code(node.state, height=_TEXT_HEIGHT if len(node.state) > 400 else None)
        if node.num_merged > 1:
            self._merged_texts(state_id, node.state)
        _title("Actions, the most advantageous first")
        taken = choices(self.steps, state_id, self.column)
        with st.container(gap=None):
            for number, choice in enumerate(taken[:_MOST_ACTIONS]):
                self._action_button(state_id, choice, number)
        if not taken:
            st.caption("No trajectory continued from here.")
        if len(taken) > _MOST_ACTIONS:
            st.caption(f"{len(taken) - _MOST_ACTIONS} more with lower advantages.")

    def _merged_texts(self, state_id: int, representative: str) -> None:
        texts = ask(
            state_texts,
            run_id=self.run_id,
            iteration=self.iteration,
            task_id=self.task_id,
            state_id=state_id,
        )
        others = [text for text in texts if text.text != representative]
        _title(f"{len(texts)} texts map to this state")
        for text in others[:_MOST_TEXTS]:
            difference = compare(representative, text.text)
            with st.expander(f"{difference.ratio:.0%} alike, {counted(text.visits, 'visit')}"):
                show_code(difference.lines or "They differ only in spaces.")
        if len(others) > _MOST_TEXTS:
            st.caption(f"{len(others) - _MOST_TEXTS} more with fewer visits.")

    def _transition(self, ends: Ends) -> None:
        edge = next(edge for edge in self.graph.edges if edge.ends == ends)
        names = {node.state_id: state_name(node) for node in self.graph.nodes}
        with st.container(gap=None):
            for title, state_id in zip(("from", "to"), ends, strict=True):
                self._button(f"{title} {names[state_id]}", node_key(state_id), title)
        show_text(self._edge_facts(edge))
        steps = edge_steps(self.steps, ends)
        st.caption("Open a step in its trajectory:")
        with st.container(gap=None):
            for step in steps.slice(0, _MOST_LINKS).to_pylist():
                self._step_link(step)
        if len(steps) > _MOST_LINKS:
            st.caption(f"{len(steps) - _MOST_LINKS} more in the table.")

    def _step_link(self, step: Mapping[str, Any]) -> None:
        outcome = f"{'won' if step['won'] else 'lost'}, {signed(step.get(self.column))}"
        selection.link(
            "trajectory",
            f"{step['trajectory_id']}, step {step['step_index']}: {step['action']} ({outcome})",
            trajectory=step["trajectory_id"],
            step=step["step_index"],
        )

    def _edge_facts(self, edge: Edge) -> str:
        facts = [counted(edge.visits, "step"), f"{self.column} {signed(edge.advantage)}"]
        if self.shading.others is not None:
            facts.append(f"the other {signed(self.shading.others.get(edge.ends))}")
        if edge.is_pruned:
            facts.append("pruned: it leads back, or every step was invalid")
        return " · ".join(facts)

    def _edge_button(self, edge: Edge) -> None:
        flip = "⇄ " if is_flipped(edge, self.shading) else ""
        action, *others = edge.actions
        more = f" and {len(others)} more" if others else ""
        self._button(
            f"{action}{more}  ({edge.source} → {self._target(edge.target)})",
            edge_key(edge.ends),
            "edge",
            credit=flip + tinted(edge_value(edge, self.shading)),
        )

    def _action_button(self, state_id: int, choice: Choice, number: int) -> None:
        self._button(
            f"{choice.action} → {self._target(choice.target)}  "
            f"({choice.visits}×, {choice.won:.0%} won)",
            edge_key((state_id, choice.target)),
            f"action{number}",
            credit=tinted(choice.advantage),
        )

    def _target(self, state_id: int) -> str:
        return "GOAL" if state_id == self.graph.goal else str(state_id)

    def _button(self, text: str, key: str, kind: str, *, credit: str = "") -> None:
        st.button(
            f"{credit} {label(text, 110)}".lstrip(),
            key=f"graph_{kind}_{key}",
            type="tertiary",
            on_click=controls.pick,
            args=(key,),
        )


def tinted(value: float | None) -> str:
    """Return an advantage as Markdown: credit is blue and blame orange, as in the graph."""
    text = label(signed(value))
    return f":{'blue' if value > 0 else 'orange'}[{text}]" if value else text


def _title(text: str) -> None:
    """Show a small heading, which must not contain text from a log."""
    st.markdown(f"**{text}**")


def _values(node: Node) -> Iterator[str]:
    """Yield what estimators say a state is worth."""
    if node.rewardflow_value is not None:
        yield f"RewardFlow value {node.rewardflow_value:.3g}"
    if node.reach_value is not None:
        doubt = "" if node.reach_doubt is None else f", {node.reach_doubt:.0%} of it in doubt"
        yield f"chance to win {node.reach_value:.0%} by the group's own steps{doubt}"
