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
from graphcredit.collector.importers.messages.values import (
    as_text,
    fields_of,
    first_of,
    is_unique,
    snake_cased,
    without,
)

_SESSIONS = (
    *("session_id", "conversation_id", "thread_id", "trajectory_id", "episode_id", "rollout_id"),
    *("chat_id", "dialog_id", "dialogue_id"),
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
    """Return a message whose content, or a call whose arguments stand in an object in it."""
    inner = line.get("message")
    if isinstance(line.get("role"), str) and isinstance(inner, Mapping):  # Cursor
        return {"role": line["role"], **inner}
    if line.get("type") == "tool_result" and not is_result(line) and "status" in line:
        return {**line, "output": line["status"]}  # Gemini's stream leaves out what it printed
    calls = fields_of(line.get("tool_call"))
    if line.get("type") == "tool_call" and len(calls) == 1:  # Cursor's stream
        ((name, call),) = calls.items()
        called = {"name": name.removesuffix("ToolCall"), "arguments": fields_of(call).get("args")}
        return {**line, "tool_call": None, **called, "result": fields_of(call).get("result")}
    return line


def _joined(lines: Sequence[Line]) -> list[Line]:
    """Return messages without the pieces that a stream cuts them into."""
    joined: list[Line] = []
    for line in map(_unwrapped, lines):
        last = joined[-1] if joined else {}
        is_piece = line.get("delta") is True is last.get("delta")
        if is_piece and line.get("role") == last.get("role"):
            joined[-1] = {**last, "content": f"{last.get('content')}{line.get('content')}"}
        elif line.get("type") == "tool_call" and line.get("result") is not None:
            result = {"type": "tool_result", "call_id": line.get("call_id")}
            joined += [without(line, ("result",)), {**result, "output": line["result"]}]
        else:
            joined.append(line)
    return joined


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Put together the lines of each conversation."""

    def session_of(line: Line) -> str | None:
        begins = line.get("id") if line.get("type") == "session" else None
        return as_text(first_of({**snake_cased(line), "begins": begins}, (*_SESSIONS, "begins")))

    return by_session(records, limit, lambda _: False, session_of, _why_left_out)


def _why_left_out(lines: Sequence[Line]) -> Iterator[str | None]:
    for line in lines:
        raw = _unwrapped(line)
        is_said = is_thought(raw) or is_call(raw) or is_result(raw)
        is_begun = line.get("type") == "tool_call" and line.get("subtype") == "started"
        yield None if (is_said and not is_begun) or _is_message(line) else _NO_MESSAGE


def read(record: Record) -> Rollouts:
    """Yield the rollout of a conversation."""
    lines = lines_of(record)
    session = as_text(fields_of(record.value).get("session")) or None
    row = {**_said_once(lines), "rollout_id": session, **without(fields_of(record.value), ())}
    own = session if session and is_unique(session) else None
    yield from rollouts_of(replace(record, value=row), _joined(lines), own)


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
