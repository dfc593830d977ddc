"""Lines of a file that are the events of sessions, put together: one record a session."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.messages.rollout import USER, Message, prompt_name
from graphcredit.collector.importers.messages.values import as_mapping, fields_of

Line = Mapping[str, Any]

UNSEEN = "event that the model did not see"
OF_SUBAGENT = "session of a sub-agent"

ASIDE = ("left_out", "session")


def by_session(
    records: Iterator[Record],
    session_of: Callable[[Line], str | None],
    why_left_out: Callable[[Sequence[Line]], Iterable[str | None]],
) -> Iterator[Record]:
    """Yield a record `{"lines": [...], "left_out": {reason: [...]}}` for each session.

    Args:
        records: The lines of a file, or the items of its list; those that cannot be read are
            yielded as they are.
        session_of: Returns the session of a line; it is given each line once, in order. None is
            the session of the line before, or the first.
        why_left_out: Returns why each line of a session is no part of it; None if it is one.
    """
    sessions: dict[str, list[Record]] = {}
    unnamed: list[Record] = []
    last: str | None = None
    for record in records:
        if isinstance(record.value, RowError):
            yield record
            continue
        last = session_of(fields_of(record.value)) or last
        (unnamed if last is None else sessions.setdefault(last, [])).append(record)
    for number, (name, own) in enumerate(sessions.items()):
        entries = own if number else [*unnamed, *own]
        lines = [fields_of(entry.value) for entry in entries]
        kept: list[Line] = []
        left_out: dict[str, list[Line]] = {}
        for line, reason in zip(lines, why_left_out(lines), strict=True):
            (kept if reason is None else left_out.setdefault(reason, [])).append(line)
        yield replace(
            entries[-1],
            place=f"session {name}" if len(sessions) > 1 else "",
            value={"session": name, "lines": kept, "left_out": left_out},
        )


def lines_of(record: Record) -> list[Line]:
    """Return the lines of a session."""
    return [as_mapping(line, "a line") for line in fields_of(record.value).get("lines") or ()]


def left_out_of(record: Record) -> dict[str, int]:
    """Return the number of lines of a session that are no part of it, by their reasons."""
    reasons = fields_of(fields_of(record.value).get("left_out"))
    return {reason: len(lines) for reason, lines in reasons.items()}


def opening_name(messages: Sequence[Message]) -> str | None:
    """Return the name of the task: what users say before the first answer.

    System messages differ by folder and day; they do not make another task.
    """
    first = next((n for n, message in enumerate(messages) if message.is_answer), 0)
    said = tuple(message for message in messages[:first] if message.role == USER)
    return prompt_name(said) if said else None
