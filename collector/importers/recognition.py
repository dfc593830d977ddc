"""Which format the records of a file have: of those they look like, the most particular one."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, cast

from graphcredit.collector.importers.coverage.covered import Coverage
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.messages.rollout import LoggedRollout
from graphcredit.collector.importers.messages.values import MALFORMED, RecordError, field_at
from graphcredit.collector.importers.sources import LogSource
from graphcredit.collector.importers.table import LogFormat, candidates, format_named
from graphcredit.store.errors import StepRefusedError

RECOGNISED_WITHIN = 100
"""Records of a file by which its format is recognised: the first rollouts may have failed."""

COMPARED = 8
"""Records that the formats they look like are compared on."""

_JOINED = 40
"""Records that a format is compared on whose records are joined."""

_VALUE_BYTES = 64
"""About the memory of a value that is no text."""

_SAMPLED_BYTES = 128 << 20
"""About the memory of the records that are held until the format is known."""

_POOR = 0.5
"""A loose format is poor if it reads less than this share of the answers that another one reads."""

_ABOUT_RECORDS = (*MALFORMED, OverflowError, RecordError, RowError, StepRefusedError)

NESTED_IN = (
    *("rollouts", "trajectories", "episodes", "samples", "records", "results"),
    *("rows", "items", "examples", "data", "results.results"),
)
"""Fields whose list may be the records of a file, such as `{"rollouts": [...]}`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recognised:
    """What the first records of a file tell of it."""

    begin: list[Record]
    """Those records."""
    format: LogFormat | None = None
    """None if they are no log."""
    field: str | None = None
    """The list of an object around the records, if there is one."""
    coverage: Coverage | None = None
    """What the format reads of them."""

    def records(self, rest: Iterator[Record]) -> Iterator[Record]:
        """Yield all records of the file, given those behind the first ones."""
        logged = chain(self.begin, rest)
        return logged if self.field is None else _inner(logged, self.field)


def recognised(records: Iterator[Record], log: LogSource) -> Recognised:
    """Return what the first records of a file tell of it.

    A file of a folder is read as the format that was named only if a record looks like it.
    """
    begin: list[Record] = []
    named = None if log.options.format is None else format_named(log.options.format)
    for record in _sampled(records, RECOGNISED_WITHIN):
        begin.append(record)
        if isinstance(record.value, RowError):
            continue
        rows = _like(record, named)
        field = None if rows else _field_of(record, named)
        if field is not None:
            inner = islice(_inner(iter([record]), field), _JOINED)
            sample = [item for item in inner if not isinstance(item.value, RowError)]
            rows = next(filter(None, (_like(item, named) for item in sample)), [])
        elif rows or (named is not None and not log.is_folder):
            at = len(begin) - 1
            rows = rows or cast("list[LogFormat]", [named])
            is_joined = any(row.gather for row in rows)
            begin += _sampled(records, (_JOINED if is_joined else COMPARED) - 1, begin)
            sample = begin[at:]
        else:
            continue
        together = [row for row in rows if row.is_log is None or row.is_log(sample)]
        joined = {row.instead_of for row in together}
        together = [row for row in together if row.name not in joined]
        row = _best(together or rows, sample)
        coverage = coverage_of(row, sample[: None if row.gather else COMPARED])
        return Recognised(begin=begin, format=row, field=field, coverage=coverage)
    return Recognised(begin=begin)


def _sampled(
    records: Iterator[Record], most: int, before: Iterable[Record] = ()
) -> Iterator[Record]:
    """Yield some records, until they and those before take `_SAMPLED_BYTES`."""
    num_bytes = sum(_num_bytes(record.value) for record in before)
    while most and num_bytes < _SAMPLED_BYTES and (record := next(records, None)) is not None:
        num_bytes += _num_bytes(record.value)
        most -= 1
        yield record


def _num_bytes(value: object) -> int:
    """Return about how much memory a value takes."""
    num_bytes, left = 0, [value]
    while left:
        item = left.pop()
        num_bytes += len(item) if isinstance(item, str) else _VALUE_BYTES
        if isinstance(item, dict | list):
            left.extend(item.values() if isinstance(item, dict) else item)
    return num_bytes


def _like(record: Record, named: LogFormat | None) -> list[LogFormat]:
    """Return the formats that a record looks like, among those that are allowed."""
    if named is not None:
        return [named] if named.is_row(record.value, record.path) else []
    return candidates(record.value, record.path)


def _best(rows: list[LogFormat], sample: list[Record]) -> LogFormat:
    """Return the first format, so the most particular one; a loose one if none reads far more."""
    rows = rows[: next((n for n, row in enumerate(rows, 1) if not row.is_loose), None)]
    if len(rows) == 1:
        return rows[0]
    numbers = [_num_answers(row, sample) for row in rows]
    if not numbers[0]:  # it leaves them out, and says why
        return rows[0]
    pairs = zip(rows, numbers, strict=True)
    return next(row for row, number in pairs if number >= _POOR * max(numbers))


def _num_answers(row: LogFormat, sample: list[Record]) -> int:
    """Return how many different answers of the policy a format reads in some records.

    Not how much text: a field that one format leaves unread may be a long prompt to another.
    """
    messages = (
        m for _, read in readings(row, sample) for rollout in read for m in rollout.messages
    )
    return len({(m.thought, m.text, *map(str, m.tool_calls)) for m in messages if m.is_answer})


def coverage_of(row: LogFormat, records: Iterable[Record]) -> Coverage:
    """Return how much a format reads of some records; those that it cannot read do not count."""
    coverage = Coverage()
    for record, read in readings(row, records):
        coverage.add(record.value, read, row.aside)
    return coverage


def readings(
    row: LogFormat, records: Iterable[Record]
) -> Iterator[tuple[Record, list[LoggedRollout]]]:
    """Yield records that a format can read, put together as it does, with their rollouts."""
    sound = (record for record in records if not isinstance(record.value, RowError))
    with suppress(*_ABOUT_RECORDS):
        for record in row.gather(sound, _SAMPLED_BYTES) if row.gather else sound:
            read: list[LoggedRollout] = []
            with suppress(*_ABOUT_RECORDS):
                read = [item for item in row.read(record) if isinstance(item, LoggedRollout)]
            if read:
                yield record, read


def _field_of(record: Record, named: LogFormat | None) -> str | None:
    """Return the list of an object that has records; None unless there is just one."""
    fields = [name for name in NESTED_IN if _has_records(record, name, named)]
    return fields[0] if len(fields) == 1 else None


def _has_records(record: Record, name: str, named: LogFormat | None) -> bool:
    items = islice(_inner(iter([record]), name, others=False), RECOGNISED_WITHIN)
    return any(_like(item, named) for item in items)


def _inner(records: Iterator[Record], name: str, *, others: bool = True) -> Iterator[Record]:
    """Yield the items of a list of each record; what has no such list is a record itself."""
    for record in records:
        items = field_at(record.value, name)
        if not isinstance(items, list):
            if others:
                yield record
            continue
        before = f"{record.place}, " if record.place else ""
        for number, item in enumerate(cast("list[Any]", items), start=1):
            place = f"{before}item {number} of {name}"
            yield Record(path=record.path, place=place, value=item, share=record.share)
