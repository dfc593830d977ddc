"""Locks of a worker's files: one process may use them, and in it one thread at a time."""

import os
import threading
from pathlib import Path

from graphcredit.store.errors import RecorderError
from graphcredit.store.files.lock import LockFile


def acquire_lock(path: Path) -> LockFile | None:
    """Return a worker's lock, or None where another process holds it.

    The kernel releases the lock however its holder dies.
    """
    while True:
        file = LockFile(path)
        if not file.lock():
            file.close()
            return None
        # The last holder unlinks the file on release. If that happened between our open and our
        # lock, we hold a lock on a deleted file, and another process may lock a new one: retry.
        if _is_at(path, file.descriptor):
            return file
        file.close()


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether the path still names the open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def release_lock(path: Path, lock: LockFile) -> None:
    """Release a worker's lock and remove its file.

    The file goes first, while it is still locked: after the release it may be another process's.
    """
    path.unlink(missing_ok=True)
    lock.close()


class ProcessLock:
    """A lock between threads that raises an error in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        if os.getpid() != self._process:
            raise RecorderError(
                f"a recorder belongs to the process that opened it, {self._process}: this is "
                f"{os.getpid()}. Open another recorder here, with another worker_id"
            )
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
