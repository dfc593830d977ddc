"""The messages within a request or an answer of any API, or within a span's input or output."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from graphcredit.collector.importers.messages.chat import is_chat
from graphcredit.collector.importers.messages.cut import is_cut, reason_of
from graphcredit.collector.importers.messages.rollout import SYSTEM
from graphcredit.collector.importers.messages.values import as_list, fields_of, first_of, parse_json

_SYSTEMS = ("system", "instructions", "system_instruction", "systemInstruction")
_INNER = (
    *("messages", "input_messages", "contents", "input", "inputs", "prompts", "prompt", "parts"),
    *("output_messages", "choices", "candidates", "generations", "message", "output", "outputs"),
    *("response", "completion", "content", "text", "body", "kwargs"),
    *("question", "query", "answer", "final_output", "result", "inputBodyJson", "outputBodyJson"),
)
"""Fields that may have the messages of an object, in the order in which they are tried."""

_CHOICES = ("choices", "candidates", "generations")
"""Those with several answers, of which the first is the one that counts."""


_PROMPT = ("prompt_token_ids",)
"""The ids of the prompt, beside a choice or in it."""


def chat_in(value: object, role: str) -> list[Any]:
    """Return the messages within a value as the log has them; an empty list if there are none.

    Args:
        value: A request, an answer, messages, parts of one, or a text; also as JSON text.
        role: Who says what has no role.
    """
    if isinstance(value, str):
        parsed = parse_json(value)
        found = [] if parsed is None else chat_in(parsed, role)
        return found or ([{"role": role, "content": value}] if value.strip() else [])
    if isinstance(value, Mapping):
        return _in_object(cast("Mapping[str, Any]", value), role)
    return _in_list(cast("list[Any]", value), role) if isinstance(value, list) else []


def _in_object(value: Mapping[str, Any], role: str) -> list[Any]:
    if _is_message(value):
        return [_opened(value)]
    if value.get("tool_calls"):  # an answer without its role
        return [{"role": role, **value}]
    for name in _INNER:
        inner = value.get(name)
        found = chat_in(inner[:1] if name in _CHOICES and isinstance(inner, list) else inner, role)
        if found:
            if name == "choices" and (tokens := _tokens(value)):
                found = [{**fields_of(found[0]), "tokens": tokens}, *found[1:]]
            if role == "assistant" and (reason := _cut_by(value, inner)):
                found = [*found[:-1], {**fields_of(found[-1]), "finish_reason": reason}]
            system = first_of(value, _SYSTEMS)
            given = [] if system is None or role == "assistant" else chat_in(system, SYSTEM)
            return [*given, *found]
    return []


def _cut_by(answer: Mapping[str, Any], choices: object) -> str | None:
    """Return the limit that cut an answer, which servers name around its message."""
    first = fields_of(choices[0]) if isinstance(choices, list) and choices else {}
    reason = reason_of(first, 0) or reason_of(answer, 0)
    return reason if reason and is_cut(reason) else None


def _tokens(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens of an answer's first choice, which servers put around its message."""
    choice = fields_of(next(iter(as_list(answer["choices"], "choices")), None))
    own = {name: choice[name] for name in ("token_ids", "logprobs") if choice.get(name)}
    prompt = first_of(choice, _PROMPT) or first_of(answer, _PROMPT)
    return {**own, "prompt_token_ids": prompt} if own else {}


def _in_list(items: Sequence[Any], role: str) -> list[Any]:
    """Return messages, without objects around them; of a batch the first."""
    if any(map(_is_message, items)):
        return [_opened(item) for item in items if isinstance(item, Mapping)]
    if not items or isinstance(items[0], list | str):
        return chat_in(items[0], role) if items else []
    first = fields_of(items[0])
    if isinstance(first.get("message"), Mapping) or isinstance(first.get("content"), Mapping):
        return chat_in(first_of(first, ("message", "content")), role)
    is_part = "type" in first or "text" in first
    return [{"role": role, "content": list(items)}] if is_part else []


def _opened(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message, or the one that an object around it has: a choice, a wrapper."""
    inner = item.get("message")
    return item if "role" in item or not isinstance(inner, Mapping) else inner


def _is_message(item: object) -> bool:
    kind = fields_of(item).get("type")
    is_item = isinstance(kind, str) and kind.endswith(("reasoning", "_call", "_call_output"))
    return is_chat([item]) or is_item
