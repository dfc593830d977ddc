"""Rollouts that trainers log: rLLM, ART."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.collector.importers.logs import called, episode, said, write_json, write_lines
from tests.collector.importers.read_back import brief, imported, steps_of

STEP = ("task_id", "state", "action", "next_state", "reward")


def test_rllm_episodes_have_observations_and_actions(tmp_path: Path):
    steps = [
        {"observation": "hall", "thought": "east?", "action": "go east", "reward": 0.0},
        {"observation": "kitchen", "action": "take", "model_response": "I take.", "reward": 0.5},
    ]
    episode = {
        "training_step": 3,
        "episode_id": "h1:0",
        "task": {"q": "?"},
        "task_hash": "h1",
        "is_correct": False,
        "termination_reason": "MAX_TURNS_EXCEEDED",
        "trajectories": [{"name": "solver", "reward": 0.5, "steps": steps}],
    }
    log = write_json(tmp_path / "train_step_3" / "episode_hashh1_id0.json", episode)
    report = imported(log.parent, tmp_path / "store", reward="turns")
    assert (report.num_files, report.num_truncated) == ({"rllm": 1}, 1)
    assert brief(tmp_path / "store", *STEP, "thought") == [
        ("h1", "hall", "go east", "kitchen", 0.0, "east?"),
        ("h1", "kitchen", "take", "[end: truncated]", 0.5, "I take."),
    ]
    assert steps_of(tmp_path / "store")[0]["iteration"] == 3


def test_rllm_steps_without_an_observation_have_that_of_their_conversation(tmp_path: Path):
    first = [said("system", "Act."), said("user", "hall")]
    second = [*first, said("assistant", "go"), said("user", "kitchen")]
    steps = [
        {"observation": None, "action": action, "chat_completions": [*seen, said("assistant", "x")]}
        for action, seen in (("go", first), ("take", second))
    ]
    episode = {"episode_id": "h:0", "task": {}, "trajectories": [{"reward": 1.0, "steps": steps}]}
    imported(write_json(tmp_path / "log" / "e.json", episode), tmp_path / "store")
    assert brief(tmp_path / "store", "state") == [("hall",), ("kitchen",)]


def test_evaluations_of_a_training_are_not_compared_with_its_rollouts(tmp_path: Path):
    rows = [episode("a"), episode("b"), episode("c")]
    rows[2]["run"]["work"]["type"] = "eval"
    report = imported(write_lines(tmp_path / "traces.jsonl", *rows), tmp_path / "store")
    assert [row["run_id"] for row in steps_of(tmp_path / "store")] == [
        *["run-a"] * 4,
        *["run-a-eval"] * 2,
    ]
    assert any("in a run of their own" in note for note in report.notes)


def test_an_episode_of_rllm_without_a_trajectory_is_counted(tmp_path: Path):
    episode = {"episode_id": "h:0", "task": "?", "trajectories": []}
    report = imported(write_json(tmp_path / "e.json", episode), tmp_path / "store")
    assert report.left_out == {"episode without a trajectory": 1}


@pytest.mark.parametrize(
    ("correct", "counts"), [("True", (1, 0, 0)), (None, (0, 0, 0)), ("partly", (0, 0, 1))]
)
def test_a_verdict_of_rllm_may_be_text(tmp_path: Path, correct: object, counts: tuple[int, ...]):
    step = {"observation": "hall", "action": "go"}
    episode = {"episode_id": "h:0", "task": "?", "task_hash": "h", "is_correct": correct}
    log = write_json(tmp_path / "e.json", {**episode, "trajectories": [{"steps": [step]}]})
    report = imported(log, tmp_path / "store")
    unclear = report.left_out.get("`is_correct` that is neither true nor false", 0)
    assert (report.num_success, report.num_failed, unclear) == counts


def test_a_role_of_rllm_is_judged_by_its_own_reward(tmp_path: Path):
    steps = [{"observation": "2+2?", "action": "4"}]
    roles = [{"name": "solver", "reward": 0, "steps": steps}, {"name": "judge", "steps": steps}]
    episode = {"episode_id": "h:0", "task": "?", "task_hash": "h", "is_correct": True}
    log = write_json(tmp_path / "e.json", {**episode, "trajectories": roles})
    imported(log, tmp_path / "store")
    found = brief(tmp_path / "store", "task_id", "success")
    assert found == [("h/judge", True), ("h/solver", False)]  # the judge has the episode's


def test_art_groups_by_index_and_keeps_context(tmp_path: Path):
    def row(index: int, reward: float) -> dict[str, Any]:
        call = json.dumps(called("look")["tool_calls"])
        messages = [
            {**said("user", "hi"), "tool_calls": None, "trainable": False},
            {**said("assistant", "an example"), "tool_calls": None, "trainable": False},
            {**said("user", "go"), "tool_calls": None, "trainable": False},
            {"role": "assistant", "content": "", "tool_calls": call, "trainable": True},
        ]
        indices = {"format_version": 2, "group_index": 0, "trajectory_index": index}
        versions = {"initial_policy_version": 7, "final_policy_version": 7 + index}
        whole = json.dumps({"exchanges": [], **versions})
        given = {**indices, "reward": reward, "metrics": '{"short": 1}', "messages": messages}
        return {**given, "trajectory_json": whole}

    path = tmp_path / "trajectories" / "train" / "0007.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([row(0, 1.0), row(1, 0.0)]), path)
    report = imported(tmp_path / "trajectories", tmp_path / "store")
    assert (report.num_files, report.num_groups, report.num_steps) == ({"art": 1}, 1, 2)
    assert brief(tmp_path / "store", "iteration", *STEP) == [
        (7, "train:0007:0", "hi\n\nan example\n\ngo", "look({})", "[end: success]", 1.0),
        (7, "train:0007:0", "hi\n\nan example\n\ngo", "look({})", "[end: failure]", 0.0),
    ]
    assert brief(tmp_path / "store", "policy_version") == [("7",), ("7-8",)]
