"""Check the row rules with DuckDB, over the files of one run and iteration at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from duckdb.func import ARROW

from graphcredit.store.checks.file_rules import RowRule, Severity
from graphcredit.store.checks.find_files import TableFile
from graphcredit.store.checks.row_rules import (
    COPY_RULES,
    CREDIT_RULES,
    EDGE_RULES,
    ENTITY_RULES,
    NODE_RULES,
    NOTE_RULES,
    NUM_REPLAY_NUMBERS,
    RELATION_RULES,
    REPLAY_RULES,
    SEQUENCE_RULES,
    START_RULES,
    STATE_SCORE_RULES,
    STEP_RULES,
    SUMMARY_ADVANTAGE_RULES,
    SUMMARY_TRAJECTORY_RULES,
)
from graphcredit.store.checks.value_rules import IS_JSON_OBJECT, are_json_objects
from graphcredit.store.checks.violations import SHOWN_ROWS, Violation
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import Column
from graphcredit.store.sql.views import (
    BASE_VIEWS,
    DERIVED_VIEWS,
    HAS_VALUES,
    base_view_sql,
    identifier,
    literal_path,
    quoted,
)

_MEMORY = "2GiB"
_FOUND_LENGTH = 200
_CREDIT_VIEW = next(view for view in BASE_VIEWS if view.name == "credit")
_READ_ALL = "bit_xor(hash(COLUMNS(*)))"
"""Reads every value, also in columns without a rule, since any may be damaged. A mere count would
be answered from the file's statistics."""
_PLACE = (
    Column(name="checked_file", type=pa.string(), meaning="path of the file"),
    Column(name="file_row_number", type=pa.int64(), meaning="row in the file"),
)

_NEIGHBOURS = """
    lag(step_index) OVER steps_in_order AS previous_index,
    lead(step_index) OVER steps_in_order AS next_index,
    lag(task_id) OVER steps_in_order AS previous_task_id,
    lag(next_state) OVER steps_in_order AS previous_next_state,
    lag(logged_at) OVER steps_in_order AS previous_logged_at,
    lag(checked_file) OVER steps_in_order AS previous_file,
    lead(checked_file) OVER steps_in_order AS next_file
"""
_IN_ORDER = """
    WINDOW steps_in_order AS (
        PARTITION BY trajectory_id ORDER BY step_index, checked_file, file_row_number
    )
"""
_STEPS_IN_ORDER = f"""
    SELECT *, {_NEIGHBOURS}
    FROM (
        SELECT checked_file, file_row_number, trajectory_id, task_id, step_index,
            hash(state) AS state, hash(next_state) AS next_state, {HAS_VALUES} AS has_values,
            terminated, truncated, success, logged_at
        FROM steps_table
        WHERE trajectory_id IS NOT NULL AND step_index IS NOT NULL
    )
    {_IN_ORDER}
"""
_COPIES = """
    WITH contents AS (
        SELECT checked_file, file_row_number, trajectory_id, step_index, logged_at,
            md5(to_json(row(*COLUMNS(* EXCLUDE (
                checked_file, file_row_number, logged_at, worker_id
            ))))) AS content
        FROM steps_table
        WHERE step_index IS NOT NULL AND trajectory_id IN (
            SELECT trajectory_id FROM steps_in_order WHERE step_index = previous_index
        )
    ), by_step AS (
        SELECT trajectory_id, count(*) AS number, count(DISTINCT content) AS num_contents
        FROM contents GROUP BY trajectory_id, step_index
    ), equal AS (
        SELECT trajectory_id, max(number) AS copies, min(number) = max(number) AS is_whole
        FROM by_step GROUP BY trajectory_id HAVING max(num_contents) = 1
    )
    SELECT checked_file, file_row_number, trajectory_id, copies, is_whole,
        row_number() OVER (
            PARTITION BY trajectory_id, step_index ORDER BY checked_file, logged_at, file_row_number
        ) - 1 AS copy
    FROM contents JOIN equal USING (trajectory_id)
"""
"""Copy 0 of each step is the one in the first shard; within a shard, the earliest one."""

_SEQUENCE = f"""
    FROM steps_in_order WHERE trajectory_id NOT IN (SELECT trajectory_id FROM copies)
    UNION ALL BY NAME
    SELECT *, {_NEIGHBOURS}
    FROM (
        SELECT steps_in_order.* EXCLUDE (
            previous_index, next_index, previous_task_id, previous_next_state, previous_logged_at,
            previous_file, next_file
        )
        FROM steps_in_order SEMI JOIN (FROM copies WHERE copy = 0)
            USING (checked_file, file_row_number)
    )
    {_IN_ORDER}
"""
_TRAJECTORIES = f"""
    WITH steps AS (
        SELECT
            '' AS run_id, 0 AS iteration, 0.0::DOUBLE AS reward, '' AS action,
            CASE WHEN has_values THEN 1.0::DOUBLE END AS cost, true AS is_action_valid, *
        FROM sequence
    )
    FROM ({DERIVED_VIEWS["trajectories"]})
"""
"""The SQL of the view `trajectories`, over `steps` that are made of `sequence`."""
_STARTS = """
    SELECT *, first(state) OVER (PARTITION BY task_id ORDER BY trajectory_id) AS group_state
    FROM sequence WHERE step_index = 0 AND previous_index IS NULL
"""
_CREDIT = """
    SELECT credit_table.*, coalesce(is_complete, false) AS is_complete
    FROM credit_table LEFT JOIN trajectories USING (trajectory_id)
"""
_NODES = """
    SELECT *,
        count(*) OVER (PARTITION BY task_id, state_id) AS copies,
        count_if(is_goal) OVER (PARTITION BY task_id) AS num_goals,
        min(state_id) OVER (PARTITION BY task_id) AS first_id
    FROM nodes_table
"""
_EDGES = """
    SELECT *,
        (task_id, state_id) IN (SELECT (task_id, state_id) FROM nodes_table) AS has_source,
        (task_id, next_state_id) IN (SELECT (task_id, state_id) FROM nodes_table) AS has_target
    FROM edges_table
"""
_SUMMARY_TRAJECTORIES = """
    SELECT
        summed.*, coalesce(num_logged, 0) AS num_logged,
        count(*) OVER (PARTITION BY task_id, trajectory_id) AS copies
    FROM summary_trajectories_table AS summed
    LEFT JOIN (
        SELECT task_id, trajectory_id, count(*) AS num_logged FROM steps_table GROUP BY ALL
    ) USING (task_id, trajectory_id)
"""
_SUMMARY_ADVANTAGES = """
    SELECT *, count(*) OVER (PARTITION BY trajectory_id, estimator) AS copies
    FROM summary_advantages_table
"""
_STATE_SCORES = """
    SELECT *, count(*) OVER (PARTITION BY task_id, state) AS copies FROM state_scores_table
"""
_REPLAY = f"""
    SELECT replay_table.*,
        (task_id, trajectory_id, step_index, action) IN (
            SELECT (task_id, trajectory_id, step_index, action) FROM steps_table
        ) AS has_step,
        count(*) OVER (PARTITION BY trajectory_id, step_index, settings) AS copies,
        {NUM_REPLAY_NUMBERS} AS num_numbers
    FROM replay_table
"""
_NOTES = """
    SELECT *,
        CASE WHEN step_index IS NULL
            THEN (task_id, trajectory_id) IN (SELECT (task_id, trajectory_id) FROM steps_table)
            ELSE (task_id, trajectory_id, step_index) IN (
                SELECT (task_id, trajectory_id, step_index) FROM steps_table
            )
        END AS is_there,
        count(*) OVER (PARTITION BY trajectory_id, step_index) AS copies
    FROM notes_table
"""
_ENTITIES = """
    SELECT *, count(*) OVER (PARTITION BY task_id, entity_id) AS copies FROM entities_table
"""
_RELATIONS = """
    SELECT *,
        (task_id, head_id) IN (SELECT (task_id, entity_id) FROM entities_table) AS has_head,
        (task_id, tail_id) IN (SELECT (task_id, entity_id) FROM entities_table) AS has_tail
    FROM relations_table
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowRelation:
    """A relation over which row rules are checked."""

    name: str
    needs: frozenset[str]
    """Kinds of files that it reads; it is skipped if there is no file of one of them."""
    sql: str
    """SQL over `<kind>_table` of the needed kinds, and over earlier relations."""
    rules: tuple[RowRule, ...] = ()
    is_stored: bool = False
    """Whether to store it as a table, because it is read several times."""


def _relation(
    name: str, needs: str, sql: str, rules: tuple[RowRule, ...] = (), *, is_stored: bool = False
) -> RowRelation:
    kinds = frozenset(needs.split())
    return RowRelation(name=name, needs=kinds, sql=sql, rules=rules, is_stored=is_stored)


ROW_RELATIONS: tuple[RowRelation, ...] = (
    _relation("steps", "steps", "FROM steps_table", STEP_RULES),
    _relation("steps_in_order", "steps", _STEPS_IN_ORDER, is_stored=True),
    _relation("copies", "steps", _COPIES, COPY_RULES, is_stored=True),
    _relation("sequence", "steps", _SEQUENCE, SEQUENCE_RULES),
    _relation("starts", "steps", _STARTS, START_RULES),
    _relation("trajectories", "steps", _TRAJECTORIES, is_stored=True),
    _relation("credit", "steps credit", _CREDIT, CREDIT_RULES),
    _relation("nodes", "nodes", _NODES, NODE_RULES),
    _relation("edges", "nodes edges", _EDGES, EDGE_RULES),
    _relation(
        "summary_trajectories",
        "steps summary_trajectories",
        _SUMMARY_TRAJECTORIES,
        SUMMARY_TRAJECTORY_RULES,
    ),
    _relation(
        "summary_advantages", "summary_advantages", _SUMMARY_ADVANTAGES, SUMMARY_ADVANTAGE_RULES
    ),
    _relation("replay", "steps replay", _REPLAY, REPLAY_RULES),
    _relation("notes", "steps notes", _NOTES, NOTE_RULES),
    _relation("state_scores", "state_scores", _STATE_SCORES, STATE_SCORE_RULES),
    _relation("entities", "entities", _ENTITIES, ENTITY_RULES),
    _relation("relations", "entities relations", _RELATIONS, RELATION_RULES),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowCheck:
    """The violations in the rows of some files, and how much they hold."""

    violations: tuple[Violation, ...]
    num_steps: int
    num_trajectories: int
    num_incomplete: int


def open_database(scratch: str) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database for `check_rows`.

    Args:
        scratch: A directory for data that does not fit in memory.
    """
    database = duckdb.connect(":memory:", config={"memory_limit": _MEMORY})
    database.execute(f"SET temp_directory={quoted(scratch)}")
    database.create_function(IS_JSON_OBJECT, are_json_objects, ["VARCHAR"], "BOOLEAN", type=ARROW)
    return database


def check_rows(database: duckdb.DuckDBPyConnection, files: Sequence[TableFile]) -> RowCheck:
    """Check the row rules over readable files with valid columns.

    Args:
        database: From `open_database`; it is unchanged afterwards.
        files: The files of one run and iteration.

    Raises:
        duckdb.Error: A file cannot be read after all; `unreadable` tells which.
    """
    with database.cursor() as connection:
        connection.execute("SET TimeZone='UTC'")
        kinds = {file.kind for file in files}
        for kind in kinds:
            _create_table_view(connection, kind, [file for file in files if file.kind == kind])
        names = {str(file.path): file for file in files}
        violations: list[Violation] = []
        for relation in ROW_RELATIONS:
            if relation.needs <= kinds:
                what = "TABLE" if relation.is_stored else "VIEW"
                connection.execute(f"CREATE TEMP {what} {relation.name} AS {relation.sql}")
                violations += _broken(connection, relation, names)
        counts = _counts(connection) if "steps" in kinds else (0, 0, 0)
    return RowCheck(
        violations=tuple(violations),
        num_steps=counts[0],
        num_trajectories=counts[1],
        num_incomplete=counts[2],
    )


def unreadable(file: TableFile) -> str | None:
    """Return why DuckDB cannot read all of a file, or None."""
    with duckdb.connect(":memory:") as connection:
        try:
            _create_table_view(connection, file.kind, [file])
            connection.execute(f"SELECT {_READ_ALL} FROM {file.kind}_table")
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            return str(error)
    return None


def _create_table_view(
    connection: duckdb.DuckDBPyConnection, kind: str, files: Sequence[TableFile]
) -> None:
    """Create `<kind>_table`: columns with the schema's types, and file and number of each row."""
    with_images = [file for file in files if kind == "steps" and _has_images(file)]
    without = [file for file in files if file not in with_images]
    sources = [_source(part, as_string=part is without) for part in (without, with_images) if part]
    columns = files[0].columns
    if kind == "credit":
        found = connection.sql(f"SELECT * FROM {sources[0]} LIMIT 0").to_arrow_table().schema
        columns = _CREDIT_VIEW.all_columns(found)[len(_CREDIT_VIEW.partitions) :]
    sql = base_view_sql((*_PLACE, *columns), sources)
    if kind == "credit":
        has_credit = " OR ".join(f"{identifier(c.name)} IS NOT NULL" for c in columns if c.nullable)
        is_finite = " AND ".join(
            f"coalesce(isfinite({identifier(c.name)}), true)"
            for c in columns
            if c.type == pa.float32()
        )
        sql = f"SELECT *, {has_credit} AS has_credit, {is_finite} AS has_finite_credit FROM ({sql})"
    connection.execute(f"CREATE TEMP VIEW {kind}_table AS {sql}")


def _has_images(file: TableFile) -> bool:
    with open_parquet(file.path, whole=False) as parquet:
        return "images" in parquet.schema_arrow.names


def _source(files: Sequence[TableFile], *, as_string: bool) -> str:
    """Return an item of a FROM clause that reads files; bytes are text if `as_string`."""
    paths = ", ".join(quoted(literal_path(str(file.path))) for file in files)
    return (
        f"read_parquet([{paths}], filename='checked_file', file_row_number=true, "
        f"union_by_name=true, hive_partitioning=false, binary_as_string={str(as_string).lower()})"
    )


def _broken(
    connection: duckdb.DuckDBPyConnection, relation: RowRelation, names: dict[str, TableFile]
) -> Iterable[Violation]:
    """Yield the violations of one relation, at most one for each rule and file."""
    if not relation.rules:
        return
    kept = [f"coalesce({rule.condition}, true)" for rule in relation.rules]
    counts = ", ".join([*(f"count_if(NOT {condition})" for condition in kept), _READ_ALL])
    numbers = connection.execute(f"SELECT {counts} FROM {relation.name}").fetchone() or ()
    for rule, condition, number in zip(relation.rules, kept, numbers, strict=False):
        if number:
            yield from _broken_rule(connection, relation, rule, condition, names)


def _broken_rule(
    connection: duckdb.DuckDBPyConnection,
    relation: RowRelation,
    rule: RowRule,
    condition: str,
    names: dict[str, TableFile],
) -> Iterable[Violation]:
    is_step = relation.needs == frozenset(("steps",)) and rule.severity is Severity.ERROR
    trajectories = "list(DISTINCT trajectory_id)" if is_step else "[]"
    copies = "list(file_row_number)" if relation.name == "copies" else "[]"
    sql = f"""
        SELECT checked_file, count(*), min(file_row_number, {SHOWN_ROWS}),
            arg_min_null(left(({rule.found})::VARCHAR, {_FOUND_LENGTH}), file_row_number),
            {trajectories}, {copies}
        FROM {relation.name} WHERE NOT {condition} GROUP BY checked_file ORDER BY checked_file
    """
    for path, number, rows, found, ids, copied in connection.execute(sql).fetchall():
        yield Violation(
            rule=rule,
            file=names[path].relative,
            found=str(found),
            rows=tuple(rows),
            num_rows=number,
            trajectories=frozenset(ids),
            copies=tuple(copied),
        )


def _counts(connection: duckdb.DuckDBPyConnection) -> tuple[int, int, int]:
    (num_steps,) = connection.execute("SELECT count(*) FROM steps").fetchone() or (0,)
    number, incomplete = connection.execute(
        "SELECT count(*), coalesce(count_if(NOT is_complete), 0) FROM trajectories"
    ).fetchone() or (0, 0)
    return num_steps, number, incomplete
