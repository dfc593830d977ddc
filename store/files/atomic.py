"""Write files and directories atomically: they appear complete, or not at all.

An incomplete file has a temporary name beside the final one, `<name>.<8 hex digits>.tmp`. Its
writer holds a lock on it, which the kernel releases however the writer dies. So the next writer can
tell which temporary files are abandoned, and removes them.
"""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from graphcredit.store.errors import InputError

TEMPORARY_SUFFIX = ".tmp"

_TEMPORARY = re.compile(r"(?P<name>.+)\.[0-9a-f]{1,8}\.tmp", re.DOTALL)

_RUST_ERROR = re.compile(r"\(os error (\d+)\)")


@contextmanager
def atomic_path(path: Path) -> Generator[Path]:
    """Yield a temporary path in the same directory; on success, sync it and rename it to `path`.

    If the body raises, the temporary file is removed and `path` stays as it was. If the process is
    killed, a `*.tmp` file is left behind. Readers ignore it, and the next writer of `path` removes
    it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_left_overs(path.parent, path.name.__eq__)
    temporary, lock = _claim(path, is_directory=False)
    try:
        yield temporary
        sync_file(temporary)
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        _name(error, path)
        raise
    finally:
        os.close(lock)
    sync_directory(path.parent)


@contextmanager
def atomic_directory(path: Path, *, may_replace: bool = True) -> Generator[Path]:
    """Yield a new directory beside `path`; on success, sync it and rename it to `path`.

    An existing directory is renamed just before, and removed afterwards. A reader finds the old
    one, the new one, or for a moment none, but never a part of one. If the process is killed,
    `*.tmp` directories are left behind; the next writer of `path` removes them once `path` exists.

    Args:
        path: The directory.
        may_replace: Whether a `path` with content may be replaced.

    Raises:
        InputError: `path` has content that may not be replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, lock = _claim(path, is_directory=True)
    try:
        yield temporary
        for folder, _, names in os.walk(temporary):
            for name in names:
                sync_file(Path(folder, name))
            sync_directory(Path(folder))
        aside = _put_aside(path) if may_replace else None
        _take_name(temporary, path)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        _name(error, path)
        raise
    finally:
        os.close(lock)
    sync_directory(path.parent)
    if aside is not None:
        # Another writer of the same directory may have removed it already.
        shutil.rmtree(aside, ignore_errors=True)
    remove_left_overs(path.parent, path.name.__eq__)


def remove_left_overs(directory: Path, is_ours: Callable[[str], object]) -> list[Path]:
    """Remove the temporary files and directories of writers that are dead.

    Args:
        directory: The directory to search; it need not exist.
        is_ours: Whether the caller may be about to write a file of that name; temporaries of other
            names are somebody else's.

    Returns:
        The removed paths.
    """
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    matches = ((_TEMPORARY.fullmatch(each), directory / each) for each in names)
    ours = (path for match, path in matches if match and is_ours(match["name"]))
    return [path for path in ours if _remove_if_dead(path)]


def _remove_if_dead(path: Path) -> bool:
    is_directory = path.is_dir()
    access = os.O_RDONLY if is_directory else os.O_RDWR
    try:
        lock = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_directory:
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        # Its writer is alive, another process removes it, or we have no permission.
        return False
    finally:
        os.close(lock)
    return True


def _claim(path: Path, *, is_directory: bool) -> tuple[Path, int]:
    """Make and lock a temporary file or directory for `path`; return it and the descriptor.

    Another writer may see the new file before it is locked, take it for abandoned and remove it.
    Then try again with another name.
    """
    while True:
        temporary = temporary_path(path)
        if is_directory:
            temporary.mkdir()
            lock = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
        else:
            lock = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Another writer locked it first, and will remove it.
            os.close(lock)
            continue
        except OSError:
            # A file system without locks: there, no writer removes temporary files either.
            return temporary, lock
        if temporary.exists():
            return temporary, lock
        os.close(lock)


def temporary_path(path: Path) -> Path:
    """Return a new temporary name beside a path, for the only writer in its directory."""
    return path.with_name(f"{path.name}.{os.urandom(4).hex()}{TEMPORARY_SUFFIX}")


def _take_name(temporary: Path, path: Path) -> None:
    try:
        os.replace(temporary, path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise InputError(
            f"{path} must be a new directory, or an empty one: something was written to it "
            "meanwhile. Name another"
        ) from error


def remove_directory(path: Path) -> None:
    """Remove a directory if it exists. Readers never find it half removed: it is renamed first."""
    aside = _put_aside(path)
    if aside is not None:
        shutil.rmtree(aside)


def _put_aside(path: Path) -> Path | None:
    """Rename a directory, if it exists, to a temporary name that readers ignore; return it."""
    if not path.exists():
        return None
    aside = temporary_path(path)
    os.replace(path, aside)
    return aside


def sync_file(path: Path) -> None:
    """Wait until a file's content is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Wait until a directory's entries are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Make errors of the system name a path, as in `atomic_path` and `atomic_directory`.

    Otherwise errors of pyarrow name no path, and other errors name a temporary one.
    """
    try:
        yield
    except Exception as error:
        _name(error, path)
        raise


def _name(error: BaseException, path: Path) -> None:
    """Put the caller's path into an error, in place of a temporary one or none.

    Raises:
        OSError: The error comes from a Rust library, which raises a class of its own.
    """
    if isinstance(error, OSError):
        named = "" if error.filename is None else os.fsdecode(error.filename)
        if error.errno and (not named or named.startswith(f"{path}.")):
            error.filename, error.filename2 = str(path), None
    elif code := _RUST_ERROR.search(str(error)):
        number = int(code[1])
        raise OSError(number, os.strerror(number), str(path)) from error
