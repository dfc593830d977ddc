"""OpenHands: `output.jsonl` of its evaluations, saved trajectories, and folders of files.

A folder has a file for each event, or for each call of a model.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.formats.calls import log, rows
from graphcredit.collector.importers.formats.openhands_events import Events, is_event
from graphcredit.collector.importers.formats.sessions.lines import opening_name
from graphcredit.collector.importers.logs.files import Record, RowError, json_file
from graphcredit.collector.importers.logs.groups import as_one
from graphcredit.collector.importers.messages.parts import text_of_content
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    USER,
    LoggedRollout,
    Message,
    Omission,
    Rollouts,
)
from graphcredit.collector.importers.messages.values import (
    as_list,
    as_mapping,
    as_number,
    as_text,
    field_at,
    fields_of,
    first_of,
    is_limit,
    items_of,
    joined,
    numbers_of,
    without,
)

_VERDICTS = (
    *("success", "resolved", "report.resolved", "test_result.resolved"),
    *("test_result.report.resolved", "test_result.success"),
)


ASIDE = (
    *("error", "metadata", "instance", "test_result", "metrics", "result_explanation", "issue"),
    *(
        f"{history}.*.{name}"
        for history in ("history", "trajectory", "events")
        for name in (
            *("source", "action", "message", "summary", "key", "value", "extras"),
            *("tool_call_metadata", "llm_metrics", "critic_result", "tool_call.origin"),
            *("kernel_init_code", "is_confirmed", "security_risk", "args.kernel_init_code"),
            *("args.confirmation_state", "args.security_risk", "observation.metadata"),
            *("observation.command", "observation.kind", "observation.path"),
            *("observation.old_content", "observation.new_content", "tool_name"),
            *("thinking_blocks.*.signature", "activated_skills", "responses_reasoning_item"),
        )
    ),
)
"""What describes a run or a call of a model, and what a person is shown of an event."""

COMPLETIONS_ASIDE = (
    *rows.ASIDE,
    *(f"calls.*.{name}" for name in ("kwargs", "args", "fncall_response")),
)
_COMPLETIONS = "llm_completions"
"""A folder whose folders are called after instances."""

_HISTORIES = ("history", "trajectory", "events")


def is_row(value: object, path: Path) -> bool:
    """Return whether a record has a history of events."""
    return _history_of(value) is not None


def _history_of(value: object) -> str | None:
    """Return the name of the field with a history of events."""
    for name in _HISTORIES:
        first = _flat(items_of(fields_of(value).get(name))[:1])[:1]
        if any(map(is_event if name == "history" else is_event_row, first)):
            return name
    return None


def is_event_row(value: object, path: Path | None = None) -> bool:
    """Return whether a value is an event, and not a step of anybody that has an `action`."""
    event = fields_of(value)
    return (
        "source" in event and bool({"args", "content", "kind"} & event.keys()) and is_event(event)
    )


def gather_events(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Put together the events of a file, or of the folder that it is the first file of."""
    events = _with_folder(records, is_event_row)
    return as_one(events, limit, lambda _: True, "history")


def read(record: Record) -> Rollouts:
    """Yield the rollout of a row."""
    row = as_mapping(record.value, "a row")
    verdicts = (field_at(row, name) for name in _VERDICTS)
    success = next((value for value in verdicts if isinstance(value, bool)), None)
    error = as_text(row.get("error")) or ""
    is_truncated = is_limit(error)
    if error and success is None and not is_truncated:
        yield Omission(reason="run with an error and without a verdict")
        return
    events = Events()
    name = _history_of(row) or "history"
    for number, event in enumerate(_flat(as_list(row.get(name), name))):
        events.add(as_mapping(event, f"{name}[{number}]"))
    task, results = _task(row), fields_of(row.get("test_result"))
    messages = _with_instruction(events.messages, row)
    yield LoggedRollout(
        messages=messages,
        record=row,
        label=joined(task, row.get("attempt")),
        task=task,
        group=None if task else opening_name(messages),
        reward=as_number(first_of({**results, **row}, ("reward", "score")), "the reward"),
        rewards=numbers_of(results),
        success=success,
        truncated=is_truncated,
        info=without(row, (*_HISTORIES, "instruction")),
        left_out=events.left_out,
    )


def _task(row: Mapping[str, Any]) -> str | None:
    if issue := fields_of(row.get("issue")):
        return f"{issue.get('owner')}/{issue.get('repo')}#{issue.get('number')}"
    return as_text(first_of(row, ("instance_id", "task_id")))


def _flat(history: Sequence[Any]) -> list[Any]:
    """Return the events; the oldest logs pair an action with its observation."""
    pairs = (item if isinstance(item, list) else [item] for item in history)
    return [event for pair in pairs for event in items_of(pair)]


def _with_instruction(messages: Sequence[Message], row: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return messages that begin with the task, which the history may lack."""
    instruction = text_of_content(row.get("instruction"))
    first = next((n for n, m in enumerate(messages) if m.role == ASSISTANT), len(messages))
    if not instruction or any(message.role == USER for message in messages[:first]):
        return tuple(messages)
    given = Message(role=USER, text=instruction, source={"instruction": instruction})
    return (*messages[:first], given, *messages[first:])


def is_completion(value: object, path: Path | None = None) -> bool:
    """Return whether a record is a call of a model as OpenHands logs it."""
    row = fields_of(value)
    is_answered = isinstance(row.get("response"), Mapping)
    return is_answered and {"messages", "cost", "timestamp"} <= row.keys()


def gather_completions(records: Iterator[Record], limit: int) -> Iterator[Record]:
    """Yield a record for each conversation that the calls of a file or of its folder are."""
    return log.gather(map(_named, _with_folder(records, is_completion)), limit)


def _named(record: Record) -> Record:
    folder = record.path.parent
    if isinstance(record.value, RowError) or folder.parent.name != _COMPLETIONS:
        return record
    return replace(record, value={"instance_id": folder.name, **record.value})


def _with_folder(records: Iterator[Record], is_like: Callable[[object], bool]) -> Iterator[Record]:
    """Return the records of a file, or those of its folder for a file that has one of many.

    Args:
        records: The records of the file.
        is_like: Whether a value is such a record.

    Returns:
        For the first file of a folder the records of all, in order; for the others nothing.
    """
    begin = list(islice(records, 2))
    alone = len(begin) == 1 and begin[0].path.suffix == ".json" and is_like(begin[0].value)
    folder = begin[0].path.parent if begin else Path()
    found = _in_folder(folder, folder.stat().st_mtime_ns, is_like) if alone else ()
    if len(found) < 2:
        return chain(begin, records)
    names = found if found[0] == begin[0].path.name else ()
    paths = (folder / name for name in names)
    return (replace(begin[0], path=path, value=json_file(path)) for path in paths)


@lru_cache(maxsize=1)
def _in_folder(folder: Path, changed: int, is_like: Callable[[object], bool]) -> tuple[str, ...]:
    """Return the names of a folder's files that have such a record, by the numbers in them.

    When the folder was changed is for the cache alone.
    """
    names = [name for name in os.listdir(folder) if name.endswith(".json")]
    ordered = sorted(names, key=lambda name: ([int(n) for n in re.findall(r"\d+", name)], name))
    return tuple(name for name in ordered if is_like(json_file(folder / name)))
