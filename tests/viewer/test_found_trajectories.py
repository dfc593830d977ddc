"""The trajectories that a user looks for, and the notes that tags are from."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from graphcredit.store import Store
from graphcredit.store.parquet import notes
from graphcredit.store.parquet.notes import Note, NotePlace, read_notes, write_note
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries import trajectories as queries
from tests.viewer.browser import boxes, click_row, component, markdown_of, open_page, page_of
from tests.viewer.stores import HOSTILE, credited, two_tasks
from tests.worlds import trajectory

ESTIMATORS = ("graphgpo", "gigpo")
Z1 = NotePlace(run_id="r0", iteration=0, task_id="t0", trajectory_id="z", step_index=1)
P = NotePlace(run_id="r0", iteration=0, task_id="t1", trajectory_id="p")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return trajectories x (4 steps, won), y, z, p, q (2 steps, lost) and u (1 step, no end)."""
    unfinished = trajectory("u", "A a B", success=None, thought="I am Lost")
    root = tmp_path_factory.mktemp("found") / "s"
    return credited(root, [*two_tasks(), *unfinished], names=ESTIMATORS)


@pytest.fixture(autouse=True)
def _without_notes(store: Store) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Remove what a test noted."""
    yield
    store.notes_path("r0", 0).unlink(missing_ok=True)


def _found(store: Store, **wanted: Any) -> list[str]:
    given: dict[str, Any] = {"estimator": "graphgpo", "others": ESTIMATORS, "order": "name"}
    place = {"run_id": "r0", "iteration": 0}
    found = queries.found_trajectories(store, **place, **(given | wanted))
    names = found["trajectory_id"].to_pylist()
    assert found["num_found"].to_pylist() == [len(names)] * len(names)
    return names


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, ["u", "x", "y", "z", "p", "q"]),
        ({"outcome": "succeeded"}, ["x"]),
        ({"outcome": "not succeeded"}, ["y", "z", "p", "q"]),
        ({"outcome": "unfinished"}, ["u"]),
        ({"outcome": "incomplete"}, ["u"]),
        ({"text": "T1"}, ["p", "q"]),
        ({"text": "100%"}, []),
        ({"text": "no such text", "noted": ("z",)}, ["z"]),
        ({"only": ("x", "q"), "outcome": "not succeeded"}, ["q"]),
        ({"only": ()}, []),
        ({"estimator": None, "others": ()}, ["u", "x", "y", "z", "p", "q"]),
    ],
)
def test_every_condition_must_hold(store: Store, wanted: dict[str, Any], names: list[str]):
    assert _found(store, **wanted) == names


def test_disagreement_is_the_share_of_steps_with_opposite_signs(store: Store):
    sql = """
        SELECT trajectory_id,
            avg((sign(graphgpo_advantage) * sign(gigpo_advantage) < 0)::INT) AS share
        FROM credit WHERE state_id IS NOT NULL GROUP BY ALL
    """
    shares = {
        row["trajectory_id"]: row["share"]
        for row in run_trusted_query(store, sql).table.to_pylist()
    }
    assert max(shares.values()) > 0
    found = queries.found_trajectories(
        store, run_id="r0", iteration=0, estimator="graphgpo", others=ESTIMATORS
    ).to_pylist()
    assert {r["trajectory_id"]: r["disagreement"] for r in found} == shares | {"u": None}
    assert found[0]["disagreement"] == max(shares.values())


def test_orders_are_by_the_numbers_of_the_store(store: Store):
    sql = """
        SELECT trajectory_id FROM credit WHERE state_id IS NOT NULL
        GROUP BY trajectory_id ORDER BY {}, trajectory_id
    """
    for order, key in (
        ("most credit", "max(graphgpo_advantage) DESC"),
        ("most blame", "min(graphgpo_advantage)"),
    ):
        wanted = run_trusted_query(store, sql.format(key)).table["trajectory_id"].to_pylist()
        assert sorted(_found(store, order=order)[:5]) == sorted(wanted)
        assert _found(store, order=order)[0] == wanted[0]
    assert _found(store, order="longest")[0] == "x"
    assert _found(store, order="shortest")[0] == "u"


def test_a_list_that_is_cut_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queries, "MOST_TRAJECTORIES", 2)
    store = credited(tmp_path / "s", two_tasks())
    app = open_page(monkeypatch, store, "tasks", list="trajectories")
    assert not app.exception
    assert "5 rollouts, the first 2 of them shown." in markdown_of(app)


def test_the_page_filters_by_tag_and_leads_to_the_trajectory(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    write_note(store, Z1, Note(text="Look *here*", tags=("odd",)), seen=Note())
    write_note(store, P, Note(tags=("good", "odd")), seen=Note())
    app = open_page(monkeypatch, store, "tasks", list="trajectories", order="name")
    assert not app.exception
    assert app.selectbox(key="tag").options == ["good", "odd"]
    shown = app.dataframe[0].value
    assert dict(zip(shown["trajectory_id"], shown["tags"], strict=True))["p"] == "good, odd"
    app.selectbox(key="tag").set_value("odd").run()
    assert list(app.dataframe[0].value["trajectory_id"]) == ["z", "p"]
    app.text_input(key="text").set_value("look *").run()
    assert list(app.dataframe[0].value["trajectory_id"]) == ["z"]
    click_row(app, "trajectories_table", 0)
    assert page_of(app) == "trajectory"
    assert (app.query_params["task"], app.query_params["trajectory"]) == ("t0", "z")


def test_the_list_of_tasks_filters_by_tag(store: Store, monkeypatch: pytest.MonkeyPatch):
    write_note(store, P, Note(tags=("odd",)), seen=Note())
    app = open_page(monkeypatch, store, "tasks", kind="all")
    assert list(app.dataframe[0].value["task_id"]) == ["t0", "t1"]
    app.selectbox(key="tag").set_value("odd").run()
    assert list(app.dataframe[0].value["task_id"]) == ["t1"]


def _write_on_page(app: AppTest, text: str) -> None:
    next(area for area in app.text_area if area.label == "Note on step 1").set_value(text)
    next(button for button in app.button if button.label == "Save").click().run()


def test_a_note_is_written_on_the_page_and_kept_by_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    app = open_page(monkeypatch, store, "trajectory", trajectory="z", step=1)
    _write_on_page(app, "  **Odd** " + HOSTILE)
    assert not app.exception
    (row,) = read_notes(store, "r0", 0).to_pylist()
    assert (row["note"], row["tags"]) == ("**Odd** " + HOSTILE, [])
    assert (row["task_id"], row["trajectory_id"], row["step_index"]) == ("t0", "z", 1)
    marks = [m.get("note") for m in component(app, "chat")["messages"] if "step" in m]
    assert marks[0] is None
    assert marks[1].startswith("**Odd** <script>")
    assert "**Odd**" not in markdown_of(app)


def test_what_cannot_be_saved_is_shown_and_not_lost(store: Store, monkeypatch: pytest.MonkeyPatch):
    app = open_page(monkeypatch, store, "trajectory", trajectory="z", step=1)
    write_note(store, Z1, Note(text="theirs"), seen=Note())
    _write_on_page(app, "mine")
    assert "Somebody changed this note meanwhile" in app.error[0].value
    assert "mine" in boxes(app)
    assert [row["note"] for row in read_notes(store, "r0", 0).to_pylist()] == ["theirs"]
    app.run()
    assert not app.error


def test_a_viewer_of_a_read_only_store_shows_notes_and_keeps_none(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    write_note(store, Z1, Note(text="old", tags=("odd",)), seen=Note())
    monkeypatch.setattr(notes.os, "access", lambda *_: False)
    app = open_page(monkeypatch, store, "trajectory", trajectory="z", step=1)
    assert not app.exception
    assert "This store is read-only, so no notes are kept." in markdown_of(app)
    assert "[odd] old" in boxes(app)
    assert not app.text_area


def test_a_viewer_that_others_can_open_keeps_no_notes(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("streamlit.get_option", {"server.address": "0.0.0.0"}.get)
    app = open_page(monkeypatch, store, "trajectory", trajectory="z", step=1)
    assert "so it keeps no notes" in markdown_of(app)
    assert not app.text_area


def test_notes_of_another_trajectory_are_not_shown(store: Store, monkeypatch: pytest.MonkeyPatch):
    write_note(store, replace(Z1, trajectory_id="y"), Note(text="elsewhere"), seen=Note())
    app = open_page(monkeypatch, store, "trajectory", trajectory="z", step=1)
    assert [area.value for area in app.text_area] == ["", ""]
