"""Logs as people have them: failed first rows, odd numbers, files that cannot be read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.errors import InputError
from tests.cli.in_process import run
from tests.collector.importers.logs import WALKS, walk, write_lines
from tests.collector.importers.read_back import imported, steps_of

HUGE = "9" * 400


@pytest.mark.parametrize(
    "first",
    [
        {"task_id": "t", "reward": None, "messages": None, "error": "timeout"},
        {"task_id": "t", "messages": 5},
        {"config": 1},
        42,
        "{",
    ],
)
def test_a_first_row_that_failed_does_not_hide_the_others(first: Any, tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", first, *WALKS)
    report = imported(log, tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (3, 1)
    assert report.bad_rows[0].where == f"{log}, line 1"


@pytest.mark.parametrize("name", ["a.tar.gz", "a.TGZ", "a.zip"])
def test_an_archive_is_named_and_not_read(name: str, tmp_path: Path):
    write_lines(tmp_path / "log" / "w.jsonl", *WALKS)
    (tmp_path / "log" / name).write_bytes(b"packed")
    report = imported(tmp_path / "log", tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (3, 1)
    (bad,) = report.bad_rows
    assert bad.where == str(tmp_path / "log" / name)
    assert bad.reason == "it must be unpacked first: it is an archive"
    with pytest.raises(InputError, match="must be unpacked first: it is an archive"):
        imported(tmp_path / "log" / name, tmp_path / "other")


def test_a_rollout_without_messages_is_left_out_and_counted(tmp_path: Path):
    failed = {"task_id": 1, "reward": 0.0, "info": {"error": "…"}, "traj": [], "trial": 2}
    report = imported(write_lines(tmp_path / "w.jsonl", *WALKS, failed), tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (3, 0)
    assert report.left_out == {"row without messages": 1}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (None, "messages must be a list: got None"),
        ("hello", "messages must be a list: got 'hello'"),
        ([{"content": "hi"}], "messages[0] must have a role"),
    ],
)
def test_messages_that_are_none_are_described(tmp_path: Path, messages: object, reason: str):
    log = write_lines(tmp_path / "w.jsonl", WALKS[0], {"task_id": "t", "messages": messages})
    report = imported(log, tmp_path / "store")
    assert report.bad_rows[0].reason.startswith(reason)


def test_a_field_that_is_missing_is_named(tmp_path: Path):
    row = {"input": "q", "output": "a", "score": 1.0, "step": 2}
    log = write_lines(tmp_path / "2.jsonl", row, {"input": "q", "output": "a", "step": 2})
    report = imported(log, tmp_path / "store")
    assert (report.num_files, report.num_trajectories) == ({"verl": 1}, 1)
    assert report.bad_rows[0].reason == "it must be a record of the format verl: it has no 'score'"


def test_named_rewards_have_no_total(tmp_path: Path):
    rows = [walk("a", reward={"exit": 1.0, "short": 0.5}), walk("b", reward={"exit": 0.0})]
    log = write_lines(tmp_path / "w.jsonl", *rows)
    report = imported(log, tmp_path / "none")
    assert report.num_unjudged == 2
    assert any("numbers and flags of these records: exit, short" in note for note in report.notes)
    report = imported(log, tmp_path / "store", reward="exit")
    assert (report.num_success, report.num_failed) == (1, 1)


def test_empty_actions_are_counted(tmp_path: Path):
    messages = [*WALKS[0]["messages"], {"role": "user", "content": "?"}, {"role": "assistant"}]
    log = write_lines(tmp_path / "w.jsonl", {**WALKS[0], "messages": messages})
    report = imported(log, tmp_path / "store")
    assert any(note.startswith("1 step with an empty action") for note in report.notes)


def test_a_link_to_nothing_and_a_pipe_are_named(tmp_path: Path):
    write_lines(tmp_path / "log" / "good.jsonl", *WALKS)
    link, pipe = tmp_path / "log" / "a.jsonl", tmp_path / "log" / "c.jsonl"
    link.symlink_to("nowhere")
    os.mkfifo(pipe)
    report = imported(tmp_path / "log", tmp_path / "store")
    assert report.num_trajectories == 3
    assert [bad.where for bad in report.bad_rows] == [str(link), str(pipe)]
    assert "must be a file" in report.bad_rows[0].reason


def test_broken_lines_of_a_file_that_is_no_log_are_named(tmp_path: Path):
    write_lines(tmp_path / "log" / "good.jsonl", *WALKS)
    odd = write_lines(tmp_path / "log" / "odd.jsonl", "{", {"config": 1})
    report = imported(tmp_path / "log", tmp_path / "store")
    assert [bad.where for bad in report.bad_rows] == [f"{odd}, line 1"]


@pytest.mark.parametrize("field", ["reward", "task_id", "step", "iteration", "success"])
def test_a_huge_number_is_a_bad_row_or_a_name(field: str, tmp_path: Path):
    row = json.dumps({**WALKS[0], field: 0}).replace(f'"{field}": 0', f'"{field}": {HUGE}')
    report = imported(write_lines(tmp_path / "w.jsonl", row, *WALKS[1:]), tmp_path / "store")
    assert report.num_trajectories + report.num_bad_rows == 3
    assert report.num_trajectories >= 2


def test_a_file_that_fails_to_open_is_named_and_the_rest_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_lines(tmp_path / "log" / "good.jsonl", *WALKS)
    bad = write_lines(tmp_path / "log" / "secret.jsonl", *WALKS)
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == bad:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    report = imported(tmp_path / "log", tmp_path / "store")
    assert report.num_trajectories == 3
    assert [(b.where, b.reason) for b in report.bad_rows] == [(str(bad), "Permission denied")]


def test_the_verdict_is_of_the_chosen_reward(tmp_path: Path):
    rows = [walk("a", reward=1.0, exact=0), walk("b", reward=0.0, exact=1)]
    report = imported(write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store", reward="exact")
    last = [(s["reward"], s["success"]) for s in steps_of(tmp_path / "store") if s["terminated"]]
    assert sorted(last) == [(0.0, False), (1.0, True)]
    assert report.num_unjudged == 0


def test_a_log_without_a_verdict_names_its_numbers(tmp_path: Path):
    row = walk("a", metrics={"exact": 1}, accuracy=0.5, eval={"matched": True})
    del row["reward"]
    log = write_lines(tmp_path / "w.jsonl", row)
    report = imported(log, tmp_path / "store")
    (note,) = [note for note in report.notes if "without a verdict" in note]
    assert "numbers and flags of these records: accuracy, exact, eval.matched" in note
    judged = imported(log, tmp_path / "other", reward="exact")
    assert (judged.num_success, judged.num_unjudged) == (1, 0)


def test_a_success_that_no_record_has_is_said(tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", *WALKS)
    with pytest.raises(InputError, match="none of the first 3 rollouts has 'nosuch'"):
        imported(log, tmp_path / "store", success="nosuch")
    assert not (tmp_path / "store").exists()


def test_bad_rows_that_are_not_named_are_counted(tmp_path: Path):
    broken = ["{" + " " * (number % 12) for number in range(14)]
    log = write_lines(tmp_path / "w.jsonl", *WALKS, *broken)
    ended = run("import", log, tmp_path / "s")
    assert f"bad: {log}, line 4 and 1 more: it must be JSON" in ended.err  # 4 and 16 are alike
    assert ended.err.count("bad: ") == 10
    assert "14 bad rows, not imported; 2 of them not named here: --json names 100" in ended.out
    assert ended.exit_code == 1


def test_a_file_of_text_lines_is_refused_by_one_sentence(tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", *["[START] task=easy", "[STEP] action=go reward=1"] * 9)
    report = imported(log, tmp_path / "store")
    [(where, reason)] = [(bad.where, bad.reason) for bad in report.bad_rows]
    assert where == str(log)
    assert "it is text that begins with '[START] task=easy'" in reason
    uneven = write_lines(tmp_path / "w.csv", "state,action", "a,b,c", "d,e,f")
    rows = imported(uneven, tmp_path / "store").bad_rows
    assert rows
    assert not any("must be JSON" in row.reason for row in rows)


def test_other_options_for_the_same_store_are_said_in_one_sentence(tmp_path: Path):
    log, store = write_lines(tmp_path / "w.jsonl", *WALKS), tmp_path / "store"
    imported(log, store)
    before = steps_of(store)
    report = imported(log, store, state="window:2")
    assert (report.num_different, report.num_bad_rows, report.num_trajectories) == (3, 0, 0)
    assert report.different_columns == ["state", "next_state", "observation"]
    assert "its next_state is 'kitchen' there, 'hall\\n> " in report.difference
    assert not [note for note in report.notes if "group" in note]
    assert steps_of(store) == before
    assert imported(log, store, group="prompt").different_columns == ["task_id"]
    assert imported(log, store, group="prompt", run="other").num_trajectories == 3
    ended = run("import", log, store, "--success", "reward<1")
    assert ended.exit_code == 1
    said = "not imported: 3 rollouts that the store has with other values of next_state, success"
    assert said in ended.out
    assert ended.out.count("Use a new store, or another --run. For example, ") == 1


@pytest.mark.parametrize(
    ("tasks", "note"),
    [
        ("abc", "every group has one rollout, so no estimator can compare: --group names"),
        ("aabcd", "3 of 4 groups have one rollout, which no estimator can compare: if "),
        ("aabbc", None),
    ],
)
def test_groups_of_one_are_named_where_they_are_usual(tasks: str, note: str | None, tmp_path: Path):
    rows = [walk("kitchen", task=task, trial=number) for number, task in enumerate(tasks)]
    report = imported(write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "store")
    said = [found for found in report.notes if "no estimator" in found]
    assert [found.startswith(note or "") for found in said] == [True] * bool(note)


def test_a_log_without_a_trajectory_ends_with_1(tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", {"messages": [{"role": "user", "content": "hall"}]})
    ended = run("import", log, tmp_path / "store")
    assert (ended.exit_code, ended.out.splitlines()[0][:20]) == (1, "0 rollouts imported,")
