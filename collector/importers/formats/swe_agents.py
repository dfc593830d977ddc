"""SWE-agent's `.traj` and mini-swe-agent's `.traj.json`: what an agent ran to mend an instance.

A file has no reward: that is in a report of its own. SWE-agent logs the actions that ran, what they
printed, and the state after them; mini-swe-agent of version 1 and 2 logs messages.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record, stem_of
from graphcredit.collector.importers.messages.chat import chat_message, chat_messages, seen
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    TOOL,
    LoggedRollout,
    LoggedSampling,
    Message,
    Rollouts,
    sampling_of,
    with_sampling,
)
from graphcredit.collector.importers.messages.values import (
    as_list,
    as_mapping,
    as_objects,
    as_text,
    field_at,
    fields_of,
    is_limit,
    parse_json,
    without,
)

_LIMITS = (
    *("exit_cost", "exit_context", "exit_total_execution_time", "exit_command_timeout"),
    "limit",
)
_MINI_LIMITS = ("TimeExceeded", "ContextWindowExceededError")
_COMMAND = re.compile(r"```(?:bash|sh|mswea_bash_command)[ \t]*\n(.*?)\n?```", re.DOTALL)

_OF_RUN = frozenset({"info", "history", "environment", "replay_config", "attempts"})
_OF_ATTEMPT = (
    *("info", "environment", "replay_config", "trajectory.*.state", "trajectory.*.query"),
    *("trajectory.*.extra_info", "trajectory.*.messages", "history.*.agent"),
)
ASIDE = (*_OF_ATTEMPT, *(f"attempts.*.{name}" for name in _OF_ATTEMPT))
"""What describes the run; the state, for `--state column:state`; and what the steps have."""


def is_swe_agent(value: object, path: Path) -> bool:
    """Return whether a record is a `.traj` file of actions and observations."""
    steps = [fields_of(field_at(value, f"{at}trajectory.0")) for at in ("", "attempts.0.")]
    is_its = path.suffix == ".traj" or not _OF_RUN.isdisjoint(fields_of(value))
    return is_its and any({"action", "observation"} <= step.keys() for step in steps)


def read_swe_agent(record: Record) -> Rollouts:
    """Yield the rollout of a file, or those of all attempts, of which its own is one."""
    log = as_mapping(record.value, "a rollout")
    attempts = as_objects(log.get("attempts"), "attempts", "an attempt")
    instance = as_text(log.get("instance_id")) or stem_of(record.path)
    for number, attempt in enumerate(attempts):
        is_chosen = attempt.get("trajectory") == log.get("trajectory")
        label = instance if is_chosen else f"{instance}:attempt-{number}"
        yield _swe_agent_rollout({**log, **attempt}, instance, label)
    if not attempts:
        yield _swe_agent_rollout(log, instance, instance)


def _swe_agent_rollout(log: Mapping[str, Any], instance: str, label: str) -> LoggedRollout:
    config = log.get("replay_config")  # some versions have it as JSON text
    model = field_at(parse_json(config) if isinstance(config, str) else config, "agent.model")
    exit_status = as_text(field_at(log, "info.exit_status")) or ""
    kept = {name: log[name] for name in log if name in ("info", "environment")}
    return LoggedRollout(
        messages=(*_prompt(log), *_steps(log, sampling_of(model))),
        record=log,
        label=label,
        task=instance,
        truncated=any(word in exit_status for word in _LIMITS),
        info={**without(kept, ()), "model": field_at(model, "name")},
    )


def _prompt(log: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages before the first action; demonstrations are context."""
    prompt: list[Any] = []
    for message in as_list(log.get("history") or [], "history"):
        raw = as_mapping(message, "history")
        if raw.get("role") == ASSISTANT and not raw.get("is_demo"):
            break
        prompt.append(raw)
    return chat_messages(prompt, "history", is_context=True)


def _steps(log: Mapping[str, Any], settings: LoggedSampling) -> Iterator[Message]:
    for item in as_list(log["trajectory"], "trajectory"):
        step = as_mapping(item, "a step")
        results = ("observation", "state")
        yield Message(
            role=ASSISTANT,
            text=text_of_content(step.get("response")),
            thought=text_of_content(step.get("thought")),
            action=text_of_content(step.get("action")),
            sampling=settings,
            source={k: v for k, v in step.items() if k not in (*results, "messages")},
        )
        yield Message(
            role=TOOL,
            text=text_of_content(step.get("observation")),
            source={k: step[k] for k in results if step.get(k) is not None},
        )


def is_mini(value: object, path: Path) -> bool:
    """Return whether a record is a trajectory of mini-swe-agent."""
    log = fields_of(value)
    version = log.get("trajectory_format")
    is_named = isinstance(version, str) and version.startswith("mini-swe-agent")
    return "messages" in log and (is_named or field_at(log, "info.mini_version") is not None)


def read_mini(record: Record) -> Rollouts:
    """Yield the rollout of a file."""
    log = as_mapping(record.value, "a rollout")
    instance = as_text(log.get("instance_id")) or record.path.name.partition(".")[0]
    status = as_text(field_at(log, "info.exit_status")) or ""
    sampling = sampling_of(field_at(log, "info.config.model.model_kwargs"))
    yield LoggedRollout(
        messages=tuple(_messages(as_list(log["messages"], "messages"), sampling)),
        record=log,
        label=instance,
        task=instance,
        truncated=is_limit(status) or status in _MINI_LIMITS,
        info={
            "exit_status": status,
            "submission": field_at(log, "info.submission"),
            "model": as_text(field_at(log, "info.config.model.model_name")),
        },
    )


def _messages(items: list[Any], sampling: LoggedSampling) -> Iterator[Message]:
    for number, item in enumerate(items):
        what = f"messages[{number}]"
        raw = as_mapping(item, what)
        if raw.get("role") == "exit":
            yield seen(TOOL, raw.get("content"), raw)
        elif raw.get("object") == "response" or "role" not in raw:
            is_whole = raw.get("object") == "response"
            said = as_list(raw.get("output"), f"{what}.output") if is_whole else [raw]
            yield from (with_sampling(m, sampling) for m in chat_messages(said, "output"))
        else:
            message = chat_message(raw, what)
            yield _answer(message, sampling) if message.role == ASSISTANT else message


def _answer(message: Message, sampling: LoggedSampling) -> Message:
    """Return an answer; its action is the command, which stands in a block of its text."""
    commands = _COMMAND.findall(message.text)
    if len(commands) != 1 or message.tool_calls:
        return replace(message, sampling=sampling)
    spoken = _COMMAND.sub("", message.text).strip()
    said = message.said or message.text
    return replace(message, text=spoken, action=commands[0].strip(), said=said, sampling=sampling)
