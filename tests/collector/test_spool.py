"""Left-over spools become shards, up to what can be read; nothing is deleted unread."""

import json
import os
import random
import zlib
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcredit.collector import StepRecorder
from graphcredit.collector.recording.recovery import recover_spools, spool_paths
from graphcredit.collector.recording.spool_format import (
    SpoolHeader,
    SpoolWriter,
    encode_end,
    encode_steps,
    read_spool,
)
from graphcredit.collector.recording.validation import check_step
from graphcredit.store import Store, create_store, read_steps
from graphcredit.store.errors import SchemaError
from graphcredit.store.schema import LARGEST_NUMBER
from tests.examples import examples

HEADER = SpoolHeader(spool_id="s0", run_id="r0", iteration=3, worker_id="w7")


def _row(index: int, trajectory_id: str = "x", **columns: Any) -> dict[str, Any]:
    return {
        "task_id": "t0",
        "trajectory_id": trajectory_id,
        "step_index": index,
        "logged_at": 1_000_000 + index,
        "state": f"s{index}",
        "action": "a",
        "next_state": f"s{index + 1}",
        "reward": 0.25,
        **columns,
    }


def _spool(path: Path, lines: list[bytes], header: SpoolHeader = HEADER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    SpoolWriter(path, header, lines, fsync=False).close()
    return path


def _stored(store: Store) -> list[tuple[str, int, bool | None]]:
    names = ["trajectory_id", "step_index", "success"]
    tables = [table.to_pylist() for table in read_steps(store, columns=names)]
    return [(row["trajectory_id"], row["step_index"], row["success"]) for t in tables for row in t]


def test_a_spool_is_a_line_of_json_for_what_was_acknowledged_at_once(tmp_path: Path):
    ids = np.array([3, -1], np.int32)
    row = _row(1, images=[{"bytes": b"png", "path": None}], response_ids=ids)
    path = _spool(tmp_path / "w7.jsonl", [encode_steps([_row(0)]), encode_steps([row])])
    head, first, second = path.read_text().splitlines()
    assert json.loads(head[9:]) == {"spool": 2, **asdict(HEADER)}
    assert json.loads(first[9:]) == {"steps": [_row(0)]}
    images = [{"bytes": "cG5n", "path": None}]
    assert json.loads(second[9:]) == {"steps": [row | {"images": images, "response_ids": [3, -1]}]}
    assert second[:9] == f"{zlib.crc32(second[9:].encode()):08x} "


def test_a_float32_comes_back_bit_by_bit(tmp_path: Path):
    # The shortest text of this number is nearer to its neighbour once it was read as a float64.
    logprobs = np.array([0x15AE43FD], np.uint32).view(np.float32)
    path = _spool(tmp_path / "w7.jsonl", [encode_steps([_row(0, response_logprobs=logprobs)])])
    (row,) = read_spool(path).rows
    assert row["response_logprobs"].tobytes() == logprobs.tobytes()


def test_a_torn_tail_at_any_byte_costs_only_the_torn_step(tmp_path: Path):
    messages = [encode_steps([_row(index)]) for index in range(2)]
    whole = _spool(tmp_path / "whole.jsonl", messages).read_bytes()
    ends = [len(whole) - sum(len(m) for m in messages[index:]) for index in range(3)]
    torn = tmp_path / "whole.jsonl"
    for size in range(len(whole), ends[0] - 1, -1):
        os.truncate(torn, size)
        content = read_spool(torn)
        num_whole = sum(size >= end for end in ends[1:])
        assert [row["step_index"] for row in content.rows] == list(range(num_whole))
        assert content.num_bytes_unread == size - ends[num_whole]


def test_a_flipped_bit_is_never_read_as_another_value(tmp_path: Path):
    end = {"terminated": True, "truncated": False, "success": True}
    ids = np.arange(3, dtype=np.int32)
    together = encode_steps([_row(0, "y", response_ids=ids), _row(1, "y")])
    messages = [encode_steps([_row(0)]), encode_steps([_row(1, thought="b")]), together]
    messages.append(encode_end("x", end))
    path = tmp_path / "w7.jsonl"
    prefixes = [
        repr(read_spool(_spool(path, messages[:number])).rows)
        for number in range(len(messages) + 1)
    ]
    whole = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for place in random.Random(0).sample(range(len(whole) * 8), 1500):
            byte, bit = divmod(place, 8)
            os.pwrite(file.fileno(), bytes([whole[byte] ^ 1 << bit]), byte)
            with suppress(SchemaError):
                content = read_spool(path)
                assert content.header == HEADER
                expected = prefixes if content.num_bytes_unread else prefixes[-1:]
                assert repr(content.rows) in expected, place
            os.pwrite(file.fileno(), whole[byte : byte + 1], byte)


def test_steps_that_belong_together_do_not_come_apart_where_one_is_damaged(tmp_path: Path):
    damaged = _row(1, "y")
    del damaged["next_state"]
    together = encode_steps([_row(0, "x"), _row(0, "y"), damaged])
    content = read_spool(_spool(tmp_path / "w7.jsonl", [encode_steps([_row(0, "w")]), together]))
    assert [row["trajectory_id"] for row in content.rows] == ["w"]
    assert content.num_bytes_unread == len(together)
    assert content.problem == "a step must have next_state"


def test_the_steps_before_a_torn_tail_are_recovered_and_the_spool_is_kept(tmp_path: Path):
    store = create_store(tmp_path / "store")
    path = _spool(spool_paths(store, "w7").live, [encode_steps([_row(0)]), encode_steps([_row(1)])])
    path.write_bytes(path.read_bytes()[:-8])
    (recovered,) = recover_spools(store)
    assert (recovered.num_steps, recovered.run_id, recovered.iteration) == (1, "r0", 3)
    assert recovered.num_bytes_unread == len(encode_steps([_row(1)])) - 8
    assert recovered.quarantined == store.quarantine_dir / "w7-000000.jsonl"
    note = json.loads((store.quarantine_dir / "w7-000000.json").read_text())
    assert (note["source"], note["reason"]) == ("spool/w7.jsonl", "its last line is torn")
    assert note["num_bytes_unread"] == recovered.num_bytes_unread
    assert _stored(store) == [("x", 0, None)]


@pytest.mark.parametrize("content", [b"", b"not a spool", b"\0" * 64])
def test_a_spool_without_a_readable_head_moves_to_quarantine(tmp_path: Path, content: bytes):
    store = create_store(tmp_path / "store")
    live = spool_paths(store, "w7").live
    live.parent.mkdir()
    live.write_bytes(content)
    (recovered,) = recover_spools(store)
    assert recovered.quarantined is not None
    assert recovered.quarantined.read_bytes() == content
    assert "must start with the head of a spool" in recovered.quarantined.with_suffix(
        ".json"
    ).read_text(encoding="utf-8")
    assert (recovered.run_id, recovered.shard, recovered.num_steps) == (None, None, 0)
    assert recover_spools(store) == []


def test_a_spool_of_another_version_is_refused(tmp_path: Path):
    text = b'{"spool":3,"spool_id":"s","run_id":"r","iteration":0,"worker_id":"w"}'
    path = tmp_path / "w7.jsonl"
    path.write_bytes(b"%08x %s\n" % (zlib.crc32(text), text))
    with pytest.raises(SchemaError, match="its version is not 2"):
        read_spool(path)


def test_an_end_marks_the_last_step_of_its_trajectory(tmp_path: Path):
    end = {"terminated": True, "truncated": False, "success": True}
    messages = [
        encode_steps([_row(0)]),
        encode_steps([_row(0, "y")]),
        encode_steps([_row(1)]),
        encode_end("x", end),
    ]
    store = create_store(tmp_path / "store")
    _spool(spool_paths(store, "w7").live, messages)
    recover_spools(store)
    assert _stored(store) == [("x", 0, None), ("y", 0, None), ("x", 1, True)]


def test_a_carried_step_stays_with_the_newer_spool(tmp_path: Path):
    store = create_store(tmp_path / "store")
    paths = spool_paths(store, "w7")
    end = {"terminated": True, "truncated": False, "success": False}
    newer = SpoolHeader(spool_id="s1", run_id="r0", iteration=3, worker_id="w7")
    _spool(paths.closing, [encode_steps([_row(0)]), encode_steps([_row(1)])])
    _spool(paths.live, [encode_steps([_row(1)]), encode_end("x", end)], newer)
    assert [recovered.num_steps for recovered in recover_spools(store)] == [1, 1]
    assert _stored(store) == [("x", 0, None), ("x", 1, False)]


def test_a_damaged_newer_spool_leaves_the_carried_step_with_the_older(tmp_path: Path):
    store = create_store(tmp_path / "store")
    paths = spool_paths(store, "w7")
    _spool(paths.closing, [encode_steps([_row(0)]), encode_steps([_row(1)])])
    paths.live.write_bytes(b"damaged")
    older, newer = recover_spools(store)
    assert older.num_steps == 2
    assert newer.quarantined is not None
    assert _stored(store) == [("x", 0, None), ("x", 1, None)]


def test_a_shard_of_the_same_name_from_elsewhere_is_neither_replaced_nor_taken_for_ones_own(
    tmp_path: Path,
):
    store = create_store(tmp_path / "store")
    _spool(spool_paths(store, "w7").live, [encode_steps([_row(0)])])
    foreign = store.steps_dir("r0", 3) / "w7-000000.parquet"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(b"something else")
    (recovered,) = recover_spools(store)
    assert recovered.shard == foreign.with_name("w7-000001.parquet")
    assert foreign.read_bytes() == b"something else"


def test_the_unfinished_shard_of_a_dead_worker_is_removed_and_others_are_not(tmp_path: Path):
    store = create_store(tmp_path / "store")
    _spool(spool_paths(store, "w7").live, [encode_steps([_row(0)])])
    directory = store.steps_dir("r0", 3)
    directory.mkdir(parents=True)
    (directory / "w7-000000.parquet.0a1b2c3d.tmp").touch()
    others = directory / "w7-000000-000000.parquet.0a1b2c3d.tmp"
    others.touch()
    recover_spools(store)
    assert {path.name for path in directory.iterdir()} == {"w7-000000.parquet", others.name}


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_IDS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5)
_DISTANCE = st.floats(0, LARGEST_NUMBER)
_LOGPROBS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=5)
_IMAGES = st.one_of(st.binary(max_size=9), st.just("images/a.png"))


def _with_ids(logged: tuple[dict[str, Any], list[float] | None]) -> dict[str, Any]:
    columns, logprobs = logged
    if logprobs is None:
        return columns
    return columns | {"response_ids": [*range(len(logprobs))], "response_logprobs": logprobs}


_COLUMNS = st.fixed_dictionaries(
    {
        "state": _TEXT,
        "action": _TEXT,
        "next_state": _TEXT,
        "reward": st.floats(-LARGEST_NUMBER, LARGEST_NUMBER),
    },
    optional={
        "observation": _TEXT,
        "thought": _TEXT,
        "images": st.lists(_IMAGES, max_size=2),
        "admissible_actions": st.lists(_TEXT, max_size=3),
        "is_action_valid": st.booleans(),
        "cost": st.floats(1e-9, 1e9),
        "score": st.floats(-LARGEST_NUMBER, LARGEST_NUMBER),
        "oracle_distance": _DISTANCE,
        "prompt_ids": _IDS,
        "response_ids": _IDS,
        "temperature": st.floats(0, 2, width=32),
        "top_k": st.integers(0, 1000),
        "extra": st.dictionaries(_TEXT, st.integers(), max_size=2),
    },
)


@settings(max_examples=examples(50))
@given(columns=st.tuples(_COLUMNS, st.none() | _LOGPROBS).map(_with_ids))
def test_a_step_comes_out_of_a_spool_as_it_comes_out_of_a_recorder(
    tmp_path_factory: pytest.TempPathFactory, columns: dict[str, Any]
):
    root = tmp_path_factory.mktemp("stores")
    with StepRecorder(root / "a", run_id="r0", iteration=3, worker_id="w7") as recorder:
        recorder.trajectory(task_id="t0", trajectory_id="x").log(**columns)
    store = create_store(root / "b")
    _spool(spool_paths(store, "w7").live, [encode_steps([_row(0) | check_step(columns)])])
    recover_spools(store)
    (recorded,) = (table.drop_columns("logged_at") for table in read_steps(Store(root / "a")))
    (recovered,) = (table.drop_columns("logged_at") for table in read_steps(store))
    assert recovered.equals(recorded)
