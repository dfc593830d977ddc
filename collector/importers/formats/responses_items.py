"""Items of OpenAI's Responses API: reasoning, messages, calls of tools and their results."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphcredit.collector.importers.logs.chat import chat_messages, tool_call
from graphcredit.collector.importers.logs.image_parts import images_of
from graphcredit.collector.importers.logs.messages import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    LoggedSampling,
    Message,
    ToolCall,
)
from graphcredit.collector.importers.logs.values import (
    RecordError,
    canonical,
    first_of,
    short,
    text_of_content,
)


def is_call(kind: object) -> bool:
    """Return whether an item of a type is a call of a tool."""
    return isinstance(kind, str) and kind.endswith("_call")


def is_result(kind: object) -> bool:
    """Return whether an item of a type is the result of a call."""
    return isinstance(kind, str) and kind.endswith("_call_output")


def answers_of(items: Sequence[Mapping[str, Any]], settings: LoggedSampling) -> Iterator[Message]:
    """Yield the messages of items; those of one answer of the model become one message.

    Raises:
        RecordError: The type of an item is unknown.
    """
    answer: list[Mapping[str, Any]] = []
    for item in items:
        kind = item.get("type", "message")
        is_models = kind == "reasoning" or is_call(kind) or item.get("role") == ASSISTANT
        if answer and (not is_models or _begins_answer(answer, kind)):
            yield _answer(answer, settings)
            answer = []
        if is_models:
            answer.append(item)
            if _has_result(item):
                yield _answer(answer, settings)
                yield _own_result(item)
                answer = []
        elif is_result(kind):
            yield result_of(item)
        elif kind == "mcp_list_tools":
            yield Message(role=SYSTEM, text="", source=dict(item))
        elif kind == "message":
            yield from chat_messages([item], "output")
        else:
            raise RecordError(f"an output item's type must be known: got {short(kind)}")
    if answer:
        yield _answer(answer, settings)


def _begins_answer(answer: Sequence[Mapping[str, Any]], kind: str) -> bool:
    """Return whether an item is of the next answer: after the tokens of one, or out of its order.

    An answer is reasoning, a message, calls: each may be missing.
    """
    if any(item.get("generation_token_ids") for item in answer):
        return True
    last = answer[-1].get("type", "message")
    if kind == "reasoning":
        return last != "reasoning"
    return kind == "message" and last != "reasoning"


def _answer(items: Sequence[Mapping[str, Any]], settings: LoggedSampling) -> Message:
    calls = [_call(item) for item in items if is_call(item.get("type"))]
    spoken = [
        text_of_content(i.get("content")) for i in items if i.get("type", "message") == "message"
    ]
    thoughts = [
        text_of_content(first_of(item, ("content", "summary")))
        for item in items
        if item.get("type") == "reasoning"
    ]
    tokens = next((item for item in items if item.get("generation_token_ids")), None)
    return Message(
        role=ASSISTANT,
        text="\n\n".join(text for text in spoken if text),
        thought="\n\n".join(text for text in thoughts if text),
        tool_calls=tuple(calls),
        sampling=settings if tokens is None else _with_tokens(tokens, settings),
        source=dict(items[0]) if len(items) == 1 else {"items": [dict(item) for item in items]},
    )


def _with_tokens(item: Mapping[str, Any], settings: LoggedSampling) -> LoggedSampling:
    return LoggedSampling(
        prompt_ids=item.get("prompt_token_ids"),
        response_ids=item["generation_token_ids"],
        response_logprobs=item.get("generation_log_probs"),
        temperature=settings.temperature,
        top_p=settings.top_p,
    )


def _call(item: Mapping[str, Any]) -> ToolCall:
    """Return a call; a tool of the model's server has no name but its type."""
    if "name" in item:
        return tool_call(item, "output")
    name = item["type"].removesuffix("_call")
    return ToolCall(name=name, arguments=canonical(first_of(item, ("action", "code", "queries"))))


def _has_result(item: Mapping[str, Any]) -> bool:
    """Return whether an item is a call with its result, as those that a server of MCP runs."""
    return is_call(item.get("type")) and first_of(item, _RESULTS) is not None


_RESULTS = ("output", "error")


def _own_result(item: Mapping[str, Any]) -> Message:
    source = {name: item[name] for name in _RESULTS if item.get(name) is not None}
    return Message(
        role=TOOL,
        text="\n\n".join(map(text_of_content, source.values())),
        image_parts=tuple(image for value in source.values() for image in images_of(value)),
        source=source,
    )


def result_of(item: Mapping[str, Any]) -> Message:
    """Return the result of a call."""
    output = item.get("output")
    return Message(
        role=TOOL,
        text=text_of_content(output),
        image_parts=images_of(output),
        source=dict(item),
    )
