"""Tell the steps of a trajectory as a conversation: what the agent was told, and what it did."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from graphcredit.store.files.parse import parse_object
from graphcredit.store.layout import Store
from graphcredit.viewer.chat.logged import Kind, kind_of, parts_of_message, tool_of
from graphcredit.viewer.chat.texts import Part, calls_of, code_part, parts_of
from graphcredit.viewer.queries.trajectory import steps

_FLAGS = ("is_error", "isError")
_CODES = ("exit_code", "returncode", "return_code", "exitCode")
_INSIDE = ("content", "extra", "metadata", "additional_kwargs")
"""Fields that may have such fields in turn."""

_TEXT = re.compile(
    r"\s*(?:(?:[A-Z]\w*)?(?:Error|Exception)\b|error:|ERROR\b|Traceback \(most recent call last\)"
    r"|<returncode>(?!0<)|<tool_use_error>|<error>)"
)


_COLUMNS = ["state", "next_state", "observation", "thought", "action", "is_action_valid", "extra"]

_SPEAKERS: dict[Kind, str] = {
    "system": "System",
    "user": "User",
    "agent": "Assistant, in the prompt",
    "result": "Result",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownMessage:
    """One message."""

    kind: Kind
    speaker: str
    """Who speaks, in words."""
    step: int
    """Row of the step that the message is, or that it was read before."""
    parts: tuple[Part, ...]
    is_step: bool = False
    """Whether it is the agent's message of the step."""
    is_error: bool = False
    """Whether it reports an error."""
    same_as: int | None = None
    """Row of the step before which the same long text was told first."""


def conversation(
    store: Store, *, run_id: str, iteration: int, trajectory_id: str
) -> list[ShownMessage]:
    """Return the messages of a trajectory of the store; see `transcript`."""
    table = steps(store, run_id=run_id, iteration=iteration, trajectory_id=trajectory_id)
    return transcript(table)


def transcript(table: pa.Table) -> list[ShownMessage]:
    """Return the messages of a trajectory in order, those that it was told before each step too.

    An imported log has the messages in `extra`: `seen` before each step, and `after` the last one.
    Of any other log, a step is the text that the agent saw, its thought and its action.
    """
    rows = table.select(_COLUMNS).to_pylist()
    logged = [_logged(row["extra"]) for row in rows]
    is_imported = any(isinstance(extra.get("seen"), list) for extra in logged)
    told: list[ShownMessage] = []
    for step, (row, extra) in enumerate(zip(rows, logged, strict=True)):
        is_last = step == len(rows) - 1
        told += _step(step, row, extra if is_imported else {}, is_last=is_last)
    return list(_with_repeats(told))


_LONG = 200
"""Characters from which a text is folded where it is told again."""


def _with_repeats(told: list[ShownMessage]) -> Iterator[ShownMessage]:
    """Yield the messages; one that repeats a long text says where it was told first."""
    first: dict[tuple[Part, ...], int] = {}
    for message in told:
        if not message.is_step and sum(len(part.text) for part in message.parts) >= _LONG:
            row = first.setdefault(message.parts, message.step)
            if row != message.step:
                message = replace(message, same_as=row)
        yield message


def _step(
    step: int, row: Mapping[str, Any], extra: Mapping[str, Any], *, is_last: bool
) -> Iterator[ShownMessage]:
    if not extra:
        yield _told(step, row["observation"] or row["state"])
        yield _acted(step, row, (code_part(_text(row["action"]), "Action"),))
        if is_last:
            yield _told(step, row["next_state"])
        return
    yield from _messages(step, extra.get("seen"))
    action = _text(row["action"])
    yield _acted(step, row, (*calls_of(action),) or parts_of(action))
    if is_last:
        yield from _messages(step, extra.get("after"))


def _told(step: int, text: str | None) -> ShownMessage:
    """Return what an environment says, in the font of code: it may be a map or a table."""
    said = _text(text)
    return ShownMessage(
        kind="result",
        speaker="Environment",
        step=step,
        parts=(code_part(said),),
        is_error=begins_with_error(said),
    )


def _acted(step: int, row: Mapping[str, Any], action: tuple[Part, ...]) -> ShownMessage:
    refused = "" if row["is_action_valid"] else ", refused by the environment"
    return ShownMessage(
        kind="agent",
        speaker=f"Agent{refused}",
        step=step,
        parts=(*parts_of(row["thought"] or "", "Thought"), *action),
        is_step=True,
    )


def _messages(step: int, logged: Any) -> Iterator[ShownMessage]:
    for message in logged if isinstance(logged, list) else ():
        kind = kind_of(message)
        tool = tool_of(message) if kind == "result" else None
        speaker = _SPEAKERS[kind] if tool is None else f"Result of {tool}"
        parts = parts_of_message(message)
        failed = kind != "agent" and is_error(message)
        if kind == "result" and parts:
            failed |= begins_with_error(parts[0].text)
        yield ShownMessage(kind=kind, speaker=speaker, step=step, parts=parts, is_error=failed)


def _logged(extra: str | None) -> Mapping[str, Any]:
    """Return `extra` if it has a message of a log; empty if not."""
    value = parse_object(extra)
    return value if isinstance(value.get("message"), Mapping) else {}


def _text(text: str | None) -> str:
    """Return a text; an unchecked log may have null in its place."""
    return "⟨null⟩" if text is None else text


def is_error(message: Any, depth: int = 3) -> bool:
    """Return whether the fields of a message, or of a part of it, say that a tool failed."""
    if isinstance(message, list):
        return any(is_error(part, depth - 1) for part in message) if depth else False
    if not isinstance(message, Mapping) or not depth:
        return False
    return (
        any(message.get(name) is True for name in _FLAGS)
        or message.get("status") in ("error", "failed")
        or bool(message.get("error"))
        or any(_is_failure(message.get(name)) for name in _CODES)
        or any(is_error(message.get(name), depth - 1) for name in _INSIDE)
    )


def begins_with_error(text: str) -> bool:
    """Return whether the text of a tool or an environment begins as the report of an error."""
    return _TEXT.match(text) is not None


def _is_failure(code: Any) -> bool:
    return isinstance(code, int) and not isinstance(code, bool) and code > 0
