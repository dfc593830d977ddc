"""The Graph page: a task's state graph, coloured by credit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import streamlit as st

from graphcredit.store.layout import Store
from graphcredit.store.plural import counted
from graphcredit.viewer.graph import facts, visible_part
from graphcredit.viewer.graph.chains import Chain, chains_of
from graphcredit.viewer.graph.component import show_graph
from graphcredit.viewer.graph.cytoscape import Drawing, draw_part
from graphcredit.viewer.graph.find import found, states_with
from graphcredit.viewer.graph.html_export import graph_html
from graphcredit.viewer.graph.keys import parse_key
from graphcredit.viewer.graph.layout import layers_of
from graphcredit.viewer.graph.play import Play, play_of
from graphcredit.viewer.graph.shading import Ends, Shading
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from graphcredit.viewer.graph.true_distances import true_distances
from graphcredit.viewer.pages import graph_controls as controls
from graphcredit.viewer.pages.graph_panel import Panel
from graphcredit.viewer.queries.estimators import estimators
from graphcredit.viewer.queries.graphs import graph_tasks, task_steps
from graphcredit.viewer.queries.trajectory import steps as trajectory_steps
from graphcredit.viewer.steps.facts import outcome
from graphcredit.viewer.widgets import missing, selection
from graphcredit.viewer.widgets.address import complete_address
from graphcredit.viewer.widgets.cache import ask, viewed_store
from graphcredit.viewer.widgets.folded import folded

_ITERATION = "iteration "
_MOST_REMARKABLE = 12
"""Transitions to show first in a graph that is too large to be read as a whole."""
_ROOM_FOR_FOUND = 60
"""States to add to what matters, for states that were searched for and the ways to them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Selection of the shown graph."""

    run_id: str
    iteration: int
    task_id: str
    estimator: str
    other: str | None = None
    """The other side of the comparison: an estimator, or an iteration."""


def show() -> None:
    """Show the page."""
    st.header("Graph")
    store = viewed_store()
    complete_address(store)
    choices = folded("graph")
    with choices:
        place = _choose_place(store)
    if place is None:
        return
    steps = ask(task_steps, run_id=place.run_id, iteration=place.iteration, task_id=place.task_id)
    truth = true_distances(steps)
    with choices:
        trajectory = _choose_trajectory(steps)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            part = controls.choose_part(place.estimator, steps.column_names)
            column = f"{place.estimator}_{part}"
            graph = _read(place, place.iteration, column)
            view = controls.choose_view(graph, has_trajectory=trajectory is not None)
            scale = controls.choose_state_colour(graph, truth)
            is_marked = truth is not None and controls.choose_truth()
    missing.doubtful_credit(place.run_id, place.iteration)
    selected = _selected(graph, steps)
    other = _other(place, graph, part, steps)
    steps = facts.with_shown(steps, column, other.values)
    shading = Shading(
        advantage=f"{place.estimator} {part.replace('_', ' ')}{other.name}",
        others=other.of_edges,
        states=scale,
        own={} if trajectory is None else facts.own_steps(steps, trajectory),
        truth=truth if is_marked else None,
    )
    shown = graph.part(_states(graph, steps, view, trajectory, selected, shading))
    remarkable = facts.remarkable(shown, shading, most=_MOST_REMARKABLE)
    chains = chains_of(shown, {state for edge in remarkable for state in edge.ends})
    drawing = draw_part(shown, layers_of(graph), shading, chains)
    path = [] if trajectory is None else facts.names_on(steps, trajectory)
    play = _play(place, steps, trajectory)
    drawn, panel = st.columns([7, 3])
    with drawn:
        _say_what_is_shown(graph, shown, shading, chains)
        show_graph(
            drawing,
            path=path,
            selected=controls.picked_key(selected),
            found=found(graph, shown, controls.words()),
            play=play,
            on_click=controls.pick,
            on_find=controls.search,
        )
        _offer_export(place, shown, steps, shading.advantage, drawing, path, play)
    lists = Panel(
        run_id=place.run_id,
        iteration=place.iteration,
        task_id=place.task_id,
        column=column,
        graph=graph,
        shown=shown,
        steps=steps,
        shading=replace(shading, truth=truth),
        trajectory=trajectory,
    )
    with panel:
        lists.show(selected)
    if isinstance(selected, tuple):
        lists.show_steps(selected)


def _choose_place(store: Store) -> _Place | None:
    """Show boxes of run, iteration, task, estimator and the other side of a comparison."""
    columns = st.columns([3, 2, 5, 3, 3])
    with columns[0]:
        run_id = selection.choose_run(store)
    if run_id is None:
        missing.no_steps(store)
        return None
    with columns[1]:
        iteration = selection.choose_iteration(store, run_id)
    if iteration is None:
        missing.no_steps(store)
        return None
    names = ask(estimators, run_id=run_id, iteration=iteration)
    tasks = ask(graph_tasks, run_id=run_id, iteration=iteration)
    if not names or not tasks:
        missing.no_credit(store, run_id, iteration)
        return None
    with columns[2]:
        task_id = selection.choose_task(tasks)
    with columns[3]:
        estimator = selection.choose_estimator(names)
    if task_id is None or estimator is None:
        return None
    controls.forget_when_changed((run_id, iteration, task_id))
    place = _Place(run_id=run_id, iteration=iteration, task_id=task_id, estimator=estimator)
    with columns[4]:
        other = _choose_other(store, place, names)
    return replace(place, other=other)


def _choose_other(store: Store, place: _Place, names: Sequence[str]) -> str | None:
    iterations = [
        number
        for number in store.iterations(place.run_id)
        if number != place.iteration and store.graph_dir(place.run_id, number).exists()
    ]
    return controls.choose_optional(
        "other",
        "Compare with",
        [
            *(name for name in names if name != place.estimator),
            *(f"{_ITERATION}{number}" for number in iterations),
        ],
        nothing="nothing",
        help="Edges then show the difference. Edges with opposite signs are marked yellow.",
    )


def _choose_trajectory(steps: pa.Table) -> str | None:
    found = facts.trajectories(steps)

    def show(trajectory: str) -> str:
        length, succeeded = found[trajectory]
        return f"{trajectory} · {outcome(succeeded)} · {counted(length, 'step')}"

    return controls.choose_optional(
        "trajectory", "Trajectory laid over it", list(found), nothing="none", show=show
    )


def _read(place: _Place, iteration: int, column: str) -> TaskGraph:
    return ask(
        read_task_graph,
        run_id=place.run_id,
        iteration=iteration,
        task_id=place.task_id,
        column=column,
    )


def _selected(graph: TaskGraph, steps: pa.Table) -> int | Ends | None:
    """Return the picked state or transition, else that of the selected step."""
    known = {node.state_id for node in graph.nodes} | {edge.ends for edge in graph.edges}
    picked = parse_key(controls.picked())
    if picked in known:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Other:
    """The other side of a comparison; without one, nothing is subtracted."""

    name: str = ""
    """What follows the name of the advantage."""
    of_edges: Mapping[Ends, float | None] | None = None
    """Its mean advantages by the transitions of the shown graph."""
    values: str | Mapping[Ends, float | None] | None = None
    """What to subtract from single steps: another column, or the means."""


def _other(place: _Place, graph: TaskGraph, part: str, steps: pa.Table) -> _Other:
    if place.other is None:
        return _Other()
    with missing.guarded("The other side of the comparison"):
        if place.other.startswith(_ITERATION):
            number = int(place.other.removeprefix(_ITERATION))
            missing.doubtful_credit(place.run_id, number)
            there = _read(place, number, f"{place.estimator}_{part}")
            means = facts.advantages_at(graph, there)
            return _Other(name=f" − {place.other}", of_edges=means, values=means)
        # An estimator without a step part is compared by the advantage that it has.
        column = f"{place.other}_{part}"
        column = column if column in steps.column_names else f"{place.other}_advantage"
        means = facts.advantages_at(graph, _read(place, place.iteration, column))
        return _Other(name=f" − {place.other}", of_edges=means, values=column)
    return _Other(name=f" − {place.other}", of_edges={}, values={})


def _play(place: _Place, steps: pa.Table, trajectory: str | None) -> Play:
    if trajectory is None:
        return Play()
    here = {"run_id": place.run_id, "iteration": place.iteration}
    return play_of(steps, ask(trajectory_steps, **here, trajectory_id=trajectory), trajectory)


def _say_what_is_shown(
    graph: TaskGraph, shown: TaskGraph, shading: Shading, chains: Sequence[Chain]
) -> None:
    words = f"{len(shown.nodes):,} of {len(graph.nodes):,} states"
    if chains:
        inside = sum(len(chain.nodes) for chain in chains)
        words += f", {inside:,} of them in {counted(len(chains), 'chain')} that open by a click"
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
    place: _Place,
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
