"""Rows whose results of tools are in a field beside their messages, by the ids of their calls."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from graphcredit.collector.importers.messages.parts import images_of, text_of_content
from graphcredit.collector.importers.messages.rollout import TOOL, Message, are_plain
from graphcredit.collector.importers.messages.shapes import IDS, RESULTS, is_call
from graphcredit.collector.importers.messages.values import as_text, fields_of, first_of


def with_results_of(row: Mapping[str, Any], messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return messages in which calls without a result have that which the row has for their id."""
    ids = {call.id for message in messages for call in message.tool_calls if call.id}
    names = ("tool_call_id",) if are_plain(messages) else IDS
    known = {as_text(first_of(m.source, names)) for m in messages if m.role == TOOL}
    if not ids - known:
        return messages
    results: dict[str, Any] = {}
    for value in row.values():
        results |= {name: result for name, result in _results(value) if name in ids - known}
    return tuple(each for m in messages for each in (m, *_answered(m, results)))


def _results(value: object) -> Iterator[tuple[str | None, Any]]:
    """Yield the ids of calls and their results, of a list of results or of an object of ids."""
    if isinstance(value, Mapping):
        yield from cast("Mapping[str, Any]", value).items()
    for item in cast("list[Any]", value) if isinstance(value, list) else ():
        fields = fields_of(item)
        result = first_of(fields, RESULTS)
        if result is not None and "role" not in fields and not is_call(fields):
            yield as_text(first_of(fields, IDS)), result


def _answered(message: Message, results: Mapping[str, Any]) -> Iterator[Message]:
    for call in message.tool_calls:
        if call.id is not None and call.id in results:
            content = results[call.id]
            yield Message(
                role=TOOL,
                text=text_of_content(content),
                image_parts=images_of(content),
                is_context=message.is_context,
                source={"role": TOOL, "tool_call_id": call.id, "content": content},
            )
