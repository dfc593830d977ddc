"""The kinds of tables that `compute` takes, and how each becomes an Arrow table and back.

No library is imported to find out the kind of a table: a table exists only if its library is
loaded.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from graphcredit.store.errors import InputError, SchemaError
from graphcredit.store.sql.views import identifier


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One kind of table."""

    library: str
    """The module that has the type."""
    type: str
    """Name of the type there."""
    names: Callable[[Any], Sequence[str]]
    """Returns the columns of a table."""
    read: Callable[[Any, list[str]], pa.Table]
    """Returns some columns of a table in Arrow."""
    write: Callable[[pa.Table, Any], Any]
    """Returns an Arrow table in this kind; also given the table that was read."""

    def has(self, table: object) -> bool:
        """Return whether a table is of this kind."""
        library = sys.modules.get(self.library)
        return library is not None and isinstance(table, getattr(library, self.type))


def kind_of(table: Any) -> tuple[Kind, Any]:
    """Return the kind of a table, and the table; one that is only a stream becomes an Arrow table.

    Raises:
        InputError: It is of none.
    """
    for kind in KINDS:
        if kind.has(table):
            return kind, table
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        return KINDS[0], pa.table(table)
    name = f"{type(table).__module__}.{type(table).__qualname__}"
    listed = ", ".join(f"{kind.library}.{kind.type}" for kind in KINDS)
    split = ". Name a split, such as dataset['train']" if name.endswith("DatasetDict") else ""
    raise InputError(
        f"steps must be a table of one of these kinds: {listed}, or have the Arrow stream "
        f"interface; got {name}{split}"
    )


def _columns(table: Any) -> Sequence[str]:
    return table.columns


def _read_pandas(frame: Any, names: list[str]) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame[names], preserve_index=False)
    except pa.ArrowException as error:
        raise SchemaError(f"each column of the table must have one type: {error}") from error


def _write_pandas(credit: pa.Table, frame: Any) -> Any:
    """Return the columns that the frame has not, so that `frame.join` takes them."""
    new = [name for name in credit.column_names if name not in frame.columns]
    return credit.select(new).to_pandas().set_axis(frame.index)


def _read_duckdb(relation: Any, names: list[str]) -> pa.Table:
    return relation.project(", ".join(map(identifier, names))).to_arrow_table()


def _write_polars(credit: pa.Table, frame: Any) -> Any:
    import polars as pl  # loaded already, since the frame is one of its own

    credited = pl.DataFrame(credit)
    return credited.lazy() if isinstance(frame, pl.LazyFrame) else credited


def _write_duckdb(credit: pa.Table, relation: Any) -> Any:
    """Return a relation of the same connection; DuckDB finds the local `credit` by its name."""
    return relation.query("steps", "FROM credit")


def _read_list(rows: Any, names: list[str]) -> pa.Table:
    try:
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except pa.ArrowException as error:
        raise SchemaError(f"each column of the rows must have one type: {error}") from error


def _names_of_list(rows: Any) -> Sequence[str]:
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InputError(
                f"steps must be rows with names: row {place} (from 0) is {type(row).__name__}"
            )
    return list(dict.fromkeys(name for row in rows for name in row))


KINDS: tuple[Kind, ...] = (
    Kind(
        library="pyarrow",
        type="Table",
        names=lambda table: table.column_names,
        read=lambda table, names: table.select(names),
        write=lambda credit, table: credit,
    ),
    Kind(
        library="polars",
        type="DataFrame",
        names=_columns,
        read=lambda frame, names: frame.select(names).to_arrow(),
        write=_write_polars,
    ),
    Kind(
        library="polars",
        type="LazyFrame",
        names=lambda lazy: lazy.collect_schema().names(),
        read=lambda lazy, names: lazy.select(names).collect().to_arrow(),
        write=_write_polars,
    ),
    Kind(
        library="pandas", type="DataFrame", names=_columns, read=_read_pandas, write=_write_pandas
    ),
    Kind(
        library="duckdb",
        type="DuckDBPyRelation",
        names=_columns,
        read=_read_duckdb,
        write=_write_duckdb,
    ),
    Kind(
        library="datasets",
        type="Dataset",
        names=lambda dataset: dataset.column_names,
        read=lambda dataset, names: dataset.select_columns(names).with_format("arrow")[:],
        write=lambda credit, dataset: type(dataset)(credit),
    ),
    Kind(
        library="builtins",
        type="list",
        names=_names_of_list,
        read=_read_list,
        write=lambda credit, rows: credit.to_pylist(),
    ),
)
"""All kinds. A row needs no import of its library."""
