"""Put the rows of a log of steps together: each episode with its rows in order."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from graphcredit.collector.importers.formats.step_shapes import (
    ENDS,
    Row,
    fields_for,
    part,
    shape_of,
)
from graphcredit.collector.importers.logs.files import Record, RowError
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

_Placed = tuple[str, Row]
"""A row, and where it is in the file."""


@dataclass(kw_only=True, slots=True)
class _Draft:
    """Rows that have the same names."""

    record: Record
    """That of the first one."""
    said: Row
    """What is said of the episode beside its rows."""
    rows: list[_Placed] = field(default_factory=list[_Placed])


_Drafts = dict[tuple[str | None, ...], _Draft]


def gather(records: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each episode: an object whose `steps` are its rows in order."""
    drafts: _Drafts = {}
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
            _add(drafts, record, shape.said, [(record.place, shape.rows[0])])
        else:
            alone: _Drafts = {}
            before = f"{record.place}, " if record.place else ""
            rows = [(f"{before}step {n}", row) for n, row in enumerate(shape.rows)]
            _add(alone, record, shape.said, rows)
            yield from _finished(alone)
    yield from _finished(drafts, is_damaged=is_damaged)


def _add(drafts: _Drafts, record: Record, said: Row, rows: Sequence[_Placed]) -> None:
    for placed in rows:
        whole = {**said, **placed[1]} if said else placed[1]
        fields = [fields_for(whole, name) for name in ("task_id", "trajectory_id")]
        key = tuple([as_text(first_of(whole, each)) for each in (*fields, *_KEYS)])
        has_order = part(whole, "step_index") is not None  # else an iteration may be the step
        key += (as_text(whole.get("iteration")) if has_order else None,)
        drafts.setdefault(key, _Draft(record=record, said=said)).rows.append(placed)


def _finished(drafts: _Drafts, *, is_damaged: bool = False) -> Iterator[Record]:
    """Yield the episodes; where rows of the file are damaged, those without all their steps not."""
    owns = [{**each.said, **each.rows[0][1]}.get("trajectory_id") for each in drafts.values()]
    for draft, own in zip(drafts.values(), owns, strict=True):
        is_own = isinstance(own, str) and owns.count(own) == 1
        try:
            pieces = _pieces(draft.rows)
            if is_damaged:
                for piece in pieces:
                    _refuse_gap(piece)
        except RecordError as error:
            yield _refused(draft.record, error)
            continue
        for number, piece in enumerate(pieces, start=1):
            places = tuple(place for place, _ in piece)
            value = {**draft.said, "steps": [row for _, row in piece]}
            value["trajectory_id"] = own if is_own and len(pieces) == 1 else None
            value[PART] = number if len(pieces) > 1 else None
            yield Record(
                path=draft.record.path,
                place=" to ".join(dict.fromkeys((places[0], places[-1]))),
                value=value,
                share=draft.record.share,
                places=places,
            )


def _refused(record: Record, error: RecordError) -> Record:
    return Record(
        path=record.path, place=record.place, value=RowError(str(error)), share=record.share
    )


def _pieces(rows: list[_Placed]) -> list[list[_Placed]]:
    """Return the episodes of some rows: a new one begins where the steps begin again, or ended.

    Raises:
        RecordError: Rows of several episodes are mixed.
    """
    indices = [part(row, "step_index") for _, row in rows]
    if not all(type(index) is int for index in indices):
        return _cut_at_ends(rows)
    [(index, number)] = Counter(indices).most_common(1)
    if number == 1:
        order = sorted(range(len(rows)), key=indices.__getitem__)
        return _cut_at_ends([rows[at] for at in order])
    starts = [at for at in range(1, len(rows)) if indices[at] <= indices[at - 1]]
    begin_alike = len({indices[at] for at in (0, *starts)}) == 1
    if len(starts) + 1 != number or not begin_alike:
        places = ", ".join(place for (place, _), i in zip(rows, indices, strict=True) if i == index)
        raise RecordError(
            f"the rows of an episode must have different steps: {number} have {index} ({places}), "
            "and they are mixed. --columns trajectory_id=FIELD names what tells episodes apart"
        )
    pairs = zip([0, *starts], [*starts, len(rows)], strict=True)
    return [piece for start, stop in pairs for piece in _cut_at_ends(rows[start:stop])]


def _refuse_gap(rows: list[_Placed]) -> None:
    """Raise RecordError if steps of an episode are missing."""
    indices = [part(row, "step_index") for _, row in rows]
    if all(type(index) is int for index in indices):
        pairs = zip(indices, indices[1:], rows[1:], strict=False)
        for before, index, (place, _) in pairs:
            if index != before + 1:
                raise RecordError(
                    f"an episode must have all its steps: rows of the file are damaged, and "
                    f"{place} has step {index} after {before}"
                )


def _cut_at_ends(rows: list[_Placed]) -> list[list[_Placed]]:
    pieces: list[list[_Placed]] = [[]]
    has_ended = False
    for placed in rows:
        is_last_seen = part(placed[1], "action") is None  # what the last action led to
        if has_ended and not is_last_seen:
            pieces.append([])
        pieces[-1].append(placed)
        has_ended = is_end(placed[1]) or (has_ended and is_last_seen)
    return pieces


def is_end(row: Row) -> bool:
    """Return whether a row says that its step was the last one."""
    return any(as_verdict(row.get(field)) for name in ENDS for field in fields_for(row, name))
