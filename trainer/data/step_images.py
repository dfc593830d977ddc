"""The images of steps: read from a log or its store, and recognised by their content."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.store.images import image_bytes
from graphcredit.trainer.data.ragged import Ints


def images_of(images: pa.ListArray, row: int, root: Path, where: str) -> tuple[bytes, ...]:
    """Return the images of a step, in the order of its prompt.

    Args:
        images: Column of the steps.
        row: The step's.
        root: Root of the store.
        where: File and row of the step, for messages.

    Raises:
        InputError: A file is missing, or an image is neither bytes nor a path.
    """
    return tuple(image_bytes(root, image or {}, where) for image in images[row].as_py() or ())


def digests(
    images: pa.ListArray | None, rows: Ints, root: Path, path: Path, first_row: int
) -> tuple[Ints, NDArray[np.uint64]]:
    """Return how many images each of k steps has, and a number for their content: 0 for none.

    Args:
        images: Column of the steps; None if it has no image.
        rows: [k] the steps.
        root: Root of the store.
        path: The step shard, for messages.
        first_row: Row of the shard where the column starts.

    Raises:
        InputError: As `images_of`.
    """
    counts, numbers = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint64)
    if images is None:
        return counts, numbers
    for position, row in enumerate(rows.tolist()):
        contents = images_of(images, row, root, f"{path}, row {first_row + row}")
        counts[position] = len(contents)
        numbers[position] = _number(contents)
    return counts, numbers


def _number(contents: tuple[bytes, ...]) -> int:
    if not contents:
        return 0
    each = b"".join(hashlib.sha256(content).digest() for content in contents)
    return int.from_bytes(hashlib.sha256(each).digest()[:8])
