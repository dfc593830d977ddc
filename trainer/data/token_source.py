"""Where the tokens of steps are from: the log, or messages that were tokenised."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from graphcredit.store.errors import InputError
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.trainer.data.ragged import Ragged
from graphcredit.trainer.data.step_columns import TokenColumns


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSource:
    """The tokens of an iteration."""

    made: Callable[[Path, int, TokenColumns], TokenColumns] | None = None
    """Gives those that were made of messages, as `columns` does; None if the log has token ids."""
    has_logprobs: bool = True
    """Whether the log has log-probabilities of its sampler. Without them, 0 stands for each, and
    nobody may look at it."""
    chat_template: str | None = None
    """The template that made them in place of the model's, if one did."""
    appends: bool = False
    """Whether they were made of messages, and some turns continue the ones before."""
    notices: tuple[str, ...] = ()
    """How tokens were made, and which steps have none."""

    def columns(self, path: Path, first_row: int, logged: TokenColumns) -> TokenColumns:
        """Return the tokens of adjacent rows of a shard.

        Raises:
            InputError: Some steps have log-probabilities, though earlier ones have none.
        """
        if self.has_logprobs:
            return logged
        if not logged.logprob.is_null.all():
            row = first_row + int((~logged.logprob.is_null).argmax())
            raise InputError(
                "all steps with token ids must have response_logprobs, or none: earlier ones have "
                f"none, and {path}, row {row} has them. Keep those without them in a run of "
                "their own"
            )
        tokens = logged if self.made is None else self.made(path, first_row, logged)
        response = tokens.response
        zeros = Ragged(
            values=np.zeros(len(response.values), np.float32),
            starts=response.starts,
            is_null=response.is_null,
        )
        # A greedy answer is trained at temperature 1, which no log-probability contradicts.
        temperature = np.where(tokens.temperature == 0, np.float32(1), tokens.temperature)
        return replace(tokens, logprob=zeros, temperature=temperature)


LOGGED = TokenSource()
"""Token ids and log-probabilities of the log."""


def logged_columns(paths: Iterable[Path]) -> tuple[bool, bool]:
    """Return whether a log has token ids, and whether these have log-probabilities.

    The first row group with token ids tells it: readers refuse a log that goes on otherwise.

    Raises:
        SchemaError: One cannot be read.
    """
    names = ("response_ids", "response_logprobs")
    for path in paths:
        with open_parquet(path) as file:
            present = [name for name in names if name in file.schema_arrow.names]
            for number in range(file.num_row_groups if present else 0):
                table = file.read_row_group(number, columns=present)
                has = [name in present and pc.any(table[name].is_valid()).as_py() for name in names]
                if any(has):
                    return True, bool(has[1])
    return False, False
