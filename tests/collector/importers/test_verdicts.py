"""`--verdicts`: how trajectories ended, from another file, and what of it is of none of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphcredit.store.errors import InputError, PathError
from tests.collector.importers.logs import said, write_lines
from tests.collector.importers.read_back import brief, imported

LOG = [
    {"instance_id": f"r-{n}", "messages": [said("user", "fix"), said("assistant", f"patch {n}")]}
    for n in range(3)
]

FILES: dict[str, Any] = {
    "texts.json": {"r-0": "1.0", "r-1": "0.0", "r-2": "-1"},
    "report.json": {
        "total_instances": 3,
        "schema_version": 2,
        "submitted_ids": ["r-0", "r-1", "r-2"],
        "resolved_ids": ["r-0"],
        "unresolved_ids": ["r-1"],
        "empty_patch_ids": ["r-2"],
    },
    "results.json": {"resolved": ["r-0"], "no_generation": ["r-1"], "applied": ["r-0", "r-2"]},
    "experiments.json": {"resolved": ["r-0"], "no_generation": ["r-1"], "no_logs": []},
    "instances.json": {f"r-{n}": {"patch_exists": True, "resolved": n == 0} for n in range(3)},
    "map.json": {f"r-{n}": n == 0 for n in range(3)},
    "scores.json": {"accuracy": 0.3, "scores": {"r-0": 1, "r-1": 0, "r-2": 0}},
    "list.json": [{"id": f"r-{n}", "score": float(n == 0)} for n in range(3)],
    "table.csv": "instance,mine\nr-0,pass\nr-1,fail\nr-2,fail\n",
    "openhands.jsonl": "\n".join(
        json.dumps({"instance_id": f"r-{n}", "test_result": {"report": {"resolved": n == 0}}})
        for n in range(3)
    ),
}


def write(path: Path, content: Any) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_file_gives_the_same_verdicts(name: str, tmp_path: Path):
    verdicts = write(tmp_path / name, FILES[name])
    log = write_lines(tmp_path / "log.jsonl", *LOG)
    report = imported(log, tmp_path / "store", verdicts=verdicts)
    assert (report.num_success, report.num_failed, report.num_unjudged) == (1, 2, 0)
    won = [action for action, success in brief(tmp_path / "store", "action", "success") if success]
    assert won == ["patch 0"]


def test_lists_of_wins_alone_that_name_no_rollout_are_refused(tmp_path: Path):
    verdicts = write(tmp_path / "v.json", {"resolved": ["x-0"], "no_generation": [], "no_logs": []})
    log = write_lines(tmp_path / "log.jsonl", *LOG)
    with pytest.raises(InputError, match="must name what the log names"):
        imported(log, tmp_path / "store", verdicts=verdicts)


def test_scores_are_rewards_for_which_a_threshold_is_named(tmp_path: Path):
    verdicts = write(tmp_path / "s.json", {"r-0": 90, "r-1": 20, "r-2": 60})
    log = write_lines(tmp_path / "log.jsonl", *LOG)
    report = imported(log, tmp_path / "store", verdicts=verdicts, success="reward>=50")
    assert (report.num_success, report.num_failed) == (2, 1)
    assert sorted(brief(tmp_path / "store", "reward")) == [(20.0,), (60.0,), (90.0,)]


def test_what_does_not_match_is_counted_and_named(tmp_path: Path):
    verdicts = write(tmp_path / "v.json", {"r-0": True, "r-7": False, "r-8": True})
    log = write_lines(tmp_path / "log.jsonl", *LOG, {**LOG[0], "reward": 0.0})
    notes = imported(log, tmp_path / "store", verdicts=verdicts).notes
    assert f"verdicts of {verdicts}: 3 verdicts, 1 of them of 2 rollouts" in notes
    assert "2 verdicts of no rollout: r-7, r-8" in notes
    without = next(note for note in notes if "without a verdict in the file" in note)
    assert without.startswith("2 rollouts")
    assert "(r-1), " in without
    assert any(note.startswith("1 verdict of several rollouts each") for note in notes)


@pytest.mark.parametrize("before", ["", "\n ", '{"id": "r-1", "score": 0}\n'])
def test_a_name_that_is_there_twice_is_refused(before: str, tmp_path: Path):
    log, kind = write_lines(tmp_path / "log.jsonl", *LOG), "jsonl" if before else "json"
    two = write(tmp_path / f"two.{kind}", before + '{"r-0": 1, "r-0": 0}')
    with pytest.raises(InputError, match="must have each of its keys once: it has 'r-0' twice"):
        imported(log, tmp_path / "store", verdicts=two)


def test_a_file_without_verdicts_is_refused(tmp_path: Path):
    log = write_lines(tmp_path / "log.jsonl", *LOG)
    nothing = write(tmp_path / "v.json", {"a": {"b": "c"}})
    with pytest.raises(InputError, match="must have verdicts: resolved_ids, an object of ids"):
        imported(log, tmp_path / "store", verdicts=nothing)
    twice = write(tmp_path / "w.json", [{"id": 1, "score": 1}, {"id": 1, "score": 0}])
    with pytest.raises(InputError, match="item 2: 1 must have one verdict: it has two"):
        imported(log, tmp_path / "store", verdicts=twice)
    with pytest.raises(PathError, match="--verdicts must be a file"):
        imported(log, tmp_path / "store", verdicts=tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            '{"a":' * 900 + "1" + "}" * 900,
            "v.json, object 1: it must be JSON: lists and objects may be nested at most 200",
        ),
        ('{"r-0": NaN}', "v.json: a score must be a finite number: got nan"),
        ('{"r-0": "1e999"}', "v.json: a score must be a finite number: got inf"),
        (f'{{"r-0": {"9" * 400}}}', "v.json: a score must be a finite number"),
        (
            '{"resolved_ids": ["r-0"], "unresolved_ids": ["r-0"]}',
            "v.json: r-0 must be resolved or not: it is in both lists",
        ),
        ('{"a": 1, "b": 0, "c": 1}', "v.json: a file of verdicts must have at most 2 ids"),
    ],
    ids=["deep", "nan", "infinite", "huge", "both", "many"],
)
def test_a_hostile_file_of_verdicts_is_named(
    content: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("graphcredit.collector.importers.rules.verdicts._MOST_IDS", 2)
    log = write_lines(tmp_path / "log.jsonl", *LOG)
    with pytest.raises(InputError, match=re.escape(reason)):
        imported(log, tmp_path / "store", verdicts=write(tmp_path / "v.json", content))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("log_name", ["log.jsonl", "log.json", "log.csv"])
@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        ("map.json", {"0": True, "1": False, "2": False}),
        ("list.json", [{"index": n, "passed": n == 1} for n in (3, 2, 1)]),
        ("table.csv", "row,score,note\n0,1,a\n1,0,b\n2,0,c\n"),
    ],
)
def test_numbers_of_rows_judge_rows_where_the_log_has_nothing_else(
    name: str, verdicts: Any, log_name: str, tmp_path: Path
):
    rows = [{"messages": row["messages"]} for row in LOG]
    if log_name == "log.csv":
        cells = [json.dumps(row["messages"]).replace('"', '""') for row in rows]
        written = "\n".join(["messages", *(f'"{cell}"' for cell in cells)])
    else:
        written = rows if log_name == "log.json" else "\n".join(map(json.dumps, rows))
    log, judged = write(tmp_path / log_name, written), write(tmp_path / name, verdicts)
    report = imported(log, tmp_path / "store", verdicts=judged)
    won = [action for action, success in brief(tmp_path / "store", "action", "success") if success]
    assert (report.num_failed, won) == (2, ["patch 0"])
    assert any(note.startswith("verdicts by numbers of rows") for note in report.notes)


def test_numbers_are_no_rows_where_lines_are_empty_or_the_log_has_them_as_ids(tmp_path: Path):
    judged = write(tmp_path / "map.json", {"0": True, "1": False, "2": False})
    lines = [json.dumps({"messages": row["messages"]}) for row in LOG]
    log = write(tmp_path / "log.jsonl", "\n".join([lines[0], "", *lines[1:]]))
    with pytest.raises(InputError, match=r"none of .* is of a rollout"):
        imported(log, tmp_path / "store", verdicts=judged)
    rows = [{**row, "instance_id": name} for row, name in zip(LOG, "10x", strict=True)]
    report = imported(write_lines(tmp_path / "ids.jsonl", *rows), tmp_path / "s", verdicts=judged)
    won = [action for action, success in brief(tmp_path / "s", "action", "success") if success]
    assert (won, report.num_failed, report.num_unjudged) == (["patch 1"], 1, 1)
