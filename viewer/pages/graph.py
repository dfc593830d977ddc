"""The Graph page: a task's state graph, coloured by credit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import streamlit as st

from graphcredit.store.plural import counted
from graphcredit.viewer.graph import facts, visible_part
from graphcredit.viewer.graph.component import show_graph
from graphcredit.viewer.graph.cytoscape import Drawing, draw_part
from graphcredit.viewer.graph.export.page import graph_html
from graphcredit.viewer.graph.find import found, states_with
from graphcredit.viewer.graph.folds import Fold, folds_of
from graphcredit.viewer.graph.keys import parse_key
from graphcredit.viewer.graph.layout import layers_of
from graphcredit.viewer.graph.play import Play, play_of
from graphcredit.viewer.graph.shading import Ends, Shading
from graphcredit.viewer.graph.task_graph import TaskGraph
from graphcredit.viewer.graph.true_distances import true_distances
from graphcredit.viewer.pages.graph_parts import controls as controls
from graphcredit.viewer.pages.graph_parts.iterations import (
    ReadIterations,
    iterations_with_graphs,
    read_iterations,
    say_which,
    show_elsewhere,
)
from graphcredit.viewer.pages.graph_parts.panel import Panel
from graphcredit.viewer.pages.graph_parts.place import (
    GraphPlace,
    choose_place,
    choose_trajectory,
    other_side,
    read_graph,
)
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.queries.trajectory import steps as trajectory_steps
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.address import complete_address
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.folded import folded

_MOST_REMARKABLE = 12
"""Transitions to show first in a graph that is too large to be read as a whole."""
_ROOM_FOR_FOUND = 60
"""States to add to what matters, for states that were searched for and the ways to them."""


def show() -> None:
    """Show the page."""
    st.header("Graph")
    store = viewed_store()
    complete_address(store)
    choices = folded("graph")
    with choices:
        place = choose_place(store)
    if place is None:
        return
    steps = ask(task_steps, run_id=place.run_id, iteration=place.iteration, task_id=place.task_id)
    truth = true_distances(steps)
    with choices:
        trajectory = choose_trajectory(steps)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            part = controls.choose_part(place.estimator, steps.column_names)
            column = f"{place.estimator}_{part}"
            graph = read_graph(place, place.iteration, column)
            view = controls.choose_view(graph, has_trajectory=trajectory is not None)
            scale = controls.choose_state_colour(graph, truth)
            is_marked = truth is not None and controls.choose_truth()
            iterations = _iterations(place, graph, column)
    missing.doubtful_credit(place.run_id, place.iteration)
    whole = graph if iterations is None else iterations.over.whole
    selected = _selected(whole, steps)
    other = other_side(place, graph, part, steps)
    steps = facts.with_shown(steps, column, other.values)
    advantage = f"{place.estimator} {part.replace('_', ' ')}"
    shading = Shading(
        advantage=f"{advantage}{other.name}",
        others=other.of_edges,
        states=scale,
        own={} if trajectory is None else facts.own_steps(steps, trajectory),
        truth=truth if is_marked else None,
    )
    looks = shading if iterations is None else Shading(advantage=advantage, states=scale)
    states = _states(whole, steps, view, trajectory, selected, looks)
    shown = whole.part(states)
    remarkable = facts.remarkable(shown, looks, most=_MOST_REMARKABLE)
    folds = folds_of(shown, {state for edge in remarkable for state in edge.ends})
    layers = layers_of(whole)
    in_folds = {edge.ends for fold in folds for edge in fold.edges}
    drawn_part = visible_part.thinned(shown, layers, {*in_folds, *shading.own, selected})
    frames = None if iterations is None else iterations.frames(states)
    drawing = draw_part(drawn_part, layers, looks, folds, frames)
    path = [] if trajectory is None else facts.names_on(steps, trajectory)
    play = _play(place, steps, trajectory)
    picture, panel = st.columns([7, 3])
    with picture:
        _say_what_is_shown(whole, shown, looks, folds)
        if len(drawn_part.edges) < len(shown.edges):
            st.caption(
                f"{len(drawn_part.edges):,} of {len(shown.edges):,} transitions between them are "
                "drawn, the most visited; the lists have all."
            )
        if iterations is not None:
            say_which(iterations, is_compared=place.other is not None)
        show_graph(
            drawing,
            path=path,
            selected=controls.picked_key(selected),
            found=found(whole, shown, controls.words()),
            play=play,
            on_click=controls.pick,
            on_find=controls.search,
        )
        _offer_export(place, drawn_part, steps, looks.advantage, drawing, path, play)
    lists = Panel(
        run_id=place.run_id,
        iteration=place.iteration,
        task_id=place.task_id,
        column=column,
        graph=graph,
        shown=graph.part(states),
        steps=steps,
        shading=replace(shading, truth=truth),
        trajectory=trajectory,
    )
    here = selected if _has(graph, selected) else None
    with panel:
        if iterations is not None and selected is not None and here is None:
            show_elsewhere(iterations.over, selected)
        lists.show(here)
    if isinstance(here, tuple):
        lists.show_steps(here)


def _iterations(place: GraphPlace, graph: TaskGraph, column: str) -> ReadIterations | None:
    """Offer the graphs of all iterations if there are several; return them if they are wanted."""
    if len(iterations_with_graphs(place.run_id)) < 2 or not controls.choose_over_iterations():
        return None
    return read_iterations(
        graph,
        run_id=place.run_id,
        iteration=place.iteration,
        task_id=place.task_id,
        column=column,
    )


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


def _states(
    graph: TaskGraph,
    steps: pa.Table,
    view: controls.View,
    trajectory: str | None,
    selected: int | Ends | None,
    shading: Shading,
) -> frozenset[int]:
    """Return the states to show."""
    own = [] if trajectory is None else facts.states_on(steps, trajectory)
    if view.name == "matters":
        edges = facts.remarkable(graph, shading, most=_MOST_REMARKABLE)
        shown = visible_part.what_matters(graph, own, edges)
        at = selected if isinstance(selected, tuple) else () if selected is None else (selected,)
        sought = states_with(graph, controls.words())
        return visible_part.with_found(graph, shown | frozenset(at), sought, room=_ROOM_FOR_FOUND)
    if view.name == "everything":
        return visible_part.most_visited(graph, frozenset(node.state_id for node in graph.nodes))
    if view.name == "trajectory" and trajectory is not None:
        centres = own
    elif view.name == "around":
        start = graph.nodes[0].state_id
        centres = (
            selected if isinstance(selected, tuple) else [start if selected is None else selected]
        )
    else:
        centres = visible_part.best_path(graph)
    return visible_part.most_visited(graph, visible_part.around(graph, centres, view.num_hops))


def _play(place: GraphPlace, steps: pa.Table, trajectory: str | None) -> Play:
    if trajectory is None:
        return Play()
    texts = ask(
        trajectory_steps,
        run_id=place.run_id,
        iteration=place.iteration,
        trajectory_id=trajectory,
    )
    return play_of(steps, texts, trajectory)


def _say_what_is_shown(
    graph: TaskGraph, shown: TaskGraph, shading: Shading, folds: Sequence[Fold]
) -> None:
    words = f"{len(shown.nodes):,} of {len(graph.nodes):,} states"
    if folds:
        inside = sum(len(fold.nodes) for fold in folds)
        kinds = Counter(fold.kind for fold in folds)
        named = " and ".join(counted(number, kind) for kind, number in sorted(kinds.items()))
        words += f", {inside:,} of them in {named} that open by a click"
    if graph.goal is None:
        words += "; no trajectory succeeded, so the goal is not among them"
    if shading.others is not None:
        compared = [edge for edge in shown.edges if shading.others.get(edge.ends) is not None]
        flips = sum(map(shading.is_flipped, compared))
        words += f"; {flips} of {len(compared)} compared transitions change sign"
    verdicts = [said for edge in shown.edges if (said := shading.verdict(edge))]
    if verdicts:
        words += (
            f"; the mean advantage has the sign of the true progress on "
            f"{verdicts.count('agrees')} of {len(verdicts)} transitions"
        )
    st.caption(f"{words}. Click a state or a transition, or choose it on the right.")


def _offer_export(
    place: GraphPlace,
    shown: TaskGraph,
    steps: pa.Table,
    ranked_by: str,
    drawing: Drawing,
    path: Sequence[str],
    play: Play,
) -> None:
    st.download_button(
        "Export as HTML",
        data=lambda: graph_html(
            drawing,
            shown,
            steps,
            path=path,
            play=play,
            ranked_by=ranked_by,
            title=f"{place.task_id} · run {place.run_id}, iteration {place.iteration}",
        ),
        file_name="graph.html",
        mime="text/html",
        on_click="ignore",
        help="One file that needs no server. It has the graph shown here, with texts and actions.",
    )
