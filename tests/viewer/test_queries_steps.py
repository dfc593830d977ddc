"""Steps, and those who were at the same state: by hand and by SQL."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.queries import trajectory
from tests.viewer.stores import Shared, credited, two_tasks
from tests.worlds import trajectory as steps_of
from tests.worlds import worked_example, write_store

ONE: dict[str, Any] = {"run_id": "r0", "iteration": 0}


def test_failed_trajectories_are_offered_before_those_that_succeeded(tmp_path: Path):
    unfinished = steps_of("u", "A a B", success=None)
    store = write_store(tmp_path / "s", [*worked_example(), *unfinished])
    found = trajectory.trajectories(store, **ONE, task_id="t0").to_pylist()
    facts = [(r["trajectory_id"], r["success"], r["num_steps"], r["return"]) for r in found]
    assert facts == [
        ("y", False, 2, 0.0),
        ("z", False, 2, -0.1),
        ("x", True, 4, 10.0),
        ("u", None, 1, 0.0),
    ]


def test_the_steps_of_a_trajectory_are_those_of_the_view_enriched(shared: Shared):
    store = shared(two_tasks)
    sql = "FROM enriched WHERE trajectory_id = 'x' ORDER BY step_index"
    found = trajectory.steps(store, **ONE, trajectory_id="x")
    assert found.to_pylist() == run_trusted_query(store, sql).table.to_pylist()
    assert found["state"].to_pylist() == ["A", "B", "A", "C"]


def test_steps_have_no_credit_where_none_was_assigned(tmp_path: Path):
    store = write_store(tmp_path / "s", worked_example())
    found = trajectory.steps(store, **ONE, trajectory_id="x")
    assert found["state_id"].to_pylist() == [None] * 4


def test_the_outcomes_from_a_state_are_counted_with_all_their_steps(tmp_path: Path):
    """However many steps are listed: the first ones have the most credit, and say too much."""
    many = [steps_of(f"m{n:03}", "A a B b A", task_id="t0") for n in range(600)]
    store = credited(tmp_path / "s", [*worked_example(), *chain(*many)])
    here = {**ONE, "task_id": "t0", "state_id": 0, "estimator": "graphgpo"}
    sql = """
        SELECT action, next_state_id, count(*) AS num_steps,
            count(DISTINCT trajectory_id) AS num_trajectories,
            avg(graphgpo_advantage::DOUBLE) AS advantage
        FROM enriched WHERE state_id = 0 GROUP BY ALL ORDER BY advantage DESC
    """
    expected = run_trusted_query(store, sql).table.to_pylist()
    found = trajectory.outcomes_here(store, **here).to_pylist()
    assert [{name: row[name] for name in expected[0]} for row in found] == expected
    told = {row["action"]: (row["num_steps"], row["num_succeeded"]) for row in found}
    # a: x once, z once, each of the others once; x alone succeeds, and took c later.
    assert told == {"a": (602, 1), "c": (2, 1), "q": (1, 0)}
    assert {row["action"]: row["next_state"] for row in found} == {"a": "B", "c": "C", "q": "A"}
    assert not any(row["is_goal"] for row in found)


def test_an_estimator_of_a_foreign_name_is_no_sql(shared: Shared):
    store = shared(worked_example)
    evil = "1 AS x) TO '/nowhere' --\""
    with pytest.raises(ValueError, match="not found"):
        trajectory.outcomes_here(store, **ONE, task_id="t0", state_id=0, estimator=evil)
