"""Folders with a file for each event or call of one conversation."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from graphcredit.collector.importers.logs.files import Record, json_file


def with_folder(records: Iterator[Record], is_like: Callable[[object], bool]) -> Iterator[Record]:
    """Return the records of a file, or those of its folder for a file that has one of many.

    Args:
        records: The records of the file.
        is_like: Whether a value is such a record.

    Returns:
        For the first file of a folder the records of all, in order; for the others nothing.
    """
    begin = [record for _, record in zip(range(2), records, strict=False)]
    alone = len(begin) == 1 and begin[0].path.suffix == ".json" and is_like(begin[0].value)
    folder = begin[0].path.parent if begin else Path()
    found = _in_folder(folder, folder.stat().st_mtime_ns, is_like) if alone else ()
    if len(found) < 2:
        return _chained(begin, records)
    names = found if found[0] == begin[0].path.name else ()
    paths = (folder / name for name in names)
    return (replace(begin[0], path=path, value=json_file(path)) for path in paths)


def _chained(begin: list[Record], rest: Iterator[Record]) -> Iterator[Record]:
    yield from begin
    yield from rest


@lru_cache(maxsize=1)
def _in_folder(folder: Path, changed: int, is_like: Callable[[object], bool]) -> tuple[str, ...]:
    """Return the names of a folder's files that have such a record, by the numbers in them.

    When the folder was changed is for the cache alone.
    """
    names = [name for name in os.listdir(folder) if name.endswith(".json")]
    ordered = sorted(names, key=lambda name: ([int(n) for n in re.findall(r"\d+", name)], name))
    return tuple(name for name in ordered if is_like(json_file(folder / name)))
