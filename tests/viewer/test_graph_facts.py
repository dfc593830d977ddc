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
    choices,
    edge_steps,
    names_on,
    states_on,
    step_ends,
    trajectories,
)
from graphcredit.viewer.graph.importance import disputed, important, partings, remarkable
from graphcredit.viewer.graph.shading import Shading
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
    assert {c.action: c.success_rate for c in found} == {"a": 0.5, "c": 0.5, "q": 0.0}


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
    assert list(found.items()) == [("y", (2, False)), ("z", (2, False)), ("x", (4, True))]


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


def test_the_most_credited_and_the_most_blamed_transitions_are_remarkable(store: Store):
    graph = _graph(store)
    first, *_, last = remarkable(graph, Shading(advantage="a"), most=4)
    values = [edge.advantage for edge in graph.edges if edge.advantage is not None]
    assert first.advantage == max(values)
    assert last.advantage == min(values)


def test_changed_signs_come_first_however_small(store: Store):
    graph = _graph(store)
    others = {edge.ends: (edge.advantage or 0.0) + 100 for edge in graph.edges}
    flipped = next(edge for edge in graph.edges if edge.ends == (2, 4))
    others[2, 4] = -0.001
    assert flipped.advantage is not None
    assert flipped.advantage > 0
    blamed = {e.ends for e in graph.edges if e.advantage is not None and e.advantage < 0}
    ranked = remarkable(graph, Shading(advantage="a", others=others), most=20)
    assert {edge.ends for edge in ranked[: len(blamed) + 1]} == {*blamed, (2, 4)}


def test_won_and_failed_rollouts_part_where_their_steps_differ(store: Store):
    # At C, x won with d and y failed with e: 1 - 0 each. At A, c was taken by x, which won, and y,
    # not by z: 1/2 - 0; so with a (x and z, not y); q was taken by z alone: 0 - 1/2.
    steps = task_steps(store, **HERE, task_id="t0")
    assert partings(steps) == [(2, 3), (2, 4), (0, 0), (0, 1), (0, 2)]
    # Nobody won.
    assert partings(task_steps(store, **HERE, task_id="t1")) == []


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
    ends = [edge.ends for edge in important(graph, Shading(advantage="a"), steps)]
    best, *_, worst = (e.ends for e in remarkable(graph, Shading(advantage="a"), most=12))
    assert ends[:2] == [best, worst]
    assert {partings(steps)[0], disputed(steps)[0]} <= {*ends[:4]}
    assert len({*ends}) == len(ends)
