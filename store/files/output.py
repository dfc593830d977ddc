"""Write a result to a path that the user named: a file, a link, a pipe or a device."""

import os
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from graphcredit.store.errors import InputError
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.scratch import ScratchFolder

_MOST_LINKS = 40
"""Most symbolic links that a system follows in a row."""


def refuse_existing(path: Path) -> None:
    """Raise InputError if a file is at a path: an export never replaces one."""
    if path.is_file():
        raise InputError(
            f"the output must be a new file: {path} exists. Name another, or remove it"
        )


@contextmanager
def output_path(path: Path) -> Generator[Path]:
    """Yield a temporary path; on success, its content goes to the path that the user named.

    A regular file, new or old, is replaced atomically; through a link, its target is. Anything
    else, such as a pipe, a device or `/dev/stdout`, is opened and written to.

    Raises:
        InputError: The path is a directory.
    """
    if path.is_dir():
        raise InputError(f"the output must be a file: {path} is a directory. Name a file in it")
    descriptor = _own_descriptor(path)
    if descriptor is None and _is_regular(path):
        behind = Path(os.path.realpath(path))
        with atomic_path(behind) as temporary:
            yield temporary
            if behind.exists():
                shutil.copymode(behind, temporary)
        return
    with ScratchFolder() as folder:
        temporary = Path(folder, "output")
        yield temporary
        opened = (
            os.open(path, os.O_WRONLY | os.O_NOCTTY) if descriptor is None else os.dup(descriptor)
        )
        with os.fdopen(opened, "wb") as target, temporary.open("rb") as source:
            shutil.copyfileobj(source, target)


def _is_regular(path: Path) -> bool:
    """Return whether a path, after its links, is a regular file or does not exist yet."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def _own_descriptor(path: Path) -> int | None:
    """Return this process's descriptor that `/dev/stdout` or `/dev/fd/3` stands for, if any."""
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") and path.name.isdigit():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None
