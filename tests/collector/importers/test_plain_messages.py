"""Messages that are read quickly are read as all others are, whatever numbers stand in them."""

import ast
import re
from pathlib import Path

import pytest

from graphcredit.collector.importers.messages import plain
from graphcredit.collector.importers.notes import report_of
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.reading import read_trajectories
from graphcredit.collector.importers.report import ImportReport
from graphcredit.collector.importers.sources import LogSource, log_at
from graphcredit.collector.importers.tally import Tally
from graphcredit.collector.importers.trajectory import ImportedTrajectory
from graphcredit.store.schema import STEP_COLUMNS
from tests.collector.importers.logs import called, said, write_lines

IMPORTERS = Path(plain.__file__).parents[1]


def test_no_number_or_flag_of_a_message_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {
            "task_id": f"{name} {value}",
            "reward": 1.0,
            "messages": [
                {**message, name: value}
                for message in (
                    said("user", "Find it."),
                    called("find", where="hall"),
                    {**said("tool", "a key"), "tool_call_id": "c1"},
                    said("assistant", "A key."),
                )
            ],
        }
        for name in sorted(_names())
        for value in (False, 1, [], "2026-11-28 10:00" if name in plain._TIMES else {})
    ]
    assert len(rows) > 1500
    log = log_at(write_lines(tmp_path / "log.jsonl", *rows), ImportOptions())
    quick = _read(log)
    monkeypatch.setattr(plain, "_are_aside", lambda *_: False)
    slow = _read(log)
    assert quick == slow


def _names() -> set[str]:
    """Return all that readers may call a field of a message, but those that every message has."""
    names = {"is_useful", *(each for c in STEP_COLUMNS for each in (c.name, *c.in_logs))}
    files = (
        path
        for room in ("messages", "rules", "coverage")
        for path in (IMPORTERS / room).glob("*.py")
    )
    for path in (*files, *(IMPORTERS / "formats").glob("*row*.py"), IMPORTERS / "steps.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names |= (
                    {node.value} if re.fullmatch(r"[A-Za-z][\w.-]{0,30}", node.value) else set()
                )
    return names - {"role", "content", "tool_calls", "tool_call_id"}


def _read(log: LogSource) -> tuple[list[ImportedTrajectory], ImportReport]:
    tally = Tally(options=log.options)
    return list(read_trajectories(log, tally)), report_of(tally)
