"""The calls of trajectories that a store has, or that are on their way there."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from graphcredit.collector.states.calls import REMEMBERED, Move
from graphcredit.store.files.parse import parse_object

COLUMNS = ("state", "next_state", "observation", "action", "is_action_valid", "extra")
"""Step columns that are read."""

_RESULT_ROLES = ("tool", "function")


def moves_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[Move]:
    """Return the steps of one trajectory."""
    texts = [row.get("extra") or "" for row in rows]
    after = [*(_results(text, "seen") for text in texts[1:]), _results(texts[-1], "after")]
    # Where the agent sees other texts than states, nobody knows what it would have seen at the end.
    is_shown = all(row.get("observation") is None for row in rows)
    shown = [*map(_seen, rows[1:]), (rows[-1].get("next_state") or "") if is_shown else ""]
    return [
        Move(
            action=row["action"] or "",
            results=results or ((text,) if text else ()),
            is_refused=row.get("is_action_valid") is False,
            seen=_seen(row),
        )
        for row, results, text in zip(rows, after, shown, strict=True)
    ]


def _seen(row: Mapping[str, Any]) -> str:
    observation = row.get("observation")
    return (row.get("state") or "") if observation is None else observation


@lru_cache(REMEMBERED)
def _results(extra: str, field: str) -> tuple[str, ...]:
    """Return the texts of the results among messages of a log; nothing of other dialects."""
    messages = parse_object(extra).get(field)
    texts: list[str] = []
    for message in cast("list[Any]", messages) if isinstance(messages, list) else []:
        if isinstance(message, dict):
            fields = cast("dict[str, Any]", message)
            if fields.get("role") in _RESULT_ROLES and isinstance(fields.get("content"), str):
                texts.append(fields["content"])
    return tuple(texts)
