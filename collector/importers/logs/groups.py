"""Records of a file by the rollout that they are of, on disk: a file may be larger than memory."""

import os
import pickle
import weakref
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

from graphcredit.collector.importers.logs.files import Record, RowError

_MOST_SHARED = 300_000
"""Objects that are remembered so that equal ones are written once; about 250 bytes each."""

_DEPTH = 5
"""Objects and lists around a list whose items are shared."""

_FEW = 2
"""A list of more objects has shared items: messages, definitions of tools."""

_REFERENCE_BYTES = 8
_NESTED = frozenset({dict, list})

_Span = tuple[int, int]
"""Offset and length."""
_Path = tuple[str | int, ...]


class RecordGroups:
    """Records that are added one by one, and given back group by group.

    Calls of a model have the messages of the calls before again. The objects in a record's lists
    are therefore written once, and equal ones that are given back together are one object.
    """

    def __init__(self, limit: int) -> None:
        """Begin without records.

        Args:
            limit: Most bytes of the records that are given back together.
        """
        self._limit = limit
        self._file: Any = None
        self._end = 0
        self._spans: dict[Hashable, array[int]] = {}
        """Name of a group to the offset, the length and the mark of each of its records."""
        self._shared: dict[bytes, _Span] = {}
        """Digest of an object to where it is."""
        self._paths: dict[Path, int] = {}
        self.refused: list[Record] = []
        """Records that cannot be kept, and why."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the names of the groups, in the order of their first records."""
        return iter(self._spans)

    def add(self, name: Hashable, record: Record, mark: int = 0) -> None:
        """Keep a record of a group, with a number that `marks` tells without reading it."""
        lists: dict[_Path, list[Any]] = {}
        try:
            rest = _without_lists([record.value], (), lists)
            shared = {path: [self._share(item) for item in each] for path, each in lists.items()}
            number = self._paths.setdefault(record.path, len(self._paths))
            text = pickle.dumps((number, record.place, record.share, rest, shared), 5)
        except RecursionError:
            self.refused.append(_refused(record, RowError("it must be nested less deep")))
        else:
            self._spans.setdefault(name, array("q")).extend((*self._write(text), mark))

    def marks(self, name: Hashable) -> "array[int]":
        """Return the marks of the records of a group."""
        return self._spans[name][2::3]

    def _share(self, item: object) -> _Span:
        """Return where an object is, which is written if it is new."""
        text = pickle.dumps(item, 5)
        digest = blake2b(text, digest_size=16).digest()
        span = self._shared.pop(digest, None) or self._write(text)
        self._shared[digest] = span  # the last one: what was not met for long is forgotten
        if len(self._shared) > _MOST_SHARED:
            del self._shared[next(iter(self._shared))]
        return span

    def _write(self, text: bytes) -> _Span:
        if self._file is None:
            self._file = TemporaryFile(prefix="graphcredit-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        self._file.write(text)
        self._end += len(text)
        return self._end - len(text), len(text)

    def of(self, *names: Hashable) -> list[Record]:
        """Return the records of some groups together, in their order."""
        of_each = (self._spans[name] for name in names)
        spans = (span for each in of_each for span in zip(each[::3], each[1::3], strict=True))
        return self._read(sorted(spans))

    def made(
        self,
        make: Callable[[Any, list[Record]], Iterable[Record]],
        together: Mapping[Any, Sequence[Hashable]] | None = None,
        places: Mapping[Any, str] | None = None,
    ) -> Iterator[Record]:
        """Yield what is made of each rollout, and records that say which cannot be kept or read.

        Args:
            make: Returns the records for a rollout, given its name and its records.
            together: Names of rollouts, to the groups that are one each; by default each group.
            places: Where a rollout is, for one that is too large; by default its first record.
        """
        yield from self.refused
        for name, of_one in (together or {name: (name,) for name in self}).items():
            try:
                records = self.of(*of_one)
            except TooLargeError as error:
                yield error.record(places[name] if places else "")
            else:
                yield from make(name, records)

    def at(self, name: Hashable, numbers: Iterable[int]) -> list[Record]:
        """Return some records of a group, by their numbers in it."""
        spans = self._spans[name]
        return self._read([(spans[3 * n], spans[3 * n + 1]) for n in numbers])

    def _read(self, spans: list[_Span]) -> list[Record]:
        self._file.flush()
        paths, known, num_bytes = list(self._paths), dict[_Span, Any](), 0
        records: list[Record] = []
        for span in spans:
            number, place, share, rest, lists = self._value(span)
            for path, items in cast("dict[_Path, list[_Span]]", lists).items():
                new = dict.fromkeys(item for item in items if item not in known)
                num_bytes += sum(length for _, length in new) + _REFERENCE_BYTES * len(items)
                if num_bytes <= self._limit:
                    known.update((item, self._value(item)) for item in new)
                _put(rest, path, [known.get(item) for item in items])
            num_bytes += span[1]
            record = Record(path=paths[number], place=place, value=rest[0], share=share)
            if num_bytes > self._limit:
                raise TooLargeError(self._limit, records[0] if records else record)
            records.append(record)
        return records

    def _value(self, span: _Span) -> Any:
        offset, length = span
        return pickle.loads(os.pread(self._file.fileno(), length, offset))


class TooLargeError(RowError):
    """The records of a rollout have too many bytes together."""

    def __init__(self, limit: int, first: Record) -> None:
        """Say how many are allowed; the first record tells where they are."""
        super().__init__(
            f"the records of a rollout must have at most {limit / 2**20:g} MiB together: these "
            "have more. --max-record MIB allows more, and takes more memory"
        )
        self.first = first

    def record(self, name: str = "") -> Record:
        """Return what stands for the rollout."""
        return _refused(self.first, self, name)


def as_one(
    records: Iterator[Record], limit: int, is_part: Callable[[object], bool], name: str
) -> Iterator[Record]:
    """Yield records as they are, then one whose field has those that are parts of one rollout."""
    groups = RecordGroups(limit)
    for record in records:
        if isinstance(record.value, RowError) or not is_part(record.value):
            yield record
        else:
            groups.add(name, record)
    yield from groups.made(lambda _, parts: [_whole(parts, name)])


def _whole(parts: Sequence[Record], name: str) -> Record:
    value = {name: [part.value for part in parts]}
    return Record(path=parts[0].path, place="", value=value, share=parts[-1].share)


def _refused(record: Record, error: RowError, place: str = "") -> Record:
    return Record(path=record.path, place=place or record.place, value=error, share=record.share)


def _without_lists(value: Any, path: _Path, lists: dict[_Path, list[Any]]) -> Any:
    """Return a value with null in place of lists of several objects, and put these apart."""
    if type(value) is dict and len(path) < _DEPTH:
        pairs = cast("dict[str, Any]", value).items()
        return {
            name: _without_lists(item, (*path, name), lists) if type(item) in _NESTED else item
            for name, item in pairs
        }
    if type(value) is list and len(path) < _DEPTH:
        items = cast("list[Any]", value)
        if len(items) <= _FEW:
            return [_without_lists(item, (*path, n), lists) for n, item in enumerate(items)]
        if type(items[0]) is dict and all(type(item) is dict for item in items):
            lists[path] = items
            return None
    return value


def _put(value: Any, path: _Path, items: list[Any]) -> None:
    for name in path[:-1]:
        value = value[name]
    value[path[-1]] = items
