"""A trajectory that is laid over a graph: its own credit and numbers, and its differences."""

from typing import Any

import pytest

from graphcredit.store import Store
from graphcredit.viewer.graph.drawing import draw_part
from graphcredit.viewer.graph.facts import own_steps
from graphcredit.viewer.graph.shading import OwnStep, Shading
from graphcredit.viewer.graph.task_graph import Edge, TaskGraph, read_task_graph
from graphcredit.viewer.queries.graphs import task_steps
from tests.viewer.stores import credited
from tests.worlds import trajectory, worked_example

HERE: dict[str, Any] = {"run_id": "r0", "iteration": 0}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    rows = [
        *worked_example(),
        *trajectory("xv", "A c C e D"),
        *trajectory("xw", "A a B b A c C e D"),
    ]
    return credited(tmp_path_factory.mktemp("own") / "s", rows, names=("graphgpo", "grpo"))


def _graph(store: Store) -> TaskGraph:
    return read_task_graph(store, **HERE, task_id="t0", column="graphgpo_advantage")


def test_a_trajectory_is_drawn_in_its_own_credit_and_numbered(store: Store):
    graph = _graph(store)
    steps = task_steps(store, **HERE, task_id="t0")
    own = own_steps(steps, "xw", "grpo_advantage")
    (credit,) = {step.value for several in own.values() for step in several}
    assert {ends: [(s.index, s.action) for s in several] for ends, several in own.items()} == {
        (0, 1): [(0, "a")],
        (1, 0): [(1, "b")],
        (0, 2): [(2, "c")],
        (2, 3): [(3, "e")],
    }
    shading = Shading(advantage="grpo", own=own)
    by_ends = {edge.ends: edge for edge in graph.edges}
    # x went this way, too, so the mean of the edge is another one.
    assert shading.drawn_value(by_ends[0, 2]) == credit != by_ends[0, 2].advantage
    assert shading.drawn_value(by_ends[2, 4]) == by_ends[2, 4].advantage
    drawing = draw_part(graph, graph, shading)
    labels = {edge["data"]["id"]: edge["data"]["label"] for edge in drawing.edges}
    assert (labels["e0-1"], labels["e2-3"], labels["e2-4"]) == ("0: a", "3: e", "d")


def test_a_transition_taken_twice_shows_both_numbers_and_the_mean():
    several = [OwnStep(index=3, action="go", value=-0.5), OwnStep(index=7, action="run", value=0.1)]
    shading = Shading(advantage="a", own={(0, 1): several})
    edge = Edge(
        source=0, target=1, actions=("go",), visits=9, cost=1.0, advantage=3.0, is_pruned=False
    )
    assert shading.drawn_value(edge) == pytest.approx(-0.2)
