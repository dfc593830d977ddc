"""The images of a step: bytes in the log, or the path of a file in the store's folder `images/`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphcredit.store.errors import InputError

IMAGE_PATH = r"images(/[^/\\\x00]+)+"
"""Regular expression that a path matches as a whole: relative to the store, within `images/`."""

IMAGE_PATH_ESCAPES = r"/\.\.?/"
"""Regular expression that a path with a slash after it must not match anywhere."""


def is_image_path(path: str) -> bool:
    """Return whether a text may be the path of an image."""
    is_within = re.fullmatch(IMAGE_PATH, path) is not None
    return is_within and re.search(IMAGE_PATH_ESCAPES, f"{path}/") is None


def image_bytes(root: Path, image: Mapping[str, Any], where: str) -> bytes:
    """Return the content of a logged image.

    Args:
        root: Root of the step's store.
        image: Its `bytes` and `path`, one of which is there.
        where: File and row of the step, for messages.

    Raises:
        InputError: The image has neither or both, its path leads out of `images/`, or there is no
            such file.
    """
    content: bytes | None = image.get("bytes")
    path: str | None = image.get("path")
    if (content is None) == (path is None):
        raise InputError(
            f"an image must have either bytes or a path: {where} has one with "
            + ("neither" if path is None else "both")
        )
    return content if content is not None else _file(root, path or "", where)


def _file(root: Path, path: str, where: str) -> bytes:
    if not is_image_path(path):
        raise InputError(
            f"the path of an image must be relative to the store and lie in its folder images/, "
            f"without . and ..: {where} has {path!r}"
        )
    try:
        return (root / path).read_bytes()
    except OSError as error:
        raise InputError(
            f"every image of a step must be there: {where} names {path}, and {root / path} cannot "
            f"be read: {error.strerror}. Bring the file back; `graphcredit check STORE` names all "
            "that are missing"
        ) from error
