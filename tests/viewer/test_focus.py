"""Which part of a graph is shown, on a graph that was drawn by hand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from graphcredit.viewer.graph import matters, visible_part
from graphcredit.viewer.graph.layout import layers_of, layout_of
from graphcredit.viewer.graph.matters import what_matters
from graphcredit.viewer.graph.task_graph import TaskGraph
from graphcredit.viewer.graph.visible_part import around, most_visited, thinned
from graphcredit.viewer.graph.words import what_is_shown
from tests.viewer.graphs import graph_of


def test_the_neighbourhood_goes_along_transitions_in_both_directions():
    graph = graph_of("0 1 2 3 4")
    assert around(graph, [2], 0) == {2}
    assert around(graph, [2], 1) == {1, 2, 3}
    assert around(graph, [0, 4], 1) == {0, 1, 3, 4}
    assert around(graph, [77], 1) == frozenset()


def test_a_huge_graph_is_cut_to_start_goal_and_the_most_visited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(visible_part, "MOST", 3)
    graph = graph_of("0 1 2 5", "1 2", "2 3", goal=5)
    # 2 was visited most; 0 and 5 are kept whatever their visits.
    assert most_visited(graph, frozenset(range(6))) == {0, 2, 5}


def test_a_part_keeps_the_layers_of_the_whole_and_leaves_no_gaps():
    graph = graph_of("0 1 2 3", "0 4")
    part = graph.part(frozenset({0, 2, 3}))
    assert [edge.ends for edge in part.edges] == [(2, 3)]
    places = layout_of(part, layers_of(graph), column=200, row=100, box=(9, 9)).places
    assert places == {0: (0, 0), 2: (200, 0), 3: (400, 0)}


def test_the_layout_is_the_same_every_time():
    graph = graph_of("0 1 5", "0 2 5", "0 3 6", "0 4 6", "2 6", goal=6)
    layout, again = (
        layout_of(graph, layers_of(graph), column=200, row=100, box=(9, 9)) for _ in range(2)
    )
    assert layout == again
    first_layer = sorted(layout.places[state][1] for state in (1, 2, 3, 4))
    assert np.diff(first_layer) == pytest.approx(np.diff(first_layer).mean())


def _matters(graph: TaskGraph, *wanted: tuple[int, int], kept: Sequence[int] = ()) -> set[str]:
    """Return the states of what matters, and its ways as `1>9`."""
    edges = {edge.ends: edge for edge in graph.edges}
    part = what_matters(graph, kept, [edges[ends] for ends in wanted])
    ways = {f"{edge.source}>{edge.target}" for edge in part.edges if edge.between}
    return {*(str(node.state_id) for node in part.nodes), *ways}


def test_what_matters_has_start_goal_and_wanted_transitions_and_ways_take_no_room(
    monkeypatch: pytest.MonkeyPatch,
):
    graph = graph_of("0 1 2 3 9", "0 4 5 6 7", "2 8 3", goal=9)
    # There is room for all states of the ways.
    assert _matters(graph, (5, 6)) == {*"0123459", "6"}
    monkeypatch.setattr(matters, "READABLE", 4)
    assert _matters(graph) == {*"09", "0>9"}
    # 6 never came to the goal; 8 did, through 3.
    assert _matters(graph, (5, 6)) == {*"0569", "0>5", "0>9"}
    assert _matters(graph, (2, 8)) == {*"0289", "0>2", "2>9", "8>9"}
    # The second one has no room; a state that is kept has room in any case.
    assert _matters(graph, (5, 6), (2, 8)) == _matters(graph, (5, 6))
    assert _matters(graph, (5, 6), kept=[0, 1, 2]) == {*"0129", "2>9"}
    monkeypatch.setattr(matters, "READABLE", 5)
    # 4 is the only state on its way, 1, 2 and 3 are three.
    assert _matters(graph, (5, 6)) == {*"04569", "0>9"}


def test_a_way_is_the_cheapest_with_the_mean_advantage_of_its_steps(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(matters, "READABLE", 2)
    graph = graph_of("0 1 9", "0 2 3 9", "0 2", goal=9, costs={"0 1": 5.0})
    values = {(0, 2): 1.0, (2, 3): -2.0, (3, 9): None}
    edges = tuple(replace(edge, advantage=values.get(edge.ends)) for edge in graph.edges)
    (way,) = what_matters(replace(graph, edges=edges), [], []).edges
    # Two steps of +1 and one of -2; the last one has no credit.
    assert (way.ends, way.between, way.advantage, way.visits) == ((0, 9), (2, 3), 0.0, 1)


def test_what_is_left_out_is_named_with_its_credit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(matters, "READABLE", 2)
    graph = graph_of("0 1 2 9", "0 3", "1 4", goal=9)
    values = {(0, 1): 1.0, (1, 2): 0.5, (2, 9): 0.5, (0, 3): -1.5, (1, 4): 0.5}
    edges = tuple(replace(edge, advantage=values[edge.ends]) for edge in graph.edges)
    graph = replace(graph, edges=edges)
    said = what_is_shown(graph, what_matters(graph, [], []))
    assert said == (
        "2 of 6 states. Dotted lines are ways through 2 more states. Left out: 2 transitions, from "
        "-1.50 to +0.50, 50% of all credit and blame"
    )
    assert what_is_shown(graph, graph) == "6 of 6 states"


def test_of_a_goal_that_no_way_leads_to_and_a_start_of_their_own():
    graph = graph_of("0 1", "9 9", "5 6", goal=9)
    assert _matters(graph, (5, 6)) == {*"0569"}


def test_of_very_many_transitions_those_wanted_ways_in_and_the_most_visited_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
):
    # 0 goes to 1 and 2; both go to 3, 2 more often; then there are ways back and a loop.
    graph = graph_of("0 1", "0 2", "1 3", "2 3", "2 3", "3 0", "3 0", "3 1", "3 3")
    layers = layers_of(graph)

    def drawn(most: int, *kept: tuple[int, int]) -> set[tuple[int, int]]:
        monkeypatch.setattr(visible_part, "MOST_TRANSITIONS", most)
        thin = thinned(graph, layers, kept)
        assert thin.nodes == graph.nodes
        return {edge.ends for edge in thin.edges}

    ways_in = {(0, 1), (0, 2), (2, 3)}
    assert drawn(7) == {edge.ends for edge in graph.edges}
    assert drawn(4) == ways_in | {(3, 0)}
    assert drawn(4, (3, 3)) == ways_in | {(3, 3)}
    assert drawn(1) == ways_in
