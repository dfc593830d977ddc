"""Logs of harnesses that become rows of other formats: opencode, promptfoo, lm-eval, Kaggle."""

import json
from pathlib import Path
from typing import Any

from tests.collector.importers.logs import write_json, write_lines
from tests.collector.importers.read_back import brief, imported


def test_a_session_of_opencode_has_its_calls_and_their_results(tmp_path: Path):
    state = {"status": "completed", "input": {"command": "ls"}, "output": "a.py", "title": "ls"}
    parts = [
        {"id": "p1", "type": "step-start", "snapshot": "1f"},
        {"id": "p2", "type": "reasoning", "text": "look first"},
        {"id": "p3", "type": "tool", "callID": "c1", "tool": "bash", "state": state},
        {"id": "p4", "type": "step-finish", "reason": "tool-calls"},
    ]
    messages = [
        {"info": {"id": "m1", "role": "user"}, "parts": [{"type": "text", "text": "fix it"}]},
        {"info": {"id": "m2", "role": "assistant"}, "parts": parts},
        {"info": {"id": "m3", "role": "assistant"}, "parts": [{"type": "text", "text": "Fixed."}]},
    ]
    session = {"info": {"id": "ses_1", "title": "fix"}, "messages": messages}
    imported(write_json(tmp_path / "s.json", session), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "thought", "action") == [
        ("fix it", "look first", 'bash({"command": "ls"})'),
        ("a.py", None, "Fixed."),
    ]


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
