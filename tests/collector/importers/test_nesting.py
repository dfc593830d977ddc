"""Values that are nested deep, at every place of a record of each format: a bad row or a step."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from graphcredit.store.files.parse import MAX_DEPTH
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import imported
from tests.collector.importers.rows import ROWS

DEPTHS = (1, 100, MAX_DEPTH - 8, MAX_DEPTH, 255, 400, *range(960, 1030, 10), 2000)


def nested(depth: int, begin: str, end: str) -> str:
    return begin * depth + '"x"' + end * depth


def with_leaf(value: Any, leaf: str) -> Iterator[Any]:
    """Yield a value with one of its texts replaced, each in turn."""
    if isinstance(value, str):
        yield leaf
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for name, field in fields.items():
            yield from ({**fields, name: each} for each in with_leaf(field, leaf))
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        for n, item in enumerate(items):
            yield from ([*items[:n], each, *items[n + 1 :]] for each in with_leaf(item, leaf))


def rows_with(record: object, text: str) -> Iterator[str]:
    """Yield a record as JSON with a JSON text at each of its texts: as a value, and as a text."""
    for row in with_leaf(record, "\0"):
        line = json.dumps(row)
        yield line.replace(r'"\u0000"', text)
        yield line.replace(r'"\u0000"', json.dumps(text))


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a": ', "}")], ids=["[]", "{}"])
def test_whatever_is_nested_is_imported_or_a_bad_row(
    name: str, begin: str, end: str, tmp_path: Path
):
    record, file = ROWS[name]
    lines = [line for d in DEPTHS for line in rows_with(record, nested(d, begin, end))]
    log = write_lines(tmp_path / f"{Path(file).stem}.jsonl", json.dumps(record), *lines)
    too_deep = sum(nested(MAX_DEPTH, begin, end) in line for line in lines)
    report = imported(log, tmp_path / "store", max_unread=100.0)
    assert report.num_bad_rows >= too_deep
