"""Locks between processes: one holds a file locked, and the kernel lets go when it dies.

The lock belongs to the open file. A forked child has its parent's files open and would hold the
lock for as long as it lives, so a child closes them before anything else. A child that was forked
without Python's knowledge cannot do so: `held` names it.
"""

import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from graphcredit.store.errors import InputError

LOCK_NAME = ".lock"
"""The file that is locked; it stays there, empty."""

_open_files: "set[LockFile]" = set()
_forking = threading.Lock()
"""No process is forked while a file is open and not in `_open_files`."""


class LockFile:
    """A file to lock, open in this process and in no child that is forked from it."""

    def __init__(self, path: Path | int, flags: int = os.O_RDWR | os.O_CREAT) -> None:
        """Open a file, or take over a descriptor that this process was started with."""
        with _forking:
            self._descriptor: int | None = (
                path if isinstance(path, int) else os.open(path, flags, 0o644)
            )
            _open_files.add(self)

    @property
    def descriptor(self) -> int:
        """Of the open file.

        Raises:
            InputError: The file was opened by the process that this one is a fork of.
        """
        if self._descriptor is None:
            raise InputError("a lock is held by the process that took it, not by its forks")
        return self._descriptor

    def lock(self, *, wait: bool = False, shared: bool = False) -> bool:
        """Lock the whole file; return False where another process has it locked, or wait."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self.descriptor, kind if wait else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Let go of the file and its locks, unless this process is a fork, which has none."""
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
    before=_forking.acquire,
    after_in_parent=_forking.release,
    after_in_child=_leave_all_to_parent,
)


@contextmanager
def alone_in(directory: Path, refusal: str) -> Generator[None]:
    """Be the only process in a directory, which is made if need be.

    Args:
        directory: Where to be.
        refusal: What to say if another process is there.

    Raises:
        InputError: Another process is there; the message names it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / LOCK_NAME
    with LockFile(path) as file:
        if not file.lock():
            file.close()
            raise InputError(f"{refusal}. {held(path)}")
        yield


def held(path: Path) -> str:
    """Return a sentence that says which processes have a locked file, and what to do about it."""
    found = files_in_use({path}).get(path)
    if not found:
        return f"{path} is locked by a process of another user, container or machine"
    return (
        f"{path} is locked by {' and '.join(found)}; if that is only a child of a process that has "
        "died, end it"
    )


def files_in_use(paths: set[Path]) -> dict[Path, list[str]]:
    """Return those of some files that a process has open, and which: "process 12 (python w.py)".

    The processes of other users, containers and machines cannot be seen.
    """
    real = {os.path.realpath(path): path for path in paths}
    found: dict[Path, list[str]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            opened = set(map(_target, (process / "fd").iterdir()))
            for name in sorted(opened & real.keys()):
                found.setdefault(real[name], []).append(_process(process))
    return found


def _target(link: Path) -> str:
    """Return where a link leads; empty if it is gone by now."""
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
