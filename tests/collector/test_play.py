"""One trajectory, from an environment into the store."""

from pathlib import Path
from typing import Any

from graphcredit.collector import StepRecorder
from graphcredit.collector.environments.base import Task
from graphcredit.collector.playing.episode import drive, episode
from graphcredit.collector.playing.job import Job, Outcome, trajectory_rng
from graphcredit.collector.playing.schedule import Rollout, Settings
from graphcredit.collector.policies.registry import parse_policy
from graphcredit.store import create_store, read_steps
from tests.collector.corridor import Corridor

TASK = Task(environment="corridor", spec="4")


def _play(
    root: Path, *, policy: str, max_steps: int = 10, oracle: bool = False, seed: int = 0
) -> tuple[Outcome, list[dict[str, Any]]]:
    job = Job(
        store=create_store(root),
        run_id="r0",
        iteration=0,
        policy=parse_policy(policy),
        settings=Settings(policy=policy, seed=seed, max_steps=max_steps, oracle=oracle),
        cache_dir=root,
    )
    rollout = Rollout(task=TASK, index=0, attempt=0)
    with StepRecorder(job.store, run_id="r0", iteration=0, worker_id="w0") as recorder:
        plays = iter([episode(job, Corridor(num_rooms=4), rollout, recorder)])
        (outcome,) = drive(plays, job.policy, concurrency=1)
    return outcome, [row for table in read_steps(job.store) for row in table.to_pylist()]


def _outcome(*, num_steps: int, success: bool, truncated: bool) -> Outcome:
    return Outcome(
        trajectory_id="corridor-4:0",
        num_steps=num_steps,
        success=success,
        truncated=truncated,
        note=None,
    )


def _column(steps: list[dict[str, Any]], name: str) -> list[Any]:
    return [step[name] for step in steps]


def test_a_won_trajectory_is_recorded_step_by_step(tmp_path: Path):
    outcome, steps = _play(tmp_path / "store", policy="oracle:0.0", oracle=True)
    assert outcome == _outcome(num_steps=3, success=True, truncated=False)
    assert _column(steps, "state") == ["room 0", "room 1", "room 2"]
    assert _column(steps, "next_state") == ["room 1", "room 2", "room 3"]
    assert _column(steps, "observation") == ["You are in room 0.", None, "You are in room 2."]
    assert _column(steps, "action") == ["east"] * 3
    assert _column(steps, "admissible_actions") == [["east", "west"]] * 3
    assert _column(steps, "reward") == [0.0, 0.0, 1.0]
    assert _column(steps, "oracle_distance") == [3.0, 2.0, 1.0]
    assert _column(steps, "next_oracle_distance") == [2.0, 1.0, 0.0]
    assert _column(steps, "terminated") == [False, False, True]
    assert _column(steps, "success") == [None, None, True]
    assert _column(steps, "truncated") == [False] * 3
    assert _column(steps, "policy_version") == ["oracle:0.0"] * 3
    assert set(_column(steps, "trajectory_id")) == {"corridor-4:0"}
    assert _column(steps, "extra")[1:] == [None, None]


def test_the_limit_truncates_a_trajectory_that_goes_on(tmp_path: Path):
    outcome, steps = _play(tmp_path / "store", policy="oracle:0.0", max_steps=2)
    assert outcome == _outcome(num_steps=2, success=False, truncated=True)
    assert _column(steps, "truncated") == [False, True]
    assert _column(steps, "terminated") == [False, False]
    assert _column(steps, "success") == [None, False]


def test_a_win_with_the_last_step_allowed_is_not_truncated(tmp_path: Path):
    outcome, steps = _play(tmp_path / "store", policy="oracle:0.0", max_steps=3)
    assert outcome == _outcome(num_steps=3, success=True, truncated=False)
    assert (steps[-1]["terminated"], steps[-1]["truncated"]) == (True, False)


def test_a_lost_trajectory_has_ended_without_success_and_its_costs_are_the_environments(
    tmp_path: Path,
):
    losing = next(seed for seed in range(99) if _first_action(seed) == "west")
    outcome, steps = _play(tmp_path / "store", policy="random", seed=losing, oracle=True)
    assert outcome == _outcome(num_steps=1, success=False, truncated=False)
    (step,) = steps
    assert (step["terminated"], step["truncated"], step["success"]) == (True, False, False)
    assert step["cost"] == 2.0
    assert (step["oracle_distance"], step["next_oracle_distance"]) == (3.0, None)


def test_distances_are_recorded_only_when_asked_for(tmp_path: Path):
    _, steps = _play(tmp_path / "store", policy="oracle:0.0", oracle=False)
    assert _column(steps, "oracle_distance") == [None] * 3
    assert _column(steps, "next_oracle_distance") == [None] * 3


def test_chance_depends_on_seed_iteration_task_and_index_and_not_on_the_attempt():
    def draw(seed: int = 0, iteration: int = 0, spec: str = "4", index: int = 0, attempt: int = 0):
        task = Task(environment="corridor", spec=spec)
        rollout = Rollout(task=task, index=index, attempt=attempt)
        return trajectory_rng(seed, iteration, rollout).random()

    assert draw(attempt=3) == draw()
    different = {draw(), draw(seed=1), draw(iteration=1), draw(spec="5"), draw(index=1)}
    assert len(different) == 5
    # the same on every machine and in every process
    assert draw() == 0.599385422155386


def _first_action(seed: int) -> str:
    return trajectory_rng(seed, 0, Rollout(task=TASK, index=0, attempt=0)).choice(("east", "west"))
