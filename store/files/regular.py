"""Read small files that anyone may have put in a store: regular files only, up to a size."""

import errno
import os
import stat
from pathlib import Path

from graphcredit.store.errors import InputError

MAX_BYTES = 64 << 20


def read_regular(path: Path) -> bytes:
    """Return the content of a file that people or programs write by hand.

    Raises:
        InputError: It is no regular file (a pipe or a device never ends), or larger than
            `MAX_BYTES`.
        OSError: It is not there, or cannot be read.
    """
    # A pipe without a writer would block here.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise InputError(
                f"{path} must be a regular file: it is a pipe, a device or a socket. Remove it"
            )
        if status.st_size > MAX_BYTES:
            raise InputError(
                f"{path} must have at most {MAX_BYTES >> 20} MiB: it has {status.st_size >> 20}"
            )
        return file.read()


def is_plain_file(path: Path) -> bool:
    """Return whether a path is a regular file, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
