"""Read Inspect's `.eval` archives: a header, and samples that are one member or several."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import pyarrow as pa

from graphcredit.collector.importers.logs.files import (
    MAX_RECORD_BYTES,
    Record,
    RowError,
    is_mistake,
    parsed,
    too_long,
)

_ZSTD = 93
_HEADERS = ("header.json", "_journal/start.json")
_NUMBERED = re.compile(r"(\d{1,9})\.json")
MOST_REFERENCES = 100_000
"""Messages of a sample, counted each time that it refers to one."""
_SHELL = re.compile(r"(samples/.+_epoch_\d+)/sample\.json")


class EvalArchive:
    """An open archive. Use it as a context manager."""

    def __init__(self, path: Path, limit: int = MAX_RECORD_BYTES) -> None:
        """Open an archive.

        Args:
            path: The archive.
            limit: Most bytes of a sample after decompression.

        Raises:
            zipfile.BadZipFile: It is none.
        """
        self._limit = self._left = limit
        self._file = path.open("rb")
        try:
            self._zip = zipfile.ZipFile(self._file)
        except BaseException:
            self._file.close()
            raise
        names = self._zip.namelist()
        self._shells = {match[1]: name for name in names if (match := _SHELL.fullmatch(name))}
        whole = (n for n in names if n.startswith("samples/") and n.endswith(".json"))
        others = (n for n in whole if self._shells.keys().isdisjoint(map(str, Path(n).parents)))
        self.samples: Sequence[str] = sorted([*self._shells, *others])
        """Names of the samples: of a member, or of a folder of members."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._zip.close()
        self._file.close()

    def header(self) -> Any:
        """Return what the evaluation says of itself; empty if it has no header yet.

        Raises:
            ValueError: It is no JSON, or too long.
            zipfile.BadZipFile: It is damaged.
        """
        self._left = self._limit
        name = next((name for name in _HEADERS if name in self._zip.NameToInfo), None)
        return {} if name is None else self._json(name)

    def sample(self, name: str) -> Any:
        """Return a sample; one in several members is put together.

        Raises:
            ValueError: It is no JSON of a sample, or too long.
            zipfile.BadZipFile: It is damaged.
        """
        self._left = self._limit
        if name not in self._shells:
            return self._json(name)
        shell = self._json(self._shells[name])
        if not isinstance(shell, dict):
            raise ValueError("a sample must be a JSON object")
        shell = cast("dict[str, Any]", shell)
        messages, attachments = (self._sequence(name, kind) for kind in ("messages", "attachments"))
        shell = {
            **shell,
            "messages": list(_referenced(shell.get("message_refs", ()), messages)),
            "attachments": {str(number): text for number, text in enumerate(attachments)},
        }
        if f"{name}/metadata.json" in self._zip.NameToInfo:
            shell["metadata"] = self._json(f"{name}/metadata.json")
        return shell

    def _sequence(self, sample: str, kind: str) -> list[Any]:
        """Return the items of a sequence, whose members are named by their first index."""
        folder = f"{sample}/{kind}/"
        members = (n.removeprefix(folder) for n in self._zip.NameToInfo if n.startswith(folder))
        starts = {member: _NUMBERED.fullmatch(member) for member in members}
        numbered = sorted((int(match[1]), name) for name, match in starts.items() if match)
        items: list[Any] = []
        for _, name in numbered:
            value = self._json(f"{folder}{name}")
            if not isinstance(value, list):
                raise ValueError(f"{folder}{name} must be a list")
            items += cast("list[Any]", value)
        return items

    def _json(self, name: str) -> Any:
        value = parsed(self._read(name))
        if isinstance(value, RowError):
            raise value
        return value

    def _read(self, name: str) -> bytes:
        """Return the content of a member; Python's own reader cannot unpack zstd before 3.14."""
        info = self._zip.getinfo(name)
        if info.compress_type == _ZSTD:
            self._file.seek(info.header_offset + 26)
            skipped = sum(struct.unpack("<HH", self._file.read(4)))
            self._file.seek(skipped, 1)
            packed = pa.BufferReader(self._file.read(info.compress_size))
            content = pa.CompressedInputStream(packed, "zstd").read(self._left + 1)
            is_whole = len(content) > self._left or zlib.crc32(content) == info.CRC
            if not is_whole:
                raise zipfile.BadZipFile(f"the checksum of {name} is wrong")
        else:
            with self._zip.open(info) as member:
                content = member.read(self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise too_long(self._limit)
        return content


def _referenced(references: Any, messages: Sequence[Any]) -> Iterator[Any]:
    """Yield the messages of each range `[first, end]`, `MOST_REFERENCES` at most."""
    number = 0
    for reference in cast("list[Any]", references) if isinstance(references, list) else ():
        match reference:
            case [int(first), int(end)] if first >= 0:
                number += max(0, min(end, len(messages)) - first)
                if number > MOST_REFERENCES:
                    raise RowError(
                        f"a sample must refer to at most {MOST_REFERENCES:,} messages: this one "
                        "refers to more"
                    )
                yield from messages[first:end]
            case _:
                raise ValueError(f"message_refs must be pairs of numbers: found {reference!r}")


def samples_of(path: Path, limit: int) -> Iterator[Record]:
    """Yield the samples of an Inspect archive, each with the header of its evaluation."""
    with EvalArchive(path, limit) as archive:
        header = archive.header()
        for number, name in enumerate(archive.samples, start=1):
            value = {"header": header, "sample": _sample(archive, name)}
            share = number / len(archive.samples)
            yield Record(path=path, place=name, value=value, share=share)


def _sample(archive: EvalArchive, name: str) -> Any:
    try:
        return archive.sample(name)
    except Exception as error:
        if is_mistake(error):
            raise
        return RowError(f"the sample cannot be read: {error}")
