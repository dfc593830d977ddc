"""The summary of an iteration is what its steps and its credit add up to, or it is not current."""

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration import summary
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from graphcredit.store import Store
from graphcredit.store.provenance.summary import summary_paths, summary_state
from graphcredit.store.sql.catalog import run_trusted_query
from tests.worlds import trajectory, worked_example, write_store

NAMES = ("grpo", "gigpo", "graphgpo")


def _credit(store: Store, *names: str, batch_rows: int = 1 << 17, only: int | None = None) -> None:
    settings = CreditSettings(estimators=configure(names or NAMES), batch_rows=batch_rows)
    assign_credit(store, settings, iteration=only)


def _world(root: Path) -> Store:
    """Return three tasks in two shards; among their trajectories are some that are incomplete."""
    dead = trajectory("dead", "A a B b A", success=None, task_id="t1", rewards=[1, 2])
    torn = trajectory("torn", "A a B b C", task_id="t1", invalid=(0, 1), success=True)
    torn[1]["state"] = "D"
    lost = [row for name in ("p", "q") for row in trajectory(name, "A a B a A", task_id="t2")]
    first = [*worked_example(), *dead[:1], *lost]
    return write_store(root, first, [*worked_example("t1"), *dead[1:], *torn])


def _rows(store: Store, name: str, *key: str) -> dict[Any, dict[str, Any]]:
    path = summary_paths(store, "r0", 0)[name]
    rows = pq.read_table(path, partitioning=None).to_pylist()
    found = {tuple(row[part] for part in key): row for row in rows}
    assert len(found) == len(rows)
    return found


def _steps(store: Store) -> dict[str, list[dict[str, Any]]]:
    sql = "FROM enriched ORDER BY trajectory_id, step_index"
    steps: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in run_trusted_query(store, sql).table.to_pylist():
        steps[row["trajectory_id"]].append(row)
    return steps


def _bars(values: list[float]) -> tuple[float, list[int]]:
    """Return the scale and the bars of some advantages, by comparing each with each bar."""
    scale = 0.0
    if any(values):
        scale = 2.0**-149
        while scale < max(map(abs, values)):
            scale *= 2
    bars = [0] * 17
    for value in values:
        above = sum(abs(value) > scale * bar / 8 for bar in range(8))
        bars[8 + (above if value > 0 else -above)] += 1
    return scale, bars


@pytest.mark.parametrize("batch_rows", [1 << 17, 4])
def test_it_is_what_the_steps_and_their_credit_add_up_to(tmp_path: Path, batch_rows: int):
    store = _world(tmp_path / "s")
    _credit(store, batch_rows=batch_rows)
    played = _rows(store, "trajectories", "task_id", "trajectory_id")
    summed = _rows(store, "advantages", "trajectory_id", "estimator")
    steps = _steps(store)
    assert {name for _, name in played} == set(steps)
    for (task, name), row in played.items():
        own = steps[name]
        is_complete = own[0]["state_id"] is not None
        signs = [[np.sign(step[f"{e}_advantage"] or 0) for e in NAMES] for step in own]
        assert row == {
            "task_id": own[0]["task_id"],
            "trajectory_id": name,
            "num_steps": len(own),
            "num_invalid": sum(not step["is_action_valid"] for step in own),
            "return": pytest.approx(sum(step["reward"] for step in own)),
            "success": own[-1]["success"],
            "is_complete": is_complete,
            "num_alone": sum(s["state_group_size"] == 1 for s in own) if is_complete else None,
            "num_disagreeing": sum({-1, 1} <= set(s) for s in signs) if is_complete else None,
        }
        assert task == own[0]["task_id"]
        assert ((name, "grpo") in summed) == is_complete
    assert {e for _, e in summed} == set(NAMES)
    for (name, estimator), row in summed.items():
        values = [step[f"{estimator}_advantage"] for step in steps[name]]
        scale, bars = _bars(values)
        assert (row["num_steps"], row["most"], row["least"]) == (
            len(values),
            max(values),
            min(values),
        )
        assert row["total"] == pytest.approx(sum(values), abs=1e-12)
        assert row["squares"] == pytest.approx(sum(v * v for v in values))
        assert (row["scale"], row["bars"]) == (scale, bars)


def test_bars_by_hand():
    # Scale 1: 0.25 ends the second bar of eight, and the next number begins the third.
    next_up = float(np.nextafter(np.float32(0.25), np.float32(1)))
    values = np.array([0, 0.25, next_up, 1, -1, -1e-9, np.nan, 0, 0, 0.5, -0.5, np.nan, -np.inf])
    names = pa.array(["mixed", "zero", "half", "unknown"])
    start = np.array([0, 7, 9, 11, 13])
    rows = summary._advantages(names, start, "e", values.astype(np.float32)).to_pylist()
    mixed = [0] * 17
    for bar in (0, 2, 3, 8, -8, -1):
        mixed[8 + bar] += 1
    zero, half, nothing = [0] * 17, [0] * 17, [0] * 17
    zero[8], half[0], half[16] = 2, 1, 1
    assert [row["bars"] for row in rows] == [mixed, zero, half, nothing]
    assert [row["scale"] for row in rows] == [1.0, 0.0, 0.5, 0.0]
    assert [row["num_steps"] for row in rows] == [6, 2, 2, 0]
    assert [row["most"] for row in rows] == [1.0, 0.0, 0.5, None]
    assert [row["least"] for row in rows] == [-1.0, 0.0, -0.5, None]
    assert (rows[2]["total"], rows[2]["squares"]) == (0.0, 0.5)


def test_credit_that_is_kept_is_summed_too(tmp_path: Path):
    store = _world(tmp_path / "s")
    _credit(store, "grpo")
    first = _rows(store, "advantages", "trajectory_id", "estimator")
    _credit(store, "gigpo")
    both = _rows(store, "advantages", "trajectory_id", "estimator")
    assert {key: row for key, row in both.items() if key[1] == "grpo"} == first
    assert len(both) == 2 * len(first)


def _state(store: Store) -> str:
    return summary_state(store, store.shards("r0", 0))


def test_it_is_current_until_a_shard_is_added_changed_or_lost(tmp_path: Path):
    store = _world(tmp_path / "s")
    assert _state(store) == "none"
    _credit(store)
    assert _state(store) == "current"
    shard = store.shards()[0]
    late = store.steps_dir("r0", 0) / "late.parquet"
    shutil.copy(shard.path, late)
    assert _state(store) == "stale"
    late.unlink()
    assert _state(store) == "current"
    # Another program rewrites a credit shard with the same configuration and other numbers.
    table, content = pq.read_table(shard.credit_path), shard.credit_path.read_bytes()
    shard.credit_path.unlink()
    assert _state(store) == "stale"
    pq.write_table(table.slice(0, 0), shard.credit_path)
    assert _state(store) == "stale"
    shard.credit_path.write_bytes(content)
    assert _state(store) == "current"


def test_half_a_summary_and_one_of_another_credit_are_not_current(tmp_path: Path):
    store = _world(tmp_path / "s")
    _credit(store)
    paths = summary_paths(store, "r0", 0)
    old = paths["advantages"].read_bytes()
    _credit(store, "rloo")
    new = paths["advantages"].read_bytes()
    paths["advantages"].write_bytes(old)
    assert _state(store) == "stale"
    paths["advantages"].write_bytes(new[:-40])
    assert _state(store) == "unreadable"
    paths["advantages"].unlink()
    assert _state(store) == "unreadable"
    paths["trajectories"].unlink()
    assert _state(store) == "none"


def test_other_iterations_do_not_matter(tmp_path: Path):
    store = _world(tmp_path / "s")
    _credit(store)
    write_store(store.root, worked_example(), iteration=1)
    _credit(store, only=1)
    assert _state(store) == "current"


def test_an_iteration_without_a_complete_trajectory_has_a_summary(tmp_path: Path):
    store = _world(tmp_path / "s")
    write_store(store.root, trajectory("dead", "A a B", success=None), iteration=1)
    _credit(store, batch_rows=1)
    assert summary_state(store, store.shards("r0", 1)) == "current"
    path = summary_paths(store, "r0", 1)["advantages"]
    assert pq.read_table(path, partitioning=None).num_rows == 0
