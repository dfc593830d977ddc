"""Rows with a list of messages: OpenAI-style, tau-bench, SWE-smith, ShareGPT."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import chat_messages, is_chat
from graphcredit.collector.importers.messages.responses import answers_of, is_call, is_result
from graphcredit.collector.importers.messages.rollout import (
    NO_SAMPLING,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
    with_sampling,
)
from graphcredit.collector.importers.messages.row_images import with_images_placed
from graphcredit.collector.importers.messages.values import (
    RecordError,
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_verdict,
    field_at,
    fields_of,
    first_of,
    is_limit,
    joined,
    no_verdict,
    numbers_of,
    parse_json,
    without,
)

LISTS = ("messages", "traj", "conversations", "conversation", "trajectory", "history", "chat")
"""Fields that may have all messages of a rollout."""

PAIRS = (
    *(("prompt", "completion"), ("input", "output"), ("prompt", "response")),
    *(("input_prompt", "output_response"), ("instruction", "response")),
)
"""Fields that may have a prompt and what the policy answered."""

GROUPS = (
    *("group_id", "task_id", "instance_id", "example_id", "prompt_id", "problem_id"),
    *("item_id", "question_id", "game_file", "task_name"),
)
"""Fields that name the task; rollouts that share it form a group."""

REWARDS = ("reward", "score", "total_reward", "final_reward", "final_score", "return")
TURN_REWARDS = ("rewards", "turn_rewards", "step_rewards")
"""Fields that may have a list with the reward of each turn."""

SUCCESSES = (
    "success",
    "is_success",
    "resolved",
    "is_correct",
    "solved",
    "passed",
    "correct",
    "won",
)
STOPS = ("stop_reason", "finish_reason", "termination_reason", "terminate_reason", "exit_status")
NESTED = ("meta", "metadata", "info", "result")
"""Fields whose own fields may name task, reward and success."""


def is_row(value: object, path: Path) -> bool:
    """Return whether a record has messages, or a prompt with its completion."""
    row = fields_of(value)
    return is_chat(value) or _list_of(row) is not None or _pair_of(row) is not None


def _chat(value: object) -> object:
    """Return a list of messages, also where a data set has it as JSON text."""
    return parse_json(value) if isinstance(value, str) and value.startswith("[") else value


def _list_of(row: Mapping[str, Any]) -> str | None:
    """Return the name of the field with all messages."""
    return next((name for name in LISTS if is_chat(_chat(row.get(name)))), None)


def _pair_of(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the names of the fields with a prompt and its completion."""
    for prompt, completion in PAIRS:
        pair = (row.get(prompt), row.get(completion))
        if all(isinstance(value, str) or is_chat(value) for value in pair):
            return prompt, completion
    return None


def read(record: Record) -> Rollouts:
    """Yield the rollout of a row, or of a file that is one list of messages."""
    is_list = is_chat(record.value)
    source = {"messages": record.value} if is_list else as_mapping(record.value, "a row")
    lists = [_chat(source[name]) for name in LISTS if source.get(name) is not None]
    if lists and all(each == [] for each in lists) and _pair_of(source) is None:
        yield Omission(reason="row without messages")  # as of a failed rollout
        return
    row, unplaced = images_placed(source)
    policy = as_text(row.get("policy_version"))
    sampling = NO_SAMPLING if policy is None else LoggedSampling(policy_version=policy)
    trial = first_of(row, ("trial", "rollout_id", "rollout_index", "sample_idx"))
    task = as_text(_named(row, GROUPS))
    success = success_of(row)
    is_truncated = row.get("truncated")
    yield LoggedRollout(
        messages=_with_turn_rewards(messages_of_row(row, sampling), row),
        record=source,
        label=joined(task, trial),
        task=task,
        reward=_total(_named(row, REWARDS)),
        rewards=_named_rewards(row),
        success=as_verdict(success[1]),
        left_out={**no_verdict(*success), **unplaced},
        truncated=is_truncated if isinstance(is_truncated, bool) else is_limit(_named(row, STOPS)),
        info=info_of(row),
        notes=(_HAS_ERROR,) if row.get("error") else (),
    )


_HAS_ERROR = "some rows have an `error`; they are trajectories like the others"


def images_placed(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, int]]:
    """Return a row whose images beside the messages are in them, and what is left out of it."""
    name = _list_of(row)
    if name is not None:
        lists = {name: as_list(_chat(row[name]), name)}
    else:
        roles = zip(_pair_of(row) or (), ("user", "assistant"), strict=False)
        lists = {field: as_list(_as_chat(row[field], role), field) for field, role in roles}
    placed, num_left = with_images_placed(row, lists)
    return placed, {"image of a row without a place in its messages": num_left} if num_left else {}


def _named(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first field that is there, of the row or of what it nests."""
    return next((value for _, value in _named_fields(row, names)), None)


def _named_fields(row: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of these names that are not null: of the row, then of what it nests."""
    for part in (row, *(fields_of(row.get(name)) for name in NESTED)):
        for name in names:
            if part.get(name) is not None:
                yield name, part[name]


def _total(reward: object) -> float | None:
    """Return the sum of a list of rewards, of tokens or of turns; named ones have no agreed sum."""
    if isinstance(reward, list):
        return sum(as_number(each, "a reward") or 0.0 for each in cast("list[Any]", reward))
    return None if isinstance(reward, Mapping) else as_number(reward, "the reward")


def _with_turn_rewards(
    messages: tuple[Message, ...], row: Mapping[str, Any]
) -> tuple[Message, ...]:
    """Return messages with the rewards of the turns, if a list has one for each."""
    lists = (row.get(name) for name in (*TURN_REWARDS, *REWARDS))
    listed = [cast("list[Any]", rewards) for rewards in lists if isinstance(rewards, list)]
    if not listed:
        return messages
    num_turns = sum(message.is_answer for message in messages)
    rewards = next((iter(r) for r in listed if len(r) == num_turns > 1), None)
    if rewards is None:
        return messages
    return tuple(
        replace(message, reward=as_number(next(rewards), "a turn's reward"))
        if message.is_answer
        else message
        for message in messages
    )


def messages_of_row(row: Mapping[str, Any], sampling: LoggedSampling) -> tuple[Message, ...]:
    """Return the messages of a row; those of a prompt are context.

    Raises:
        RecordError: The row has none.
    """
    name = _list_of(row)
    pair = _pair_of(row) if name is None else None
    if name is None and pair is None:  # the error says what is wrong with a list
        name = next((name for name in LISTS if name in row), None)
    if name is not None:
        return _messages_of_list(as_list(_chat(row[name]), name), name, sampling)
    if pair is None:
        names = ", ".join(row) or "none"
        raise RecordError(
            f"a row must have a list of messages ({', '.join(LISTS)}), or prompt and completion: "
            f"found none in its fields: {names}"
        )
    prompt = chat_messages(_as_chat(row[pair[0]], "user"), pair[0], is_context=True)
    answers = chat_messages(_as_chat(row[pair[1]], "assistant"), pair[1])
    return (*prompt, *(with_sampling(message, sampling) for message in answers))


def _messages_of_list(items: list[Any], name: str, sampling: LoggedSampling) -> tuple[Message, ...]:
    """Return the messages of a list, which may be items of the Responses API."""
    try:
        messages = chat_messages(items, name)
    except RecordError:
        kinds = [field_at(item, "type") for item in items]
        if any(is_call(kind) or is_result(kind) for kind in kinds):
            return tuple(answers_of([as_mapping(item, name) for item in items], sampling))
        raise
    # An answer that the log excludes from training is context: an example, or a stub.
    excluded = [m.source.get("loss") is False or m.source.get("weight") == 0 for m in messages]
    if any(excluded):
        pairs = zip(messages, excluded, strict=True)
        messages = tuple([replace(m, is_context=True) if is_no else m for m, is_no in pairs])
    if sampling is NO_SAMPLING:
        return messages
    return tuple(with_sampling(message, sampling) for message in messages)


def _as_chat(value: object, role: str) -> object:
    return [{"role": role, "content": value}] if isinstance(value, str) else value


def _named_rewards(row: Mapping[str, Any]) -> dict[str, float]:
    named = numbers_of(row)
    for name in ("metrics", "scores", "rewards", *REWARDS):
        named |= numbers_of(row.get(name))
    return named


def success_of(row: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the field of a row that says whether its task was accomplished, and its value.

    The first that says yes or no, else the first that is there, else null: `correct` may be the
    answer.
    """
    fields = list(_named_fields(row, SUCCESSES))
    if isinstance(row.get("target"), bool):
        fields.append(("target", row["target"]))
    clear = (field for field in fields if as_verdict(field[1]) is not None)
    return next(clear, fields[0] if fields else ("", None))


def info_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row says besides its messages."""
    return without(row, {*LISTS, *(name for pair in PAIRS for name in pair)})
