"""The Search graph page."""

from pathlib import Path

import pytest

from graphcredit.store import Store
from graphcredit.store.parquet.er_graph import merge_er_graph
from graphcredit.viewer.search.charts import MAX_ENTITIES, drawn_entities
from graphcredit.viewer.search.entities import mentions, task_entities
from tests.credit.entity_world import entity, er_graph, relations
from tests.credit.test_sapo import GRAPH, example
from tests.viewer.browser import click_row, markdown_of, open_page, page_of
from tests.viewer.stores import HOSTILE, credited
from tests.viewer.test_page_trajectory import charts
from tests.worlds import step_table, trajectory, worked_example, write_store


def _searched(root: Path) -> Store:
    store = write_store(root, example())
    merge_er_graph(store, GRAPH)
    return credited(root, names=("sapo",))


def test_each_step_shows_what_it_found_and_what_that_was_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    app = open_page(monkeypatch, _searched(tmp_path / "s"), "search_graph", trajectory="x")
    assert not app.exception
    shown = app.dataframe[0].value
    assert list(shown["newly retrieved"]) == ["Bob (1), Ada (2)", "Di (–)", "Cy (0)"]
    assert list(shown["newly cited"]) == ["", "Bob (1)", "Ada (2)"]
    assert list(shown["step reward"]) == [0.75, 0.5, 1.25]
    assert "first came across an answer at step 2" in markdown_of(app)


def test_entities_stand_by_their_distance_to_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    app = open_page(monkeypatch, _searched(tmp_path / "s"), "search_graph", trajectory="y")
    assert "never came across an answer" in markdown_of(app)
    places = {row["name"]: (row["x"], row["kind"]) for row in charts(app)[1]}
    assert places == {
        "Cy": (0, "answer"),
        "Bob": (1, "never seen"),
        "Ada": (2, "retrieved"),
        "Di": (3, "never seen"),
    }
    names = list(app.dataframe[1].value["entity"])
    assert names == ["Cy", "Bob", "Ada", "Di"]


def test_a_step_leads_to_its_trajectory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    app = open_page(monkeypatch, _searched(tmp_path / "s"), "search_graph", trajectory="x")
    click_row(app, "search_steps", 2)
    assert page_of(app) == "trajectory"
    assert (app.query_params["trajectory"], app.query_params["step"]) == ("x", "2")


def test_of_many_entities_those_that_matter_are_drawn():
    others = [entity(f"E{number:02}") for number in range(60)]
    far = [entity("Far"), entity("Answer", answers=True)]
    pairs = [f"E{number:02}-Answer" for number in range(60)]
    graph = er_graph([*others, *far], relations(*pairs))
    known = task_entities(graph, "t0")
    found = mentions(known, step_table(trajectory("x", ["start", "a", "Far"])))
    drawn = [e.name for e in drawn_entities(known, found)]
    assert len(drawn) == MAX_ENTITIES
    assert drawn[0] == "Answer"
    assert drawn[-1] == "Far"


def test_a_trajectory_without_entities_has_no_chart_of_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = write_store(tmp_path / "s", trajectory("x", ["start", "a", "nobody"]))
    merge_er_graph(store, GRAPH)
    app = open_page(monkeypatch, store, "search_graph")
    assert not app.exception
    assert "came across no entity" in markdown_of(app)
    assert len(charts(app)) == 1


def test_without_an_entity_graph_the_page_says_what_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    app = open_page(monkeypatch, credited(tmp_path / "s", worked_example()), "search_graph")
    assert not app.exception
    assert "This store has no entity-relation graph" in markdown_of(app)


def test_a_task_of_another_kind_has_no_entities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = write_store(tmp_path / "s", worked_example(task_id="other"))
    merge_er_graph(store, GRAPH)
    app = open_page(monkeypatch, store, "search_graph")
    assert "no entities of this task" in markdown_of(app)


def test_a_broken_entity_graph_is_an_error_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = _searched(tmp_path / "s")
    (store.root / "er_graph" / "relations.parquet").write_bytes(b"PAR1 nothing")
    app = open_page(monkeypatch, store, "search_graph")
    assert not app.exception
    assert "cannot be shown" in markdown_of(app)
    assert "relations.parquet" in app.code[0].value


def test_names_of_entities_are_never_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = write_store(tmp_path / "s", trajectory("x", ["start", "a", f"see {HOSTILE} here"]))
    merge_er_graph(store, er_graph([entity(HOSTILE, answers=True)]))
    app = open_page(monkeypatch, store, "search_graph")
    assert not app.exception
    assert "<script>" not in markdown_of(app)
    assert "<script>" in app.dataframe[0].value["newly retrieved"][0]
