"""The safetensors of a model on disk, of which a process reads its own rows."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor
from torch.distributed.tensor import DTensor

_INDEX = "model.safetensors.index.json"
_ALONE = "model.safetensors"


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

    def first_of(self, names: Iterable[str], shape: tuple[int, ...]) -> str | None:
        """Return the first name under which there is a tensor of a shape, or None."""
        return next((name for name in names if self._shapes.get(name) == shape), None)

    def read(self, into: Mapping[str, Tensor]) -> None:
        """Fill tensors in their own type, of a DTensor the local rows.

        Args:
            into: Name to a tensor of the whole shape.
        """
        for name, tensor in into.items():
            # Opened anew for each, because pages of a mapped file that were read stay in memory.
            with safe_open(self._files[name], "pt") as file:
                read_rows(file.get_slice(name), tensor)


def read_rows(stored: Any, into: Tensor) -> None:
    """Fill a tensor from a slice of safetensors, of a DTensor the rows that this process has."""
    if not isinstance(into, DTensor):
        into.copy_(stored[...])
        return
    (mine,) = into.__create_chunk_list__()
    if mine.sizes.numel():
        rows = (
            slice(start, start + size) for start, size in zip(mine.offsets, mine.sizes, strict=True)
        )
        into.to_local().copy_(stored[tuple(rows)])


def _paths(directory: Path) -> list[Path]:
    """Return the files that transformers would load."""
    if (directory / _ALONE).is_file():
        return [directory / _ALONE]
    if not (directory / _INDEX).is_file():
        return []
    listed = json.loads((directory / _INDEX).read_text(encoding="utf-8"))["weight_map"]
    return [directory / name for name in sorted({*listed.values()})]
