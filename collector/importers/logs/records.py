"""Read records from files: JSONL, JSON and Parquet, plain or compressed, one record at a time."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from graphcredit.collector.importers.logs.archives import samples_of
from graphcredit.collector.importers.logs.files import (
    DAMAGE,
    LINES,
    PICKLES,
    Record,
    RowError,
    broken,
    decompressed,
    kind_of,
    parsed,
)
from graphcredit.collector.importers.logs.json_list import list_items, values
from graphcredit.collector.importers.logs.jsonl import (
    BEFORE_JSON,
    is_indented,
    is_lines,
    lines_of,
)

WHOLE_BYTES = 32 << 20
"""Bytes of a JSON file, after decompression, from which a list is read item by item."""

_ROWS_AT_A_TIME = 64
"""Rows of a Parquet file in memory as Python objects."""

_PICKLE = (
    "a pickle is not read, since that runs what is in it. Write its samples as JSONL, where you "
    "trust it: torch.load(path, weights_only=True), then one JSON object a line"
)


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
        yield from samples_of(path)
    elif kind in LINES and not is_indented(path):
        yield from lines_of(path)
    elif kind in PICKLES:
        yield Record(path=path, place="", value=RowError(_PICKLE), share=1.0)
    else:
        yield from _document(path)


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
                long = _several(path, raw, text, lambda n: begun.read(n) or stream.read(n))
                if long is not None:
                    yield from long
                    return
            whole = text + stream.read()
            value = parsed(whole)
        except DAMAGE as error:
            yield broken(path, "", error)
            return
        if isinstance(value, list):
            yield from _items(path, raw, iter(cast("list[Any]", value)))
            return
        # The sound items before the place that is broken are read.
        several = None
        if isinstance(value, RowError):
            several = _several(path, raw, whole, io.BytesIO(whole).read)
        yield from several or [Record(path=path, place="", value=value, share=1.0)]


def _several(
    path: Path, raw: IO[bytes], begin: bytes, read: Callable[[int], bytes]
) -> Iterator[Record] | None:
    """Return the records of a file, which are read one by one; None if it is one record.

    Args:
        path: The file.
        raw: It, opened; its position tells the progress.
        begin: The beginning of its text.
        read: Returns at most so many bytes of its text.
    """
    if begin.lstrip(BEFORE_JSON).startswith(b"["):
        return _items(path, raw, list_items(read))
    if is_lines(begin):
        return lines_of(path)
    if not _has_several(begin):
        return None
    reason = (
        "it must be JSON, as the objects before it: {}. Nothing behind it is read: mend it or cut "
        "it out, and `jq -c .` writes an object a line"
    )
    return _each(path, raw, values(read), "object", reason)


def _has_several(text: bytes) -> bool:
    """Return whether an object ends in a text, and something follows."""
    text = text.lstrip(BEFORE_JSON)
    if not text.startswith(b"{"):
        return False
    objects, is_first = values(io.BytesIO(text).read), True
    try:
        next(objects)
        is_first = False
        return next(objects, None) is not None
    except (ValueError, RecursionError):
        return not is_first


def _items(path: Path, raw: IO[bytes], items: Iterator[Any]) -> Iterator[Record]:
    """Yield the items of a list; a list of messages is one record."""
    return _each(path, raw, items, "item", "it must be JSON, as the rest of the list: {}")


def _each(
    path: Path, raw: IO[bytes], items: Iterator[Any], noun: str, reason: str
) -> Iterator[Record]:
    size, number = max(path.stat().st_size, 1), 0
    try:
        for number, item in enumerate(items, start=1):
            if number == 1 and noun == "item" and _is_message(item):
                yield Record(path=path, place="", value=[item, *items], share=1.0)
                return
            share = min(raw.tell() / size, 1.0)
            yield Record(path=path, place=f"{noun} {number}", value=item, share=share)
    except (ValueError, RecursionError) as error:
        broken = RowError(reason.format(error))
        yield Record(path=path, place=f"{noun} {number + 1}", value=broken, share=1.0)


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
        yield broken(path, "", error)
