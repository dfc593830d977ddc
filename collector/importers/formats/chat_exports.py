"""Chats as people export them: of Copilot in VS Code, and of ChatGPT.

Each is translated to a row with messages, which `chat_rows` reads.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.sessions.lines import rollouts_of
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import Rollouts
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_mapping,
    as_objects,
    as_text,
    field_at,
    fields_of,
    first_of,
    without,
)

Raw = dict[str, Any]

COPILOT_ASIDE = (
    *("responderUsername", "requesterUsername", "customTitle", "inputState", "initialLocation"),
    *("responderAvatarIconUri", "requesterAvatarIconUri", "mode", "selectedModel", "contrib"),
    *(
        f"requests.*.{name}"
        for name in (
            *("message.parts", "variableData", "agent", "usedContext", "contentReferences"),
            *("codeCitations", "followups", "slashCommand", "editedFileEvents", "modelState"),
            *("result.metadata.renderedUserMessage", "result.metadata.renderedGlobalContext"),
            *("result.metadata.codeBlocks", "result.metadata.modelMessageId", "result.details"),
            *("result.metadata.toolCallRounds.*.phase", "confirmation", "responseMarkdownInfo"),
            *(
                f"response.*.{part}"
                for part in (
                    *("invocationMessage", "pastTenseMessage", "uri", "inlineReference", "edits"),
                    *("source", "generatedTitle", "presentation", "toolSpecificData"),
                    "resultDetails",
                )
            ),
        )
    ),
)
"""What a person is shown of a call and of edits, and settings."""

_NO_TEXT = ("prepareToolInvocation", "progressTaskSerialized", "progressMessage", "undoStop")
_OTHER_BRANCH = "message of another branch"
CHATGPT_ASIDE = ("left_out", "title", "lines.*.metadata", "lines.*.recipient", "lines.*.channel")


def is_copilot(value: object, path: Path) -> bool:
    """Return whether a record is a chat of VS Code."""
    first = fields_of(field_at(value, "requests.0"))
    return isinstance(field_at(first, "message.text"), str) and isinstance(
        first.get("response"), list
    )


def read_copilot(record: Record) -> Rollouts:
    """Yield the rollout of a chat."""
    chat = as_mapping(record.value, "a chat")
    requests = as_objects(chat.get("requests"), "requests", "a request")
    messages = [message for request in requests for message in _messages(request)]
    row = replace(record, value=without(chat, ("requests", *COPILOT_ASIDE)))
    yield from rollouts_of(row, messages, as_text(chat.get("sessionId")))


def _messages(request: Mapping[str, Any]) -> Iterator[Raw]:
    """Yield what the user asked, and the answers with the results of their calls."""
    yield {"role": "user", "content": field_at(request, "message.text")}
    known = fields_of(field_at(request, "result.metadata"))
    rounds = as_objects(known.get("toolCallRounds"), "toolCallRounds", "a round")
    results = fields_of(known.get("toolCallResults"))
    for each in rounds:
        calls = as_objects(each.get("toolCalls"), "toolCalls", "a call")
        thinking = each.get("thinking")
        thought = as_text(field_at(thinking, "text") or thinking) if thinking else None
        yield _answer(each.get("response"), thought, calls)
        for call in calls:
            result = fields_of(results.get(str(call.get("id"))))
            yield {"role": "tool", "content": _texts(result.get("content"))}
    if not rounds:
        yield from _shown(as_objects(request.get("response"), "response", "a part"))


def _answer(text: object, thought: str | None, calls: object = None) -> Raw:
    said = {"role": "assistant", "content": text or ""}
    return {**said, "reasoning_content": thought, "tool_calls": calls or None}


def _texts(value: object) -> str:
    """Return the texts in a result, which may be a tree of what is shown."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_texts, value))  # pyright: ignore[reportUnknownArgumentType]
    fields = fields_of(value)
    inner = first_of(fields, ("text", "value", "content", "node", "children"))
    return "" if inner is None else _texts(inner)


def _shown(parts: list[Mapping[str, Any]]) -> Iterator[Raw]:
    """Yield the answers in what a person was shown; of a result it has what the editor said."""
    text, thought = "", ""
    for part in parts:
        kind, said = part.get("kind"), _texts(first_of(part, ("value", "content")))
        if kind == "toolInvocationSerialized":
            told = part.get("toolSpecificData") or part.get("invocationMessage")
            name = as_text(part.get("toolId")) or "tool"
            call = {"id": part.get("toolCallId"), "name": name, "arguments": told or {}}
            yield _answer(text, thought, [call])
            result = first_of(part, ("resultDetails", "pastTenseMessage"))
            yield {
                "role": "tool",
                "content": _texts(first_of(fields_of(result), ("output",)) or result),
            }
            text, thought = "", ""
        elif kind == "thinking":
            thought += said
        elif kind not in _NO_TEXT:
            text += said
    if text or thought:
        yield _answer(text, thought)


def is_chatgpt(value: object, path: Path) -> bool:
    """Return whether a record is a conversation of ChatGPT's export."""
    chat = fields_of(value)
    return isinstance(chat.get("mapping"), Mapping) and "current_node" in chat


def gather_chatgpt(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield conversations with the messages of other branches apart."""
    for record in records:
        chat = fields_of(record.value)
        if not is_chatgpt(chat, record.path):
            yield record
            continue
        nodes = {str(name): fields_of(node) for name, node in chat["mapping"].items()}
        path, name = list[str](), as_text(chat["current_node"])
        while name is not None and name in nodes and name not in path:
            path.append(name)
            name = as_text(nodes[name].get("parent"))
        others = [node["message"] for n, node in nodes.items() if n not in path]
        lines = [nodes[n]["message"] for n in reversed(path) if nodes[n].get("message")]
        apart = {_OTHER_BRANCH: [each for each in others if each]}
        value = {**without(chat, ("mapping",)), "lines": lines, "left_out": apart}
        yield replace(record, value=value)


def read_chatgpt(record: Record) -> Rollouts:
    """Yield the rollout of a conversation."""
    chat = as_mapping(record.value, "a conversation")
    lines = as_objects(chat.get("lines"), "lines", "a message")
    messages = [_said(line) for line in lines]
    if not lines:
        raise RecordError("the current node of a conversation must be one of its mapping")
    session = as_text(first_of(chat, ("conversation_id", "id")))
    yield from rollouts_of(record, messages, session)


def _said(line: Mapping[str, Any]) -> Raw:
    """Return a message; thoughts and calls of tools are messages of their own in an export."""
    role, content = field_at(line, "author.role"), fields_of(line.get("content"))
    kind, told = content.get("content_type"), first_of(content, ("parts", "text", "thoughts"))
    if kind in ("thoughts", "reasoning_recap"):
        return {"type": "reasoning", "summary": _texts(first_of(content, ("content",)) or told)}
    recipient = line.get("recipient") or "all"
    if role == "assistant" and recipient != "all":
        call = {"name": recipient, "arguments": _texts(told)}
        return {"role": role, "content": "", "tool_calls": [call]}
    return {"role": role, "content": told}
