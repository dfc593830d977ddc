"""The graphs of one task in several iterations, as one drawing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.graph.cytoscape import draw_part
from graphcredit.viewer.graph.frames import Frames
from graphcredit.viewer.graph.layout import layers_of
from graphcredit.viewer.graph.over_iterations import OverIterations, over_iterations
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from graphcredit.viewer.pages.graph_parts import iterations
from graphcredit.viewer.widgets.colours import diverging
from tests.viewer.browser import open_page
from tests.viewer.stores import credited
from tests.worlds import trajectory

FIRST = [
    *trajectory("x", "A a B b C c won", rewards=[0, 0, 1], success=True),
    *trajectory("y", "A a B d D"),
]
SECOND = [
    # C is seen before B, so that states have other numbers; E is new, and D is gone.
    *trajectory("x", "A e C c won", rewards=[0, 1], success=True),
    *trajectory("y", "A a B f E"),
    *trajectory("z", "A a B b C"),
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    credited(tmp_path / "s", FIRST, iteration=0)
    return credited(tmp_path / "s", SECOND, iteration=1)


def _graph(store: Store, iteration: int) -> TaskGraph:
    column = "graphgpo_advantage"
    return read_task_graph(store, run_id="r0", iteration=iteration, task_id="t0", column=column)


def _over(store: Store, base: int) -> OverIterations:
    return over_iterations({0: _graph(store, 0), 1: _graph(store, 1)}, base)


def _texts(graph: TaskGraph) -> dict[str, int]:
    return {"won" if node.is_goal else node.state: node.state_id for node in graph.nodes}


@pytest.mark.parametrize("base", [0, 1])
def test_a_state_has_one_number_in_all_iterations_that_of_the_base(store: Store, base: int):
    over = _over(store, base)
    numbers = _texts(over.whole)
    assert {*numbers} == {"A", "B", "C", "D", "E", "won"}
    assert len(set(numbers.values())) == 6
    assert over.graphs[base] == _graph(store, base)
    for iteration, graph in over.graphs.items():
        assert _texts(graph).items() <= numbers.items()
        assert {*_texts(graph)} == {*_texts(_graph(store, iteration))}
    assert over.seen_in(numbers["A"]) == [0, 1]
    assert over.seen_in(numbers["D"]) == [0]
    assert over.seen_in(numbers["E"]) == [1]


def test_credit_and_visits_of_an_iteration_are_those_of_its_own_rows(store: Store):
    over = _over(store, 1)
    numbers = _texts(over.whole)
    sql = """
        SELECT iteration, state, CASE WHEN terminated AND success THEN 'won' ELSE next_state END
            AS target, count(*) AS visits, avg(graphgpo_advantage) AS mean
        FROM enriched GROUP BY ALL
    """
    rows = run_trusted_query(store, sql, run_id="r0").table.to_pylist()
    assert len(rows) == sum(len(graph.edges) for graph in over.graphs.values())
    for row in rows:
        ends = numbers[row["state"]], numbers[row["target"]]
        (edge,) = [edge for edge in over.graphs[row["iteration"]].edges if edge.ends == ends]
        assert edge.visits == row["visits"]
        assert edge.advantage == pytest.approx(row["mean"])


def test_the_whole_has_each_transition_as_its_greatest_credit_or_blame(store: Store):
    over = _over(store, 0)
    for edge in over.whole.edges:
        versions = [e for graph in over.graphs.values() for e in graph.edges if e.ends == edge.ends]
        assert edge in versions
        assert abs(edge.advantage or 0) == max(abs(e.advantage or 0) for e in versions)


def _frames(store: Store, **changed: Any) -> tuple[OverIterations, list[dict[str, Any]]]:
    over = _over(store, 0)
    frames = Frames(graphs=over.graphs, first=0)
    drawing = draw_part(over.whole, layers_of(over.whole), Shading(advantage="a"), (), frames)
    assert len(drawing.nodes) == 6
    return over, [dict(frame) for frame in drawing.frames]


def test_a_frame_has_what_the_iteration_has_in_colours_of_one_scale(store: Store):
    over, frames = _frames(store)
    drawn = {
        edge.advantage: frame["data"][f"e{edge.source}-{edge.target}"]["colour"]
        for frame, graph in zip(frames, over.graphs.values(), strict=True)
        for edge in graph.edges
    }
    for frame, graph in zip(frames, over.graphs.values(), strict=True):
        keys = {f"n{node.state_id}" for node in graph.nodes}
        assert {*frame["data"]} == keys | {f"e{e.source}-{e.target}" for e in graph.edges}
    assert drawn[max(drawn)] == diverging(1, 1)
    assert [frame["first"] for frame in frames] == [True, False]
    assert [frame["words"] for frame in frames] == [
        "iteration 0 · 50% of 2 trajectories succeeded · 5 states drawn",
        "iteration 1 · 33% of 3 trajectories succeeded · 5 states drawn",
    ]


def test_what_a_state_lacks_in_an_iteration_is_said(store: Store):
    over = _over(store, 0)
    # In the second iteration, nothing leads from B to the goal.
    numbers = _texts(over.whole)
    nodes = tuple(
        replace(node, goal_distance=None) if node.state_id == numbers["B"] else node
        for node in over.graphs[1].nodes
    )
    graphs = {**over.graphs, 1: replace(over.graphs[1], nodes=nodes)}
    frames = Frames(graphs=graphs, first=0)
    drawing = draw_part(over.whole, layers_of(over.whole), Shading(advantage="a"), (), frames)
    first, second = (frame["data"][f"n{numbers['B']}"] for frame in drawing.frames)
    assert (first["kind"], second["kind"]) == ("state", "dead end")
    assert first["colour"] is not None
    assert second["colour"] is None


def test_iterations_without_the_task_or_its_credit_are_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    credited(store.root, trajectory("x", "A a B", task_id="other"), iteration=2)
    credited(store.root, FIRST, names=("gigpo",), iteration=3)
    app = open_page(monkeypatch, store, "graph", run="r0", iteration=0, task="t0", over=1)
    assert not app.exception
    said = app.caption[1].value
    assert said.startswith("2 iterations on the slider, ")
    assert "Without this task or its credit: iteration 2, 3." in said
    assert "The lists are those of iteration 0." in said


def test_of_many_iterations_the_chosen_one_and_even_steps_are_drawn(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    for iteration in (2, 3, 4):
        credited(store.root, FIRST, iteration=iteration)
    monkeypatch.setattr(iterations, "MOST", 2)
    app = open_page(monkeypatch, store, "graph", run="r0", iteration=1, task="t0", over=1)
    # Each third of 0 to 4, and 1 itself.
    said = app.caption[1].value
    assert said.startswith("3 iterations on the slider, ")
    assert "2 iterations between them are left out." in said
