"""Move files that break a rule to `quarantine/`, without losing anything.

- A damaged file moves.
- A readable step shard may have rows that break a rule. The trajectories of those rows are refused
  as a whole: the shard moves unchanged, and its other trajectories become a new step shard. Its
  credit shard moves too: the groups have changed, so credit must be assigned again.
- If steps are there several times and equal, one copy stays.
- If credit is mixed, all credit shards of the iteration move, but no steps: credit can be assigned
  again.

Beside each moved file, a note `<name>.json` records the refused trajectories, the reasons, the
former path, the new shard with the kept rows, and the digest of the file.

Nothing moves while a file is inaccessible for another reason than damage, such as a permission. A
file with two names, or behind a link, never moves.

The order of the writes survives a crash at any point:

1. The kept rows are written under a temporary name.
2. The note that names them is written.
3. The file moves.
4. The kept rows get their final name.

`finish_quarantine` completes an interrupted run. The digest in the note tells the refused file from
one that was written under the same name since.
"""

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcredit.store.checks.find_files import find_files
from graphcredit.store.checks.violations import CheckReport
from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import TEMPORARY_SUFFIX, atomic_path, sync_directory
from graphcredit.store.files.lock import alone_in
from graphcredit.store.files.parse import parse_json
from graphcredit.store.files.regular import read_regular
from graphcredit.store.layout import Store
from graphcredit.store.quarantine.plan import (
    FileMove,
    discard_kept,
    plan_moves,
    split_shard,
    temporary_of_kept,
    with_credit,
)
from graphcredit.store.tree import walk_tree

if TYPE_CHECKING:
    from graphcredit.store.checks.run import Progress

_NOTE_KEYS = {"source", "target", "kept", "sha256", "refused_trajectories", "equal_copies"}


def quarantine_store(
    store: Store,
    progress: "Progress | None" = None,
    on_move: Callable[[FileMove], None] = lambda moved: None,
) -> tuple[CheckReport, list[FileMove]]:
    """Move files that break a rule to `quarantine/`, until the store keeps every rule.

    Nothing is deleted, and no step shard is rewritten in place. No worker should be writing to
    these iterations.

    Args:
        store: The store.
        progress: Called after each run and iteration that was checked.
        on_move: Called with each file as soon as it has moved, so that no move is lost to an error.

    Returns:
        The report of the last check, and the files that moved. Errors in files with two names stay.

    Raises:
        InputError: A file is inaccessible or cannot be moved, for another reason than damage; or
            another process is moving files of this store.
    """
    moved: list[FileMove] = []
    with _alone(store):
        for item in finish_quarantine(store):
            moved.append(item)
            on_move(item)
        while True:
            from graphcredit.store.checks.run import check_store  # duckdb: imports need none

            report = check_store(store, progress)
            _refuse_inaccessible(store, report)
            # Each round moves files and adds only rows that broke no rule, so the loop ends. A
            # second round is needed if a trajectory has steps in a shard that was unreadable.
            moves = plan_moves(store, report.errors)
            if not moves:
                return report, moved
            _refuse_immovable(store, moves)
            for move in moves:
                _carry_out(store, move)
                moved.append(move)
                on_move(move)


def move_trajectories(
    store: Store, run_id: str, iteration: int, trajectories: Set[str], reason: str
) -> None:
    """Move the shards of an iteration that have some trajectories; their other rows stay.

    A killed move is completed by `finish_quarantine`.

    Args:
        store: The store.
        run_id: The run.
        iteration: The iteration.
        trajectories: Their ids.
        reason: What the notes beside the files say.

    Raises:
        InputError: A shard cannot be moved, or another process moves files of this store.
    """
    with _alone(store):
        deque(finish_quarantine(store), maxlen=0)
        tree = walk_tree(store.root)
        moves: list[FileMove] = []
        for shard in find_files(store)[0]:
            if (shard.kind, shard.run_id, shard.iteration) == ("steps", run_id, iteration):
                found = split_shard(store, shard, frozenset(trajectories), [], [reason])
                name = tree.other_name(shard.relative) if found else None
                moves += found
                if name is not None:
                    discard_kept(store, moves)
                    raise InputError(
                        f"{shard.path} must have one name before its trajectories are replaced: it "
                        f"is also {name}. Remove one of the two"
                    )
        moves = with_credit(store, moves, tree)
        _refuse_immovable(store, moves)
        for move in moves:
            _carry_out(store, move)


def _alone(store: Store) -> AbstractContextManager[None]:
    return alone_in(
        store.quarantine_dir,
        f"only one process at a time may quarantine files of {store.root}, and another one does: "
        "wait until it has ended",
    )


def complete_moves(store: Store) -> None:
    """Complete the moves of a process that was killed.

    Raises:
        InputError: Another process moves files of this store.
    """
    if store.quarantine_dir.is_dir():
        with _alone(store):
            deque(finish_quarantine(store), maxlen=0)


def _refuse_inaccessible(store: Store, report: CheckReport) -> None:
    for error in report.errors:
        if error.rule.name == "accessible":
            raise InputError(
                f"{store.root / error.file} must exist and be readable before anything moves: "
                f"found {error.found}, which is not damage. Make it readable, or remove it, and "
                "run this again"
            )


def _refuse_immovable(store: Store, moves: Sequence[FileMove]) -> None:
    """Raise InputError before the first move if one of the moves is impossible."""
    device = store.quarantine_dir.stat().st_dev
    for move in moves:
        source = store.root / move.source
        if not os.access(source.parent, os.W_OK | os.X_OK):
            reason = f"you have no permission to write to {source.parent}"
        elif source.lstat().st_dev != device:
            reason = "it is on another file system than quarantine/"
        else:
            continue
        discard_kept(store, moves)
        raise InputError(
            f"{source} must be movable to {store.quarantine_dir} before anything moves: {reason}"
        )


def finish_quarantine(store: Store) -> Iterator[FileMove]:
    """Complete a killed `quarantine_store`, and yield the files that it had not moved yet."""
    known: set[Path] = set()
    for path in sorted(store.quarantine_dir.glob("*.json")):
        note = _read_note(path)
        if note is None:
            continue
        source, target = store.root / note["source"], store.root / note["target"]
        if note["kept"] is not None:
            known.add(temporary_of_kept(store.root / note["kept"]))
        if not target.exists() and source.exists():
            if note["sha256"] != _sha256(source):
                continue
            _rename(source, target)
            yield FileMove(
                source=note["source"],
                target=note["target"],
                kept=note["kept"],
                refused=tuple(note["refused_trajectories"]),
                copied=tuple(note["equal_copies"]),
            )
        if note["kept"] is not None and temporary_of_kept(store.root / note["kept"]).exists():
            _publish(store.root / note["kept"])
    # Kept rows without a note: the run was killed before the file moved, so it still has them.
    for path in store.root.glob(f"steps/run_id=*/iteration=*/kept-*{TEMPORARY_SUFFIX}"):
        if path not in known:
            path.unlink(missing_ok=True)


def _read_note(path: Path) -> dict[str, Any] | None:
    """Return a note of this module, or None: other writers put files into `quarantine/` too."""
    try:
        note = parse_json(read_regular(path))
    except ValueError:
        return None
    is_ours = isinstance(note, dict) and note.keys() >= _NOTE_KEYS
    return note if is_ours else None


def _carry_out(store: Store, move: FileMove) -> None:
    target = store.root / move.target
    note = {
        "source": move.source,
        "target": move.target,
        "kept": move.kept,
        "sha256": _sha256(store.root / move.source),
        "reasons": move.reasons,
        "refused_trajectories": move.refused,
        "equal_copies": move.copied,
    }
    with atomic_path(target.with_suffix(".json")) as temporary:
        temporary.write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    _rename(store.root / move.source, target)
    if move.kept is not None:
        _publish(store.root / move.kept)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rename(source: Path, target: Path) -> None:
    os.rename(source, target)
    sync_directory(target.parent)
    sync_directory(source.parent)


def _publish(path: Path) -> None:
    os.rename(temporary_of_kept(path), path)
    sync_directory(path.parent)
