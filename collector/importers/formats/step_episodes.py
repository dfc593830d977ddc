"""Put the rows of a log of steps together: each episode with its rows in order."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from graphcredit.collector.importers.formats.step_columns import is_of_store
from graphcredit.collector.importers.formats.step_shapes import ENDS, Row, fields_by_part, shape_of
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.groups import RecordGroups, TooLargeError
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_text,
    as_verdict,
    first_of,
)

_KEYS = (("run_id",), ("env_index", "env_idx", "worker_id", "worker", "rank"))
"""Fields of which one differs between the rows of two episodes, beside task and trajectory."""

PART = "part_of_trajectory"
"""Number of an episode, from 1, where rows of one name are several."""

_NO_INDEX = -(1 << 60)
_IS_END, _HAS_ACTION = 2, 1
"""Parts of the mark of a row, whose rest is the number of its step."""


class _HeldRows(dict[Any, list[tuple[Record, int]]]):
    """The rows of one record; `RecordGroups` has those of a file."""

    refused: Sequence[Record] = ()

    def add(self, name: Hashable, record: Record, mark: int) -> None:
        self.setdefault(name, []).append((record, mark))

    def marks(self, name: Hashable) -> list[int]:
        return [mark for _, mark in self[name]]

    def at(self, name: Hashable, numbers: Iterable[int]) -> list[Record]:
        return [self[name][n][0] for n in numbers]


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield a record for each episode: an object whose `steps` are its rows in order."""
    rows = RecordGroups(limit)
    is_damaged = False
    for record in records:
        is_damaged |= isinstance(record.value, RowError)
        try:
            shape = (
                None if isinstance(record.value, RowError) else shape_of(record.value, among=True)
            )
        except RecordError as error:
            yield _refused(record, error)
            continue
        if shape is None:
            yield record
        elif shape.is_row:
            row = shape.rows[0]
            _add(rows, record if row is record.value else replace(record, value=row), shape.said)
        else:
            held = _HeldRows()
            before = f"{record.place}, " if record.place else ""
            for n, row in enumerate(shape.rows):
                _add(held, replace(record, place=f"{before}step {n}", value=row), shape.said)
            yield from _episodes(held, shape.said)
    yield from _episodes(rows, {}, is_damaged=is_damaged)


def _add(rows: RecordGroups | _HeldRows, record: Record, said: Row) -> None:
    row: Row = record.value
    whole = {**said, **row} if said else row
    known = fields_by_part(whole)
    fields = (known["trajectory_id"], known["task_id"], *_KEYS)
    key = tuple([as_text(first_of(whole, each)) for each in fields])
    if is_of_store(whole):  # several workers may have logged a trajectory
        key = (*key[:-1], None)
    # Without a number of the step, `iteration` may be it.
    has_order = first_of(whole, known["step_index"]) is not None
    key += (as_text(whole.get("iteration")) if has_order else None,)
    own = fields_by_part(row) if said else known
    index = first_of(row, own["step_index"])
    number = index if type(index) is int and abs(index) < -_NO_INDEX else _NO_INDEX
    flags = _IS_END * is_end(row) + _HAS_ACTION * (first_of(row, own["action"]) is not None)
    rows.add(key, record, number * 4 + flags)


def _episodes(
    rows: RecordGroups | _HeldRows, said: Row, *, is_damaged: bool = False
) -> Iterator[Record]:
    """Yield the episodes; where rows of the file are damaged, those without all their steps not."""
    yield from rows.refused
    counts = Counter(key[0] for key in rows)
    for key in rows:
        marks = rows.marks(key)

        def place_of(number: int, key: Hashable = key) -> str:
            return rows.at(key, [number])[0].place

        try:
            pieces = _pieces(marks, place_of)
            for piece in pieces if is_damaged else ():
                _refuse_gap([marks[n] >> 2 for n in piece], lambda n, p=piece: place_of(p[n]))
        except RecordError as error:
            yield _refused(rows.at(key, [0])[0], error)
            continue
        for number, piece in enumerate(pieces, start=1):
            try:
                steps = rows.at(key, piece)
            except TooLargeError as error:
                yield error.record()
                continue
            value = {**said, "steps": [record.value for record in steps]}
            own = {**said, **steps[0].value}.get("trajectory_id")
            is_own = isinstance(own, str) and (
                counts[key[0]] == len(pieces) == 1 or is_of_store(steps[0].value)
            )
            value["trajectory_id"] = own if is_own else None
            value[PART] = number if len(pieces) > 1 else None
            places = tuple(record.place for record in steps)
            place = " to ".join(dict.fromkeys((places[0], places[-1])))
            yield replace(steps[0], place=place, value=value, places=places)


def _refused(record: Record, error: RecordError) -> Record:
    return replace(record, value=RowError(str(error)))


def _pieces(marks: Sequence[int], place_of: Callable[[int], str]) -> list[list[int]]:
    """Return the episodes of some rows: a new one begins where the steps begin again, or ended."""
    indices = [mark >> 2 for mark in marks]
    if _NO_INDEX in indices:
        return _cut_at_ends(marks, range(len(marks)))
    [(index, number)] = Counter(indices).most_common(1)
    if number == 1:
        return _cut_at_ends(marks, sorted(range(len(marks)), key=indices.__getitem__))
    starts = [at for at in range(1, len(marks)) if indices[at] <= indices[at - 1]]
    begin_alike = len({indices[at] for at in (0, *starts)}) == 1
    if len(starts) + 1 != number or not begin_alike:
        places = ", ".join(place_of(at) for at, i in enumerate(indices) if i == index)
        raise RecordError(
            f"the rows of an episode must have different steps: {number} have {index} ({places}), "
            "and they are mixed. --columns trajectory_id=FIELD names what tells episodes apart"
        )
    pairs = zip([0, *starts], [*starts, len(marks)], strict=True)
    return [piece for pair in pairs for piece in _cut_at_ends(marks, range(*pair))]


def _refuse_gap(indices: Sequence[int], place_of: Callable[[int], str]) -> None:
    """Raise RecordError if steps of an episode are missing."""
    if _NO_INDEX not in indices:
        for at, (before, index) in enumerate(pairwise(indices), start=1):
            if index != before + 1:
                raise RecordError(
                    f"an episode must have all its steps: rows of the file are damaged, and "
                    f"{place_of(at)} has step {index} after {before}"
                )


def _cut_at_ends(marks: Sequence[int], rows: Iterable[int]) -> list[list[int]]:
    pieces: list[list[int]] = [[]]
    has_ended = False
    for at in rows:
        is_last_seen = not marks[at] & _HAS_ACTION  # what the last action led to
        if has_ended and not is_last_seen:
            pieces.append([])
        pieces[-1].append(at)
        has_ended = bool(marks[at] & _IS_END) or (has_ended and is_last_seen)
    return pieces


def is_end(row: Row) -> bool:
    """Return whether a row says that its step was the last one."""
    known = fields_by_part(row)
    return any(as_verdict(row.get(field)) for name in ENDS for field in known[name])
