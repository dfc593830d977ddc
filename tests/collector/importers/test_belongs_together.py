"""What belongs together in logs of harnesses: files, tasks, tries, and verdicts beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers import beside
from graphcredit.collector.importers.logs.places import path_rule, task_term
from graphcredit.store.errors import InputError, OptionError
from tests.collector.importers.logs import said, write_json, write_lines
from tests.collector.importers.read_back import brief, imported, steps_of


def chat(prompt: str, answer: str, **more: Any) -> dict[str, Any]:
    return {"messages": [said("user", prompt), said("assistant", answer)], **more}


def outcomes(store: Path) -> dict[str, Any]:
    """Return whether each trajectory succeeded, by its id."""
    last = {row["trajectory_id"]: row for row in steps_of(store)}
    return {name: row["success"] for name, row in last.items()}


@pytest.mark.parametrize(
    ("paths", "term"),
    [
        (["m1/a1/traj", "m1/c3/traj", "m1-try2/a1/traj", "m1-try2/c3/traj"], "path:-2"),
        (["mug/0", "mug/1", "box/0", "box/1"], "path:-2"),
        (["run_1/37", "run_1/38", "run_2/37", "run_2/38"], "path:-1"),
        (["a", "b", "c"], None),
        (["attempt_1/log", "attempt_2/log"], None),
        (["a/log"], None),
    ],
)
def test_the_last_name_that_recurs_and_numbers_no_tries_is_the_task(
    paths: list[str], term: str | None
):
    assert task_term(paths) == term


def test_a_task_stands_before_or_behind_its_try_in_the_name_of_a_file():
    for paths in (
        ["Maze-A_run_01", "Maze-A_run_02", "Maze-B_run_01"],
        ["run1_k", "run2_k", "run1_z"],
    ):
        term = task_term(paths)
        assert term is not None
        names = [path_rule(term)(path) for path in paths]
        assert names == ["Maze-A", "Maze-A", "Maze-B"] if "Maze" in paths[0] else ["k", "k", "z"]


def test_parts_of_a_path_are_named_by_number_or_by_pattern():
    path = "chrome/a1b2/task4_run5"
    terms = ("path", "path:1", "path:-1", "path:9", r"path:(task\d+)_run", "path:(x)")
    found = [path, "chrome", "task4_run5", None, "task4", None]
    assert [path_rule(term)(path) for term in terms] == found
    for wrong in ("path:x", "path:0", "path:(", "path:"):
        if wrong != "path:":
            with pytest.raises(OptionError, match="regular expression"):
                path_rule(wrong)


@pytest.mark.parametrize(
    "options",
    [{"group": r"path:(task\d+)_run"}, {"columns": r"task=path:(task\d+)_run,trajectory=path:-1"}],
)
def test_groups_and_columns_take_parts_of_the_path(options: dict[str, Any], tmp_path: Path):
    for name in ("task1_run1", "task1_run2", "task2_run1"):
        write_json(tmp_path / "log" / f"{name}.json", chat(name, "go", reward=1))
    imported(tmp_path / "log", tmp_path / "store", **options)
    assert {task for (task,) in brief(tmp_path / "store", "task_id")} == {"task1", "task2"}


def test_several_fields_make_groups_and_a_field_that_is_not_there_is_named(tmp_path: Path):
    rows = [chat("pay", "a", suite=s, task_id="t1", reward=1) for s in ("bank", "shop")]
    log = write_lines(tmp_path / "w.jsonl", *rows)
    imported(log, tmp_path / "store", group="suite+task_id")
    assert {name for (name,) in brief(tmp_path / "store", "task_id")} == {"bank+t1", "shop+t1"}
    report = imported(log, tmp_path / "other", group="suite+level")
    assert "the record must name level" in report.bad_rows[0].reason


def harness(folder: Path, name: str = "result.txt") -> Path:
    """Write four runs of two tasks, whose verdicts stand beside them; two won."""
    for attempt, won in (("m", "10"), ("m-try2", "01")):
        for task, verdict in zip(("a1b2", "c3d4"), won, strict=True):
            run = folder / attempt / "chrome" / task
            rows = [{"step_num": n, "action": f"click {n}", "reward": 0} for n in (1, 2)]
            write_lines(
                run / "traj.jsonl", *({**row, "done": n == 1} for n, row in enumerate(rows))
            )
            text = verdict if name.endswith(".txt") else json.dumps({"success": verdict == "1"})
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_text(f"{text}\n")
    return folder


@pytest.mark.parametrize("name", ["result.txt", "report.json", "evaluations/dev.json"])
def test_a_verdict_beside_a_log_is_its_own_and_folders_tell_tasks(name: str, tmp_path: Path):
    report = imported(harness(tmp_path / "log", name), tmp_path / "store")
    assert outcomes(tmp_path / "store") == {
        "m/chrome/a1b2/traj": True,
        "m/chrome/c3d4/traj": False,
        "m-try2/chrome/a1b2/traj": False,
        "m-try2/chrome/c3d4/traj": True,
    }
    assert sorted(reward for (reward,) in brief(tmp_path / "store", "reward"))[-2:] == [1.0, 1.0]
    assert {task for (task,) in brief(tmp_path / "store", "task_id")} == {"a1b2", "c3d4"}
    assert "groups by path:-2 (4)" in report.notes
    assert any(f"{Path(name).name} beside the log (4)" in note for note in report.notes)
    again = imported(tmp_path / "log", tmp_path / "store")
    assert (again.num_trajectories, again.num_already_there) == (0, 4)


def test_a_table_beside_a_log_judges_by_names_of_files_below_its_folder_alone(tmp_path: Path):
    for run, won in (("one", "run0"), ("two", "run1")):
        for name in ("run0", "run1"):
            write_json(tmp_path / "log" / run / "logs" / f"{name}.json", chat("mug", name))
        rows = [{"file": f"{name}.json", "passed": name == won} for name in ("run0", "run1")]
        write_lines(tmp_path / "log" / run / "results.jsonl", *rows)
    imported(tmp_path / "log", tmp_path / "store")
    won = [name for name, success in outcomes(tmp_path / "store").items() if success]
    assert won == ["one/logs/run0", "two/logs/run1"]


def test_a_verdict_of_one_is_not_that_of_many_nor_of_a_log_that_judges(tmp_path: Path):
    many = write_lines(tmp_path / "many" / "w.jsonl", chat("a", "b"), chat("a", "c"))
    judged = write_json(tmp_path / "judged" / "w.json", chat("a", "b", success=False))
    for log in (many, judged):
        (log.parent / "result.txt").write_text("1")
    assert imported(many.parent, tmp_path / "s").num_unjudged == 2
    report = imported(judged.parent, tmp_path / "t")
    assert report.num_failed == 1
    assert any(note.startswith("not used: result.txt beside the log") for note in report.notes)


@pytest.mark.parametrize("are_keyed", [True, False])
def test_verdicts_in_folders_of_their_own_judge_by_the_names_of_these(
    are_keyed: bool, tmp_path: Path
):
    won = {("run1", "i1"), ("run2", "i2")}
    for run, name in ((run, name) for run in ("run1", "run2") for name in ("i1", "i2")):
        write_json(tmp_path / run / "trajs" / name / "log.json", chat(name, run))
        judged = tmp_path / run / "evaluation" / name
        judged.mkdir(parents=True)
        verdict = {"resolved": (run, name) in won}
        write_json(judged / "report.json", {name: verdict} if are_keyed else verdict)
    imported(tmp_path, tmp_path.with_name("store"))
    names = {name for name, success in outcomes(tmp_path.with_name("store")).items() if success}
    assert names == {"run1/trajs/i1/log", "run2/trajs/i2/log"}


def test_rows_of_verdicts_that_name_nothing_are_refused(tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", chat("a", "b"), chat("a", "c"))
    for name, text in {"v.csv": "note,passed\nx,True\ny,False\n", "v.json": "[1, 2]"}.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(
            InputError, match=r"(?:line 3|item 2) is another verdict without a name"
        ):
            imported(log, tmp_path / "s", verdicts=tmp_path / name)


def test_a_list_that_begins_with_the_prompt_is_the_way_to_the_answer(tmp_path: Path):
    steps = [said("user", "q?"), said("assistant", "look"), said("user", "4"), *A_FOUR]
    row = {"question": "q?", "prediction": "4", "is_correct": True, "intermediate_steps": steps}
    shots = {**row, "intermediate_steps": [said("user", "other"), said("assistant", "x")]}
    imported(write_lines(tmp_path / "w.jsonl", row, shots), tmp_path / "s", max_unread=100)
    assert {action for (action,) in brief(tmp_path / "s", "action")} == {"look", "four", "4"}


A_FOUR = [said("assistant", "four")]


def test_what_may_be_a_verdict_and_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log = write_json(tmp_path / "w.json", chat("a", "b"))
    (tmp_path / "result.txt").write_text("three of four tests passed")
    report = imported(log, tmp_path / "s")
    assert any(note.startswith("not used: result.txt beside the log") for note in report.notes)
    (tmp_path / "result.txt").write_text("1")
    assert imported(log, tmp_path / "t").num_success == 1
    monkeypatch.setattr(beside, "_MOST_BYTES", 0)
    report = imported(log, tmp_path / "u")
    assert report.num_unjudged == 1
    assert any(note.startswith("not used: result.txt beside the log") for note in report.notes)


def test_names_of_tasks_and_verdicts_may_be_in_any_capitals(tmp_path: Path):
    rows = [
        {"TaskID": "t", "Messages": chat("hall", f"go {n}")["messages"], "Success": n == 1}
        for n in (0, 1)
    ]
    report = imported(write_lines(tmp_path / "c.jsonl", *rows), tmp_path / "s")
    assert (report.num_groups, report.num_success, report.num_failed) == (1, 1, 1)
    steps = [
        {"TrajectoryID": n, "StepIndex": 0, "State": "hall", "Action": f"{n}", "Reward": float(n)}
        for n in (0, 1)
    ]
    report = imported(write_lines(tmp_path / "e.jsonl", *steps), tmp_path / "t")
    assert (report.num_trajectories, report.num_success, report.num_failed) == (2, 1, 1)


CALLS = [
    {"id": f"c{n}", "function": {"name": name, "arguments": "{}"}}
    for n, name in enumerate(("find", "pay"))
]


@pytest.mark.parametrize(
    "beside_them",
    [
        {"tool_results": [{"tool_call_id": "c0", "content": "P1"}, {"id": "c1", "result": "paid"}]},
        {"outputs_of_tools": {"c1": "paid", "c0": "P1"}},
        {
            "calls": [{"id": "c0", "name": "find", "input": {"content": "no result"}}],
            "results": [{"callId": f"c{n}", "output": o} for n, o in enumerate(("P1", "paid"))],
        },
    ],
)
def test_results_in_a_field_of_their_own_belong_to_their_calls(
    beside_them: dict[str, Any], tmp_path: Path
):
    answers = [{"role": "assistant", "content": "", "tool_calls": [call]} for call in CALLS]
    messages = [said("user", "refund"), *answers, said("assistant", "done")]
    row = {"task_id": "t", "reward": 1, "messages": messages, **beside_them}
    imported(write_lines(tmp_path / "r.jsonl", row), tmp_path / "s")
    assert brief(tmp_path / "s", "state", "action") == [
        ("refund", "find({})"),
        ("P1", "pay({})"),
        ("paid", "done"),
    ]


def test_answers_may_have_columns_of_steps(tmp_path: Path):
    answers = [{**said("assistant", "go"), "cost": cost, "oracle_distance": 2} for cost in (9, 1)]
    messages = [said("user", "hall"), answers[0], said("user", "yard"), answers[1]]
    log = write_lines(tmp_path / "r.jsonl", {"reward": 1, "messages": messages})
    report = imported(log, tmp_path / "s")
    assert brief(tmp_path / "s", "cost", "oracle_distance") == [(9.0, 2.0), (1.0, 2.0)]
    assert "the answers have columns of steps: cost, oracle_distance" in report.notes


TABLES: dict[str, str] = {
    "id.csv": "id,passed\nrun0,True\nrun1,False\n",
    "session.jsonl": '{"session": "run0", "verdict": "pass"}\n{"session": "run1", "verdict": 0}',
    "camel.jsonl": '{"sessionId": "run0", "score": 1}\n{"sessionId": "run1", "score": 0}',
    "file.csv": "file,result\n./run0.json,pass\nrun1.json,fail\n",
    "path.csv": "path,reward\nlog/run0.json,1\nlog/run1.json,0\n",
    "several.csv": "name,task,passed,score\nrun0,mug,True,0.9\nrun1,mug,False,0.1\n",
    "nan.jsonl": '{"id": "run0", "passed": true, "score": NaN}\n{"id": "run1", "passed": false}',
    "late.csv": "id,score,passed\nrun0,nan,True\nrun1,nan,False\n",
    "try.csv": "task,run,won\nmug,0,true\nmug,1,false\nbox,0,false\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_usual_names_of_ids_and_verdicts_are_known(name: str, tmp_path: Path):
    verdicts = tmp_path / name
    verdicts.write_text(TABLES[name])
    for number in (0, 1):
        row = chat("fetch it", "go", task_id="mug")
        write_json(tmp_path / "log" / f"run{number}.json", row)
    report = imported(tmp_path / "log", tmp_path / "store", verdicts=verdicts)
    assert outcomes(tmp_path / "store") == {"run0": True, "run1": False}
    assert any("2 of them of 2 rollouts" in note for note in report.notes)


def test_a_folder_of_verdicts_has_them_by_the_names_of_its_files(tmp_path: Path):
    for name in ("run0", "run1"):
        write_json(tmp_path / "log" / f"{name}.json", chat("a", "b"))
        write_json(tmp_path / "judged" / f"{name}.json", {"passed": name == "run1"})
    imported(tmp_path / "log", tmp_path / "store", verdicts=tmp_path / "judged")
    assert outcomes(tmp_path / "store") == {"run0": False, "run1": True}


def test_verdicts_that_match_nothing_are_an_error_with_ids_of_both(tmp_path: Path):
    for name in ("run0", "run1"):
        write_json(tmp_path / "log" / f"{name}.json", chat("a", "b"))
    verdicts = tmp_path / "v.csv"
    verdicts.write_text("id,passed\nx,True\n")
    with pytest.raises(InputError, match=r"has x \(ids: `id`; verdicts: `passed`\); .* run0, run1"):
        imported(tmp_path / "log", tmp_path / "store", verdicts=verdicts)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("num_tries", [1, 3])
def test_a_group_of_several_tasks_is_refused_with_the_field_that_tells_them_apart(
    num_tries: int, tmp_path: Path
):
    rows = [
        chat(f"{suite}: {task}", f"go {number}", suite=suite, task_id=task, trial=number, reward=1)
        for suite in ("bank", "shop")
        for task in ("t1", "t2", "t3")
        for number in range(num_tries)
    ]
    log = write_lines(tmp_path / "w.jsonl", *rows)
    with pytest.raises(InputError, match=r"3 of 3 groups .* --group suite\+task_id makes 6 groups"):
        imported(log, tmp_path / "store")
    assert imported(log, tmp_path / "store", group="suite+task_id").num_groups == 6
    chosen = imported(log, tmp_path / "other", group="task_id")
    assert any("--group suite+task_id makes 6 groups" in note for note in chosen.notes)


def test_prompts_of_one_task_may_differ_where_no_field_tells_them_apart(tmp_path: Path):
    rows = [chat(f"user says {n}", "go", task_id="t", trial=n, reward=n) for n in range(4)]
    report = imported(write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store")
    assert report.num_groups == 1
    assert not any("different prompts" in note for note in report.notes)


def test_rewards_of_turns_that_are_all_zero_are_a_verdict(tmp_path: Path):
    turns = [said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d")]
    rows = [{"task_id": "t", "turn_rewards": r, "messages": turns} for r in ([0, 0], [0, 1])]
    own = [{**m, "reward": 0.5} if m["role"] == "assistant" else m for m in turns]
    log = write_lines(tmp_path / "w.jsonl", *rows, {"task_id": "t", "messages": own})
    report = imported(log, tmp_path / "store", reward="turns")
    assert (report.num_success, report.num_failed, report.num_unjudged) == (2, 1, 0)


def test_chats_may_have_the_names_of_a_store(tmp_path: Path):
    row = chat("a", "b", run_id="r0", iteration=3, trajectory_id="x", task_id="t", reward=1)
    other = chat("a", "b", run_id="9f86d081-84c7-4b1e-8f2a-0c6d1f2e3a4b", task_id="t", reward=1)
    imported(write_lines(tmp_path / "w.jsonl", row, other), tmp_path / "store")
    found = sorted(brief(tmp_path / "store", "run_id", "iteration", "trajectory_id"))
    assert found[1] == ("r0", 3, "x")
    assert found[0][:2] == ("imported", 0)


def test_runs_that_a_path_cannot_tell_apart_stay_apart(tmp_path: Path):
    runs = ["x" * 200, "x" * 199 + "y", "実験", "试验", "r 1", "r/1"]
    rows = [chat("a", "b", run_id=r, trajectory_id=f"{n}") for n, r in enumerate(runs)]
    imported(write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store")
    found = sorted(run for run, *_ in brief(tmp_path / "store", "run_id"))
    assert found[-4:-2] == ["r-1", "r-1"]  # letters and digits are the same
    assert len(set(found)) == 5
    assert max(map(len, found)) == 128


@pytest.mark.parametrize("name", ["lists", "branches"])
def test_parts_of_a_rollout_are_one(name: str, tmp_path: Path):
    messages = [said("user", "hall"), said("assistant", "east"), said("user", "yard")]
    messages.append(said("assistant", "out"))
    other = [said("user", "hall"), said("assistant", "west")]
    rows: list[Any] = [messages[:2], messages]
    if name == "branches":
        rows = [{"trace_id": "A", "reward": 1, "messages": each} for each in (messages, other)]
    imported(write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store")
    assert brief(tmp_path / "store", "action") == [("east",), ("out",)]


HISTORY = [
    {"role": "assistant", "name": "Planner", "content": "count"},
    {"role": "assistant", "name": "Coder", "content": "print(2)"},
    {"role": "user", "name": "terminal", "content": "2"},
    {"role": "assistant", "name": "Planner", "content": "done"},
]
FRAMEWORK = [
    {key: value for key, value in {**each, "role": each["name"]}.items() if key != "name"}
    for each in HISTORY
]
FRAMEWORK[2] = said("user", "2")


@pytest.mark.parametrize("history", [HISTORY, FRAMEWORK], ids=["name", "role"])
def test_an_agent_has_heard_what_others_said_and_a_system_prompt_is_no_state(
    history: list[dict[str, Any]], tmp_path: Path
):
    row = {"question": "q", "success": True, "system_prompt": {"Planner": "plan"}}
    log = write_lines(tmp_path / "w.jsonl", {**row, "history": history})
    imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "state", "action") == [
        ("(nothing)", "count"),
        ("Planner: count", "print(2)"),
        ("Coder: print(2)\n\n2", "done"),
    ]
    imported(log, tmp_path / "coder", agent="Coder")
    assert brief(tmp_path / "coder", "state", "action") == [("Planner: count", "print(2)")]
    imported(log, tmp_path / "planner", agent="Planner")
    found = brief(tmp_path / "planner", "state", "action")
    assert found == [("(nothing)", "count"), ("Coder: print(2)\n\n2", "done")]


LS = {"command": "ls"}


@pytest.mark.parametrize(
    "messages",
    [
        [said("assistant", "look", tool_name="Bash", tool_input=LS), said("tool", "a.py")],
        [said("assistant", "look", tool="Bash", input=LS, output="a.py")],
        [said("assistant", "look"), said("tool", "a.py", name="Bash", input=LS)],
        [
            said("assistant", "look"),
            {"role": "tool_use", "name": "Bash", "input": LS},
            said("tool", "a.py"),
        ],
    ],
)
def test_a_call_in_fields_beside_a_text_is_the_action(
    messages: list[dict[str, Any]], tmp_path: Path
):
    row = {"messages": [said("user", "fix"), *messages, said("assistant", "done")], "reward": 1}
    report = imported(write_lines(tmp_path / "w.jsonl", row), tmp_path / "store")
    assert brief(tmp_path / "store", "state", "thought", "action") == [
        ("fix", "look", 'Bash({"command": "ls"})'),
        ("a.py", None, "done"),
    ]
    assert not any("in no step" in note for note in report.notes)


def frames(game: str, *states: str) -> list[dict[str, Any]]:
    """Return a recording of ARC-AGI-3: the frame of a row is what its action led to."""
    return [
        {
            "timestamp": f"2026-01-01T00:00:0{number}Z",
            "data": {
                "game_id": "mz",
                "guid": game,
                "frame": [[number]],
                "state": state,
                "full_reset": number == 0,
                "action_input": {"id": number, "data": {"game_id": "mz"}, "reasoning": None},
                "available_actions": [1, 2],
            },
        }
        for number, state in enumerate(states)
    ]


def test_a_frame_of_a_recording_is_what_its_action_led_to(tmp_path: Path):
    for game, end in (("g1", "WIN"), ("g2", "GAME_OVER")):
        rows = frames(game, "NOT_FINISHED", "NOT_FINISHED", end)
        write_lines(tmp_path / "log" / f"{game}.jsonl", *rows)
    report = imported(tmp_path / "log", tmp_path / "store")
    assert (report.num_success, report.num_failed, report.num_groups) == (1, 1, 1)
    columns = brief(tmp_path / "store", "state", "action", "next_state")
    assert columns[:2] == [("[[0]]", '{"id": 1}', "[[1]]"), ("[[1]]", '{"id": 2}', "[[2]]")]


def test_a_state_that_follows_from_the_action_is_noticed_and_the_remedy_works(tmp_path: Path):
    for number, act in enumerate(("up", "up", "down", "down")):
        lines = ["Step,Observation,Action,Reward", f"0,{act}stairs,{act},0", "1,end,stop,1"]
        path = tmp_path / "log" / f"Maze-A_run_{number}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")
    group = {"group": "path:(.+)_run"}
    notes = imported(tmp_path / "log", tmp_path / "store", **group).notes
    assert any("--columns next_state=Observation mends that" in note for note in notes)
    mended = {**group, "columns": "next_state=Observation"}
    notes = imported(tmp_path / "log", tmp_path / "mended", **mended).notes
    assert not any("next_state=Observation" in note for note in notes)
    found = set(brief(tmp_path / "mended", "state", "action"))
    assert {("(nothing)", "up"), ("upstairs", "stop")} <= found


def test_calls_stand_in_the_order_of_their_instants_whatever_their_zones(tmp_path: Path):
    turns = [said("user", "a"), said("assistant", "b"), said("user", "c")]
    late = {"timestamp": "2026-03-29T09:00:00Z", "request": {"messages": turns}}
    first = {"timestamp": "2026-03-29T10:00:00+02:00", "request": {"messages": turns[:1]}}
    rows = [{**late, "response": said("assistant", "d")}, {**first, "response": turns[1]}]
    log = write_lines(tmp_path / "w.jsonl", *({**row, "session_id": "s"} for row in rows))
    imported(log, tmp_path / "store")
    assert brief(tmp_path / "store", "action") == [("b",), ("d",)]
