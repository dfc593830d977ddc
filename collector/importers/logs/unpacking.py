"""Unpack tar and zip archives of logs into a folder that is removed afterwards."""

import errno
import lzma
import shutil
import tarfile
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

from graphcredit.collector.importers.logs.files import ARCHIVES, SUFFIXES, decompressed, kind_of
from graphcredit.store.plural import counted

_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")

_SPARE_BYTES = 1 << 30
"""Bytes of the disk that unpacking leaves free."""

_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, RuntimeError)
"""What the readers of archives raise; a RuntimeError of a password."""


_Member = tuple[str, int, Callable[[], object] | str]


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive of others, by its name."""
    return path.name.lower().endswith(ARCHIVES)


class UnpackedArchives:
    """Archives in a folder of their own, which is removed with this object."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="graphcredit-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._number = 0
        self._archives: dict[str, str] = {}
        """Folders of archives to their paths."""

    def shown(self, text: str) -> str:
        """Return a message that names archives instead of the folders that have their files."""
        if str(self._folder) in text:
            for folder, archive in self._archives.items():
                text = text.replace(folder, archive)
        return text

    def add(self, archive: Path) -> tuple[Path, OSError | None]:
        """Unpack an archive.

        Returns:
            The folder with its logs and images, and why not all of them are there.
        """
        self._number += 1
        folder = self._folder / str(self._number) / archive.name
        folder.mkdir(parents=True)
        self._archives[str(folder)] = str(archive)
        refused: list[str] = []
        names: set[str] = set()
        try:
            for name, size, unpack in _members(archive, folder):
                if name in names:
                    refused.append(
                        f"{name!r} is there several times, and only the last one is read"
                    )
                names.add(name)
                if isinstance(unpack, str):
                    refused.append(f"{name!r} {unpack}")
                    continue
                if size > shutil.disk_usage(folder).free - _SPARE_BYTES:
                    raise OSError(errno.ENOSPC, "no space left to unpack it", str(archive))
                try:
                    unpack()
                except (tarfile.FilterError, RuntimeError, OSError) as error:
                    if getattr(error, "errno", None) == errno.ENOSPC:
                        raise
                    refused.append(_in_line(error))
        except (*_DAMAGE, OSError) as error:
            reason = f"it cannot be unpacked to its end: {_in_line(error)}"
            return folder, OSError(errno.EINVAL, reason, str(archive))
        if refused:
            reason = f"{counted(len(refused), 'member')} cannot be unpacked: {refused[0][:_SHOWN]}"
            return folder, OSError(errno.EINVAL, reason, str(archive))
        return folder, None


def _in_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_SHOWN]


_SHOWN = 200
"""Characters of a reason."""

_NO_FILE = "must be a file: it is a link, a pipe or a device"
_NESTED = "must be unpacked before: it is an archive in an archive"


def _members(archive: Path, folder: Path) -> Iterator[_Member]:
    """Yield the name and the size of each log and image, and what unpacks it or why not."""
    if archive.suffix.lower() == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                name = info.filename
                if not info.is_dir() and _is_wanted(name):
                    unpack = _NESTED if _is_nested(name) else partial(packed.extract, info, folder)
                    yield name, info.file_size, unpack
        return
    with (
        archive.open("rb") as raw,
        tarfile.open(fileobj=decompressed(raw, archive), mode="r|*") as packed,
    ):
        for member in packed:
            name = member.name
            if member.isdir() or not _is_wanted(name):
                continue
            unpack = partial(packed.extract, member, folder, filter="data")
            reason = _NESTED if _is_nested(name) else "" if member.isfile() else _NO_FILE
            yield name, member.size, reason or unpack


def _is_nested(name: str) -> bool:
    return name.lower().endswith(ARCHIVES)


def _is_wanted(name: str) -> bool:
    path = Path(name)
    return _is_nested(name) or kind_of(path) in SUFFIXES or path.suffix.lower() in _IMAGES
