"""Which part of a graph is shown, on a graph that was drawn by hand."""

import numpy as np
import pytest

from graphcredit.viewer.graph import visible_part
from graphcredit.viewer.graph.layout import layers_of, layout_of
from graphcredit.viewer.graph.visible_part import (
    around,
    best_path,
    most_visited,
    thinned,
    what_matters,
    with_found,
)
from tests.viewer.graphs import graph_of


def test_the_best_path_is_the_cheapest_one_not_the_shortest():
    graph = graph_of("0 1 4", "0 2 3 4", goal=4, costs={"0 1": 5.0})
    assert best_path(graph) == [0, 2, 3, 4]


@pytest.mark.parametrize("goal", [None, 9], ids=["nobody won", "only an earlier iteration won"])
def test_without_a_way_to_the_goal_the_beaten_path_is_shown(goal: int | None):
    # 0 goes to 2 twice and to 1 once; 2 goes on to 3, and back to 0, where it has been.
    graph = graph_of("0 1", "0 2 3", "0 2 0", "9 9", goal=goal)
    assert best_path(graph) == [0, 2, 3]


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


def test_what_matters_is_the_best_path_the_trajectory_and_remarkable_edges_with_the_way_there(
    monkeypatch: pytest.MonkeyPatch,
):
    graph = graph_of("0 1 9", "0 2 3 4 5", "0 6 7", goal=9)
    edges = {edge.ends: edge for edge in graph.edges}
    assert what_matters(graph, [], []) == {0, 1, 9}
    assert what_matters(graph, [0, 6], []) == {0, 1, 6, 9}
    assert what_matters(graph, [], [edges[3, 4]]) == {0, 1, 2, 3, 4, 9}
    # There is room for 0, 1, 9 and two more: the second transition, not the first with its way.
    monkeypatch.setattr(visible_part, "READABLE", 5)
    assert what_matters(graph, [], [edges[4, 5], edges[6, 7]]) == {0, 1, 6, 7, 9}
    # A trajectory is shown whole.
    assert what_matters(graph, [0, 2, 3, 4, 5], []) == {0, 1, 2, 3, 4, 5, 9}


def test_what_was_found_comes_with_the_way_from_the_start_as_long_as_there_is_room():
    graph = graph_of("0 1 2 3", "0 4", "5 6")
    shown = frozenset({0, 4})
    assert with_found(graph, shown, [3], room=3) == {0, 1, 2, 3, 4}
    assert with_found(graph, shown, [3], room=2) == shown
    assert with_found(graph, shown, [3, 1], room=2) == {0, 1, 4}
    # Nothing leads there, so there is no way to show.
    assert with_found(graph, shown, [6, 4], room=9) == shown


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
