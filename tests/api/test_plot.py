"""Charts for notebooks have the credit of the store."""

from pathlib import Path

import pytest

import graphcredit
from graphcredit import plot
from graphcredit.store import Store
from graphcredit.store.errors import InputError
from tests.worlds import worked_example, write_store

pytest.importorskip("altair")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = write_store(tmp_path_factory.mktemp("plot") / "s", worked_example())
    graphcredit.credit(store, estimators="grpo,rloo,graphgpo")
    return store


def test_a_trajectory_has_a_bar_for_each_step_and_estimator(store: Store):
    (rows,) = plot.credit(store, trajectory_id="x").to_dict()["datasets"].values()
    steps = graphcredit.scan(store, "steps").collect().filter(trajectory_id="x").height
    assert len(rows) == 3 * steps
    assert {row["estimator"] for row in rows} == {"grpo", "rloo", "graphgpo"}


def test_estimators_that_differ_by_a_factor_correlate_fully(store: Store):
    (rows,) = plot.estimators(store, task_id="t0").to_dict()["datasets"].values()
    pairs = {(row["estimator"], row["with"]): row["correlation"] for row in rows}
    assert len(pairs) == 9
    assert pairs["grpo", "rloo"] == pytest.approx(1)
    assert pairs["grpo", "graphgpo"] < 1


def test_a_graph_has_the_mean_advantage_of_each_transition(store: Store):
    steps = graphcredit.scan(store).collect()
    chart = plot.graph(store, task_id="t0", estimator="graphgpo").to_dict()
    ways, states = (chart["datasets"][layer["data"]["name"]] for layer in chart["layer"][:2])
    assert len(states) == graphcredit.to_igraph(store, task_id="t0").vcount()
    drawn = {(way["actions"], way["steps"]): way["advantage"] for way in ways}
    # x and z go from A to B by a, y does not.
    shared = steps.filter(state="A", action="a", next_state="B")["graphgpo_advantage"]
    assert shared.len() > 1
    assert drawn["a", shared.len()] == pytest.approx(shared.mean())
    with pytest.raises(InputError, match="reach_advantage"):
        plot.graph(store, task_id="t0")


def test_a_name_that_is_not_there_is_refused_with_the_nearest(store: Store, tmp_path: Path):
    with pytest.raises(InputError, match=r"no task_id 't'. Did you mean 't0'\?"):
        plot.estimators(store, task_id="t")
    with pytest.raises(InputError, match="there must be credit"):
        plot.credit(write_store(tmp_path / "s", worked_example()), trajectory_id="x")
