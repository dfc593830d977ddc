"""Logs of trainers: rLLM's episodes, ART's Parquet."""

from collections.abc import Iterator, Sequence
from typing import Any

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import chat_message, chat_messages, seen
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    EVALUATED,
    USER,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
    run_of_evaluation,
    with_sampling,
)
from graphcredit.collector.importers.messages.values import (
    as_integer,
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_verdict,
    fields_of,
    is_limit,
    joined,
    no_verdict,
    numbers_of,
    parse_json,
    version_of,
    without,
)

RLLM_ASIDE = (
    *("task", "task_hash", "termination_reason", "info", "metadata", "trajectories.*.name"),
    *("trajectories.*.uid", "trajectories.*.info", "trajectories.*.task"),
    *("trajectories.*.steps.*.info", "trajectories.*.steps.*.chat_completions.*.reasoning"),
)
"""What describes an episode."""


def read_rllm(record: Record) -> Rollouts:
    """Yield the rollouts of an episode: one for each of its trajectories."""
    episode = as_mapping(record.value, "an episode")
    trajectories = as_list(episode["trajectories"], "trajectories")
    if not trajectories:
        yield Omission(reason="episode without a trajectory")
    correct = episode.get("is_correct")
    task = as_text(episode.get("task_hash"))
    is_evaluation = any(part.startswith("val_") for part in record.path.parts[-2:])
    for number, item in enumerate(trajectories):
        trajectory = as_mapping(item, f"trajectories[{number}]")
        name = as_text(trajectory.get("name")) or str(number)
        role = f"/{name}" if len(trajectories) > 1 else ""
        reward = as_number(trajectory.get("reward"), "reward")
        is_judged = bool(role) and reward is not None  # the episode's verdict is on all its roles
        yield LoggedRollout(
            messages=tuple(_rllm_messages(as_list(trajectory.get("steps"), "steps"))),
            record={**episode, "trajectories": [trajectory]},
            label=f"{as_text(episode['episode_id'])}{role}",
            task=None if task is None else f"{task}{role}",
            run=run_of_evaluation(None) if is_evaluation else None,
            iteration=as_integer(episode.get("training_step")),
            notes=(EVALUATED,) if is_evaluation else (),
            reward=reward,
            rewards=numbers_of(episode.get("metrics")),
            success=None if is_judged else as_verdict(correct),
            left_out=no_verdict("is_correct", correct),
            truncated=is_limit(as_text(episode.get("termination_reason"))),
            info=without(episode, ("trajectories",)),
        )


def _rllm_messages(steps: Sequence[Any]) -> Iterator[Message]:
    for item in steps:
        step = as_mapping(item, "a step")
        observation = step.get("observation")
        if observation is None:
            yield from _last_seen(step.get("chat_completions"))
        else:
            yield seen(USER, observation, {"observation": observation})
        action = text_of_content(step.get("action"))
        yield Message(
            role=ASSISTANT,
            text=text_of_content(step.get("model_response")) or action,
            thought=text_of_content(step.get("thought")),
            action=action or None,
            reward=as_number(step.get("reward"), "a step's reward"),
            sampling=LoggedSampling(policy_version=as_text(step.get("weight_version"))),
            source=without(step, ("chat_completions",)),
        )


def _last_seen(chat: object) -> Iterator[Message]:
    """Yield what the policy had seen since its answer before, from a step's conversation."""
    messages = list(chat_messages(chat or [], "chat_completions", is_context=True))
    if messages and messages[-1].role == ASSISTANT:
        messages.pop()
    answers = [number for number, message in enumerate(messages) if message.role == ASSISTANT]
    yield from messages[answers[-1] + 1 if answers else 0 :]


def read_art(record: Record) -> Rollouts:
    """Yield the rollout of a row; its file is called after the training step."""
    row = as_mapping(record.value, "a row")
    step, split = record.path.name.partition(".")[0], record.path.parent.name
    whole = fields_of(parse_json(as_text(row.get("trajectory_json")) or ""))
    versions = (whole.get("initial_policy_version"), whole.get("final_policy_version"))
    sampling = LoggedSampling(policy_version=version_of(*versions))
    group = f"{split}:{step}:{row['group_index']}"
    messages = enumerate(as_list(row["messages"], "messages"))
    yield LoggedRollout(
        messages=tuple([with_sampling(_art_message(raw, n), sampling) for n, raw in messages]),
        record=without(row, ()),
        label=joined(group, row.get("trajectory_index")),
        group=group,
        run=run_of_evaluation(None) if split == "val" else None,
        notes=(EVALUATED,) if split == "val" else (),
        iteration=int(step) if step.isdecimal() else None,
        reward=as_number(row["reward"], "reward"),
        rewards=numbers_of(parse_json(row.get("metrics") or "")),
        info={n: row[n] for n in ("metrics", "metadata") if row.get(n) not in (None, "{}")},
    )


def _art_message(value: object, number: int) -> Message:
    """Return a message; of the assistant's, those that are not trainable are context."""
    raw = as_mapping(value, f"messages[{number}]")
    is_context = raw.get("trainable") is False
    return chat_message(raw, f"messages[{number}]", is_context=is_context)
