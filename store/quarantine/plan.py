"""Plan a quarantine: choose the files to move, and keep one of several equal copies."""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute defines its functions at import time)

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.checks.find_files import TableFile, find_files
from graphcredit.store.checks.violations import Violation
from graphcredit.store.errors import SchemaError
from graphcredit.store.files.atomic import TEMPORARY_SUFFIX, sync_file
from graphcredit.store.files.tables import write_table_unsynced
from graphcredit.store.layout import Store
from graphcredit.store.parquet.shards import open_parquet
from graphcredit.store.tree import Tree, walk_tree

_ELSEWHERE = "its trajectories break rules in other shards"

_Partition = tuple[str | None, int | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileMove:
    """One file to move, or that was moved; its kept rows are written before."""

    source: str
    """Its path before, relative to the store."""
    target: str
    """Its path after; the `.json` file of the same name has the reasons."""
    kept: str | None = None
    """New shard with its sound trajectories, at `temporary_of_kept` until the file has moved; None
    if there are none."""
    refused: tuple[str | None, ...] = ()
    """Its trajectories that break a rule; None for rows without a trajectory_id."""
    copied: tuple[str, ...] = ()
    """Its trajectories of which an equal copy stays in the store."""
    reasons: Sequence[object] = field(default=(), compare=False)
    """The reasons, for the note."""

    def as_json(self) -> dict[str, Any]:
        """Return the move for the report of `graphcredit check`, which has the reasons itself."""
        return {name: value for name, value in asdict(self).items() if name != "reasons"}


def plan_moves(store: Store, errors: Iterable[Violation]) -> list[FileMove]:
    """Return the files to move so that the errors end, and write the rows to keep of them.

    Left out are files with two names or behind a link, and trajectories with steps in such files.
    Also left out are iterations with a file of a newer schema version: this program cannot read
    that file, and cannot judge the others without it.

    Raises:
        OSError: A shard cannot be read, or a kept one not written. No kept rows are left then.
    """
    by_file: defaultdict[str, list[Violation]] = defaultdict(list)
    unknown: set[str] = set()
    for error in errors:
        if error.rule.is_movable:
            for relative in _files_in(store, error.file):
                by_file[relative].append(error)
        elif error.rule.name == "schema_version":
            unknown.add(error.file)
    if not by_file:
        return []
    tree = walk_tree(store.root)
    tables = {table.relative: table for table in find_files(store)[0]}
    unjudged = {(tables[file].run_id, tables[file].iteration) for file in unknown & tables.keys()}
    for relative, table in list(tables.items()):
        if (table.run_id, table.iteration) in unjudged:
            by_file.pop(relative, None)
            del tables[relative]
    refused = _refused_trajectories(by_file, tables, tree)
    moves: list[FileMove] = []
    try:
        for relative in sorted(by_file.keys() | tables.keys()):
            if tree.other_name(relative) is None:
                moves += _plan(store, relative, tables.get(relative), by_file, refused)
    except BaseException:
        discard_kept(store, moves)
        raise
    return with_credit(store, moves, tree)


def _files_in(store: Store, relative: str) -> list[str]:
    """Return the file of a violation; or the shards of a folder, if it is about all of them."""
    path = store.root / relative
    if not path.is_dir():
        return [relative]
    return [shard.relative_to(store.root).as_posix() for shard in sorted(path.glob("*.parquet"))]


def temporary_of_kept(path: Path) -> Path:
    """Return the temporary path of kept rows, until their original file has moved."""
    return path.with_name(path.name + TEMPORARY_SUFFIX)


def discard_kept(store: Store, moves: Iterable[FileMove]) -> None:
    """Remove the kept rows of files that are not moved after all."""
    for move in moves:
        if move.kept is not None:
            temporary_of_kept(store.root / move.kept).unlink(missing_ok=True)


def _refused_trajectories(
    by_file: Mapping[str, list[Violation]], tables: Mapping[str, TableFile], tree: Tree
) -> dict[_Partition, frozenset[str | None]]:
    refused: defaultdict[_Partition, set[str | None]] = defaultdict(set)
    for relative, violations in by_file.items():
        if relative in tables:
            partition = tables[relative].run_id, tables[relative].iteration
            for violation in violations:
                if not violation.copies:
                    refused[partition] |= violation.trajectories
    for relative, table in tables.items():
        ids = refused.get((table.run_id, table.iteration))
        if table.kind == "steps" and ids and tree.other_name(relative) is not None:
            ids -= _trajectories_of(table)
    return {partition: frozenset(ids) for partition, ids in refused.items()}


def _trajectories_of(shard: TableFile) -> set[str | None]:
    """Return the trajectories of a shard; none if it cannot be read."""
    try:
        with open_parquet(shard.path) as parquet:
            column = parquet.read(columns=["trajectory_id"])["trajectory_id"]
    except (SchemaError, pa.ArrowException, OSError, KeyError):
        return set()
    return set(pc.unique(column.cast(pa.string())).to_pylist())


def _plan(
    store: Store,
    relative: str,
    table: TableFile | None,
    by_file: Mapping[str, list[Violation]],
    refused: Mapping[_Partition, frozenset[str | None]],
) -> list[FileMove]:
    violations = by_file.get(relative, [])
    is_about_rows = all(violation.trajectories for violation in violations)
    if table is None or table.kind != "steps" or not is_about_rows:
        return [_move(relative, _reasons(violations))] if violations else []
    ids = refused.get((table.run_id, table.iteration), frozenset())
    copies = [row for violation in violations for row in violation.copies]
    if not ids and not copies:
        return []
    return split_shard(store, table, ids, copies, _reasons(violations) or [_ELSEWHERE])


def split_shard(
    store: Store,
    shard: TableFile,
    refused: frozenset[str | None],
    copies: list[int],
    reasons: Sequence[object],
) -> list[FileMove]:
    """Plan to move a shard with refused trajectories or copies; write its other rows."""
    with open_parquet(shard.path) as parquet:
        table = parquet.read()
    ids = table["trajectory_id"].cast(pa.string())
    is_refused = pc.is_in(ids, value_set=pa.array(list(refused), pa.string())).to_numpy()
    is_copy = np.zeros(table.num_rows, bool)
    is_copy[copies] = True
    is_copy &= ~is_refused
    sound = table.filter(pa.array(~(is_refused | is_copy)))
    if sound.num_rows == table.num_rows:
        return []
    kept = None
    if sound.num_rows:
        kept = shard.path.with_name(f"kept-{os.urandom(6).hex()}-000000.parquet")
        try:
            write_table_unsynced(sound, temporary_of_kept(kept))
            sync_file(temporary_of_kept(kept))
        except BaseException:
            temporary_of_kept(kept).unlink(missing_ok=True)
            raise
    return [
        _move(
            shard.relative,
            reasons,
            kept=None if kept is None else kept.relative_to(store.root).as_posix(),
            refused=tuple(pc.unique(ids.filter(pa.array(is_refused))).to_pylist()),
            copied=tuple(pc.unique(ids.filter(pa.array(is_copy))).to_pylist()),
        )
    ]


def with_credit(store: Store, moves: Iterable[FileMove], tree: Tree) -> list[FileMove]:
    """Put each step shard's credit shard before it, once.

    A crash in between must not leave a credit shard without its step shard.
    """
    planned: dict[str, FileMove] = {}
    for move in sorted(moves, key=lambda move: not move.source.startswith("steps/")):
        folder, _, rest = move.source.partition("/")
        credit = f"credit/{rest}"
        is_movable = (store.root / credit).is_file() and tree.other_name(credit) is None
        if folder == "steps" and is_movable:
            planned[credit] = _move(credit, [f"its step shard {move.source} moved"])
        planned.setdefault(move.source, move)
    return list(planned.values())


def _move(source: str, reasons: Sequence[object], **more: Any) -> FileMove:
    """Return a move to a new name in `quarantine/`, which tells where the file comes from."""
    readable = re.sub(r"[^A-Za-z0-9._=-]+", ".", source.removesuffix(".parquet"))[-120:]
    target = f"quarantine/{readable}.{os.urandom(6).hex()}.parquet"
    return FileMove(source=source, target=target, reasons=reasons, **more)


def _reasons(violations: Iterable[Violation]) -> list[dict[str, Any]]:
    return [violation.as_json() for violation in violations]
