"""What is left to play, after whatever is in the store."""

from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.environments.base import Task
from graphcredit.collector.playing.resume import missing_rollouts
from graphcredit.collector.playing.schedule import Settings
from graphcredit.store import Store, create_store
from graphcredit.store.errors import InputError, OptionError
from tests.worlds import trajectory, write_store

A, B = (Task(environment="corridor", spec=spec) for spec in "ab")
SETTINGS = Settings(policy="random", seed=0, max_steps=5, oracle=False)


def _played(
    name: str, *, success: bool | None, settings: Settings = SETTINGS
) -> list[dict[str, Any]]:
    steps = trajectory(name, "X go Y go Z", success=success, task_id=name.partition(":")[0])
    steps[0]["extra"] = settings.to_json()
    return steps


def _missing(store: Store, *tasks: Task, group_size: int = 2) -> list[str]:
    missing = missing_rollouts(
        store, run_id="r0", iteration=0, tasks=tasks, group_size=group_size, settings=SETTINGS
    )
    return [rollout.trajectory_id for rollout in missing.rollouts]


def test_in_an_empty_store_everything_is_missing_task_by_task(tmp_path: Path):
    store = create_store(tmp_path / "store")
    assert _missing(store, A, B) == ["corridor-a:0", "corridor-a:1", "corridor-b:0", "corridor-b:1"]


def test_complete_trajectories_are_not_played_again(tmp_path: Path):
    store = write_store(
        tmp_path / "store",
        _played("corridor-a:0", success=True),
        _played("corridor-b:1", success=False),
    )
    assert _missing(store, A, B) == ["corridor-a:1", "corridor-b:0"]


def test_an_incomplete_trajectory_keeps_its_id_and_is_played_again_under_another(tmp_path: Path):
    store = write_store(
        tmp_path / "store",
        [*_played("corridor-a:0", success=None), *_played("corridor-a:0.1", success=None)],
        [*_played("corridor-b:0", success=None), *_played("corridor-b:0.1", success=True)],
    )
    assert _missing(store, A, B, group_size=1) == ["corridor-a:0.2"]


def test_trajectories_of_other_runs_and_iterations_do_not_count(tmp_path: Path):
    played = _played("corridor-a:0", success=True)
    store = write_store(tmp_path / "store", played, run_id="r1")
    write_store(store.root, played, iteration=1)
    assert _missing(store, A, group_size=1) == ["corridor-a:0"]


@pytest.mark.parametrize("success", [True, None])
def test_a_group_that_was_begun_otherwise_is_refused(tmp_path: Path, success: bool | None):
    other = Settings(policy="oracle:0.3", seed=0, max_steps=5, oracle=False)
    store = write_store(
        tmp_path / "store", _played("corridor-a:0", success=success, settings=other)
    )
    assert _missing(store, B, group_size=1) == ["corridor-b:0"]
    with pytest.raises(OptionError, match=r"corridor-a:0 is in the store with .*oracle:0\.3"):
        _missing(store, A)


def test_a_trajectory_that_lost_its_first_step_is_refused_by_that_name(tmp_path: Path):
    lost = _played("corridor-a:1", success=True)[1:]
    store = write_store(tmp_path / "store", _played("corridor-a:0", success=True), lost)
    with pytest.raises(
        InputError, match=r"must have its first step, .* corridor-a:1 is in the store without it"
    ):
        _missing(store, A)
