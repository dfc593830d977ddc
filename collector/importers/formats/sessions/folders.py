"""Folders with a file for each event or call of one conversation."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.logs.files import Record, json_file


def with_folder(
    records: Iterator[Record], is_like: Callable[[object], bool]
) -> Iterator[Record] | list[Record]:
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
    if found[0][0] != begin[0].path.name:
        return []
    return [replace(begin[0], path=folder / name, value=value) for name, value in found]


def _chained(begin: list[Record], rest: Iterator[Record]) -> Iterator[Record]:
    yield from begin
    yield from rest


@lru_cache(maxsize=1)
def _in_folder(
    folder: Path, changed: int, is_like: Callable[[object], bool]
) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return the files of a folder that have such a record, by the numbers in their names.

    When the folder was changed is for the cache alone.
    """
    names = [name for name in os.listdir(folder) if name.endswith(".json")]
    ordered = sorted(names, key=lambda name: ([int(n) for n in re.findall(r"\d+", name)], name))
    values = ((name, json_file(folder / name)) for name in ordered)
    return tuple((name, value) for name, value in values if is_like(value))
