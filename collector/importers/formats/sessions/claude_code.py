"""Claude Code: sessions of `~/.claude/projects`, and the events of its `stream-json` output.

A line is a part of an answer, a result, or an event. `parentUuid` makes a tree of the lines, whose
branches are what the user took back. Parallel calls make branches too, which are none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.sessions.lines import (
    TOOK_BACK,
    UNSEEN,
    Line,
    aside,
    by_session,
    field_of_lines,
    left_out_of,
    lines_of,
    rollouts_of,
)
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import OF_SUBAGENT, LoggedRollout, Rollouts
from graphcredit.collector.importers.messages.values import (
    as_text,
    field_at,
    fields_of,
    first_of,
    is_limit,
    json_text,
    without,
)

ASIDE = aside(
    *("toolUseResult", "tool_use_result", "result", "structured_output", "subtype"),
    *("permission_denials", "modelUsage", "usage", "message.usage"),
    *("message.content.*.signature", "cwd", "gitBranch", "slug", "userType", "entrypoint"),
    *("permissionMode", "thinkingMetadata", "todos", "origin", "promptSource", "effort"),
    *("sourceToolAssistantUUID", "sourceToolUseID", "attributionSkill", "attributionPlugin"),
    *("attributionMcpServer", "attributionMcpTool", "attributionAgent", "agentName", "error"),
    *("model", "systemPayload", "usageMetadata", "toolCallResult", "mcpMeta", "toolDenialKind"),
    *(f"attachment.{each}" for each in ("hookName", "hookEvent", "commandMode", "command")),
    *(f"attachment.{each}" for each in ("filename", "displayPath", "stdout", "stderr")),
    of="lines.*.",
)
"""Copies of results and answers, and settings."""

_NAMES = {"uuid", "parentUuid", "parent_tool_use_id", "tools"}
"""Fields of which a line has one; other agents have sessions, too."""

_EVENTS = frozenset(
    {"summary", "system", "progress", "attachment", "queue-operation", "file-history-snapshot"}
    | {"custom-title", "ai-title", "agent-name", "agent-color", "last-prompt", "pr-link", "mode"}
    | {"permission-mode", "stream_event", "control_request", "control_response", "rate_limit_event"}
    | {"tool_progress", "auth_status", "user", "assistant", "tool_result", "tag", "keep_alive"}
)
"""Types of lines that the model does not see, unless they have a message."""

_REFUSED = "<tool_use_error>"
_AGAIN = "copy of an earlier line"
_NOT_SAMPLED = "message that no model wrote"
_SIDE = "message of a side-chain (a sub-agent)"


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a line of a session, or has lines in a list."""
    return _is_line(value) or field_of_lines(value, _is_line) is not None


def _is_line(value: object) -> bool:
    line = fields_of(value)
    is_named = isinstance(first_of(line, ("sessionId", "session_id")), str)
    if not is_named or not _NAMES & line.keys():
        return False
    if line.get("type") in ("user", "assistant"):
        return isinstance(field_at(line, "message.role"), str)
    return line.get("type") == "system" and isinstance(line.get("subtype"), str)


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Put together the lines of each session; one that was resumed may have two ids."""
    known: dict[str, str] = {}

    def session_of(line: Mapping[str, Any]) -> str | None:
        name = known.get(_parent(line) or "") or _session(line)
        if name is not None and isinstance(line.get("uuid"), str):
            known[line["uuid"]] = name
        return name

    return by_session(records, limit, _is_line, session_of, _why_left_out)


def _parent(line: Mapping[str, Any]) -> str | None:
    return as_text(first_of(line, ("parentUuid", "logicalParentUuid")))


def _session(line: Mapping[str, Any]) -> str | None:
    return as_text(first_of(line, ("sessionId", "session_id")))


def read(record: Record) -> Rollouts:
    """Yield the rollout of a session; side-chains are left out."""
    lines = lines_of(record)
    if not lines and _SIDE in left_out_of(record):
        yield OF_SUBAGENT
        return
    messages = [raw for line in lines if (raw := _message_of(line)) is not None]
    session = next(filter(None, map(_session, reversed(lines))), None)
    result = next((line for line in reversed(lines) if line.get("type") == "result"), {})
    first = next((line for line in lines if "cwd" in line), {})
    info = {
        **{name: first[name] for name in ("cwd", "gitBranch", "version") if name in first},
        **without(result, ("type", "result", "uuid", "session_id")),
    }
    for item in rollouts_of(record, messages, session, info):
        if isinstance(item, LoggedRollout):
            is_truncated = item.truncated or is_limit(result.get("subtype"))
            told = tuple(
                replace(message, is_refused=True) if message.text.startswith(_REFUSED) else message
                for message in item.messages
            )
            item = replace(item, truncated=is_truncated, messages=told)
        yield item


def _why_left_out(lines: Sequence[Line]) -> Iterator[str | None]:
    """Yield why each line of a session is no part of its conversation; None if it is."""
    known: set[str] = set()
    main: list[Line] = []
    reasons: list[str | None] = []
    for line in lines:
        uuid = line.get("uuid")
        reasons.append(_AGAIN if uuid in known else _reason_of(line))
        if isinstance(uuid, str):
            known.add(uuid)
        if reasons[-1] in (None, UNSEEN):  # the way to the last message goes over events, too
            main.append(line)
    is_taken_back = _taken_back(main)
    for line, reason in zip(lines, reasons, strict=True):
        yield reason or (TOOK_BACK if is_taken_back(line) else None)


def _reason_of(line: Line) -> str | None:
    if line.get("isSidechain") is True or line.get("parent_tool_use_id") is not None:
        return _SIDE
    if line.get("isApiErrorMessage") is True or field_at(line, "message.model") == "<synthetic>":
        return _NOT_SAMPLED
    return UNSEEN if line.get("type") in _EVENTS and _message_of(line) is None else None


def _taken_back(lines: Sequence[Line]) -> Callable[[Line], bool]:
    """Return the test for lines that are on a branch that the user left."""
    if not any(map(_parent, lines)):  # the lines are in order, as in `stream-json`
        return lambda line: False
    way = _way_to_last(lines)
    on_way = [line for line in lines if line.get("uuid") in way]
    answers = {field_at(line, "message.id") for line in on_way} - {None}
    parts = [line for line in lines if field_at(line, "message.id") in answers]
    calls = {part.get("id") for line in parts for part in _parts(line)} - {None}

    def is_taken_back(line: Line) -> bool:
        is_result = any(part.get("tool_use_id") in calls for part in _parts(line))
        is_part = is_result or field_at(line, "message.id") in answers
        return "uuid" in line and line["uuid"] not in way and not is_part

    return is_taken_back


def _way_to_last(lines: Sequence[Line]) -> dict[str, None]:
    """Return the ids of the lines on the way to the last message.

    Where a line's parent is not there, as after a compaction, it follows the line before.
    """
    named = [line for line in lines if isinstance(line.get("uuid"), str)]
    places = {line["uuid"]: number for number, line in enumerate(named)}
    numbers = reversed(range(len(named)))
    at = next((n for n in numbers if named[n].get("type") in ("user", "assistant")), None)
    way: dict[str, None] = {}
    while at is not None and named[at]["uuid"] not in way:
        line, parent = named[at], _parent(named[at])
        way[line["uuid"]] = None
        is_start = line.get("type") == "user" and line.get("isCompactSummary") is not True
        before = at - 1 if at else None
        at = places.get(parent, before) if parent else None if is_start else before
    return way


def _parts(line: Line) -> list[Mapping[str, Any]]:
    content = field_at(line, "message.content")
    return list(map(fields_of, content)) if isinstance(content, list) else []


def _message_of(line: Line) -> dict[str, Any] | None:
    """Return the message of a line; None if the model did not see it."""
    message, attached = fields_of(line.get("message")), fields_of(line.get("attachment"))
    if line.get("type") == "attachment":
        content = first_of(attached, ("prompt", "content"))
        is_queued = attached.get("type") == "queued_command"
        role = "user" if is_queued else "system"
        content = json_text(content) if isinstance(content, Mapping) else content
        return {"role": role, "content": content} if content else None
    if line.get("type") not in ("user", "assistant", "tool_result"):
        return None
    if first_of(message, ("content", "parts")) in (None, []):
        return None
    role = "system" if line.get("isMeta") is True else line["type"]
    return {**message, "role": role}
