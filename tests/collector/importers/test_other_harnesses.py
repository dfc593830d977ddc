"""Logs of harnesses that become rows of other formats: opencode, promptfoo, lm-eval, Kaggle."""

import json
from pathlib import Path
from typing import Any

from tests.collector.importers.logs import write_json, write_lines
from tests.collector.importers.read_back import brief, imported


def opencode() -> dict[str, Any]:
    """Return a session as `opencode export` writes it."""
    state = {"status": "completed", "input": {"command": "ls"}, "output": "a.py", "title": "ls"}
    parts = [
        {"id": "prt_2", "type": "step-start", "snapshot": "1f"},
        {"id": "prt_3", "type": "reasoning", "text": "look first"},
        {"id": "prt_4", "type": "tool", "callID": "c1", "tool": "bash", "state": state},
        {"id": "prt_5", "type": "step-finish", "reason": "tool-calls"},
    ]
    messages = [
        ({"id": "msg_1", "role": "user"}, [{"id": "prt_1", "type": "text", "text": "fix it"}]),
        ({"id": "msg_2", "role": "assistant"}, parts),
        ({"id": "msg_3", "role": "assistant"}, [{"id": "prt_6", "type": "text", "text": "Fixed."}]),
    ]
    return {
        "info": {"id": "ses_1", "projectID": "global", "title": "fix", "time": {"created": 1}},
        "messages": [{"info": info, "parts": parts} for info, parts in messages],
    }


def write_storage(storage: Path, session: dict[str, Any]) -> Path:
    """Write a session as opencode keeps it: a file for it, each message, and each part."""
    info = session["info"]
    values = {f"session/{info['projectID']}/{info['id']}": info, "project/global": {"id": "global"}}
    for message in session["messages"]:
        values[f"message/{info['id']}/{message['info']['id']}"] = message["info"]
        for part in message["parts"]:
            values[f"part/{message['info']['id']}/{part['id']}"] = part
    for name, value in values.items():
        path = storage / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2))
    return storage


def test_a_session_of_opencode_has_its_calls_and_their_results(tmp_path: Path):
    imported(write_json(tmp_path / "s.json", opencode()), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "thought", "action") == [
        ("fix it", "look first", 'bash({"command": "ls"})'),
        ("a.py", None, "Fixed."),
    ]


def test_the_storage_of_opencode_has_the_sessions_that_it_exports(tmp_path: Path):
    exported = imported(write_json(tmp_path / "s.json", opencode()), tmp_path / "exported")
    storage = write_storage(tmp_path / "opencode/storage", opencode())
    report = imported(storage.parent, tmp_path / "store")
    names = ("trajectory_id", "task_id", "state", "thought", "action", "next_state", "extra")
    assert brief(tmp_path / "store", *names) == brief(tmp_path / "exported", *names)
    assert (report.num_files, report.other_files) == (exported.num_files, [])


def test_a_sub_agent_of_opencode_is_left_out_and_a_part_that_is_broken_is_named(tmp_path: Path):
    child = json.loads(json.dumps(opencode()).replace("msg_", "msg_0"))
    child["info"] |= {"id": "ses_0", "parentID": "ses_1"}
    storage = write_storage(write_storage(tmp_path / "storage", opencode()), child)
    report = imported(storage, tmp_path / "store")
    assert (report.num_trajectories, report.left_out) == (1, {"session of a sub-agent": 1})
    (storage / "part/msg_2/prt_3.json").write_text('{"id": ')
    report = imported(storage, tmp_path / "other")
    (bad,) = report.bad_rows
    assert bad.where == str(storage / "session/global/ses_1.json")
    assert bad.reason.startswith("msg_2/prt_3.json: it must be JSON")


def test_results_of_promptfoo_are_groups_of_a_test(tmp_path: Path):
    chat = json.dumps([{"role": "system", "content": "brief"}, {"role": "user", "content": "ho"}])
    rows = [
        {
            "id": f"r{test}{won}",
            "prompt": {"raw": raw, "label": "l"},
            "promptId": "p",
            "response": {"output": f"answer {won}", "cached": False},
            "score": float(won),
            "success": won == 1,
            "testIdx": test,
        }
        for test, raw in enumerate(("Say hi", chat))
        for won in (0, 1)
    ]
    result = {"evalId": "e", "results": {"version": 3, "results": rows}, "config": {}}
    report = imported(write_json(tmp_path / "r.json", result), tmp_path / "store")
    assert (report.num_groups, report.num_success, report.num_failed) == (2, 2, 2)
    assert set(brief(tmp_path / "store", "task_id", "state")) == {("0", "Say hi"), ("1", "ho")}


def test_samples_of_lm_eval_are_judged_by_each_filter(tmp_path: Path):
    def sample(name: str, score: float, response: Any) -> dict[str, Any]:
        arguments = {"gen_args_0": {"arg_0": "2 + 2 =", "arg_1": {"until": ["\n"]}}}
        return {
            "doc_id": 0,
            "doc": {"question": "2 + 2"},
            "target": "4",
            "arguments": arguments,
            "resps": [[response]],
            "filtered_resps": [response],
            "filter": name,
            "metrics": ["exact_match"],
            "doc_hash": "9a",
            "exact_match": score,
        }

    rows = [sample("strict", 0.0, "It is 4."), sample("flexible", 1.0, "It is 4.")]
    report = imported(write_lines(tmp_path / "s.jsonl", *rows), tmp_path / "store")
    assert (report.num_success, report.num_failed) == (1, 1)
    assert brief(tmp_path / "store", "run_id", "task_id", "state", "action", "reward") == [
        ("flexible", "9a", "2 + 2 =", "It is 4.", 1.0),
        ("strict", "9a", "2 + 2 =", "It is 4.", 0.0),
    ]


def replay() -> dict[str, Any]:
    """Return a game of two as `env.toJSON()` has it: the second agent lacks what both see."""

    def moment(number: int, board: str, acts: tuple[int, int], active: int) -> list[Any]:
        status = [("DONE" if active < 0 else "INACTIVE") for _ in range(2)]
        if active >= 0:
            status[active] = "ACTIVE"
        seen = [{"step": number, "board": board, "mark": 1}, {"mark": 2}]
        return [
            {"action": acts[n], "observation": seen[n], "status": status[n], "info": {}}
            for n in range(2)
        ]

    steps = [
        moment(0, "..", (0, 0), 0),
        moment(1, "x.", (5, 0), 1),
        moment(2, "xo", (0, 7), 0),
        moment(3, "xX", (6, 0), -1),
    ]
    ends = {"rewards": [1, -1], "statuses": ["DONE", "DONE"], "configuration": {}}
    return {"id": "g1", "name": "four", "steps": steps, **ends}


def test_a_replay_of_kaggle_is_a_trajectory_of_each_agent(tmp_path: Path):
    imported(write_json(tmp_path / "g.json", replay()), tmp_path / "store")
    columns = ("task_id", "trajectory_id", "state", "action", "next_state", "reward", "success")
    assert brief(tmp_path / "store", *columns) == [
        ("four:0", "g1:0", _of("..", 1), "5", _of("xo", 1), 0.0, None),
        ("four:0", "g1:0", _of("xo", 1), "6", _of("xX", 1), 1.0, True),
        ("four:1", "g1:1", _of("x.", 2), "7", _of("xX", 2), -1.0, False),
    ]
    broken = replay()
    del broken["steps"][1][0]["status"]
    report = imported(write_json(tmp_path / "b.json", broken), tmp_path / "other")
    assert "must have action, observation and status" in report.bad_rows[0].reason


def _of(board: str, mark: int) -> str:
    return json.dumps({"board": board, "mark": mark})
