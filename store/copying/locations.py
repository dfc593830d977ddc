"""Locations of stores: folders of this machine, or of object storage by their address."""

import posixpath
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
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
from graphcredit.store.files.atomic import TEMPORARY_SUFFIX, atomic_path
from graphcredit.store.files.digest import TAIL, stated_digest, verify
from graphcredit.store.tree import walk_tree

_CHUNK = 4 << 20
"""Bytes of a file that are compared at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """What is below a folder."""

    sizes: Mapping[str, int]
    """Bytes of each regular file, by its path from the folder."""
    links: Sequence[str]
    """Symbolic links: neither they nor what is behind them is in `sizes`."""


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

    def files(self) -> Listing:
        """Return the files below the root; none where there is no root."""
        if self.folder is not None:
            with system_errors():
                return _local_files(self.folder)
        selector = fs.FileSelector(self.root, recursive=True, allow_not_found=True)
        with self._errors("be listed"):
            files = self.system.get_file_info(selector)
        sizes = {
            posixpath.relpath(info.path, self.root): info.size
            for info in files
            if info.type == fs.FileType.File
        }
        return Listing(sizes=sizes, links=())

    def has_equal(self, other: "Location", path: str) -> bool:
        """Return whether two files of one size are equal: by their digests, else by content."""
        with self._open(path) as one, other._open(path) as two:
            size = one.size()
            start = max(0, size - TAIL)
            tails = [_read(file, start, TAIL) for file in (one, two)]
            if tails[0] != tails[1]:
                return False
            return stated_digest(tails[0], size) is not None or all(
                _read(one, at, _CHUNK) == _read(two, at, _CHUNK) for at in range(0, start, _CHUNK)
            )

    def read(self, path: str) -> pa.Buffer:
        """Return a file; one of this machine is mapped, not read."""
        if self.folder is not None:
            with pa.memory_map(str(self.folder / path)) as mapped:
                return mapped.read_buffer()
        with self._open(path) as file:
            return file.read_buffer()

    def write(self, path: str, content: pa.Buffer, *, is_sealed: bool) -> None:
        """Write a file under a temporary name; it gets its own when it is whole.

        Args:
            path: From the root.
            content: Its bytes.
            is_sealed: Whether it may have a digest, which a copy on this machine must match.
        """
        if self.folder is not None:
            with atomic_path(self.folder / path) as temporary:
                temporary.write_bytes(content)
                if is_sealed:
                    verify(temporary)
            return
        # A second copy of the same content writes the same temporary file, so none piles up.
        temporary = self._at(f"{path}.{sha256(content).hexdigest()[:8]}{TEMPORARY_SUFFIX}")
        with self._errors("be written", path):
            self.system.create_dir(posixpath.dirname(temporary), recursive=True)
            with self.system.open_output_stream(temporary) as stream:
                stream.write(content)
            self.system.move(temporary, self._at(path))

    def _open(self, path: str) -> Any:
        with self._errors("be read", path):
            return self.system.open_input_file(self._at(path))

    def _at(self, path: str) -> str:
        return posixpath.join(self.root, path)

    @contextmanager
    def _errors(self, what: str, path: str = "") -> Generator[None]:
        where = posixpath.join(self.name, path) if path else self.name
        with _errors(f"{where} must {what}"):
            yield


def _local_files(root: Path) -> Listing:
    """Return the files of a folder that are in it and in no linked folder."""
    if not root.exists():
        return Listing(sizes={}, links=())
    tree = walk_tree(root)
    sizes: dict[str, int] = {}
    for path in tree.real_files():
        # Temporary files and locks come and go.
        with suppress(FileNotFoundError):
            sizes[path] = (root / path).stat().st_size
    return Listing(sizes=sizes, links=tuple(sorted(tree.links)))


def _read(file: Any, start: int, length: int) -> bytes:
    file.seek(start)
    return file.read(length)


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
