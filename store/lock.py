"""One process at a time in a directory that belongs to one command."""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from graphcredit.store.errors import InputError

LOCK_NAME = ".lock"
"""The file that is locked; it stays there, empty."""


@contextmanager
def alone_in(directory: Path, refusal: str) -> Generator[None]:
    """Be the only process in a directory, which is made if need be.

    The kernel drops the lock when its holder dies, however it dies.

    Args:
        directory: Where to be.
        refusal: What to say if another process is there.

    Raises:
        InputError: Another process is there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / LOCK_NAME).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(refusal) from None
        yield
