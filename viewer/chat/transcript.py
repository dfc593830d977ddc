"""Tell the steps of a trajectory as a conversation: what the agent was told, and what it did."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from graphcredit.store.files.parse import parse_object
from graphcredit.store.layout import Store
from graphcredit.viewer.chat.logged import Kind, kind_of, parts_of_message, tool_of
from graphcredit.viewer.chat.texts import Part, calls_of, code_part, parts_of
from graphcredit.viewer.queries.trajectory import steps

_COLUMNS = ["state", "next_state", "observation", "thought", "action", "is_action_valid", "extra"]

_SPEAKERS: dict[Kind, str] = {
    "system": "System",
    "user": "User",
    "agent": "Assistant, in the prompt",
    "result": "Result",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message."""

    kind: Kind
    speaker: str
    """Who speaks, in words."""
    step: int
    """Row of the step that the message is, or that it was read before."""
    parts: tuple[Part, ...]
    is_step: bool = False
    """Whether it is the agent's message of the step."""


def conversation(store: Store, *, run_id: str, iteration: int, trajectory_id: str) -> list[Message]:
    """Return the messages of a trajectory of the store; see `transcript`."""
    table = steps(store, run_id=run_id, iteration=iteration, trajectory_id=trajectory_id)
    return transcript(table)


def transcript(table: pa.Table) -> list[Message]:
    """Return the messages of a trajectory in order, those that it was told before each step too.

    An imported log has the messages in `extra`: `seen` before each step, and `after` the last one.
    Of any other log, a step is the text that the agent saw, its thought and its action.

    Args:
        table: The steps of one trajectory.
    """
    rows = table.select(_COLUMNS).to_pylist()
    logged = [_logged(row["extra"]) for row in rows]
    is_imported = any(isinstance(extra.get("seen"), list) for extra in logged)
    told: list[Message] = []
    for step, (row, extra) in enumerate(zip(rows, logged, strict=True)):
        is_last = step == len(rows) - 1
        told += _step(step, row, extra if is_imported else {}, is_last=is_last)
    return told


def _step(
    step: int, row: Mapping[str, Any], extra: Mapping[str, Any], *, is_last: bool
) -> Iterator[Message]:
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


def _told(step: int, text: str | None) -> Message:
    """Return what an environment says, in the font of code: it may be a map or a table."""
    parts = (code_part(_text(text)),)
    return Message(kind="result", speaker="Environment", step=step, parts=parts)


def _acted(step: int, row: Mapping[str, Any], action: tuple[Part, ...]) -> Message:
    refused = "" if row["is_action_valid"] else ", refused by the environment"
    return Message(
        kind="agent",
        speaker=f"Agent{refused}",
        step=step,
        parts=(*parts_of(row["thought"] or "", "Thought"), *action),
        is_step=True,
    )


def _messages(step: int, logged: Any) -> Iterator[Message]:
    for message in logged if isinstance(logged, list) else ():
        kind = kind_of(message)
        tool = tool_of(message) if kind == "result" else None
        speaker = _SPEAKERS[kind] if tool is None else f"Result of {tool}"
        yield Message(kind=kind, speaker=speaker, step=step, parts=parts_of_message(message))


def _logged(extra: str | None) -> Mapping[str, Any]:
    """Return `extra` if it has a message of a log; empty if not."""
    value = parse_object(extra)
    return value if isinstance(value.get("message"), Mapping) else {}


def _text(text: str | None) -> str:
    """Return a text; an unchecked log may have null in its place."""
    return "⟨null⟩" if text is None else text
