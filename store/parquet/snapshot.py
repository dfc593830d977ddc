"""Reading many files as they are at one time, while others replace them.

Who reads a Parquet file opens it several times: if it is replaced in between, the parts do not fit.
And who reads several may get old ones and new ones. So a reader shares a lock that a writer holds
alone while it renames, and looks afterwards whether a file is another one than before; if so, it
reads again. The lock is on directories, so nothing has to be written to a store that is only read.
Neither waits for ever: a writer goes on after a minute, since a reader that it overtakes notices.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TypeAlias, TypeVar

from graphcredit.store.errors import ReplacedError
from graphcredit.store.layout import Store

T = TypeVar("T")

Stamp: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""Path, inode, size and time of files."""

PATIENCE = 60.0
"""Seconds that a writer waits for readers at most, and a reader for a writer."""

_PAUSE = 0.02
_ATTEMPTS = 3

_TABLES = ("steps", "credit", "graph", "training")
"""Folders whose files belong to an iteration."""


def stamp(store: Store, run_id: str | None = None, iteration: int | None = None) -> Stamp:
    """Return what tells versions apart of each file that views read, or of those of an iteration.

    Args:
        store: The store.
        run_id: Only this run.
        iteration: Only this iteration.
    """
    return tuple(sorted(_stats(store, run_id, iteration)))


def unchanged(
    store: Store, read: Callable[[], T], *, run_id: str | None = None, iteration: int | None = None
) -> T:
    """Return what a function reads from files none of which is replaced meanwhile.

    Step shards that are added do not count: they may come at any time.

    Args:
        store: The store.
        read: Called again if a file was replaced; what it raised then is not raised.
        run_id: It reads only this run.
        iteration: It reads only this iteration.

    Raises:
        ReplacedError: Files were replaced every time.
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
    """Return what a function reads, and whether no file was replaced meanwhile.

    For the arguments see `unchanged`.

    Raises:
        ReplacedError: The function raised an error, and files were replaced.
    """
    with _locked(_place(store, run_id), fcntl.LOCK_SH):
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
        "Wait until what writes them has ended, then try again"
    )


@contextmanager
def replacing(store: Store, run_id: str) -> Generator[None]:
    """Keep readers of a run out while files of it are renamed; be quick."""
    with ExitStack() as locks:
        for directory in (_place(store, None), _place(store, run_id)):
            locks.enter_context(_locked(directory, fcntl.LOCK_EX))
        yield


def _place(store: Store, run_id: str | None) -> Path:
    """Return the directory that stands for a run, or for the store."""
    return store.root if run_id is None else store.root / "steps" / f"run_id={run_id}"


@contextmanager
def _locked(directory: Path, kind: int) -> Generator[None]:
    """Hold a lock on a directory; without one, if others keep it or there cannot be any."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        # No such run: whoever reads it finds that out.
        yield
        return
    try:
        _try_to_lock(descriptor, kind)
        yield
    finally:
        # Said outright: a process that was forked meanwhile has the descriptor, too.
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
    store: Store, run_id: str | None, iteration: int | None
) -> Iterator[tuple[str, int, int, int]]:
    run = "run_id=*" if run_id is None else f"run_id={run_id}"
    folders = [f"{table}/{run}/{name}" for table in _TABLES for name in _iterations(iteration)]
    for pattern in (*folders, f"history/{run}", "er_graph"):
        for path in store.root.glob(f"{pattern}/*.parquet"):
            yield from _stat(path)


def _iterations(iteration: int | None) -> list[str]:
    """Return what the folders of an iteration are called, or a pattern for those of all.

    Foreign writers may pad with fewer zeros. Where the folders are is not listed: there may be
    thousands of other iterations.
    """
    if iteration is None:
        return ["iteration=*"]
    return list(dict.fromkeys(f"iteration={iteration:0{width}d}" for width in range(1, 11)))


def _stat(path: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield what tells versions of a file apart; nothing for one that cannot be had."""
    try:
        found = path.stat()
    except OSError:
        return
    yield str(path), found.st_ino, found.st_size, found.st_mtime_ns
