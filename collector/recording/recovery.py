"""Turn the spools of dead workers into shards: each step exactly once, whenever the worker died.

A worker owns these files while it holds the lock on the first. Nobody waits for that lock:

    spool/<worker>.lock      locked by the live recorder, or by the process that recovers its spools
    spool/<worker>.tmp       the next spool, being prepared
    spool/<worker>.jsonl    the live spool
    spool/<worker>.closing   the previous spool, while its shard is written

A shard is closed in these steps. `log` waits only for steps 1 to 3.

    1. write the next spool to .tmp: its head, and the last step of each open trajectory. These
       steps are carried over because a shard cannot be changed if such a step becomes the last
    2. rename .jsonl to .closing
    3. rename .tmp to .jsonl; from here on, the carried steps are in .jsonl
    4. write the shard, with the spool's id in its metadata, and rename it to its final name
    5. delete .closing

    killed after  leaves                      recovery
    before 2      .jsonl, perhaps .tmp       drop .tmp; make a shard of .jsonl
    2             .closing, .tmp              drop .tmp; make a shard of all of .closing
    3             .closing, .jsonl           make a shard of .closing, without the carried steps
    4             .closing, .jsonl, shard    the shard has .closing's id: drop .closing
    5             .jsonl                     make a shard of .jsonl

To close a recorder, wait for step 5, then do steps 4 and 5 with the live spool. Recovery handles
.closing before .jsonl, also by steps 4 and 5, so it may itself be killed and repeated. A spool is
deleted only if all its bytes were read; otherwise it moves to `quarantine/`.
"""

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcredit.collector.recording.shards import find_shard, remove_unfinished, write_shard
from graphcredit.collector.recording.spool_format import read_spool
from graphcredit.collector.recording.worker_lock import acquire_lock, release_lock
from graphcredit.collector.task_locks import recovering
from graphcredit.store.errors import InputError, SchemaError
from graphcredit.store.files.atomic import atomic_path, sync_directory
from graphcredit.store.files.lock import held
from graphcredit.store.files.regular import is_plain_file
from graphcredit.store.layout import Store, check_name, is_name


@dataclass(frozen=True, kw_only=True, slots=True)
class SpoolPaths:
    """The files of one worker."""

    lock: Path
    temporary: Path
    live: Path
    closing: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered:
    """The result of recovering one left-over spool."""

    worker_id: str
    run_id: str | None
    """None if the spool's head cannot be read."""
    iteration: int | None
    num_steps: int
    """Steps that recovery wrote to the shard; 0 if a shard already had them."""
    num_bytes_unread: int
    """Bytes that could not be read: an unacknowledged step, or damage."""
    shard: Path | None
    """The shard with the spool's steps; None if it had none."""
    quarantined: Path | None
    """The spool's path in `quarantine/`; None if all of it was read and it was deleted."""


def spool_paths(store: Store, worker_id: str) -> SpoolPaths:
    """Return the paths of a worker's files."""
    worker = store.spool_dir / check_name("worker_id", worker_id)
    return SpoolPaths(
        lock=worker.with_name(f"{worker.name}.lock"),
        temporary=worker.with_name(f"{worker.name}.tmp"),
        live=worker.with_name(f"{worker.name}.jsonl"),
        closing=worker.with_name(f"{worker.name}.closing"),
    )


def recover_spools(
    store: Store, *, on_held: Callable[[str, str], None] = lambda worker_id, held: None
) -> list[Recovered]:
    """Turn the spools of dead workers into shards; spools of live recorders stay as they are.

    Afterwards every acknowledged step of a dead worker is in a shard, even if another process was
    already recovering it: this call waits for that process.

    Args:
        store: The store.
        on_held: Called for each worker whose lock another process holds, or is a link, with a
            sentence that says so. Its spool stays as it is.

    Returns:
        One record for each left-over spool.
    """
    suffixes = (".lock", ".tmp", ".jsonl", ".closing")
    # Whatever has another name, or is no file, is not a recorder's; `check` names it.
    workers = {
        path.stem
        for path in store.spool_dir.glob("*")
        if path.suffix in suffixes and is_name(path.stem) and is_plain_file(path)
    }
    recovered: list[Recovered] = []
    if not workers:
        return recovered
    with recovering(store):
        for worker in sorted(workers):
            path = spool_paths(store, worker).lock
            try:
                lock = acquire_lock(path)
            except InputError as error:
                on_held(worker, str(error))
                continue
            if lock is None:
                on_held(worker, held(path))
                continue
            try:
                recovered += recover_worker(store, worker)
            finally:
                release_lock(path, lock)
    return recovered


def recover_worker(store: Store, worker_id: str) -> list[Recovered]:
    """Recover the spools of one worker, whose lock the caller holds; see `recover_spools`."""
    paths = spool_paths(store, worker_id)
    paths.temporary.unlink(missing_ok=True)
    recovered: list[Recovered] = []
    if paths.closing.exists():
        recovered.append(_recover(store, worker_id, paths.closing, _carried_keys(paths.live)))
    if paths.live.exists():
        recovered.append(_recover(store, worker_id, paths.live, frozenset()))
    return recovered


def _recover(
    store: Store, worker_id: str, path: Path, carried: Collection[tuple[str, int]]
) -> Recovered:
    try:
        content = read_spool(path)
    except SchemaError as error:
        num_bytes = path.stat().st_size
        return Recovered(
            worker_id=worker_id,
            run_id=None,
            iteration=None,
            num_steps=0,
            num_bytes_unread=num_bytes,
            shard=None,
            quarantined=_quarantine(store, worker_id, path, num_bytes, str(error)),
        )
    remove_unfinished(store, content.header)
    # Killed after step 4: the shard is complete, and writing it again would double its steps.
    shard = find_shard(store, content.header)
    rows = [row for row in content.rows if _key(row) not in carried] if shard is None else []
    if rows:
        shard = write_shard(store, content.header, rows)
    unread, quarantined = content.num_bytes_unread, None
    if unread:
        quarantined = _quarantine(store, worker_id, path, unread, content.problem)
    else:
        path.unlink()
    return Recovered(
        worker_id=worker_id,
        run_id=content.header.run_id,
        iteration=content.header.iteration,
        num_steps=len(rows),
        num_bytes_unread=unread,
        shard=shard,
        quarantined=quarantined,
    )


def _quarantine(
    store: Store, worker_id: str, path: Path, num_bytes_unread: int, reason: str
) -> Path:
    """Move a spool to `quarantine/`, with a note that has the reason."""
    number = 0
    while (target := store.quarantine_dir / f"{worker_id}-{number:06d}.jsonl").exists():
        number += 1
    note = {
        "source": str(path.relative_to(store.root)),
        "reason": reason,
        "num_bytes_unread": num_bytes_unread,
        "num_bytes": path.stat().st_size,
    }
    with atomic_path(target.with_suffix(".json")) as temporary:
        temporary.write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    os.replace(path, target)
    sync_directory(target.parent)
    return target


def _carried_keys(live: Path) -> frozenset[tuple[str, int]]:
    """Return the steps of the live spool: `.closing` must not put them into its shard too."""
    try:
        return frozenset(map(_key, read_spool(live).rows))
    except (FileNotFoundError, SchemaError):
        return frozenset()


def _key(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["trajectory_id"], row["step_index"]
