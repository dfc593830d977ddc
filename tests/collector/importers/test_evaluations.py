"""Logs of evaluations: tau2-bench, Inspect's events, Harbor's jobs, verifiers' odd results."""

from pathlib import Path
from typing import Any

import pytest

from tests.collector.importers.logs import (
    atif,
    inspect_log,
    inspect_sample,
    said,
    write_json,
    write_lines,
)
from tests.collector.importers.read_back import brief, imported, steps_of
from tests.collector.importers.rows import tau2_results, tau2_simulation

STEP = ("state", "action", "next_state", "reward")


def test_tau2_hides_what_the_user_does_with_its_own_tools(tmp_path: Path):
    failed = tau2_simulation(1, 0.0, termination_reason="max_steps")
    crashed = tau2_simulation(2, None, termination_reason="infrastructure_error")
    log = write_json(tmp_path / "results.json", tau2_results(tau2_simulation(), failed, crashed, 7))
    report = imported(log, tmp_path / "store")
    assert (report.num_groups, report.num_success, report.num_truncated) == (1, 1, 1)
    assert report.left_out == {
        "message between the user and its own tools": 4,
        "simulation that an error of its infrastructure ended": 1,
    }
    assert "simulations[3]: it must be a JSON object: got 7" in report.bad_rows[0].reason
    start = "Hi! How can I help you today?\n\nNo data."
    assert brief(tmp_path / "store", "task_id", "trajectory_id", *STEP)[:2] == [
        ("telecom:3", "s-0", start, 'lookup({"id": 7})', "found", 0.0),
        ("telecom:3", "s-0", "found", "Turn your data on.", "[end: success]", 1.0),
    ]


def test_tau2_has_thoughts_nested_results_and_parts_of_the_reward(tmp_path: Path):
    thinking = {"raw_data": {"thinking_blocks": [{"type": "thinking", "thinking": "hm"}]}}
    results = [
        {"role": "tool", "id": n, "content": f"r{n}", "requestor": "assistant"} for n in "12"
    ]
    messages = [
        said("user", "help"),
        {"role": "assistant", "content": "wait", **thinking},
        {"role": "tool", "tool_messages": results},
        said("assistant", "done"),
    ]
    log = write_json(tmp_path / "one.json", tau2_simulation(messages=messages))
    imported(log, tmp_path / "store", reward="DB+2*COMMUNICATE")
    assert brief(tmp_path / "store", "task_id", "state", "thought", "reward") == [
        ("3", "help", "hm", 0.0),
        ("3", "r1\n\nr2", None, 2.0),
    ]


def event(answer: str, **more: Any) -> dict[str, Any]:
    message = said("assistant", answer, id=answer)
    return {"event": "model", "output": {"choices": [{"message": message}]}, **more}


def test_inspect_samples_without_messages_have_those_of_the_last_call(tmp_path: Path):
    pool = [said("user", "one"), said("assistant", "two", id="two"), said("user", "three")]
    refs = [[0, 1], [1, 3]]
    sample = inspect_sample(
        messages=[],
        events=[event("two"), event("four", input=[], input_refs=refs)],
        events_data={"messages": pool, "calls": []},
    )
    report = imported(write_json(tmp_path / "log.json", inspect_log(sample)), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == [("one", "two"), ("three", "four")]
    assert any("those of their last call" in note for note in report.notes)


def test_inspect_scores_on_the_way_are_scores_or_rewards_of_turns(tmp_path: Path):
    def score(value: object) -> dict[str, Any]:
        return {"event": "score", "intermediate": True, "score": {"value": value}}

    sample = inspect_sample(
        messages=[
            said("user", "q"),
            said("assistant", "a", id="a"),
            said("assistant", "b", id="b"),
        ],
        events=[event("a"), score("P"), event("b"), score(0.25), score("text")],
    )
    log = write_json(tmp_path / "log.json", inspect_log(sample))
    imported(log, tmp_path / "scores")
    assert brief(tmp_path / "scores", "reward", "score") == [(0.0, 0.5), (1.0, 0.25)]
    imported(log, tmp_path / "store", reward="turns")
    assert brief(tmp_path / "store", "reward") == [(0.5,), (0.25,)]


def test_inspect_tells_the_model_of_a_tool_that_failed(tmp_path: Path):
    failed = said("tool", "", error={"type": "timeout", "message": "Command timed out"})
    messages = [said("user", "q"), said("assistant", "a"), failed, said("assistant", "b")]
    log = write_json(tmp_path / "log.json", inspect_log(inspect_sample(messages=messages)))
    imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "state") == [("q",), ("Error: Command timed out",)]


def test_inspect_names_the_score_it_takes_and_leaves_invalidated_samples_out(tmp_path: Path):
    scores = {"match": {"value": "P"}, "parts": {"value": {"a": 1.0, "b": float("nan")}}}
    shot = said("assistant", "example", source="input")
    messages = [said("user", "q"), shot, said("user", "q2"), said("assistant", "a")]
    samples = [
        inspect_sample(scores=scores, messages=messages),
        inspect_sample(2, invalidation={"author": "me"}),
        inspect_sample(3, messages=[{"role": "alien"}]),
        inspect_sample(4),
    ]
    report = imported(write_json(tmp_path / "log.json", inspect_log(*samples)), tmp_path / "store")
    assert report.left_out == {"sample that was invalidated": 1}
    assert (report.num_trajectories, report.num_bad_rows) == (2, 1)
    assert "samples[2]: messages[0] must have a role" in report.bad_rows[0].reason
    assert any("match, the first of match, parts.a:" in note for note in report.notes)
    rows = brief(tmp_path / "store", "state", "reward")
    assert ("q\n\nexample\n\nq2", 0.5) in rows


def test_a_rollout_that_breaks_a_rule_does_not_spoil_the_others_of_its_record(tmp_path: Path):
    other = inspect_sample(scores={"judge": {"value": 1.0}})
    log = write_json(tmp_path / "log.json", inspect_log(other, inspect_sample(2)))
    report = imported(log, tmp_path / "store", reward="match")
    assert (report.num_trajectories, report.num_bad_rows) == (1, 1)
    assert report.bad_rows[0].reason == (
        "the record must have a reward 'match'; its rewards: judge"
    )


def test_an_evaluation_without_samples_is_counted(tmp_path: Path):
    report = imported(write_json(tmp_path / "log.json", inspect_log()), tmp_path / "store")
    assert report.left_out == {"evaluation without samples": 1}


def trial(job: Path, name: str, log: dict[str, Any] | None, **result: Any) -> Path:
    content = {"id": f"id-{name}", "trial_name": name, "task_name": "find", **result}
    write_json(job / name / "result.json", content)
    if log is not None:
        write_json(job / name / "agent" / "trajectory.json", log)
    return job / name


PLAIN = {
    "schema_version": "ATIF-v1.8",
    "session_id": "same",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "find it"},
        {"step_id": 2, "source": "agent", "message": "one"},
        {"step_id": 3, "source": "user", "message": "more"},
        {"step_id": 4, "source": "agent", "message": "two"},
    ],
}


def test_harbor_counts_trials_without_a_trajectory(tmp_path: Path):
    won = {"verifier_result": {"rewards": {"reward": 1.0}}}
    trial(tmp_path / "job", "find__1", PLAIN, task_checksum="abcdef0123", **won)
    lost = {"exception_info": {"exception_type": "SetupError"}}
    trial(tmp_path / "job", "find__2", None, **lost)
    write_json(tmp_path / "job" / "result.json", {"n_total_trials": 2, "stats": {}})
    report = imported(tmp_path / "job", tmp_path / "store")
    assert report.left_out == {"trial that ended in SetupError, without a rollout": 1}
    assert (report.num_trajectories, report.other_files) == (1, [])
    assert steps_of(tmp_path / "store")[0]["task_id"] == "find#abcdef01"


def test_the_own_log_of_an_agent_is_no_second_trajectory_of_its_trial(tmp_path: Path):
    won = {"verifier_result": {"rewards": {"reward": 1.0}}}
    trial(tmp_path / "job", "find__1", PLAIN, **won)
    agent = tmp_path / "job" / "find__1" / "agent"
    native = {"messages": [said("user", "find it"), said("assistant", "one")]}
    own = write_json(agent / "sessions" / "mini.trajectory.json", native)
    report = imported(tmp_path / "job", tmp_path / "store")
    assert report.left_out == {"log of an agent beside its rollout in ATIF": 1}
    assert (report.num_trajectories, report.num_success) == (1, 1)
    assert imported(own, tmp_path / "alone").num_trajectories == 1
    (agent / "trajectory.json").unlink()
    report = imported(tmp_path / "job", tmp_path / "native")
    assert (report.num_trajectories, report.num_success, report.left_out) == (1, 1, {})
    assert steps_of(tmp_path / "native")[0]["task_id"] == "find"


def test_harbor_has_tokens_in_the_result_and_the_reward_in_a_file(tmp_path: Path):
    details = {
        "prompt_token_ids": [[1], [1, 2, 3]],
        "completion_token_ids": [[2], [4]],
        "logprobs": [[-0.5], [-0.25]],
    }
    folder = trial(tmp_path / "job", "find__1", PLAIN, agent_result={"rollout_details": [details]})
    (folder / "verifier").mkdir()
    (folder / "verifier" / "reward.txt").write_text("0.5\n")
    short = {name: values[:1] for name, values in details.items()}
    trial(tmp_path / "job", "find__2", PLAIN, agent_result={"rollout_details": [short]})
    report = imported(tmp_path / "job", tmp_path / "store")
    assert report.num_with_tokens == 2
    assert "rollout_details with 1 turns for 2 answers: imported without tokens" in report.notes
    names = ("prompt_ids", "response_ids", "response_logprobs", "reward")
    assert brief(tmp_path / "store", *names)[:2] == [
        ([1], [2], [-0.5], 0.0),
        ([1, 2, 3], [4], [-0.25], 0.5),
    ]


def test_harbor_tasks_of_several_steps_have_a_reward_for_each(tmp_path: Path):
    parts = [
        {"step_name": name, "verifier_result": {"rewards": {"reward": reward}}}
        for name, reward in (("build", 1.0), ("test", 0.0))
    ]
    folder = trial(tmp_path / "job", "find__1", None, step_results=parts)
    for part in ("build", "test"):
        write_json(folder / "steps" / part / "agent" / "trajectory.json", PLAIN)
    imported(tmp_path / "job", tmp_path / "store")
    names = ("task_id", "trajectory_id", "success")
    assert brief(tmp_path / "store", *names)[1::2] == [
        ("find:build", "find__1:id-find__1:build", True),
        ("find:test", "find__1:id-find__1:test", False),
    ]


@pytest.mark.parametrize("name", ["trajectory.cont-1.json", "trajectory-cont-1.json"])
def test_a_compacted_trajectory_goes_on_in_the_next_file(name: str, tmp_path: Path):
    first = {**PLAIN, "continued_trajectory_ref": name}
    copied = {"step_id": 1, "source": "user", "message": "summary", "is_copied_context": True}
    after = {"step_id": 2, "source": "agent", "message": "three"}
    folder = trial(tmp_path / "job", "find__1", first)
    write_json(folder / "agent" / name, {**PLAIN, "steps": [copied, after]})
    write_json(folder / "agent" / "trajectory.summarization-1-summary.json", PLAIN)
    report = imported(tmp_path / "job", tmp_path / "store")
    assert report.left_out == {
        "continuation, which was read with its rollout": 1,
        "step that repeats copied context": 1,
        "rollout of a sub-agent": 1,
    }
    assert [action for (action,) in brief(tmp_path / "store", "action")] == ["one", "two", "three"]


def test_trajectories_may_share_the_id_of_a_session(tmp_path: Path):
    write_json(tmp_path / "in" / "a.json", atif(session_id="NORMALIZED"))
    write_json(tmp_path / "in" / "b.json", {**PLAIN, "session_id": "NORMALIZED"})
    assert imported(tmp_path / "in", tmp_path / "store").num_trajectories == 2


@pytest.mark.parametrize(
    ("prompt", "task"),
    [([said("user", "")], "7"), ([said("user", [{"type": "image_url"}])], "7")],  # type: ignore[arg-type]
)
def test_prompts_that_do_not_tell_tasks_apart_group_by_example(
    tmp_path: Path, prompt: list[Any], task: str
):
    row = {"example_id": 7, "prompt": prompt, "reward": 1.0, "completion": [said("assistant", "a")]}
    imported(write_lines(tmp_path / "results.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", "task_id") == [(task,)]


def test_completions_that_repeat_the_prompt_or_are_empty(tmp_path: Path):
    prompt = [said("user", "q")]
    rows = [
        {"example_id": 1, "prompt": prompt, "completion": [], "reward": 1.0},
        {
            "example_id": 1,
            "prompt": prompt,
            "reward": 1.0,
            "completion": [said("user", "q", tool_calls=None), said("assistant", "a")],
        },
    ]
    report = imported(write_lines(tmp_path / "results.jsonl", *rows), tmp_path / "store")
    assert report.left_out == {
        "rollout with an empty completion": 1,
        "message of the prompt, which the completion repeats": 1,
    }
    assert brief(tmp_path / "store", "state", "action") == [("q", "a")]
