"""Check every rule of the format over a whole store."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb

from graphcredit.store.checks.columns import (
    check_columns,
    check_credit_rows,
    unreadable_file,
    violation,
)
from graphcredit.store.checks.file_rules import FILE_RULES
from graphcredit.store.checks.find_files import TableFile, find_files
from graphcredit.store.checks.made_of import check_age
from graphcredit.store.checks.rows import RowCheck, check_rows, open_database
from graphcredit.store.checks.violations import CheckReport, Violation
from graphcredit.store.errors import InputError, NewerSchemaError, SchemaError
from graphcredit.store.files.scratch import ScratchFolder
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import is_verified, open_parquet
from graphcredit.store.parquet.snapshot import unchanged
from graphcredit.store.provenance.sources import Sources
from graphcredit.store.state_rules import read_state_rules

_PAIRS = (
    ("credit", "steps", "credit_pair", "no step shard of that name"),
    ("edges", "nodes", "graph_pair", "edges.parquet alone"),
    ("relations", "entities", "relation_pair", "relations.parquet alone"),
)
"""Kind, the kind that it requires, the rule, and the finding if that is missing."""

Progress = Callable[[int, int], None]
"""Called with the number of partitions that are done, and their total."""


def check_store(store: Store, progress: Progress | None = None) -> CheckReport:
    """Check every rule over the whole store, one run and iteration at a time.

    Memory is bounded by the largest iteration. Nothing is changed.

    Args:
        store: The store.
        progress: Called after each run and iteration.
    """
    files, misplaced = find_files(store)
    violations = [_unless_newer(store, violation) for violation in misplaced]
    readable, unreadable_vectors = _check_embeddings(store)
    violations += [*unreadable_vectors, *_check_state_rules(store)]
    sources = Sources(store, (file for file in files if file.kind == "steps"))
    partitions: defaultdict[tuple[str, int], list[TableFile]] = defaultdict(list)
    for file in files:
        partitions[file.run_id or "", -1 if file.iteration is None else file.iteration].append(file)
    num_steps = num_trajectories = num_incomplete = 0
    with ScratchFolder() as scratch, open_database(store, str(scratch)) as database:
        for number, key in enumerate(sorted(partitions), start=1):
            broken, sound, rows = unchanged(
                store,
                lambda key=key: _check_partition(store, database, sources, partitions[key]),
                run_id=key[0] or None,
                iteration=None if key[1] < 0 else key[1],
            )
            violations += broken
            readable += sound
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
        num_files=len(readable),
        num_unverified=sum(not is_verified(path, whole=False) for path in readable),
    )


def _unless_newer(store: Store, misplaced: Violation) -> Violation:
    """Return the violation of a misplaced file; a newer schema may have files at other places."""
    try:
        if misplaced.rule.name == "path_name":
            open_parquet(store.root / misplaced.file, whole=False).close()
    except NewerSchemaError as error:
        return unreadable_file(store.root / misplaced.file, misplaced.file, error)
    except SchemaError:
        pass
    return misplaced


def _check_embeddings(store: Store) -> tuple[list[Path], list[Violation]]:
    """Return the readable files of embeddings, and the violations of the others.

    No other rule applies to them.
    """
    readable: list[Path] = []
    violations: list[Violation] = []
    for path in sorted(store.root.glob("embeddings/*/*.parquet")):
        try:
            open_parquet(path).close()
            readable.append(path)
        except SchemaError as error:
            violations.append(unreadable_file(path, path.relative_to(store.root).as_posix(), error))
    return readable, violations


def _check_state_rules(store: Store) -> Iterable[Violation]:
    try:
        read_state_rules(store)
    except InputError as error:
        name = store.state_rules_path.name
        reason = str(error).removeprefix(f"{store.state_rules_path}").lstrip(",: ")
        yield Violation(rule=FILE_RULES["state_rules"], file=name, found=reason)


def _check_partition(
    store: Store, database: duckdb.DuckDBPyConnection, sources: Sources, files: list[TableFile]
) -> tuple[list[Violation], list[Path], RowCheck]:
    """Return the violations of an iteration, its readable files, and the check of their rows."""
    violations = list(_check_pairs(files))
    sound: list[TableFile] = []
    for file in files:
        found = check_columns(file)
        violations += found
        # The rows of an old history may break rules that are newer than it.
        if not any(v.is_error or v.rule.name == "old_history" for v in found):
            sound.append(file)
    rows = check_rows(database, sound)
    violations += [*rows.violations, *_check_credit(sound)]
    steps = [file for file in sound if file.kind == "steps"]
    damaged = {file.relative for file in files} - {file.relative for file in sound}
    violations += check_age(store, sources, steps, damaged)
    return violations, [file.path for file in sound], rows


def _check_pairs(files: list[TableFile]) -> Iterable[Violation]:
    there = {(file.kind, _shared_path(file)) for file in files}
    for kind, other, rule, finding in _PAIRS:
        for file in files:
            if file.kind == kind and (other, _shared_path(file)) not in there:
                yield violation(rule, file, finding)


def _shared_path(file: TableFile) -> str:
    """Return the part of the path that a file and its partner share."""
    if file.kind in ("steps", "credit"):
        return file.relative.partition("/")[2]
    return file.path.parent.name


def _check_credit(files: list[TableFile]) -> Iterable[Violation]:
    steps = {_shared_path(file): file for file in files if file.kind == "steps"}
    for file in files:
        if file.kind == "credit" and _shared_path(file) in steps:
            yield from check_credit_rows(steps[_shared_path(file)], file)
