"""Folders for what a program needs while it runs; what a killed one left is removed by the next."""

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

_PREFIX = "graphcredit-"


class ScratchFolder:
    """A new folder in TMPDIR that only this user may read.

    It is removed with this object, at the end of a `with`, or when the program ends. The program
    holds a lock on it, so that another one of the same user sees whether its maker lives, and
    removes it if not.
    """

    def __init__(self) -> None:
        """Make the folder, and remove those of programs that were killed."""
        _remove_abandoned()
        self.path, lock = _made()
        self.remove = weakref.finalize(self, _end, self.path, lock, os.getpid())
        """Removes it now."""

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *raised: object) -> None:
        self.remove()


def _made() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = _locked(path)
        if lock is not None and path.exists():
            return path, lock
        if lock is not None:  # another program took it for abandoned before it was locked
            os.close(lock)


def _locked(path: Path) -> int | None:
    """Return the open folder with a lock on it; None if somebody else has the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _end(path: Path, lock: int, maker: int) -> None:
    if os.getpid() == maker:  # a fork of the maker has this object, too
        _removed(path, lock)


def _removed(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _remove_abandoned() -> None:
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and _is_own_folder(entry):
                path = Path(entry.path)
                if (lock := _locked(path)) is not None:
                    _removed(path, lock)


def _is_own_folder(entry: "os.DirEntry[str]") -> bool:
    with suppress(OSError):
        is_own = entry.stat(follow_symlinks=False).st_uid == os.getuid()
        return is_own and entry.is_dir(follow_symlinks=False)
    return False
