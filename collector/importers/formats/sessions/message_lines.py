"""Files with a message a line: one conversation, or several that the lines name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.sessions.lines import (
    Line,
    by_session,
    lines_of,
    rollouts_of,
)
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.roles import content_of, opened, role_of
from graphcredit.collector.importers.messages.rollout import Rollouts
from graphcredit.collector.importers.messages.shapes import is_call, is_result, is_thought
from graphcredit.collector.importers.messages.values import as_text, fields_of, first_of, without

_SESSIONS = (
    *("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId"),
    *("trajectory_id", "episode_id", "rollout_id", "chat_id", "dialog_id", "dialogue_id"),
)

_OF_MESSAGES = frozenset(
    {"role", "type", "content", "name", "text", "id", "parentId", "timestamp", "model"}
)

_NO_MESSAGE = "line that is no message"


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a message of a conversation."""
    return _is_message(fields_of(value))


def _is_message(line: Line) -> bool:
    raw = opened(_unwrapped(line))
    has_content = content_of(raw) is not None or raw.get("tool_calls") is not None
    return role_of(raw) is not None and has_content


def _unwrapped(line: Line) -> Line:
    """Return a message whose content stands in an object in it, as of Cursor, as one object."""
    inner = line.get("message")
    if isinstance(line.get("role"), str) and isinstance(inner, Mapping):
        return {"role": line["role"], **inner}
    return line


def gather(records: Iterator[Record]) -> Iterator[Record]:
    """Put together the lines of each conversation."""

    def session_of(line: Line) -> str | None:
        begins = line.get("id") if line.get("type") == "session" else None
        return as_text(first_of({**line, "begins": begins}, (*_SESSIONS, "begins")))

    return by_session(records, lambda _: False, session_of, _why_left_out)


def _why_left_out(lines: Sequence[Line]) -> Iterator[str | None]:
    for line in lines:
        is_said = is_thought(line) or is_call(line) or is_result(line)
        yield None if is_said or _is_message(line) else _NO_MESSAGE


def read(record: Record) -> Rollouts:
    """Yield the rollout of a conversation."""
    lines = lines_of(record)
    session = as_text(fields_of(record.value).get("session")) or None
    row = {**_said_once(lines), "rollout_id": session, **without(fields_of(record.value), ())}
    yield from rollouts_of(replace(record, value=row), list(map(_unwrapped, lines)), None)


def _said_once(lines: Sequence[Line]) -> dict[str, Any]:
    """Return the fields that all lines that have them agree on, such as the task and a reward."""
    values: dict[str, Any] = {}
    differing: set[str] = set()
    for line in lines:
        for name, value in line.items():
            is_simple = isinstance(value, str | int | float) and name not in _OF_MESSAGES
            if is_simple and values.setdefault(name, value) != value:
                differing.add(name)
    return {name: value for name, value in values.items() if name not in differing}
