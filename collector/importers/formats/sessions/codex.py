"""Codex: rollouts of `~/.codex/sessions`, and the events of `codex exec --json`.

A line of a rollout is an item of the Responses API, or an event that repeats one for the user.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.sessions.lines import (
    TOOK_BACK,
    UNSEEN,
    Line,
    aside,
    by_session,
    field_of_lines,
    lines_of,
    rollouts_of,
)
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import OF_SUBAGENT, Rollouts
from graphcredit.collector.importers.messages.shapes import is_call, is_result, is_thought
from graphcredit.collector.importers.messages.values import (
    as_text,
    canonical,
    field_at,
    fields_of,
    first_of,
    items_of,
    parse_json,
    without,
)

ASIDE = aside(
    *("payload.encrypted_content", "payload.replacement_history", "payload.internal_chat"),
    *("payload.phase", "payload.git", "payload.base_instructions", "payload.instructions"),
    *("payload.cwd", "payload.originator", "payload.source", "payload.model_provider"),
    *("payload.cli_version", "encrypted_content", "instructions", "git"),
    *("payload.memory_mode", "payload.thread_source", "payload.execution", "payload.namespace"),
    *("payload.history_mode", "payload.result"),  # the latter is a drawn image
    of="lines.*.",
)
"""Reasoning that is encrypted, copies, and settings."""

_SETTINGS = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""How messages in the name of the user begin that say where an agent is."""

_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a line of a session, or has lines in a list."""
    return _is_line(value) or field_of_lines(value, _is_line) is not None


def _is_line(value: object) -> bool:
    line = fields_of(value)
    if line.get("type") in _KINDS:
        return isinstance(line.get("payload"), Mapping)
    is_older = {"id", "timestamp", "instructions"} <= line.keys() and "type" not in line
    return is_older or (line.get("type") == "thread.started" and "thread_id" in line)


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Put together the lines of each session; one that was forked has those of the other, too."""
    session: list[str] = []
    said: list[bool] = []

    def session_of(line: Line) -> str | None:
        name = _name_of(line)
        if name is not None and (not session or said):
            session[:], said[:] = [name], []
        elif _items_of(line):
            said[:] = [True]
        return session[0] if session else None

    return by_session(records, limit, _is_line, session_of, _why_left_out)


def _name_of(line: Line) -> str | None:
    """Return the session that a line begins."""
    match line.get("type"):
        case "session_meta":
            return as_text(field_at(line, "payload.id"))
        case "thread.started":
            return as_text(line.get("thread_id"))
        case None:
            return as_text(line.get("id")) if "instructions" in line else None
        case _:
            return None


def _why_left_out(lines: Sequence[Line]) -> list[str | None]:
    """Return why each line is no part of a session; a user may take back the last turns."""
    reasons: list[str | None] = []
    turns: list[int] = []
    for number, line in enumerate(lines):
        items = _items_of(line)
        reasons.append(None if items or _name_of(line) is not None else UNSEEN)
        if any(item.get("role") == "user" and not _is_setting(item) for item in items):
            turns.append(number)
        taken_back = field_at(line, "payload.num_turns")
        is_rollback = field_at(line, "payload.type") == "thread_rolled_back"
        if is_rollback and type(taken_back) is int and taken_back > 0 and turns:
            first = turns[-taken_back:][0]
            del turns[-taken_back:]
            for earlier in range(first, number):
                reasons[earlier] = reasons[earlier] or TOOK_BACK
    return reasons


def _items_of(line: Line) -> list[Mapping[str, Any]]:
    """Return the items of the Responses API that a line has."""
    payload = fields_of(line.get("payload"))
    match line.get("type"):
        case "compacted":
            text = payload.get("message")
            return [{"type": "message", "role": "user", "content": text}] if text else []
        case "item.completed":
            return _executed(fields_of(line.get("item")))
        case "response_item" if payload.get("type") == "image_generation_call":
            asked = {"prompt": payload.get("revised_prompt")}
            return [{"type": "function_call", "name": "image_generation", "arguments": asked}]
        case "response_item" if payload.get("type") == "tool_search_output":
            item = {**payload, "output": payload.get("tools")}
        case "response_item":
            item = payload
        case _:
            item = line
    is_said = item.get("type") == "message" or is_thought(item)
    return [item] if is_said or is_call(item) or is_result(item) else []


def _executed(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the items that an item of an execution is: a call and its result are one there."""
    match item.get("type"):
        case "agent_message":
            return [{"type": "message", "role": "assistant", "content": item.get("text")}]
        case "reasoning":
            return [{"type": "reasoning", "content": item.get("text")}]
        case str(kind) if kind != "error":
            name = as_text(item.get("tool")) or kind
            arguments = without(item, ("id", "type", "tool", "status", "exit_code", *_RESULTS))
            call = {"type": "function_call", "name": name, "arguments": arguments}
            return [call, {"type": "function_call_output", "output": first_of(item, _RESULTS)}]
        case _:
            return []


_RESULTS = ("aggregated_output", "result", "error")


def read(record: Record) -> Rollouts:
    """Yield the rollout of a session."""
    lines = lines_of(record)
    meta = next((line for line in lines if _name_of(line) is not None), {})
    settings = fields_of(meta.get("payload", meta))
    if isinstance(field_at(settings, "source.subagent"), str | Mapping):
        yield OF_SUBAGENT
        return
    items = [item for line in lines for item in _items_of(line)]
    # Where an agent is stands in messages of the user, and is no part of a state.
    messages = [
        {**item, "role": "system"} if _is_setting(item) else _without_clock(item) for item in items
    ]
    info = without(settings, ("instructions", "base_instructions", "type"))
    yield from rollouts_of(record, messages, _name_of(meta), info)


def _without_clock(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a result without the time that its command took: equal results are one state."""
    text = item.get("output")
    if isinstance(text, list):  # a script says it in a part of its own
        first, *rest = items_of(text) or [{}]
        said = fields_of(first).get("text")
        if not isinstance(said, str):
            return item
        return {**item, "output": [{**first, "text": _SCRIPT.sub(r"\1", said)}, *rest]}
    if not isinstance(text, str):
        return item
    head, output, rest = text.partition("Output:\n")
    if output and head.startswith(_HEADS):
        return {**item, "output": _CLOCK.sub("", head) + output + rest}
    whole = fields_of(parse_json(text)) if text[:1] == "{" else {}
    told = fields_of(whole.get("metadata"))
    if "duration_seconds" not in told or whole.keys() != {"output", "metadata"}:
        return item
    return {**item, "output": canonical({**whole, "metadata": without(told, _DURATION)})}


_DURATION = ("duration_seconds",)
_HEADS = ("Exit code: ", "Wall time: ", "Chunk ID: ")
"""How the lines about a command begin that stand before its output."""

_SCRIPT = re.compile(r"^(Script .*\n)Wall time .*\n(?=Output:\n)")
_CLOCK = re.compile(r"^(Wall time|Chunk ID): .*\n", re.MULTILINE)


def _is_setting(item: Mapping[str, Any]) -> bool:
    is_user = item.get("role") == "user"
    return is_user and text_of_content(item.get("content")).startswith(_SETTINGS)
