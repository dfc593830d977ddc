"""Filter the steps of an iteration row group by row group, and count the outcomes."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.store.layout import Shard
from graphcredit.trainer.data.credit_columns import CreditRows, read_credit
from graphcredit.trainer.data.ragged import Bools, Floats, Ints
from graphcredit.trainer.data.sequence_hash import sequence_hashes
from graphcredit.trainer.data.step_columns import UNKNOWN, StepColumns, read_columns
from graphcredit.trainer.data.step_filters import KEPT, Filters
from graphcredit.trainer.data.step_images import digests
from graphcredit.trainer.data.validation import is_truncated, refuse_faults, refuse_newer


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The k kept steps of one row group, and counts over all of its rows."""

    shard: Ints
    """[k] as in `StepIndex`, and so are the next six."""
    row: Ints
    prompt_length: Ints
    response_length: Ints
    num_scored: Ints
    advantage: Floats
    staleness: Ints
    sequence: NDArray[np.uint64]
    """[k] hash of prompt, response and images."""
    num_images: Ints
    """[k] images of the prompt."""
    trajectory: pa.DictionaryArray
    """[k] trajectory_id."""
    task: pa.DictionaryArray
    """[k] task_id."""
    step_index: Ints
    """[k] number within the trajectory."""
    outcomes: Ints
    """[KEPT + 1] rows by outcome."""
    largest_token_id: int
    """Largest token id of the kept steps; -1 without kept steps."""
    largest_token_id_at: str
    """File and row of the step with the largest token id."""
    num_without_version: int
    """Kept steps whose version gap is unknown."""
    num_without_temperature: int
    """Kept steps whose temperature was not logged."""
    num_truncated: int
    """Kept steps that were sampled with top-p or top-k."""
    credit: bytes
    """Digest of the credit of all rows."""


def scan(shards: Sequence[Shard], column: str, filters: Filters) -> Iterator[Part]:
    """Yield a part for each row group of some shards whose credit was checked.

    Raises:
        InputError: The credit belongs to other steps, an advantage is not finite, or a step has a
            fault.
        SchemaError: A shard cannot be read.
    """
    for number, shard in enumerate(shards):
        credit = read_credit(shard, column)
        for columns in read_columns(shard.path):
            mine = credit.of(columns.keys, columns.first_row)
            yield _part(number, shard.root, columns, mine, filters)


def _part(
    shard: int, root: Path, columns: StepColumns, credit: CreditRows, filters: Filters
) -> Part:
    refuse_faults(columns, allow_truncated_sampling=filters.allow_truncated_sampling)
    staleness = filters.staleness(columns)
    if filters.policy_version is not None:
        refuse_newer(columns, staleness, filters.policy_version)
    tokens = columns.tokens
    num_scored = tokens.logprob.count(np.isfinite(tokens.logprob.values))
    outcome = filters.outcome(columns, credit, num_scored, staleness)
    kept = np.flatnonzero(outcome == KEPT)
    num_images, pictures = digests(tokens.images, kept, root, columns.path, columns.first_row)
    largest_token_id, where = _largest_token_id(columns, outcome == KEPT)
    return Part(
        shard=np.full(len(kept), shard),
        row=columns.first_row + kept,
        prompt_length=tokens.prompt.lengths[kept],
        response_length=tokens.response.lengths[kept],
        num_scored=num_scored[kept],
        advantage=credit.advantage[kept],
        staleness=staleness[kept],
        sequence=sequence_hashes(tokens.prompt, tokens.response, kept) + pictures,
        num_images=num_images,
        trajectory=_encoded(columns.keys["trajectory_id"], kept),
        task=_encoded(columns.keys["task_id"], kept),
        step_index=columns.keys["step_index"].to_numpy()[kept],
        outcomes=np.bincount(outcome, minlength=KEPT + 1),
        largest_token_id=largest_token_id,
        largest_token_id_at=where,
        num_without_version=int((staleness[kept] == UNKNOWN).sum()),
        num_without_temperature=int(columns.lacks_temperature[kept].sum()),
        num_truncated=int(is_truncated(columns)[kept].sum()),
        credit=hashlib.sha256(credit.advantage.tobytes()).digest(),
    )


def _largest_token_id(columns: StepColumns, is_kept: Bools) -> tuple[int, str]:
    """Return the largest token id of the kept steps, and where it is."""
    found = (-1, "")
    for ids in (columns.tokens.prompt, columns.tokens.response):
        kept = np.where(np.repeat(is_kept, ids.lengths), ids.values, -1)
        if kept.max(initial=-1) > found[0]:
            position = int(kept.argmax())
            found = int(kept[position]), columns.where(ids.row_of(position))
    return found


def _encoded(texts: pa.ChunkedArray, rows: Ints) -> pa.DictionaryArray:
    return texts.take(rows).combine_chunks().dictionary_encode()
