"""Read records from files of any kind, plain or compressed, one record at a time."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from graphcredit.collector.importers.logs.archives import samples_of
from graphcredit.collector.importers.logs.arrays import ARRAYS, records_of_arrays
from graphcredit.collector.importers.logs.csv_rows import CSV, csv_rows
from graphcredit.collector.importers.logs.files import (
    LINES,
    MAX_RECORD_BYTES,
    MOST_CONTAINERS,
    PICKLES,
    Record,
    RowError,
    broken,
    decompressed,
    is_mistake,
    kind_of,
    parsed,
    too_long,
)
from graphcredit.collector.importers.logs.json_list import list_items, values
from graphcredit.collector.importers.logs.jsonl import BEFORE_JSON, is_indented, is_lines, lines_of
from graphcredit.collector.importers.logs.opencode import is_session, sessions_of
from graphcredit.collector.importers.logs.parquet import ARROW, rows_of
from graphcredit.collector.importers.logs.plain import plain
from graphcredit.store.errors import InputError, PathError

WHOLE_BYTES = 32 << 20
"""Bytes of a JSON file, after decompression, from which a list is read item by item."""


_PICKLE = (
    "a pickle is not read, since that runs what is in it. Write its samples as JSONL, where you "
    "trust it: torch.load(path, weights_only=True), then one JSON object a line"
)


_BINARY = {
    b"SQLite format 3": "a database of SQLite. `sqlite3 -json FILE 'select * from TABLE'` writes "
    "its rows",
    b"\x93NUMPY": "one array of NumPy: numpy.savez writes states, actions and rewards together",
    b"PK\x03\x04": "an archive: unpack it",
}
"""How files begin that are not read, and what they are."""


def read_records(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Record]:
    """Yield the records of a file. One that cannot be read has a RowError as its value.

    Whatever a library raises about the file ends the reading of that file, as its last record. A
    mistake of this program is raised, and names the file.

    Args:
        path: The file.
        limit: Most bytes of a record after decompression.
    """
    try:
        yield from plain(_records(path, limit))
    except Exception as error:
        if is_mistake(error):
            error.add_note(f"while reading {path}")
            raise
        yield broken(path, "", error)


def sound_records(path: Path, option: str) -> Iterator[Record]:
    """Yield the records of a file that an option names, which must all be sound.

    Raises:
        PathError: There is no such file.
        InputError: A record cannot be read.
    """
    if not path.is_file():
        raise PathError(f"{option} must be a file: there is none at {path}")
    for record in read_records(path):
        if isinstance(record.value, RowError):
            raise InputError(f"{record.where}: {record.value}")
        yield record


def _records(path: Path, limit: int) -> Iterator[Record]:
    try:
        path.open("rb").close()
    except OSError as error:
        yield Record(path=path, place="", value=RowError(f"{error.strerror}"), share=1.0)
        return
    kind = kind_of(path)
    if kind in (".parquet", *ARROW):
        yield from rows_of(path, limit)
    elif kind in CSV:
        yield from csv_rows(path, limit)
    elif kind in ARRAYS:
        yield from records_of_arrays(path, limit)
    elif kind == ".eval":
        yield from samples_of(path, limit)
    elif kind in LINES and not is_indented(path):
        yield from lines_of(path, limit)
    elif is_session(path):
        yield from sessions_of(path, limit)
    elif kind in PICKLES:
        yield Record(path=path, place="", value=RowError(_PICKLE), share=1.0)
    else:
        yield from _document(path, limit)


def _document(path: Path, limit: int) -> Iterator[Record]:
    """Yield the items of a JSON list, unless it is one list of messages; else the whole.

    Several objects, one after the other, are a record each. A text that is long, or no JSON as a
    whole, is read value by value, so that those before the place that is broken are read.
    """
    with path.open("rb") as raw:
        stream = decompressed(raw, path)
        text = stream.read(WHOLE_BYTES)
        is_short = len(text) < WHOLE_BYTES and len(text) <= limit
        binary = next((what for sign, what in _BINARY.items() if text.startswith(sign)), None)
        if binary is not None:
            reason = f"it must be JSON, CSV, Parquet or Arrow: it is {binary}"
            yield Record(path=path, place="", value=RowError(reason), share=1.0)
            return
        value = parsed(text) if is_short else RowError("it must be JSON")
        begin, reader = text.lstrip(BEFORE_JSON), _Reader(text, stream)
        if isinstance(value, list):
            yield from _each(path, raw, iter(cast("list[Any]", value)), "item", limit)
        elif not isinstance(value, RowError):
            yield Record(path=path, place="", value=value, share=1.0)
        elif is_lines(begin):
            yield from lines_of(path, limit)
        elif begin.startswith(b"["):
            items = list_items(reader.read, limit)
            yield from _each(path, raw, items, "item", limit, lambda: reader.num_bytes)
        elif begin.startswith(b"{"):
            yield from _each(path, raw, values(reader.read, limit), "object", limit)
        else:
            yield Record(path=path, place="", value=value, share=1.0)


class _Reader:
    """A text whose beginning was read already."""

    def __init__(self, begin: bytes, rest: IO[bytes]) -> None:
        self._begin, self._rest = io.BytesIO(begin), rest
        self.num_bytes = 0

    def read(self, most: int) -> bytes:
        """Return at most so many bytes, none at the end."""
        data = self._begin.read(most) or self._rest.read(most)
        self.num_bytes += len(data)
        return data


_DAMAGED = {
    "item": "it must be JSON, as the rest of the list: {}",
    "object": "it must be JSON, as the objects before it: {}. Nothing behind it is read: mend it "
    "or cut it out, and `jq -c .` writes an object a line",
}


def _each(
    path: Path,
    raw: IO[bytes],
    items: Iterator[Any],
    noun: str,
    limit: int,
    num_read: Callable[[], int] = lambda: 0,
) -> Iterator[Record]:
    """Yield values of a file; a list of messages is one record.

    Args:
        path: The file.
        raw: It, opened; its position tells the progress.
        items: The values.
        noun: What each is called.
        limit: Most bytes of a record.
        num_read: Returns the bytes of the text that were read so far.
    """
    size, number = max(path.stat().st_size, 1), 0
    try:
        for number, item in enumerate(items, start=1):
            if number == 1 and noun == "item" and _is_message(item):
                messages = [item]
                for message in items:
                    messages.append(message)
                    if num_read() > limit or len(messages) > MOST_CONTAINERS:
                        break
                is_whole = num_read() <= limit and len(messages) <= MOST_CONTAINERS
                value = messages if is_whole else too_long(limit)
                yield Record(path=path, place="", value=value, share=1.0)
                return
            share = min(raw.tell() / size, 1.0)
            yield Record(path=path, place=f"{noun} {number}", value=item, share=share)
    except RowError as error:
        yield Record(path=path, place=f"{noun} {number + 1}", value=error, share=1.0)
    except ValueError as error:
        reason = _DAMAGED[noun] if number else "it must be JSON: {}"
        place = f"{noun} {number + 1}" if number else ""
        yield Record(path=path, place=place, value=RowError(reason.format(error)), share=1.0)


def _is_message(item: object) -> bool:
    return isinstance(item, dict) and {"role", "content"} <= cast("dict[str, Any]", item).keys()
