"""Read records from files: JSONL, JSON and Parquet, plain or compressed, one record at a time."""

import errno
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.collector.importers.logs.archives import EvalArchive
from graphcredit.collector.importers.logs.compression import COMPRESSIONS, DAMAGE, decompressed
from graphcredit.collector.importers.logs.json_list import list_items, values
from graphcredit.collector.importers.logs.json_text import parse_json_text
from graphcredit.store.errors import InputError

SUFFIXES = (".jsonl", ".ndjson", ".json", ".traj", ".parquet", ".eval")
"""Files that a folder is searched for, with or without a suffix of `COMPRESSIONS`."""

LINES = (".jsonl", ".ndjson")
"""Files with a record a line."""

PICKLES = (".pt", ".pth", ".pkl", ".pickle")
"""Files that are never opened: to read a pickle is to run what is in it."""

BLOCK_BYTES = 1 << 20
"""Bytes of lines, after decompression, that are read at a time."""

_READ_BYTES = 1 << 16

WHOLE_BYTES = 32 << 20
"""Bytes of a JSON file, after decompression, from which a list is read item by item."""

_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"

_ROWS_AT_A_TIME = 64
"""Rows of a Parquet file in memory as Python objects."""


class RowError(InputError):
    """A row of a file cannot be read; the message has the reason alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One record of a file."""

    path: Path
    place: str
    """Where in the file: `line 3`, `row 3`, `item 3`, a member of an archive, or empty."""
    value: Any
    """What JSON has there, or a RowError."""
    share: float
    """How much of the file has been read, 0 to 1."""

    @property
    def where(self) -> str:
        """File and place, for messages."""
        return f"{self.path}, {self.place}" if self.place else str(self.path)


def kind_of(path: Path) -> str:
    """Return the suffix of a file without that of its compression."""
    name = path.name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return Path(name).suffix


def log_files(source: Path) -> tuple[list[Path], list[OSError]]:
    """Return a file, or the files of a folder that may be logs, in the order of their names.

    Also returns why folders and files in it cannot be read.
    """
    if not source.is_dir():
        return [source], []
    unreadable: list[OSError] = []
    paths = (
        Path(folder, name)
        for folder, _, names in os.walk(source, onerror=unreadable.append)
        for name in names
    )
    found: list[Path] = []
    for path in filter(_may_be_log, paths):
        if path.is_file():
            found.append(path)
        else:
            reason = "it must be a file: found a link to nothing, a pipe or a device"
            unreadable.append(OSError(errno.EINVAL, reason, str(path)))
    return sorted(found), unreadable


def _may_be_log(path: Path) -> bool:
    return kind_of(path) in SUFFIXES and not path.name.startswith(".")


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file. One that cannot be read has a RowError as its value."""
    try:
        path.open("rb").close()
    except OSError as error:
        yield Record(path=path, place="", value=RowError(f"{error.strerror}"), share=1.0)
        return
    kind = kind_of(path)
    if kind == ".parquet":
        yield from _table(path)
    elif kind == ".eval":
        yield from _archive(path)
    elif kind in LINES and not is_indented(path):
        yield from _lines(path)
    elif kind in PICKLES:
        yield Record(path=path, place="", value=RowError(_PICKLE), share=1.0)
    else:
        yield from _document(path)


def is_indented(path: Path) -> bool:
    """Return whether the first line of a file only opens an object or a list."""
    try:
        with path.open("rb") as raw:
            stream = decompressed(raw, path)
            return _opens(stream.read(_READ_BYTES))
    except DAMAGE:
        return False


def _opens(text: bytes) -> bool:
    first, _, rest = text.lstrip(_BEFORE_JSON).partition(b"\n")
    # A first line that was cut off opens an object too, and whole records follow it.
    return first.strip() == b"[" or (first.strip() == b"{" and not _is_lines(rest))


def _lines(path: Path) -> Iterator[Record]:
    for block in _blocks(path):
        if block.first_line == 1 and block.lines.startswith(_UTF_16):
            yield Record(path=path, place="", value=RowError(_NOT_UTF_8), share=1.0)
            return
        yield from records_of_block(path, block)


_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NOT_UTF_8 = (
    "it must be UTF-8: its first bytes are those of UTF-16, which PowerShell writes. "
    "`iconv -f UTF-16 -t UTF-8 FILE > NEW.jsonl` converts it"
)

_PICKLE = (
    "a pickle is not read, since that runs what is in it. Write its samples as JSONL, where you "
    "trust it: torch.load(path, weights_only=True), then one JSON object a line"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Some whole lines of a file."""

    lines: bytes
    first_line: int
    """Number of the first one in the file, from 1."""
    share: float
    """How much of the file has been read with them, 0 to 1."""
    damage: str = ""
    """Why the file cannot be read any further."""


def _blocks(path: Path) -> Iterator[Block]:
    """Yield the lines of a file, in blocks of about `BLOCK_BYTES`."""
    size = max(path.stat().st_size, 1)
    first, parts, length = 1, list[bytes](), 0
    with path.open("rb") as raw:
        stream, damage = decompressed(raw, path), ""
        while not damage:
            try:
                data = stream.read(_READ_BYTES)
            except DAMAGE as error:
                data, damage = b"", " ".join(str(error).split())[:200]
            parts.append(data)
            length += len(data)
            if data and (length < BLOCK_BYTES or b"\n" not in data):
                continue
            whole = b"".join(parts)
            end = len(whole) if not (data or damage) else whole.rfind(b"\n") + 1
            lines, rest = whole[:end], whole[end:]
            share = min(raw.tell() / size, 1.0)
            yield Block(lines=lines, first_line=first, share=share, damage=damage)
            if not data:
                return
            first += lines.count(b"\n")
            parts, length = [rest], len(rest)


def records_of_block(path: Path, block: Block) -> Iterator[Record]:
    """Yield the records of some lines of a file; empty lines are none."""
    number = block.first_line
    for number, line in enumerate(block.lines.split(b"\n"), start=block.first_line):
        if line and not line.isspace():
            value = _parsed(line)
            yield Record(path=path, place=f"line {number}", value=value, share=block.share)
    if block.damage:
        yield _broken(path, f"line {number}", block.damage)


def _parsed(text: bytes) -> Any:
    try:
        return parse_json_text(text)
    except (ValueError, RecursionError) as error:
        return RowError(f"it must be JSON: {error}")


def _broken(path: Path, place: str, error: Exception | str) -> Record:
    reason = " ".join(str(error).split())[:200]
    return Record(
        path=path, place=place, value=RowError(f"the file is damaged here: {reason}"), share=1.0
    )


def _document(path: Path) -> Iterator[Record]:
    """Yield the items of a JSON list, unless it is one list of messages; else the whole.

    Several objects, one after the other, are a record each.
    """
    with path.open("rb") as raw:
        try:
            stream = decompressed(raw, path)
            text = stream.read(WHOLE_BYTES)
            if len(text) == WHOLE_BYTES:
                begun = io.BytesIO(text)
                long = _long(path, raw, text, lambda n: begun.read(n) or stream.read(n))
                if long is not None:
                    yield from long
                    return
            whole = text + stream.read()
            value = _parsed(whole)
        except DAMAGE as error:
            yield _broken(path, "", error)
            return
        if isinstance(value, RowError) and whole.lstrip(_BEFORE_JSON).startswith(b"["):
            # The whole items before the place that is broken are read.
            yield from _items(path, raw, list_items(io.BytesIO(whole).read))
        elif isinstance(value, RowError) and _is_lines(whole):
            yield from records_of_block(path, Block(lines=whole, first_line=1, share=1.0))
        elif isinstance(value, RowError) and _has_several(whole):
            yield from _objects(path, raw, values(io.BytesIO(whole).read))
        elif isinstance(value, list):
            yield from _items(path, raw, iter(cast("list[Any]", value)))
        else:
            yield Record(path=path, place="", value=value, share=1.0)


def _long(
    path: Path, raw: IO[bytes], begin: bytes, read: Callable[[int], bytes]
) -> Iterator[Record] | None:
    """Return the records of a long file, which are read one by one; None if it is one record."""
    if begin.lstrip(_BEFORE_JSON).startswith(b"["):
        return _items(path, raw, list_items(read))
    if _is_lines(begin):
        return _lines(path)
    return _objects(path, raw, values(read)) if _has_several(begin) else None


def _has_several(text: bytes) -> bool:
    """Return whether an object ends in a text, and something follows."""
    text = text.lstrip(_BEFORE_JSON)
    if not text.startswith(b"{"):
        return False
    found = values(io.BytesIO(text).read)
    try:
        next(found)
    except (ValueError, RecursionError):
        return False
    try:
        return next(found, None) is not None
    except (ValueError, RecursionError):
        return True


def _objects(path: Path, raw: IO[bytes], objects: Iterator[Any]) -> Iterator[Record]:
    """Yield objects that follow one another, such as indented ones."""
    size, number = max(path.stat().st_size, 1), 0
    try:
        for number, value in enumerate(objects, start=1):
            share = min(raw.tell() / size, 1.0)
            yield Record(path=path, place=f"object {number}", value=value, share=share)
    except (ValueError, RecursionError) as error:
        reason = RowError(
            f"it must be JSON, as the objects before it: {error}. Nothing behind it is read: mend "
            "it or cut it out, and `jq -c .` writes an object a line"
        )
        yield Record(path=path, place=f"object {number + 1}", value=reason, share=1.0)


def _is_lines(text: bytes) -> bool:
    """Return whether a text is JSONL, whatever its name: its first line is an object."""
    return isinstance(_parsed(text.lstrip(_BEFORE_JSON).partition(b"\n")[0]), dict)


def _items(path: Path, raw: IO[bytes], items: Iterator[Any]) -> Iterator[Record]:
    size, number = max(path.stat().st_size, 1), 0
    try:
        for number, item in enumerate(items, start=1):
            if number == 1 and _is_message(item):
                yield Record(path=path, place="", value=[item, *items], share=1.0)
                return
            share = min(raw.tell() / size, 1.0)
            yield Record(path=path, place=f"item {number}", value=item, share=share)
    except (ValueError, RecursionError) as error:
        reason = RowError(f"it must be JSON, as the rest of the list: {error}")
        yield Record(path=path, place=f"item {number + 1}", value=reason, share=1.0)


def _is_message(item: object) -> bool:
    return isinstance(item, dict) and {"role", "content"} <= cast("dict[str, Any]", item).keys()


def _table(path: Path) -> Iterator[Record]:
    """Yield the rows of a Parquet file."""
    try:
        with pq.ParquetFile(path.absolute()) as file:  # a relative path with a colon is a URL to it
            number, total = 0, max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(batch_size=_ROWS_AT_A_TIME):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(path=path, place=f"row {number}", value=row, share=number / total)
    except (pa.ArrowInvalid, OSError) as error:
        yield _broken(path, "", error)


def _archive(path: Path) -> Iterator[Record]:
    """Yield the samples of an Inspect archive, each with the header of its evaluation."""
    try:
        with EvalArchive(path) as archive:
            header = archive.header()
            for number, name in enumerate(archive.samples, start=1):
                value = {"header": header, "sample": _sample(archive, name)}
                share = number / len(archive.samples)
                yield Record(path=path, place=name, value=value, share=share)
    except (ValueError, zipfile.BadZipFile, OSError) as error:
        yield _broken(path, "", error)


def _sample(archive: EvalArchive, name: str) -> Any:
    try:
        return archive.sample(name)
    except (ValueError, RecursionError, NotImplementedError, zipfile.BadZipFile, OSError) as error:
        return RowError(f"the sample cannot be read: {error}")
