"""The rollouts that the rows of a log of calls may be of."""

from collections.abc import Mapping
from typing import Any

from graphcredit.collector.importers.formats.calls.rows import (
    exchange_of,
    response_before,
    response_of,
    session_of,
)
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
