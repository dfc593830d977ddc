"""Find every file of a store, with its kind by its path."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphcredit.store.checks.file_rules import FILE_RULES
from graphcredit.store.checks.violations import Violation
from graphcredit.store.errors import StoreFormatError
from graphcredit.store.layout import (
    ITERATION_TABLES,
    NAME,
    Store,
    is_iteration,
    is_name,
    refuse_undecodable,
)
from graphcredit.store.schema import (
    CREDIT_COLUMNS,
    EDGE_COLUMNS,
    ENTITY_COLUMNS,
    NODE_COLUMNS,
    RELATION_COLUMNS,
    STATE_SCORE_COLUMNS,
    STATES_COLUMNS,
    STEP_COLUMNS,
    TRAINING_COLUMNS,
    Column,
)
from graphcredit.store.tree import walk_tree

_RUN = r"run_id=(?P<run_id>[^/]*)"
_ITERATION = rf"{_RUN}/iteration=(?P<iteration>[^/]*)"

_TABLES: tuple[tuple[str, str, tuple[Column, ...]], ...] = (
    ("steps", rf"steps/{_ITERATION}/[^/]*\.parquet", STEP_COLUMNS),
    ("states", rf"states/{_ITERATION}/[^/]*\.parquet", STATES_COLUMNS),
    ("credit", rf"credit/{_ITERATION}/[^/]*\.parquet", CREDIT_COLUMNS),
    ("nodes", rf"graph/{_ITERATION}/nodes\.parquet", NODE_COLUMNS),
    ("edges", rf"graph/{_ITERATION}/edges\.parquet", EDGE_COLUMNS),
    ("state_scores", rf"history/{_RUN}/state_scores\.parquet", STATE_SCORE_COLUMNS),
    ("training", rf"training/{_ITERATION}/[^/]*\.parquet", TRAINING_COLUMNS),
    ("entities", r"er_graph/entities\.parquet", ENTITY_COLUMNS),
    ("relations", r"er_graph/relations\.parquet", RELATION_COLUMNS),
)
"""Kind, path, columns."""

_OTHERS: tuple[tuple[str, str | None], ...] = (
    (r"store\.json|states\.toml|quarantine/.*|spool/\.lock", None),
    (rf"credit/{_ITERATION}/\.lock|embeddings/[^/]*/[^/]*\.parquet", None),
    (r"images/.*|imports/[0-9a-f]+\.json", None),
    (rf"spool/{NAME}\.lock", None),
    (rf"spool/{NAME}\.(jsonl|closing)", "left_over_spool"),
    (r".*\.tmp", "left_over_temporary"),
    (rf"({'|'.join(ITERATION_TABLES)}|history)/.*\.parquet", "path_name"),
    (r".*", "unknown_file"),
)
"""Path, and the rule that a file there breaks, or None. The first matching path counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableFile:
    """One Parquet file at a place of the layout."""

    kind: str
    path: Path
    relative: str
    """Path from the store's root."""
    run_id: str | None
    iteration: int | None
    columns: tuple[Column, ...]


def find_files(store: Store) -> tuple[list[TableFile], list[Violation]]:
    """Return the table files whose paths are valid, and the violations of all other files."""
    tables: list[TableFile] = []
    tree = walk_tree(store.root)
    violations = [_path_violation(odd.rule, odd.name, odd.description) for odd in tree.oddities]
    for path in sorted(tree.files):
        relative = path.relative_to(store.root).as_posix()
        table, faults = _table_file(path, relative)
        violations += faults
        if table is not None and not any(v.is_error for v in faults):
            tables.append(table)
    return tables, violations


def _table_file(path: Path, relative: str) -> tuple[TableFile | None, list[Violation]]:
    for kind, pattern, columns in _TABLES:
        match = re.fullmatch(pattern, relative)
        if match is None:
            continue
        parts = match.groupdict()
        violations = list(_path_violations(relative, parts))
        iteration = parts.get("iteration", "")
        table = TableFile(
            kind=kind,
            path=path,
            relative=relative,
            run_id=parts.get("run_id"),
            iteration=int(iteration) if is_iteration(iteration) else None,
            columns=columns,
        )
        return table, violations
    rule = next(rule for pattern, rule in _OTHERS if re.fullmatch(pattern, relative, re.DOTALL))
    if rule is None:
        return None, []
    return None, [_path_violation(rule, relative, "this file")]


def _path_violations(relative: str, parts: dict[str, str]) -> Iterator[Violation]:
    try:
        refuse_undecodable(Path(relative))
    except StoreFormatError as error:
        yield _path_violation("path_name", relative, str(error))
    for key, is_right in (("run_id", is_name), ("iteration", is_iteration)):
        if key in parts and not is_right(parts[key]):
            yield _path_violation("path_name", relative, f"{key} {parts[key]!r}")


def _path_violation(rule: str, relative: str, found: str) -> Violation:
    return Violation(rule=FILE_RULES[rule], file=relative, found=found)
