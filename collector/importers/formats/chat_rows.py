"""Rows with a list of messages: OpenAI-style, tau-bench, SWE-smith, ShareGPT."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.row_columns import rows_in
from graphcredit.collector.importers.formats.row_messages import (
    LISTS,
    answers_in,
    chat_of,
    given_in,
    list_of,
    messages_in,
    pair_of,
)
from graphcredit.collector.importers.formats.row_verdicts import (
    REWARDS,
    named_fields,
    reward_of,
    rewards_of,
    success_of,
)
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.answers import sources_of
from graphcredit.collector.importers.messages.chat import is_chat
from graphcredit.collector.importers.messages.rollout import (
    NO_SAMPLING,
    OF_SUBAGENT,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
    are_plain,
    with_sampling,
    words_of,
)
from graphcredit.collector.importers.messages.row_images import with_images_placed
from graphcredit.collector.importers.messages.row_results import with_results_of
from graphcredit.collector.importers.messages.values import (
    NESTED,
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_verdict,
    field_at,
    fields_of,
    first_of,
    is_limit,
    items_of,
    joined,
    no_verdict,
    snake_cased,
    without,
)

GROUPS = (
    *("group_id", "task_id", "instance_id", "example_id", "prompt_id", "problem_id"),
    *("item_id", "question_id", "game_file", "task_name", "task_key", "task_hash"),
    *("dataset_item_id", "reference_example_id", "row_id", "scenario_id", "scenario"),
    *("task", "task_index", "question", "env_id", "uid"),
)
"""Fields that name the task, the surest first; rollouts that share it form a group."""

TURN_REWARDS = ("rewards", "turn_rewards", "step_rewards")
"""Fields that may have a list with the reward of each turn."""

STOPS = ("stop_reason", "finish_reason", "termination_reason", "terminate_reason", "exit_status")


def is_row(value: object, path: Path) -> bool:
    """Return whether a record has messages, or a prompt with its completion."""
    if is_chat(value):
        return True
    row = rows_in(fields_of(value))[0]
    return list_of(row) is not None or pair_of(row) is not None


def read(record: Record) -> Rollouts:
    """Yield the rollouts of a row, or of a file that is one list of messages."""
    if is_chat(record.value):
        yield from _read_row({"messages": record.value})
        return
    for row in rows_in(as_mapping(record.value, "a row")):
        yield from _read_row(row)


def _read_row(source: Mapping[str, Any]) -> Rollouts:
    lists = [chat_of(source[name]) for name in LISTS if source.get(name) is not None]
    if lists and all(each == [] for each in lists) and pair_of(source) is None:
        yield Omission(reason="row without messages")  # as of a failed rollout
        return
    if field_at(source, "info.parentID") is not None:  # opencode
        yield OF_SUBAGENT
        return
    row, unplaced = images_placed(source)
    says = snake_cased(row)
    policy = as_text(says.get("policy_version"))
    sampling = NO_SAMPLING if policy is None else LoggedSampling(policy_version=policy)
    trial = first_of(says, ("trial", "rollout_id", "rollout_index", "sample_idx"))
    task = task_of(says)
    success = success_of(says)
    reward, score = reward_of(says)
    is_truncated = says.get("truncated")
    stopped = next((reason for _, reason in named_fields(says, STOPS)), None)
    messages = with_results_of(row, messages_of_row(row, sampling))
    messages, unused = _with_turn_rewards(messages, says)
    yield LoggedRollout(
        messages=messages,
        record=source,
        label=joined(task, trial),
        task=task,
        reward=reward,
        rewards=rewards_of(row),
        success=as_verdict(success[1]),
        left_out={**no_verdict(*success), **unplaced, **unused},
        truncated=is_truncated if isinstance(is_truncated, bool) else is_limit(stopped),
        info=info_of(row),
        notes=tuple(_notes(row, score)),
    )


def _notes(row: Mapping[str, Any], score: str | None) -> Iterator[str]:
    if row.get("error"):
        yield "some rows have an `error`; they are rollouts like the others"
    if score is not None:
        yield f"the reward is the score {score!r}: --reward or --success choose another"


def images_placed(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, int]]:
    """Return a row whose images beside the messages are in them, and what is left out of it."""
    name, pair = list_of(row), pair_of(row)
    if name is not None:
        lists = {name: as_list(chat_of(row[name]), name)}
    elif pair is not None:
        lists = {pair[0]: given_in(row, pair[0]), pair[1]: answers_in(row[pair[1]])}
    else:
        lists = {}
    placed, num_left = with_images_placed(row, lists)
    return placed, {"image of a row without a place in its messages": num_left} if num_left else {}


def task_of(*parts: Mapping[str, Any]) -> str | None:
    """Return the name of the task, of a row or of what it nests: the surest name in any of them."""
    every = [each for part in parts for each in (part, *map(part.get, NESTED))]
    found = [snake_cased(fields) for each in every if (fields := fields_of(each))]
    values = (part.get(name) for name in GROUPS for part in found)
    names = (first_of(fields_of(v), ("id", *GROUPS, "name")) or v for v in values)
    name = next((as_text(name) for name in names if name not in (None, "", {}, [])), None)
    return name if name is None or len(name) <= _MOST_NAME else words_of(name)


_MOST_NAME = 200
"""Characters of a name; of a longer one, such as a question, the first words and a digest stand."""


def _with_turn_rewards(
    messages: tuple[Message, ...], row: Mapping[str, Any]
) -> tuple[tuple[Message, ...], dict[str, int]]:
    """Return messages with the rewards of the turns, if a list has one for each; else count it.

    A list may have a value for each message of the log instead, of which some are one answer.
    """
    lists = (row.get(name) for name in (*TURN_REWARDS, *REWARDS))
    listed = [items_of(rewards) for rewards in lists if isinstance(rewards, list)]
    if not listed:
        return _with_own_rewards(messages), {}
    sizes = [len(sources_of(message)) if message.is_answer else 0 for message in messages]
    of_all = [size or 1 for size in sizes]
    num_turns, is_joined = sum(map(bool, sizes)), max(sizes, default=0) > 1
    is_listed = any(isinstance(row.get(name), list) for name in TURN_REWARDS)
    for spans in ([min(size, 1) for size in sizes], sizes, [] if is_joined else of_all):
        rewards = next((r for r in listed if len(r) == sum(spans) > 1), None)
        if rewards is not None and num_turns > 1:
            values = iter(rewards)
            parts = [list(islice(values, span)) for span in spans]
            pairs = zip(messages, map(_sum_of, parts), strict=True)
            return tuple([replace(m, reward=r) if m.is_answer else m for m, r in pairs]), {}
    if num_turns > 1 and is_listed:
        return messages, {_OTHER_LENGTH: 1}
    return _with_own_rewards(messages), {}


def _with_own_rewards(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return messages with the rewards that they have themselves, or what followed them has."""
    if are_plain(messages):
        return messages
    rewards: dict[int, float] = {}
    last: int | None = None
    for number, message in enumerate(messages):
        last = number if message.is_answer else last
        reward = message.source.get("reward")
        if last is not None and isinstance(reward, int | float):
            given = as_number(reward, "a message's reward") or 0.0
            rewards[last] = rewards.get(last, 0.0) + given
    if not rewards:
        return messages
    return tuple(
        [replace(m, reward=rewards[n]) if n in rewards else m for n, m in enumerate(messages)]
    )


_OTHER_LENGTH = "list of rewards with another length than the turns: no turn has a reward"


def _sum_of(rewards: Sequence[Any]) -> float | None:
    numbers = [as_number(reward, "a turn's reward") for reward in rewards]
    kept = [number for number in numbers if number is not None]
    return sum(kept) if kept else None


def messages_of_row(row: Mapping[str, Any], sampling: LoggedSampling) -> tuple[Message, ...]:
    """Return the messages of a row, as sampled so; those of a prompt are context."""
    messages = messages_in(row)
    if are_plain(messages) and sampling is NO_SAMPLING:
        return messages
    # An answer that the log excludes from training is context: an example, or a stub.
    excluded = [m.source.get("loss") is False or m.source.get("weight") == 0 for m in messages]
    if any(excluded):
        pairs = zip(messages, excluded, strict=True)
        messages = tuple([replace(m, is_context=True) if is_no else m for m, is_no in pairs])
    if sampling is NO_SAMPLING:
        return messages
    return tuple(with_sampling(message, sampling) for message in messages)


def info_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row says besides its messages."""
    name, pair = list_of(row), pair_of(row)
    return without(row, {name or "", *(pair or ())})
