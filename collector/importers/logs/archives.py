"""Read Inspect's `.eval` archives: a header, and samples that are one member or several."""

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from graphcredit.collector.importers.logs.files import Record, RowError, broken

_ZSTD = 93
_HEADERS = ("header.json", "_journal/start.json")
_SHELL = re.compile(r"(samples/.+_epoch_\d+)/sample\.json")


class EvalArchive:
    """An open archive. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        """Open an archive.

        Raises:
            zipfile.BadZipFile: It is none.
        """
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
            ValueError: It is no JSON.
            zipfile.BadZipFile: It is damaged.
        """
        name = next((name for name in _HEADERS if name in self._zip.NameToInfo), None)
        return {} if name is None else json.loads(self._read(name))

    def sample(self, name: str) -> Any:
        """Return a sample; one in several members is put together.

        Raises:
            ValueError: It is no JSON.
            zipfile.BadZipFile: It is damaged.
        """
        if name not in self._shells:
            return json.loads(self._read(name))
        shell = json.loads(self._read(self._shells[name]))
        messages = self._sequence(name, "messages")
        attachments = self._sequence(name, "attachments")
        shell["messages"] = [
            message
            for first, end in shell.get("message_refs", ())
            for message in messages[first:end]
        ]
        shell["attachments"] = {str(number): text for number, text in enumerate(attachments)}
        if f"{name}/metadata.json" in self._zip.NameToInfo:
            shell["metadata"] = json.loads(self._read(f"{name}/metadata.json"))
        return shell

    def _sequence(self, sample: str, kind: str) -> list[Any]:
        """Return the items of a sequence, whose members are named by their first index."""
        folder = f"{sample}/{kind}/"
        members = (n.removeprefix(folder) for n in self._zip.NameToInfo if n.startswith(folder))
        starts = sorted(int(m.removesuffix(".json")) for m in members if m[:1].isdecimal())
        return [item for at in starts for item in json.loads(self._read(f"{folder}{at}.json"))]

    def _read(self, name: str) -> bytes:
        """Return the content of a member; Python's own reader cannot unpack zstd before 3.14."""
        info = self._zip.getinfo(name)
        if info.compress_type != _ZSTD:
            return self._zip.read(info)
        self._file.seek(info.header_offset + 26)
        skipped = sum(struct.unpack("<HH", self._file.read(4)))
        self._file.seek(skipped, 1)
        packed = self._file.read(info.compress_size)
        content = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()
        if zlib.crc32(content) != info.CRC:
            raise zipfile.BadZipFile(f"the checksum of {name} is wrong")
        return content


def samples_of(path: Path) -> Iterator[Record]:
    """Yield the samples of an Inspect archive, each with the header of its evaluation."""
    try:
        with EvalArchive(path) as archive:
            header = archive.header()
            for number, name in enumerate(archive.samples, start=1):
                value = {"header": header, "sample": _sample(archive, name)}
                share = number / len(archive.samples)
                yield Record(path=path, place=name, value=value, share=share)
    except (ValueError, zipfile.BadZipFile, OSError) as error:
        yield broken(path, "", error)


def _sample(archive: EvalArchive, name: str) -> Any:
    try:
        return archive.sample(name)
    except (ValueError, RecursionError, NotImplementedError, zipfile.BadZipFile, OSError) as error:
        return RowError(f"the sample cannot be read: {error}")
