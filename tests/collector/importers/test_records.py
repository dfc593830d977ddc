"""Records of files, however they are written."""

import gzip
import io
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcredit.collector.importers.logs import json_list, jsonl, records
from graphcredit.collector.importers.logs.files import RowError
from graphcredit.collector.importers.logs.json_list import list_items
from graphcredit.collector.importers.logs.json_text import (
    content_digest,
    parse_json_text,
    refuse_repeated_keys,
    strict_json,
)
from graphcredit.collector.importers.logs.records import read_records
from graphcredit.store.errors import InputError
from graphcredit.store.files.parse import MAX_DEPTH
from tests.collector.importers.logs import WALKS, said, write_json, write_lines
from tests.collector.importers.read_back import imported, steps_of

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_lines_in_another_encoding_are_refused(tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", *WALKS)
    log.write_bytes(log.read_text().encode("utf-16"))
    (bad,) = imported(log, tmp_path / "store").bad_rows
    assert bad.where == str(log)
    assert "must be UTF-8: its first bytes are those of UTF-16" in bad.reason


@given(items=st.lists(VALUES), chunk=st.integers(1, 9), indent=st.sampled_from([None, 1]))
def test_a_list_is_read_item_by_item(items: list[Any], chunk: int, indent: int | None):
    text = json.dumps(items, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        text.decode()
    except UnicodeDecodeError:
        return
    with patch.object(json_list, "_CHUNK", chunk):
        assert list(list_items(io.BytesIO(text).read)) == items


@pytest.mark.parametrize(
    ("text", "num_items", "reason"),
    [
        ("[1, 2, oops, 4]", 2, "Expecting value: line 1 column 8"),
        ("[1,\n 2,\n oops, 4]", 2, "Expecting value: line 3 column 2"),
        ("[1 2]", 1, "expected ']', found '2': line 1 column 4"),
        ("[1, 2", 2, "expected ']', found '': line 1 column 6"),
        ('[1, "two', 1, "Unterminated string starting at: line 1 column 5"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 100])
def test_a_list_that_breaks_off(text: str, num_items: int, reason: str, chunk: int):
    items = list_items(io.BytesIO(text.encode()).read)
    with patch.object(json_list, "_CHUNK", chunk):
        assert len([next(items) for _ in range(num_items)]) == num_items
        with pytest.raises(ValueError, match=f"{reason}$"):
            next(items)


def test_long_lists_are_as_short_ones(tmp_path: Path):
    log = write_json(tmp_path / "list.json", WALKS)
    chat = write_json(tmp_path / "chat.json", WALKS[0]["messages"])
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(WALKS)[:-1] + ", oops]", encoding="utf-8")
    whole = [[(r.place, r.value) for r in read_records(path)] for path in (log, chat)]
    with patch.object(records, "WHOLE_BYTES", 100):
        for path, expected in zip((log, chat), whole, strict=True):
            assert [(r.place, r.value) for r in read_records(path)] == expected
        *sound, last = read_records(broken)
    assert [record.value for record in sound] == WALKS
    assert (last.place, str(last.value)) == (
        "item 4",
        "it must be JSON, as the rest of the list: Expecting value: line 1 column "
        f"{broken.read_text().index('oops') + 1}",
    )


@pytest.mark.parametrize("name", ["w.jsonl", "w.json"])
def test_a_byte_order_mark_is_no_part_of_the_log(tmp_path: Path, name: str):
    write = write_lines if name.endswith("l") else write_json
    log = write(tmp_path / name, WALKS[0])
    imported(log, tmp_path / "plain")
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes())
    assert imported(log, tmp_path / "plain").num_already_there == 1


def test_lines_may_end_as_on_windows_and_without_an_end(tmp_path: Path):
    log = tmp_path / "w.jsonl"
    log.write_bytes(b"\r\n".join(json.dumps(row).encode() for row in ["", *WALKS])[4:])
    places = [record.place for record in read_records(log)]
    assert places == ["line 1", "line 2", "line 3"]
    assert imported(log, tmp_path / "store").num_trajectories == 3


def test_blocks_of_any_size_have_the_same_lines(tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", WALKS[0], "", "{", *WALKS[1:], "")
    whole = [(r.place, str(r.value)) for r in read_records(log)]
    assert [place for place, _ in whole] == ["line 1", "line 3", "line 4", "line 5"]
    for size in (1, 50, 1000):
        with patch.object(jsonl, "BLOCK_BYTES", size), patch.object(jsonl, "_READ_BYTES", 7):
            assert [(r.place, str(r.value)) for r in read_records(log)] == whole


@pytest.mark.parametrize("name", ["w.jsonl", "w.json", "w.json.gz"])
def test_an_empty_file_is_no_log(tmp_path: Path, name: str):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / name).touch()
    write_lines(tmp_path / "log" / "walks.jsonl", WALKS[0])
    report = imported(tmp_path / "log", tmp_path / "store")
    assert report.num_trajectories == 1
    assert report.num_bad_rows + len(report.other_files) == 1


def test_numbers_and_texts_that_json_lacks():
    assert strict_json({"a": float("nan"), "b": [1.5, float("inf")]}) == '{"a":null,"b":[1.5,null]}'
    assert strict_json({"a": "\ud83d", "n": float("nan")}) == '{"a":"?","n":null}'
    assert strict_json(said("user", "Küche")) == '{"role":"user","content":"Küche"}'
    assert content_digest({"a": 1, "b": 2}) == content_digest({"b": 2, "a": 1})
    assert content_digest({"a": "\ud83d", "b": 2}) == content_digest({"b": 2, "a": "\ud83d"})
    assert content_digest({"a": 1}) != content_digest({"a": "1"})


def test_deep_values_are_read_and_written(tmp_path: Path):
    deep: Any = "end"
    for _ in range(MAX_DEPTH - 3):
        deep = [deep]
    row = {**WALKS[0], "messages": [said("user", "hall", deep=deep), said("assistant", "go")]}
    assert imported(write_lines(tmp_path / "w.jsonl", row), tmp_path / "store").num_bad_rows == 0
    (step,) = steps_of(tmp_path / "store")
    assert json.loads(step["extra"])["seen"][0]["deep"] == deep


def test_a_line_that_is_nested_too_deep_is_a_bad_row(tmp_path: Path):
    log = write_lines(tmp_path / "w.jsonl", "[" * 100_000, WALKS[0])
    first, second = read_records(log)
    assert isinstance(first.value, RowError)
    assert second.value == WALKS[0]


TEXTS = st.text(st.sampled_from('a":\\{}[],é\ud83d \n0'), max_size=6)
TREES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(value=TREES, is_ascii=st.booleans(), indent=st.sampled_from([None, 1]), gap=TEXTS)
def test_a_key_is_missed_where_it_is_there_twice_and_nowhere_else(
    value: Any, is_ascii: bool, indent: int | None, gap: str
):
    text = json.dumps(
        {gap: value, "rest": [value]}, ensure_ascii=is_ascii, indent=indent, separators=(",", " : ")
    )
    data = text.encode("utf-8", "surrogatepass")
    parsed = parse_json_text(data)
    assert parsed == {gap: value, "rest": [value]}
    refuse_repeated_keys(data, parsed)
    twice = b'{"x":[{"rest":' + data + b',"\\u0072est" :0}]}'
    with pytest.raises(ValueError, match="'rest' twice"):
        refuse_repeated_keys(twice, parse_json_text(twice))


def test_a_row_with_a_key_twice_is_a_bad_row(tmp_path: Path):
    row = json.dumps({**WALKS[0], "reward": 0})
    log = write_lines(tmp_path / "w.jsonl", row[:-1] + ', "reward": 1}', WALKS[1])
    first, second = read_records(log)
    assert "must have each of its keys once: it has 'reward' twice" in str(first.value)
    assert second.value == WALKS[1]


@given(number=st.integers(-(2**70), 2**70) | st.integers(2**63 - 2, 2**64 + 2))
def test_whole_numbers_keep_their_digits(number: int):
    text = json.dumps({"id": number, "seen": [0.00012345678901234567, str(number), -1.5e300]})
    assert parse_json_text(text) == parse_json_text(text.encode()) == json.loads(text)


def test_ids_beyond_64_bits_are_told_apart(tmp_path: Path):
    ids = [12345678901234567890123, 12345678901234567890124, -(2**63) - 1]
    rows = [{**WALKS[0], "task_id": number} for number in ids]
    assert imported(write_lines(tmp_path / "w.jsonl", *rows), tmp_path / "s").num_bad_rows == 0
    assert {row["task_id"] for row in steps_of(tmp_path / "s")} == set(map(str, ids))


@pytest.mark.parametrize("name", ["w.json", "w.jsonl", "w.json.gz", "w.jsonl.zst"])
@pytest.mark.parametrize("around", ["rollouts", "data", "results"])
def test_records_in_an_object_around_them(name: str, around: str, tmp_path: Path):
    text = json.dumps({"model": "m", "tags": ["a"], around: [*WALKS, {"odd": 1}]}).encode()
    path = tmp_path / name
    path.write_bytes(_packed(text, name))
    report = imported(path, tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (3, 1)
    assert report.bad_rows[0].where.endswith(f"item 4 of {around}")
    assert (
        imported(write_lines(tmp_path / "plain.jsonl", *WALKS), tmp_path / "store").num_steps == 6
    )


def _packed(text: bytes, name: str) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(text)
    return pa.compress(text, "zstd", asbytes=True) if name.endswith(".zst") else text


def test_an_object_around_two_lists_of_records_is_refused_with_what_to_do(tmp_path: Path):
    path = write_json(tmp_path / "w.json", {"rollouts": WALKS, "samples": WALKS})
    with pytest.raises(InputError, match=r"`jq -c '\.rollouts\[\]' FILE > records\.jsonl` takes"):
        imported(path, tmp_path / "store")


def test_a_named_format_is_looked_for_in_an_object_around(tmp_path: Path):
    path = write_json(tmp_path / "w.json", {"rollouts": WALKS})
    assert imported(path, tmp_path / "a", format="messages").num_trajectories == 3
    assert imported(path, tmp_path / "b", format="verifiers").num_bad_rows == 1


@pytest.mark.parametrize("name", ["w.json", "w.jsonl", "w.ndjson.gz", "w.json.zst"])
@pytest.mark.parametrize("between", ["\n", "\n\n", ""])
def test_indented_objects_one_after_the_other(name: str, between: str, tmp_path: Path):
    text = between.join(json.dumps(row, indent=2) for row in WALKS).encode()
    (tmp_path / name).write_bytes(_packed(text, name))
    with patch.object(records, "WHOLE_BYTES", 700):
        assert imported(tmp_path / name, tmp_path / "long").num_trajectories == 3
    report = imported(tmp_path / name, tmp_path / "store")
    assert (report.num_trajectories, report.num_records, report.num_bad_rows) == (3, 3, 0)


def test_an_indented_object_that_is_broken_ends_the_file(tmp_path: Path):
    texts = [json.dumps(row, indent=2) for row in WALKS]
    path = tmp_path / "w.jsonl"
    path.write_text("\n".join([texts[0], texts[1][:-30], texts[2]]), encoding="utf-8")
    report = imported(path, tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (1, 1)
    assert report.bad_rows[0].where == f"{path}, object 2"
    assert "Nothing behind it is read" in report.bad_rows[0].reason


def test_an_indented_list_named_as_lines(tmp_path: Path):
    path = tmp_path / "w.jsonl"
    path.write_text(json.dumps(WALKS, indent=1), encoding="utf-8")
    assert imported(path, tmp_path / "store").num_trajectories == 3


def test_long_lines_in_a_json_file_are_read_one_by_one(tmp_path: Path):
    path = write_lines(tmp_path / "w.json", *WALKS, "{", *WALKS)
    with patch.object(records, "WHOLE_BYTES", 700):
        report = imported(path, tmp_path / "store")
    assert [bad.where for bad in report.bad_rows] == [f"{path}, line 4"]
    assert report.num_trajectories == 6
