"""The Graph page."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.graph import visible_part
from graphcredit.viewer.pages.parts import graph_controls as controls
from graphcredit.viewer.pages.parts.graph_panel import tinted
from graphcredit.viewer.widgets.text import label
from tests.viewer.browser import boxes, component, go, markdown_of, open_page
from tests.viewer.stores import Shared, credited, two_tasks
from tests.worlds import trajectory, write_store

CORRIDOR = " a ".join(f"s{number}" for number in range(200))
"""A way through more states than are shown at first."""


@pytest.fixture
def store(shared: Shared) -> Store:
    return shared(two_tasks, "graphgpo", "gigpo")


def _states(app: AppTest) -> list[str]:
    return [node["data"]["id"] for node in component(app, "graph")["nodes"]]


def _buttons(app: AppTest) -> list[str]:
    return [button.label for button in app.button if "parted" not in button.label]


def test_every_state_and_transition_of_a_small_graph_is_drawn(store: Store):
    app = open_page(store, "graph", task="t0", estimator="graphgpo")
    sql = "SELECT DISTINCT state_id, next_state_id FROM edges WHERE task_id = 't0'"
    rows = run_trusted_query(store, sql).table.to_pylist()
    drawn = {edge["data"]["id"] for edge in component(app, "graph")["edges"]}
    assert drawn == {f"e{row['state_id']}-{row['next_state_id']}" for row in rows}
    assert _states(app) == ["n0", "n1", "n2", "n3", "n4"]
    assert "5 of 5 states" in app.caption[0].value
    # Where most parted from the winner is said, in sight at first, and a click away.
    said = "1 of 2 rollouts that earned less than the mean parted from the others"
    assert app.button[0].label == f"a from state 0: there {said}"
    assert component(app, "graph")["sights"] == ["n0", "n1"]
    app.button[0].click().run()
    assert app.query_params["at"] == "e0-1"


def test_the_most_blamed_action_of_the_lost_trajectories_is_one_click_away(store: Store):
    app = open_page(store, "graph", task="t0", estimator="graphgpo")
    sql = """
        SELECT state_id, next_state_id, avg(graphgpo_advantage) AS advantage FROM enriched
        WHERE task_id = 't0' GROUP BY ALL ORDER BY advantage LIMIT 1
    """
    (worst,) = run_trusted_query(store, sql).table.to_pylist()
    button = next(each for each in app.button if each.label.startswith(":orange"))
    assert button.label.startswith(tinted(worst["advantage"]))
    button.click().run()
    key = f"e{worst['state_id']}-{worst['next_state_id']}"
    assert app.query_params["at"] == key
    assert component(app, "marks")["selected"] == key


def test_a_state_shows_its_text_and_ranks_its_actions(store: Store):
    app = open_page(store, "graph", task="t0", estimator="graphgpo", at="n0")
    assert boxes(app) == ["A"]
    sql = """
        SELECT action, avg(graphgpo_advantage) AS advantage FROM enriched
        WHERE task_id = 't0' AND state_id = 0 GROUP BY ALL ORDER BY advantage DESC
    """
    rows = run_trusted_query(store, sql).table.to_pylist()
    expected = [f"{tinted(row['advantage'])} {label(row['action'])} " for row in rows]
    assert len(expected) == 3
    for shown, start in zip(_buttons(app), expected, strict=True):
        assert shown.startswith(start)


def test_a_transition_links_to_its_steps(store: Store):
    app = open_page(store, "graph", task="t0", estimator="gigpo", at="e0-2")
    links = [link.proto for link in app.get("page_link")]
    assert "trajectory=x" in links[0].query_string
    assert "step=2" in links[0].query_string
    assert len(links) == 2


def test_a_step_of_the_address_selects_its_transition(store: Store):
    app = open_page(store, "graph", task="t0", trajectory="x", step=3)
    marks = component(app, "marks")
    assert marks["selected"] == "e2-4"
    assert marks["path"] == ["n0", "n1", "n2", "n4", "e0-1", "e1-0", "e0-2", "e2-4"]


def test_the_steps_of_a_lost_trajectory_are_ranked_by_their_own_advantage(store: Store):
    app = open_page(store, "graph", task="t0", estimator="graphgpo", trajectory="z")
    sql = """
        SELECT step_index, action, graphgpo_advantage AS advantage FROM enriched
        WHERE trajectory_id = 'z' ORDER BY advantage DESC, step_index
    """
    rows = run_trusted_query(store, sql).table.to_pylist()
    expected = [
        f"{tinted(row['advantage'])} step {row['step_index']}{label(': ' + row['action'])} "
        for row in rows
    ]
    assert len(expected) == 2
    for shown, start in zip(_buttons(app), expected, strict=True):
        assert shown.startswith(start)
    app.button[1].click().run()
    assert app.query_params["at"].startswith("e0-")


def test_a_large_graph_starts_with_what_matters_and_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = trajectory("long", CORRIDOR)
    won = trajectory("won", "s0 b s5 b s6 b won", rewards=[0, 0, 1], success=True)
    store = credited(tmp_path / "s", [*long, *won])
    app = open_page(store, "graph", view="around", at="n100")
    assert _states(app) == ["n98", "n99", "n100", "n101", "n102"]
    app = go(app, "graph", run="r0", iteration=0, task="t0", trajectory="won", view="trajectory")
    assert len(_states(app)) == 4
    app = go(app, "graph", run="r0", iteration=0, task="t0")
    # What matters: the best path, and the transitions with the most credit and blame.
    assert {"n0", "n5", "n6"} < {*_states(app)}
    assert len(_states(app)) <= visible_part.READABLE
    monkeypatch.setattr(visible_part, "MOST", 50)
    app = go(app, "graph", run="r0", iteration=0, task="t0", view="everything")
    assert "50 of 201 states" in app.caption[0].value


def test_merged_texts_are_shown_with_their_likeness_and_difference(tmp_path: Path):
    other = trajectory("zz", ["A", "a", "a HALL", "b", "A"])
    first = trajectory("z", ["A", "a", "a hall", "b", "A"])
    store = write_store(tmp_path / "s", [*first, *other])
    merge = MergeSettings(normalise=("casefold",))
    assign_credit(store, CreditSettings(estimators=configure(["graphgpo"]), merge=merge))
    app = open_page(store, "graph", at="n1")
    assert "2 texts map to this state" in markdown_of(app)
    # One of two words is equal in each.
    assert "50% alike, 1 visit" in [expander.label for expander in app.expander]
    assert boxes(app) == ["a hall", "  a \n- hall\n+ HALL"]


def test_a_click_in_the_graph_is_in_the_address_until_another_graph_is_shown(store: Store):
    app = open_page(store, "graph", run="r0", iteration=0, task="t0", at="n3")
    assert component(app, "marks")["selected"] == "n3"
    app.selectbox(key="choose_task").select("t1").run()
    assert "at" not in app.query_params
    assert component(app, "marks")["selected"] is None


def test_the_list_of_states_selects_without_a_mouse(store: Store):
    app = open_page(store, "graph", task="t0")
    app.selectbox(key="graph_state").select("n2").run()
    assert component(app, "marks")["selected"] == "n2"
    assert boxes(app) == ["C"]


@pytest.mark.parametrize("at", ["n99", "e0-99", "<script>", "n", "e1"])
def test_an_address_that_names_nothing_selects_nothing(store: Store, at: str):
    app = open_page(store, "graph", task="t0", at=at, view="no such")
    assert component(app, "marks")["selected"] is None
    named = [warning.value for warning in app.warning]
    assert named == [
        "The address asks for the part `no such`, which is not here: `All` is shown.",
        f"The address asks for the state or transition `{at}`, which is not here: `none` is shown.",
    ]
    assert {"at", "view"} & {*app.query_params} == set()


def test_a_damaged_graph_is_named(tmp_path: Path):
    store = credited(tmp_path / "s", two_tasks())
    (store.graph_dir("r0", 0) / "nodes.parquet").write_bytes(b"PAR1 no PAR1")
    app = open_page(store, "graph", task="t0")
    assert "cannot be shown" in app.error[0].value


def test_a_graph_without_a_winner_says_so(store: Store):
    app = open_page(store, "graph", task="t1")
    assert "nobody is known to have won" in app.caption[0].value


def test_picking_nothing_clears_the_address(monkeypatch: pytest.MonkeyPatch):
    params = {"at": "n1", "step": "3", "task": "t0"}
    monkeypatch.setattr(controls.st, "query_params", params)
    controls.pick("")
    assert params == {"task": "t0"}
