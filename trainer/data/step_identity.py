"""The content of steps, by hashes: equal steps go through the model only once."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphcredit.store.images import image_bytes
from graphcredit.trainer.data.ragged import Ints, Ragged


def images_of(images: pa.ListArray, row: int, root: Path, where: str) -> tuple[bytes, ...]:
    """Return the images of a step, in the order of its prompt.

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
        if contents:
            each = b"".join(hashlib.sha256(content).digest() for content in contents)
            numbers[position] = int.from_bytes(hashlib.sha256(each).digest()[:8])
    return counts, numbers


def sequence_hashes(prompt: Ragged, response: Ragged, rows: Ints) -> NDArray[np.uint64]:
    """Return a hash of each step's prompt and response; equal ones have equal hashes."""
    # Where the response begins belongs to the sequence: its tokens are the ones that are scored.
    border = prompt.lengths.astype(np.uint64) * _factors(1)
    start = _sums(prompt, np.ones(len(prompt.lengths), np.int64))
    return (border + start + _sums(response, prompt.lengths + 1))[rows]


def _sums(lists: Ragged, first: Ints) -> NDArray[np.uint64]:
    """Return the hash of each list's values, where the first value has a given position."""
    shift = first - lists.starts[:-1]
    sums = _running_sums(lists.values, np.repeat(shift, lists.lengths))
    return sums[lists.starts[1:]] - sums[lists.starts[:-1]]


def _running_sums(values: NDArray[np.int32], shift: Ints) -> NDArray[np.uint64]:
    """Return [n + 1] the sum of the first values, each times the factor of its position.

    A difference of two sums is a hash that does not depend on earlier values.

    Args:
        values: [n] token ids.
        shift: [n] number to add to each value's place to get its position in its sequence.
    """
    position = np.arange(len(values)) + shift
    factors = _factors(int(position.max(initial=0)) + 1)
    terms = (values.astype(np.uint64) + np.uint64(1)) * factors[position]
    return np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))


def _factors(count: int) -> NDArray[np.uint64]:
    """Return odd random numbers, the same ones always."""
    random = np.random.default_rng(0).integers(0, 1 << 63, count, np.uint64)
    return random * np.uint64(2) + np.uint64(1)
