"""Rows of a log of calls in the order in which the calls were made."""

from datetime import UTC, datetime
from typing import Any

from graphcredit.collector.importers.formats.calls.rows import (
    exchange_of,
    response_before,
    response_of,
    time_of,
)
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.exchanges import chat_in
from graphcredit.collector.importers.messages.values import fields_of


def in_order(records: list[Record]) -> list[Record]:
    """Return rows by their time, if all have one of a kind; else as they are, the last one last.

    Without times, the row with the most messages is the last.
    """
    times = [_instant(time_of(fields_of(record.value))) for record in records]
    for kind in (int | float, str):
        if all(isinstance(time, kind) for time in times):
            order = sorted(range(len(times)), key=times.__getitem__)
            return [records[index] for index in order]
    lengths = [len(chat_in(exchange_of(fields_of(r.value))[0], "user")) for r in records]
    is_reversed = lengths[0] > lengths[-1] and lengths == sorted(lengths, reverse=True)
    return records[::-1] if is_reversed else records


def _instant(time: Any) -> Any:
    """Return the seconds of a time with its zone, UTC without one; others as they are."""
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else None
    except ValueError:
        return time
    if moment is None:
        return time
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def path_of(records: list[Record]) -> list[Record]:
    """Return the rows on the longest way along the responses before; all if they name none."""
    by_id = {response_of(fields_of(record.value)): at for at, record in enumerate(records)}
    before = [by_id.get(response_before(fields_of(record.value)) or "") for record in records]
    lengths: list[int | None] = [None] * len(records)
    for start in range(len(records)):
        way: list[int] = []
        at: int | None = start
        while at is not None and lengths[at] is None:
            lengths[at] = 0  # where responses name one another in a circle, it ends here
            way.append(at)
            at = before[at]
        behind = 0 if at is None else lengths[at] or 0
        for length, each in enumerate(reversed(way), start=behind + 1):
            lengths[each] = length
    longest = max(lengths[at] or 0 for at in range(len(records)))
    if longest < 2:
        return records
    at, path = max(n for n, length in enumerate(lengths) if length == longest), []
    for _ in range(longest):
        path.append(records[at])
        at = before[at] or 0
    return path[::-1]
