"""The tokens that were made of messages: in memory, and in a file that other starts read."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.store.errors import InputError, SchemaError
from graphcredit.store.files.tables import write_table
from graphcredit.store.parquet.numbers import array_of, arrow_of, numpy_of
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.trainer.data.ragged import Ints, Ragged
from graphcredit.trainer.data.step_columns import TokenColumns

_PLACES = ("sequence", "start", "end")
_SCHEMA = pa.schema([*((name, pa.int64()) for name in _PLACES), ("ids", pa.list_(pa.int32()))])
"""A row of a shard is a row, in the order of the shards; its first rows have the sequences."""

_NOTE = b"graphcredit.tokens"
_PAUSE = 0.2
"""Seconds between two looks for the file of another process."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardTokens:
    """The tokens of the n rows of a step shard."""

    sequences: Sequence[NDArray[np.int32]]
    """Token ids."""
    sequence: Ints
    """[n] which of them a step is in; -1 where it could not be tokenised."""
    start: Ints
    """[n] where its answer begins; its prompt is all before."""
    end: Ints
    """[n] where its answer ends."""

    def part(self, row: int, start: int, end: int) -> NDArray[np.int32]:
        """Return some tokens of the sequence of a row; none if it has none."""
        number = self.sequence[row]
        return self.sequences[number][start:end] if number >= 0 else np.empty(0, np.int32)

    def pair(self, row: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the prompt and the answer of a row."""
        start, end = self.start[row], self.end[row]
        return self.part(row, 0, start), self.part(row, start, end)


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageTokens:
    """The tokens of an iteration whose steps have messages only."""

    shards: Mapping[Path, ShardTokens]
    chat_template: str | None
    """The template that made them in place of the model's, if one did."""
    notices: tuple[str, ...]
    """How it was done, and what could not be."""

    @property
    def num_steps(self) -> int:
        """Steps that were tokenised."""
        return sum(int((shard.sequence >= 0).sum()) for shard in self.shards.values())

    @property
    def num_sequences(self) -> int:
        """Sequences, in which one or several steps are."""
        return sum(len(shard.sequences) for shard in self.shards.values())

    def of_rows(self, path: Path, first_row: int, logged: TokenColumns) -> TokenColumns:
        """Return the tokens of adjacent rows of a shard, in place of those that the log lacks.

        Raises:
            InputError: The shard was not there yet.
        """
        if path not in self.shards:
            raise InputError(f"{path} appeared after the messages were tokenised: start again")
        tokens = self.shards[path]
        rows = range(first_row, first_row + len(logged.temperature))
        prompts, answers = zip(*map(tokens.pair, rows), strict=True) if rows else ((), ())
        is_null = tokens.sequence[rows.start : rows.stop] < 0
        return replace(logged, prompt=_ragged(prompts, is_null), response=_ragged(answers, is_null))


def prompts_and_answers(
    made: MessageTokens, path: Path
) -> list[tuple[list[int], list[int]] | None]:
    """Return the tokens of each row of a step shard; None where it could not be tokenised."""
    tokens = made.shards[path]
    pairs = (tokens.pair(row) for row in range(len(tokens.sequence)))
    return [
        (prompt.tolist(), answer.tolist()) if number >= 0 else None
        for number, (prompt, answer) in zip(tokens.sequence, pairs, strict=True)
    ]


def kept_tokens(
    path: Path, key: str, shards: Sequence[Path], make: Callable[[], MessageTokens], *, writes: bool
) -> MessageTokens:
    """Return the tokens in a file, or make them and write it.

    Args:
        path: The file. One that is damaged, or has another key, is written anew.
        key: Differs wherever the tokens may.
        shards: The step shards, in the order of the file.
        make: Tokenises the messages.
        writes: Whether this process does, if the file lacks them; the others wait for it.
    """
    while (found := _read(path, key, shards)) is None:
        if writes:
            made = make()
            _write(path, key, [made.shards[shard] for shard in shards], made)
            return made
        time.sleep(_PAUSE)
    return found


def _write(path: Path, key: str, shards: Sequence[ShardTokens], made: MessageTokens) -> None:
    num_rows = [len(shard.sequence) for shard in shards]
    note = {"key": key, "num_rows": num_rows}
    note |= {"notices": made.notices, "chat_template": made.chat_template}
    table = pa.concat_tables([pa.Table.from_batches([], _SCHEMA), *map(_table, shards)])
    write_table(table.replace_schema_metadata({_NOTE: json.dumps(note).encode()}), path)


def _table(shard: ShardTokens) -> pa.Table:
    ids, num_more = _SCHEMA.field("ids").type, len(shard.sequence) - len(shard.sequences)
    lists = pa.concat_arrays([array_of(shard.sequences, ids), pa.nulls(num_more, ids)])
    places = [arrow_of(each) for each in (shard.sequence, shard.start, shard.end)]
    return pa.table([*places, lists], schema=_SCHEMA)


def _read(path: Path, key: str, shards: Sequence[Path]) -> MessageTokens | None:
    """Return the tokens of a file; None if it is not there, damaged, or has another key."""
    if not path.exists():
        return None
    try:
        with open_parquet(path) as file:
            note = json.loads((file.schema_arrow.metadata or {}).get(_NOTE, b"{}"))
            if note.get("key") != key:
                return None
            table = file.read()
    except SchemaError:
        return None
    ends = np.cumsum(note["num_rows"])
    each = zip(shards, ends - note["num_rows"], note["num_rows"], strict=True)
    return MessageTokens(
        shards={shard: _of_table(table.slice(first, num)) for shard, first, num in each},
        chat_template=note["chat_template"],
        notices=tuple(note["notices"]),
    )


def _of_table(table: pa.Table) -> ShardTokens:
    places: dict[str, Any] = {name: numpy_of(table[name]) for name in _PLACES}
    ids = table["ids"].combine_chunks().drop_null()
    return ShardTokens(sequences=[numpy_of(each.values) for each in ids], **places)


def _ragged(lists: Sequence[NDArray[np.int32]], is_null: NDArray[np.bool_]) -> Ragged:
    lengths = [len(ids) for ids in lists]
    return Ragged(
        values=np.concatenate([np.empty(0, np.int32), *lists]),
        starts=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        is_null=is_null,
    )
