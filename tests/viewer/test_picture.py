"""The picture of a state graph: what is in it, and that a log cannot put markup into it."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from graphcredit.store import Store
from graphcredit.store.errors import InputError
from graphcredit.viewer.graph.layout import layers_of
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.svg import draw
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from graphcredit.viewer.widgets.colours import diverging
from tests.viewer.stores import Shared, credited
from tests.worlds import trajectory, worked_example

SVG = "{http://www.w3.org/2000/svg}"


def _graph(store: Store, task_id: str = "t0", column: str = "graphgpo_advantage") -> TaskGraph:
    return read_task_graph(store, run_id="r0", iteration=0, task_id=task_id, column=column)


def test_parallel_actions_are_one_edge_with_the_mean_of_its_steps(tmp_path: Path):
    again = trajectory("w", "A z B")
    store = credited(tmp_path / "s", [*worked_example(), *again])
    edges = {(edge.source, edge.target): edge for edge in _graph(store).edges}
    assert edges[0, 1].actions == ("a", "z")
    assert edges[0, 1].visits == 3
    assert edges[0, 0].is_pruned


def test_states_stand_in_layers_by_their_distance_from_the_start(shared: Shared):
    graph = _graph(shared(worked_example))
    # A leads to B and C; C leads to D and to the goal, which stands behind all others.
    assert layers_of(graph) == {0: 0, 1: 1, 2: 1, 3: 2, 4: 3}


def test_the_picture_shows_every_state_and_every_action(shared: Shared):
    graph = _graph(shared(worked_example))
    root = ET.fromstring(draw(graph, title="worked example"))
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert {"worked example", "GOAL", "0 A", "1 B", "2 C", "3 D"} <= set(texts)
    assert {"a", "b", "c", "d", "e", "q"} <= set(texts)
    assert "no way seen · 1×" in texts


def test_the_picture_has_a_title_and_a_legend_and_tells_blame_by_shape(shared: Shared):
    graph = _graph(shared(worked_example))
    part = graph.part(frozenset({0, 1, 2}))
    shading = Shading(advantage="graphgpo advantage")
    root = ET.fromstring(draw(part, title="t", whole=graph, shading=shading))
    texts = {text.text for text in root.iter(f"{SVG}text")}
    values = [edge.advantage or 0.0 for edge in graph.edges]
    ends = {f"{min(values):+.2g}", f"{max(values):+.2g}"}
    assert {"t", "graphgpo advantage", "seen distance to the goal", *ends} <= texts
    bars = [path for path in root.iter(f"{SVG}path") if path.get("stroke-width") == "2.5"]
    assert len(bars) == sum((edge.advantage or 0.0) < 0 for edge in part.edges) > 0


def test_markup_and_control_characters_from_a_log_stay_text(tmp_path: Path):
    evil = '<script>alert("x")</script>\x1b[31m'
    rows = trajectory("x", ["A", evil, "B & C", "b", "won"], rewards=[0, 1], success=True)
    svg = draw(_graph(credited(tmp_path / "s", rows)), title=evil)
    texts = [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]
    assert texts[0] == '<script>alert("x")</script>␛[31m'
    assert "1 B & C" in texts
    assert "<script" not in svg


def test_zero_is_grey_and_the_ends_are_orange_and_blue():
    assert diverging(0, 2) == diverging(5, 0) == "#8a8f98"
    assert diverging(-2, 2) == diverging(-9, 2) == "#c04f15"
    assert diverging(2, 2) == "#2469b8"


@pytest.mark.parametrize(
    ("task_id", "column", "message"),
    [
        ("nope", "graphgpo_advantage", "has no task 'nope'"),
        ("t0", "gigpo_advantage", "--estimator gigpo"),
    ],
)
def test_what_is_not_there_is_named(shared: Shared, task_id: str, column: str, message: str):
    store = shared(worked_example)
    with pytest.raises(InputError, match=message):
        _graph(store, task_id, column)
