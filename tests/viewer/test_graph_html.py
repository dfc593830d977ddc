"""A graph as one HTML file."""

import json
import re
from pathlib import Path

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.graph.assets import asset
from graphcredit.viewer.graph.drawing import draw_part
from graphcredit.viewer.graph.export import graph_html
from graphcredit.viewer.graph.shading import Shading
from graphcredit.viewer.graph.task_graph import read_task_graph
from graphcredit.viewer.queries.graphs import task_steps
from tests.viewer.stores import Shared, credited
from tests.worlds import worked_example

COLUMN = "graphgpo_advantage"


def _page(store: Store, task_id: str = "t0") -> str:
    here = {"run_id": "r0", "iteration": 0, "task_id": task_id}
    graph = read_task_graph(store, **here, column=COLUMN)
    drawing = draw_part(graph, graph, Shading(advantage=COLUMN))
    steps = task_steps(store, **here)
    return graph_html(drawing, graph, steps, path=["n0"], column=COLUMN, title=task_id)


def _data(page: str) -> dict[str, object]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(text)


def test_it_holds_the_drawing_and_what_stands_behind_it(shared: Shared):
    data = _data(_page(shared(worked_example)))
    assert len(data["nodes"]) == 5
    assert data["path"] == ["n0"]
    title, state, text = data["details"]["n0"]
    assert (title, state) == ("0  A", "A")
    (best,) = run_trusted_query(
        shared(worked_example),
        f"SELECT avg({COLUMN}) AS a FROM enriched WHERE state_id = 0 AND action = 'c'",
    ).table.to_pylist()
    assert f"{best['a']:+.2f}  c → 2  C  (2 rollouts in 2 steps, 1 succeeded)" in text
    assert "trajectory_id: x" in data["details"]["e0-2"][1]


def test_it_needs_no_server_and_asks_none(shared: Shared):
    page = _page(shared(worked_example))
    own = page.replace(asset("cytoscape.min.js"), "")
    assert len(page) - len(own) > 400_000
    assert "default-src 'none'" in own
    assert not re.search(r"https?:|src=|href=|@import|url\(", own)
    assert "[[" not in own


def test_a_title_that_looks_like_a_place_to_fill_stays_a_title(tmp_path: Path):
    page = _page(credited(tmp_path / "s", worked_example("[[DATA]]")), "[[DATA]]")
    assert "<title>[[DATA]]</title>" in page
    assert len(_data(page)["nodes"]) == 5
