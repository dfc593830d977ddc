"""Read a consistent snapshot of many files while other processes may replace them.

A reader opens a Parquet file several times; if it is replaced in between, the parts do not fit. A
reader of several files may get old and new ones. So readers hold a shared lock, and a writer holds
it exclusively while it renames. Afterwards a reader compares the files with those before, and reads
again if any was replaced. The lock is on directories, so a store that is only read need not be
writable. Nobody waits for ever: a writer continues after a minute, and the reader that it overtakes
notices the change.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TypeAlias, TypeVar

from graphcredit.store.errors import ReplacedError
from graphcredit.store.layout import ITERATION_TABLES, Store

T = TypeVar("T")

Stamp: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""Path, inode, size and modification time of each file."""

PATIENCE = 60.0
"""Most seconds that a writer waits for readers, and a reader for a writer."""

_PAUSE = 0.02
_ATTEMPTS = 3


def stamp(store: Store, run_id: str | None = None, iteration: int | None = None) -> Stamp:
    """Return a stamp of the files that the views read: it changes if one of them is replaced.

    Notes do not count, so that what was computed of the other files stays valid.
    """
    return tuple(sorted(_stats(store, run_id, iteration, ITERATION_TABLES)))


def unchanged(
    store: Store, read: Callable[[], T], *, run_id: str | None = None, iteration: int | None = None
) -> T:
    """Return the result of a function that reads files, none of which is replaced meanwhile.

    New step shards do not count: they may appear at any time.

    Args:
        store: The store.
        read: The function. It is called again if a file was replaced; its error is dropped then.
        run_id: The only run that it reads.
        iteration: The only iteration that it reads.

    Raises:
        ReplacedError: Files were replaced at every attempt.
    """
    failure: ReplacedError | None = None
    for _ in range(_ATTEMPTS):
        try:
            result, is_unchanged = read_once(store, read, run_id=run_id, iteration=iteration)
        except ReplacedError as error:
            failure = error
            continue
        if is_unchanged:
            return result
    raise _replaced(store) from failure


def read_once(
    store: Store, read: Callable[[], T], *, run_id: str | None = None, iteration: int | None = None
) -> tuple[T, bool]:
    """Return the result of a function that reads files, and whether no file was replaced.

    For the arguments see `unchanged`.

    Raises:
        ReplacedError: The function raised an error, and files were replaced.
    """
    with _locked(_lock_folder(store, run_id), fcntl.LOCK_SH):
        before = stamp(store, run_id, iteration)
        try:
            result = read()
        except Exception as error:
            if _is_same(store, before, stamp(store, run_id, iteration)):
                raise
            raise _replaced(store) from error
        return result, _is_same(store, before, stamp(store, run_id, iteration))


def _replaced(store: Store) -> ReplacedError:
    return ReplacedError(
        f"the files of {store.root} must stay the same while they are read: some were replaced. "
        "Wait until their writer has finished, then try again"
    )


@contextmanager
def replacing(store: Store, run_id: str) -> Generator[None]:
    """Lock out readers of a run while its files are renamed; keep the block short."""
    with ExitStack() as locks:
        for directory in (_lock_folder(store, None), _lock_folder(store, run_id)):
            locks.enter_context(_locked(directory, fcntl.LOCK_EX))
        yield


def _lock_folder(store: Store, run_id: str | None) -> Path:
    """Return the directory to lock for a run, or for the whole store."""
    return store.root if run_id is None else store.root / "steps" / f"run_id={run_id}"


@contextmanager
def _locked(directory: Path, kind: int) -> Generator[None]:
    """Hold a lock on a directory; go on without it after `PATIENCE`, or if there are no locks."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        # No such run: the caller's own read reports that.
        yield
        return
    try:
        _try_to_lock(descriptor, kind)
        yield
    finally:
        # Unlock explicitly: a process that was forked meanwhile still has the descriptor open.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _try_to_lock(descriptor: int, kind: int) -> None:
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            sleep(_PAUSE)
        except OSError:
            # A file system without locks.
            return


def _is_same(store: Store, before: Stamp, after: Stamp) -> bool:
    steps = str(store.root / "steps")
    known = {path for path, *_ in before}
    kept = tuple(row for row in after if row[0] in known or not row[0].startswith(steps))
    return kept == before


def _stats(
    store: Store, run_id: str | None, iteration: int | None, tables: tuple[str, ...]
) -> Iterator[tuple[str, int, int, int]]:
    run = "run_id=*" if run_id is None else f"run_id={run_id}"
    folders = [f"{table}/{run}/{name}" for table in tables for name in _iterations(iteration)]
    for pattern in (*folders, f"history/{run}", "er_graph"):
        for path in store.root.glob(f"{pattern}/*.parquet"):
            with suppress(OSError):
                status = path.stat()
                yield str(path), status.st_ino, status.st_size, status.st_mtime_ns


def _iterations(iteration: int | None) -> list[str]:
    """Return the possible folder names of an iteration, or a pattern for all iterations.

    Foreign writers may pad with fewer zeros. All paddings are tried, because listing the folders is
    slow if there are thousands of iterations.
    """
    if iteration is None:
        return ["iteration=*"]
    return list(dict.fromkeys(f"iteration={iteration:0{width}d}" for width in range(1, 11)))
