"""The trajectories that a user looks for."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries import trajectories as queries
from tests.viewer.browser import click_row, markdown_of, open_page, page_of
from tests.viewer.stores import credited, two_tasks
from tests.worlds import trajectory

ESTIMATORS = ("graphgpo", "gigpo")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return trajectories x (4 steps, won), y, z, p, q (2 steps, lost) and u (1 step, no end)."""
    unfinished = trajectory("u", "A a B", success=None, thought="I am Lost")
    root = tmp_path_factory.mktemp("found") / "s"
    return credited(root, [*two_tasks(), *unfinished], names=ESTIMATORS)


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
    app = open_page(store, "tasks", list="trajectories")
    assert "5 rollouts, the first 2 of them shown." in markdown_of(app)


def test_the_page_leads_to_the_trajectory(store: Store):
    app = open_page(store, "tasks", list="trajectories", order="name", text="Z")
    assert list(app.dataframe[0].value["trajectory_id"]) == ["z"]
    click_row(app, "trajectories_table", 0)
    assert page_of(app) == "trajectory"
    assert (app.query_params["task"], app.query_params["trajectory"]) == ("t0", "z")
