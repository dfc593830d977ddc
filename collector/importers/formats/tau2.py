"""tau2-bench: `results.json` with simulations, and single simulations.

The agent sees what the user says to it, and the results of its own tools. The calls that the user
makes on a device of its own, and their results, are not for the agent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.chat import chat_message
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
    Rollouts,
    each_part,
    sampling_of,
)
from graphcredit.collector.importers.messages.values import (
    as_list,
    as_mapping,
    as_number,
    as_text,
    field_at,
    fields_of,
    is_limit,
    items_of,
    joined,
    numbers_of,
    without,
)

_OWN = frozenset({"task_id", "messages"})


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a file of results, or one simulation."""
    log = fields_of(value)
    if isinstance(log.get("simulations"), list):
        return "tasks" in log or "info" in log
    return _OWN | {"reward_info", "termination_reason"} <= log.keys()


def read(record: Record) -> Rollouts:
    """Yield the rollouts of the simulations; those with a failed system are left out."""
    log = as_mapping(record.value, "results")
    if "simulations" not in log:
        yield from _simulation(log, {})
        return
    settings = fields_of(log.get("info"))
    simulations = as_list(log["simulations"], "simulations")
    if not simulations:
        yield Omission(reason="file of results without simulations")
    yield from each_part(simulations, "simulations", lambda one: _simulation(one, settings))


def _simulation(simulation: Mapping[str, Any], settings: Mapping[str, Any]) -> Rollouts:
    reason = as_text(simulation.get("termination_reason")) or ""
    if "infrastructure" in reason:
        yield Omission(reason="simulation that an error of its infrastructure ended")
        return
    domain = field_at(settings, "environment_info.domain_name")
    task = joined(domain, simulation.get("task_id"))
    raw = [as_mapping(m, "a message") for m in _flat(simulation.get("messages"))]
    seen = [message for message in raw if not _is_of_the_users_tools(message)]
    unseen = {"message between the user and its own tools": len(raw) - len(seen)}
    yield LoggedRollout(
        messages=tuple(_messages(seen, sampling_of(field_at(settings, "agent_info.llm_args")))),
        record=simulation,
        label=joined(task, simulation.get("trial")),
        trajectory_id=as_text(simulation.get("id")),
        task=task,
        reward=as_number(field_at(simulation, "reward_info.reward"), "reward_info.reward"),
        rewards=numbers_of(field_at(simulation, "reward_info.reward_breakdown")),
        truncated=is_limit(reason),
        info={**without(simulation, _OWN), "model": field_at(settings, "agent_info.llm")},
        left_out=unseen if len(seen) < len(raw) else {},
    )


def _flat(messages: object) -> Iterator[Any]:
    """Yield the messages; several results of one answer are nested in one."""
    for message in as_list(messages, "messages"):
        nested = field_at(message, "tool_messages")
        yield from items_of(nested) if isinstance(nested, list) else [message]


def _is_of_the_users_tools(message: Mapping[str, Any]) -> bool:
    if message.get("role") == "tool":
        return message.get("requestor") == "user"
    return message.get("role") == "user" and bool(message.get("tool_calls"))


def _messages(messages: Sequence[Mapping[str, Any]], sampling: LoggedSampling) -> Iterator[Message]:
    """Yield the messages; the greeting before any other is a fixed text, and no step."""
    for number, raw in enumerate(messages):
        message = chat_message(raw, f"messages[{number}]")
        if message.role == ASSISTANT:
            is_greeting = not number and not message.tool_calls
            thought = message.thought or _thought(raw)
            yield replace(message, thought=thought, is_context=is_greeting, sampling=sampling)
        else:
            yield message


def _thought(raw: Mapping[str, Any]) -> str:
    """Return the reasoning, which is in the answer of the model's server."""
    blocks = field_at(raw, "raw_data.thinking_blocks") or []
    thoughts = (text_of_content(field_at(block, "thinking")) for block in blocks)
    apart = text_of_content(field_at(raw, "raw_data.message.reasoning_content"))
    return "\n\n".join(thought for thought in thoughts if thought) or apart
