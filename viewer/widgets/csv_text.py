"""Query results as CSV."""

import csv
import io
import json

import pyarrow as pa

from graphcredit.store.sql.values import python_values


def csv_text(table: pa.Table) -> str:
    """Return CSV with a header. Null is an empty field; lists and structs are JSON."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(table.column_names)
    columns = [_cells(column) for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return sink.getvalue()


def _cells(column: pa.ChunkedArray) -> list[object]:
    values = python_values(column)
    if not pa.types.is_nested(column.type):
        return values
    return [
        None if value is None else json.dumps(value, ensure_ascii=False, default=str)
        for value in values
    ]
