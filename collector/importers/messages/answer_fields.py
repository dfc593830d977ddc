"""What an answer says beside its content: reasoning, and calls of tools."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from graphcredit.collector.importers.messages.parts import (
    CALL,
    RESULT,
    TEXT,
    THOUGHT,
    Piece,
    pieces_of,
    text_of_content,
)
from graphcredit.collector.importers.messages.plain import (
    CALLS,
    REASONING,
    WITH_RESULTS,
    split_thinking,
)
from graphcredit.collector.importers.messages.rollout import ToolCall
from graphcredit.collector.importers.messages.shapes import tool_call
from graphcredit.collector.importers.messages.values import (
    as_list,
    canonical_text,
    fields_of,
    first_of,
    parse_json,
)

_TOOLS = ("tool_name", "toolName", "tool", "function_name")
_INPUTS = (
    *("tool_input", "toolInput", "tool_args", "tool_arguments", "input", "args", "arguments"),
    *("parameters", "params"),
)
_OUTPUTS = (
    *("tool_output", "toolOutput", "tool_result", "tool_response", "observation", "output"),
    "result",
)
"""Fields of a message that has the call of a tool, and perhaps its result, beside its text."""


def with_fields(raw: Mapping[str, Any], pieces: list[Piece], what: str) -> list[Piece]:
    """Return the pieces of an answer with what its fields say: reasoning and calls, once each."""
    reasoning = first_of(raw, REASONING)
    if reasoning is not None:
        words = "\n".join(piece.text for piece in pieces_of(reasoning) if not piece.is_unread)
        is_apart = bool(words)  # then the content has it once more
        kept = [piece for piece in pieces if piece.kind != THOUGHT or not is_apart]
        pieces = [Piece(THOUGHT, words), *kept]
    for at, piece in enumerate(pieces):
        if piece.kind == TEXT:
            inline, text = split_thinking(piece.text)
            if inline:
                pieces[at : at + 1] = [
                    Piece(THOUGHT, inline),
                    piece._replace(text=text, said=piece.text),
                ]
            break
    if (call := call_beside(raw)) is not None:
        output = first_of(raw, _OUTPUTS)
        said = [piece for piece in pieces if piece.kind != TEXT or piece.text != output]
        results = [] if output is None else [Piece(RESULT, text_of_content(output))]
        return [*said, Piece(CALL, call=call), *results]
    calls = [] if any(piece.kind == RESULT for piece in pieces) else list(_finished(raw, what))
    return _once([*calls, *pieces], list(_calls(raw, what)))


def call_beside(raw: Mapping[str, Any], *names: str) -> ToolCall | None:
    """Return the call that a message has in fields of its own, as some logs of coding agents.

    Args:
        raw: The message.
        names: Further fields that may name the tool.
    """
    if raw.keys().isdisjoint(_INPUTS):
        return None
    name, arguments = first_of(raw, (*_TOOLS, *names)), first_of(raw, _INPUTS)
    if not isinstance(name, str) or not name or arguments is None or any(map(raw.get, CALLS)):
        return None
    return ToolCall(name, canonical_text(arguments) or "{}")


def _once(pieces: list[Piece], calls: list[Piece]) -> list[Piece]:
    """Return pieces with further calls; of a call that is in both places, the fields are whole."""
    if not calls:
        return pieces
    has_results = any(piece.kind == RESULT for piece in pieces)
    given, others = (pieces, calls) if has_results else (calls, pieces)
    known = {text for piece in given if piece.call for text in (piece.call.id, str(piece.call))}
    kept = [p for p in others if not (p.call and known & {p.call.id, str(p.call)})]
    return [*pieces, *kept] if has_results else [*kept, *calls]


def _calls(raw: Mapping[str, Any], what: str) -> Iterator[Piece]:
    """Yield the calls in the fields of an answer; one that two fields have, once."""
    known: set[str | None] = set()
    for name in CALLS:
        value = raw.get(name)
        if not value:
            continue
        value = parse_json(value) if isinstance(value, str) else value
        listed = [value] if isinstance(value, Mapping) else as_list(value, f"{what}.{name}")
        found = [(tool_call(each, what), each) for each in listed]
        yield from (
            Piece(CALL, call=call, part=part)
            for call, part in found
            if not known & {call.id, str(call)}
        )
        known |= {text for call, _ in found for text in (call.id, str(call)) if text}


def _finished(raw: Mapping[str, Any], what: str) -> Iterator[Piece]:
    """Yield calls with their results, step by step."""
    values = [fields_of(v) for v in as_list(raw.get(WITH_RESULTS) or [], f"{what}.{WITH_RESULTS}")]
    for _, step in groupby(values, key=lambda value: value.get("step")):
        yield from pieces_of([*step, {"type": "step-start"}])
