"""Rows of a prompt and its completion with several rewards: older verifiers, and TRL.

verifiers' are in `results.jsonl`, TRL's in `completions_*.parquet`, a column for each reward.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.chat_rows import (
    images_placed,
    info_of,
    messages_of_row,
)
from graphcredit.collector.importers.formats.row_columns import rows_in
from graphcredit.collector.importers.logs.files import Record, json_file
from graphcredit.collector.importers.messages.rollout import (
    LoggedRollout,
    LoggedSampling,
    Omission,
    Rollouts,
    prompt_name,
    sampling_of,
)
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_mapping,
    as_number,
    field_at,
    fields_of,
    first_of,
    items_of,
    joined,
    numbers_of,
    short,
)

_metadata = lru_cache(maxsize=16)(json_file)

_NO_TRL_REWARDS = frozenset({"step", "gen_step", "advantage"})
_NO_REWARDS = frozenset(
    {"id", "example_id", "reward", "generation_ms", "scoring_ms", "total_ms", "num_turns"}
)


def is_verifiers(value: object, path: Path) -> bool:
    """Return whether a record is a row of `results.jsonl`."""
    names = fields_of(value).keys()
    has_task = "example_id" in names or {"id", "answer"} <= names or {"id", "task"} <= names
    return {"prompt", "completion", "reward"} <= names and has_task


def read_verifiers(record: Record) -> Rollouts:
    """Yield the rollout of a row; model and sampling are in `metadata.json` beside the file."""
    row = as_mapping(record.value, "a row")
    metadata = _metadata(record.path.with_name("metadata.json"))
    task = joined(first_of(metadata, ("env_id", "env")), first_of(row, ("example_id", "id")))
    if row.get("error"):
        yield Omission(reason="rollout with an error of its environment")
        return
    if row["completion"] == []:
        yield Omission(reason="rollout with an empty completion")
        return
    num_repeated = _num_repeated(row["prompt"], row["completion"])
    answered = {**row, "completion": row["completion"][num_repeated:]} if num_repeated else row
    messages = messages_of_row(answered, sampling_of(metadata.get("sampling_args")))
    repeated = {"message of the prompt, which the completion repeats": num_repeated}
    yield LoggedRollout(
        messages=messages,
        record=row,
        label=task,
        group=prompt_name(messages) if _is_all_text(row["prompt"]) else None,
        task=task or None,
        reward=as_number(row.get("reward"), "reward"),
        rewards={k: v for k, v in numbers_of(row).items() if k not in _NO_REWARDS},
        truncated=row.get("is_truncated") is True,
        info={**info_of(row), "metadata": dict(metadata)} if metadata else info_of(row),
        left_out=repeated if num_repeated else {},
        notes=("a group has one prompt: the ids of older verifiers may stand for several",),
    )


def _num_repeated(prompt: object, completion: object) -> int:
    """Return how many messages a completion begins with that are those of the prompt."""
    given, answered = items_of(prompt), items_of(completion)
    again = map(_said, answered[: len(given)])
    return len(given) if len(given) < len(answered) and [*again] == [*map(_said, given)] else 0


def _said(message: object) -> tuple[Any, Any]:
    return field_at(message, "role"), field_at(message, "content")


def _is_all_text(prompt: object) -> bool:
    """Return whether a prompt can be told from others by its text: it has some, and no images."""
    messages = items_of(prompt) if isinstance(prompt, list) else [{"content": prompt}]
    contents = [field_at(message, "content") for message in messages]
    return any(contents) and all(isinstance(content, str | None) for content in contents)


def is_trl(value: object, path: Path) -> bool:
    """Return whether a record is a row of TRL's `completions_*.parquet`, or a batch of ms-swift."""
    return {"step", "prompt", "completion", "advantage"} <= rows_in(fields_of(value))[0].keys()


def read_trl(record: Record) -> Rollouts:
    """Yield the rollouts of a row; their rewards are columns, without a total."""
    for row in rows_in(as_mapping(record.value, "a row")):
        yield _trl(row)


def _trl(row: Mapping[str, Any]) -> LoggedRollout:
    step = row.get("step")
    if isinstance(step, str) and step.isdecimal():
        step = int(step)
    if not isinstance(step, int):
        raise RecordError(f"step must be a whole number: got {short(step)}")
    shown, unplaced = images_placed(row)
    rewards = numbers_of({k: v for k, v in row.items() if k not in _NO_TRL_REWARDS})
    no_total = (
        "TRL logs no total: the reward is the sum of its numeric columns, unless --reward weighs "
        "them"
    )
    return LoggedRollout(
        messages=messages_of_row(shown, LoggedSampling(policy_version=f"step-{step}")),
        record=row,
        label=f"step-{step}",
        iteration=step,
        reward=sum(rewards.values()) if rewards else None,
        rewards=rewards,
        info=info_of(shown),
        left_out=unplaced,
        notes=(no_total,) if len(rewards) > 1 else (),
    )
