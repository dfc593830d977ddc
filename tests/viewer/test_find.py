"""States are found by words of their text."""

import json

import pytest

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.graph.facts import FoundStates, found, states_with
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from tests.viewer.browser import component, open_page
from tests.viewer.stores import Shared, corridors


@pytest.fixture
def store(shared: Shared) -> Store:
    return shared(corridors)


@pytest.fixture
def graph(store: Store) -> TaskGraph:
    return read_task_graph(
        store, run_id="r0", iteration=0, task_id="t0", column="graphgpo_advantage"
    )


def _by_sql(store: Store, words: str) -> list[int]:
    sql = "SELECT state_id FROM nodes WHERE state ILIKE '%' || ? || '%' ORDER BY state_id"
    return run_trusted_query(store, sql, [words]).table["state_id"].to_pylist()


@pytest.mark.parametrize("words", ["left", "LEFT 1", "t 1", "right 19", "nowhere", "gate", "e"])
def test_states_are_those_that_sql_finds(store: Store, graph: TaskGraph, words: str):
    assert states_with(graph, words) == _by_sql(store, words)


@pytest.mark.parametrize("words", ["", "  "])
def test_no_words_find_nothing(graph: TaskGraph, words: str):
    assert states_with(graph, words) == []


def test_found_states_that_are_not_shown_are_counted(graph: TaskGraph):
    shown = graph.part(frozenset(states_with(graph, "right 1")))
    result = found(graph, shown, "right")
    assert result.total == 20
    assert result.keys == [f"n{state}" for state in states_with(graph, "right 1")]
    assert found(graph, shown, "") == FoundStates(keys=[])


def test_what_matters_makes_room_for_what_was_found(store: Store):
    here = {"run": "r0", "iteration": 0, "task": "t0"}
    app = open_page(store, "graph", **here, view="matters")
    before = app.caption[0].value
    (last,) = _by_sql(store, "right 19")
    drawn = json.dumps(component(app, "graph"))
    assert f'"n{last}"' not in drawn
    app = open_page(store, "graph", **here, view="matters", find="right 19")
    marks = component(app, "marks")["found"]
    assert marks == {"words": "right 19", "keys": [f"n{last}"], "total": 1}
    assert f'"n{last}"' in json.dumps(component(app, "graph"))
    assert app.caption[0].value != before


def test_words_are_in_the_address_until_the_search_ends(store: Store):
    app = open_page(store, "graph", view="everything", find="left 1")
    assert component(app, "marks")["found"]["total"] == len(_by_sql(store, "left 1"))
    app = open_page(store, "graph", view="everything")
    assert "find" not in app.query_params
    assert component(app, "marks")["found"] == {"words": "", "keys": [], "total": 0}
