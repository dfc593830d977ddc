"""Rollouts of NVIDIA's NeMo Gym: items of the Responses API, observations among them."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import (
    LoggedRollout,
    Message,
    Rollouts,
    sampling_of,
    with_sampling,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_list,
    as_mapping,
    as_number,
    as_verdict,
    field_at,
    fields_of,
    first_of,
    items_of,
    joined,
    no_verdict,
    numbers_of,
    without,
)

_PLACEHOLDERS = "empty message with placeholders for tokens"
_PLACEHOLDER = ([0], [0])
"""Tokens of the empty message that ends a rollout whose own messages have none."""


def is_gym(value: object, path: Path) -> bool:
    """Return whether a record is a rollout of NeMo Gym."""
    row = fields_of(value)
    return "responses_create_params" in row and isinstance(row.get("response"), Mapping)


def read_gym(record: Record) -> Rollouts:
    """Yield the rollout of a row."""
    row = as_mapping(record.value, "a row")
    params = as_mapping(row["responses_create_params"], "responses_create_params")
    response = as_mapping(row["response"], "response")
    index = first_of(row, ("_ng_task_index", "task_idx"))
    task = None if index is None else joined(field_at(row, "agent_ref.name"), index)
    success = field_at(row, "info.success")
    items = _items(response)
    kept = [item for item in items if not _is_placeholder(item)]
    placeholders = {_PLACEHOLDERS: len(items) - len(kept)} if len(kept) < len(items) else {}
    answers = chat_messages(kept, "response.output")
    sampling = sampling_of({**response, **without(params, ())})
    model = first_of(response, ("model",)) or params.get("model")
    yield LoggedRollout(
        messages=(*_prompt(params), *(with_sampling(each, sampling) for each in answers)),
        record=row,
        label=joined(task, row.get("_ng_rollout_index")),
        task=task,
        reward=as_number(row.get("reward"), "reward"),
        rewards=numbers_of(row),
        success=as_verdict(success),
        truncated=row.get("truncated") is True,
        info={"model": model} | without(row, ("responses_create_params", "response")),
        left_out={**no_verdict("info.success", success), **placeholders},
    )


def _is_placeholder(item: Mapping[str, Any]) -> bool:
    tokens = item.get("prompt_token_ids"), item.get("generation_token_ids")
    return tokens == _PLACEHOLDER and not text_of_content(item.get("content"))


def _prompt(params: Mapping[str, Any]) -> tuple[Message, ...]:
    given = params.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    if params.get("instructions"):
        items = [{"role": "system", "content": params["instructions"]}, *items]
    return chat_messages(items, "input", is_context=True)


def _items(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the output items. With transitions, each list begins with the one before: the last."""
    output = as_list(response.get("output"), "response.output")
    if output and isinstance(output[0], list):
        for before, after in pairwise(output):
            if after[: len(before)] != before:
                raise RecordError("each list of response.output must begin with the one before")
        output = items_of(output[-1])
    return [as_mapping(item, "an output item") for item in output]
