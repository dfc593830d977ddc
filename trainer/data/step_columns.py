"""Read the step columns that the trainer needs, a row group at a time, as arrays."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphcredit.store.parquet.numbers import numpy_of
from graphcredit.store.parquet.shards import conform, open_parquet, step_columns
from graphcredit.trainer.data.ragged import Bools, Floats, Ints, Ragged, Singles, ragged

TOKEN_COLUMNS = ("prompt_ids", "response_ids", "response_logprobs")
_SAMPLING_COLUMNS = ("temperature", "top_p", "top_k", "policy_version")
_KEY_COLUMNS = ("trajectory_id", "step_index", "task_id")

UNKNOWN = -1
"""A version without a number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenColumns:
    """The tokens of n adjacent steps."""

    prompt: Ragged
    """Token ids; -1 for a null."""
    response: Ragged
    """The same."""
    logprob: Ragged
    """float32, NaN for a null."""
    temperature: Singles
    """[n] sampling temperature; 1 where it was not logged."""
    images: pa.ListArray | None
    """[n] lists of logged images; None if no step has one."""

    @property
    def num_bytes(self) -> int:
        """Memory of the arrays."""
        lists = (self.prompt, self.response, self.logprob)
        per_row = sum(r.starts.nbytes + r.is_null.nbytes for r in lists) + self.temperature.nbytes
        images = 0 if self.images is None else self.images.nbytes
        return per_row + images + sum(r.values.nbytes for r in lists)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepColumns:
    """Columns of the n steps of a row group that determine whether and how they are used."""

    path: Path
    """The step shard."""
    first_row: int
    """Row of the shard at which the row group starts."""
    keys: pa.Table
    """[n] trajectory_id, step_index and task_id."""
    tokens: TokenColumns
    top_p: Floats
    """[n] 1 where it was not logged."""
    top_k: Ints
    """[n] 0 where it was not logged."""
    version: Ints
    """[n] number at the end of policy_version; -1 if it has none."""
    lacks_temperature: Bools
    """[n] the temperature was not logged."""

    @property
    def is_without_tokens(self) -> Bools:
        """[n] none of the token columns has a list."""
        lists = (self.tokens.prompt, self.tokens.response, self.tokens.logprob)
        return np.logical_and.reduce([r.is_null for r in lists])

    def where(self, row: int) -> str:
        """Return file and row, for messages."""
        return f"{self.path}, row {self.first_row + row}"


def read_columns(path: Path) -> Iterator[StepColumns]:
    """Yield the columns of a step shard, row group by row group.

    Raises:
        SchemaError: The shard cannot be read, or a column has another type.
    """
    with open_parquet(path) as file:
        first_row = 0
        for index in range(file.num_row_groups):
            names = (*_KEY_COLUMNS, *TOKEN_COLUMNS, *_SAMPLING_COLUMNS, "images")
            table = _read(file, index, names, path)
            yield _step_columns(path, first_row, table)
            first_row += table.num_rows


def read_tokens(path: Path, row_group: int) -> TokenColumns:
    """Return the tokens of one row group of a step shard."""
    with open_parquet(path) as file:
        return _token_columns(
            _read(file, row_group, (*TOKEN_COLUMNS, "temperature", "images"), path)
        )


def row_group_starts(path: Path) -> Ints:
    """Return [row groups + 1] the row at which each row group starts, and the number of rows."""
    with open_parquet(path) as file:
        metadata = file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    return np.cumsum([0, *sizes])


def version_number(version: str | None) -> int:
    """Return the number at the end of a policy version, which orders versions; -1 without one."""
    number = re.search(r"[0-9]+$", version or "")
    return int(number.group()) if number else UNKNOWN


def newest_version(paths: Iterable[Path]) -> str | None:
    """Return the newest policy version of a log.

    None if the order is unknown: versions have no number at their end, or differ in more than that.

    Raises:
        SchemaError: One cannot be read.
    """
    versions = {version for path in paths for version in _distinct_versions(path)}
    numbered = sorted(version for version in versions if version_number(version) != UNKNOWN)
    is_ordered = len({version.rstrip("0123456789") for version in numbered}) == 1
    return max(numbered, key=version_number) if is_ordered else None


def _distinct_versions(path: Path) -> set[str]:
    with open_parquet(path) as file:
        tables = [_read(file, n, ["policy_version"], path) for n in range(file.num_row_groups)]
    return {v for table in tables for v in table["policy_version"].unique().to_pylist() if v}


def _read(file: pq.ParquetFile, row_group: int, names: Sequence[str], path: Path) -> pa.Table:
    present = [name for name in names if name in file.schema_arrow.names]
    table = file.read_row_group(row_group, columns=present)
    return conform(table, step_columns(names), where=str(path))


def _step_columns(path: Path, first_row: int, table: pa.Table) -> StepColumns:
    codes = table["policy_version"].combine_chunks().dictionary_encode()
    numbers = np.array([*map(version_number, codes.dictionary.to_pylist()), UNKNOWN], np.int64)
    return StepColumns(
        path=path,
        first_row=first_row,
        keys=table.select(_KEY_COLUMNS),
        tokens=_token_columns(table),
        top_p=numpy_of(table["top_p"], 1.0).astype(np.float64),
        top_k=numpy_of(table["top_k"]).astype(np.int64),
        version=numbers[numpy_of(codes.indices, -1)],
        lacks_temperature=numpy_of(table["temperature"].is_null()),
    )


def _token_columns(table: pa.Table) -> TokenColumns:
    return TokenColumns(
        prompt=ragged(table["prompt_ids"], null=-1),
        response=ragged(table["response_ids"], null=-1),
        logprob=ragged(table["response_logprobs"], null=float("nan")),
        temperature=numpy_of(table["temperature"], 1.0),
        images=_images(table["images"]),
    )


def _images(column: pa.ChunkedArray) -> pa.ListArray | None:
    most = pc.max(pc.list_value_length(column)).as_py()
    return column.combine_chunks() if most else None
