"""Search in all texts of a store."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from graphcredit.store import Store
from graphcredit.viewer.queries.texts import found_texts
from tests.viewer.browser import component, markdown_of, open_page
from tests.viewer.stores import credited, hostile
from tests.worlds import trajectory

ANY: dict[str, Any] = {"run_id": None, "iteration": None}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store in which `Gate 100%` stands in two runs, in three steps of two rollouts."""
    root: Path = tmp_path_factory.mktemp("search") / "s"
    way = ["hall", "open", "the Gate 100%", "go", "end"]
    credited(root, trajectory("won", way, success=True))
    lost = trajectory("lost", ["hall", "go", "yard"])
    lost[0]["thought"] = "Is gate 100% open?"
    return credited(root, [*lost, *trajectory("none", ["hall", "go", "yard"])], run_id="r1")


def test_words_are_found_in_every_run_and_counted(store: Store):
    found = found_texts(store, **ANY, words="gate 100%", success=None)
    assert (found.num_steps, found.num_rollouts, found.num_succeeded) == (3, 2, 1)
    places = [(row["run_id"], row["trajectory_id"], row["step_index"]) for row in found.places]
    assert places == [("r0", "won", 0), ("r1", "lost", 0)]
    assert [row["num_steps"] for row in found.places] == [2, 1]
    assert found_texts(store, **ANY, words="gate 100%", success=False).num_rollouts == 1
    assert found_texts(store, **ANY, words="gate 1_0%", success=None).places == []


def test_the_page_marks_them_and_leads_to_their_step(store: Store):
    app = open_page(store, "search", find="gate 100%")
    assert "3 steps of 2 rollouts, 1 succeeded." in markdown_of(app)
    first, second = component(app, "hits")["hits"]
    assert (first["before"], first["found"], first["after"]) == ("the ", "Gate 100%", "")
    assert first["title"] == "r0/0 · t0 · won · step 0 and 1 more"
    assert (second["before"], second["found"]) == ("Is ", "gate 100%")
    assert "find=gate+100%25" in second["address"]
    place = {
        name: values[0] for name, values in parse_qs(urlsplit(second["address"]).query).items()
    }
    app = open_page(store, "trajectory", **place)
    assert (app.query_params["run"], app.query_params["trajectory"]) == ("r1", "lost")
    assert component(app, "chat")["wanted"] == "gate 100%"


def test_found_text_is_shown_as_it_is(tmp_path: Path):
    app = open_page(credited(tmp_path / "s", hostile()), "search", find="<script>")
    assert "<script>" not in markdown_of(app)
    assert component(app, "hits")["hits"][0]["after"].startswith("alert(1)</script> ![x](")
