"""Does a store keep every rule of its format?"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable

import duckdb

from graphcredit.store.check_age import check_age
from graphcredit.store.check_columns import check_columns, check_credit_rows, violation
from graphcredit.store.check_rows import RowCheck, check_rows, open_database, unreadable
from graphcredit.store.errors import SchemaError
from graphcredit.store.files import TableFile, find_files
from graphcredit.store.layout import Store
from graphcredit.store.rules import FILE_RULES
from graphcredit.store.shards import open_parquet
from graphcredit.store.violations import CheckReport, Violation

_PAIRS = (
    ("credit", "steps", "credit_pair", "no step shard of that name"),
    ("edges", "nodes", "graph_pair", "edges.parquet alone"),
    ("relations", "entities", "relation_pair", "relations.parquet alone"),
)
"""Kind, the kind that must be there too, the rule that says so, what was found."""

Progress = Callable[[int, int], None]
"""Called with the number of partitions done and their total."""


def check_store(store: Store, progress: Progress | None = None) -> CheckReport:
    """Check every rule over the whole store, one run and iteration at a time.

    Memory is bounded by the largest iteration. Nothing is changed.

    Args:
        store: The store.
        progress: Called after each run and iteration.
    """
    files, violations = find_files(store)
    violations += _check_embeddings(store)
    partitions: defaultdict[tuple[str, int], list[TableFile]] = defaultdict(list)
    for file in files:
        partitions[file.run_id or "", -1 if file.iteration is None else file.iteration].append(file)
    num_steps = num_trajectories = num_incomplete = 0
    with (
        tempfile.TemporaryDirectory(prefix="graphcredit-check-") as scratch,
        open_database(scratch) as database,
    ):
        for number, key in enumerate(sorted(partitions), start=1):
            found, rows = _check_partition(database, partitions[key])
            violations += found
            num_steps += rows.num_steps
            num_trajectories += rows.num_trajectories
            num_incomplete += rows.num_incomplete
            if progress is not None:
                progress(number, len(partitions))
    return CheckReport(
        violations=tuple(sorted(violations, key=lambda v: (not v.is_error, v.file, v.rule.name))),
        num_step_shards=sum(file.kind == "steps" for file in files),
        num_steps=num_steps,
        num_trajectories=num_trajectories,
        num_incomplete=num_incomplete,
    )


def _check_embeddings(store: Store) -> Iterable[Violation]:
    """Yield which files of vectors cannot be read; no other rule is about them."""
    for path in sorted(store.root.glob("embeddings/*/*.parquet")):
        relative = path.relative_to(store.root).as_posix()
        try:
            open_parquet(path).close()
        except SchemaError as error:
            found = str(error.__cause__ or error)
            yield Violation(rule=FILE_RULES["readable"], file=relative, found=found)


def _check_partition(
    database: duckdb.DuckDBPyConnection, files: list[TableFile]
) -> tuple[list[Violation], RowCheck]:
    violations = list(_check_pairs(files))
    sound: list[TableFile] = []
    for file in files:
        found = check_columns(file)
        violations += found
        if not any(v.is_error for v in found):
            sound.append(file)
    rows, damaged = _check_sound(database, sound)
    violations += damaged
    broken = {v.file for v in damaged}
    readable = [file for file in sound if file.relative not in broken]
    violations += _check_credit(readable)
    return [*violations, *rows.violations], rows


def _check_pairs(files: Iterable[TableFile]) -> Iterable[Violation]:
    there = {(file.kind, _place(file)) for file in files}
    for kind, other, rule, found in _PAIRS:
        for file in files:
            if file.kind == kind and (other, _place(file)) not in there:
                yield violation(rule, file, found)


def _place(file: TableFile) -> str:
    """Return what a file and its partner have in common."""
    if file.kind in ("steps", "credit"):
        return file.relative.partition("/")[2]
    return file.path.parent.name


def _check_sound(
    database: duckdb.DuckDBPyConnection, files: list[TableFile]
) -> tuple[RowCheck, list[Violation]]:
    """Check rows; if a file cannot be read after all, find it and check the rows of the others."""
    try:
        return check_rows(database, files), []
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error:
        reasons = {file.relative: unreadable(file) for file in files}
        damaged = [
            violation("readable", file, reason)
            for file in files
            if (reason := reasons[file.relative]) is not None
        ]
        if not damaged:
            raise
        readable = [file for file in files if reasons[file.relative] is None]
        return check_rows(database, readable), damaged


def _check_credit(files: list[TableFile]) -> Iterable[Violation]:
    steps = {_place(file): file for file in files if file.kind == "steps"}
    credit = [file for file in files if file.kind == "credit"]
    for file in credit:
        if _place(file) in steps:
            yield from check_credit_rows(steps[_place(file)], file)
    yield from check_age(list(steps.values()), credit)
