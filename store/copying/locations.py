"""Locations of stores: folders of this machine, or of object storage by their address."""

import os
import posixpath
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from graphcredit.store.errors import (
    GraphcreditError,
    InputError,
    MissingDependencyError,
    system_errors,
)
from graphcredit.store.files.atomic import atomic_path
from graphcredit.store.files.digest import verify

_TAIL = 1 << 16
"""Bytes at the end of a file that are compared: they hold the digest of a sealed Parquet file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A folder."""

    name: str
    """As it was given, for messages."""
    system: Any
    """The file system of Arrow that it is in."""
    root: str
    """Its path in that file system."""
    folder: Path | None
    """Its path on this machine; None in object storage."""

    def sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes, by its path from the root; {} without a root.

        Folders of this machine may be links to another disk.
        """
        if self.folder is not None:
            with system_errors():
                return dict(_walk(self.folder))
        selector = fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        with self._errors("be listed"):
            files = self.system.get_file_info(selector)
        return {
            posixpath.relpath(info.path, self.root): info.size
            for info in files
            if info.type == fs.FileType.File
        }

    def tail(self, path: str) -> bytes:
        """Return the last bytes of a file."""
        with self._errors("be read", path), self.system.open_input_file(self._at(path)) as file:
            size = file.size()
            file.seek(max(0, size - _TAIL))
            return file.read()

    def read(self, path: str) -> pa.Buffer:
        """Return a file; one of this machine is mapped, not read."""
        if self.folder is not None:
            with pa.memory_map(str(self.folder / path)) as mapped:
                return mapped.read_buffer()
        with self._errors("be read", path), self.system.open_input_file(self._at(path)) as file:
            return file.read_buffer()

    def write(self, path: str, content: pa.Buffer, *, is_sealed: bool) -> None:
        """Write a file, which appears complete or not at all.

        Args:
            path: From the root.
            content: Its bytes.
            is_sealed: Whether it may have a digest, which a copy on this machine must match.
        """
        if self.folder is None:
            # An object is there once its stream is closed; it is one write, so none is cut short.
            with self._errors("be written", path):
                self.system.create_dir(posixpath.dirname(self._at(path)), recursive=True)
                with self.system.open_output_stream(self._at(path)) as stream:
                    stream.write(content)
            return
        with atomic_path(self.folder / path) as temporary:
            temporary.write_bytes(content)
            if is_sealed:
                verify(temporary)

    def _at(self, path: str) -> str:
        return posixpath.join(self.root, path)

    @contextmanager
    def _errors(self, what: str, path: str = "") -> Generator[None]:
        where = posixpath.join(self.name, path) if path else self.name
        with _errors(f"{where} must {what}"):
            yield


def _walk(root: Path) -> Iterator[tuple[str, int]]:
    for folder, _, names in os.walk(root, followlinks=True):
        for path in (Path(folder, name) for name in names):
            # Temporary files and locks come and go.
            if path.is_file():
                yield path.relative_to(root).as_posix(), path.stat().st_size


def open_location(name: str) -> Location:
    """Return a folder by its path, or by an address such as `s3://bucket/store`.

    Arrow reaches s3, gs, abfs and hdfs; others are those of fsspec, with the package of each.

    Raises:
        InputError: There is no such kind of address, or it cannot be reached.
        MissingDependencyError: The package for it is not installed.
    """
    scheme, mark, rest = name.partition("://")
    if not mark or scheme == "file":
        folder = Path(rest if mark else name).absolute()
        return Location(name=name, system=fs.LocalFileSystem(), root=str(folder), folder=folder)
    rule = f"{name} must be an address that Arrow or fsspec can reach"
    with _errors(rule):
        try:
            system, root = fs.FileSystem.from_uri(name)
        except pa.ArrowInvalid:
            system, root = _by_fsspec(name, scheme)
    return Location(name=name, system=system, root=root.rstrip("/"), folder=None)


def _by_fsspec(name: str, scheme: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs

        system, root = url_to_fs(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"addresses that begin with {scheme}:// need fsspec and its package for them, which "
            f"are not installed ({error}): pip install fsspec and that package"
        ) from error
    return fs.PyFileSystem(fs.FSSpecHandler(system)), root


@contextmanager
def _errors(rule: str) -> Generator[None]:
    """Turn an error of a file system into an InputError."""
    try:
        yield
    except GraphcreditError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{rule}: {reason}. Check the address and the credentials") from error
