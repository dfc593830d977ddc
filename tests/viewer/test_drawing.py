"""What Cytoscape is given to draw."""

from dataclasses import replace
from math import copysign

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.viewer.graph import drawing as module
from graphcredit.viewer.graph.drawing import Drawing, draw_part
from graphcredit.viewer.graph.shading import OwnStep, Shading
from graphcredit.viewer.graph.task_graph import (
    TaskGraph,
    edge_key,
    node_key,
    parse_key,
    read_task_graph,
)
from graphcredit.viewer.queries.graphs import task_steps
from graphcredit.viewer.widgets.colours import SignedScale, diverging, sequential
from tests.viewer.stores import HOSTILE, Shared, hostile
from tests.worlds import worked_example

IDS = st.integers(0, 10**6)


@pytest.fixture
def graph(shared: Shared) -> TaskGraph:
    store = shared(worked_example, "graphgpo", "rewardflow")
    return read_task_graph(
        store, run_id="r0", iteration=0, task_id="t0", column="graphgpo_advantage"
    )


def _draw(graph: TaskGraph, **shading: object) -> Drawing:
    return draw_part(graph, graph, Shading(advantage="graphgpo", **shading))


def _of(elements: object) -> dict[str, dict[str, object]]:
    return {element["data"]["id"]: element["data"] for element in elements}


def test_goal_start_and_dead_ends_have_shapes_of_their_own(graph: TaskGraph):
    kinds = {key: data["kind"] for key, data in _of(_draw(graph).nodes).items()}
    # A starts; from B one came back; from C one won; nobody came back from D.
    assert kinds == {"n0": "start", "n1": "state", "n2": "state", "n3": "dead end", "n4": "goal"}


def test_the_nearer_to_the_goal_the_deeper_a_state_is_coloured(graph: TaskGraph):
    nodes = _of(_draw(graph).nodes)
    # Distances: goal 0, C 1, A 2, B 3, D none.
    colours = [nodes[key].get("colour") for key in ("n4", "n2", "n0", "n1", "n3")]
    assert colours == [*(sequential(share) for share in (1, 2 / 3, 1 / 3, 0)), None]


def test_edges_are_coloured_by_advantage_and_dashed_where_pruned(graph: TaskGraph):
    drawing = _draw(graph)
    values = [edge.advantage or 0.0 for edge in graph.edges]
    limit = max(map(abs, values))
    drawn = _of(drawing.edges)
    for edge, value in zip(graph.edges, values, strict=True):
        data = drawn[edge_key(edge.ends)]
        assert data["colour"] == diverging(copysign((abs(value) / limit) ** 0.5, value), 1)
        assert ("pruned" in data) == edge.is_pruned
    assert drawing.legend["edge_ends"] == [f"{min(values):+.2g}", f"{max(values):+.2g}"]
    assert drawn["e0-0"]["pruned"]


def test_the_scale_is_that_of_the_whole_graph_and_its_ends_are_the_data(graph: TaskGraph):
    part = graph.part(frozenset({0, 1}))
    shading = Shading(advantage="graphgpo")
    some, all_ = draw_part(part, graph, shading), draw_part(graph, graph, shading)
    assert some.legend["edge_ends"] == all_.legend["edge_ends"]
    assert _of(some.edges)["e0-1"]["colour"] == _of(all_.edges)["e0-1"]["colour"]
    scale = SignedScale.of([0.25, -1.0, None])
    assert scale.ends() == ["-1", "+0.25"]
    # The root of a quarter is a half.
    assert scale.bar()[0] == scale.colour(-7) == diverging(-1, 1)
    assert scale.bar()[-1] == scale.colour(0.25) == diverging(0.5, 1)
    assert SignedScale.of([]).ends() == ["0", "0"]


def test_the_picture_opens_at_the_start_and_the_fork(shared: Shared, graph: TaskGraph):
    store = shared(worked_example, "graphgpo", "rewardflow")
    steps = task_steps(store, run_id="r0", iteration=0, task_id="t0")

    def sights(*own: tuple[int, int]) -> list[str]:
        laid = {ends: [OwnStep(index=0, action="go", value=1.0)] for ends in own}
        shading = Shading(advantage="graphgpo", own=laid)
        return [*draw_part(graph, graph, shading, steps=steps).sights]

    # z left the way of x from A to B, y from C to D.
    assert sights() == ["n0", "n1"]
    assert sights((0, 2), (2, 3)) == ["n0", "n2", "n3"]
    assert sights((2, 4)) == ["n0"]
    assert _draw(graph).sights == ["n0"]


def test_a_way_is_dotted_and_has_its_length(graph: TaskGraph):
    way = replace(graph.edges[0], source=0, target=4, between=(1, 2), actions=("3 steps",))
    whole = replace(graph, edges=(*graph.edges, way))
    data = _of(draw_part(whole, graph, Shading(advantage="a")).edges)["e0-4"]
    assert (data["way"], data["label"]) == (True, "3 steps")
    assert "through 2 states that are not drawn" in str(data["tip"])


@given(state=IDS, source=IDS, target=IDS)
def test_names_in_a_drawing_lead_back_to_states_and_transitions(
    state: int, source: int, target: int
):
    assert parse_key(node_key(state)) == state
    assert parse_key(edge_key((source, target))) == (source, target)


@pytest.mark.parametrize("text", ["", "n", "x3", "n1-2", "e1", "e1-2-3", "n-1", "e1-", "n²", "n٣"])
def test_any_other_text_names_nothing(text: str):
    assert parse_key(text) is None


def test_hostile_text_is_one_visible_line_in_labels(shared: Shared):
    store = shared(hostile)
    graph = read_task_graph(
        store, run_id="r0", iteration=0, task_id=HOSTILE, column="graphgpo_advantage"
    )
    drawing = _draw(graph)
    texts = [data["label"] for data in _of([*drawing.nodes, *drawing.edges]).values()]
    texts += [data["tip"] for data in _of([*drawing.nodes, *drawing.edges]).values()]
    assert len(texts) == 2 * (len(graph.nodes) + len(graph.edges))
    assert all("\x1b" not in text and "\u202e" not in text for text in texts)
    assert max(map(len, texts)) < 800


def test_a_small_graph_has_boxes_that_say_what_a_state_is(graph: TaskGraph):
    labels = {key: data["label"] for key, data in _of(_draw(graph).nodes).items()}
    assert labels["n0"] == "0 A\n2 to go · 5×"
    assert labels["n3"] == "3 D\nno way seen · 1×"
    assert labels["n4"] == "GOAL\n0 to go · 1×"


def test_the_goal_stands_on_the_right_of_all_others(graph: TaskGraph):
    places = {node["data"]["id"]: node["position"]["x"] for node in _draw(graph).nodes}
    assert places.pop("n4") > max(places.values())
    assert places.pop("n0") < min(places.values())


def test_blame_is_not_told_by_colour_alone(graph: TaskGraph):
    drawn = _of(_draw(graph).edges)
    blamed = {edge_key(edge.ends) for edge in graph.edges if (edge.advantage or 0.0) < 0}
    assert {key for key, data in drawn.items() if "blamed" in data} == blamed
    assert 0 < len(blamed) < len(drawn)


def test_the_legend_names_the_marks_that_are_there(graph: TaskGraph):
    marks = _draw(graph).legend["marks"]
    assert {"goal: double border", "bar at the tip: below 0", "dashed: pruned"} <= {*marks}
    assert not any("dotted" in mark or "yellow" in mark for mark in marks)
    alone = _draw(graph.part(frozenset({1}))).legend["marks"]
    assert not any(mark.startswith(("goal", "bar", "dashed: pruned")) for mark in alone)


def test_labels_without_room_are_counted(graph: TaskGraph, monkeypatch: pytest.MonkeyPatch):
    assert not any("without room" in note for note in _draw(graph).legend["marks"])
    monkeypatch.setattr(module, "_ROOM_FOR_ACTIONS", 0)
    notes = _draw(graph).legend["marks"]
    assert f"{len(graph.edges)} actions without room: point at the edge" in notes
