"""Records in an object around them, such as `{"rollouts": [...]}`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from graphcredit.collector.importers.logs.records import Record
from graphcredit.collector.importers.table import LogFormat, recognise

AROUND = (
    *("rollouts", "trajectories", "episodes", "samples", "records", "results"),
    *("rows", "items", "examples", "data"),
)
"""Fields whose list may be the records of a file."""

_TRIED = 100
"""Records of a list by which their format is recognised."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wrapped:
    """Where the records of a file are."""

    field: str
    format: LogFormat

    def records(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records of the lists; what has no such list is a record itself."""
        for record in records:
            items = _list(record.value, self.field)
            if items is None:
                yield record
                continue
            before = f"{record.place}, " if record.place else ""
            for number, item in enumerate(items, start=1):
                yield Record(
                    path=record.path,
                    place=f"{before}item {number} of {self.field}",
                    value=item,
                    share=record.share,
                )


def wrapped(record: Record) -> Wrapped | None:
    """Return where the records in an object are; None unless exactly one list of it has some."""
    found = [each for name in AROUND if (each := _wrapped_in(record, name)) is not None]
    return found[0] if len(found) == 1 else None


def _wrapped_in(record: Record, name: str) -> Wrapped | None:
    items = _list(record.value, name) or []
    formats = (recognise(item, record.path) for item in islice(items, _TRIED))
    row = next((row for row in formats if row is not None), None)
    return None if row is None else Wrapped(field=name, format=row)


def _list(value: object, name: str) -> list[Any] | None:
    if not isinstance(value, Mapping):
        return None
    found = cast("Mapping[str, Any]", value).get(name)
    return cast("list[Any]", found) if isinstance(found, list) else None
