"""Distances on the transitions of earlier iterations, statistics of this one."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphcredit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.credit.steps.batches import plan_batches
from graphcredit.store import Store, read_steps
from graphcredit.store.errors import OptionError
from tests.worlds import trajectory, worked_example, write_store

ESTIMATORS = ("grpo", "gigpo", "rewardflow", "graphgpo")


def _two_iterations(root: Path) -> Store:
    """Write a win by A, B, C at first; then two failures, of which one got to B."""
    won = trajectory("x", "A a B b C c won", rewards=[0, 0, 1], success=True)
    write_store(root, [*won, *trajectory("other", "A a Z", task_id="t9")], iteration=0)
    return write_store(
        root, [*trajectory("x", "A a B d D"), *trajectory("y", "A e E")], iteration=1
    )


def _credit(store: Store, window: int, **options: Any) -> list[dict[str, Any]]:
    settings = CreditSettings(estimators=configure(ESTIMATORS), graph_window=window, **options)
    assign_credit(store, settings)
    (shard,) = store.shards(iteration=1)
    return pq.ParquetFile(shard.credit_path).read().to_pylist()


def test_a_group_without_success_learns_the_way_from_the_iteration_before(tmp_path: Path):
    store = _two_iterations(tmp_path / "s")
    alone, wide = _credit(store, 0), _credit(store, 1)
    assert [row["goal_distance"] for row in alone] == [None] * 3
    assert {row["graphgpo_step_advantage"] for row in alone} == {0.0}
    # d: A 3, B 2, C 1 from the first iteration; D and E lead nowhere.
    assert [row["goal_distance"] for row in wide] == [3, 2, 3]
    assert [row["next_goal_distance"] for row in wide] == [2, None, None]
    # At A the step to B costs 1 + 2, the step to E 1 + (3 + 1).
    rewards = [row["graphgpo_step_reward"] for row in wide]
    assert rewards == pytest.approx([10 * 0.1**3, 10 * 0.1**5, 10 * 0.1**5])
    assert wide[0]["graphgpo_step_advantage"] == pytest.approx(0.7071, abs=2e-4)
    assert wide[0]["rewardflow_step_reward"] == pytest.approx(0.9**2 - 0.9**3)


def test_a_goal_that_only_the_window_reached_is_known_and_is_no_success(tmp_path: Path):
    store = _two_iterations(tmp_path / "s")
    counts = {
        window: assign_credit(
            store, CreditSettings(estimators=configure(ESTIMATORS), graph_window=window)
        )["r0", 1]
        for window in (0, 1)
    }
    assert {w: report.num_groups_without_success for w, report in counts.items()} == {0: 1, 1: 1}
    assert {w: report.num_groups_without_goal for w, report in counts.items()} == {0: 1, 1: 0}


def test_statistics_and_ids_stay_those_of_the_iteration(tmp_path: Path):
    store = _two_iterations(tmp_path / "s")
    alone, wide = _credit(store, 0), _credit(store, 1)
    names = ("group_size", "group_success_rate", "state_group_size", "state_id", "next_state_id")
    for mine, other in zip(alone, wide, strict=True):
        for name in (*names, "grpo_advantage", "gigpo_advantage"):
            assert mine[name] == other[name], name
    assert [row["group_size"] for row in wide] == [2, 2, 2]


def test_states_that_only_the_window_has_follow_with_no_visits(tmp_path: Path):
    store = _two_iterations(tmp_path / "s")
    _credit(store, 5)
    nodes = pq.ParquetFile(store.graph_dir("r0", 1) / "nodes.parquet").read().to_pylist()
    assert [(n["state"], n["visits"], n["is_goal"]) for n in nodes] == [
        ("A", 2, False),
        ("B", 1, False),
        ("D", 1, False),
        ("E", 1, False),
        ("C", 0, False),
        (None, 0, True),
    ]
    edges = pq.ParquetFile(store.graph_dir("r0", 1) / "edges.parquet").read().to_pylist()
    assert [edge["action"] for edge in edges] == ["a", "d", "e"]


def test_the_window_ends_where_it_is_told_to(tmp_path: Path):
    root = tmp_path / "s"
    write_store(root, worked_example(), iteration=0)
    write_store(root, trajectory("x", "A a D"), iteration=1)
    store = write_store(root, trajectory("x", "A a D"), iteration=2)
    for window, distance in ((1, None), (2, 2)):
        settings = CreditSettings(estimators=configure(["graphgpo"]), graph_window=window)
        assign_credit(store, settings, iteration=2)
        (shard,) = store.shards(iteration=2)
        row = pq.ParquetFile(shard.credit_path).read().to_pylist()[0]
        assert row["goal_distance"] == distance


def test_batches_change_nothing(tmp_path: Path):
    for number in (0, 1):
        rows = [step for t in range(4) for step in worked_example(f"task-{t}")]
        store = write_store(tmp_path / "s", rows, iteration=number)
    assert len(plan_batches(store.shards(iteration=1), 1).shards_of_batch) == 4
    assert _credit(store, 1) == _credit(store, 1, batch_rows=1)


@pytest.mark.parametrize("window", [0, 1])
def test_a_table_with_both_iterations_gets_the_same_credit(tmp_path: Path, window: int):
    store = _two_iterations(tmp_path / "s")
    kept = _credit(store, window)
    table = pa.concat_tables(read_steps(store))
    credit = graphcredit.compute(table, estimators=list(ESTIMATORS), graph_window=window)
    of_second = credit.filter(table["iteration"].combine_chunks().to_numpy() == 1).to_pylist()
    for mine, row in zip(of_second, kept, strict=True):
        assert mine == {name: row[name] for name in mine}


def test_a_negative_window_is_refused(tmp_path: Path):
    with pytest.raises(OptionError, match="graph_window must be at least 0: got -1"):
        _credit(_two_iterations(tmp_path / "s"), -1)
