"""Read Inspect's `.eval` archives: a header, and samples that are one member or several."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from graphcredit.collector.importers.logs.files import (
    Record,
    RowError,
    is_mistake,
    parsed,
    too_long,
)

_ZSTD = 93
_HEADERS = ("header.json", "_journal/start.json")
_NUMBERED = re.compile(r"(\d{1,9})\.json")
_SHELL = re.compile(r"(samples/.+_epoch_\d+)/sample\.json")

MOST_REFERENCES = 100_000
"""Messages of a sample, counted each time that it refers to one."""


def samples_of(path: Path, limit: int) -> Iterator[Record]:
    """Yield the samples of an archive, each with the header of its evaluation."""
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        shells = {match[1]: name for name in names if (match := _SHELL.fullmatch(name))}
        whole = (n for n in names if n.startswith("samples/") and n.endswith(".json"))
        others = (n for n in whole if shells.keys().isdisjoint(map(str, Path(n).parents)))
        samples = sorted([*shells, *others])
        header_name = next((name for name in _HEADERS if name in packed.NameToInfo), None)
        header = _Members(packed, limit).value(header_name) if header_name is not None else {}
        for number, name in enumerate(samples, start=1):
            members = _Members(packed, limit)
            try:
                sample = _together(members, name, shells) if name in shells else members.value(name)
            except Exception as error:
                if is_mistake(error):
                    raise
                sample = RowError(f"the sample cannot be read: {error}")
            value = {"header": header, "sample": sample}
            yield Record(path=path, place=name, value=value, share=number / len(samples))


def _together(members: "_Members", sample: str, shells: dict[str, str]) -> dict[str, Any]:
    """Return a sample that is in several members."""
    shell = members.value(shells[sample])
    if not isinstance(shell, dict):
        raise ValueError("a sample must be a JSON object")
    shell = cast("dict[str, Any]", shell)
    messages, attachments = (members.sequence(sample, kind) for kind in ("messages", "attachments"))
    shell |= {
        "messages": list(_referenced(shell.get("message_refs", ()), messages)),
        "attachments": {str(number): text for number, text in enumerate(attachments)},
    }
    if f"{sample}/metadata.json" in members.packed.NameToInfo:
        shell["metadata"] = members.value(f"{sample}/metadata.json")
    return shell


class _Members:
    """Reads the members of one sample, which may have so many bytes together."""

    def __init__(self, packed: zipfile.ZipFile, limit: int) -> None:
        self.packed = packed
        self._limit = self._left = limit

    def value(self, name: str) -> Any:
        """Return the JSON value of a member; raises a ValueError if it is none, or too long."""
        content = self._content(self.packed.getinfo(name))
        self._left -= len(content)
        value = too_long(self._limit) if self._left < 0 else parsed(content)
        if isinstance(value, RowError):
            raise value
        return value

    def sequence(self, sample: str, kind: str) -> list[Any]:
        """Return the items of a sequence, whose members are named by their first index."""
        folder = f"{sample}/{kind}/"
        members = (n.removeprefix(folder) for n in self.packed.NameToInfo if n.startswith(folder))
        starts = {member: _NUMBERED.fullmatch(member) for member in members}
        items: list[Any] = []
        for _, name in sorted((int(match[1]), name) for name, match in starts.items() if match):
            value = self.value(f"{folder}{name}")
            if not isinstance(value, list):
                raise ValueError(f"{folder}{name} must be a list")
            items += cast("list[Any]", value)
        return items

    def _content(self, info: zipfile.ZipInfo) -> bytes:
        """Return the content of a member; Python's own reader cannot unpack zstd before 3.14."""
        if info.compress_type != _ZSTD:
            with self.packed.open(info) as member:
                return member.read(self._left + 1)
        file = cast("Any", self.packed.fp)
        file.seek(info.header_offset + 26)
        file.seek(sum(struct.unpack("<HH", file.read(4))), 1)
        packed = pa.BufferReader(file.read(info.compress_size))
        content = pa.CompressedInputStream(packed, "zstd").read(self._left + 1)
        if len(content) <= self._left and zlib.crc32(content) != info.CRC:
            raise zipfile.BadZipFile(f"the checksum of {info.filename} is wrong")
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
