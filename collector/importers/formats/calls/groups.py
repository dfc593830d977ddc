"""Which rows of a log of calls may be one rollout, and the order in which its calls were made."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from graphcredit.collector.importers.formats.calls.rows import (
    exchange_of,
    response_before,
    response_of,
    session_of,
    time_of,
)
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.exchanges import chat_in
from graphcredit.collector.importers.messages.values import canonical, fields_of, first_of


class Groups:
    """Names the rollout that a row may be of.

    Its session tells it, or the response before, or the earlier row whose messages it goes on from.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}
        """Ids of responses to names of groups."""
        self._ends: dict[int, list[tuple[str, str]]] = {}
        """Hash of a whole conversation to the calls of its last message and the name of its group:
        alike rollouts have one hash."""
        self._names: set[str] = set()
        self._joined: dict[str, str] = {}

    def add(self, row: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the name of a row's group, and whether an earlier row has it."""
        name = session_of(row) or self._by_response(row) or self._by_messages(row)
        is_known = name in self._names
        self._names.add(name)
        return name, is_known

    def _by_messages(self, row: Mapping[str, Any]) -> str:
        """Return the name of the longest conversation that the row's messages begin with.

        Of several that are equal but for the calls of their last message, the one with the same
        calls goes on, else the newest. No other row goes on with it then.
        """
        *beginnings, (whole, calls) = _beginnings(row) or [(0, "")]
        name = f"row {len(self._names)}"
        for beginning, called in reversed(beginnings):
            if known := self._ends.get(beginning):
                before = next((end for end in known if end[0] == called), known[-1])
                known.remove(before)
                name = before[1]
                break
        self._ends.setdefault(whole, []).append((calls, name))
        if (response := response_of(row)) is not None:
            self._by_id[response] = name
        return name

    def _by_response(self, row: Mapping[str, Any]) -> str | None:
        """Return the name of a group whose responses name one another, in any order."""
        before, own = response_before(row), response_of(row)
        known = [self.final(self._by_id[id_]) for id_ in (before, own) if id_ in self._by_id]
        if before is None and not known:
            return None
        name = known[0] if known else f"response {before}"
        self._joined |= {other: name for other in known if other != name}
        self._by_id |= {id_: name for id_ in (before, own) if id_ is not None}
        return name

    def final(self, name: str) -> str:
        """Return the name of a group after others were found to be it."""
        while name in self._joined:
            name = self._joined[name]
        return name


def _beginnings(row: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return a hash of each beginning of a row's messages, and the calls of its last one.

    The calls are apart: some programs leave them out of what they send.
    """
    given, said = exchange_of(row)
    messages = [*chat_in(given, "user"), *chat_in(said, "assistant")]
    beginnings: list[tuple[int, str]] = []
    before = 0
    for message in map(fields_of, messages):
        role = first_of(message, ("role", "from", "type"))
        content = first_of(message, ("content", "value", "parts", "text", "output", "arguments"))
        before = hash((before, canonical([role, content])))
        beginnings.append((before, canonical(first_of(message, ("tool_calls", "function_call")))))
    return beginnings


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
