"""Where harnesses write verdicts of two models that played the same tasks: each finds its own."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import run
from tests.collector.importers.logs import said, write_json, write_lines
from tests.collector.importers.read_back import imported, steps_of

WON = {
    (model, task, number): (len(model) + len(task) + number + (task == "box")) % 3 == 0
    for model in ("large", "tiny-2")
    for task in ("mug", "box", "lamp")
    for number in (0, 1)
}
"""Of each model, task and try; tries of a task, and models, differ."""

ROWS = [
    {"model": model, "task_id": task, "attempt": number, "passed": won}
    for (model, task, number), won in WON.items()
]

PATHS = ("{0}/{1}/{2}", "{0}/{1}/try_{2}", "{0}/{1}/attempt-{2}/chat", "run{2}/{0}/{1}")
"""Paths of logs by model, task and try."""


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _nested() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (model, task, number), won in WON.items():
        found.setdefault(model, {}).setdefault(task, {})[str(number)] = won
    return found


SUMMARIES: dict[str, Callable[[], str]] = {
    "summary.json": lambda: json.dumps(ROWS),
    "results.csv": lambda: _csv(ROWS),
    "report.json": lambda: json.dumps({"results": [{**row, "cost": 0.5} for row in ROWS]}),
    "eval.json": lambda: json.dumps(_nested()),
}


def _log(folder: Path, path: str) -> Path:
    for model, task, number in WON:
        messages = [said("user", f"find the {task}"), said("assistant", f"{model} {number}")]
        write_lines(folder / f"{path.format(model, task, number)}.jsonl", *messages)
    return folder


def _outcomes(store: Path) -> dict[str, bool]:
    return {row["action"] + row["state"][8:]: row["success"] for row in steps_of(store)}


EXPECTED = {f"{model} {number} {task}": won for (model, task, number), won in WON.items()}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", SUMMARIES)
@pytest.mark.parametrize("is_named", [False, True])
def test_a_summary_of_models_tasks_and_tries(path: str, name: str, is_named: bool, tmp_path: Path):
    log = _log(tmp_path / "log", path)
    summary = log / name
    summary.write_text(SUMMARIES[name]())
    options = {"verdicts": str(summary)} if is_named else {}
    imported(log, tmp_path / "store", **options)
    assert _outcomes(tmp_path / "store") == EXPECTED


@pytest.mark.parametrize("suffix", [".result.json", "_reward.json"])
def test_a_verdict_that_has_the_name_of_the_log_beside_it(suffix: str, tmp_path: Path):
    log = _log(tmp_path / "log", PATHS[0])
    for (model, task, number), won in WON.items():
        write_json(log / model / task / f"{number}{suffix}", {"success": won})
    imported(log, tmp_path / "store")
    assert _outcomes(tmp_path / "store") == EXPECTED


def test_a_list_of_tries_in_the_folder_of_their_task(tmp_path: Path):
    log = _log(tmp_path / "log", PATHS[0])
    for model, task, _ in WON:
        rows = [{"attempt": n, "success": WON[model, task, n]} for n in (0, 1)]
        write_json(log / model / task / "result.json", rows)
    imported(log, tmp_path / "store")
    assert _outcomes(tmp_path / "store") == EXPECTED


def test_rows_of_a_log_and_of_its_verdicts_that_name_models_tasks_and_tries(tmp_path: Path):
    rows = [
        {**row, "messages": [said("user", f"find the {row['task_id']}"), said("assistant", text)]}
        for row in ROWS
        for text in [f"{row['model']} {row['attempt']}"]
    ]
    log = write_lines(tmp_path / "log.jsonl", *({**row, "passed": None} for row in rows))
    (tmp_path / "v.csv").write_text(_csv(ROWS))
    imported(log, tmp_path / "store", verdicts=str(tmp_path / "v.csv"))
    assert _outcomes(tmp_path / "store") == EXPECTED


def test_why_names_verdicts_that_were_not_used(tmp_path: Path):
    log = _log(tmp_path / "log", PATHS[0])
    (log / "summary.json").write_text(SUMMARIES["summary.json"]())
    write_json(log / "report.json", {"other/task/0": True})
    told = run("why", log).out.partition("What to distrust")[2]
    assert "- not used: report.json beside the log" in told
    assert "summary.json" not in told
    (log / "summary.json").unlink()
    refused = run("why", log)
    assert (refused.exit_code, "not used: report.json" in refused.err) == (2, True)


@pytest.mark.parametrize("by", ["/", ":"])
def test_keys_that_join_a_task_and_its_try(by: str, tmp_path: Path):
    won = {(task, number): passed for (m, task, number), passed in WON.items() if m == "large"}
    for task, number in won:
        messages = [said("user", f"find the {task}"), said("assistant", f"{number}")]
        row = {"task_id": task, "messages": messages}
        write_lines(tmp_path / "log" / f"try_{number}" / f"{task}.jsonl", row)
    keys = {f"{task}{by}{number}": passed for (task, number), passed in won.items()}
    write_json(tmp_path / "log" / "results.json", keys)
    imported(tmp_path / "log", tmp_path / "store")
    expected = {f"{number} {task}": passed for (task, number), passed in won.items()}
    assert _outcomes(tmp_path / "store") == expected
