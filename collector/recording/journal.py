"""The journal of one worker: its steps are in the spool when `append` returns, in a shard later.

`recovery.py` documents the order in which files are renamed, and the state that a crash leaves.
"""

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcredit.collector.recording.recovery import Recovered, recover_worker, spool_paths
from graphcredit.collector.recording.shards import write_shard
from graphcredit.collector.recording.spool_format import (
    SpoolHeader,
    SpoolWriter,
    encode_end,
    encode_steps,
)
from graphcredit.collector.recording.worker_lock import acquire_lock, release_lock
from graphcredit.store.errors import RecorderError
from graphcredit.store.files.atomic import naming, sync_directory
from graphcredit.store.files.lock import held
from graphcredit.store.layout import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardLimits:
    """Limits at which a shard is closed; the first one that is reached counts."""

    max_rows: int
    max_bytes: int
    """Most bytes in the spool, before compression."""
    max_age: float
    """Most seconds since the shard's first step; checked whenever a step is logged."""


class Journal:
    """The spool and the shards of one worker. Not thread-safe: one thread at a time may call it.

    Whatever cannot be written, now or for an earlier shard, is a RecorderError.

    Attributes:
        _rows: The steps of the live spool, in memory too, so that no shard is made by reading one.
        _tails: The last step of each open trajectory. `end` may still change it, so it stays out of
            a shard and is carried over to the next spool.
        _failure: The first error of writing. It is final: after it, every call is refused.
        _shard: The latest shard, written in a thread of its own. There is one at a time, because
            there is one `.closing` file.
    """

    def __init__(
        self,
        store: Store,
        *,
        run_id: str,
        iteration: int,
        worker_id: str,
        limits: ShardLimits,
        fsync: bool,
    ):
        self._store = store
        self._run_id, self._iteration, self._worker_id = run_id, iteration, worker_id
        self._limits = limits
        self._fsync = fsync
        self._paths = spool_paths(store, worker_id)
        self._rows: list[dict[str, Any]] = []
        self._tails: dict[str, dict[str, Any]] = {}
        self._failure: BaseException | None = None
        self._shard: Future[None] | None = None
        self._is_closed = False
        self._paths.lock.parent.mkdir(parents=True, exist_ok=True)
        lock = acquire_lock(self._paths.lock)
        if lock is None:
            raise RecorderError(
                f"a worker can have one recorder at a time: {worker_id!r} has a live one in "
                f"{store.root}. Close it first, or use another worker_id. {held(self._paths.lock)}"
            )
        self._lock = lock
        try:
            self.recovered: list[Recovered] = recover_worker(store, worker_id)
            self._start_spool([])
        except BaseException:
            release_lock(self._paths.lock, self._lock)
            raise
        self._shard_thread = ThreadPoolExecutor(1, thread_name_prefix=f"shards-{worker_id}")

    def append(self, row: dict[str, Any], *, is_last: bool) -> None:
        """Add a step.

        Args:
            row: The columns that have a value. The journal keeps the dict: do not change it.
            is_last: Whether the trajectory ends with this step.
        """
        trajectory_id: str = row["trajectory_id"]
        self._write(encode_steps([row]))
        self._rows.append(row)
        if is_last:
            self._tails.pop(trajectory_id, None)
        else:
            self._tails[trajectory_id] = row
        self._close_shard_if_due()

    def append_all(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add all steps of some finished trajectories, or none of them."""
        if rows:
            self._write(encode_steps(rows))
            self._rows += rows
            self._close_shard_if_due()

    def end(self, trajectory_id: str, end: Mapping[str, bool | None]) -> None:
        """Mark the last step of a trajectory as its end."""
        self._write(encode_end(trajectory_id, end))
        self._tails.pop(trajectory_id).update(end)
        self._close_shard_if_due()

    def abandon(self, trajectory_id: str) -> None:
        """Expect no more steps of a trajectory."""
        self._tails.pop(trajectory_id, None)

    def close(self) -> bool:
        """Write every step to a shard, and release the worker's files.

        Returns:
            Whether this was the first call; further calls do nothing.

        Raises:
            RecorderError: A shard could not be written; its steps stay in the spool.
        """
        if self._is_closed:
            return False
        self._is_closed = True
        self._shard_thread.shutdown()
        self._spool.close()
        try:
            self._refuse_after_failure()
            _finish(self._store, self._spool.header, self._rows, self._paths.live)
        except OSError as error:
            raise self._failed(error) from error
        finally:
            release_lock(self._paths.lock, self._lock)
        return True

    def _write(self, line: bytes) -> None:
        if self._is_closed:
            raise RecorderError(f"the recorder of worker {self._worker_id!r} is closed")
        self._refuse_after_failure()
        try:
            self._spool.append(line)
        except OSError as error:
            self._failure = error
            raise self._failed(error) from error

    def _close_shard_if_due(self) -> None:
        """Start the next spool if this one is full; an error is raised by the next call.

        The step that triggered this is already in the spool, so its own call must succeed.
        """
        now = time.monotonic()
        if self._started_at is None:
            self._started_at = now
        # Steps that cannot change any more; only these go into the shard.
        num_settled = len(self._rows) - len(self._tails)
        is_due = (
            num_settled >= self._limits.max_rows
            or self._spool.size - self._num_bytes_carried >= self._limits.max_bytes
            or now - self._started_at >= self._limits.max_age
        )
        if not is_due or not num_settled:
            return
        if self._shard is not None and self._shard.exception() is not None:  # it is waited for
            return
        try:
            self._close_shard()
        except BaseException as error:
            # This spool will not become a shard, so the next spool must not replace it.
            self._failure = error
            if not isinstance(error, OSError):
                raise

    def _close_shard(self) -> None:
        carried = list(self._tails.values())
        moved = {id(row) for row in carried}
        settled = [row for row in self._rows if id(row) not in moved]
        full = self._spool
        self._start_spool(carried)
        full.close()
        arguments = (self._store, full.header, settled, self._paths.closing)
        try:
            self._shard = self._shard_thread.submit(_finish, *arguments)
        except RuntimeError:
            # No thread can be started: the interpreter is shutting down, or is out of threads.
            _finish(*arguments)

    def _start_spool(self, carried: list[dict[str, Any]]) -> None:
        """Rename the live spool to `.closing`, and put a new spool in its place."""
        header = SpoolHeader(
            spool_id=secrets.token_hex(16),
            run_id=self._run_id,
            iteration=self._iteration,
            worker_id=self._worker_id,
        )
        lines = [encode_steps(carried)] if carried else []
        with naming(self._paths.live):
            spool = SpoolWriter(self._paths.temporary, header, lines, fsync=self._fsync)
        # The new spool already has the carried steps, so no moment loses them: see `recovery.py`.
        if self._paths.live.exists():
            os.replace(self._paths.live, self._paths.closing)
        os.replace(self._paths.temporary, self._paths.live)
        if self._fsync:
            sync_directory(self._paths.live.parent)
        self._spool, self._rows = spool, carried
        self._num_bytes_carried = spool.size
        self._started_at: float | None = None

    def _refuse_after_failure(self) -> None:
        if self._failure is None and self._shard is not None and self._shard.done():
            self._failure = self._shard.exception()
        if self._failure is not None:
            raise self._failed(self._failure) from self._failure

    def _failed(self, error: BaseException) -> RecorderError:
        return RecorderError(
            f"the recorder of worker {self._worker_id!r} cannot write to {self._store.root}: "
            f"{error}. The acknowledged steps are in {self._store.spool_dir}. When writing works "
            "again, the worker's next recorder turns them into shards, or so does "
            f"`graphcredit check {self._store.root} --recover`"
        )


def _finish(store: Store, header: SpoolHeader, rows: list[dict[str, Any]], spool: Path) -> None:
    """Write the shard of a spool, then delete the spool."""
    if rows:
        write_shard(store, header, rows)
    spool.unlink()
