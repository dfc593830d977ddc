"""Moving what breaks a rule out of the way, without losing anything.

A damaged file moves to `quarantine/`. Of a step shard that can be read but has rows that break a
rule, the trajectories of those rows are refused as a whole: the shard moves to `quarantine/`
unchanged, its credit shard with it (groups have changed, so credit must be assigned again), and its
other trajectories become a new step shard. Beside each moved file, `<name>.json` says what was
refused, why, where it was, what was kept, and the digest of the file.

The order survives a crash at any point: the kept rows are written under a temporary name, the JSON
that names them is written, the file moves, the kept rows get their name. `finish_quarantine` does
what an interrupted run left undone; by its digest it knows the refused file from one that was
written under the same name since.
"""

# pyright: reportAttributeAccessIssue=false
# (pyarrow.compute makes its functions when it is imported)

import hashlib
import json
import os
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphcredit.store.atomic import (
    TEMPORARY_SUFFIX,
    atomic_path,
    sync_directory,
    sync_file,
    write_table_unsynced,
)
from graphcredit.store.checks import Progress, check_store
from graphcredit.store.files import TableFile, find_files
from graphcredit.store.layout import Store
from graphcredit.store.shards import open_parquet
from graphcredit.store.violations import CheckReport, Violation


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantined:
    """One file that was moved."""

    source: str
    """Where it was, relative to the store."""
    target: str
    """Where it is now; the `.json` of the same name says why."""
    kept: str | None
    """The new shard with its sound trajectories; None if nothing of it was kept."""


def quarantine_store(
    store: Store, progress: Progress | None = None
) -> tuple[CheckReport, list[Quarantined]]:
    """Move what breaks a rule to `quarantine/`, until the store keeps every rule.

    Nothing is deleted, and no step shard is rewritten in place. No worker should be writing to the
    iterations concerned.

    Args:
        store: The store.
        progress: Called after each run and iteration that was checked.

    Returns:
        The report of the last check, and what was moved.
    """
    finish_quarantine(store)
    moved: list[Quarantined] = []
    while True:
        report = check_store(store, progress)
        if not report.errors:
            return report, moved
        # Each round moves files and adds only rows that broke no rule, so the rounds end. A second
        # one is needed where a trajectory reached into a shard that could not be read.
        moved_now = _quarantine_errors(store, report.errors)
        if not moved_now:
            return report, moved
        moved += moved_now


def finish_quarantine(store: Store) -> None:
    """Complete what a killed `quarantine_store` left undone."""
    for path in sorted(store.quarantine_dir.glob("*.json")):
        note = _read_note(path)
        if note is None:
            continue
        source, target = store.root / note["source"], store.root / note["target"]
        if not target.exists() and source.exists():
            if note.get("sha256") != _sha256(source):
                continue
            _move(source, target)
        if note["kept"] is not None and _temporary(store.root / note["kept"]).exists():
            _publish(store.root / note["kept"])


def _read_note(path: Path) -> dict[str, Any] | None:
    """Return a note that was written here; others write to `quarantine/` too."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    is_ours = isinstance(note, dict) and note.keys() >= {"source", "target", "kept"}
    return note if is_ours else None


def _quarantine_errors(store: Store, errors: Iterable[Violation]) -> list[Quarantined]:
    by_file: defaultdict[str, list[Violation]] = defaultdict(list)
    for error in errors:
        by_file[error.file].append(error)
    tables = {table.relative: table for table in find_files(store)[0]}
    refused = _refused_trajectories(by_file, tables)
    moved: list[Quarantined] = []
    for relative, table in tables.items():
        ids = refused.get((table.run_id, table.iteration))
        if table.kind == "steps" and ids and _is_about_rows(by_file.get(relative, [])):
            moved += _split_shard(store, table, ids, by_file.pop(relative, []))
    for relative, violations in by_file.items():
        # The credit shard of a step shard that moved is gone already.
        if (store.root / relative).exists():
            moved += _move_with_credit(store, relative, reasons=_reasons(violations))
    return moved


def _is_about_rows(violations: Iterable[Violation]) -> bool:
    return all(violation.trajectories for violation in violations)


def _refused_trajectories(
    by_file: dict[str, list[Violation]], tables: dict[str, TableFile]
) -> dict[tuple[str | None, int | None], frozenset[str | None]]:
    refused: defaultdict[tuple[str | None, int | None], set[str | None]] = defaultdict(set)
    for relative, violations in by_file.items():
        if relative in tables:
            table = tables[relative]
            for violation in violations:
                refused[table.run_id, table.iteration] |= violation.trajectories
    return {key: frozenset(ids) for key, ids in refused.items()}


def _split_shard(
    store: Store,
    shard: TableFile,
    refused: frozenset[str | None],
    violations: list[Violation],
) -> list[Quarantined]:
    """Move a shard that holds refused trajectories; keep the others as a new shard."""
    with open_parquet(shard.path) as parquet:
        table = parquet.read()
    ids = table["trajectory_id"].cast(pa.string())
    is_refused = pc.is_in(ids, value_set=pa.array(list(refused), pa.string()))
    sound = table.filter(pc.invert(is_refused))
    if sound.num_rows == table.num_rows:
        return []
    kept = None
    if sound.num_rows:
        kept = shard.path.with_name(f"kept-{secrets.token_hex(6)}-000000.parquet")
        write_table_unsynced(sound, _temporary(kept))
        sync_file(_temporary(kept))
    return _move_with_credit(
        store,
        shard.relative,
        reasons=_reasons(violations) or ["its trajectories break rules in other shards"],
        refused=pc.unique(ids.filter(is_refused)).to_pylist(),
        kept=kept,
    )


def _move_with_credit(
    store: Store,
    relative: str,
    *,
    reasons: Sequence[object],
    refused: Sequence[str | None] = (),
    kept: Path | None = None,
) -> list[Quarantined]:
    """Move one file, and before it the credit shard whose step shard it is."""
    moved: list[Quarantined] = []
    folder, _, rest = relative.partition("/")
    if folder == "steps" and (store.root / "credit" / rest).is_file():
        reason = f"its step shard {relative} moved"
        moved += _move_with_credit(store, f"credit/{rest}", reasons=[reason])
    target = _fresh_target(store, relative)
    note = Quarantined(
        source=relative,
        target=target.relative_to(store.root).as_posix(),
        kept=None if kept is None else kept.relative_to(store.root).as_posix(),
    )
    with atomic_path(target.with_suffix(".json")) as temporary:
        content = {
            **asdict(note),
            "sha256": _sha256(store.root / relative),
            "reasons": reasons,
            "refused_trajectories": refused,
        }
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    _move(store.root / relative, target)
    if kept is not None:
        _publish(kept)
    return [*moved, note]


def _reasons(violations: Iterable[Violation]) -> list[dict[str, Any]]:
    return [
        {
            "rule": violation.rule.name,
            "holds": violation.rule.holds,
            "found": violation.found,
            "first_rows": list(violation.rows),
            "num_rows": violation.num_rows,
        }
        for violation in violations
    ]


def _fresh_target(store: Store, relative: str) -> Path:
    readable = re.sub(r"[^A-Za-z0-9._=-]+", ".", relative.removesuffix(".parquet"))[-120:]
    return store.quarantine_dir / f"{readable}.{secrets.token_hex(6)}.parquet"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _move(source: Path, target: Path) -> None:
    os.rename(source, target)
    sync_directory(target.parent)
    sync_directory(source.parent)


def _publish(path: Path) -> None:
    os.rename(_temporary(path), path)
    sync_directory(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + TEMPORARY_SUFFIX)
