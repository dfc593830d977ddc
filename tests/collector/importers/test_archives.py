"""Inspect's archives: members that zstd packed, and samples in several members."""

import json
import struct
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from graphcredit.collector.importers.logs.archives import samples_of
from tests.collector.importers.logs import inspect_log, inspect_sample, said
from tests.collector.importers.read_back import brief, imported

ZSTD = 93


def write_zstd(path: Path, members: dict[str, object]) -> Path:
    """Write a zip archive whose members are compressed with zstd, as Inspect does since 2026."""
    body, directory = b"", b""
    for name, value in members.items():
        content = json.dumps(value).encode()
        packed = pa.compress(content, codec="zstd", asbytes=True)
        sizes = struct.pack("<IIIHH", zlib.crc32(content), len(packed), len(content), len(name), 0)
        head = struct.pack("<HHHHH", 63, 0, ZSTD, 0, 33) + sizes
        offset = len(body)
        body += b"PK\x03\x04" + head + name.encode() + packed
        tail = struct.pack("<HHHII", 0, 0, 0, 0, offset)
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + head + tail + name.encode()
    counts = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + counts)
    return path


def header() -> dict[str, object]:
    return {k: v for k, v in inspect_log().items() if k != "samples"}


def test_members_may_be_compressed_with_zstd(tmp_path: Path):
    members: dict[str, object] = {
        "_journal/start.json": {"old": True},
        "header.json": header(),
        "samples/flag_epoch_1.json": inspect_sample(),
        "samples/a/flag_epoch_2.json": inspect_sample(2, "I"),
        "summaries.json": [],
    }
    path = write_zstd(tmp_path / "log.eval", members)
    report = imported(path, tmp_path / "store")
    assert (report.num_records, report.num_groups) == (2, 1)
    assert (report.num_success, report.num_failed) == (1, 1)
    path.write_bytes(path.read_bytes().replace(b"PK\x05\x06", b"PK\x05\x07"))
    assert imported(path, tmp_path / "other").bad_rows[0].reason == (
        "the file is damaged here: File is not a zip file"
    )


def test_a_damaged_member_is_named_and_the_others_are_read(tmp_path: Path):
    samples = {f"samples/flag_epoch_{n}.json": inspect_sample(n) for n in (1, 2)}
    path = write_zstd(tmp_path / "log.eval", {"header.json": header(), **samples})
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("samples/flag_epoch_1.json").header_offset + 60
    content = bytearray(path.read_bytes())
    content[at : at + 8] = bytes(8)
    path.write_bytes(content)
    report = imported(path, tmp_path / "store")
    assert (report.num_trajectories, report.num_bad_rows) == (1, 1)
    assert report.bad_rows[0].where == f"{path}, samples/flag_epoch_1.json"


def test_a_sample_in_several_members_is_put_together(tmp_path: Path):
    folder = "samples/flag_epoch_1"
    shell = inspect_sample()
    del shell["messages"], shell["attachments"]
    members: dict[str, object] = {
        "header.json": header(),
        f"{folder}/sample.json": {**shell, "message_refs": [[0, 1], [2, 4]]},
        f"{folder}/metadata.json": {"level": 3},
        f"{folder}/messages/0.json": [said("user", "attachment://1"), said("user", "unused")],
        f"{folder}/messages/2.json": [said("assistant", "hm"), said("user", "well?")],
        f"{folder}/attachments/0.json": ["first", "second"],
        f"{folder}/events/stats.json": {},
        f"{folder}/events/0.json": [],
    }
    path = write_zstd(tmp_path / "log.eval", members)
    (record,) = samples_of(path, 1 << 20)
    assert record.place == folder
    assert record.value["sample"]["metadata"] == {"level": 3}
    imported(path, tmp_path / "store")
    assert brief(tmp_path / "store", "task_id", "state", "action") == [("ctf:flag", "second", "hm")]


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path):
    path = tmp_path / "log.eval"
    path.write_bytes(b"text")
    with pytest.raises(zipfile.BadZipFile):
        list(samples_of(path, 1 << 20))
