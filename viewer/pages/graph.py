"""The Graph page: a task's state graph, coloured by credit."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import streamlit as st

from graphcredit.store.log_text import one_line
from graphcredit.store.plural import counted
from graphcredit.viewer.graph import facts, visible_part
from graphcredit.viewer.graph.component import show_graph
from graphcredit.viewer.graph.drawing import draw_part
from graphcredit.viewer.graph.importance import forks, important
from graphcredit.viewer.graph.layout import layers_of
from graphcredit.viewer.graph.matters import what_matters
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.state_names import action_words
from graphcredit.viewer.graph.task_graph import Ends, TaskGraph, edge_key, node_key, parse_key
from graphcredit.viewer.graph.words import WHAT_MATTERS, what_is_shown
from graphcredit.viewer.pages.parts import graph_controls as controls
from graphcredit.viewer.pages.parts.graph_export import offer_export, title_of
from graphcredit.viewer.pages.parts.graph_panel import Panel
from graphcredit.viewer.pages.parts.graph_place import (
    GraphPlace,
    choose_place,
    choose_trajectory,
    read_graph,
)
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.outcomes import well_ended
from graphcredit.viewer.steps.choose import complete_address
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.containers import choices
from graphcredit.viewer.widgets.task_names import task_names
from graphcredit.viewer.widgets.text import label, show_text

_HOPS = 2
"""Steps from the selected state to those that are shown around it."""
_ROOM_FOR_FOUND = 20
"""Most states that were searched for, of a graph that shows what matters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choices:
    """What the user chose to see of a graph."""

    trajectory: str | None
    """The trajectory that is laid over it."""
    graph: TaskGraph
    """The whole graph, with that advantage."""
    view: str
    """The key of the part that is shown."""


def show() -> None:
    """Show the page."""
    st.header("Graph")
    store = viewed_store()
    complete_address(store)
    boxes = choices("graph")
    with boxes:
        place = choose_place(store)
    if place is None:
        return
    if name := ask(task_names, run_id=place.run_id, iteration=place.iteration).get(place.task_id):
        show_text(one_line(name.instruction, 160))
    steps = ask(task_steps, run_id=place.run_id, iteration=place.iteration, task_id=place.task_id)
    with boxes:
        chosen = _choose(place, steps)
    missing.doubtful_credit(place.run_id, place.iteration)
    missing.doubtful_group(steps)
    selected = _selected(chosen.graph, steps)
    shading = _shading(place, chosen, steps)
    shown = _part(chosen, steps, selected)
    picture, panel = st.columns([7, 3])
    with picture:
        _fork(chosen, steps)
        names = _picture(place, chosen, steps, shading, selected, shown)
    lists = Panel(
        run_id=place.run_id,
        iteration=place.iteration,
        task_id=place.task_id,
        column=place.column,
        graph=chosen.graph,
        names=names,
        shown=chosen.graph.part(frozenset(node.state_id for node in shown.nodes)),
        steps=steps,
        trajectory=chosen.trajectory,
    )
    with panel:
        lists.show(selected)


def _choose(place: GraphPlace, steps: pa.Table) -> _Choices:
    """Show the boxes of what of the graph is shown, and how."""
    trajectory = choose_trajectory(steps)
    graph = read_graph(place)
    return _Choices(
        trajectory=trajectory,
        graph=graph,
        view=controls.choose_view(graph, has_trajectory=trajectory is not None),
    )


def _shading(place: GraphPlace, chosen: _Choices, steps: pa.Table) -> Shading:
    """Return the meaning of the colours."""
    laid = chosen.trajectory
    own = {} if laid is None else facts.own_steps(steps, laid, place.column)
    return Shading(advantage=f"{place.estimator} advantage", own=own)


def _fork(chosen: _Choices, steps: pa.Table) -> None:
    """Say where most rollouts parted from those that ended well; a click selects it."""
    ends, number = next(iter(forks(steps).items()), (None, 0))
    edge = next((edge for edge in chosen.graph.edges if edge.ends == ends), None)
    if edge is None:
        return
    others = {*steps["trajectory_id"].to_pylist()} - well_ended(steps)
    endings = {each.ending for name, each in facts.trajectories(steps).items() if name in others}
    who = "failed" if endings == {"failed"} else "earned less than the mean"
    st.button(
        f"{label(action_words(edge.actions[0], 60))} from state {edge.source}: there {number} of "
        f"{counted(len(others), 'rollout')} that {who} parted from the others",
        type="tertiary",
        on_click=controls.pick,
        args=(edge_key(edge.ends),),
    )


def _picture(
    place: GraphPlace,
    chosen: _Choices,
    steps: pa.Table,
    shading: Shading,
    selected: int | Ends | None,
    shown: TaskGraph,
) -> Mapping[int, str]:
    """Show the drawing, what it has of the whole graph, and its export; return names of states."""
    drawn = visible_part.thinned(shown, layers_of(chosen.graph), {*shading.own, selected})
    drawing = draw_part(drawn, chosen.graph, shading, title=title_of(place), steps=steps)
    path = [] if chosen.trajectory is None else facts.names_on(steps, chosen.trajectory)
    show_graph(
        drawing,
        path=path,
        selected=controls.picked_key(selected),
        found=facts.found(chosen.graph, shown, controls.words()),
        on_click=lambda key: _pick(drawn, key),
        on_find=controls.search,
    )
    _say_what_is_shown(chosen, drawn)
    offer_export(place, chosen.graph, drawn, steps, shading, drawing, path)
    return drawing.names


def _pick(drawn: TaskGraph, key: str) -> None:
    """Select what was clicked; of a way, the state in its middle."""
    ends = parse_key(key)
    way = next((edge.between for edge in drawn.edges if edge.between and edge.ends == ends), ())
    controls.pick(node_key(way[len(way) // 2]) if way else key)


def _has(graph: TaskGraph, selected: int | Ends | None) -> bool:
    if isinstance(selected, tuple):
        return any(edge.ends == selected for edge in graph.edges)
    return selected is None or any(node.state_id == selected for node in graph.nodes)


def _selected(graph: TaskGraph, steps: pa.Table) -> int | Ends | None:
    """Return the picked state or transition, else that of the selected step."""
    picked = parse_key(controls.picked())
    if picked is not None and _has(graph, picked):
        return picked
    if controls.picked():
        selection.not_here("state or transition", controls.picked(), "none")
        controls.pick("")
    chosen = selection.current()
    if chosen.trajectory is None or chosen.step is None:
        return None
    return facts.step_ends(steps, chosen.trajectory, chosen.step)


def _part(chosen: _Choices, steps: pa.Table, selected: int | Ends | None) -> TaskGraph:
    """Return what to show of the graph."""
    graph, trajectory = chosen.graph, chosen.trajectory
    visited = [] if trajectory is None else facts.states_on(steps, trajectory)
    at = selected if isinstance(selected, tuple) else () if selected is None else (selected,)
    if chosen.view == "matters":
        sought = facts.states_with(graph, controls.words())[:_ROOM_FOR_FOUND]
        return what_matters(graph, [*at, *visited, *sought], important(graph, steps))
    states = frozenset(node.state_id for node in graph.nodes)
    if chosen.view == "trajectory":
        states = frozenset(visited)
    elif chosen.view == "around":
        centres = at or (graph.nodes[0].state_id,)
        states = visible_part.around(graph, centres, _HOPS)
    return graph.part(visible_part.most_visited(graph, states))


def _say_what_is_shown(chosen: _Choices, shown: TaskGraph) -> None:
    graph = chosen.graph
    part = WHAT_MATTERS if chosen.view == "matters" else ""
    words = what_is_shown(graph, shown, part=part)
    if graph.goal is None:
        words += "; nobody is known to have won, so there is no goal"
    st.caption(f"{words}. Click a state or a transition, or choose it on the right.")
