"""The SQL of the views: base views over files, and views derived from them.

The catalog, our own connections and the sandbox all make their views from this SQL; they differ
only in the sources that a base view reads.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphcredit.store.layout import refuse_undecodable
from graphcredit.store.schema import (
    CREDIT_COLUMNS,
    EDGE_COLUMNS,
    EDGE_PARTS,
    ESTIMATOR_PARTS,
    LARGEST_NUMBER,
    NODE_COLUMNS,
    PARTITION_COLUMNS,
    ROUNDING,
    SMALLEST_COST,
    STATE_SCORE_COLUMNS,
    STEP_COLUMNS,
    TRAINING_COLUMNS,
    Column,
    estimator_column,
    metric_column,
    split_estimator_column,
)

ANY_ITERATION = "iteration=[0-9]*"
"""The part of a file pattern that matches every iteration."""

_PATH = "path of the file"
"""Name of the column with the path; no file of a store has a column of this name."""

_DUCKDB_TYPES: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
    pa.float32(): "FLOAT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.binary(): "BLOB",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseView:
    """A view that reads files: the schema's columns, with the schema's types."""

    name: str
    pattern: str
    """Pattern of its files, relative to the store's root."""
    partitions: tuple[Column, ...]
    """Columns that come from the path; always first."""
    columns: tuple[Column, ...]
    """Columns of the schema; null where a file lacks one."""
    parts: tuple[str, ...] = ()
    """Parts whose `<estimator>_<part>` columns the view has if any file has them."""
    has_metrics: bool = False
    """Whether the view also has every other column of doubles that any file has."""
    has_bytes: bool = False
    """Whether bytes of its files may be no text."""

    @property
    def is_open(self) -> bool:
        """Whether the columns depend on the files."""
        return bool(self.parts) or self.has_metrics

    def all_columns(self, fields: Iterable[pa.Field]) -> tuple[Column, ...]:
        """Return the columns of the view, given the fields of the files."""
        return (*self.partitions, *self.columns, *self.extra_columns(fields))

    def extra_columns(self, fields: Iterable[pa.Field]) -> tuple[Column, ...]:
        """Return the columns of the files that the view has in addition to the schema's."""
        types: dict[str, set[pa.DataType]] = {}
        for field in fields:
            types.setdefault(field.name, set()).add(field.type)
        for column in (*self.partitions, *self.columns):
            types.pop(column.name, None)
        of_estimators = [
            estimator_column(name)
            for name in types
            if (split := split_estimator_column(name)) and split[1] in self.parts
        ]
        of_metrics = [
            metric_column(name, "written by an objective")
            for name, kinds in types.items()
            if self.has_metrics and kinds == {pa.float64()}
        ]
        return (*of_estimators, *of_metrics)


def _of_iterations(name: str, files: str, columns: tuple[Column, ...], **more: Any) -> BaseView:
    """Return a view of a table with a folder for each iteration."""
    folder, _, file = files.partition("/")
    pattern = f"{folder}/run_id=*/{ANY_ITERATION}/{file}.parquet"
    return BaseView(
        name=name, pattern=pattern, partitions=PARTITION_COLUMNS, columns=columns, **more
    )


_IMAGES = ("task_id", "trajectory_id", "step_index", "images")

BASE_VIEWS: tuple[BaseView, ...] = (
    # A query of all columns must not read the images.
    _of_iterations("steps", "steps/*", tuple(c for c in STEP_COLUMNS if c.name != "images")),
    _of_iterations("credit", "credit/*", CREDIT_COLUMNS, parts=ESTIMATOR_PARTS),
    _of_iterations("nodes", "graph/nodes", NODE_COLUMNS),
    _of_iterations("edges", "graph/edges", EDGE_COLUMNS, parts=EDGE_PARTS),
    BaseView(
        name="state_scores",
        pattern="history/run_id=*/state_scores.parquet",
        partitions=PARTITION_COLUMNS[:1],
        columns=STATE_SCORE_COLUMNS,
    ),
    _of_iterations("training", "training/*", TRAINING_COLUMNS, has_metrics=True),
    _of_iterations(
        "step_images",
        "steps/*",
        tuple(c for c in STEP_COLUMNS if c.name in _IMAGES),
        has_bytes=True,
    ),
)

HAS_VALUES = f"""
    state IS NOT NULL AND next_state IS NOT NULL AND action IS NOT NULL
    AND is_action_valid IS NOT NULL AND terminated IS NOT NULL AND truncated IS NOT NULL
    AND isfinite(reward) AND reward BETWEEN -{LARGEST_NUMBER} AND {LARGEST_NUMBER}
    AND isfinite(cost) AND cost BETWEEN {SMALLEST_COST} AND {LARGEST_NUMBER}
"""
"""SQL condition: true for a step with all values that credit needs, else false or null."""

DERIVED_VIEWS: dict[str, str] = {
    "enriched": """
        SELECT steps.*, credit.* EXCLUDE (run_id, iteration, trajectory_id, step_index)
        FROM steps LEFT JOIN credit USING (run_id, iteration, trajectory_id, step_index)
    """,
    # Complete, as docs/store.md defines it: every step has its values, the steps are 0 … T-1, each
    # next_state is the following state, and exactly the last step ends the episode. That one says
    # whether it succeeded, unless returns are all that is known. The chain of states is compared by
    # two XORs of hashes, one over the states that steps leave and one over those that they enter,
    # so that long texts are neither sorted nor kept. DuckDB's hash of a pair is the XOR of two
    # hashes, so swapped states would cancel out; hashing the pair's hash once more prevents that.
    "trajectories": f"""
        WITH folded AS (
            SELECT
                run_id, iteration, any_value(task_id) AS task_id, trajectory_id,
                count(*)::INTEGER AS num_steps,
                sum(reward ORDER BY step_index) AS "return",
                arg_max_null(success, step_index) AS success,
                arg_max(terminated, step_index) AS terminated,
                arg_max(truncated, step_index) AS truncated,
                min(logged_at) AS first_logged_at,
                max(logged_at) AS last_logged_at,
                min(step_index) AS first_index,
                max(step_index) AS last_index,
                count(DISTINCT step_index) AS num_indices,
                count(DISTINCT task_id) AS num_tasks,
                count_if(terminated OR truncated) AS num_ends,
                count(success) AS num_outcomes,
                count_if({HAS_VALUES}) AS num_with_values,
                coalesce(bit_xor(hash(hash(state, step_index))) FILTER (step_index > 0), 0)
                    AS left_at,
                bit_xor(hash(hash(next_state, step_index + 1))) AS entered_at,
                arg_max(hash(hash(next_state, step_index + 1)), step_index) AS last_entered
            FROM steps
            GROUP BY run_id, iteration, trajectory_id
        )
        SELECT
            run_id, iteration, task_id, trajectory_id, num_steps, "return", success,
            num_with_values = num_steps AND num_tasks = 1
                AND first_index = 0 AND last_index = num_steps - 1
                AND num_indices = num_steps
                AND left_at = xor(entered_at, last_entered)
                AND num_ends = 1 AND (terminated OR truncated)
                AND num_outcomes = (success IS NOT NULL)::INTEGER AS is_complete,
            terminated, truncated, first_logged_at, last_logged_at
        FROM folded
    """,
    "groups": f"""
        SELECT
            run_id, iteration, task_id,
            count_if(is_complete)::INTEGER AS num_trajectories,
            count_if(NOT is_complete)::INTEGER AS num_incomplete,
            avg(success::INTEGER) FILTER (is_complete) AS success_rate,
            avg("return") FILTER (is_complete) AS mean_return,
            max("return") FILTER (is_complete) - min("return") FILTER (is_complete)
                <= {ROUNDING} * max(abs("return")) FILTER (is_complete) AS is_degenerate,
            sum(num_steps)::BIGINT AS num_steps
        FROM trajectories
        GROUP BY run_id, iteration, task_id
    """,
}
"""Name to SQL, in the order in which to create the views: each reads only earlier ones."""

CREDIT_STATE = "credit_state"
"""Name of the view of `provenance.freshness.freshness_rows`."""

VIEW_NAMES: tuple[str, ...] = (*(view.name for view in BASE_VIEWS), *DERIVED_VIEWS, CREDIT_STATE)

OF_CREDIT = frozenset({"credit", "nodes", "edges", CREDIT_STATE})
"""The views of what `credit` wrote; those that read them are known by that."""

_ANY_NAME = re.compile(rf"(?<!\w)(?:{'|'.join(VIEW_NAMES)})(?!\w)", re.IGNORECASE)
_CATALOGS = re.compile("duckdb_|information_schema|pg_|sqlite_", re.IGNORECASE)


def named_views(sql: str) -> frozenset[str]:
    """Return the views whose names are in a statement, with those that they read.

    One that names none, or asks about views, may be about all of them. The name of a view may be
    put together when the statement runs: then it is missing here.
    """
    found = {name.lower() for name in _ANY_NAME.findall(sql)}
    if not found or _CATALOGS.search(sql):
        return frozenset(VIEW_NAMES)
    for name in reversed(DERIVED_VIEWS):  # each reads only earlier ones
        if name in found:
            found |= set(_ANY_NAME.findall(DERIVED_VIEWS[name]))
    return frozenset(found)


def duckdb_type(type_: pa.DataType) -> str:
    """Return DuckDB's name for a column type of the schema."""
    if pa.types.is_list(type_):
        return f"{duckdb_type(type_.value_type)}[]"
    if pa.types.is_struct(type_):
        fields = ", ".join(f"{identifier(f.name)} {duckdb_type(f.type)}" for f in type_)
        return f"STRUCT({fields})"
    return _DUCKDB_TYPES[type_]


def base_view_sql(columns: Sequence[Column], sources: Iterable[str]) -> str:
    """Return the SELECT of a base view.

    Args:
        columns: The columns of the view, in order.
        sources: Items of a FROM clause, each with some of these columns. Without any, the SELECT
            is empty and has the same columns and types.
    """
    typed = [(identifier(c.name), duckdb_type(c.type)) for c in columns]
    empty = ", ".join(f"NULL::{type_} AS {name}" for name, type_ in typed)
    # A union by name of all columns takes minutes where a file has 100,000 others.
    wanted = ", ".join(f"lower({quoted(column.name)})" for column in columns)
    own = f"SELECT COLUMNS(lambda name: lower(name) IN ({wanted}))"
    parts = [f"SELECT {empty} WHERE false", *(f"{own} FROM {source}" for source in sources)]
    casts = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in typed)
    return f"SELECT {casts} FROM ({' UNION ALL BY NAME '.join(parts)})"


def view_files(root: Path, view: BaseView) -> list[Path]:
    """Return the existing files of a view, sorted, whatever the store's own path is.

    Raises:
        StoreFormatError: The name of a file is not UTF-8.
    """
    return [refuse_undecodable(path) for path in sorted(root.glob(view.pattern))]


def parquet_source(view: BaseView, paths: Iterable[str]) -> str:
    """Return an item of a FROM clause that reads files of a view.

    Run and iteration come from the folders below the store. DuckDB's own `hive_partitioning` would
    make a column of every `name=value` in the whole path, also above the store. A filter on run or
    iteration still keeps DuckDB from opening the other files.

    Args:
        view: The view.
        paths: Patterns of DuckDB; `literal_path` returns the pattern of one file.
    """
    path = identifier(_PATH)
    names = ", ".join(quoted(column.name) for column in view.partitions)
    as_string = str(not view.has_bytes).lower()
    partitions = ", ".join(
        f"regexp_extract({path}, '.*/{c.name}=([^/]*)/', 1)::{duckdb_type(c.type)} AS {c.name}"
        for c in view.partitions
    )
    listed = ", ".join(map(quoted, paths))
    files = (
        f"read_parquet([{listed}], filename={quoted(_PATH)}, "
        f"hive_partitioning=false, union_by_name=true, binary_as_string={as_string}, "
        "allow_empty=true)"
    )
    return (
        f"(SELECT * EXCLUDE ({path}), {partitions} FROM "
        f"(SELECT NULL::VARCHAR AS {path} WHERE false "
        f"UNION ALL BY NAME SELECT COLUMNS(lambda c: c NOT IN ({names})) FROM {files}))"
    )


def literal_path(path: str) -> str:
    """Return the DuckDB pattern that matches one file, whatever characters its path has.

    DuckDB reads a backslash in a pattern as a slash. A pattern that matches no file is used as a
    plain path, so a path with a backslash is returned as it is.
    """
    return path if "\\" in path else re.sub(r"([\[*?])", r"[\1]", path)


def identifier(name: str) -> str:
    """Return a column's name as a quoted SQL identifier; foreign writers may use any characters."""
    return '"' + name.replace('"', '""') + '"'


def quoted(text: str) -> str:
    """Return a SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
