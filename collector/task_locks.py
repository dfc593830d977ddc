"""Locks of tasks, which one collection at a time may play, and of the recovery of spools.

A claim locks one byte of `spool/.lock` for each task of an iteration, at an offset that is a hash
of the task's name. So thousands of tasks need only one open file, and collisions are practically
impossible. The locks belong to the open file ("open file description locks"), which workers
inherit: the kernel releases them when the last process with that file has exited, in any way. So
closing the file is enough, and a worker that outlives its parent still keeps others from its tasks.
"""

import fcntl
import os
import struct
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from graphcredit.store.files.lock import LockFile
from graphcredit.store.layout import Store


@dataclass(frozen=True, slots=True)
class Claim:
    """Locks on tasks, held until every process that got this claim has exited."""

    file: LockFile

    def __reduce__(self) -> tuple[Any, ...]:
        """Name the open file to a worker, which inherits it under the same number."""
        return _inherited, (self.file.descriptor,)


def _inherited(descriptor: int) -> Claim:
    return Claim(LockFile(descriptor))


@contextmanager
def claimed(
    store: Store, *, run_id: str, iteration: int, task_ids: Iterable[str]
) -> Generator[Claim]:
    """Lock some tasks of an iteration, so that no other collection plays them.

    Wait while another process plays one of them, and say so once on stderr. All processes lock in
    the same order, so there is no deadlock.
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
                        "it); rollouts that it completes will not be played again\n"
                    )
                    sys.stderr.flush()
                is_told = True
                _lock(file, place, fcntl.F_OFD_SETLKW)
        yield Claim(file)


@contextmanager
def recovering(store: Store) -> Generator[None]:
    """Hold the lock of recovery; after the wait, the spools of another recovery are shards."""
    with LockFile(_path(store)) as file:
        _lock(file, _place("recovery"), fcntl.F_OFD_SETLKW)
        yield


def _path(store: Store) -> Path:
    """Return the lock file. No worker's file has this name, and the file is never removed."""
    return store.spool_dir / ".lock"


def _place(name: str) -> int:
    """Return the offset of a name's byte, 0 to 2^62 - 1; locks may lie beyond the end of a file."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) >> 2


def _lock(file: LockFile, place: int, command: int) -> None:
    """Lock one byte for writing, by the 64-bit `struct flock` of Linux."""
    fcntl.fcntl(
        file.descriptor, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    )
