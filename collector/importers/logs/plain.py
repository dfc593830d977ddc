"""Records as their writer had them: without Arrow's padding, and the rows of a table apart."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from graphcredit.collector.importers.logs.files import Record, kind_of

_ARROW = frozenset({".parquet", ".arrow", ".feather", ".ipc"})


def plain(records: Iterator[Record]) -> Iterator[Record]:
    """Yield records without what the format of their file has added."""
    for record in records:
        value = record.value
        if not isinstance(value, Mapping):
            yield record
            continue
        fields = cast("Mapping[str, Any]", value)
        if kind_of(record.path) in _ARROW:
            row = {name: without_padding(field) for name, field in fields.items()}
            yield Record(path=record.path, place=record.place, value=row, share=record.share)
        elif _is_table(fields):
            before = f"{record.place}, " if record.place else ""
            for number, cells in enumerate(fields["data"], start=1):
                row = dict(zip(fields["columns"], cells, strict=False))
                place = f"{before}row {number}"
                yield Record(path=record.path, place=place, value=row, share=record.share)
        else:
            yield record


def without_padding(value: Any) -> Any:
    """Return a value whose objects have no nulls: Arrow gives each object the fields of all."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {k: without_padding(v) for k, v in fields.items() if v is not None}
    if isinstance(value, list) and value and isinstance(value[0], dict | list | None):
        return [without_padding(item) for item in cast("list[Any]", value)]
    return value


def _is_table(fields: Mapping[str, Any]) -> bool:
    """Return whether a record is a table of W&B, or of pandas (`orient="split"`)."""
    columns, rows = fields.get("columns"), fields.get("data")
    if not (isinstance(columns, list) and columns and isinstance(rows, list) and rows):
        return False
    names, cells = cast("list[object]", columns), cast("list[object]", rows)
    return all(isinstance(name, str) for name in names) and isinstance(cells[0], list)
