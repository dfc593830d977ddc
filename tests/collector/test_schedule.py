"""Who plays what next, and what is left to play after whatever is in the store."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.environments.base import Task
from graphcredit.collector.playing.resume import missing_rollouts
from graphcredit.collector.playing.schedule import Rollout, Schedule, Settings
from graphcredit.store import Store, create_store
from graphcredit.store.errors import InputError, OptionError
from tests.worlds import trajectory, write_store

A, B, C = (Task(environment="corridor", spec=spec) for spec in "abc")

MODEL = Settings(
    policy="policy-000001", seed=0, max_steps=5, oracle=False, engine="hf", weights="9f"
)


@pytest.mark.parametrize(
    ("extra", "is_alike"),
    [
        ({}, True),
        ({"note": "of the caller"}, True),
        ({"weights": "30"}, False),
        ({"engine": "vllm"}, False),
        ({"dtype": "bfloat16"}, False),
        ({"seed": 1}, False),
        ({"tree_size": 4}, False),
    ],
)
def test_what_was_played_by_another_model_of_the_same_name_was_played_otherwise(
    extra: dict[str, object], is_alike: bool
):
    assert MODEL.are_those_of(json.loads(MODEL.to_json(**extra))) is is_alike


def _schedule(rollouts: list[Rollout]) -> Schedule[Rollout]:
    return Schedule(rollouts, lambda rollout: rollout.task.task_id)


def _rollouts(*tasks: Task, group_size: int) -> list[Rollout]:
    return [Rollout(task=t, index=i, attempt=0) for t in tasks for i in range(group_size)]


def test_a_worker_stays_with_its_task_until_it_is_done():
    schedule = _schedule(_rollouts(A, B, group_size=2))
    first = schedule.next_piece(None)
    other = schedule.next_piece(None)
    second = schedule.next_piece(first)
    assert (first, second) == tuple(_rollouts(A, group_size=2))
    assert other == Rollout(task=B, index=0, attempt=0)


def test_a_worker_without_a_task_takes_a_fresh_one_before_it_helps_another():
    schedule = _schedule(
        _rollouts(A, group_size=1) + _rollouts(B, group_size=3) + _rollouts(C, group_size=1)
    )
    mine = schedule.next_piece(None)
    theirs = schedule.next_piece(None)
    assert mine is not None
    assert theirs is not None
    assert (mine.task, theirs.task) == (A, B)
    mine = schedule.next_piece(mine)
    assert mine is not None
    assert mine.task == C
    mine = schedule.next_piece(mine)
    assert mine == Rollout(task=B, index=1, attempt=0)


def test_every_rollout_is_handed_out_once():
    rollouts = _rollouts(A, B, C, group_size=4)
    schedule = _schedule(rollouts)
    last: list[Rollout | None] = [None] * 5
    handed: list[Rollout] = []
    while (rollout := schedule.next_piece(last[len(handed) % 5])) is not None:
        last[len(handed) % 5] = rollout
        handed.append(rollout)
    assert sorted(r.trajectory_id for r in handed) == [r.trajectory_id for r in rollouts]


def test_with_nothing_to_play_nothing_is_handed_out():
    assert _schedule([]).next_piece(None) is None


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
