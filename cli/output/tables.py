"""Write query results as text: a table for people, CSV and JSON for programs."""

import csv
import json
import math
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from shutil import get_terminal_size
from typing import Any, TextIO

import pyarrow as pa
from rich.cells import cell_len, set_cell_size

from graphcredit.store.errors import OptionError
from graphcredit.store.log_text import in_json, in_terminal
from graphcredit.store.plural import counted
from graphcredit.store.sql.values import python_rows

_LEAST_WIDTH = 12
"""Characters that a shortened value keeps."""


def print_table(stream: TextIO, table: pa.Table) -> list[str]:
    """Print rows as columns, shortened so that they fit a terminal.

    A pipe or file has no width to fit: each row is one whole line, without trailing spaces.

    Returns:
        What was shortened or left out, and how to see it.
    """
    names = [in_terminal(name) for name in table.column_names]
    widths = [cell_len(name) for name in names]
    for row in _cells(table):
        widths = [max(w, cell_len(cell)) for w, cell in zip(widths, row, strict=True)]
    fitted = fit(widths, get_terminal_size().columns) if stream.isatty() else widths
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    numeric = [any(is_of(field.type) for is_of in numbers) for field in table.schema]
    for row in chain([names], _cells(table)):
        cells = map(_fitted, row, fitted, numeric)
        stream.write("  ".join(cells).rstrip() + "\n")
    stream.flush()
    return _cut(widths, fitted)


def _fitted(cell: str, width: int, is_number: bool) -> str:
    length = cell_len(cell)
    if length > width:
        return set_cell_size(cell, width - 1) + "…"
    room = " " * (width - length)
    return room + cell if is_number else cell + room


def fit(widths: list[int], room: int) -> list[int]:
    """Return the widths of the first columns that a line has room for, the widest ones shortened.

    Args:
        widths: The width of each column, in characters.
        room: The width of the terminal.
    """
    kept = max(1, sum(_line(widths[: n + 1], _LEAST_WIDTH) <= room for n in range(len(widths))))
    longest = min(max(widths), room)
    while longest > _LEAST_WIDTH and _line(widths[:kept], longest) > room:
        longest -= 1
    return [min(width, longest) for width in widths[:kept]]


def _line(widths: list[int], longest: int) -> int:
    """Return the width of a line whose columns are cut at a width."""
    return sum(min(width, longest) for width in widths) + 2 * (len(widths) - 1)


def _cut(widths: list[int], fitted: list[int]) -> list[str]:
    if fitted == widths:
        return []
    num_shortened = sum(a < b for a, b in zip(fitted, widths, strict=False))
    cuts = [
        *([f"{len(fitted)} of {len(widths)} columns"] if len(fitted) < len(widths) else []),
        *([f"values of {counted(num_shortened, 'column')} shortened"] if num_shortened else []),
    ]
    return [f"{', '.join(cuts)} to fit the terminal: --format json shows all"]


def _cells(table: pa.Table) -> Iterator[list[str]]:
    return ([_cell(value) for value in row] for row in python_rows(table))


def _cell(value: object) -> str:
    if value is None:
        return "null"
    return f"{value:.6g}" if isinstance(value, float) else in_terminal(_as_text(value))


def write_csv(table: pa.Table, stream: "TextIO | Plain") -> None:
    """Write CSV with a header. Null is an empty field; lists and structs are JSON."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in python_rows(table):
        writer.writerow(["" if value is None else _as_text(value) for value in row])


def write_json(table: pa.Table, stream: "TextIO | Plain") -> None:
    """Write a JSON array of objects, one per line; NaN and infinities are strings.

    Raises:
        OptionError: Two columns have the same name, and an object can hold only one of them.
    """
    names = table.column_names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OptionError(
            f"columns of JSON must have different names: {in_terminal(twice)!r} is there twice. "
            "Rename one of them with AS"
        )
    separator = "["
    for row in python_rows(table):
        content = _jsonable(dict(zip(names, row, strict=True)))
        stream.write(separator + in_json(content))
        separator = ",\n "
    stream.write("[]\n" if separator == "[" else "]\n")


class Plain:
    """A text stream for a terminal: it escapes all control characters but newlines and tabs."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        """Write a text, escaped by `in_terminal`."""
        return self._terminal.write(in_terminal(text, keep="\n\t"))


def _as_text(value: object) -> str:
    jsonable = _jsonable(value)
    return jsonable if isinstance(jsonable, str) else json.dumps(jsonable, ensure_ascii=False)


def _jsonable(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case date() | time() | datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case dict():
            return {str(key): _jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [_jsonable(item) for item in value]
        case _:
            return str(value)
