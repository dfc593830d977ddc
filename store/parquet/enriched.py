"""Read step shards with the credit beside them, row group by row group."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from graphcredit.store.errors import InputError, SchemaError
from graphcredit.store.layout import Shard
from graphcredit.store.near_names import did_you_mean
from graphcredit.store.parquet.shards import conform, open_parquet, read_table
from graphcredit.store.schema import (
    CREDIT_KEY_COLUMNS,
    Column,
    estimator_column,
    split_estimator_column,
)


def estimator_columns(shards: Sequence[Shard], estimator: str | None) -> tuple[Column, ...]:
    """Return the estimator columns that at least one credit shard has, by name.

    Raises:
        InputError: There is no credit by that estimator.
        SchemaError: A credit shard cannot be read.
    """
    owners: dict[str, str] = {}
    for shard in shards:
        if shard.credit_path.exists():
            with open_parquet(shard.credit_path) as file:
                splits = {name: split_estimator_column(name) for name in file.schema_arrow.names}
            owners |= {name: split[0] for name, split in splits.items() if split}
    if estimator is not None and estimator not in owners.values():
        there = ", ".join(sorted(set(owners.values()))) or "none"
        raise InputError(
            f"no credit by {estimator!r}: there is credit by {there}."
            f"{did_you_mean(estimator, owners.values())} Check the name, or run "
            f"`graphcredit credit STORE --estimator {estimator}` first"
        )
    return tuple(
        estimator_column(name) for name in sorted(owners) if estimator in (None, owners[name])
    )


def enriched_tables(
    shard: Shard, steps: Sequence[Column], credit: Sequence[Column]
) -> Iterator[pa.Table]:
    """Yield the steps of a shard with their credit, one table a row group; at least one.

    Args:
        shard: The shard.
        steps: Columns of the steps, those that name trajectory and step among them.
        credit: Columns of the credit, which follow those; null where a step has none.

    Raises:
        SchemaError: A shard cannot be read, or the rows of the credit shard are others.
    """
    credited = None
    if shard.credit_path.exists():
        credited = read_table(shard.credit_path, (*CREDIT_KEY_COLUMNS, *credit))
    start = 0
    with open_parquet(shard.path) as file:
        if credited is not None and credited.num_rows != file.metadata.num_rows:
            raise _other_rows(shard)
        present = [column.name for column in steps if column.name in file.schema_arrow.names]
        groups = (
            file.read_row_group(number, columns=present) for number in range(file.num_row_groups)
        )
        for group in groups if file.num_row_groups else [file.read(columns=present)]:
            table = conform(group, steps, where=str(shard.path))
            rows = None if credited is None else credited.slice(start, table.num_rows)
            start += table.num_rows
            yield _joined(shard, table, rows, credit)


def _joined(
    shard: Shard, steps: pa.Table, credit: pa.Table | None, columns: Sequence[Column]
) -> pa.Table:
    for key in CREDIT_KEY_COLUMNS:
        if credit is not None and not steps[key.name].equals(credit[key.name].cast(key.type)):
            raise _other_rows(shard)
    for column in columns:
        values = pa.nulls(steps.num_rows, column.type) if credit is None else credit[column.name]
        steps = steps.append_column(column.name, values)
    return steps


def _other_rows(shard: Shard) -> SchemaError:
    return SchemaError(
        f"{shard.credit_path} must have the rows of its step shard, in the same order: its rows "
        "differ. Run `graphcredit credit` again"
    )
