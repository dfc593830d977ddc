"""Who plays a task: one collection at a time, and who recovers spools: one process at a time.

A claim locks one byte of `spool/.lock` for each task of an iteration, at a place that is a hash of
its name. So thousands of tasks take one open file, and the places of different tasks do not meet.
The locks belong to the open file (they are "open file description locks"), which workers are given:
the kernel lets go of them when the last process that has the file open has ended, however it ends.
So nobody unlocks what workers hold; closing the file is enough. A worker that outlives its parent
for a while still keeps others from its tasks.
"""

import fcntl
import os
import struct
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from graphcredit.store.files.lock import LockFile
from graphcredit.store.layout import Store


@dataclass(frozen=True, slots=True)
class Claim:
    """Tasks that nobody else plays until every process that this was given to has ended."""

    file: LockFile
    """The file that is locked."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Be inherited by a process that is started with this."""
        return _inherited, (DupFd(self.file.descriptor),)


def _inherited(descriptor: Any) -> Claim:
    return Claim(LockFile(descriptor.detach()))


@contextmanager
def claimed(
    store: Store, *, run_id: str, iteration: int, task_ids: Iterable[str]
) -> Generator[Claim]:
    """Be the only one who plays these tasks in this iteration.

    Waits while another process plays one of them, and says so once on stderr. Everybody takes the
    places in one order, so no two wait for each other.
    """
    claims = sorted((_place(f"{run_id}/{iteration}/{task}"), task) for task in task_ids)
    path = _path(store)
    path.parent.mkdir(exist_ok=True)
    with LockFile(path) as file:
        is_told = False
        for place, task_id in claims:
            try:
                _lock(file, place, fcntl.F_OFD_SETLK)
            except BlockingIOError:
                if not is_told:
                    sys.stderr.write(
                        f"graphcredit: waiting, because another process plays {task_id} of run "
                        f"{run_id}, iteration {iteration}, into {store.root} (`fuser {path}` names "
                        "it); what it completes will not be played again\n"
                    )
                    sys.stderr.flush()
                is_told = True
                _lock(file, place, fcntl.F_OFD_SETLKW)
        yield Claim(file)


@contextmanager
def recovering(store: Store) -> Generator[None]:
    """Be the only one who recovers spools: what another has at hand is in shards after the wait."""
    with LockFile(_path(store)) as file:
        _lock(file, _place("recovery"), fcntl.F_OFD_SETLKW)
        yield


def _path(store: Store) -> Path:
    """Return the file to lock; no worker's files have this name, and it is never removed."""
    return store.spool_dir / ".lock"


def _place(name: str) -> int:
    """Return a byte from 0 to 2^62 - 1; a lock may be beyond the end of its file."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) >> 2


def _lock(file: LockFile, place: int, command: int) -> None:
    """Lock one byte for writing: `struct flock` of Linux, 64 bits."""
    fcntl.fcntl(
        file.descriptor, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    )
