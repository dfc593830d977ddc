"""Gemini CLI: sessions of `~/.gemini/tmp/*/chats`, as one object or as lines that change it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.formats import chat_rows
from graphcredit.collector.importers.formats.sessions.lines import (
    OF_SUBAGENT,
    UNSEEN,
    left_out_of,
    opening_name,
)
from graphcredit.collector.importers.logs.files import Record, RowError
from graphcredit.collector.importers.messages.content import text_of_content
from graphcredit.collector.importers.messages.rollout import LoggedRollout, Omission, Rollouts
from graphcredit.collector.importers.messages.values import (
    as_mapping,
    as_objects,
    as_text,
    field_at,
    fields_of,
    first_of,
    without,
)

ASIDE = (
    *("summary", "projectHash", "directories", "memoryScratchpad", "kind"),
    *("startTime", "lastUpdated"),
    *(
        f"messages.*.{name}"
        for name in (
            *("displayContent", "tokens", "toolCalls.*.resultDisplay", "toolCalls.*.description"),
            *("toolCalls.*.displayName", "toolCalls.*.result.*.functionResponse.name"),
        )
    ),
)
"""What a person is shown, and what describes the session."""


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a session, or the first line of one."""
    return isinstance(fields_of(value).get("sessionId"), str) and "projectHash" in fields_of(value)


def gather(records: Iterator[Record]) -> Iterator[Record]:
    """Put together the lines of a session: a message may be written again, and be taken back."""
    begin: Record | None = None
    session: dict[str, Any] = {}
    messages: dict[str, Mapping[str, Any]] = {}
    for record in records:
        line = fields_of(record.value)
        if isinstance(record.value, RowError) or ("projectHash" in line and "messages" in line):
            yield _sorted(record, line)
        elif "projectHash" in line:
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
    kept = [each for each in logged if each.get("type") in ("user", "gemini")]
    unseen = [each for each in logged if each.get("type") not in ("user", "gemini")]
    apart = {"left_out": {UNSEEN: unseen}} if unseen else {}
    return replace(record, value={**session, "messages": kept, **apart})


def read(record: Record) -> Rollouts:
    """Yield the rollout of a session."""
    session = as_mapping(record.value, "a session")
    if session.get("kind") == "subagent":
        yield Omission(reason=OF_SUBAGENT)
        return
    logged = as_objects(session.get("messages"), "messages", "a message")
    messages = [message for each in logged for message in _messages(each)]
    row = {**without(session, ("messages", "left_out")), "messages": messages}
    for item in chat_rows.read(replace(record, value=row)):
        if isinstance(item, LoggedRollout):
            item = replace(
                item,
                trajectory_id=as_text(session.get("sessionId")),
                group=opening_name(item.messages),
                left_out=left_out_of(record),
            )
        yield item


def _messages(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message, and the results of its calls."""
    content = _spoken(message.get("content"), is_called="toolCalls" in message)
    if message.get("type") == "user":
        yield {"role": "user", "content": content}
    elif message.get("type") == "gemini":
        calls = as_objects(message.get("toolCalls"), "toolCalls", "a call")
        thoughts = as_objects(message.get("thoughts"), "thoughts", "a thought")
        texts = (text for t in thoughts for n in ("subject", "description") if (text := t.get(n)))
        named = [{"name": call.get("name"), "arguments": call.get("args")} for call in calls]
        thought = "\n".join(map(str, texts))
        yield {"role": "assistant", "content": content, "reasoning_content": thought} | (
            {"tool_calls": named} if named else {}
        )
        for call in calls:
            yield {"role": "tool", "content": _result(call.get("result"))}


def _spoken(content: object, *, is_called: bool) -> object:
    """Return the parts of a content that are no calls or results that stand beside it, too."""
    parts = cast("list[object]", content) if isinstance(content, list) else [content]
    apart = {"functionResponse", *(("functionCall",) if is_called else ())}
    spoken = [part for part in parts if not apart & fields_of(part).keys()]
    return content if isinstance(content, str) else spoken


def _result(result: object) -> str:
    parts = cast("list[object]", result) if isinstance(result, list) else [result]
    texts: list[str] = []
    for part in parts:
        response = field_at(part, "functionResponse.response")
        text = first_of(fields_of(response), ("output", "error")) if response else part
        texts.append(text_of_content([text] if isinstance(text, Mapping) else text))
    return "\n".join(text for text in texts if text)
