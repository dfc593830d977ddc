"""Index the steps to train on, with the data for their weights, in one pass over an iteration."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.layout import Shard
from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.trainer.data.credit_columns import check_credit
from graphcredit.trainer.data.parts import RunIteration
from graphcredit.trainer.data.ragged import Floats, Ints
from graphcredit.trainer.data.step_columns import UNKNOWN, newest_version
from graphcredit.trainer.data.step_filters import (
    KEPT,
    KEPT_COLUMNS,
    REASONS,
    Filters,
    ScannedRows,
    refuse_nothing_left,
    scan,
)
from graphcredit.trainer.data.token_source import LOGGED, TokenSource
from graphcredit.trainer.data.validation import refuse_uncorrected

WINDOW_TOKENS = 1 << 27
"""Steps are shuffled within windows of this many tokens (half a gigabyte of ids), and the windows
among each other, so that an iteration beyond memory is read about once per epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepIndex:
    """The n steps that are trained on, by task, trajectory and step within each window of shards.

    So an iteration that is one window trains to the same weights whoever played which part of it.
    """

    shards: tuple[Shard, ...]
    """All step shards of the iterations."""
    shard: Ints
    """[n] position in `shards`."""
    row: Ints
    """[n] row of the shard."""
    prompt_length: Ints
    """[n] tokens."""
    response_length: Ints
    """[n] tokens."""
    num_scored: Ints
    """[n] response tokens with a finite log-probability: those that enter the loss; at least 1."""
    advantage: Floats
    """[n] advantages."""
    trajectory: Ints
    """[n] rank of the trajectory's name; those of another iteration are others."""
    group: Ints
    """[n] rank of the task's name, from 0."""
    staleness: Ints
    """[n] versions by which the newest step of the logs is newer; -1 if unknown."""
    sequence: Ints
    """[n] number of the distinct prompt, response and images, by hash; equal steps have equal
    numbers."""
    num_images: Ints
    """[n] images of the prompt."""
    manifest: str
    """Hash of the step shards, of the credit they have in the advantage column, and of what the
    shards do not have themselves: images, and tokens that were made of messages."""
    source: TokenSource = LOGGED
    """Where the tokens are from."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def length(self) -> Ints:
        """[n] tokens of prompt and response."""
        return self.prompt_length + self.response_length

    @property
    def has_images(self) -> bool:
        """Whether any step has images."""
        return bool(self.num_images.any())

    def where(self, step: int) -> str:
        """Return file and row of a step, for messages."""
        return f"{self.shards[self.shard[step]].path}, row {self.row[step]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexReport:
    """Counts and statistics of the pass."""

    num_steps: int
    """Rows of the iteration."""
    num_kept: int
    """Steps that are trained on."""
    dropped: Mapping[str, int]
    """For each of `REASONS`, how many steps it left out."""
    num_masked_tokens: int
    """Response tokens of kept steps without a finite log-probability: they have no weight."""
    largest_token_id: int
    """Largest token id of any kept step."""
    largest_token_id_at: str
    """File and row of a step that has it."""
    advantage_mean: float
    """Over kept steps, as read."""
    advantage_std: float
    """Over kept steps, as read."""
    advantage_zero_share: float
    """Share of the kept steps whose advantage is 0."""
    staleness: Mapping[int, int]
    """Kept steps by version gap; -1 is unknown."""
    notices: tuple[str, ...]
    """Warnings that do not stop the training."""

    def as_json(self) -> dict[str, Any]:
        """Return the counts of steps and the statistics of their advantages."""
        return {
            "num_steps": self.num_steps,
            "num_kept": self.num_kept,
            "dropped": {reason: count for reason, count in self.dropped.items() if count},
            "num_masked_tokens": self.num_masked_tokens,
            "advantage_mean": self.advantage_mean,
            "advantage_std": self.advantage_std,
            "advantage_zero_share": self.advantage_zero_share,
        }


def read_index(
    parts: Sequence[RunIteration], *, column: str, filters: Filters, source: TokenSource = LOGGED
) -> tuple[StepIndex, IndexReport]:
    """Find the steps to train on. It reads only the columns it needs, row group by row group.

    Args:
        parts: The iterations.
        column: The advantage column.
        filters: What leaves out steps.
        source: Where their tokens are from.

    Returns:
        The index, and the counts and statistics of the pass.

    Raises:
        InputError: There are no shards; the credit is missing, old or mixed; the steps have a fault
            that training must not paper over; or no step is left.
        SchemaError: A shard cannot be read.
    """
    read = partial(_read, parts, column, filters, source)
    for part in parts:
        read = partial(unchanged, part.store, read, run_id=part.run_id, iteration=part.iteration)
    return read()


def _read(
    parts: Sequence[RunIteration], column: str, filters: Filters, source: TokenSource
) -> tuple[StepIndex, IndexReport]:
    of_parts = [part.shards() for part in parts]
    shards = tuple(shard for each in of_parts for shard in each)
    for part, each in zip(parts, of_parts, strict=True):
        check_credit(part.store, each, column)
    newest = newest_version(s.path for s in shards)
    scanned = list(scan(shards, column, filters, newest, source))
    outcomes = sum((rows.outcomes for rows in scanned), np.zeros(KEPT + 1, np.int64))
    refuse_nothing_left(outcomes)
    kept = pa.concat_tables([rows.kept for rows in scanned]).unify_dictionaries()
    part_of = np.repeat(np.arange(len(parts)), [len(each) for each in of_parts])
    index = _index(shards, part_of, kept, _manifest(shards, column, scanned, source), source)
    if not filters.is_corrected:
        refuse_uncorrected(index.staleness)
    largest = max(scanned, key=lambda rows: rows.largest_token_id)
    notices = (*_version_notices(index, filters, newest), *_sampling_notices(kept))
    return index, _report(index, largest, outcomes, notices)


def _index(
    shards: tuple[Shard, ...], part_of: Ints, kept: pa.Table, manifest: str, source: TokenSource
) -> StepIndex:
    """Return the kept steps sorted by task, trajectory and number within each window."""
    steps = {name: numpy_of(kept[name]) for name in KEPT_COLUMNS}
    steps["group"], rank = _ranks(kept["task_id"]), _ranks(kept["trajectory_id"])
    steps["trajectory"] = part_of[steps["shard"]] * (rank.max(initial=0) + 1) + rank
    window = windows(steps["prompt_length"] + steps["response_length"])
    number = numpy_of(kept["step_index"])
    order = np.lexsort((number, steps["trajectory"], steps["group"], window))
    steps = {name: values[order] for name, values in steps.items()}
    steps["sequence"] = np.unique(steps["sequence"], return_inverse=True)[1]
    return StepIndex(shards=shards, manifest=manifest, source=source, **steps)


def windows(length: Ints) -> Ints:
    """Return [n] the window that each step begins in, from the tokens of each."""
    return (np.cumsum(length) - length) // WINDOW_TOKENS


def _ranks(names: pa.ChunkedArray) -> Ints:
    """Return [n] the rank of each name among the distinct ones, from one dictionary."""
    texts = names.chunk(0).dictionary
    order, rank = pc.sort_indices(texts), np.empty(len(texts), np.int64)
    rank[numpy_of(order)] = np.arange(len(texts))
    return rank[np.concatenate([numpy_of(chunk.indices) for chunk in names.chunks])]


def _manifest(
    shards: Sequence[Shard], column: str, scanned: Sequence[ScannedRows], source: TokenSource
) -> str:
    names = ["/".join(shard.path.parts[-3:]) for shard in shards]
    digest = hashlib.sha256(json.dumps([column, names]).encode())
    for rows in scanned:
        digest.update(rows.credit)
        if source.made is not None or numpy_of(rows.kept["num_images"]).any():
            digest.update(numpy_of(rows.kept["sequence"]).tobytes())
    return digest.hexdigest()


def _report(
    index: StepIndex, largest: ScannedRows, outcomes: Ints, notices: tuple[str, ...]
) -> IndexReport:
    advantage = index.advantage
    gaps, counts = np.unique(index.staleness, return_counts=True)
    return IndexReport(
        num_steps=int(outcomes.sum()),
        num_kept=len(index),
        dropped=dict(zip(REASONS, outcomes.tolist(), strict=False)),
        num_masked_tokens=int((index.response_length - index.num_scored).sum()),
        largest_token_id=largest.largest_token_id,
        largest_token_id_at=largest.largest_token_id_at,
        advantage_mean=float(advantage.mean()),
        advantage_std=float(advantage.std()),
        advantage_zero_share=float((advantage == 0).mean()),
        staleness=dict(zip(gaps.tolist(), counts.tolist(), strict=True)),
        notices=notices,
    )


def _version_notices(index: StepIndex, filters: Filters, newest: str | None) -> Iterator[str]:
    if newest is None:
        return
    if index.staleness.max(initial=0) > 0:
        yield (
            f"the model is taken to be {newest!r}, the newest version in the log: steps are up to "
            f"{index.staleness.max()} versions older (those more than {filters.max_staleness} "
            "older are left out), and all the more if it is not"
        )
    if num_unknown := int((index.staleness == UNKNOWN).sum()):
        yield (
            f"{num_unknown:,} steps have no number in policy_version: how old they are is unknown, "
            "and they are kept"
        )


def _sampling_notices(kept: pa.Table) -> Iterator[str]:
    num_without, num_truncated = (
        int(numpy_of(kept[name]).sum()) for name in ("lacks_temperature", "is_truncated")
    )
    if num_without:
        yield f"{num_without:,} steps have no temperature: it is taken to be 1"
    if num_truncated:
        yield (
            f"{num_truncated:,} steps were sampled with top-p or top-k: their log-probabilities "
            "are not of the whole distribution"
        )
