"""Rollouts of each format, written by hand, and the steps that they become."""

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.collector.importers.formats import atif as atif_format
from graphcredit.collector.importers.table import FORMATS
from graphcredit.store import open_store
from tests.collector.importers.logs import (
    SWE_TRAJ,
    WALKS,
    atif,
    called,
    episode,
    gym_row,
    inspect_log,
    inspect_sample,
    said,
    write_json,
    write_lines,
)
from tests.collector.importers.read_back import brief, imported, steps_of
from tests.collector.importers.rows import ROWS

STEP = ("state", "action", "next_state", "reward")


def test_openai_messages_with_tool_calls(tmp_path: Path):
    report = imported(write_lines(tmp_path / "walks.jsonl", WALKS[0]), tmp_path / "store")
    assert report.num_files == {"messages": 1}
    assert brief(tmp_path / "store", "task_id", *STEP, "terminated", "success") == [
        ("t", "hall", 'go({"to": "kitchen"})', "kitchen", 0.0, False, None),
        ("t", "kitchen", "I am in the garden.", "[end: success]", 1.0, True, True),
    ]
    first, last = steps_of(tmp_path / "store")
    assert first["trajectory_id"].startswith("t:0-")
    assert first["observation"] == "Find the exit.\n\nhall"
    assert last["observation"] is None
    extra = json.loads(first["extra"])
    assert extra["message"]["tool_calls"] == called("go", to="kitchen")["tool_calls"]
    assert [message["content"] for message in extra["seen"]] == ["Find the exit.", "hall"]
    assert extra["log"] == {"task_id": "t", "reward": 1.0, "trial": 0}


def test_a_list_of_rows_with_traj_is_tau_bench(tmp_path: Path):
    rows = [{"task_id": 7, "trial": 2, "reward": 0.0, "traj": WALKS[0]["messages"], "info": {}}]
    imported(write_json(tmp_path / "tau.json", rows), tmp_path / "store")
    assert brief(tmp_path / "store", "task_id", "next_state", "success")[-1] == (
        "7",
        "[end: failure]",
        False,
    )
    assert steps_of(tmp_path / "store")[0]["trajectory_id"].startswith("7:2-")


def test_a_file_that_is_one_list_of_messages(tmp_path: Path):
    report = imported(write_json(tmp_path / "a.traj.json", WALKS[0]["messages"]), tmp_path / "s")
    assert (report.num_trajectories, report.num_unjudged) == (1, 1)
    assert brief(tmp_path / "s", "next_state", "terminated", "success")[-1] == (
        "[end: unknown]",
        False,
        None,
    )


def test_trl_completions(tmp_path: Path):
    prompt = [said("user", "2+2?"), said("assistant", "an example"), said("user", "3+3?")]
    table = pa.table(
        {
            "step": [4, 4],
            "prompt": [prompt, prompt],
            "completion": [[said("assistant", "6")], [said("assistant", "<think>hm</think>7")]],
            "correct": [1.0, 0.0],
            "short": [0.5, 0.5],
            "advantage": [0.7, -0.7],
        }
    )
    path = tmp_path / "completions" / "completions_00004.parquet"
    path.parent.mkdir()
    pq.write_table(table, path)
    report = imported(tmp_path / "completions", tmp_path / "store", success="correct>=1")
    assert report.num_files == {"trl": 1}
    assert any(note.startswith("TRL logs no total") for note in report.notes)
    assert (report.num_groups, report.num_success, report.num_failed) == (1, 1, 1)
    found = brief(tmp_path / "store", "iteration", "action", "thought", "reward", "policy_version")
    assert sorted(found) == [(4, "6", None, 1.5, "step-4"), (4, "7", "hm", 0.5, "step-4")]


def test_older_verifiers_groups_by_prompt_and_reads_calls_in_text(tmp_path: Path):
    call = json.dumps({"id": "c", "function": {"name": "python", "arguments": '{"code": "1"}'}})
    done = {"role": "assistant", "content": "", "tool_calls": [call]}

    def row(number: int, question: str) -> dict[str, object]:
        prompt = [said("user", question)]
        completion = [done, said("tool", "1"), said("assistant", "one")]
        named = {"id": number, "answer": "1", "reward": 1.0, "correct": 1.0, "total_ms": 3.0}
        return {"prompt": prompt, "completion": completion, **named}

    write_json(tmp_path / "metadata.json", {"env": "math", "model": "m-2", "sampling_args": {}})
    log = write_lines(tmp_path / "results.jsonl", row(0, "a?"), row(0, "b?"), row(1, "a?"))
    report = imported(log, tmp_path / "store")
    assert report.num_files == {"verifiers-results": 1}
    assert (report.num_groups, report.num_trajectories) == (2, 3)
    assert brief(tmp_path / "store", *STEP)[:2] == [
        (steps_of(tmp_path / "store")[0]["state"], 'python({"code": "1"})', "1", 0.0),
        ("1", "one", "[end: success]", 1.0),
    ]


def test_verifiers_traces_with_tokens(tmp_path: Path):
    report = imported(write_lines(tmp_path / "traces.jsonl", episode()), tmp_path / "store")
    assert report.num_files == {"verifiers": 1}
    assert report.left_out == {"sampled message of another branch": 1}
    names = ("run_id", "iteration", "task_id", "trajectory_id")
    assert brief(tmp_path / "store", *names)[0] == ("run-a", 5, "g1", "trace-1")
    assert brief(tmp_path / "store", *STEP, "thought") == [
        ("hall", "go east", "kitchen", 0.0, "the exit is east"),
        ("kitchen", "go out", "[end]", pytest.approx(1.1), None),
    ]
    tokens = ("prompt_ids", "response_ids", "response_logprobs", "policy_version")
    assert brief(tmp_path / "store", *tokens) == [
        ([1, 2, 9], [3, 4], [-0.5, -0.25], "4-5"),
        ([1, 2, 9, 3, 4, 5, 9], [6], [-1.0], "4-5"),
    ]
    first, last = steps_of(tmp_path / "store")
    assert first["temperature"] == pytest.approx(0.7)
    assert (first["top_p"], last["top_p"]) == (pytest.approx(0.9), None)


def test_verifiers_turn_rewards_named_rewards_and_errors(tmp_path: Path):
    rewarded = episode(info={"turn_rewards": [None, 0.25, 0.75]})
    broken = episode("trace-2", ok=False, errors=[{"type": "ToolError"}])
    log = write_lines(tmp_path / "traces.jsonl", rewarded, broken, {**episode(), "traces": []})
    report = imported(log, tmp_path / "turns", reward="turns")
    assert brief(tmp_path / "turns", "reward") == [(0.25,), (0.75,)]
    assert report.left_out["trace with an error"] == 1
    assert report.left_out["episode without a trace (it ended in an error)"] == 1
    imported(log, tmp_path / "named", reward="exit+2*short")
    assert brief(tmp_path / "named", "reward") == [(0.0,), (2.0,)]


def test_atif_leaves_side_chains_and_copied_context_out(tmp_path: Path):
    report = imported(write_json(tmp_path / "trajectory.json", atif()), tmp_path / "store")
    assert report.num_files == {"atif": 1}
    assert report.left_out == {
        "step that repeats copied context": 1,
        "step of a side-chain (a sub-agent)": 1,
    }
    assert brief(tmp_path / "store", "state", "action", "thought", "response_ids") == [
        ("find it", 'ls({"path": "/"})', "where?\n\nI look.", [4, 5]),
        ("bin etc", "It is in etc.", None, None),
    ]
    assert report.num_unjudged == 1


def _trial(job: Path, name: str, **result: object) -> None:
    write_json(job / name / "agent" / "trajectory.json", atif(session_id=name))
    content = {"id": f"id-{name}", "trial_name": name, "task_name": "find", **result}
    write_json(job / name / "result.json", content)


def test_a_harbor_job_has_tasks_rewards_and_timeouts(tmp_path: Path):
    job = tmp_path / "job"
    timeout = {"exception_type": "AgentTimeoutError"}
    _trial(job, "find__1", verifier_result={"rewards": {"reward": 1.0}})
    _trial(job, "find__2", verifier_result={"rewards": {"reward": 0.0}}, exception_info=timeout)
    _trial(job, "find__3", exception_info={"exception_type": "BuildError"})
    report = imported(job, tmp_path / "store")
    assert (report.num_trajectories, report.num_groups) == (2, 1)
    assert report.left_out["trial that ended in BuildError, without a reward"] == 1
    assert report.other_files == []
    last = [row for row in steps_of(tmp_path / "store") if row["success"] is not None]
    assert [(r["task_id"], r["truncated"], r["next_state"]) for r in last] == [
        ("find", False, "[end: success]"),
        ("find", True, "[end: truncated]"),
    ]


def test_atif_joins_the_parts_of_one_answer(tmp_path: Path):
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    call = {"tool_call_id": "c", "function_name": "glob", "arguments": {}}
    parts = [
        {"step_id": "1", "source": "user", "message": "go"},
        {"step_id": "2", "source": "agent", "message": "I look.", "metrics": usage},
        {
            "step_id": "3",
            "source": "agent",
            "message": "",
            "metrics": usage,
            "tool_calls": [call],
            "observation": {"results": [{"content": "a.py"}]},
        },
    ]
    log = {**atif(), "schema_version": "ATIF-v1.2", "steps": parts}
    assert atif_format.is_row(log, tmp_path)
    imported(write_json(tmp_path / "t.json", log), tmp_path / "store")
    assert brief(tmp_path / "store", "action", "thought") == [("glob({})", "I look.")]


def test_atif_steps_without_a_model_are_seen_and_not_taken(tmp_path: Path):
    steps = [
        {"step_id": 1, "source": "user", "message": "go"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "set up",
            "llm_call_count": 0,
            "observation": {"results": [{"content": "ready"}]},
        },
        {"step_id": 3, "source": "agent", "message": "done"},
    ]
    log = {**atif(), "schema_version": "ATIF-v1.8", "steps": steps}
    imported(write_json(tmp_path / "t.json", log), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == [("go\n\nset up\n\nready", "done")]


def test_nemo_gym_items(tmp_path: Path):
    report = imported(write_lines(tmp_path / "r.jsonl", gym_row()), tmp_path / "store")
    assert report.num_files == {"nemo-gym": 1}
    names = ("task_id", *STEP, "thought", "prompt_ids", "response_ids", "temperature")
    assert brief(tmp_path / "store", *names) == [
        ("grid:3", "board A", "up", "board B", 0.0, "hm", [1, 2], [3], 0.5),
        ("grid:3", "board B", 'move({"x": 1})', "[end: success]", 1.0, None, None, None, 0.5),
    ]
    assert json.loads(steps_of(tmp_path / "store")[1]["extra"])["after"][0]["output"] == "done"


def test_tokens_without_log_probabilities_come_through(tmp_path: Path):
    row = gym_row()
    del row["response"]["output"][1]["generation_log_probs"]
    report = imported(write_lines(tmp_path / "r.jsonl", row), tmp_path / "store")
    assert (report.num_with_tokens, report.num_with_logprobs) == (1, 0)


def test_nemo_gym_transitions_are_cumulative(tmp_path: Path):
    row = gym_row()
    items = row["response"]["output"]
    row["response"]["output"] = [items[:3], items]
    imported(write_lines(tmp_path / "r.jsonl", row), tmp_path / "store")
    assert [action for (action,) in brief(tmp_path / "store", "action")] == ["up", 'move({"x": 1})']
    row["response"]["output"] = [items[1:3], items]
    assert imported(write_lines(tmp_path / "r.jsonl", row), tmp_path / "other").num_bad_rows == 1


def test_inspect_json_and_eval_are_the_same(tmp_path: Path):
    samples = inspect_sample(), inspect_sample(2, "I"), inspect_sample(3, error={"message": "x"})
    log = inspect_log(*samples)
    report = imported(write_json(tmp_path / "log.json", log), tmp_path / "json")
    assert report.left_out == {"sample with an error": 1}
    names = ("task_id", *STEP, "is_action_valid", "success", "temperature")
    assert brief(tmp_path / "json", *names)[-2:] == [
        (
            "ctf:flag",
            "Find the flag.",
            'bash({"cmd": "ls"})',
            "cannot parse",
            0.0,
            False,
            None,
            pytest.approx(0.3),
        ),
        (
            "ctf:flag",
            "cannot parse",
            "flag{x}",
            "[end: failure]",
            0.0,
            True,
            False,
            pytest.approx(0.3),
        ),
    ]
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({**log, "samples": None}))
        for number, sample in enumerate(samples):
            archive.writestr(f"samples/{number}.json", json.dumps(sample))
    imported(tmp_path / "log.eval", tmp_path / "eval")
    assert brief(tmp_path / "eval", *names) == brief(tmp_path / "json", *names)


def test_swe_agent_runs_the_action_and_has_the_state_after_it(tmp_path: Path):
    log = write_json(tmp_path / "django-1.traj", SWE_TRAJ)
    report = imported(log, tmp_path / "store", success="info.exit_status")
    assert report.num_bad_rows == 1  # the field is no verdict
    report = imported(log, tmp_path / "store")
    assert report.num_files == {"swe-agent": 1}
    assert brief(tmp_path / "store", "task_id", "state", "action", "thought")[1] == (
        "django-1",
        "[File: a.py]",
        "submit",
        "Done.",
    )
    first = steps_of(tmp_path / "store")[0]
    assert first["state"] == "demo\n\ndemo answer\n\nFix the bug."
    imported(log, tmp_path / "column", state="column:state")
    assert steps_of(tmp_path / "column")[1]["state"] == '{"open_file": "a.py"}'


def test_every_format_has_a_name_of_its_own_and_a_line_in_the_document():
    text = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")
    assert len({row.name for row in FORMATS}) == len(FORMATS)
    for row in FORMATS:
        assert f"\n| `{row.name}` | " in text


def test_a_folder_names_the_run_and_the_iteration_in_every_format(tmp_path: Path):
    columns = r"run_id=path:1,iteration=path:at-(\d+)"
    runs: dict[str, set[tuple[str, int]]] = {}
    for name, (record, file) in ROWS.items():
        folder, store = tmp_path / name / "log", tmp_path / name / "store"
        write_lines(folder / "sonnet" / "at-7" / Path(file).name, record)
        if imported(folder, store, columns=columns, format=name).num_trajectories:
            runs[name] = {(each.run_id, each.iteration) for each in open_store(store).shards()}
    assert all(run == {("sonnet", 7)} for run in runs.values())
    assert len(runs) >= 15
    log = tmp_path / "messages" / "log"
    [bad] = imported(log, tmp_path / "s", columns="iteration=path:1").bad_rows
    assert bad.reason == "--columns iteration=path:1 must be a whole number: got 'sonnet'"
