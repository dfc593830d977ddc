"""Check the columns of one Parquet file, and a credit shard against its step shard."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

from collections import Counter
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphcredit.store.checks.file_rules import FILE_RULES
from graphcredit.store.checks.find_files import TableFile
from graphcredit.store.checks.rows import unreadable
from graphcredit.store.checks.violations import SHOWN_ROWS, Violation
from graphcredit.store.errors import DamagedFileError, NewerSchemaError, SchemaError
from graphcredit.store.parquet.chunks import column_chunks
from graphcredit.store.parquet.shards import conform, is_verified, open_parquet, read_table
from graphcredit.store.provenance.configuration import history_configuration, stated_configuration
from graphcredit.store.schema import CONFIGURATION_KEY, CREDIT_KEY_COLUMNS, Column
from graphcredit.store.sql.views import BASE_VIEWS

_CHUNK = 1 << 24
_SHOWN_COLUMNS = 10
"""Most unknown columns of a file that are named one by one."""
_VIEWS = {view.name: view for view in BASE_VIEWS}


def check_columns(file: TableFile) -> list[Violation]:
    """Return the violations that a file's bytes, footer and column types show.

    A digest vouches for the bytes; a file without one is read as a whole.
    """
    try:
        with open_parquet(file.path) as parquet:
            if not is_verified(file.path):
                _read_empty_columns(parquet, file.path)
            schema = parquet.schema_arrow  # made anew each time
            found = _column_violations(file, parquet, schema) + _metadata_violations(file, schema)
        if not is_verified(file.path) and not any(v.is_error for v in found):
            reason = unreadable(file)
            found += [] if reason is None else [damage(file.path, file.relative, reason)]
        return found
    except (SchemaError, pa.ArrowException, OSError) as error:
        return [unreadable_file(file.path, file.relative, error)]


def unreadable_file(path: Path, relative: str, error: Exception) -> Violation:
    """Return the violation for a file that cannot be opened or read."""
    reason = str(error.__cause__ or error)
    if isinstance(error, NewerSchemaError):
        return Violation(rule=FILE_RULES["schema_version"], file=relative, found=reason)
    return damage(path, relative, reason)


def violation(rule: str, file: TableFile, found: str) -> Violation:
    """Return a violation of a file rule."""
    return Violation(rule=FILE_RULES[rule], file=file.relative, found=found)


def damage(path: Path, relative: str, reason: str) -> Violation:
    """Return the violation for a damaged file; or for an inaccessible one, if its bytes are."""
    try:
        with path.open("rb") as file:
            while file.read(_CHUNK):
                pass
    except OSError as error:
        denied = error.strerror or str(error)
        return Violation(rule=FILE_RULES["accessible"], file=relative, found=denied)
    return Violation(rule=FILE_RULES["readable"], file=relative, found=reason)


def _read_empty_columns(parquet: pq.ParquetFile, path: Path) -> None:
    """Read the columns that hold only nulls: DuckDB skips them, so damage there would go unseen."""
    names = {
        name.partition(".")[0]
        for group in range(parquet.num_row_groups)
        for name, chunk in column_chunks(parquet, path, group).items()
        if chunk.is_stats_set and chunk.statistics.null_count == chunk.num_values
    }
    for index in range(parquet.num_row_groups if names else 0):
        parquet.read_row_group(index, columns=sorted(names))


def _column_violations(
    file: TableFile, parquet: pq.ParquetFile, schema: pa.Schema
) -> list[Violation]:
    violations: list[Violation] = []
    for name, count in Counter(schema.names).items():
        if count > 1:
            violations.append(violation("columns", file, f"{count} columns {name!r}"))
    if violations:
        return violations
    extra = _VIEWS[file.kind].extra_columns(schema) if file.kind in _VIEWS else ()
    columns = {column.name: column for column in (*file.columns, *extra)}
    for column in columns.values():
        if column.name in schema.names:
            violations += _type_violations(file, parquet, schema, column)
        elif not column.nullable:
            violations.append(violation("columns", file, f"no column {column.name!r}"))
    unknown = [name for name in schema.names if name not in columns]
    if len(unknown) > _SHOWN_COLUMNS:
        described = f"{len(unknown):,} columns, such as {unknown[0]!r}"
        return [*violations, violation("unknown_column", file, described)]
    return violations + [violation("unknown_column", file, f"column {name!r}") for name in unknown]


def _type_violations(
    file: TableFile, parquet: pq.ParquetFile, schema: pa.Schema, column: Column
) -> list[Violation]:
    type_ = schema.field(column.name).type
    if type_ == column.type:
        return []
    try:
        for batch in parquet.iter_batches(columns=[column.name]):
            conform(pa.Table.from_batches([batch]), [column], where=file.relative)
    except DamagedFileError:
        raise
    except SchemaError as error:
        return [violation("columns", file, f"{column.name!r} of type {type_}: {error.__cause__}")]
    return []


def _metadata_violations(file: TableFile, schema: pa.Schema) -> list[Violation]:
    if file.kind == "state_scores" and history_configuration(schema) is None:
        return [violation("old_history", file, "another version, or none stated")]
    try:
        if file.kind == "credit":
            stated_configuration(schema, file.relative)
    except SchemaError:
        text = schema.metadata[CONFIGURATION_KEY]
        return [violation("credit_configuration", file, f"{text[:80]!r}")]
    return []


def check_credit_rows(steps: TableFile, credit: TableFile) -> list[Violation]:
    """Return the violations of a credit shard whose rows are not those of its step shard."""
    keys = CREDIT_KEY_COLUMNS
    ours, theirs = (read_table(file.path, keys) for file in (credit, steps))
    if ours.num_rows != theirs.num_rows:
        numbers = f"{ours.num_rows} rows, the step shard has {theirs.num_rows}"
        return [violation("credit_rows", credit, numbers)]
    unlike = (pc.not_equal(ours[key.name], theirs[key.name]) for key in keys)
    differs = reduce(pc.or_, (pc.or_kleene(each, pc.is_null(each)) for each in unlike))
    rows = pc.indices_nonzero(differs).to_pylist()
    if not rows:
        return []
    first = {key.name: ours[key.name][rows[0]].as_py() for key in keys}
    return [
        Violation(
            rule=FILE_RULES["credit_rows"],
            file=credit.relative,
            found=f"{first}",
            rows=tuple(rows[:SHOWN_ROWS]),
            num_rows=len(rows),
        )
    ]
