"""Lists are the same with a summary and without one, and a stale summary is not read."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphcredit.store import Store
from graphcredit.store.provenance.summary import summary_paths
from graphcredit.viewer.queries.iterations import iteration_facts
from graphcredit.viewer.queries.tasks import task_facts
from graphcredit.viewer.queries.trajectories import OUTCOMES, against_outcome, found_trajectories
from tests.viewer.stores import credited, two_tasks
from tests.worlds import step_table, trajectory, worked_example, write_store

NAMES = ("graphgpo", "gigpo", "grpo")
PLACE: dict[str, Any] = {"run_id": "r0", "iteration": 0}


def _write(root: Path, iteration: int = 0) -> Store:
    """Write tasks of which some are disputed, some lost, and some have incomplete trajectories."""
    dead = trajectory("dead", "A a B b A", success=None, rewards=[1, 2], invalid=(1,))
    torn = trajectory("torn", "A a B b C", task_id="t2", success=True)
    torn[1]["state"] = "D"
    slow = trajectory(
        "slow", "A q A q A a B b C", task_id="t2", success=True, rewards=[0, 0, -1, 3]
    )
    return credited(root, [*two_tasks(), *dead], [*torn, *slow], names=NAMES, iteration=iteration)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return _write(tmp_path_factory.mktemp("world") / "s")


@pytest.fixture
def store(world: Store, tmp_path: Path) -> Store:
    """Return a copy of the world, to be changed."""
    return Store(shutil.copytree(world.root, tmp_path / "s"))


def _answers(store: Store) -> list[list[dict[str, Any]]]:
    tables = [iteration_facts(store, run_id="r0")]
    for name in NAMES:
        for others in (NAMES, (name,)):
            asked: dict[str, Any] = PLACE | {"estimator": name, "others": others}
            tables += [task_facts(store, **asked), found_trajectories(store, **asked)]
        tables += [
            against_outcome(store, **PLACE, estimator=name, success=success, num_rows=9)
            for success in (False, True)
        ]
    tables += [
        found_trajectories(store, **PLACE, estimator="grpo", others=NAMES, outcome=outcome)
        for outcome in OUTCOMES
    ]
    assert sum(table.num_rows for table in tables) > 50
    return [_rounded(table.to_pylist()) for table in tables]


def _rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: round(v, 12) if isinstance(v, float) else v for name, v in row.items()}
        for row in rows
    ]


def test_pages_are_the_same_with_a_summary_and_without(world: Store, store: Store):
    shutil.rmtree(store.root / "summary")
    assert _answers(world) == _answers(store)


def _forge(store: Store) -> None:
    """Make a summary say what no shard does: only a reader of it sees that."""
    path = summary_paths(store, "r0", 0)["trajectories"]
    table = pq.read_table(path, partitioning=None)
    index = table.schema.get_field_index("num_steps")
    pq.write_table(table.set_column(index, "num_steps", [[99] * table.num_rows]), path)


def _steps(store: Store) -> int:
    facts = task_facts(store, **PLACE, estimator="grpo", others=NAMES)
    return sum(facts["num_steps"].to_pylist())


def test_a_current_summary_is_read_and_a_stale_one_is_not(store: Store):
    number = _steps(store)
    _forge(store)
    assert _steps(store) == 99 * 8
    late = trajectory("late", "A a B b C", success=True, task_id="t2")
    pq.write_table(step_table(late), store.steps_dir("r0", 0) / "late.parquet")
    assert _steps(store) == number + len(late)


def test_iterations_with_and_without_a_summary_are_one_run(store: Store):
    _write(store.root, iteration=1)
    write_store(store.root, worked_example(), iteration=2)
    shutil.rmtree(store.summary_dir("r0", 1))
    first, second, third = iteration_facts(store, run_id="r0").to_pylist()
    assert _rounded([first | {"iteration": 1}]) == _rounded([second])
    assert (third["num_trajectories"], third["num_credited"]) == (3, 0)
