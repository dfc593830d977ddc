"""Export credit as JSONL: one line a turn, with the ids of the log that it is from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphcredit.collector.exporters.step_credit import (
    ADVANTAGE,
    estimators_with_credit,
    shards_to_export,
    text_file,
    with_advantages,
)
from graphcredit.collector.importers.messages.values import field_at, fields_of
from graphcredit.store.errors import system_errors
from graphcredit.store.files.output import output_path, refuse_existing
from graphcredit.store.files.parse import parse_object
from graphcredit.store.layout import Shard, Store
from graphcredit.store.parquet.shards import read_steps
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.plural import counted
from graphcredit.store.progress import OnProgress, silent
from graphcredit.store.text_table import Report

_KEYS = ("task_id", "trajectory_id", "step_index")

_LONGEST_ID = 200
"""Characters of the longest text that may be an id, and not content."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class TurnsReport(Report):
    """What was written."""

    estimators: tuple[str, ...]
    num_turns: int
    num_trajectories: int
    num_without_credit: int
    """Turns without credit by any of the estimators; their advantages are null."""

    def headline(self) -> str:
        """Return how much was written."""
        trajectories = counted(self.num_trajectories, "rollout")
        return (
            f"{counted(self.num_turns, 'turn')} of {trajectories} with advantages of "
            f"{', '.join(self.estimators)}; {self.num_without_credit:,} without credit"
        )


@system_errors()
def export_turns(
    store: Store,
    target: Path,
    *,
    estimator: str | None = None,
    run_id: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
) -> TurnsReport:
    """Write a line of JSON for each step: where it is from, and its advantages.

    `log` has the short values of what an import kept of the record (`log` in `extra` of the first
    step), such as its id.

    Args:
        store: The store.
        target: A file, compressed if its name ends in .gz or .zst. It is replaced at the end.
        estimator: Only this estimator's advantage.
        run_id: Only this run.
        iteration: Only this iteration.
        on_progress: Called with the number of shards written and their total.

    Raises:
        InputError: There are no steps, or no credit by that estimator.
        SchemaError: A shard cannot be read, or the rows of a credit shard are not its step shard's.
    """
    shards = shards_to_export(store, run_id, iteration)
    names = estimators_with_credit(shards, estimator)
    refuse_existing(target)
    with output_path(target) as temporary:
        return unchanged(
            store,
            lambda: _write(store, shards, names, temporary, target.name, on_progress),
            run_id=run_id,
            iteration=iteration,
        )


def _write(
    store: Store,
    shards: Sequence[Shard],
    estimators: Sequence[str],
    path: Path,
    name: str,
    on_progress: OnProgress,
) -> TurnsReport:
    num_turns = num_trajectories = num_without = done = 0
    with text_file(path, name) as out:
        for place, members in groupby(shards, lambda s: (s.run_id, s.iteration)):
            logs = _logs(store, *place)
            seen: set[str] = set()
            for shard in members:
                for line in _lines(shard, estimators, logs):
                    out.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
                    num_turns += 1
                    num_without += all(v is None for v in line["advantages"].values())
                    seen.add(line["trajectory_id"])
                done += 1
                on_progress("export", done, len(shards))
            num_trajectories += len(seen)
    return TurnsReport(
        estimators=tuple(estimators),
        num_turns=num_turns,
        num_trajectories=num_trajectories,
        num_without_credit=num_without,
    )


def _lines(
    shard: Shard, estimators: Sequence[str], logs: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    for table in with_advantages(shard, _KEYS, estimators):
        advantages = [_shortest(table[f"{name}_{ADVANTAGE}"]) for name in estimators]
        for number, row in enumerate(table.select(list(_KEYS)).to_pylist()):
            values = (column[number] for column in advantages)
            yield {
                "run_id": shard.run_id,
                "iteration": shard.iteration,
                **row,
                "advantages": dict(zip(estimators, values, strict=True)),
                "log": logs.get(row["trajectory_id"], {}),
            }


def _shortest(column: pa.ChunkedArray) -> list[float | None]:
    """Return 32-bit floats as the shortest numbers that are the same: 0.1, not 0.10000000149."""
    texts = column.cast(pa.string()).to_pylist()
    return [None if text is None else float(text) for text in texts]


def _logs(store: Store, run_id: str, iteration: int) -> dict[str, dict[str, Any]]:
    """Return the ids that the log has of each trajectory, from its first step."""
    logs: dict[str, dict[str, Any]] = {}
    columns = ("trajectory_id", "step_index", "extra")
    for table in read_steps(store, columns=columns, run_id=run_id, iteration=iteration):
        for row in table.to_pylist():
            if row["step_index"] == 0 and (ids := _ids(row["extra"])):
                logs[row["trajectory_id"]] = ids
    return logs


def _ids(extra: str | None) -> dict[str, Any]:
    """Return the numbers and the short texts of a record."""
    log = field_at(parse_object(extra), "log")
    return {key: item for key, item in fields_of(log).items() if _is_short(item)}


def _is_short(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _LONGEST_ID)
