"""Lines of a file that are the events of sessions, put together: one record a session."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphcredit.collector.importers.formats import chat_rows
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.groups import RecordGroups
from graphcredit.collector.importers.messages.rollout import (
    USER,
    LoggedRollout,
    Message,
    Rollouts,
    prompt_name,
)
from graphcredit.collector.importers.messages.values import as_mapping, fields_of, items_of, without

Line = Mapping[str, Any]
Reasons = Callable[[Sequence[Line]], Iterable[str | None]]
"""Returns why each line of a session is no part of it; None if it is one."""

UNSEEN = "event that the model did not see"
TOOK_BACK = "message that the user took back"

_OURS = ("left_out", "session", "lines", "messages")


def aside(*fields: str, of: str = "") -> tuple[str, ...]:
    """Return what a reader leaves out on purpose: fields of what it reads, and what is apart."""
    return ("left_out", "session", *(of + field for field in fields))


def by_session(
    records: Iterator[Record],
    limit: int,
    is_line: Callable[[object], bool],
    session_of: Callable[[Line], str | None],
    why_left_out: Reasons,
) -> Iterator[Record]:
    """Yield a record `{"lines": [...], "left_out": {reason: [...]}}` for each session.

    Args:
        records: The lines of a file, or the items of its list, or rows that have lines in a list.
            Those that cannot be read are yielded as they are.
        limit: Most bytes of the lines of a session.
        is_line: Whether a value is a line that tells the format.
        session_of: Returns the session of a line; it is given each line once, in order. None is
            the session of the line before, or the first.
        why_left_out: See `Reasons`.
    """
    groups, last = RecordGroups(limit), None
    for record in records:
        field = field_of_lines(record.value, is_line)
        if isinstance(record.value, RowError):
            yield record
        elif field is not None:
            lines = [fields_of(line) for line in record.value[field]]
            row = without(record.value, (field,))
            yield replace(record, value={**row, **sorted_out(lines, why_left_out(lines))})
        else:
            last = session_of(fields_of(record.value)) or last
            groups.add(last, record)
    together = {name: (name,) for name in groups if name is not None}
    are_several = len(together) > 1
    if None in groups:  # lines before the first name of a session
        first = next(iter(together), "")
        together = {first: (None, *together.pop(first, ())), **together}
    places = {name: f"session {name}" if are_several else "" for name in together}

    def session(name: str, entries: list[Record]) -> Iterator[Record]:
        lines = [fields_of(entry.value) for entry in entries]
        value = {"session": name, **sorted_out(lines, why_left_out(lines))}
        yield replace(entries[-1], place=places[name], value=value)

    yield from groups.made(session, together, places)


def sorted_out(
    items: Sequence[Line], reasons: Iterable[str | None], name: str = "lines"
) -> dict[str, Any]:
    """Return fields of a record: the items to read, and the others by the reason to leave each."""
    kept: list[Line] = []
    left_out: dict[str, list[Line]] = {}
    for item, reason in zip(items, reasons, strict=True):
        (kept if reason is None else left_out.setdefault(reason, [])).append(item)
    return {name: kept, "left_out": left_out}


def field_of_lines(row: object, is_line: Callable[[object], bool]) -> str | None:
    """Return the field of a row that is a list of lines; None if there is none."""
    for name, value in fields_of(row).items():
        if any(map(is_line, items_of(value)[:_LOOKED_AT])):
            return name
    return None


_LOOKED_AT = 20


def lines_of(record: Record) -> list[Line]:
    """Return the lines of a session."""
    return [as_mapping(line, "a line") for line in fields_of(record.value).get("lines") or ()]


def left_out_of(record: Record) -> dict[str, int]:
    """Return the number of lines of a session that are no part of it, by their reasons."""
    reasons = fields_of(fields_of(record.value).get("left_out"))
    return {reason: len(lines) for reason, lines in reasons.items()}


def rollouts_of(
    record: Record, messages: Sequence[Line], session: str | None, info: Line | None = None
) -> Rollouts:
    """Yield the rollout of a session, with what a row around it says.

    Args:
        record: See `by_session`.
        messages: What its lines say, as chat messages or items of the Responses API.
        session: Its id, if it has one.
        info: What else the log says of it.
    """
    row = without(fields_of(record.value), _OURS)
    # A list of messages begins with one that has a role.
    begin = [] if messages and "role" in messages[0] else [{"role": "system", "content": ""}]
    for item in chat_rows.read(replace(record, value={**row, "messages": [*begin, *messages]})):
        if isinstance(item, LoggedRollout):
            item = replace(
                item,
                trajectory_id=session,
                group=item.group or (opening_name(item.messages) if item.task is None else None),
                info={**item.info, **(info or {})},
                left_out={**item.left_out, **left_out_of(record)},
            )
        yield item


def opening_name(messages: Sequence[Message]) -> str | None:
    """Return the name of the task: what users say before the first answer.

    System messages differ by folder and day; they do not make another task.
    """
    first = next((n for n, message in enumerate(messages) if message.is_answer), 0)
    said = tuple(message for message in messages[:first] if message.role == USER)
    return prompt_name(said) if said else None
