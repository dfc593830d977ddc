"""The tokens that were made of messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphcredit.store.errors import InputError
from graphcredit.trainer.data.ragged import Ints, Ragged
from graphcredit.trainer.data.step_columns import TokenColumns


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


def _ragged(lists: Sequence[NDArray[np.int32]], is_null: NDArray[np.bool_]) -> Ragged:
    lengths = [len(ids) for ids in lists]
    return Ragged(
        values=np.concatenate([np.empty(0, np.int32), *lists]),
        starts=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        is_null=is_null,
    )
