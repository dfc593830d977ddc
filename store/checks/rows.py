"""Check the row rules with DuckDB, over the files of one run and iteration at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from duckdb.func import ARROW

from graphcredit.store.checks.file_rules import RowRule
from graphcredit.store.checks.find_files import TableFile
from graphcredit.store.checks.relations import RowRelation
from graphcredit.store.checks.step_relations import MISSING_IMAGES, STEP_RELATIONS
from graphcredit.store.checks.table_relations import TABLE_RELATIONS
from graphcredit.store.checks.value_rules import IS_JSON_OBJECT, are_json_objects
from graphcredit.store.checks.violations import SHOWN_ROWS, Violation
from graphcredit.store.images import is_image_path
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.schema import Column
from graphcredit.store.sql.views import BASE_VIEWS, base_view_sql, identifier, literal_path, quoted

_MEMORY = "2GiB"
_FOUND_LENGTH = 200
_CREDIT_VIEW = next(view for view in BASE_VIEWS if view.name == "credit")
_PLACE = (
    Column(name="checked_file", type=pa.string(), meaning="path of the file"),
    Column(name="file_row_number", type=pa.int64(), meaning="row in the file"),
)

ROW_RELATIONS = STEP_RELATIONS + TABLE_RELATIONS


@dataclass(frozen=True, kw_only=True, slots=True)
class RowCheck:
    """The violations in the rows of some files, and how much they hold."""

    violations: tuple[Violation, ...]
    num_steps: int
    num_trajectories: int
    num_incomplete: int


def open_database(store: Store, scratch: str) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database for `check_rows`.

    Args:
        store: The store.
        scratch: A directory for data that does not fit in memory.
    """
    database = duckdb.connect(":memory:", config={"memory_limit": _MEMORY})
    database.execute(f"SET temp_directory={quoted(scratch)}")
    database.create_function(IS_JSON_OBJECT, are_json_objects, ["VARCHAR"], "BOOLEAN", type=ARROW)

    def missing_images(paths: list[str | None]) -> list[str]:
        """Return the paths of images without a file."""
        return [p for p in paths if p and is_image_path(p) and not (store.root / p).is_file()]

    database.create_function(MISSING_IMAGES, missing_images, ["VARCHAR[]"], "VARCHAR[]")
    return database


def check_rows(database: duckdb.DuckDBPyConnection, files: Sequence[TableFile]) -> RowCheck:
    """Check the row rules over readable files with valid columns.

    Args:
        database: From `open_database`; it is unchanged afterwards.
        files: The files of one run and iteration.

    Raises:
        duckdb.Error: A file cannot be read after all.
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
        counts = None
        if "steps" in kinds:
            counts = connection.execute(
                "SELECT (SELECT count(*) FROM steps), count(*), count_if(NOT is_complete) "
                "FROM trajectories"
            ).fetchone()
    num_steps, num_trajectories, num_incomplete = counts or (0, 0, 0)
    return RowCheck(
        violations=tuple(violations),
        num_steps=num_steps,
        num_trajectories=num_trajectories,
        num_incomplete=num_incomplete or 0,
    )


def unreadable(file: TableFile) -> str | None:
    """Return why DuckDB cannot read all of a file, or None.

    Every value is read, also in columns without a rule. A mere count would be answered from the
    file's statistics.
    """
    with duckdb.connect(":memory:") as connection:
        try:
            _create_table_view(connection, file.kind, [file])
            connection.execute(f"SELECT bit_xor(hash(COLUMNS(*))) FROM {file.kind}_table")
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
    sources = [
        _source(group, as_string=group is without) for group in (without, with_images) if group
    ]
    columns = files[0].columns
    if kind == "credit":
        schema = connection.sql(f"SELECT * FROM {sources[0]} LIMIT 0").to_arrow_table().schema
        columns = _CREDIT_VIEW.all_columns(schema)[len(_CREDIT_VIEW.partitions) :]
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
    counts = ", ".join(f"count_if(NOT {condition})" for condition in kept)
    numbers = connection.execute(f"SELECT {counts} FROM {relation.name}").fetchone() or ()
    for rule, condition, number in zip(relation.rules, kept, numbers, strict=True):
        if number:
            yield from _broken_rule(connection, relation, rule, condition, names)


def _broken_rule(
    connection: duckdb.DuckDBPyConnection,
    relation: RowRelation,
    rule: RowRule,
    condition: str,
    names: dict[str, TableFile],
) -> Iterable[Violation]:
    sql = f"""
        SELECT checked_file, count(*), min(file_row_number, {SHOWN_ROWS}),
            arg_min_null(left(({rule.found})::VARCHAR, {_FOUND_LENGTH}), file_row_number)
        FROM {relation.name} WHERE NOT {condition} GROUP BY checked_file ORDER BY checked_file
    """
    for path, number, rows, found in connection.execute(sql).fetchall():
        yield Violation(
            rule=rule,
            file=names[path].relative,
            found=str(found),
            rows=tuple(rows),
            num_rows=number,
        )
