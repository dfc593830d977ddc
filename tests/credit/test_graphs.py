"""State graphs handed to igraph, and by it to networkx."""

from pathlib import Path

import networkx as nx
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.graph.export import to_igraph
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.errors import InputError
from tests.worlds import worked_example, write_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = write_store(tmp_path / "s", worked_example())
    assign_credit(store, CreditSettings(estimators=configure(["graphgpo"])))
    return store


def test_networkx_finds_the_distances_that_the_tables_say(store: Store):
    graph = to_igraph(store, run_id="r0", iteration=0, task_id="t0").to_networkx()
    goal = next(node for node, data in graph.nodes(data=True) if data["is_goal"])
    found = nx.single_source_dijkstra_path_length(graph.reverse(), goal, weight="cost")
    said = {node: data["goal_distance"] for node, data in graph.nodes(data=True)}
    assert {node: said[node] for node in found} == found
    assert said[3] is None
    assert (graph.edges[0, 1]["action"], graph.edges[0, 1]["visits"]) == ("a", 2)
    assert graph.edges[2, 4]["graphgpo_advantage"] == pytest.approx(1.8618, abs=5e-5)


def test_igraph_has_the_same_vertices_and_edges(store: Store):
    graph = to_igraph(store, run_id="r0", iteration=0, task_id="t0")
    assert graph.vs["state"] == ["A", "B", "C", "D", "won"]
    assert graph.ecount() == 6
    distances = graph.distances(target=graph.vs["is_goal"].index(True), weights="cost")
    assert [row[0] for row in distances] == [2, 3, 1, float("inf"), 0]


def test_a_task_that_is_not_there_is_named(store: Store):
    with pytest.raises(InputError, match="has no task 'nope'"):
        to_igraph(store, run_id="r0", iteration=0, task_id="nope")
    with pytest.raises(
        InputError, match="does not exist: run `graphcredit credit STORE -e graphgpo`"
    ):
        to_igraph(store, run_id="r0", iteration=7, task_id="t0")
