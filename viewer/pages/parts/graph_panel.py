"""The lists beside the graph: details of the selection, or transitions to look at first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.store.text_diff import compare
from graphcredit.viewer.graph.facts import (
    Choice,
    choices,
    edge_steps,
    ranked_steps,
    telling_ends,
    trajectories,
)
from graphcredit.viewer.graph.importance import remarkable
from graphcredit.viewer.graph.shading import signed
from graphcredit.viewer.graph.state_names import action_words
from graphcredit.viewer.graph.task_graph import Edge, Ends, Node, TaskGraph, edge_key, node_key
from graphcredit.viewer.graph.words import distance_words
from graphcredit.viewer.pages.parts import graph_controls as controls
from graphcredit.viewer.queries.graphs import state_texts
from graphcredit.viewer.queries.outcomes import succeeded
from graphcredit.viewer.widgets import selection
from graphcredit.viewer.widgets.cache import ask
from graphcredit.viewer.widgets.text import label, show_box, show_text

_MOST_EDGES = 12
_MOST_ACTIONS = 20
_MOST_TEXTS = 10
_MOST_LINKS = 12
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
    names: Mapping[int, str]
    """Number and name of each state."""
    steps: pa.Table
    """Steps of the task, from `queries.graphs.task_steps`."""
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

    def _choose_state(self, selected: int | Ends | None) -> None:
        names = {node_key(node.state_id): self.names[node.state_id] for node in self.shown.nodes}
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
                    f"step {step['step_index']}: {action_words(step['action'], 90)}  "
                    f"({ends[0]} → {self._target(ends[1])})",
                    edge_key(ends),
                    f"step{step['step_index']}",
                    credit=tinted(step[self.column]),
                )

    def _overview(self) -> None:
        _title("Most credited, most blamed")
        edges = remarkable(self.shown, telling_ends(self.steps), most=_MOST_EDGES)
        if not edges:
            st.caption("All shown transitions have the advantage 0.")
        with st.container(gap=None):
            for edge in edges:
                self._edge_button(edge)

    def _state(self, state_id: int) -> None:
        node = next(node for node in self.graph.nodes if node.state_id == state_id)
        show_text(
            f"{distance_words(node)} · {counted(node.visits, 'visit')} by "
            f"{counted(node.num_trajectories, 'rollout')}{succeeded(node.success_rate)}"
            + "".join(f" · {value}" for value in _values(node))
        )
        show_box(node.state, key="state")
        if node.num_merged > 1:
            self._merged_texts(state_id, node.state)
        _title("Actions, the most advantageous first")
        taken = choices(self.steps, state_id, self.column)
        with st.container(gap=None):
            for number, choice in enumerate(taken[:_MOST_ACTIONS]):
                self._action_button(state_id, choice, number)
        if not taken:
            st.caption("No rollout continued from here.")
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
        others = [text for text in texts if text != representative]
        _title(f"{len(texts)} texts map to this state")
        for number, text in enumerate(others[:_MOST_TEXTS]):
            difference = compare(representative, text)
            with st.expander(f"{difference.ratio:.0%} alike, {counted(texts[text], 'visit')}"):
                lines = difference.lines or "They differ only in spaces."
                show_box(lines, key=f"merged_{number}")
        if len(others) > _MOST_TEXTS:
            st.caption(f"{len(others) - _MOST_TEXTS} more with fewer visits.")

    def _transition(self, ends: Ends) -> None:
        edge = next(edge for edge in self.graph.edges if edge.ends == ends)
        with st.container(gap=None):
            for title, state_id in zip(("from", "to"), ends, strict=True):
                self._button(f"{title} {self.names[state_id]}", node_key(state_id), title)
        show_text(self._edge_facts(edge))
        steps = edge_steps(self.steps, ends)
        endings = {name: each.ending for name, each in trajectories(self.steps).items()}
        st.caption("Open a step in its rollout:")
        with st.container(gap=None):
            for step in steps.slice(0, _MOST_LINKS).to_pylist():
                self._step_link(step, endings[step["trajectory_id"]])
        if len(steps) > _MOST_LINKS:
            st.caption(f"{counted(len(steps) - _MOST_LINKS, 'more step')} took it.")

    def _step_link(self, step: Mapping[str, Any], ending: str) -> None:
        facts = f"{ending}, {signed(step.get(self.column))}"
        selection.link(
            "trajectory",
            f"{step['trajectory_id']}, step {step['step_index']}: "
            f"{action_words(step['action'], 90)} ({facts})",
            trajectory=step["trajectory_id"],
            step=step["step_index"],
        )

    def _edge_facts(self, edge: Edge) -> str:
        facts = [counted(edge.visits, "step"), f"{self.column} {signed(edge.advantage)}"]
        if edge.is_pruned:
            facts.append("pruned: it leads back, or every step was invalid")
        return " · ".join(facts)

    def _edge_button(self, edge: Edge) -> None:
        action, *others = (action_words(action, 90) for action in edge.actions)
        more = f" and {len(others)} more" if others else ""
        self._button(
            f"{action}{more}  ({edge.source} → {self._target(edge.target)})",
            edge_key(edge.ends),
            "edge",
            credit=tinted(edge.advantage),
        )

    def _action_button(self, state_id: int, choice: Choice, number: int) -> None:
        self._button(
            f"{action_words(choice.action, 70)} → {self._target(choice.target)}  "
            f"({counted(choice.num_trajectories, 'rollout')} in {counted(choice.visits, 'step')}"
            f"{succeeded(choice.num_succeeded)})",
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
    if node.reach_expected is not None:
        yield f"{node.reach_expected:.2f} still to be earned from here, by the group's own steps"
