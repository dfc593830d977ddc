"""NVIDIA's NeMo: rollouts of NeMo Gym, and the training data of NeMo-RL.

NeMo Gym has items of the Responses API, observations among them. NeMo-RL's
`train_data_step{n}.jsonl` has the tokens of a rollout, and which of them were sampled. Each run of
sampled tokens is a step. It has the texts of the messages, but not their roles: these follow from
the runs. Texts that it lacks are named by a digest of their tokens.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import chat_messages
from graphcredit.collector.importers.messages.content import text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    NO_SAMPLING,
    USER,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
    sampling_of,
    with_sampling,
)
from graphcredit.collector.importers.messages.tokens import runs_of
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

_FILE = re.compile(r"(train|val)_data_step(\d+)")


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


def is_rl(value: object, path: Path) -> bool:
    """Return whether a record is a sample of NeMo-RL's training data, or of its validation."""
    names = fields_of(value).keys()
    is_sample = {"rewards", "token_loss_mask"} <= names and bool({"token_ids", "content"} & names)
    return is_sample or ("rewards" in names and _FILE.match(path.name) is not None)


def read_rl(record: Record) -> Rollouts:
    """Yield the rollout of a sample."""
    sample = as_mapping(record.value, "a sample")
    row = {name: _single(value) for name, value in sample.items()}
    file = _FILE.match(record.path.name)
    if file is not None and file[1] == "val":
        yield Omission(reason="sample of validation")
        return
    step = int(file[2]) if file is not None else None
    names = ("rewards", "filtered_rewards", "sample_loss_mask", "agent_ref", "idx")
    yield LoggedRollout(
        messages=tuple(_messages(row)),
        record=sample,
        label="" if step is None else f"step-{step}",
        iteration=step,
        reward=as_number(row.get("rewards"), "rewards"),
        rewards=numbers_of(row),
        info={name: row[name] for name in names if row.get(name) is not None},
        notes=("groups are samples with one prompt: NeMo-RL logs no id of a group",),
    )


def _single(value: Any) -> Any:
    """Return the value of one sample; NeMo-RL logs batches of one."""
    return value[0] if len(items_of(value)) == 1 else value


def _messages(row: Mapping[str, Any]) -> Iterator[Message]:
    mask = as_list(row.get("token_loss_mask"), "token_loss_mask")
    length = row.get("input_lengths")
    runs = list(runs_of(mask[: length if isinstance(length, int) else None]))
    if not any(is_sampled for is_sampled, _, _ in runs):
        return
    tokens, logprobs = row.get("token_ids"), row.get("generation_logprobs")
    ids = as_list(tokens, "token_ids") if tokens is not None else None
    texts = _texts(row.get("content"), runs, ids)
    for (is_sampled, first, end), text in zip(runs, texts, strict=True):
        sampling = LoggedSampling(
            prompt_ids=None if ids is None else list(ids[:first]),
            response_ids=None if ids is None else list(ids[first:end]),
            response_logprobs=None if logprobs is None else list(logprobs[first:end]),
        )
        yield Message(
            role=ASSISTANT if is_sampled else USER,
            text=text,
            sampling=sampling if is_sampled else NO_SAMPLING,
            source={"content": text},
        )


def _texts(
    content: object, runs: Sequence[tuple[bool, int, int]], ids: Sequence[int] | None
) -> list[str]:
    """Return the text of each run: those of the messages before the first answer are one."""
    parts = items_of(content)
    num_before = len(parts) - (len(runs) - 1)
    if num_before >= 1 and not runs[0][0]:
        prompt = "\n\n".join(text_of_content(part) for part in parts[:num_before])
        return [prompt, *(text_of_content(part) for part in parts[num_before:])]
    if ids is None:
        raise RecordError("content must have a text for each message, or token_ids must be there")
    names = [_name(ids[first:end]) for _, first, end in runs]
    is_one_answer = [flag for flag, _, _ in runs] == [False, True]
    return [names[0], content] if isinstance(content, str) and is_one_answer else names


def _name(ids: Sequence[int]) -> str:
    digest = hashlib.sha256(" ".join(map(str, ids)).encode()).hexdigest()[:12]
    return f"{len(ids)} tokens #{digest}"
