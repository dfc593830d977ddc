"""Write and find the step shards of one worker: numbered, and marked with the id of their spool."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.collector.recording.spool_format import SpoolHeader
from graphcredit.collector.recording.validation import DEFAULTS
from graphcredit.store.errors import DamagedFileError
from graphcredit.store.files.tables import write_table
from graphcredit.store.layout import Store
from graphcredit.store.parquet.numbers import array_of, repeated, table_of
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import STEP_SCHEMA

SPOOL_ID_KEY = b"graphcredit.spool_id"
"""Metadata key of a step shard: the id of the spool that it was made from."""

_SLICE_ROWS = 1024
"""Rows to convert at a time. Between slices, threads that log can take the interpreter's lock."""


def write_shard(store: Store, header: SpoolHeader, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write the steps of a spool as the worker's next shard."""
    directory = store.steps_dir(header.run_id, header.iteration)
    path = shard_path(directory, header.worker_id, next_number(directory, header.worker_id))
    metadata = {**(STEP_SCHEMA.metadata or {}), SPOOL_ID_KEY: header.spool_id.encode()}
    write_table(step_table(rows, header.worker_id).replace_schema_metadata(metadata), path)
    return path


def shard_path(directory: Path, worker_id: str, number: int) -> Path:
    """Return the path of a worker's shard."""
    return directory / f"{worker_id}-{number:06d}.parquet"


def next_number(directory: Path, worker_id: str) -> int:
    """Return the number of a worker's next shard."""
    return max(_numbered(directory, worker_id), default=-1) + 1


def find_shard(store: Store, header: SpoolHeader) -> Path | None:
    """Return the shard that was made from a spool, or None."""
    directory = store.steps_dir(header.run_id, header.iteration)
    for path in _numbered(directory, header.worker_id).values():
        if _spool_id(path) == header.spool_id:
            return path
    return None


def remove_unfinished(store: Store, header: SpoolHeader) -> None:
    """Remove the temporary files of a worker that died while it wrote a shard."""
    directory = store.steps_dir(header.run_id, header.iteration)
    for path in _numbered(directory, header.worker_id, suffix=r"\.[0-9a-f]+\.tmp").values():
        path.unlink()


def _numbered(directory: Path, worker_id: str, *, suffix: str = "") -> dict[int, Path]:
    """Return number to path of the files `<worker>-<number>.parquet<suffix>`."""
    pattern = re.compile(re.escape(worker_id) + r"-(\d{6,})\.parquet" + suffix)
    matches = {path: pattern.fullmatch(path.name) for path in directory.glob("*")}
    return {int(match[1]): path for path, match in matches.items() if match}


def _spool_id(shard: Path) -> str | None:
    """Return the spool id in a shard's metadata, or None if the shard is damaged.

    The steps of a damaged shard are lost, so its spool must be turned into a shard again.
    """
    try:
        with open_parquet(shard) as file:
            metadata = file.schema_arrow.metadata or {}
    except DamagedFileError:
        return None
    return metadata.get(SPOOL_ID_KEY, b"").decode()


def step_table(rows: Sequence[Mapping[str, Any]], worker_id: str) -> pa.Table:
    """Return the steps of a worker's spool as the table of its shard."""
    filled = {**DEFAULTS, "worker_id": worker_id}
    slices = [
        table_of([{**filled, **row} for row in rows[start : start + _SLICE_ROWS]], STEP_SCHEMA)
        for start in range(0, len(rows), _SLICE_ROWS)
    ]
    return pa.concat_tables([STEP_SCHEMA.empty_table(), *slices]).combine_chunks()


def complete_table(steps: pa.Table, worker_id: str) -> pa.Table:
    """Return steps with all columns of a shard; what they lack has its default, or is null.

    Args:
        steps: Some columns of steps, of the types of the schema.
        worker_id: Who logs them, now.
    """
    length = steps.num_rows
    filled = {**DEFAULTS, "worker_id": worker_id, "logged_at": time.time_ns() // 1000}
    arrays: list[pa.ChunkedArray | pa.Array] = []
    for field in STEP_SCHEMA:
        value = filled.get(field.name)
        if field.name not in steps.column_names:
            arrays.append(repeated(value, length, field.type))
        elif value is not None and steps[field.name].null_count:
            arrays.append(pc.coalesce(steps[field.name], array_of([value], field.type)[0]))
        else:
            arrays.append(steps[field.name])
    return pa.Table.from_arrays(arrays, schema=STEP_SCHEMA)
