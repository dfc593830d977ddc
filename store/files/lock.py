"""Locks between processes, which the kernel releases when the owner dies.

A lock belongs to the open file. A forked child inherits its parent's open files and would keep the
lock alive, so a child closes them first of all. A child that was forked behind Python's back cannot
do so: `held` names it.
"""

import errno
import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from graphcredit.store.errors import InputError

LOCK_NAME = ".lock"
"""Name of the lock file in a directory; it is empty, and never removed."""

_open_files: "set[LockFile]" = set()
_forking = threading.Lock()
"""Held while a file is opened or closed, so that no fork sees a file that `_open_files` lacks."""


class LockFile:
    """A file to lock, open in this process and in no child that is forked from it."""

    def __init__(self, path: Path | int, flags: int = os.O_RDWR | os.O_CREAT) -> None:
        """Open a file, or take over a descriptor that this process inherited."""
        with _forking:
            self._descriptor: int | None = path if isinstance(path, int) else _open(path, flags)
            _open_files.add(self)

    @property
    def descriptor(self) -> int:
        """Descriptor of the open file.

        Raises:
            InputError: This process is a fork of the one that opened the file.
        """
        if self._descriptor is None:
            raise InputError("a lock is held by the process that took it, not by its forks")
        return self._descriptor

    def lock(self, *, wait: bool = False) -> bool:
        """Lock the whole file. If another process has it locked, wait, or return False."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Close the file and release its locks; in a fork, which has none, do nothing."""
        with _forking:
            _open_files.discard(self)
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def __enter__(self) -> "LockFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def leave_to_parent(self) -> None:
        """Close the file in a process that was just forked; the parent's stays open."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _leave_all_to_parent() -> None:
    for file in _open_files:
        file.leave_to_parent()
    _open_files.clear()
    _forking.release()


os.register_at_fork(
    before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_leave_all_to_parent
)


def _open(path: Path, flags: int) -> int:
    """Open a file to lock; where a link is in its place, no file is made behind that."""
    may_follow = 0 if flags & os.O_CREAT == 0 else os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, flags | may_follow, 0o644)
    except OSError as error:
        if may_follow and error.errno == errno.ELOOP:
            raise InputError(f"{path} must be a file to lock: it is a link. Remove it") from error
        raise


@contextmanager
def alone_in(directory: Path, refusal: str) -> Generator[None]:
    """Hold an exclusive lock on a directory; create the directory if it does not exist.

    Args:
        directory: The directory to lock.
        refusal: Start of the message if another process holds the lock.

    Raises:
        InputError: Another process holds the lock; the message names it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / LOCK_NAME
    with LockFile(path) as file:
        if not file.lock():
            file.close()
            raise InputError(f"{refusal}. {held(path)}")
        yield


def held(path: Path) -> str:
    """Return a sentence that names the processes with a lock, and says what to do about them."""
    holders = _processes_with(path)
    if not holders:
        return f"{path} is locked by a process of another user, container or machine"
    return (
        f"{path} is locked by {' and '.join(holders)}; if that is only a child of a dead process, "
        "end it"
    )


def _processes_with(path: Path) -> list[str]:
    """Return which processes have a file open, each as "process 12 (python w.py)".

    Processes of other users, containers and machines are not visible.
    """
    name = os.path.realpath(path)
    holders: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if name in map(_target, (process / "fd").iterdir()):
                holders.append(_process(process))
    return holders


def _target(link: Path) -> str:
    """Return the target of a link; empty if the link is gone by now."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _process(process: Path) -> str:
    if int(process.name) == os.getpid():
        return "this process"
    words = (process / "cmdline").read_bytes().rstrip(b"\0").decode(errors="replace").split("\0")
    line = " ".join(words)
    return f"process {process.name} ({line if len(line) <= 80 else f'{line[:79]}…'})"
