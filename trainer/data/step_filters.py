"""Select the steps to train on, row group by row group, and count why others are left out."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from graphcredit.store.errors import InputError, NothingToTrainError
from graphcredit.store.layout import Shard
from graphcredit.store.parquet.numbers import arrow_of
from graphcredit.trainer.data.credit_columns import read_credit
from graphcredit.trainer.data.ragged import Bools, Floats, Ints
from graphcredit.trainer.data.step_columns import (
    TOKEN_COLUMNS,
    UNKNOWN,
    StepColumns,
    read_columns,
    version_number,
)
from graphcredit.trainer.data.step_identity import digests, sequence_hashes
from graphcredit.trainer.data.token_source import TokenSource
from graphcredit.trainer.data.validation import RECORD, is_truncated, refuse_faults

REASONS = (
    "no_tokens",
    "filtered",
    "no_credit",
    "zero_advantage",
    "negative_advantage",
    "empty_response",
    "no_finite_logprob",
    "stale",
    "over_long",
)
"""Reasons to leave out a step. If several hold, the first is counted. So the later reasons count
only steps that have a signal."""

KEPT = len(REASONS)

KEPT_COLUMNS = (
    "shard",
    "row",
    "prompt_length",
    "response_length",
    "num_scored",
    "advantage",
    "staleness",
    "sequence",
    "num_images",
)
"""Fields of `StepIndex` that are known of each kept step, and how: `sequence` is a hash here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """Rules that leave out steps."""

    max_tokens: int
    """A step with more tokens is over-long."""
    max_staleness: int = 4
    """A step is stale if it was sampled by weights this many versions older, and more."""
    is_corrected: bool = True
    """The loss takes ratios to the sampler, as a correction or in the objective. Without them steps
    more than one version old are refused; with them those sampled with top-p or top-k."""
    unmet: Mapping[Path, Bools] = field(default_factory=dict[Path, Bools])
    """Shard to whether each row is left out because it does not meet the user's condition."""
    drop_zero_advantage: bool = False
    drop_negative_advantage: bool = False

    def outcome(
        self, columns: StepColumns, advantage: Floats, num_scored: Ints, staleness: Ints
    ) -> Ints:
        """Return [n] the position in `REASONS` of the reason to leave out a step, or `KEPT`.

        Args:
            columns: The steps.
            advantage: [n] NaN without credit.
            num_scored: [n] response tokens with a finite log-probability.
            staleness: [n] by how many versions each step is older than the newest; `UNKNOWN` where
                that is not known.
        """
        response = columns.tokens.response.lengths
        conditions = [
            columns.is_without_tokens,
            _rows_of(columns, self.unmet),
            np.isnan(advantage),
            (advantage == 0) & self.drop_zero_advantage,
            (advantage < 0) & self.drop_negative_advantage,
            response == 0,
            num_scored == 0,
            staleness > self.max_staleness,
            columns.tokens.prompt.lengths + response > self.max_tokens,
        ]
        return np.select(conditions, np.arange(KEPT), KEPT)


def _rows_of(columns: StepColumns, left_out: Mapping[Path, Bools]) -> Bools:
    """Return [n] whether each step is left out, of a flag for each row of its shard."""
    num, first = columns.keys.num_rows, columns.first_row
    if columns.path not in left_out:
        return np.zeros(num, np.bool_)
    return left_out[columns.path][first : first + num]


_WITHOUT_SIGNAL = {"zero_advantage", "negative_advantage"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ScannedRows:
    """The kept steps of one row group, and counts over all of its rows."""

    kept: pa.Table
    """The columns of `KEPT_COLUMNS`; `trajectory_id`, `task_id` and `step_index`; and of the step,
    whether it `lacks_temperature` and whether it `is_truncated`."""
    outcomes: Ints
    """[KEPT + 1] rows by outcome."""
    largest_token_id: int
    """Largest token id of the kept steps; -1 without kept steps."""
    largest_token_id_at: str
    """File and row of the step with the largest token id."""
    credit: bytes
    """Digest of the credit of all rows."""


def scan(
    shards: Sequence[Shard], column: str, filters: Filters, newest: str | None, source: TokenSource
) -> Iterator[ScannedRows]:
    """Yield the kept steps of each row group of some shards whose credit was checked.

    Raises:
        InputError: The credit belongs to other steps, an advantage is not finite, or a step has a
            fault.
        SchemaError: A shard cannot be read.
    """
    for number, shard in enumerate(shards):
        credit = read_credit(shard, column)
        for columns in read_columns(shard.path):
            keys, first_row = columns.keys, columns.first_row
            advantage = credit.advantages_of(keys, first_row)
            tokens = source.columns(columns.path, columns.first_row, columns.tokens)
            columns = replace(columns, tokens=tokens)
            yield _scan_rows(number, shard.root, columns, advantage, filters, newest)


def _scan_rows(
    shard: int,
    root: Path,
    columns: StepColumns,
    advantage: Floats,
    filters: Filters,
    newest: str | None,
) -> ScannedRows:
    refuse_faults(columns, takes_sampler_ratios=filters.is_corrected)
    age = UNKNOWN if newest is None else version_number(newest) - columns.version
    staleness = np.where(columns.version == UNKNOWN, UNKNOWN, age)
    tokens = columns.tokens
    num_scored = tokens.logprob.count(np.isfinite(tokens.logprob.values))
    outcome = filters.outcome(columns, advantage, num_scored, staleness)
    kept = np.flatnonzero(outcome == KEPT)
    num_images, pictures = digests(tokens.images, kept, root, columns.path, columns.first_row)
    largest_token_id, where = _largest_token_id(columns, outcome == KEPT)
    keys = columns.keys.take(arrow_of(kept))
    values = {
        "shard": np.full(len(kept), shard),
        "row": columns.first_row + kept,
        "prompt_length": tokens.prompt.lengths[kept],
        "response_length": tokens.response.lengths[kept],
        "num_scored": num_scored[kept],
        "advantage": advantage[kept],
        "staleness": staleness[kept],
        "sequence": sequence_hashes(tokens.prompt, tokens.response, kept) + pictures,
        "num_images": num_images,
        "lacks_temperature": columns.lacks_temperature[kept],
        "is_truncated": is_truncated(columns)[kept],
        "step_index": keys["step_index"],
        **{name: keys[name].dictionary_encode() for name in ("trajectory_id", "task_id")},
    }
    return ScannedRows(
        kept=pa.table(
            {n: arrow_of(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
        ),
        outcomes=np.bincount(outcome, minlength=KEPT + 1),
        largest_token_id=largest_token_id,
        largest_token_id_at=where,
        credit=hashlib.sha256(advantage.tobytes()).digest(),
    )


def _largest_token_id(columns: StepColumns, is_kept: Bools) -> tuple[int, str]:
    """Return the largest token id of the kept steps, and where it is."""
    largest = (-1, "")
    for ids in (columns.tokens.prompt, columns.tokens.response):
        kept = np.where(np.repeat(is_kept, ids.lengths), ids.values, -1)
        if kept.max(initial=-1) > largest[0]:
            position = int(kept.argmax())
            largest = int(kept[position]), columns.where(ids.row_of(position))
    return largest


def refuse_nothing_left(outcomes: Ints) -> None:
    """Raise if no step is left to train on.

    Args:
        outcomes: [len(REASONS) + 1] number of steps left out by each reason; the last are kept.

    Raises:
        NothingToTrainError: All are left out because they have no signal, or have no credit because
            their trajectories never ended.
        InputError: All are left out, some for other reasons: the log or the filters do not fit.
    """
    num_steps = int(outcomes.sum())
    if outcomes[REASONS.index("no_tokens")] == num_steps:
        raise InputError(
            f"training needs steps with {', '.join(TOKEN_COLUMNS)}: all three are missing or null "
            f"in all {num_steps} steps. A policy that samples tokens must {RECORD}; the recorder "
            "takes them under these names"
        )
    if outcomes[KEPT]:
        return
    counts = {name: int(n) for name, n in zip(REASONS, outcomes, strict=False) if n}
    reasons = ", ".join(f"{count} {name}" for name, count in counts.items())
    others = counts.keys() - _WITHOUT_SIGNAL
    if others < counts.keys() and others <= {"no_credit"}:
        raise NothingToTrainError(
            f"training needs steps with a signal: of {num_steps}, all are left out ({reasons}). "
            "Choose another iteration or advantage; or let an entropy bonus or the divergence from "
            "another --reference teach them"
        )
    raise InputError(
        f"training needs steps that are not left out: of {num_steps}, all are ({reasons}). "
        "Relax the filter that took them, or choose another iteration or advantage"
    )
