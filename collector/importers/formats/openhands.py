"""OpenHands: `output.jsonl` of its evaluations, whose rows have a history of events."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.formats.openhands_events import Events, is_event
from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.content import text_of_content
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
    joined,
    numbers_of,
    without,
)

_VERDICTS = (
    *("success", "resolved", "report.resolved", "test_result.resolved"),
    *("test_result.report.resolved", "test_result.success"),
)


def is_row(value: object, path: Path) -> bool:
    """Return whether a record has a history of events."""
    history = fields_of(value).get("history")
    return isinstance(history, list) and any(
        map(is_event, _flat(cast("list[Any]", history)[:1])[:1])
    )


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
    for number, event in enumerate(_flat(as_list(row.get("history"), "history"))):
        events.add(as_mapping(event, f"history[{number}]"))
    task, results = _task(row), fields_of(row.get("test_result"))
    yield LoggedRollout(
        messages=_with_instruction(events.messages, row),
        record=row,
        label=joined(task, row.get("attempt")),
        task=task,
        reward=as_number(first_of({**results, **row}, ("reward", "score")), "the reward"),
        rewards=numbers_of(results),
        success=success,
        truncated=is_truncated,
        info=without(row, ("history", "instruction")),
        left_out=events.left_out,
    )


def _task(row: Mapping[str, Any]) -> str | None:
    issue = row.get("issue")
    if isinstance(issue, Mapping):
        parts = cast("Mapping[str, Any]", issue)
        return f"{parts.get('owner')}/{parts.get('repo')}#{parts.get('number')}"
    return as_text(first_of(row, ("instance_id", "task_id")))


def _flat(history: Sequence[Any]) -> list[Any]:
    """Return the events; the oldest logs pair an action with its observation."""
    pairs = (cast("list[Any]", item) if isinstance(item, list) else [item] for item in history)
    return [event for pair in pairs for event in pair]


def _with_instruction(messages: Sequence[Message], row: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return messages that begin with the task, which the history may lack."""
    instruction = text_of_content(row.get("instruction"))
    first = next((n for n, m in enumerate(messages) if m.role == ASSISTANT), len(messages))
    if not instruction or any(message.role == USER for message in messages[:first]):
        return tuple(messages)
    given = Message(role=USER, text=instruction, source={"instruction": instruction})
    return (*messages[:first], given, *messages[first:])
