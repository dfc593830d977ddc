"""What puts records together holds one rollout in memory, and names one that is too large."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.logs.groups import RecordGroups, TooLargeError
from tests.collector.importers.logs import said, write_lines
from tests.collector.importers.read_back import brief, imported

MIB = 1 << 20


def record(value: Any, number: int = 0) -> Record:
    return Record(path=Path("a.jsonl"), place=f"line {number}", value=value, share=0.5)


def test_records_come_back_as_they_were_group_by_group():
    values: list[Any] = [
        {"messages": [said("user", "a")] * 3, "inner": [[said("user", "b")] * 4], "n": [1, 2, 3]},
        [{"a": 1}] * 3,
        {"content": [b"\0", datetime(2025, 1, 1, tzinfo=UTC), 1 << 70, float("inf"), None]},
        "text",
    ]
    groups = RecordGroups(MIB)
    for number, value in enumerate(values):
        groups.add(number % 2, record(value, number), mark=number)
    assert list(groups) == [0, 1]
    assert groups.of(0) == [record(values[0], 0), record(values[2], 2)]
    assert groups.of(1, 0) == [record(value, n) for n, value in enumerate(values)]
    assert groups.at(1, [1]) == [record(values[3], 3)]
    assert list(groups.marks(1)) == [1, 3]


def test_messages_that_recur_are_one_object_and_count_once():
    messages = [said("user", f"{n} {'x' * 5000}") for n in range(200)]
    groups = RecordGroups(2 * MIB)  # all calls together have 100 MB
    for number in range(3, 201):
        groups.add("s", record({"messages": messages[:number]}))
    first, *_, last = groups.of("s")
    assert first.value["messages"][0] is last.value["messages"][0]
    assert last.value["messages"] == messages


def test_a_value_that_is_nested_too_deep_is_refused_alone():
    deep: Any = []
    for _ in range(2000):
        deep = [deep]
    groups = RecordGroups(MIB)
    groups.add("s", record(deep))
    groups.add("s", record("sound"))
    assert [each.place for each in groups.refused] == ["line 0"]
    assert groups.of("s") == [record("sound")]


def test_what_is_too_large_together_names_its_first_record():
    groups = RecordGroups(100)
    groups.add("s", record("x" * 60, 1))
    groups.add("s", record("x" * 60, 2))
    with pytest.raises(TooLargeError) as raised:
        groups.of("s")
    assert raised.value.record().where == "a.jsonl, line 1"


FORMATS: dict[str, tuple[list[Any], list[Any]]] = {
    "message-lines": (
        [{"session_id": "long", **said(role, "x" * 600_000)} for role in ("user", "assistant")],
        [{"session_id": "s", **said("user", "q")}, {"session_id": "s", **said("assistant", "a")}],
    ),
    "calls": (
        [
            {"session_id": "long", "request": {"messages": [said("user", f"{n}" * 600_000)]}}
            | {"response": {"choices": [{"message": said("assistant", "a")}]}}
            for n in range(2)
        ],
        [
            {"session_id": "s", "request": {"messages": [said("user", "q")]}}
            | {"response": {"choices": [{"message": said("assistant", "a")}]}}
        ],
    ),
    "steps": (
        [{"episode": "long", "t": t, "obs": "x" * 600_000, "action": "go"} for t in range(2)],
        [{"episode": "s", "t": 0, "obs": "q", "action": "a"}],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_rollout_over_the_limit_is_named_and_the_others_are_read(name: str, tmp_path: Path):
    long, short = FORMATS[name]
    log = write_lines(tmp_path / "log.jsonl", *long, *short)
    report = imported(log, tmp_path / "store", format=name, max_record=1)
    (bad,) = report.bad_rows
    assert "must have at most 1 MiB" in bad.reason
    assert brief(tmp_path / "store", "state", "action") == [("q", "a")]
    assert imported(log, tmp_path / "more", format=name, max_record=8).num_bad_rows == 0
