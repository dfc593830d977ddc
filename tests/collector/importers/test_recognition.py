"""Each format is recognised by its own reader, whatever the others think of it."""

from pathlib import Path

import pytest

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.table import FORMATS, candidates
from tests.collector.importers.rows import ROWS


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
