"""Moving what breaks a rule out of the way, without losing anything.

A damaged file moves to `quarantine/`. Of a step shard that can be read but has rows that break a
rule, the trajectories of those rows are refused as a whole: the shard moves to `quarantine/`
unchanged, its credit shard with it (groups have changed, so credit must be assigned again), and its
other trajectories become a new step shard. Of steps that are there several times and equal, one
copy stays. Of mixed credit all shards of the iteration move, and no steps: it can be made again.
Beside each moved file, `<name>.json` says what was refused, why, where it was, what was kept, and
the digest of the file.

Nothing moves while a file cannot be had for another reason than damage, such as a permission; and
what has two names, or is reached by a link, never moves.

The order survives a crash at any point: the kept rows are written under a temporary name, the JSON
that names them is written, the file moves, the kept rows get their name. `finish_quarantine` does
what an interrupted run left undone; by its digest it knows the refused file from one that was
written under the same name since.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcredit.store.checks.run import Progress, check_store
from graphcredit.store.checks.violations import CheckReport
from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import TEMPORARY_SUFFIX, atomic_path, sync_directory
from graphcredit.store.files.lock import alone_in
from graphcredit.store.layout import Store
from graphcredit.store.quarantine.plan import Move, discard_kept, plan_moves, temporary_of_kept


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantined:
    """One file that was moved."""

    source: str
    """Where it was, relative to the store."""
    target: str
    """Where it is now; the `.json` of the same name says why."""
    kept: str | None
    """The new shard with its sound trajectories; None if nothing of it was kept."""
    refused: tuple[str | None, ...] = ()
    """The trajectories of it that break a rule; None for rows without a trajectory_id."""
    copied: tuple[str, ...] = ()
    """The trajectories of it of which an equal copy stays."""


def quarantine_store(
    store: Store,
    progress: Progress | None = None,
    on_move: Callable[[Quarantined], None] = lambda moved: None,
) -> tuple[CheckReport, list[Quarantined]]:
    """Move what breaks a rule to `quarantine/`, until the store keeps every rule.

    Nothing is deleted, and no step shard is rewritten in place. No worker should be writing to the
    iterations concerned.

    Args:
        store: The store.
        progress: Called after each run and iteration that was checked.
        on_move: Called with each file that moved, at once: also before an error ends this.

    Returns:
        The report of the last check, and what was moved. Errors in what has two names stay.

    Raises:
        InputError: A file cannot be had, or not be moved, for another reason than damage; or
            another process is moving files of this store.
    """
    refusal = (
        f"{store.root} must be mended by one process at a time, but another is moving files to "
        "quarantine/: wait until it has ended"
    )
    moved: list[Quarantined] = []
    with alone_in(store.quarantine_dir, refusal):
        for item in finish_quarantine(store):
            moved.append(item)
            on_move(item)
        while True:
            report = check_store(store, progress)
            _refuse_inaccessible(store, report)
            # Each round moves files and adds only rows that broke no rule, so the rounds end. A
            # second one is needed where a trajectory reached into a shard that could not be read.
            moves = plan_moves(store, report.errors)
            if not moves:
                return report, moved
            _refuse_immovable(store, moves)
            for move in moves:
                moved.append(_carry_out(store, move))
                on_move(moved[-1])


def _refuse_inaccessible(store: Store, report: CheckReport) -> None:
    for error in report.errors:
        if error.rule.name == "accessible":
            raise InputError(
                f"{store.root / error.file} must be there and yours to read before anything moves: "
                f"found {error.found}, which is no damage. Have the system give it to you, or "
                "remove it, and run this again"
            )


def _refuse_immovable(store: Store, moves: Sequence[Move]) -> None:
    """Raise InputError before the first move, if one of them will not be possible."""
    device = store.quarantine_dir.stat().st_dev
    for move in moves:
        source = store.root / move.source
        found = None
        if not os.access(source.parent, os.W_OK | os.X_OK):
            found = f"{source.parent} may not be written to"
        elif source.lstat().st_dev != device:
            found = "it is on another file system than quarantine/"
        if found is not None:
            discard_kept(store, moves)
            raise InputError(
                f"{source} must be movable to {store.quarantine_dir} before anything moves: {found}"
            )


def finish_quarantine(store: Store) -> Iterator[Quarantined]:
    """Complete what a killed `quarantine_store` left undone, and yield what had not moved."""
    known: set[Path] = set()
    for path in sorted(store.quarantine_dir.glob("*.json")):
        note = _read_note(path)
        if note is None:
            continue
        source, target = store.root / note["source"], store.root / note["target"]
        if note["kept"] is not None:
            known.add(temporary_of_kept(store.root / note["kept"]))
        if not target.exists() and source.exists():
            if note.get("sha256") != _sha256(source):
                continue
            _move(source, target)
            yield Quarantined(
                source=note["source"],
                target=note["target"],
                kept=note["kept"],
                refused=tuple(note.get("refused_trajectories", ())),
                copied=tuple(note.get("equal_copies", ())),
            )
        if note["kept"] is not None and temporary_of_kept(store.root / note["kept"]).exists():
            _publish(store.root / note["kept"])
    # Those of which no note was written yet: their files did not move.
    for path in store.root.glob(f"steps/run_id=*/iteration=*/kept-*{TEMPORARY_SUFFIX}"):
        if path not in known:
            path.unlink(missing_ok=True)


def _read_note(path: Path) -> dict[str, Any] | None:
    """Return a note that was written here; others write to `quarantine/` too."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    is_ours = isinstance(note, dict) and note.keys() >= {"source", "target", "kept"}
    return note if is_ours else None


def _carry_out(store: Store, move: Move) -> Quarantined:
    target = _fresh_target(store, move.source)
    item = Quarantined(
        source=move.source,
        target=target.relative_to(store.root).as_posix(),
        kept=move.kept,
        refused=move.refused,
        copied=move.copied,
    )
    note = {
        "source": item.source,
        "target": item.target,
        "kept": item.kept,
        "sha256": _sha256(store.root / move.source),
        "reasons": move.reasons,
        "refused_trajectories": move.refused,
        "equal_copies": move.copied,
    }
    with atomic_path(target.with_suffix(".json")) as temporary:
        temporary.write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    _move(store.root / move.source, target)
    if move.kept is not None:
        _publish(store.root / move.kept)
    return item


def _fresh_target(store: Store, relative: str) -> Path:
    readable = re.sub(r"[^A-Za-z0-9._=-]+", ".", relative.removesuffix(".parquet"))[-120:]
    return store.quarantine_dir / f"{readable}.{os.urandom(6).hex()}.parquet"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _move(source: Path, target: Path) -> None:
    os.rename(source, target)
    sync_directory(target.parent)
    sync_directory(source.parent)


def _publish(path: Path) -> None:
    os.rename(temporary_of_kept(path), path)
    sync_directory(path.parent)
