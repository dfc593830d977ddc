"""Gemini CLI: sessions of `~/.gemini/tmp/*/chats`, as one object or as lines that change it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.sessions.lines import (
    UNSEEN,
    aside,
    rollouts_of,
    sorted_out,
)
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.logs.groups import RecordGroups
from graphcredit.collector.importers.messages.rollout import OF_SUBAGENT, Rollouts
from graphcredit.collector.importers.messages.values import (
    as_mapping,
    as_objects,
    as_text,
    fields_of,
    items_of,
    without,
)

ASIDE = aside(
    *("summary", "projectHash", "directories", "memoryScratchpad", "kind"),
    *("startTime", "lastUpdated", "messages.*.displayContent", "messages.*.tokens"),
    *(f"messages.*.toolCalls.*.{n}" for n in ("resultDisplay", "description", "displayName")),
    "messages.*.toolCalls.*.result.*.functionResponse.name",
)
"""What a person is shown, and what describes the session."""


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a session, or the first line of one."""
    return isinstance(fields_of(value).get("sessionId"), str) and "projectHash" in fields_of(value)


def gather(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Put together the lines of a session: a message may be written again, and be taken back."""
    groups = RecordGroups(limit)
    for record in records:
        line = fields_of(record.value)
        if isinstance(record.value, RowError):
            yield record
        elif "projectHash" in line and "messages" in line:
            yield _sorted(record, line)
        else:
            groups.add("lines", record)
    yield from groups.made(lambda _, lines: _session_of(lines))


def _session_of(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the record of a session, given its lines."""
    begin: Record | None = None
    session: dict[str, Any] = {}
    messages: dict[str, Mapping[str, Any]] = {}
    for record in records:
        line = fields_of(record.value)
        if "projectHash" in line:
            begin = begin or record
            session |= line
        elif isinstance(line.get("$rewindTo"), str):
            names = list(messages)
            at = names.index(line["$rewindTo"]) if line["$rewindTo"] in messages else 0
            for name in names[at:]:
                del messages[name]
        elif isinstance(line.get("$set"), Mapping):
            changed = dict(fields_of(line["$set"]))
            whole = as_objects(changed.pop("messages", None), "messages", "a message")
            session |= changed
            messages = {str(each.get("id")): each for each in whole} or messages
        else:
            messages[str(line.get("id"))] = line
    if begin is not None:
        yield _sorted(begin, {**session, "messages": list(messages.values())})


def _sorted(record: Record, session: Mapping[str, Any]) -> Record:
    """Return the record of a session, with what the model did not see apart."""
    logged = as_objects(session.get("messages"), "messages", "a message")
    reasons = (None if each.get("type") in ("user", "gemini") else UNSEEN for each in logged)
    return replace(record, value={**session, **sorted_out(logged, reasons, "messages")})


def read(record: Record) -> Rollouts:
    """Yield the rollout of a session."""
    session = as_mapping(record.value, "a session")
    if session.get("kind") == "subagent":
        yield OF_SUBAGENT
        return
    logged = as_objects(session.get("messages"), "messages", "a message")
    messages = [message for each in logged for message in _messages(each)]
    info = without(session, ("messages", "left_out"))
    yield from rollouts_of(record, messages, as_text(session.get("sessionId")), info)


def _messages(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message, and the results of its calls."""
    content = message.get("content")
    if message.get("type") == "user":
        # Results stand at their calls, too.
        kept = [part for part in items_of(content) if "functionResponse" not in fields_of(part)]
        yield {"role": "user", "content": kept if isinstance(content, list) else content}
        return
    calls = as_objects(message.get("toolCalls"), "toolCalls", "a call")
    thoughts = as_objects(message.get("thoughts"), "thoughts", "a thought")
    texts = (text for t in thoughts for n in ("subject", "description") if (text := t.get(n)))
    yield {
        "role": "assistant",
        "content": content,
        "reasoning_content": "\n".join(map(str, texts)) or None,
        "tool_calls": [without(call, ("result",)) for call in calls] or None,
    }
    yield from ({"role": "tool", "content": call["result"]} for call in calls if call.get("result"))
