"""Logs of trainers: rLLM's episodes, ART's Parquet, TitanRL's samples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.logs.chat import chat_message, chat_messages
from graphcredit.collector.importers.logs.image_parts import images_of
from graphcredit.collector.importers.logs.messages import (
    ASSISTANT,
    EVALUATED,
    USER,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    run_of_evaluation,
    with_sampling,
)
from graphcredit.collector.importers.logs.records import Record
from graphcredit.collector.importers.logs.values import (
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_verdict,
    first_of,
    is_limit,
    no_verdict,
    numbers_of,
    parse_json,
    text_of_content,
    version_of,
)

FILTERED = (
    "TitanRL keeps the best and the worst rollout of a group by default: then rates of success "
    "and advantages of groups are wrong. Turn its filter off before you trust them"
)


def _has(value: object, *names: str) -> bool:
    return isinstance(value, Mapping) and set(names) <= cast("Mapping[str, Any]", value).keys()


def is_rllm(value: object, path: Path) -> bool:
    """Return whether a record is an episode of rLLM."""
    return _has(value, "episode_id", "trajectories", "task")


def read_rllm(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollouts of an episode: one for each of its trajectories."""
    episode = as_mapping(record.value, "an episode")
    trajectories = as_list(episode["trajectories"], "trajectories")
    if not trajectories:
        yield Omission(reason="episode without a trajectory")
    step = episode.get("training_step")
    reason = as_text(episode.get("termination_reason")) or ""
    correct = episode.get("is_correct")
    task = as_text(first_of(episode, ("task_hash",)))
    is_evaluation = any(part.startswith("val_") for part in record.path.parts[-2:])
    for number, item in enumerate(trajectories):
        trajectory = as_mapping(item, f"trajectories[{number}]")
        name = as_text(trajectory.get("name")) or str(number)
        role = f"/{name}" if len(trajectories) > 1 else ""
        yield LoggedRollout(
            messages=tuple(_rllm_messages(as_list(trajectory.get("steps"), "steps"))),
            record={**episode, "trajectories": [trajectory]},
            label=f"{as_text(episode['episode_id'])}{role}",
            task=None if task is None else f"{task}{role}",
            run=run_of_evaluation(None) if is_evaluation else None,
            iteration=step if isinstance(step, int) else None,
            notes=(EVALUATED,) if is_evaluation else (),
            reward=as_number(trajectory.get("reward"), "reward"),
            rewards=numbers_of(_mapping(episode.get("metrics"))),
            success=as_verdict(correct),
            left_out=no_verdict("is_correct", correct),
            truncated=is_limit(reason),
            info={k: v for k, v in episode.items() if k != "trajectories" and v is not None},
        )


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _rllm_messages(steps: Sequence[Any]) -> Iterator[Message]:
    for item in steps:
        step = as_mapping(item, "a step")
        seen = step.get("observation")
        if seen is None:
            yield from _last_seen(step.get("chat_completions"))
        else:
            yield Message(
                role=USER,
                text=text_of_content(seen),
                image_parts=images_of(seen),
                source={"observation": seen},
            )
        action = step.get("action")
        answer = text_of_content(step.get("model_response"))
        yield Message(
            role=ASSISTANT,
            text=answer or text_of_content(action),
            thought=text_of_content(step.get("thought")),
            action=text_of_content(action) or None,
            reward=as_number(step.get("reward"), "a step's reward"),
            source={k: v for k, v in step.items() if k != "chat_completions" and v is not None},
        )


def _last_seen(chat: object) -> Iterator[Message]:
    """Yield what the policy had seen since its answer before, from a step's conversation."""
    messages = list(chat_messages(chat or [], "chat_completions", is_context=True))
    if messages and messages[-1].role == ASSISTANT:
        messages.pop()
    answers = [number for number, message in enumerate(messages) if message.role == ASSISTANT]
    yield from messages[answers[-1] + 1 if answers else 0 :]


def is_art(value: object, path: Path) -> bool:
    """Return whether a record is a row of ART's Parquet."""
    return _has(value, "group_index", "messages", "reward")


def read_art(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollout of a row; its file is called after the training step."""
    row = as_mapping(record.value, "a row")
    step = record.path.name.partition(".")[0]
    split = record.path.parent.name
    whole = _mapping(parse_json(as_text(row.get("trajectory_json")) or ""))
    sampling = LoggedSampling(
        policy_version=version_of(
            whole.get("initial_policy_version"), whole.get("final_policy_version")
        )
    )
    messages = [
        with_sampling(_art_message(raw, number), sampling)
        for number, raw in enumerate(as_list(row["messages"], "messages"))
    ]
    metrics = parse_json(row.get("metrics") or "")
    index = as_text(row.get("trajectory_index"))
    group = f"{split}:{step}:{row['group_index']}"
    yield LoggedRollout(
        messages=tuple(messages),
        record={k: v for k, v in row.items() if v is not None},
        label=group if index is None else f"{group}:{index}",
        group=group,
        run=run_of_evaluation(None) if split == "val" else None,
        notes=(EVALUATED,) if split == "val" else (),
        iteration=int(step) if step.isdecimal() else None,
        reward=as_number(row["reward"], "reward"),
        rewards=numbers_of(_mapping(metrics)),
        info={
            name: row[name] for name in ("metrics", "metadata") if row.get(name) not in (None, "{}")
        },
    )


def _art_message(value: object, number: int) -> Message:
    """Return a message; of the assistant's, those that are not trainable are context."""
    raw = dict(as_mapping(value, f"messages[{number}]"))
    calls = raw.get("tool_calls")
    if isinstance(calls, str):
        raw["tool_calls"] = parse_json(calls)
    is_context = raw.get("trainable") is False
    return chat_message(raw, f"messages[{number}]", is_context=is_context)


def is_titan(value: object, path: Path) -> bool:
    """Return whether a record is a sample of TitanRL."""
    return _has(value, "group_id", "rollout_id", "turns")


def read_titan(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollout of a sample: the prompt of its first turn, then answers and results."""
    row = as_mapping(record.value, "a sample")
    if row.get("is_validation") is True:
        yield Omission(reason="sample of validation")
        return
    turns = [as_mapping(turn, "a turn") for turn in as_list(row["turns"], "turns")]
    messages: list[Message] = []
    for number, turn in enumerate(turns):
        if not number:
            messages += chat_messages(
                turn.get("prompt_messages") or [], "prompt_messages", is_context=True
            )
        messages.append(_titan_answer(turn))
        messages += chat_messages(turn.get("env_messages") or [], "env_messages")
    status = (as_text(row.get("status")) or "").lower()
    yield LoggedRollout(
        messages=tuple(messages),
        record=row,
        label=as_text(row["rollout_id"]) or "",
        group=as_text(row["group_id"]),
        reward=as_number(row.get("reward"), "reward"),
        rewards=numbers_of(_mapping(row.get("reward_breakdown"))),
        truncated=is_limit(status),
        info={k: v for k, v in row.items() if k != "turns" and v is not None},
        notes=(FILTERED,),
    )


def _titan_answer(turn: Mapping[str, Any]) -> Message:
    message = chat_message(turn.get("completion_message"), "completion_message")
    rewards = turn.get("env_rewards")
    if isinstance(rewards, list | Mapping):
        parts = cast("Any", rewards)
        values = list(parts.values()) if isinstance(rewards, Mapping) else list(parts)
        reward = sum(as_number(value, "env_rewards") or 0.0 for value in values)
    else:
        reward = as_number(rewards, "env_rewards")
    return replace(
        message,
        reward=reward,
        sampling=LoggedSampling(
            prompt_ids=turn.get("prompt_token_ids"),
            response_ids=turn.get("completion_token_ids"),
            response_logprobs=turn.get("completion_logprobs"),
            policy_version=version_of(
                turn.get("min_policy_version"), turn.get("max_policy_version")
            ),
        ),
    )
