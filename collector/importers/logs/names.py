"""Fields of records under other names: what `--columns` says of them."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from graphcredit.collector.importers.logs.files import Record, RowError

Names = Mapping[str, str]
"""The name that a reader knows, to the field of the log: a name, or a path such as `info.task`."""


def named(records: Iterator[Record], names: Names, met: set[str]) -> Iterator[Record]:
    """Yield records whose fields have other names."""
    for record in records:
        yield renamed(record, names, met)


def renamed(record: Record, names: Names, met: set[str]) -> Record:
    """Return a record whose fields have other names, also those of objects in its lists.

    Args:
        record: The record.
        names: What its fields are to be called.
        met: Fields of `names` that records had so far; those of this one are added.
    """
    if not names or isinstance(record.value, RowError):
        return record
    value = _renamed(record.value, names, met)
    return Record(path=record.path, place=record.place, value=value, share=record.share)


def _renamed(value: Any, names: Names, met: set[str]) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        are_objects = bool(items) and isinstance(items[0], Mapping | list)
        return [_renamed(item, names, met) for item in items] if are_objects else items
    if not isinstance(value, Mapping):
        return value
    row = cast("Mapping[str, Any]", value)
    found = {name: (field, _at(row, field)) for name, field in names.items()}
    found = {name: (field, part) for name, (field, part) in found.items() if part is not _NONE}
    met.update(field for field, _ in found.values())
    taken = {field for field, _ in found.values()}
    rest = {
        name: _renamed(part, names, met) if isinstance(part, list) else part
        for name, part in row.items()
        if name not in taken
    }
    return rest | {name: _renamed(part, names, met) for name, (_, part) in found.items()}


_NONE = object()


def _at(row: Mapping[str, Any], path: str) -> Any:
    """Return what is at a path, which may be null; `_NONE` if the object has none."""
    if path in row:
        return row[path]
    first, _, rest = path.partition(".")
    inner = row.get(first)
    return _at(cast("Mapping[str, Any]", inner), rest) if isinstance(inner, Mapping) else _NONE
