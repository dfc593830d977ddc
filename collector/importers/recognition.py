"""Which format the records of a file have: of those they look like, the most particular one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, cast

from graphcredit.collector.importers.coverage.covered import Coverage
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Omission
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
    name: str | None = None
    """Of the list of an object around the records, if there is one."""
    coverage: Coverage | None = None
    """What the format reads of them."""
    read: Mapping[int, Sequence[LoggedRollout | Omission]] = field(default_factory=dict[int, Any])
    """What it made of some of them, by their `id`, which nothing else has while `begin` has them:
    they need not be read again."""

    def records(self, rest: Iterator[Record]) -> Iterator[Record]:
        """Yield all records of the file, given those behind the first ones."""
        logged = chain(self.begin, rest)
        return logged if self.name is None else _inner(logged, self.name)


def recognised(records: Iterator[Record], log: LogSource) -> Recognised:
    """Return what the first records of a file tell of it.

    A file of a folder is read as the format that was named only if a record looks like it.
    """
    sampled = _Sample(records)
    begin = sampled.records
    named = None if log.options.format is None else format_named(log.options.format)
    for record in sampled.more(RECOGNISED_WITHIN):
        if isinstance(record.value, RowError):
            continue
        rows = _like(record, named)
        name = None if rows else _field_of(record, named)
        if name is not None:
            inner = islice(_inner(iter([record]), name), _JOINED)
            sample = [item for item in inner if not isinstance(item.value, RowError)]
            rows = next(filter(None, (_like(item, named) for item in sample)), [])
        elif rows or (named is not None and not log.is_folder):
            rows = rows or cast("list[LogFormat]", [named])
            is_joined = any(row.gather for row in rows)
            sample = [record, *sampled.more((_JOINED if is_joined else COMPARED) - 1)]
        else:
            continue
        together = [row for row in rows if row.is_log is None or row.is_log(sample)]
        joined = {row.instead_of for row in together}
        together = [row for row in together if row.name not in joined]
        row = _best(together or rows, sample)
        coverage, read = Coverage(), dict[int, list[LoggedRollout | Omission]]()
        for each, made in readings(row, sample[: None if row.gather else COMPARED]):
            coverage.add(each.value, rollouts_in(made), row.aside)
            if any(each is record for record in begin):  # others are gone when this returns
                read[id(each)] = made
        return Recognised(begin=begin, format=row, name=name, coverage=coverage, read=read)
    return Recognised(begin=begin)


@dataclass(slots=True)
class _Sample:
    """The first records of a file, as many as are asked for and `_SAMPLED_BYTES` have room for."""

    rest: Iterator[Record]
    records: list[Record] = field(default_factory=list[Record])
    num_bytes: int = 0
    """Of all records but the last one."""

    def more(self, most: int) -> Iterator[Record]:
        """Yield further records."""
        for _ in range(most):
            self.num_bytes += sum(_num_bytes(record.value) for record in self.records[-1:])
            if self.num_bytes >= _SAMPLED_BYTES or (record := next(self.rest, None)) is None:
                return
            self.records.append(record)
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
    rollouts = (each for _, read in readings(row, sample) for each in rollouts_in(read))
    messages = (message for rollout in rollouts for message in rollout.messages)
    return len({(m.thought, m.text, *map(str, m.tool_calls)) for m in messages if m.is_answer})


def readings(
    row: LogFormat, records: Iterable[Record]
) -> Iterator[tuple[Record, list[LoggedRollout | Omission]]]:
    """Yield records of which a format makes rollouts, put together as it does, and these."""
    sound = (record for record in records if not isinstance(record.value, RowError))
    with suppress(*_ABOUT_RECORDS):
        for record in row.gather(sound, _SAMPLED_BYTES) if row.gather else sound:
            read: list[LoggedRollout | Omission] = []
            with suppress(*_ABOUT_RECORDS):
                read = list(row.read(record))
            if rollouts_in(read):
                yield record, read


def rollouts_in(read: Iterable[LoggedRollout | Omission]) -> list[LoggedRollout]:
    """Return the rollouts among what a format made of a record."""
    return [item for item in read if isinstance(item, LoggedRollout)]


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
