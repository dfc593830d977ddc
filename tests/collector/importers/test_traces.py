"""Traces and logs of calls: one set of chats is one store, whoever wrote it."""

from pathlib import Path
from typing import Any

import pytest

from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import imported, steps_of
from tests.collector.importers.trace_writers import WRITERS, chats

COLUMNS = ("task_id", "state", "action", "thought", "reward", "success")


def told(store: Path) -> list[Any]:
    return sorted(tuple(str(row[name]) for name in COLUMNS) for row in steps_of(store))


@pytest.mark.parametrize("name", WRITERS)
def test_chats_become_the_same_steps_whoever_wrote_them(name: str, tmp_path: Path):
    rows = [{**chat, "reward": chat["score"]} for chat in chats()]
    imported(write_lines(tmp_path / "chats.jsonl", *rows), tmp_path / "right")
    lines = [line for chat in chats() for line in WRITERS[name](chat)]
    report = imported(write_lines(tmp_path / "log.jsonl", *lines), tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows, report.left_out) == (4, 0, {})
    assert told(tmp_path / "store") == told(tmp_path / "right")
