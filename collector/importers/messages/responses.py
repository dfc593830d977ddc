"""Items of OpenAI's Responses API: reasoning, messages, calls of tools and their results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphcredit.collector.importers.messages.chat import chat_messages, seen, tool_call
from graphcredit.collector.importers.messages.content import images_of, text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    LoggedSampling,
    Message,
    ToolCall,
)
from graphcredit.collector.importers.messages.values import RecordError, canonical, first_of, short


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
            results = _results_within(item)
            if results:
                yield _answer(answer, settings)
                yield Message(
                    role=TOOL,
                    text="\n\n".join(map(text_of_content, results.values())),
                    image_parts=tuple(i for value in results.values() for i in images_of(value)),
                    source=results,
                )
                answer = []
        elif is_result(kind):
            yield seen(TOOL, item.get("output"), item)
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
    if tokens is not None:
        settings = replace(
            settings,
            prompt_ids=tokens.get("prompt_token_ids"),
            response_ids=tokens["generation_token_ids"],
            response_logprobs=tokens.get("generation_log_probs"),
        )
    return Message(
        role=ASSISTANT,
        text="\n\n".join(text for text in spoken if text),
        thought="\n\n".join(text for text in thoughts if text),
        tool_calls=tuple(calls),
        sampling=settings,
        source=dict(items[0]) if len(items) == 1 else {"items": [dict(item) for item in items]},
    )


def _call(item: Mapping[str, Any]) -> ToolCall:
    """Return a call; a tool of the model's server has no name but its type."""
    if "name" in item:
        return tool_call(item, "output")
    name = item["type"].removesuffix("_call")
    return ToolCall(name=name, arguments=canonical(first_of(item, ("action", "code", "queries"))))


def _results_within(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results that a call has itself, as those that a server of MCP runs."""
    results = {name: item[name] for name in ("output", "error") if item.get(name) is not None}
    return results if is_call(item.get("type")) else {}
