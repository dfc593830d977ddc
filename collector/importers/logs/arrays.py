"""Read arrays of steps: NumPy's `.npz`, and HDF5 as D4RL, robomimic and Minari write it."""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from graphcredit.collector.importers.logs.files import Record, RowError, kind_of, too_long
from graphcredit.store.extras import how_to_install

HDF5 = (".hdf5", ".h5")
ARRAYS = (".npz", *HDF5)

_ROWS = 1024
"""Steps that are read at a time."""

_MOST_BYTES = 4 << 30
"""Of the arrays of an `.npz` file, which are in memory together."""

_MOST_TEXT = 200
"""Characters of what is said of an episode; a model of its world may stand there, too."""

Group = Mapping[str, Any]
"""Arrays and groups by name."""


def records_of_arrays(path: Path, limit: int) -> Iterator[Record]:
    """Yield a record for each episode, or for each step where the arrays have many episodes.

    Args:
        path: The file.
        limit: Most bytes of the arrays of an episode.
    """
    with _opened(path) as root:
        groups = list(_groups(root, ""))
        if not groups:
            raise RowError("it must have arrays of steps: two of one length, as actions, rewards")
        for number, (name, group) in enumerate(groups, start=1):
            length, most = _lengths(group)
            if name or most > length:
                episode = _episode(group, limit)
                value = episode and {"trajectory_id": name.rpartition("/")[2], **episode}
                share = number / len(groups)
                yield Record(path=path, place=name, value=value or too_long(limit), share=share)
            else:
                yield from _steps(path, group, length)


@contextmanager
def _opened(path: Path) -> Generator[Group]:
    if kind_of(path) not in HDF5:
        with ZipFile(path) as parts:
            if sum(part.file_size for part in parts.infolist()) > _MOST_BYTES:
                raise RowError(f"its arrays must have at most {_MOST_BYTES >> 30} GiB")
        with path.open("rb") as raw, NpzFile(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        yield arrays
        return
    try:
        h5py: Any = import_module("h5py")
    except ImportError:
        raise RowError(f"it is HDF5, which h5py reads: {how_to_install('arrays')}") from None
    with h5py.File(path, "r") as file:
        yield file


def _groups(group: Group, name: str) -> Iterator[tuple[str, Group]]:
    """Yield the groups with arrays of steps that are not in one another, in natural order."""
    if _lengths(group)[0]:
        yield name, group
        return
    for key in sorted(group, key=lambda key: (len(key), key)):
        if isinstance(group[key], Mapping):
            yield from _groups(group[key], f"{name}/{key}".lstrip("/"))


def _lengths(group: Group) -> tuple[int, int]:
    """Return the length that most arrays of numbers have, and the most; 0 if no two have one."""
    found = Counter(
        item.shape[0]
        for item in map(group.__getitem__, group)
        if not isinstance(item, Mapping) and item.shape and item.dtype.kind in "biuf"
    )
    length, count = max(found.items(), key=lambda each: each[1], default=(0, 0))
    return (length, max(found)) if count > 1 else (0, 0)


def _episode(group: Group, limit: int) -> dict[str, Any] | None:
    """Return the values of an episode, and what is said of it; None if they are too many."""
    if _num_bytes(group) > limit:
        return None
    said = {name: _plain(value) for name, value in getattr(group, "attrs", {}).items()}
    kept = {
        name: value
        for name, value in said.items()
        if isinstance(value, int | float | str) and len(str(value)) <= _MOST_TEXT
    }
    return {**kept, **{name: _values(group[name], slice(None)) for name in group}}


def _steps(path: Path, group: Group, length: int) -> Iterator[Record]:
    """Yield a record for each step of arrays of one length; others are no arrays of steps."""
    names = [name for name in group if _length(group[name]) == length]
    for start in range(0, length, _ROWS):
        columns = [_values(group[name], slice(start, start + _ROWS)) for name in names]
        for number, row in enumerate(zip(*columns, strict=True), start=start + 1):
            value, place = dict(zip(names, row, strict=True)), f"row {number}"
            yield Record(path=path, place=place, value=value, share=number / length)


def _values(item: Any, rows: slice) -> Any:
    """Return rows of an array, or of all arrays of a group: an object for each row."""
    if not isinstance(item, Mapping):
        return _plain(item[rows] if item.shape else item[()])
    columns = {str(name): _values(inner, rows) for name, inner in cast("Group", item).items()}
    lengths = {len(column) if isinstance(column, list) else -1 for column in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        return columns
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    """Return a value of NumPy as JSON has it."""
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[object]", value)]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return _plain(value.tolist()) if isinstance(value, np.ndarray | np.generic) else value


def _length(item: Any) -> int:
    if isinstance(item, Mapping):
        lengths = {_length(inner) for inner in cast("Group", item).values()}
        return lengths.pop() if len(lengths) == 1 else -1
    return item.shape[0] if item.shape else -1


def _num_bytes(item: Any) -> int:
    if isinstance(item, Mapping):
        return sum(map(_num_bytes, cast("Group", item).values()))
    return item.size * item.dtype.itemsize
