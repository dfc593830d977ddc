"""A file that was damaged or made to harm costs one bad row or file, and bounded memory."""

import gzip
import json
import os
import resource
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphcredit.collector.importers import recognition, table
from graphcredit.collector.importers.formats.harbor import trial_of
from graphcredit.collector.importers.logs import arrow_sizes, parquet, records
from graphcredit.collector.importers.logs.files import RowError, json_file
from graphcredit.collector.importers.logs.records import read_records
from graphcredit.collector.importers.options import ImportOptions
from graphcredit.collector.importers.rules.verdicts import verdicts_of
from graphcredit.collector.importers.run import import_log
from graphcredit.collector.importers.sources import log_at
from graphcredit.store.errors import InputError
from tests.collector.importers.logs import write_lines
from tests.forks import FORKS

MIB = 1 << 20
CHAT = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "gone"}]
ROW = json.dumps({"messages": CHAT, "reward": 1.0}).encode()


def _listed(value: str, number: int) -> pa.Array:
    """Return two lists, a short one and one that has a value many times, which is there once."""
    codes = pa.array(np.zeros(number + 1, np.int32))
    items = pa.DictionaryArray.from_arrays(codes, pa.array([value]))
    return pa.ListArray.from_arrays([0, 1, number + 1], items)


def _views(value: str, number: int) -> pa.Array:
    view = struct.pack("<i4sii", len(value), value[:4].encode(), 0, 0)
    buffers = [None, pa.py_buffer(view * number), pa.py_buffer(value.encode())]
    items: Any = pa.Array.from_buffers(pa.string_view(), number, buffers)  # pyright: ignore
    return pa.ListArray.from_arrays([0, 1, number], items)


def _write_arrow(path: Path, column: pa.Array) -> None:
    rows = pa.table({"messages": [CHAT, CHAT], "more": column})
    if path.suffix == ".parquet":
        pq.write_table(rows, path, store_schema=False)
        return
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
        stream.write_table(rows)


@pytest.mark.parametrize(
    ("name", "listed"), [("a.parquet", _listed), ("a.arrow", _listed), ("a.arrow", _views)]
)
def test_a_value_in_a_list_counts_as_often_as_it_is_there(
    tmp_path: Path, name: str, listed: Callable[[str, int], pa.Array], memory_of_arrow: list[int]
):
    value = "x" * (1 << 16) + "y"
    _write_arrow(tmp_path / name, listed(value, 1 << 15))  # 2 GiB
    first, second = read_records(tmp_path / name, 8 * MIB)
    assert first.value == {"messages": CHAT, "more": [value]}
    assert "at most 8 MiB" in str(second.value)
    assert max(memory_of_arrow) < 512 * MIB


@pytest.fixture
def memory_of_arrow(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the bytes that Arrow held whenever a batch was measured."""
    seen = [0]

    def sizes_of(arrays: Any) -> tuple[int, int]:
        seen.append(pa.total_allocated_bytes())
        return arrow_sizes.sizes_of(arrays)

    monkeypatch.setattr(parquet, "sizes_of", sizes_of)
    return seen


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["x"])),
        pa.ListViewArray.from_arrays(pa.array([0, 0]), pa.array([1, 1]), pa.array(["x"])),
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array(["x", "y"])]),
    ],
    ids=lambda column: str(column.type).partition("<")[0],
)
def test_encodings_without_a_bound_are_refused(tmp_path: Path, column: pa.Array):
    _write_arrow(tmp_path / "a.arrow", pa.StructArray.from_arrays([column], ["inner"]))
    (record,) = read_records(tmp_path / "a.arrow")
    assert str(record.value).startswith("column more.inner must be cast to plain lists and texts")


def test_columns_of_all_shapes_are_read_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    texts = [f"{number} " * 250 for number in range(3000)]  # more than a dictionary may have
    columns = {
        "maps": pa.array([[("a", ["b"])], []], pa.map_(pa.string(), pa.list_(pa.string()))),
        "lists": [[["a"], ["b", "b"]], None],
        "pairs": pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2)),
        "objects": [[{"text": text, "role": "user"} for text in texts], []],
        "bytes": [[b"a"], [b"\xff"]],
        "codes": pa.array(["a", "b"]).dictionary_encode(),
        "numbers": pa.array([1, 2], pa.decimal256(50, 2)),
    }
    rows = pa.table(columns)
    pq.write_table(rows, tmp_path / "a.parquet")
    for most in (1 << 30, 0):
        monkeypatch.setattr(parquet, "_REPEATED_BYTES", most)
        read = list(parquet.rows_of(tmp_path / "a.parquet", 128 * MIB))
        assert [record.value for record in read] == rows.to_pylist()


def _read_damaged(path: Path) -> None:
    content = path.read_bytes()
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 0x7F
        path.write_bytes(damaged)
        list(read_records(path))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_no_damage_ends_the_process(tmp_path: Path, name: str):
    path = tmp_path / name
    _write_arrow(path, pa.array(["x", None]))
    process = FORKS.Process(target=_read_damaged, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize(
    ("begin", "long"),
    [
        ("", "c" * 3 * MIB),
        ("prompt,completion\nq,a\n", "c" * 3 * MIB),
        ("prompt,completion\nq,a\n", '"' + "c\n" * 2 * MIB),
        ("prompt,completion\nq,a\n", '"c\n",' * MIB),
    ],
    ids=["names", "line", "cell", "cells"],
)
def test_a_row_of_csv_over_the_limit_ends_the_file_unread(tmp_path: Path, begin: str, long: str):
    (tmp_path / "a.csv").write_text(begin + long)
    *sound, last = read_records(tmp_path / "a.csv", MIB)
    assert [record.value for record in sound] == [{"prompt": "q", "completion": "a"}] * bool(begin)
    assert "at most 1 MiB" in str(last.value)


def test_few_long_records_are_held_until_the_format_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recognition, "_SAMPLED_BYTES", 3000)
    rows = [{"messages": CHAT, "x": "y" * 1000} for _ in range(9)]
    path = write_lines(tmp_path / "a.jsonl", *rows)
    known = recognition.recognised(read_records(path), log_at(path, ImportOptions()))
    assert known.format is not None
    assert len(known.begin) == 3


def test_what_a_format_cannot_put_together_is_a_bad_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def gather(records: Any, limit: int) -> Any:
        yield next(records)
        raise TypeError("no turns")

    formats = [replace(row, gather=gather) if row.name == "codex" else row for row in table.FORMATS]
    monkeypatch.setattr(table, "FORMATS", tuple(formats))
    meta = {"type": "session_meta", "payload": {"id": "c1"}}
    write_lines(tmp_path / "log" / "a.jsonl", meta, meta)
    (tmp_path / "log" / "b.jsonl").write_bytes(ROW)
    report = import_log(tmp_path / "log", tmp_path / "store", ImportOptions(max_unread=100))
    assert [row.where for row in report.bad_rows] == [str(tmp_path / "log" / "a.jsonl")]
    assert report.num_trajectories == 1


def test_no_pipe_beside_a_log_is_waited_for(tmp_path: Path):
    pipes = [tmp_path / name for name in ("result.json", "verifier/reward.txt", "v/v.json")]
    for pipe in pipes:
        pipe.parent.mkdir(exist_ok=True)
        os.mkfifo(pipe)
    log = tmp_path / "agent" / "a.jsonl"
    write_lines(log, json.loads(ROW))
    assert json_file(pipes[0]) == {}
    assert trial_of(log).reward is None
    assert import_log(tmp_path, tmp_path / "store", ImportOptions()).num_trajectories == 1
    with pytest.raises(InputError, match=r"v\.json: it must be a file: found .* a pipe"):
        import_log(log, tmp_path / "judged", ImportOptions(verdicts=tmp_path / "v"))


@pytest.mark.parametrize("name", ["v.json.gz", "v.json.zst", "v.txt.gz"])
def test_compressed_verdicts_are_read_or_damaged(tmp_path: Path, name: str):
    path = tmp_path / name
    text = b"1" if ".txt" in name else json.dumps({f"r{n}": n % 2 for n in range(999)}).encode()
    packed = gzip.compress(text) if name.endswith(".gz") else pa.compress(text, "zstd").to_pybytes()
    path.write_bytes(packed)
    assert sum(map(len, verdicts_of(path).by_field.values())) == (999 if ".json" in name else 2)
    for end, flipped in ((len(packed) // 2, 0), (len(packed), 0xFF)):
        damaged = bytearray(packed[:end])
        damaged[end // 2] ^= flipped
        (tmp_path / f"bad{name}").write_bytes(damaged)
        with pytest.raises(InputError, match="bad"):
            verdicts_of(tmp_path / f"bad{name}")


def _flipped_gzip(folder: Path) -> None:
    noise = np.random.default_rng(0).bytes(50_000).hex().encode()
    content = bytearray(gzip.compress(ROW + b"\n" + noise))
    content[len(content) // 2] ^= 0xFF
    (folder / "bad.jsonl.gz").write_bytes(content)


def _bad_text(folder: Path) -> None:
    text = pa.array([b"\xff\xfe bad"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"messages": text}), folder / "bad.parquet")


def _far_date(folder: Path) -> None:
    date = pa.array([1 << 62], pa.timestamp("us"))
    pq.write_table(pa.table({"messages": ["x"], "at": date}), folder / "bad.parquet")


def _archive(members: dict[str, Any], **options: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        with zipfile.ZipFile(folder / "bad.eval", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, value in {"header.json": {"eval": {}}, **members}.items():
                archive.writestr(name, value if isinstance(value, str) else json.dumps(value))
        content = bytearray((folder / "bad.eval").read_bytes())
        for old, new in options.get("swaps", ()):
            content = content.replace(old, new)
        (folder / "bad.eval").write_bytes(content)

    return write


SAMPLE = "samples/1_epoch_1"
METHOD_99 = (
    (b"PK\x03\x04\x14\x00\x00\x00\x08\x00", b"PK\x03\x04\x14\x00\x00\x00\x63\x00"),
    (b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x08\x00", b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x63\x00"),
)
ENCRYPTED = (
    (b"PK\x03\x04\x14\x00\x00\x00\x08\x00", b"PK\x03\x04\x14\x00\x01\x00\x08\x00"),
    (b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x08\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00\x08\x00"),
)
BAD: dict[str, Callable[[Path], None]] = {
    "flipped bit in gzip": _flipped_gzip,
    "text that is no UTF-8": _bad_text,
    "far date": _far_date,
    "method 99": _archive({f"{SAMPLE}.json": {}}, swaps=METHOD_99),
    "encrypted": _archive({f"{SAMPLE}.json": {}}, swaps=ENCRYPTED),
    "deep nesting": _archive({f"{SAMPLE}.json": "[" * 100_000 + "]" * 100_000}),
    "no list": _archive({f"{SAMPLE}/sample.json": {}, f"{SAMPLE}/messages/0.json": {"a": 1}}),
    "no object": _archive({f"{SAMPLE}/sample.json": [1], f"{SAMPLE}/messages/0.json": []}),
    "no references": _archive(
        {
            f"{SAMPLE}/sample.json": {"message_refs": [["a", None]]},
            f"{SAMPLE}/messages/00.json": [CHAT[0]],
            f"{SAMPLE}/messages/x1.json": [],
        }
    ),
}


@pytest.mark.parametrize("write", BAD.values(), ids=BAD)
def test_a_bad_file_is_named_and_the_others_are_imported(
    tmp_path: Path, write: Callable[[Path], None]
):
    log = tmp_path / "log"
    log.mkdir()
    write(log)
    (log / "a.jsonl").write_bytes(ROW)
    (log / "z.jsonl").write_bytes(ROW.replace(b"gone", b"went"))
    report = import_log(log, tmp_path / "store", ImportOptions(drop_equal=True))
    assert report.num_trajectories == 2
    named = [row.where for row in report.bad_rows] + list(report.other_files)
    assert any("bad." in name for name in named)


def test_a_mistake_of_ours_is_raised_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "a.jsonl"
    path.write_bytes(ROW)
    for module in ("graphcredit.collector.x", "zipfile"):
        names: dict[str, Any] = {"__name__": module}
        exec("def kind_of(path):\n    return {}['kind']", names)
        monkeypatch.setattr(records, "kind_of", names["kind_of"])
        if module == "zipfile":
            (record,) = read_records(path)
            assert isinstance(record.value, RowError)
            continue
        with pytest.raises(KeyError) as raised:
            list(read_records(path))
        assert raised.value.__notes__ == [f"while reading {path}"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
def test_a_record_over_the_limit_is_a_bad_row_and_what_follows_is_read(tmp_path: Path, name: str):
    long = json.dumps({"messages": [{"role": "user", "content": "x" * 3 * MIB}]}).encode()
    opened = gzip.open if name.endswith(".gz") else Path.open
    with opened(tmp_path / name, "wb") as file:
        file.write(b"\n".join([ROW, long, ROW, long, ROW[:-1] + b" }"]))
    read = list(read_records(tmp_path / name, 2 * MIB))
    refused = [isinstance(record.value, RowError) for record in read]
    assert "at most 2 MiB after decompression" in str(read[1].value)
    assert refused == [False, True, False, True, False]
    assert [record.place for record in read] == [f"line {n}" for n in range(1, 6)]
    assert [r.value for r in read_records(tmp_path / name) if isinstance(r.value, RowError)] == []


def test_damage_within_a_line_over_the_limit_is_told(tmp_path: Path):
    noise = np.random.default_rng(0).bytes(4 * MIB).hex().encode()
    content = gzip.compress(ROW + b"\n" + noise, 1)
    (tmp_path / "a.jsonl.gz").write_bytes(content[: len(content) // 2])
    sound, long, damage = read_records(tmp_path / "a.jsonl.gz", MIB)
    assert not isinstance(sound.value, RowError)
    assert "at most 1 MiB" in str(long.value)
    assert "damaged here" in str(damage.value)


def test_pieces_of_a_large_file_keep_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("graphcredit.collector.importers.helpers.read.SMALL_BYTES", 1)
    monkeypatch.setattr("graphcredit.collector.importers.logs.jsonl.BLOCK_BYTES", 1 << 16)
    long = json.dumps({"messages": [{"role": "user", "content": "x" * 2 * MIB}]}).encode()
    rows = [ROW.replace(b"gone", f"gone {number}".encode()) for number in range(2_000)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*rows[:1_500], long, *rows[1_500:], long]))
    report = import_log(
        tmp_path / "a.jsonl", tmp_path / "store", ImportOptions(max_record=1), engine="local:2"
    )
    assert report.num_trajectories == 2_000
    assert [row.where.rpartition(", ")[2] for row in report.bad_rows] == ["line 1501", "line 2002"]


def _huge_line(path: Path) -> None:
    with gzip.open(path, "wb", 1) as file:
        file.write(b'{"messages": [{"role": "user", "content": "')
        for _ in range(60):
            file.write(b"x" * 4 * MIB)
        file.write(b'"}]}\n' + ROW)


def _empty_messages(path: Path) -> None:
    with gzip.open(path, "wb", 1) as file:
        file.write(b'{"messages": [{}')
        for _ in range(20):
            file.write(b",{}" * MIB)
        file.write(b"]}\n" + ROW)


def _one_list(path: Path) -> None:
    with gzip.open(path, "wb", 1) as file:
        file.write(b'[{"role": "user", "content": "\xf0\x9f\x98\x80"}')
        for _ in range(100):
            file.write(b',{"role": "user", "content": "' + b"x" * 2 * MIB + b'"}')
        file.write(b"]")


def _long_values(path: Path) -> None:
    value = pa.array(["x" * 20 * MIB])
    indices = pa.array(np.zeros(200, np.int32))
    column = pa.DictionaryArray.from_arrays(indices, value)
    pq.write_table(pa.table({"messages": column}), path, dictionary_pagesize_limit=1 << 30)


def _many_values(path: Path) -> None:
    lists = pa.ListArray.from_arrays([0, 20 * MIB], pa.array(np.zeros(20 * MIB, np.int8)))
    objects = pa.StructArray.from_arrays([lists.flatten()], ["a"])
    column = pa.ListArray.from_arrays(lists.offsets, objects)
    pq.write_table(pa.table({"messages": column}), path)


def _many_references(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        refs = json.dumps({"message_refs": [[0, 1000]] * 300_000})
        archive.writestr(f"{SAMPLE}/sample.json", refs)
        archive.writestr(f"{SAMPLE}/messages/0.json", json.dumps(CHAT * 500))
        texts = json.dumps(
            {
                "attachments": {"a": "x" * MIB},
                "messages": [{"role": "user", "content": "attachment://a"}] * 100_000,
            }
        )
        archive.writestr("samples/2_epoch_1.json", texts)


def _long_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        with archive.open(f"{SAMPLE}.json", "w", force_zip64=True) as member:
            for _ in range(60):
                member.write(b" " * 4 * MIB)


HUGE: dict[str, Callable[[Path], None]] = {
    "a.jsonl.gz": _huge_line,
    "b.json.gz": _huge_line,
    "c.jsonl.gz": _empty_messages,
    "d.json.gz": _one_list,
    "e.parquet": _long_values,
    "f.parquet": _many_values,
    "g.eval": _many_references,
    "h.eval": _long_member,
}


def _import_within(path: Path, store: Path, answer: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        report = import_log(path, store, ImportOptions(max_record=8))
        told = [row.reason for row in report.bad_rows] + list(report.other_files)
    except ValueError as error:
        told = [str(error)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer.send((peak - before, told))


@pytest.mark.slow
@pytest.mark.parametrize("name", HUGE)
def test_memory_is_bounded_by_the_limit_of_a_record(tmp_path: Path, name: str):
    HUGE[name](tmp_path / name)
    here, there = FORKS.Pipe()
    process = FORKS.Process(
        target=_import_within, args=(tmp_path / name, tmp_path / "store", there)
    )
    process.start()
    kilobytes, told = here.recv()
    process.join()
    assert told
    assert kilobytes < 600 << 10  # the inputs are 60 to 4,000 MiB
