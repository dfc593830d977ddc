"""Image files beside a log, and images that are kept.

A log is foreign: it must not choose what is read. Only files within the folder that the user named
are read, whatever links and `..` say, and of these only what is an ordinary file and not hidden.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcredit.collector.importers.images.image_types import (
    BROKEN,
    MISSING,
    MOST_BYTES,
    NOT_FOLLOWED,
    ImageError,
    image_type,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageFolder:
    """Where the images of a log may be."""

    root: Path
    """No file outside is read."""
    base: Path
    """Relative paths are relative to it: the folder of the file that names them."""

    def find(self, name: str) -> Path:
        """Return the file of a path that a log has, without links in it."""
        root = self.root.resolve()
        if "\0" in name:
            raise ImageError(NOT_FOLLOWED, f"a path must have no null character: {name!r}")
        named = Path(os.path.normpath(self.base.absolute() / name))
        # A path that leads out by its text is not even looked up.
        if not any(map(named.is_relative_to, (root, self.root.absolute()))):
            raise _outside(name, root)
        try:
            path = named.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise ImageError(MISSING, f"{name} cannot be found: {_reason(error)}") from None
        if not path.is_relative_to(root):
            raise _outside(name, root)
        if any(part.startswith(".") for part in path.relative_to(root).parts):
            raise ImageError(NOT_FOLLOWED, f"{name} must not be hidden: hidden files are not read")
        return path


def _outside(name: str, root: Path) -> ImageError:
    return ImageError(
        NOT_FOLLOWED,
        f"{name} must lie within {root}: no other file is read. Put the images beside the log, or "
        "import a folder that has both",
    )


def read_file(path: Path) -> bytes:
    """Return the content of a file that `find` returned."""
    try:
        # No link that was put there since, and without waiting for a pipe.
        flags = os.O_NOFOLLOW | os.O_NONBLOCK
        with open(path, "rb", opener=lambda name, own: os.open(name, own | flags)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ImageError(NOT_FOLLOWED, f"{path} must be an ordinary file")
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ImageError(MISSING, f"{path} cannot be read: {_reason(error)}") from None
    if len(content) > MOST_BYTES:
        raise ImageError(BROKEN, f"{path} must have at most {MOST_BYTES >> 20} MiB")
    return content


def _reason(error: Exception) -> str:
    return error.strerror or "" if isinstance(error, OSError) else str(error)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptImage:
    """An image that a message shows."""

    path: str
    """Where it is in the store: two images have one path if they are equal."""
    content: bytes | Path
    """The content, or its file beside the log, so that a long log holds few images."""

    @property
    def mark(self) -> str:
        """Return what stands for the image in a text."""
        return f"[image {Path(self.path).stem[:12]}]"

    def read(self) -> bytes:
        """Return the content."""
        if isinstance(self.content, bytes):
            return self.content
        content = read_file(self.content)
        if path_of(content) != self.path:
            raise ImageError(BROKEN, f"{self.content} has changed while it was imported")
        return content

    def as_logged(self) -> Mapping[str, Any]:
        """Return it as the column `images` has it."""
        return {"bytes": None, "path": self.path}


def path_of(content: bytes) -> str:
    """Return where an image is in the store, if it is one."""
    suffix, digest = image_type(content), hashlib.sha256(content).hexdigest()
    return f"images/{digest[:2]}/{digest}.{suffix}"
