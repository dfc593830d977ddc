"""The safetensors of a model on disk, of which a process reads its own rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor
from torch.distributed.tensor import DTensor

_INDEX = "model.safetensors.index.json"
_ALONE = "model.safetensors"

Box = tuple[slice, ...]
"""The indices of a part of a tensor, in each of its dimensions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorBlock:
    """A tensor on disk, and where it lies in a tensor in memory."""

    name: str
    """On disk."""
    start: tuple[int, ...]
    """Its first index in each dimension of the tensor in memory."""
    sizes: tuple[int, ...]
    """Its size in each of them: 1 in the first ones, if it has fewer dimensions on disk."""


class WeightFiles:
    """The tensors that transformers would load from a directory: their names, shapes and files."""

    def __init__(self, directory: Path):
        """Read the headers of the files; errors are those of json and safetensors."""
        self._files: dict[str, Path] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        for path in _paths(directory):
            with safe_open(path, "pt") as file:
                for name in file.keys():  # noqa: SIM118
                    self._files[name] = path
                    self._shapes[name] = tuple(file.get_slice(name).get_shape())

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Name on disk to shape on disk."""
        return self._shapes

    def read(self, pieces: Iterable[TensorBlock], into: Tensor) -> None:
        """Fill a tensor in its own type, of a DTensor the local rows.

        Args:
            pieces: Those that make up the tensor.
            into: Of the whole shape. Pieces without a row of this process are not read.
        """
        start, local = _own_part(into)
        for piece in pieces:
            box = _overlap(piece.start, piece.sizes, start, local.shape)
            if box is None:
                continue
            num_added = local.dim() - len(self._shapes[piece.name])
            rows = _seen_from(piece.start, box)[num_added:]
            # Opened anew for each, because pages of a mapped file that were read stay in memory.
            with safe_open(self._files[piece.name], "pt") as file:
                read_rows(file.get_slice(piece.name), rows, local[_seen_from(start, box)])


def read_rows(stored: Any, rows: Box, into: Tensor) -> None:
    """Fill a tensor from some rows of a slice of safetensors."""
    into.copy_(stored[rows])


def _own_part(tensor: Tensor) -> tuple[Sequence[int], Tensor]:
    """Return where the rows of a tensor begin that this process has, and these rows."""
    if not isinstance(tensor, DTensor):
        return (0,) * tensor.dim(), tensor
    (mine,) = tensor.__create_chunk_list__()
    return mine.offsets, tensor.to_local()


def _overlap(
    start: Sequence[int], sizes: Sequence[int], other: Sequence[int], other_sizes: Sequence[int]
) -> Box | None:
    """Return what two boxes have in common; None if nothing."""
    box = tuple(
        slice(max(a, b), min(a + n, b + m))
        for a, n, b, m in zip(start, sizes, other, other_sizes, strict=True)
    )
    return box if all(each.start < each.stop for each in box) else None


def _seen_from(start: Sequence[int], box: Box) -> Box:
    """Return a box by the indices of a part of a tensor that begins somewhere."""
    return tuple(
        slice(each.start - first, each.stop - first) for each, first in zip(box, start, strict=True)
    )


def _paths(directory: Path) -> list[Path]:
    """Return the files that transformers would load."""
    if (directory / _ALONE).is_file():
        return [directory / _ALONE]
    if not (directory / _INDEX).is_file():
        return []
    listed = json.loads((directory / _INDEX).read_text(encoding="utf-8"))["weight_map"]
    return [directory / name for name in sorted({*listed.values()})]
