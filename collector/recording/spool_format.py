"""The spool's format: a line of JSON for what was acknowledged at once.

    <checksum of the rest, 8 hexadecimal digits> {"steps": [{…}, …]}
    <checksum>                                   {"end": {"trajectory_id": …, "success": …}}

Steps that are acknowledged together are in one line: a reader has all of them, or none. The first
line names the worker, the run and the iteration. The file is valid up to its last whole line, and a
flipped bit is detected by the checksum. Contents of images are in base64.
"""

import base64
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from graphcredit.collector.recording.validation import ARRAYS, DEFAULTS
from graphcredit.store.errors import SchemaError
from graphcredit.store.schema import STEP_COLUMNS

_ARRAYS = {c.name: ARRAYS[c.type] for c in STEP_COLUMNS if c.type in ARRAYS}
_NARROW = [name for name, dtype in _ARRAYS.items() if dtype is np.float32]
_NEEDED = frozenset(c.name for c in STEP_COLUMNS if not c.nullable) - {"worker_id", *DEFAULTS}
_VERSION = 2
"""Of the format; in the first line."""


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
    """Bytes after the last whole line."""
    problem: str
    """Why reading stopped there."""


class SpoolWriter:
    """Appends lines to one spool file; an error leaves the file as it was before the call."""

    def __init__(self, path: Path, header: SpoolHeader, lines: Iterable[bytes], *, fsync: bool):
        self.header = header
        self.size = 0
        self._fsync = fsync
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self.append(b"".join([_line({"spool": _VERSION, **asdict(header)}), *lines]))

    def append(self, lines: bytes) -> None:
        """Append whole lines, and flush them to the operating system, or to disk if `fsync`.

        Raises:
            OSError: They could not be written; no part of them is in the file.
        """
        view = memoryview(lines)
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


def encode_steps(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the line of some steps."""
    return _line({"steps": list(map(_exact, rows))})


def _exact(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a step with wide floats: the text of a narrow one is too short to be read as wide."""
    wide = {name: row[name].astype(np.float64) for name in _NARROW if name in row}
    return {**row, **wide} if wide else row


def encode_end(trajectory_id: str, end: Mapping[str, bool | None]) -> bytes:
    """Return the line that ends a trajectory: `terminated`, `truncated` and `success`."""
    return _line({"end": {"trajectory_id": trajectory_id, **end}})


def read_spool(path: Path) -> SpoolContent:
    """Read a spool up to its last whole line.

    Raises:
        FileNotFoundError: The spool has become a shard.
        SchemaError: The head is damaged, or the file is not a spool of this version.
    """
    content = path.read_bytes()
    head, *lines = content.splitlines(keepends=True) or [b""]
    header = _header(path, head)
    rows: list[dict[str, Any]] = []
    last_rows: dict[str, dict[str, Any]] = {}
    whole, problem = len(head), ""
    try:
        for line in lines:
            _take(_value(line), rows, last_rows)
            whole += len(line)
    except (ValueError, KeyError, TypeError) as error:
        problem = str(error)
    return SpoolContent(
        header=header, rows=rows, num_bytes_unread=len(content) - whole, problem=problem
    )


def _header(path: Path, line: bytes) -> SpoolHeader:
    try:
        head = _value(line)
        if head.pop("spool", None) != _VERSION:
            raise ValueError(f"its version is not {_VERSION}")
        return SpoolHeader(**head)
    except (ValueError, TypeError) as error:
        raise SchemaError(f"{path} must start with the head of a spool: {error}") from error


def _take(
    value: dict[str, Any], rows: list[dict[str, Any]], last_rows: dict[str, dict[str, Any]]
) -> None:
    """Add the steps or the end of a line, or raise an error and add nothing."""
    if (end := value.get("end")) is not None:
        last_rows[end["trajectory_id"]].update(end)
        return
    steps = [_step(row) for row in value["steps"]]
    rows += steps
    last_rows.update((row["trajectory_id"], row) for row in steps)


def _step(row: dict[str, Any]) -> dict[str, Any]:
    missing = _NEEDED - row.keys()
    if missing:
        raise ValueError(f"a step must have {', '.join(sorted(missing))}")
    arrays = {n: np.array(row[n], dtype) for n, dtype in _ARRAYS.items() if n in row}
    for image in row.get("images", ()):
        if image["bytes"] is not None:
            image["bytes"] = base64.b64decode(image["bytes"])
    return row | arrays


def _line(value: Mapping[str, Any]) -> bytes:
    """Return a line with its checksum; numbers of any array come back as they are."""
    text = orjson.dumps(value, default=_base64, option=orjson.OPT_SERIALIZE_NUMPY)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _value(line: bytes) -> dict[str, Any]:
    """Return the object of a line.

    Raises:
        ValueError: The line is torn, or is not that of its checksum.
    """
    if not line.endswith(b"\n"):
        raise ValueError("its last line is torn")
    text = line[9:-1]
    if line != b"%08x %s\n" % (zlib.crc32(text), text):
        raise ValueError("its checksum does not match")
    return orjson.loads(text)
