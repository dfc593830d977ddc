"""Write query results as text: a table for people, CSV and JSON for programs."""

import csv
import json
import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from typing import Any, TextIO

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from graphcredit.cli.output.escape import Plain, plain_text
from graphcredit.store.errors import OptionError
from graphcredit.store.sql.values import python_rows


def print_table(console: Console, table: pa.Table) -> None:
    """Print rows in full: as columns if they fit the terminal, else one block per row.

    A pipe or file has no width to fit: each row is one line, without trailing spaces. (A
    `rich.table` would pad the last column, and hold every rendered row in memory.)
    """
    names = [Text(plain_text(name), style="bold") for name in table.column_names]
    widths = [name.cell_len for name in names]
    for row in _cells(table):
        widths = [max(w, cell.cell_len) for w, cell in zip(widths, row, strict=True)]
    if console.is_terminal and sum(widths) + 2 * len(widths) > console.width:
        _print_blocks(console, names, _cells(table))
        return
    numeric = [_is_number(field.type) for field in table.schema]
    for row in chain([names], _cells(table)):
        for cell, width, is_number in zip(row, widths, numeric, strict=True):
            padding = width - cell.cell_len
            (cell.pad_left if is_number else cell.pad_right)(padding)
        _print_line(console, Text("  ").join(row))


def _cells(table: pa.Table) -> Iterator[list[Text]]:
    return ([_cell(value) for value in row] for row in python_rows(table))


def _print_blocks(console: Console, names: list[Text], rows: Iterable[list[Text]]) -> None:
    label_width = max(name.cell_len for name in names)
    for number, row in enumerate(rows, start=1):
        _print_line(console, Text(f"row {number}", style="bold"))
        for name, cell in zip(names, row, strict=True):
            label = name.copy()
            label.pad_right(label_width - label.cell_len)
            _print_line(console, Text("  ").join([Text(), label, cell]))


def _print_line(console: Console, line: Text) -> None:
    line.rstrip()
    console.print(line, soft_wrap=True)


def _is_number(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def _cell(value: object) -> Text:
    if value is None:
        return Text("null", style="dim")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    return Text(plain_text(_as_text(value)))


def write_csv(table: pa.Table, stream: TextIO | Plain) -> None:
    """Write CSV with a header. Null is an empty field; lists and structs are JSON."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in python_rows(table):
        writer.writerow(["" if value is None else _as_text(value) for value in row])


def write_json(table: pa.Table, stream: TextIO | Plain) -> None:
    """Write a JSON array of objects, one per line; NaN and infinities are strings.

    Raises:
        OptionError: Two columns have the same name, and an object can hold only one of them.
    """
    names = table.column_names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OptionError(
            f"columns of JSON must have different names: {plain_text(twice)!r} is there twice. "
            "Rename one of them with AS"
        )
    separator = "["
    for row in python_rows(table):
        content = _jsonable(dict(zip(names, row, strict=True)))
        stream.write(separator + json.dumps(content, ensure_ascii=False))
        separator = ",\n "
    stream.write("[]\n" if separator == "[" else "]\n")


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
