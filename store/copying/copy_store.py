"""Copy the files of a store that are missing or different in the copy."""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from graphcredit.store.copying.locations import Location, open_location
from graphcredit.store.errors import InputError, ReplacedError
from graphcredit.store.files.digest import verify
from graphcredit.store.layout import (
    ITERATION_TABLES,
    MARKER,
    MARKER_NAME,
    Store,
    check_marker,
    check_name,
    create_store,
    no_store,
)
from graphcredit.store.parquet.snapshot import replacing
from graphcredit.store.progress import OnProgress, silent

_TOGETHER = ("credit", "graph", "summary")
"""Folders whose files of an iteration appear at once, after its steps, as `credit` makes them."""
_TABLES = (*ITERATION_TABLES, "history")
_FOLDERS = ("", "er_graph", "images", *(t for t in _TABLES if t not in _TOGETHER[1:]))
"""Folders to copy, in this order; with "credit" come those of `_TOGETHER`."""
_PART = re.compile(
    rf"(?:{'|'.join(_TABLES)})/run_id=(?P<run>[^/]+)(?:/iteration=(?P<iteration>\d+))?/[^/]+\.parquet"
)
_SHARED = re.compile(r"states\.toml|er_graph/[^/]+\.parquet|images/.+(?<!\.tmp)")
"""Files of all runs."""
_STAYS = re.compile(r"spool/[^/]+\.(jsonl|arrows)|quarantine/[^/]+\.parquet")
_AT_ONCE = 8
"""Files that are copied at a time: object storage is far away."""
_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyReport:
    """The numbers of a copy."""

    num_files: int
    num_bytes: int
    num_equal: int
    """Files that were there already."""
    left: Mapping[str, int] = field(default_factory=dict[str, int])
    """Folder to the files that are not copied: spools, and quarantined files."""
    links: Sequence[str] = ()
    """Symbolic links, which are not copied, nor what is behind them."""


def copy_store(
    source: str,
    target: str,
    *,
    run_id: str | None = None,
    iteration: int | None = None,
    on_progress: OnProgress = silent,
) -> CopyReport:
    """Copy the new files of a store to another place; it may be interrupted and repeated.

    Files are equal if their digests are; those without a digest are compared byte by byte. The
    credit of an iteration appears at once, with its graph and its summary, and every other file
    when it is whole. Nothing is removed from the target. A copy on this machine is verified before
    it gets its name.

    Args:
        source: A store: its path, or an address such as `s3://bucket/store`.
        target: The same for its copy, which need not exist. One of both is on this machine.
        run_id: Only this run.
        iteration: Only this iteration, with the counts of all.
        on_progress: Called after each file.

    Raises:
        InputError: Neither is on this machine, the source has nothing of that run or iteration,
            one of its folders is a link, or a place cannot be read or written.
        ReplacedError: The credit of an iteration was replaced at every attempt to read it.
        StoreFormatError: The source is no store, or the target holds something else.
        DamagedFileError: A file is not what was written.
    """
    if run_id is not None:
        check_name("run_id", run_id)
    here, there = open_location(source), open_location(target)
    if here.folder is None and there.folder is None:
        raise InputError(f"one of both places must be on this machine: got {source} and {target}")
    listing = here.files()
    sizes = listing.sizes
    _require_store(here, sizes)
    _refuse_linked_folders(here, listing.links)
    chosen = _chosen(sizes, run_id, iteration)
    matches = [match for match in map(_PART.fullmatch, chosen) if match]
    if iteration is not None:
        matches = [match for match in matches if match["iteration"]]
    if not matches and (run_id, iteration) != (None, None):
        wanted = f"{run_id or 'any'}, iteration {'any' if iteration is None else iteration}"
        raise InputError(f"{source} must have a file of run {wanted}: it has none")
    known = there.files().sizes
    _open_target(there, known)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        same_size = [path for path in chosen if known.get(path) == sizes[path]]
        are_equal = pool.map(partial(here.has_equal, there), same_size)
        equal = {path for path, is_equal in zip(same_size, are_equal, strict=True) if is_equal}
        new = [path for path in chosen if path not in equal]
        copied = 0
        for paths in _in_order(new):
            if _folder(paths[0]) in _TOGETHER:
                _copy_together(pool, here, there, paths)
            else:
                for _ in pool.map(partial(_copy, here, there), paths):
                    pass
            copied += len(paths)
            on_progress("copy", copied, len(new))
    return CopyReport(
        num_files=len(new),
        num_bytes=sum(sizes[path] for path in new),
        num_equal=len(equal),
        left=dict(Counter(_folder(path) for path in sizes if _STAYS.fullmatch(path))),
        links=listing.links,
    )


def _chosen(sizes: Iterable[str], run_id: str | None, iteration: int | None) -> list[str]:
    """Return the files to copy: those of a run and an iteration, and those of all."""
    chosen: list[str] = []
    for path in sorted(sizes):
        if _SHARED.fullmatch(path):
            chosen.append(path)
        elif match := _PART.fullmatch(path):
            at = match["iteration"]
            if run_id in (None, match["run"]) and (None in (iteration, at) or int(at) == iteration):
                chosen.append(path)
    return chosen


def _in_order(paths: Iterable[str]) -> Iterator[list[str]]:
    """Yield the files of each folder, and for credit those of each iteration, as they may appear.

    A reader never finds credit without its steps.
    """
    together: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, *below = path.split("/")
        if folder in _TOGETHER:
            together[tuple(below[:2])].append(path)
        else:
            folders[folder if below else ""].append(path)
    for folder in _FOLDERS:
        if folder in _TOGETHER:
            yield from together.values()
        for start in range(0, len(folders[folder]), _AT_ONCE):
            yield folders[folder][start : start + _AT_ONCE]


def _folder(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def _copy(here: Location, there: Location, path: str) -> None:
    _staged(here, there, path).close()


def _copy_together(
    pool: ThreadPoolExecutor, here: Location, there: Location, paths: Sequence[str]
) -> None:
    """Copy files of one iteration, none of which is replaced meanwhile; they appear at once."""
    for _ in range(_ATTEMPTS):
        before = here.versions(paths)
        staged = [pool.submit(_staged, here, there, path) for path in paths]
        wait(staged)
        with ExitStack() as renames:
            for file in staged:
                if file.exception() is None:
                    renames.push(file.result())
            for file in staged:
                file.result()
            if here.versions(paths) == before:
                with _readers_kept_out(there, paths[0]):
                    renames.close()
                return
            renames.pop_all().__exit__(ReplacedError, ReplacedError(), None)
    raise ReplacedError(
        f"the credit of an iteration must stay the same while it is copied: {here.name}/"
        f"{posixpath.dirname(paths[0])} was replaced. Wait until its writer has finished, then "
        "copy again"
    )


def _staged(here: Location, there: Location, path: str) -> ExitStack:
    """Write a copy under a temporary name; it gets its name when the result is closed."""
    is_table = path.endswith(".parquet")
    if is_table and here.folder is not None and there.folder is None:
        verify(here.folder / path)
    stack = ExitStack()
    stack.enter_context(there.writing(path, here.read(path), is_sealed=is_table))
    return stack


@contextmanager
def _readers_kept_out(there: Location, path: str) -> Generator[None]:
    """Lock out the readers of a run on this machine."""
    match = _PART.fullmatch(path)
    if there.folder is None or match is None:
        yield
        return
    with replacing(Store(there.folder), match["run"]):
        yield


def _require_store(location: Location, sizes: Mapping[str, int]) -> None:
    if MARKER_NAME not in sizes:
        raise no_store(location.name)
    check_marker(f"{location.name}/{MARKER_NAME}", bytes(location.read(MARKER_NAME)))


def _refuse_linked_folders(location: Location, links: Iterable[str]) -> None:
    linked = [link for link in links if location.folder and (location.folder / link).is_dir()]
    if linked:
        raise InputError(
            f"the folders of a store that is copied must be in it: {location.name}/{linked[0]} is "
            "a link. Copy from the place where the files are, mount it there, or remove the link"
        )


def _open_target(location: Location, known: Mapping[str, int]) -> None:
    """Make the target a store, unless it is one."""
    if location.folder is not None:
        create_store(location.folder)
    elif known:
        _require_store(location, known)
    else:
        content = pa.py_buffer(MARKER.encode())
        with location.writing(MARKER_NAME, content, is_sealed=False):
            pass
