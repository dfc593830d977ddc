"""Export sequences of tokens with their advantages: what any trainer reads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphcredit.collector.exporters.sequences import StepTokens, sequences_of
from graphcredit.collector.exporters.step_credit import (
    ADVANTAGE,
    estimators_with_credit,
    shards_to_export,
    with_advantages,
)
from graphcredit.store.errors import InputError, system_errors
from graphcredit.store.files.output import output_path, refuse_existing
from graphcredit.store.files.tables import parquet_writer
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.text_table import Report

MadeTokens = Callable[[Path], Sequence[tuple[Sequence[int], Sequence[int]] | None]]
"""Returns prompt and response of each row of a step shard, in place of those that the log lacks."""

_COLUMNS = ("task_id", "trajectory_id", "step_index", "prompt_ids", "response_ids")
_LOGPROBS = "response_logprobs"

SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("iteration", pa.int32()),
        ("task_id", pa.string()),
        ("trajectory_id", pa.string()),
        ("step_indices", pa.list_(pa.int32())),
        ("input_ids", pa.list_(pa.int32())),
        ("loss_mask", pa.list_(pa.int8())),
        ("advantages", pa.list_(pa.float32())),
        ("logprobs", pa.list_(pa.float32())),
    ]
)
"""Columns of the file; the last four have a value for each token, or `logprobs` is null."""


@dataclass(kw_only=True, slots=True, repr=False)
class TokensReport(Report):
    """What was written."""

    estimator: str
    num_sequences: int = 0
    num_steps: int = 0
    num_tokens: int = 0
    num_in_loss: int = 0
    """Tokens with mask 1."""
    num_without_tokens: int = 0
    """Steps that are in no sequence."""
    num_without_credit: int = 0
    """Steps in a sequence whose mask is 0."""
    num_without_logprobs: int = 0

    def headline(self) -> str:
        """Return how much was written."""
        return (
            f"{counted(self.num_sequences, 'sequence')} of {counted(self.num_steps, 'step')} with "
            f"advantages of {self.estimator}: {counted(self.num_tokens, 'token')}, "
            f"{self.num_in_loss:,} in the loss"
        )


@system_errors()
def export_tokens(
    store: Store,
    target: Path,
    *,
    made: MadeTokens | None = None,
    estimator: str | None = None,
    run_id: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
) -> TokensReport:
    """Write a Parquet file with a row for each sequence of tokens, as `SCHEMA` has it.

    Args:
        store: The store.
        target: A file. It is replaced at the end.
        made: The tokens of logs without; without it, those of the log.
        estimator: Whose advantages; may be left out if the store has credit by one.
        run_id: Only this run.
        iteration: Only this iteration.
        on_progress: Called with the number of shards written and their total.

    Raises:
        InputError: There are no steps, no credit by that estimator, or no step with tokens.
        SchemaError: A shard cannot be read, or the rows of a credit shard are not its step shard's.
    """
    shards = shards_to_export(store, run_id, iteration)
    name, *others = estimators_with_credit(shards, estimator)
    if others:
        raise InputError(
            "a token has one advantage: name one of the store's estimators with --estimator "
            f"({', '.join((name, *others))})"
        )
    refuse_existing(target)

    def write() -> TokensReport:
        report = TokensReport(estimator=name)
        with output_path(target) as temporary, parquet_writer(temporary, SCHEMA) as writer:
            for number, shard in enumerate(shards, start=1):
                if rows := list(_rows(shard, made, report)):
                    writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
                on_progress("export", number, len(shards))
            if not report.num_sequences:
                raise InputError(
                    f"steps must have token ids: of {report.num_without_tokens:,} none has. Name a "
                    "model with --model, whose chat template tokenises their messages"
                )
        return report

    return unchanged(store, write, run_id=run_id, iteration=iteration)


def _rows(shard: Shard, made: MadeTokens | None, report: TokensReport) -> Iterator[dict[str, Any]]:
    """Yield the sequences of a shard; none goes on in another shard."""
    of_trajectory: dict[tuple[str, str], list[StepTokens]] = {}
    for task_id, trajectory_id, step in _steps(shard, made, report):
        of_trajectory.setdefault((task_id, trajectory_id), []).append(step)
    for (task_id, trajectory_id), steps in of_trajectory.items():
        for sequence in sequences_of(sorted(steps, key=lambda step: step.step_index)):
            report.num_sequences += 1
            report.num_tokens += len(sequence.input_ids)
            report.num_in_loss += sum(sequence.loss_mask)
            report.num_without_logprobs += sequence.logprobs is None
            yield {
                "run_id": shard.run_id,
                "iteration": shard.iteration,
                "task_id": task_id,
                "trajectory_id": trajectory_id,
                **asdict(sequence),
            }


def _steps(
    shard: Shard, made: MadeTokens | None, report: TokensReport
) -> Iterator[tuple[str, str, StepTokens]]:
    tokens = None if made is None else iter(made(shard.path))
    for table in with_advantages(shard, (*_COLUMNS, _LOGPROBS), [report.estimator]):
        for row in table.to_pylist():
            prompt, response, logprobs = row["prompt_ids"], row["response_ids"], row[_LOGPROBS]
            if tokens is not None:
                prompt, response = next(tokens) or (None, None)
                logprobs = None
            if not prompt or not response:
                report.num_without_tokens += 1
                continue
            step = StepTokens(
                step_index=row["step_index"],
                prompt=prompt,
                response=response,
                logprobs=logprobs,
                advantage=row[f"{report.estimator}_{ADVANTAGE}"],
            )
            report.num_steps += 1
            report.num_without_credit += step.advantage is None
            yield row["task_id"], row["trajectory_id"], step
