"""The spool's format: an Arrow IPC stream with one record batch for each acknowledged step.

Steps that are acknowledged together are the rows of one batch. A batch has two columns: `values`, a
JSON object of the step's short values by column name, and `parts`, a list of its long values:
`state`, `action`, `next_state` and arrays; images are among the values, in base64. It does not have
one column for each column of `steps`, because each costs a microsecond or two per batch. A row
without `parts` ends a trajectory.

The stream's metadata names the worker, run and iteration. There is no end-of-stream marker: the
file is valid up to its last complete batch.

`crc32` comes first in each JSON object. It is the checksum of the rest of the text and of the
parts, so a flipped bit is detected.
"""

import base64
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from graphcredit.collector.recording.validation import ARRAYS, DEFAULTS
from graphcredit.store.errors import SchemaError
from graphcredit.store.files.parse import parse_json
from graphcredit.store.schema import STEP_COLUMNS

HEADER_KEY = b"graphcredit.spool"

_ARRAY_PARTS = {c.name: ARRAYS[c.type] for c in STEP_COLUMNS if c.type in ARRAYS}
_PARTS = ("state", "action", "next_state", *_ARRAY_PARTS)
_PART_NAMES = frozenset(_PARTS)
_NEEDED = frozenset(c.name for c in STEP_COLUMNS if not c.nullable) - {"worker_id", *DEFAULTS}
_LIST = pa.list_(pa.binary())
_SPOOL_SCHEMA = pa.schema([pa.field("values", pa.string(), nullable=False), ("parts", _LIST)])

_pack_range = Struct("<2i").pack
_pack_offsets = Struct(f"<{len(_PARTS) + 1}i").pack
_NUM_BITMAP_BYTES = -(-len(_PARTS) // 8)
_CHECKSUM_LENGTH = len('{"crc32":"01234567",')
_to_json = json.JSONEncoder(check_circular=False).encode
_NO_PARTS = pa.nulls(1, _LIST)
_ALL_PARTS = pa.py_buffer(_pack_range(0, len(_PARTS)))


@dataclass(frozen=True, kw_only=True, slots=True)
class SpoolHeader:
    """The head of a spool: its id, and the run, iteration and worker of its steps."""

    spool_id: str
    """Globally unique; a shard's metadata has the id of its spool."""
    run_id: str
    iteration: int
    worker_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SpoolContent:
    """The readable part of a spool."""

    header: SpoolHeader
    rows: list[dict[str, Any]]
    """The steps in the order of logging; each maps column names to values."""
    num_bytes_unread: int
    """Bytes after the last complete batch."""
    problem: str
    """Why reading stopped there; empty at a clean end."""


class SpoolWriter:
    """Appends batches to one spool file; an error leaves the file as it was before the call."""

    def __init__(
        self, path: Path, header: SpoolHeader, messages: Iterable[pa.Buffer], *, fsync: bool
    ):
        metadata = {HEADER_KEY: _with_checksum(_to_json(asdict(header)).encode(), b"")}
        head = _SPOOL_SCHEMA.with_metadata(metadata).serialize()
        self.header = header
        self.size = 0
        self._fsync = fsync
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self.append(b"".join([head, *messages]))

    def append(self, message: pa.Buffer | bytes) -> None:
        """Append whole messages, and flush them to the operating system, or to disk if `fsync`.

        Raises:
            OSError: They could not be written; no part of them is in the file.
        """
        view = memoryview(message)
        size = self.size + len(view)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            if self._fsync:
                os.fsync(self._descriptor)
        except BaseException:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size = size

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def encode_step(row: Mapping[str, Any]) -> pa.Buffer:
    """Return the batch of one step.

    Args:
        row: Column name to value, from `check_step`, plus the columns that the recorder fills.
    """
    return _step(row).serialize()


def encode_steps(rows: Sequence[Mapping[str, Any]]) -> pa.Buffer:
    """Return one batch of several steps: a reader finds all of them, or none.

    Args:
        rows: Steps in the form of `encode_step`; at least one.
    """
    (batch,) = pa.Table.from_batches(map(_step, rows)).combine_chunks().to_batches()
    return batch.serialize()


def _step(row: Mapping[str, Any]) -> pa.RecordBatch:
    values = {name: value for name, value in row.items() if name not in _PART_NAMES}
    if "images" in values:
        values["images"] = list(map(_image_to_json, values["images"]))
    parts: list[bytes] = []
    offsets = [0]
    present = 0
    for bit, name in enumerate(_PARTS):
        value = row.get(name)
        content = b""
        if value is not None:
            content = value.encode() if isinstance(value, str) else value.tobytes()
            present |= 1 << bit
        parts.append(content)
        offsets.append(offsets[-1] + len(content))
    buffers = [
        present.to_bytes(_NUM_BITMAP_BYTES, "little"),
        _pack_offsets(*offsets),
        b"".join(parts),
    ]
    binaries = _array(pa.binary(), len(_PARTS), buffers)
    column = pa.Array.from_buffers(_LIST, 1, [None, _ALL_PARTS], children=[binaries])
    return _batch(values, column, b"".join(buffers))


def encode_end(trajectory_id: str, end: Mapping[str, bool]) -> pa.Buffer:
    """Return the batch that ends a trajectory: `terminated`, `truncated` and `success`."""
    return _batch({"trajectory_id": trajectory_id, **end}, _NO_PARTS, b"").serialize()


def read_spool(path: Path) -> SpoolContent:
    """Read a spool up to its last complete batch.

    Raises:
        SchemaError: The head is damaged, or the file is not a spool of this version.
    """
    data = pa.py_buffer(path.read_bytes())
    file = pa.BufferReader(data)
    reader, header = _open(path, file)
    rows: list[dict[str, Any]] = []
    last_rows: dict[str, dict[str, Any]] = {}
    whole, problem = file.tell(), ""
    try:
        for batch in reader:
            _add_batch(batch, rows, last_rows)
            whole = file.tell()
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        problem = str(error)
    return SpoolContent(
        header=header,
        rows=rows,
        num_bytes_unread=data.size - whole,
        problem=problem or "the stream ends before the file",
    )


def read_ids(path: Path) -> tuple[SpoolHeader, set[str]]:
    """Return the header of a spool, and its trajectory ids up to the last complete batch.

    Raises:
        FileNotFoundError: The spool has become a shard.
        SchemaError: The head is damaged, or the file is not a spool of this version.
    """
    ids: set[str] = set()
    with pa.memory_map(str(path)) as file:
        reader, header = _open(path, file)
        with suppress(pa.ArrowException, OSError, ValueError, KeyError):
            for batch in reader:
                ids.update(
                    parse_json(text)["trajectory_id"] for text in batch["values"].to_pylist()
                )
    return header, ids


def _open(path: Path, file: pa.NativeFile) -> tuple[pa.RecordBatchReader, SpoolHeader]:
    """Return a reader of the batches, and the header."""
    try:
        reader = pa.ipc.open_stream(file)
        head = (reader.schema.metadata or {})[HEADER_KEY].decode()
        if not reader.schema.equals(_SPOOL_SCHEMA):
            raise SchemaError(
                f"{path} must have the columns {', '.join(_SPOOL_SCHEMA.names)} of a spool: it has "
                f"{', '.join(reader.schema.names)}"
            )
        return reader, SpoolHeader(**_values(head, b""))
    except SchemaError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise SchemaError(f"{path} must start with the head of a spool: {error}") from error


def _add_batch(
    batch: pa.RecordBatch, rows: list[dict[str, Any]], last_rows: dict[str, dict[str, Any]]
) -> None:
    """Add the steps and ends of a batch, or raise an error and add nothing."""
    batch.validate(full=True)
    texts, parts = batch["values"].to_pylist(), batch["parts"].to_pylist()
    decoded = [_row(text or "", part) for text, part in zip(texts, parts, strict=True)]
    for row, part in zip(decoded, parts, strict=True):
        if part is None:
            last_rows[row["trajectory_id"]].update(row)
        else:
            rows.append(row)
            last_rows[row["trajectory_id"]] = row


def _row(text: str, parts: list[bytes | None] | None) -> dict[str, Any]:
    """Return a step; an end if there are no parts."""
    row = _values(text, _content(parts))
    if parts is None:
        return row
    for name, part in zip(_PARTS, parts, strict=True):
        if part is not None:
            dtype = _ARRAY_PARTS.get(name)
            row[name] = part.decode() if dtype is None else np.frombuffer(part, dtype)
    if "images" in row:
        row["images"] = list(map(_image_from_json, row["images"]))
    missing = _NEEDED - row.keys()
    if missing:
        raise ValueError(f"a step must have {', '.join(sorted(missing))}")
    return row


def _image_to_json(image: Mapping[str, Any]) -> dict[str, str | None]:
    content = image["bytes"]
    text = None if content is None else base64.b64encode(content).decode()
    return {"base64": text, "path": image["path"]}


def _image_from_json(image: Mapping[str, Any]) -> dict[str, Any]:
    text = image["base64"]
    return {"bytes": None if text is None else base64.b64decode(text), "path": image["path"]}


def _content(parts: Sequence[bytes | None] | None) -> bytes:
    """Return the bytes of a row's parts for its checksum: presence, offsets and contents."""
    if parts is None:
        return b""
    if len(parts) != len(_PARTS):
        raise ValueError(f"a step must have {len(_PARTS)} parts")
    present = sum(1 << bit for bit, part in enumerate(parts) if part is not None)
    contents = [part or b"" for part in parts]
    offsets = _pack_offsets(*accumulate(map(len, contents), initial=0))
    return b"".join([present.to_bytes(_NUM_BITMAP_BYTES, "little"), offsets, *contents])


def _with_checksum(text: bytes, content: bytes) -> bytes:
    """Return the text of a JSON object with a checksum as its first key.

    Args:
        text: The text of a non-empty object.
        content: Further bytes that the checksum covers.
    """
    return b'{"crc32":"%08x",%s' % (zlib.crc32(content, zlib.crc32(text)), text[1:])


def _values(text: str, content: bytes) -> dict[str, Any]:
    """Return the JSON object of a text, after verifying its checksum.

    Raises:
        ValueError: The checksum does not match the text and the content.
    """
    rest = b"{" + text.encode()[_CHECKSUM_LENGTH:]
    if text.encode() != _with_checksum(rest, content):
        raise ValueError("its checksum does not match")
    return parse_json(rest)


def _batch(values: Mapping[str, Any], parts: pa.Array, content: bytes) -> pa.RecordBatch:
    text = _with_checksum(_to_json(values).encode(), content)
    column = _array(pa.string(), 1, [None, _pack_range(0, len(text)), text])
    return pa.RecordBatch.from_arrays([column, parts], schema=_SPOOL_SCHEMA)


def _array(type_: pa.DataType, length: int, buffers: Sequence[bytes | None]) -> pa.Array:
    given = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
    return pa.Array.from_buffers(type_, length, given)
