"""Named tensors in safetensors files: each process writes and reads its shards.

The files say which part of which tensor they hold, so another number of processes can read them,
and so can one that expects each tensor whole. Torch's distributed checkpoints do the work, in their
safetensors format: what is read is data, never code.
"""

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.tensor import DTensor

from graphcredit.trainer.engine.distributed import Process

FILE_BYTES = 256 << 20
"""Bytes of a file, at most, unless one tensor is larger: a file is put together in memory."""


def write_tensors(process: Process, directory: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors, each process its part of those that are sharded; all processes call it.

    Args:
        process: This one among the processes.
        directory: An empty directory that all processes see.
        tensors: Name to value: the same names everywhere; DTensors are sharded, others equal.
    """
    writer = HuggingFaceStorageWriter(
        str(directory), fqn_to_index_mapping=_file_numbers(tensors), save_distributed=True
    )
    with _plain_errors():
        save(dict(tensors), storage_writer=writer, no_dist=process.world_size == 1)


def read_tensors(process: Process, directory: Path, into: Mapping[str, Tensor]) -> None:
    """Fill tensors from files; a process reads only its parts. All processes call it.

    Args:
        process: This one among the processes.
        directory: Directory that `write_tensors` has filled, or any directory of safetensors.
        into: Name to a tensor of the shape in `tensor_shapes`, which is overwritten.
    """
    reader = HuggingFaceStorageReader(str(directory))
    with _plain_errors():
        load(dict(into), storage_reader=reader, no_dist=process.world_size == 1)


def tensor_shapes(directory: Path) -> dict[str, tuple[int, ...]]:
    """Return the whole shape of each tensor in a directory, by name."""
    entries = HuggingFaceStorageReader(str(directory)).read_metadata().state_dict_metadata
    return {
        name: tuple(entry.size)
        for name, entry in entries.items()
        if isinstance(entry, TensorStorageMetadata)
    }


def _file_numbers(tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Return the number of the file, from 1, that a process writes its part of each tensor to."""
    numbers: dict[str, int] = {}
    number, room = 1, FILE_BYTES
    for name, tensor in tensors.items():
        num_parts = tensor.device_mesh.size(-1) if isinstance(tensor, DTensor) else 1
        size = tensor.numel() * tensor.element_size() // num_parts
        if size > room and room < FILE_BYTES:
            number, room = number + 1, FILE_BYTES
        numbers[name] = number
        room -= size
    return numbers


@contextmanager
def _plain_errors() -> Generator[None]:
    """Raise the error of a process itself, and be silent about working without others."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)
            yield
    except CheckpointException as error:
        cause, _ = next(iter(error.failures.values()))
        raise cause from None
