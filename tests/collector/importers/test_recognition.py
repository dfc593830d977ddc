"""Each format is recognised by its own reader, whatever the others think of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.recognition import recognised
from graphcredit.collector.importers.sources import log_at
from graphcredit.collector.importers.table import FORMATS, candidates
from tests.collector.importers import dialects, trace_writers
from tests.collector.importers.logs import called, said, write_lines
from tests.collector.importers.rows import ROWS, verl_row


def test_there_is_a_record_of_each_format():
    assert sorted(ROWS) == sorted(row.name for row in FORMATS)


@pytest.mark.parametrize("name", ROWS)
def test_a_record_is_recognised_as_its_own_format_only(name: str):
    record, file = ROWS[name]
    sample = [Record(path=Path(file), place="", value=record, share=1.0)]
    rows = candidates(record, Path(file))
    first, *others = (row.name for row in rows if row.is_log is None or row.is_log(sample))
    assert first == name
    is_part_of = {"verl-agent": {"verl"}}
    assert set(others) <= {"messages", "message-lines"} | is_part_of.get(name, set())


@pytest.mark.parametrize("value", [None, 3, "text", [], [1], {}, {"a": 1}, {"history": [3]}])
def test_other_json_is_no_log(value: object):
    assert candidates(value, Path("x.json")) == []


def samples() -> Iterator[Any]:
    """Yield the name of a file of each format, dialect and writer, and its records."""
    for name, (record, file) in ROWS.items():
        yield pytest.param(file, [record], id=name)
    for write in dialects.DIALECTS:
        rows = [{**write(events), "reward": reward} for _, reward, events in dialects.chats()]
        yield pytest.param("a.jsonl", rows, id=write.__name__)
    for name, writer in trace_writers.WRITERS.items():
        rows = [row for chat in trace_writers.chats() for row in writer(chat)]
        yield pytest.param("a.jsonl", rows, id=f"{name} calls")


@pytest.mark.parametrize(("file", "rows"), [*samples()])
def test_a_further_text_of_a_record_never_changes_its_format(
    file: str, rows: list[Any], tmp_path: Path
):
    log = log_at(write_lines(tmp_path / "a.jsonl"), ImportOptions())

    def format_of(more: dict[str, str]) -> str | None:
        values = [{**more, **row} if isinstance(row, dict) else row for row in rows]
        records = [Record(path=Path(file), place="", value=row, share=1.0) for row in values]
        known = recognised(iter(records), log).format
        return known and known.name

    names = ("remark", "summary", "system", "prompt", "input", "result", "error", "thought")
    text = "no reader reads this"
    found = {format_of(dict.fromkeys(names, text))}
    found |= {format_of({name: f"{text}, " * 1000}) for name in names}
    assert found == {format_of({})} != {None}


def test_a_particular_format_loses_to_one_that_reads_more_than_twice_the_answers(tmp_path: Path):
    """verl reads one answer of a row, `messages` those of its conversation."""

    def format_of(*more: dict[str, Any]) -> str | None:
        row = {**verl_row(), "messages": [said("user", "a"), said("assistant", "six"), *more]}
        path = write_lines(tmp_path / "a.jsonl", row)
        records = [Record(path=path, place="", value=row, share=1.0)]
        known = recognised(iter(records), log_at(path, ImportOptions())).format
        return known and known.name

    walk = [step for n in range(2) for step in (said("user", "on"), called("go", room=n))]
    assert (format_of(*walk[:2]), format_of(*walk)) == ("verl", "messages")


@pytest.mark.parametrize("name", ROWS)
def test_what_recognised_a_file_is_kept_of_its_own_records_alone(name: str, tmp_path: Path):
    """A record that was put together is gone, and the next object may have its `id`."""
    record, file = ROWS[name]
    log = log_at(write_lines(tmp_path / "a.jsonl"), ImportOptions())
    records = [Record(path=Path(file), place=f"{n}", value=record, share=1.0) for n in range(3)]
    known = recognised(iter(records), log)
    assert known.read.keys() <= {id(each) for each in records}
    assert known.read or name != "messages"
