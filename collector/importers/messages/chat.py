"""Read chat messages: OpenAI's with tool calls, and dialects of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from graphcredit.collector.importers.messages.answer_fields import call_beside, with_fields
from graphcredit.collector.importers.messages.answers import joined_answer, joined_answers
from graphcredit.collector.importers.messages.parts import (
    CALL,
    RESULT,
    RULES,
    STEP,
    TEXT,
    THOUGHT,
    Piece,
    images_of,
    pieces_of,
    text_of_content,
)
from graphcredit.collector.importers.messages.plain import (
    plain_message,
    plain_messages,
    split_thinking,
    without_id,
)
from graphcredit.collector.importers.messages.roles import (
    CALLS_TEXT,
    ROLES,
    content_of,
    opened,
    role_of,
)
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    Message,
    ToolCall,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_list,
    as_mapping,
    fields_of,
    short,
)
from graphcredit.collector.importers.messages.worded_calls import opened_words

_ROLES = {RESULT: TOOL, RULES: SYSTEM}
"""Kinds of pieces that nobody says but another role: each is a message of its own."""


def is_chat(value: object) -> bool:
    """Return whether a value is a list that begins with a chat message."""
    if not isinstance(value, list) or not value:
        return False
    first = fields_of(cast("list[object]", value)[0])
    role = first.get("role")
    if isinstance(role, str) and role in ROLES:
        return True
    return role_of(opened(first)) is not None


def chat_messages(value: object, what: str, *, is_context: bool = False) -> tuple[Message, ...]:
    """Return the messages of a list; those of one answer are one, results in an answer are apart.

    Args:
        value: A list of messages, or of items of the Responses API.
        what: What the list is called in the record, for messages of errors.
        is_context: Whether it is a prompt, whose assistant messages are no steps.
    """
    items = as_list(value, what)
    if not is_context and (plain := plain_messages(items)) is not None:
        return plain
    messages: list[Message] = []
    for number, item in enumerate(items):
        messages += _messages(item, what, number, is_context=is_context)
    return tuple(joined_answers([opened_words(message) for message in messages]))


def chat_message(value: object, what: str, *, is_context: bool = False) -> Message:
    """Return one message; see `chat_messages`."""
    return joined_answer(*_messages(value, what, None, is_context=is_context))


def said_alike(one: Message, other: Message) -> bool:
    """Return whether two messages of a role have the same text and the same calls."""
    return (one.role, one.text, one.tool_calls) == (other.role, other.text, other.tool_calls)


def seen(role: str, content: object, source: Mapping[str, Any], **more: Any) -> Message:
    """Return a message with the text and the images of a content."""
    text, images = text_of_content(content), images_of(content)
    return Message(role=role, text=text, image_parts=images, source=dict(source), **more)


def answer(text: str, source: Mapping[str, Any], **more: Any) -> Message:
    """Return a message of the policy, whose text may begin with its reasoning."""
    thought, spoken = split_thinking(text)
    said = text if thought else ""
    return opened_words(
        Message(role=ASSISTANT, text=spoken, thought=thought, said=said, source=source, **more)
    )


def _messages(value: object, what: str, number: int | None, *, is_context: bool) -> list[Message]:
    """Return what an item of a list says; its name is made only for messages of errors."""
    if type(value) is dict:
        message = plain_message(cast("dict[str, Any]", value), is_context=is_context)
        if message is not None:
            return [message]
    raw = as_mapping(value, _name(what, number))
    if None in raw.values():
        raw = {k: v for k, v in raw.items() if v is not None}
    source, role = raw, raw.get("role")
    role = ROLES.get(role) if isinstance(role, str) else None
    if role is None or "additional_kwargs" in raw:
        raw = opened(raw)
        role = role_of(raw)
    if role is None:
        return _part_alone(raw, what, number, is_context=is_context)
    content = content_of(raw)
    if isinstance(content, str) and role != ASSISTANT:
        text = without_id(content) if role == TOOL else content
        result = Message(role=role, text=text, is_context=is_context, source=source)
        call = call_beside(raw, "name") if role == TOOL else None
        return [result] if call is None else [_called(call, source, is_context), result]
    pieces = [Piece(TEXT, content)] if isinstance(content, str) else list(pieces_of(content))
    is_data = role == TOOL and not any(piece.kind == RESULT for piece in pieces)
    if is_data or (isinstance(content, Mapping) and any(piece.is_unread for piece in pieces)):
        pieces = [Piece(TEXT, text_of_content(content), images=images_of(content))]
    if role == ASSISTANT:
        pieces = with_fields(raw, pieces, _name(what, number))
    messages = _cut(role, pieces, source, is_context=is_context)
    if CALLS_TEXT in raw:
        messages[0].calls_text = raw[CALLS_TEXT]
    return messages


def _called(call: ToolCall, source: Mapping[str, Any], is_context: bool) -> Message:
    """Return the call that a log has in the message of its result."""
    source = {name: each for name, each in source.items() if name not in ("role", "content")}
    return Message(
        role=ASSISTANT, text="", tool_calls=(call,), is_context=is_context, source=source
    )


def _name(what: str, number: int | None) -> str:
    return what if number is None else f"{what}[{number}]"


def _part_alone(
    raw: Mapping[str, Any], what: str, number: int | None, *, is_context: bool
) -> list[Message]:
    """Return an item without a role: a call, its result, or reasoning, as Responses has them."""
    if raw.get("type") == "mcp_list_tools":
        return [Message(role=SYSTEM, text="", source=dict(raw))]
    pieces = list(pieces_of(raw))
    if not any(piece.kind != TEXT for piece in pieces):
        roles = "system, user, assistant, tool or what a dialect calls them"
        raise RecordError(f"{_name(what, number)} must have a role ({roles}): got {short(raw)}")
    return _cut(ASSISTANT, pieces, raw, is_context=is_context)


def _cut(
    role: str, pieces: Sequence[Piece], source: Mapping[str, Any], *, is_context: bool
) -> list[Message]:
    """Return the messages of an item, which the results within it cut."""
    runs: list[list[Piece]] = []
    for piece in _in_steps(pieces):
        if runs and piece.kind not in _ROLES and runs[-1][-1].kind not in _ROLES:
            runs[-1].append(piece)
        else:
            runs.append([piece])
    if len(runs) <= 1:
        return [_message(role, pieces, source, is_context=is_context)]
    return [
        _message(role, run, {"role": role, "content": [p.part for p in run]}, is_context=is_context)
        for run in runs
    ]


def _in_steps(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield pieces in the order of their steps, if the log marks them: calls before results."""
    step: list[Piece] = []
    for piece in pieces:
        if piece.kind == STEP:
            yield from sorted(step, key=_is_result)
            step = []
        else:
            step.append(piece)
    yield from sorted(step, key=_is_result) if len(step) < len(pieces) else step


def _is_result(piece: Piece) -> bool:
    return piece.kind == RESULT


def _message(
    role: str, pieces: Sequence[Piece], source: Mapping[str, Any], *, is_context: bool
) -> Message:
    role = next((_ROLES[piece.kind] for piece in pieces if piece.kind in _ROLES), role)
    said = [piece for piece in pieces if piece.kind not in (THOUGHT, CALL)]
    thoughts = [piece.text for piece in pieces if piece.kind == THOUGHT and piece.text]
    text = "\n".join(piece.text for piece in said if piece.text)
    whole = "\n".join(piece.said or piece.text for piece in said if piece.said or piece.text)
    return Message(
        role=role,
        text=without_id(text) if role == TOOL else text,
        thought="\n\n".join(thoughts) if role == ASSISTANT else "",
        tool_calls=tuple([p.call for p in pieces if p.call]) if role == ASSISTANT else (),
        said=whole if whole != text else "",
        is_context=is_context,
        image_parts=tuple(image for piece in said for image in piece.images),
        num_unread=sum(piece.is_unread for piece in said),
        source=source,
    )
