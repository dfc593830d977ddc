"""NeMo Gym rollouts: items of the Responses API, observations among them."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.formats.responses_items import (
    answers_of,
    is_result,
    result_of,
)
from graphcredit.collector.importers.logs.chat import chat_messages
from graphcredit.collector.importers.logs.messages import (
    ASSISTANT,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
)
from graphcredit.collector.importers.logs.records import Record
from graphcredit.collector.importers.logs.values import (
    RecordError,
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_verdict,
    field_at,
    first_of,
    no_verdict,
    numbers_of,
    text_of_content,
)

_PLACEHOLDERS = "empty message with placeholders for tokens"
_PLACEHOLDER = ([0], [0])
"""Tokens of the empty message that ends a rollout whose own messages have none."""


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a rollout of NeMo Gym."""
    if not isinstance(value, Mapping):
        return False
    row = cast("Mapping[str, Any]", value)
    return "responses_create_params" in row and isinstance(row.get("response"), Mapping)


def read(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollout of a row."""
    row = as_mapping(record.value, "a row")
    params = as_mapping(row["responses_create_params"], "responses_create_params")
    response = as_mapping(row["response"], "response")
    index = first_of(row, ("_ng_task_index", "task_idx"))
    agent = as_text(field_at(row, "agent_ref.name"))
    task = None if index is None else ":".join(p for p in (agent, as_text(index)) if p)
    success = field_at(row, "info.success")
    items = _items(response)
    own = [item for item in items if not _is_placeholder(item)]
    yield LoggedRollout(
        messages=(*_prompt(params), *answers_of(own, _settings(params, response))),
        record=row,
        label=":".join(p for p in (task, as_text(row.get("_ng_rollout_index"))) if p),
        task=task,
        reward=as_number(row.get("reward"), "reward"),
        rewards=numbers_of(row),
        success=as_verdict(success),
        truncated=row.get("truncated") is True,
        info={
            "model": first_of(response, ("model",)) or params.get("model"),
        }
        | {
            name: value
            for name, value in row.items()
            if name not in ("responses_create_params", "response") and value is not None
        },
        left_out={
            **no_verdict("info.success", success),
            **({_PLACEHOLDERS: len(items) - len(own)} if len(own) < len(items) else {}),
        },
    )


def _is_placeholder(item: Mapping[str, Any]) -> bool:
    tokens = item.get("prompt_token_ids"), item.get("generation_token_ids")
    return tokens == _PLACEHOLDER and not text_of_content(item.get("content"))


def _prompt(params: Mapping[str, Any]) -> tuple[Message, ...]:
    given = params.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    if params.get("instructions"):
        items = [{"role": "system", "content": params["instructions"]}, *items]
    messages: list[Message] = []
    for item in items:
        kind = as_mapping(item, "an input item").get("type", "message")
        if kind == "message":
            messages += chat_messages([item], "input", is_context=True)
        elif is_result(kind):
            messages.append(result_of(item))
        else:
            text = text_of_content(first_of(item, ("content", "arguments", "summary")))
            messages.append(Message(role=ASSISTANT, text=text, is_context=True, source=dict(item)))
    return tuple(messages)


def _items(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the output items. With transitions, each list begins with the one before: the last.

    Raises:
        RecordError: The transitions do not begin with each other.
    """
    output = as_list(response.get("output"), "response.output")
    if output and isinstance(output[0], list):
        lists = [cast("list[Any]", part) for part in output]
        for before, after in pairwise(lists):
            if after[: len(before)] != before:
                raise RecordError("each list of response.output must begin with the one before")
        output = lists[-1]
    return [as_mapping(item, "an output item") for item in output]


def _settings(params: Mapping[str, Any], response: Mapping[str, Any]) -> LoggedSampling:
    def setting(name: str) -> float | None:
        value = params.get(name)
        return as_number(response.get(name) if value is None else value, name)

    return LoggedSampling(
        temperature=setting("temperature"),
        top_p=setting("top_p"),
    )
