"""Layout: columns by steps from the start, edges that run through no state, labels with room."""

from itertools import combinations, pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphcredit.viewer.graph.layout import Layout, label_places, layers_of, layout_of
from graphcredit.viewer.graph.task_graph import TaskGraph
from tests.viewer.graphs import graph_of

BOX = (144.0, 62.0)
WALKS = st.lists(st.lists(st.integers(0, 12), min_size=2, max_size=9), min_size=1, max_size=8)


def laid(*paths: str, goal: int | None = None) -> tuple[TaskGraph, Layout]:
    graph = graph_of(*paths, goal=goal)
    return graph, layout_of(graph, layers_of(graph), column=210, row=112, box=BOX)


def points_on(layout: Layout, graph: TaskGraph, index: int) -> NDArray[np.float64]:
    """Return points of an edge's curve, by the definition of quadratic curves."""
    edge, controls = graph.edges[index], np.array(layout.controls[index])
    start, end = (np.array(layout.places[state]) for state in edge.ends)
    t = np.linspace(0, 1, 30)[:, None]
    if not len(controls):
        return start + t * (end - start)
    joints = [start, *((one + two) / 2 for one, two in pairwise(controls)), end]
    parts = [
        (1 - t) ** 2 * a + 2 * t * (1 - t) * c + t**2 * b
        for (a, b), c in zip(pairwise(joints), controls, strict=True)
    ]
    return np.concatenate(parts)


@given(WALKS, st.sets(st.integers(1, 12)))
@example([[4, 7, 0, 5, 3, 1]], {3})
def test_edges_run_between_the_columns_of_their_ends_and_through_no_other_state(
    walks: list[list[int]], hidden: set[int]
):
    """Of a part of a graph, too, where not every state is connected with the first."""
    whole = graph_of(*(" ".join(map(str, [0, *walk])) for walk in walks))
    graph = whole.part(frozenset(node.state_id for node in whole.nodes) - hidden)
    layout = layout_of(graph, layers_of(whole), column=210, row=112, box=BOX)
    for index, edge in enumerate(graph.edges):
        (x0, _), (x1, _) = (layout.places[state] for state in edge.ends)
        if x0 == x1:
            continue
        points = points_on(layout, graph, index)
        assert (min(x0, x1) - 1e-6 <= points[:, 0]).all()
        assert (points[:, 0] <= max(x0, x1) + 1e-6).all()
        for state, centre in layout.places.items():
            inside = (np.abs(points - centre) < np.array(BOX) / 2).all(axis=1)
            assert state in edge.ends or not inside.any()


@given(WALKS)
def test_states_do_not_overlap_and_columns_follow_the_steps_from_the_start(walks: list[list[int]]):
    graph, layout = laid(*(" ".join(map(str, [0, *walk])) for walk in walks))
    layers = layers_of(graph)
    for one, other in combinations(layout.places, 2):
        (x0, y0), (x1, y1) = layout.places[one], layout.places[other]
        assert (x0 < x1) == (layers[one] < layers[other])
        assert x0 != x1 or abs(y0 - y1) >= 111


def test_an_edge_and_its_reverse_are_apart():
    graph, layout = laid("0 1 0", "0 2 0")
    for state in (1, 2):
        there, back = (
            points_on(layout, graph, index)
            for index, edge in enumerate(graph.edges)
            if {*edge.ends} == {0, state}
        )
        middles = there[len(there) // 2], back[len(back) // 2]
        assert np.hypot(*(middles[0] - middles[1])) > 8


def test_an_edge_around_a_state_of_its_column_goes_past_it():
    graph, layout = laid("0 1", "0 2", "0 3", "1 2", "2 3", "3 1")
    column = sorted((1, 2, 3), key=lambda state: layout.places[state][1])
    ends = (column[0], column[2])
    index = next(i for i, e in enumerate(graph.edges) if {*e.ends} == {*ends})
    points = points_on(layout, graph, index)
    centre = layout.places[column[1]]
    assert not (np.abs(points - centre) < np.array(BOX) / 2).all(axis=1).any()


def test_a_straight_way_is_straight_and_the_goal_is_last():
    _, layout = laid("0 1 2")
    assert [list(way) for way in layout.controls] == [[], []]
    _, layout = laid("0 1 2", "0 3 4 5", goal=2)
    assert max(layout.places, key=lambda state: layout.places[state][0]) == 2


@given(WALKS, st.integers(1, 22))
def test_labels_overlap_neither_each_other_nor_states(walks: list[list[int]], length: int):
    graph, layout = laid(*(" ".join(map(str, [0, *walk])) for walk in walks))
    places = label_places(
        graph.edges,
        layout,
        ["m" * length] * len(graph.edges),
        sizes=dict.fromkeys(layout.places, BOX),
        order=range(len(graph.edges)),
        below=dict.fromkeys(layout.places, "n" * 9),
    )
    name = np.array([9 * 6.6 / 2, 10])
    half = np.array([length * 6.6 / 2, 7.5])
    drawn = [np.array(place) for place in places if place is not None]
    assert drawn or length > 8
    for one, other in combinations(drawn, 2):
        assert (np.abs(one - other) >= 2 * half - 1e-6).any()
    for label in drawn:
        for centre in layout.places.values():
            assert (np.abs(label - centre) >= half + np.array(BOX) / 2 - 1e-6).any()
            below = np.array(centre) + np.array([0, BOX[1] / 2 + name[1]])
            assert (np.abs(label - below) >= half + name - 1e-6).any()
