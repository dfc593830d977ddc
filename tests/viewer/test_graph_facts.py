"""What is known of states and transitions equals SQL on the store."""

from pathlib import Path

import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.merging.table import MergeSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.sql.catalog import run_trusted_query
from graphcredit.viewer.graph.facts import (
    TrajectoryEnd,
    choices,
    edge_steps,
    names_on,
    states_on,
    step_ends,
    telling_ends,
    trajectories,
)
from graphcredit.viewer.graph.importance import disputed, forks, important, remarkable
from graphcredit.viewer.graph.task_graph import TaskGraph, read_task_graph
from graphcredit.viewer.queries.graphs import graph_tasks, state_texts, task_steps
from tests.viewer.stores import Shared, credited, two_tasks
from tests.worlds import trajectory, worked_example, write_store

HERE = {"run_id": "r0", "iteration": 0}


def _graph(store: Store, column: str = "graphgpo_advantage", iteration: int = 0) -> TaskGraph:
    return read_task_graph(store, run_id="r0", iteration=iteration, task_id="t0", column=column)


@pytest.fixture
def store(shared: Shared) -> Store:
    return shared(two_tasks, "graphgpo", "gigpo")


def test_tasks_with_a_graph_are_listed(store: Store):
    assert graph_tasks(store, **HERE) == ["t0", "t1"]


def test_actions_are_ranked_by_the_mean_advantage_of_their_steps(store: Store):
    found = choices(task_steps(store, **HERE, task_id="t0"), 0, "graphgpo_advantage")
    sql = """
        SELECT action, next_state_id, count(*)::INTEGER, avg(graphgpo_advantage)
        FROM enriched WHERE task_id = 't0' AND state_id = 0
        GROUP BY ALL ORDER BY 4 DESC
    """
    expected = run_trusted_query(store, sql, **HERE).table.to_pylist()
    assert [(c.action, c.target, c.visits) for c in found] == [
        tuple(row.values())[:3] for row in expected
    ]
    assert [c.advantage for c in found] == pytest.approx([[*row.values()][3] for row in expected])
    # x and z took a at A, and only x won; x and y took c.
    told = {c.action: (c.num_succeeded, c.num_trajectories) for c in found}
    assert told == {"a": (1, 2), "c": (1, 2), "q": (0, 1)}


def test_a_transition_has_its_steps_with_every_part_of_every_estimator(store: Store):
    steps = edge_steps(task_steps(store, **HERE, task_id="t0"), (0, 2))
    assert steps["trajectory_id"].to_pylist() == ["x", "y"]
    assert steps["step_index"].to_pylist() == [2, 0]
    parts = ("step_advantage", "episode_advantage", "advantage")
    expected = {f"{name}_{part}" for name in ("gigpo", "graphgpo") for part in parts}
    assert {*steps.column_names} == expected | {
        *("graphgpo_step_reward", "trajectory_id", "step_index", "action"),
        *("is_action_valid", "reward", "succeeded"),
    }


def test_an_incomplete_trajectory_has_no_place_in_the_graph(tmp_path: Path):
    cut = trajectory("cut", "A a B", success=None)
    store = credited(tmp_path / "s", [*worked_example(), *cut])
    assert set(trajectories(task_steps(store, **HERE, task_id="t0"))) == {"x", "y", "z"}


def test_lost_trajectories_come_first_with_their_length(store: Store):
    found = trajectories(task_steps(store, **HERE, task_id="t0"))
    assert list(found.items()) == [
        ("y", TrajectoryEnd(num_steps=2, ending="ended")),
        ("z", TrajectoryEnd(num_steps=2, ending="ended")),
        ("x", TrajectoryEnd(num_steps=4, ending="succeeded")),
    ]


def test_a_trajectory_goes_through_its_states_and_transitions(store: Store):
    steps = task_steps(store, **HERE, task_id="t0")
    assert states_on(steps, "x") == [0, 1, 0, 2, 4]
    assert names_on(steps, "x") == ["n0", "n1", "n2", "n4", "e0-1", "e1-0", "e0-2", "e2-4"]
    assert names_on(steps, "nobody") == []
    assert step_ends(steps, "x", 3) == (2, 4)
    assert step_ends(steps, "x", 4) is None


def test_the_texts_of_a_state_are_counted(tmp_path: Path):
    spaced = trajectory("zz", ["A", "a", "B  ", "b", "A"])
    store = write_store(tmp_path / "s", [*worked_example(), *spaced])
    merge = MergeSettings(normalise=("whitespace",))
    assign_credit(store, CreditSettings(estimators=configure(["graphgpo"]), merge=merge))
    texts = state_texts(store, **HERE, task_id="t0", state_id=1)
    # x stepped on from B, z ended there; zz stepped on from the text with spaces.
    assert list(texts.items()) == [("B", 2), ("B  ", 1)]
    goal = state_texts(store, **HERE, task_id="t0", state_id=_graph(store).goal or -1)
    assert list(goal) == ["won"]


def test_the_most_credited_and_the_most_blamed_transitions_that_tell_are_remarkable(store: Store):
    graph, steps = _graph(store), task_steps(store, **HERE, task_id="t0")
    told = telling_ends(steps)
    # x alone did a step from B.
    assert told == {edge.ends for edge in graph.edges} - {(1, 0)}
    ranked = remarkable(graph, told, most=20)
    values = [edge.advantage for edge in ranked if edge.advantage is not None]
    credited, blamed = ([v for v in values if (v > 0) == sign] for sign in (True, False))
    assert values == credited + blamed
    assert [edge.ends for edge in ranked if edge.ends not in told] == [(1, 0)]
    told_of = [edge.advantage or 0.0 for edge in ranked if edge.ends in told]
    assert [v for v in told_of if v > 0] == sorted((v for v in told_of if v > 0), reverse=True)
    assert [v for v in told_of if v < 0] == sorted(v for v in told_of if v < 0)


def test_failed_rollouts_leave_the_way_of_those_that_won_for_good(store: Store):
    # x went A B A C won. y left it at C with e, z at A with a.
    assert forks(task_steps(store, **HERE, task_id="t0")) == {(0, 1): 1, (2, 3): 1}
    # Nobody won, and all have one return.
    assert forks(task_steps(store, **HERE, task_id="t1")) == {}


def test_estimators_dispute_what_one_credits_and_another_blames(store: Store):
    steps = task_steps(store, **HERE, task_id="t0")
    sql = """
        WITH means AS (
            SELECT state_id, next_state_id, avg(graphgpo_advantage) AS a, avg(gigpo_advantage) AS b
            FROM enriched WHERE task_id = 't0' GROUP BY ALL
        ), shares AS (
            SELECT state_id, next_state_id, a / max(abs(a)) OVER () AS a,
                b / max(abs(b)) OVER () AS b
            FROM means
        )
        SELECT state_id, next_state_id FROM shares WHERE a * b < 0
        ORDER BY least(greatest(a, b), -least(a, b)) DESC, state_id, next_state_id
    """
    rows = run_trusted_query(store, sql, **HERE).table.to_pylist()
    assert rows
    assert disputed(steps) == [(row["state_id"], row["next_state_id"]) for row in rows]
    assert disputed(steps.drop_columns(["gigpo_advantage"])) == []


def test_reasons_to_look_take_turns(store: Store):
    graph, steps = _graph(store), task_steps(store, **HERE, task_id="t0")
    ends = [edge.ends for edge in important(graph, steps)]
    ranked = remarkable(graph, telling_ends(steps), most=12)
    worst = next(edge.ends for edge in ranked if (edge.advantage or 0.0) < 0)
    assert ends[:3] == [*[*forks(steps)][:1], worst, ranked[0].ends]
    assert disputed(steps)[0] in ends
    assert len({*ends}) == len(ends)
