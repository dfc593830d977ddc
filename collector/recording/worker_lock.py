"""Who may touch a worker's files: one process, and in it one thread at a time."""

import os
import threading
from pathlib import Path

from graphcredit.store.errors import RecorderError
from graphcredit.store.files.lock import LockFile


def acquire_lock(path: Path) -> LockFile | None:
    """Return a worker's lock, or None where another process holds it.

    The kernel drops the lock when its holder dies, however it dies.
    """
    while True:
        file = LockFile(path)
        if not file.lock():
            file.close()
            return None
        if _is_at(path, file.descriptor):
            return file
        file.close()


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the file is still there under its name: its last holder may just have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def release_lock(path: Path, lock: LockFile) -> None:
    """Remove a lock that this process holds."""
    path.unlink(missing_ok=True)
    lock.close()


class ProcessLock:
    """A lock of threads that refuses to be used in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        if os.getpid() != self._process:
            raise RecorderError(
                f"a recorder belongs to the process that opened it, {self._process}: this is "
                f"{os.getpid()}. Open a recorder here, with a worker_id of its own"
            )
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
