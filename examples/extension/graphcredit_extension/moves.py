"""Logs of games, a line each: `{"game": "g1", "won": true, "moves": [["seen", "move"], …]}`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from graphcredit.collector.importers.logs.files import Record
from graphcredit.collector.importers.messages.rollout import (
    ASSISTANT,
    USER,
    LoggedRollout,
    Message,
    Omission,
)
from graphcredit.collector.importers.messages.values import RecordError, as_list, as_mapping
from graphcredit.collector.importers.table import LogFormat


def is_row(value: object, path: Path) -> bool:
    """Return whether a record is a game."""
    if not isinstance(value, Mapping):
        return False
    return {*cast("Mapping[str, Any]", value)} == {"game", "won", "moves"}


def read(record: Record) -> Iterator[LoggedRollout | Omission]:
    """Yield the rollout of a game: what was seen, and the move that answered it."""
    game = as_mapping(record.value, "a game")
    messages: list[Message] = []
    for move in as_list(game["moves"], "moves"):
        if not (isinstance(move, list) and len(cast("list[Any]", move)) == 2):
            raise RecordError(f"a move must be what was seen and what was done: got {move!r}")
        seen, done = map(str, cast("list[Any]", move))
        messages += [Message(role=USER, text=seen), Message(role=ASSISTANT, text=done)]
    yield LoggedRollout(
        messages=tuple(messages),
        record=game,
        group=str(game["game"]),
        success=bool(game["won"]),
        reward=float(bool(game["won"])),
    )


ROW = LogFormat(name="moves", is_row=is_row, read=read)
