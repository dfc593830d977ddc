"""mini-swe-agent's `.traj.json` files, of version 1 and 2: messages, and how the run exited."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.formats.responses_items import answers_of
from graphcredit.collector.importers.logs.chat import chat_message
from graphcredit.collector.importers.logs.image_parts import images_of
from graphcredit.collector.importers.logs.messages import (
    ASSISTANT,
    TOOL,
    LoggedRollout,
    LoggedSampling,
    Message,
    Omission,
)
from graphcredit.collector.importers.logs.records import Record
from graphcredit.collector.importers.logs.values import (
    as_list,
    as_mapping,
    as_number,
    as_text,
    field_at,
    is_limit,
    text_of_content,
)

_COMMAND = re.compile(r"```(?:bash|sh|mswea_bash_command)[ \t]*\n(.*?)\n?```", re.DOTALL)
_EXITS_BY_LIMIT = ("TimeExceeded", "ContextWindowExceededError")


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a trajectory of mini-swe-agent."""
    if not isinstance(value, Mapping):
        return False
    log = cast("Mapping[str, Any]", value)
    version = log.get("trajectory_format")
    is_named = isinstance(version, str) and version.startswith("mini-swe-agent")
    return "messages" in log and (is_named or field_at(log, "info.mini_version") is not None)


def read(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollout of a file. It has no reward: that is in a report of its own."""
    log = as_mapping(record.value, "a trajectory")
    instance = as_text(log.get("instance_id")) or record.path.name.partition(".")[0]
    status = as_text(field_at(log, "info.exit_status")) or ""
    model = as_text(field_at(log, "info.config.model.model_name"))
    yield LoggedRollout(
        messages=tuple(_messages(as_list(log["messages"], "messages"), _sampling(log))),
        record=log,
        label=instance,
        task=instance,
        truncated=is_limit(status) or status in _EXITS_BY_LIMIT,
        info={
            "exit_status": status,
            "submission": field_at(log, "info.submission"),
            "model": model,
        },
    )


def _sampling(log: Mapping[str, Any]) -> LoggedSampling:
    settings = "info.config.model.model_kwargs"
    return LoggedSampling(
        temperature=as_number(field_at(log, f"{settings}.temperature"), "temperature"),
        top_p=as_number(field_at(log, f"{settings}.top_p"), "top_p"),
    )


def _messages(items: list[Any], sampling: LoggedSampling) -> Iterator[Message]:
    for number, item in enumerate(items):
        what = f"messages[{number}]"
        raw = as_mapping(item, what)
        if raw.get("role") == "exit":
            content = raw.get("content")
            yield Message(
                role=TOOL,
                text=text_of_content(content),
                image_parts=images_of(content),
                source=dict(raw),
            )
        elif raw.get("object") == "response":
            yield from answers_of(as_list(raw.get("output"), f"{what}.output"), sampling)
        elif "role" not in raw:
            yield from answers_of([raw], sampling)
        else:
            message = chat_message(raw, what)
            yield _answer(message, sampling) if message.role == ASSISTANT else message


def _answer(message: Message, sampling: LoggedSampling) -> Message:
    """Return an answer; its action is the command, which stands in a block of its text."""
    found = _COMMAND.findall(message.text)
    if len(found) != 1 or message.tool_calls:
        return replace(message, sampling=sampling)
    spoken = _COMMAND.sub("", message.text).strip()
    return replace(message, text=spoken, action=found[0].strip(), sampling=sampling)
