"""What is played alike, and in which order rollouts are handed out."""

import json

import pytest

from graphcredit.collector.environments.base import Task
from graphcredit.collector.playing.schedule import Rollout, Schedule, Settings

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
