"""Fields of records under other names: what `--columns` says of them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.places import is_path_term, path_rule

Names = Mapping[str, str]
"""The name that a reader knows, to the field of the log: a name, or a path such as `info.task`."""


def named(records: Iterator[Record], names: Names, path: str, met: set[str]) -> Iterator[Record]:
    """Yield records whose fields have other names."""
    for record in records:
        yield renamed(record, names, path, met)


def renamed(record: Record, names: Names, path: str, met: set[str]) -> Record:
    """Return a record whose fields have other names, also those of objects in its lists.

    Args:
        record: The record.
        names: What its fields are to be called.
        path: Of its file, for names that are a part of it.
        met: Fields of `names` that records had so far; those of this one are added.
    """
    if not names or isinstance(record.value, RowError):
        return record
    parts = names_in_path(names, path)
    met.update(names[name] for name in parts)
    fields = {name: field for name, field in names.items() if not _is_in_path(name, field)}
    value = _renamed(record.value, fields, met)
    if parts and isinstance(value, list) and value and isinstance(value[0], Mapping):
        value = {"messages" if "role" in value[0] else "steps": value}
    if parts and isinstance(value, Mapping):
        value = {**cast("Mapping[str, Any]", value), **parts}
    return replace(record, value=value)


def names_in_path(names: Names, path: str) -> dict[str, str]:
    """Return the names that a part of a path is called, and that part."""
    parts = {n: path_rule(field)(path) for n, field in names.items() if _is_in_path(n, field)}
    return {name: part for name, part in parts.items() if part is not None}


def _is_in_path(name: str, field: str) -> bool:
    """Return whether a name is for a part of the path; no list is, though its field be `path`."""
    return is_path_term(field) and name not in ("steps", "messages")


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
