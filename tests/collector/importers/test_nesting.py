"""Values that are nested deep, at every place of a record of each format: a bad row or a step."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphcredit.collector.importers.logs.json_list import list_items, values
from graphcredit.collector.importers.logs.json_text import parse_json_text
from graphcredit.store.files.parse import MAX_DEPTH, parse_json
from tests.collector.importers.logs import write_lines
from tests.collector.importers.read_back import imported
from tests.collector.importers.rows import ROWS
from tests.examples import nightly

DEPTHS = (1, 100, MAX_DEPTH - 8, MAX_DEPTH, 255, 400, 990, 1010, 2000)
_FEW = (MAX_DEPTH - 8, 2000)
READERS: dict[str, Callable[[str], Any]] = {
    "value": parse_json,
    "record": parse_json_text,
    "values": lambda text: next(values(io.BytesIO(text.encode()).read)),
    "items": lambda text: next(list_items(io.BytesIO(f"[{text}]".encode()).read)),
}


def nested(depth: int, kinds: str) -> str:
    """Return a text in lists and objects, whose kinds take turns."""
    opened = [kinds[number % len(kinds)] for number in range(depth)]
    begin = "".join('{"a": ' if kind == "{" else "[" for kind in opened)
    return begin + '"x"' + "".join("}" if kind == "{" else "]" for kind in reversed(opened))


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@given(depth=st.integers(1, 2 * MAX_DEPTH) | st.integers(1, 2000), kinds=st.text("[{", min_size=1))
@example(depth=MAX_DEPTH, kinds="[{")
@example(depth=MAX_DEPTH + 1, kinds="[{")
def test_one_limit_holds_wherever_json_is_read(
    reader: Callable[[str], Any], depth: int, kinds: str
):
    text = nested(depth, kinds)
    if depth <= MAX_DEPTH:
        assert reader(text) == json.loads(text)
    else:
        with pytest.raises(ValueError, match=f"at most {MAX_DEPTH} deep"):
            reader(text)


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
@pytest.mark.parametrize(
    ("kinds", "depths"), [("[{", _FEW), *(nightly(kinds, DEPTHS) for kinds in ("[", "{", "[{"))]
)
def test_whatever_is_nested_is_imported_or_a_bad_row(
    name: str, kinds: str, depths: tuple[int, ...], tmp_path: Path
):
    record, file = ROWS[name]
    lines = [line for d in depths for line in rows_with(record, nested(d, kinds))]
    log = write_lines(tmp_path / f"{Path(file).stem}.jsonl", json.dumps(record), *lines)
    too_deep = sum(nested(MAX_DEPTH, kinds) in line for line in lines)
    report = imported(log, tmp_path / "store", max_unread=100.0)
    assert report.num_bad_rows >= too_deep
