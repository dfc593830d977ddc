"""Read the rows of CSV files, whose cells may be numbers, JSON or text."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from graphcredit.collector.importers.logs.files import (
    Record,
    RowError,
    decompressed,
    parsed,
    too_long,
)
from graphcredit.collector.importers.logs.json_text import parse_python
from graphcredit.collector.importers.logs.jsonl import NOT_UTF_8, UTF_16

CSV = (".csv", ".tsv")

_INTEGER = re.compile(r"-?(0|[1-9]\d{0,14})")
"""Not `007`, which is a name, nor a number that a float could not hold."""

_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\d+[eE][-+]\d+")
"""Not `12e5`, which may be a part of a hash: programs write the sign."""

_PYTHON = re.compile(r"\s*[\[{]+'")
"""How a list or an object begins as pandas writes it."""

_WORDS = {"": None, "nan": None, "true": True, "false": False}


def csv_rows(path: Path, limit: int) -> Iterator[Record]:
    """Yield the rows of a file, the first line of which names the columns."""
    size = max(path.stat().st_size, 1)
    csv.field_size_limit(max(csv.field_size_limit(), limit))
    with path.open("rb") as raw:
        if raw.read(2) in UTF_16:
            yield Record(path=path, place="", value=RowError(NOT_UTF_8), share=1.0)
            return
        raw.seek(0)
        text = io.TextIOWrapper(decompressed(raw, path), "utf-8-sig", newline="")
        lines = _Lines(text, limit)
        header = next(lines, "")
        reader = csv.reader(lines, delimiter=_delimiter(header))
        names = next(csv.reader([header], delimiter=_delimiter(header)), [])
        if len(set(names)) < len(names):
            names_twice = sorted(name for name, count in Counter(names).items() if count > 1)
            reason = f"the columns must have different names: found {', '.join(names_twice)} twice"
            yield Record(path=path, place="line 1", value=RowError(reason), share=1.0)
            return
        for cells in reader:
            place = f"line {reader.line_num + 1}"
            share = min(raw.tell() / size, 1.0)
            lines.num_characters = 0
            if cells:
                yield Record(path=path, place=place, value=_row(names, cells, limit), share=share)


class _Lines:
    """The lines of a text, until a row has more characters than a record may have."""

    def __init__(self, text: io.TextIOWrapper, limit: int) -> None:
        self._text, self._limit = text, limit
        self.num_characters = 0
        """Of the row so far."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._limit + 1)
        self.num_characters += len(line)
        if self.num_characters > self._limit:
            raise too_long(self._limit)
        if not line:
            raise StopIteration
        return line


def _delimiter(header: str) -> str:
    """Return what stands most often between the names of the columns."""
    return max((",", "\t", ";", "|"), key=header.count)


def _row(names: list[str], cells: list[str], limit: int) -> Any:
    if len(cells) != len(names):
        return RowError(
            f"a row must have {len(names)} cells, as the first line: it has {len(cells)}. A cell "
            "with a comma or a line break needs quotes"
        )
    if sum(map(len, cells)) > limit:
        return too_long(limit)
    return {name: cell_value(cell) for name, cell in zip(names, cells, strict=True) if name}


def cell_value(cell: str) -> Any:
    """Return what a cell says: nothing, a number, true or false, JSON, or a text."""
    text = cell.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if text[0] in "{[":
        value = parsed(text.encode())
        if isinstance(value, RowError):
            value = parse_python(text) if _PYTHON.match(cell) else None
            return cell if value is None else value
        return value
    return cell
